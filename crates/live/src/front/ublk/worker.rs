//! The thread that serves devices. It converts requests of the driver to operations of the disk,
//! and passes the answers back.
//!
//! The thread waits on its own ring for the driver and for the disk's thread. Data is copied once,
//! between the driver and the disk's buffers.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use iosched_system::ublk::QueueCommand;
use iosched_system::{Call, Inbox};

use super::UblkError;
use super::driver::{DEPTH, Request, Requests};
use crate::disk::{Action, ClientId, Operation};
use crate::ring::{self, Completed, Ring, Source};
use crate::{Buffer, Errno, Handle};

/// Answer of the disk to a request.
pub(super) struct Answer {
    device: u16,
    tag: u16,
    result: Result<Option<Buffer>, Errno>,
}

/// A served device.
pub(super) struct Device {
    requests: Requests,
    client: ClientId,
    /// Number of tags that the driver has not taken back. The driver takes tags back when the
    /// device ends.
    tags: u16,
    /// Tags of requests that wait for memory, in order.
    waiting: VecDeque<u16>,
    /// Memory of the device's requests, bytes.
    held_bytes: u64,
}

impl Device {
    pub(super) fn new(requests: Requests, client: ClientId) -> Self {
        Self { requests, client, tags: DEPTH, waiting: VecDeque::new(), held_bytes: 0 }
    }

    /// Returns the next request if its memory fits into the device's share. If the device holds no
    /// memory, a request of any size fits.
    fn next(&mut self, share_bytes: u64) -> Option<(u16, Request)> {
        let tag = *self.waiting.front()?;
        let request = self.requests.get(tag);
        let bytes = request.held_bytes();
        if self.held_bytes > 0 && self.held_bytes + bytes > share_bytes {
            return None;
        }
        self.waiting.pop_front();
        self.held_bytes += bytes;
        Some((tag, request))
    }
}

/// Server of a disk's devices.
pub(super) struct Worker {
    ring: Ring,
    disk: Handle,
    /// Devices by index. A removed device leaves `None`.
    devices: Vec<Option<Device>>,
    /// Maximum memory of each device, bytes.
    share_bytes: u64,
    inbox: Arc<Inbox<Answer>>,
    answers: Vec<Answer>,
    completed: Vec<Completed>,
}

impl Worker {
    /// Fetches requests of `devices` from the driver. The caller must use the same thread to run
    /// the worker.
    ///
    /// # Errors
    /// The system provides no ring, or the driver returns an error.
    pub(super) fn new(disk: Handle, devices: Vec<Device>) -> Result<Self, UblkError> {
        let mut worker = Self {
            ring: ring::new()?,
            share_bytes: disk.budget_bytes() / devices.len().max(1) as u64,
            disk,
            devices: devices.into_iter().map(Some).collect(),
            inbox: Arc::new(Inbox::new().map_err(UblkError::Thread)?),
            answers: Vec::new(),
            completed: Vec::new(),
        };
        worker.ring.listen_to(Arc::clone(worker.inbox.bell()));
        for (place, device) in worker.devices.iter().enumerate() {
            for (tag, device) in device.iter().flat_map(|device| (0..DEPTH).map(move |tag| (tag, device))) {
                let fetch = Call::Ublk(QueueCommand::fetch(tag));
                worker.ring.push(device.requests.fd(), fetch, (Source::Ublk, id(place as u16, tag)));
            }
        }
        let refused = |source| UblkError::Driver { what: "fetch the requests of a device".to_owned(), source };
        worker.ring.submit_and_wait(Some(Duration::ZERO)).map_err(refused)?;
        worker.ring.completions(&mut worker.completed);
        // A device that has not started has no requests. A completion is therefore an error.
        match worker.completed.first() {
            Some(completed) => Err(refused(io::Error::from_raw_os_error(-completed.result))),
            None => Ok(worker),
        }
    }

    /// Serves until all devices are removed.
    pub(super) fn run(mut self) {
        crate::sys::sleep_exactly();
        crate::sys::serve_writeback();
        while self.devices.iter().any(Option::is_some) {
            let wait = self.inbox.may_sleep();
            let waited = self.ring.submit_and_wait(if wait { None } else { Some(Duration::ZERO) });
            self.inbox.awake();
            if waited.is_err() {
                // The files of the devices are closed now. The driver then fails their requests.
                break;
            }
            self.take_completions();
            self.take_answers();
        }
        drop(self.inbox.close());
    }

    fn take_completions(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        self.ring.completions(&mut completed);
        for Completed { tag: (_, id), result, .. } in completed.drain(..) {
            match result {
                0 => self.arrived((id >> 16) as u16, id as u16),
                _ => self.lose((id >> 16) as u16),
            }
        }
        self.completed = completed;
    }

    /// Handles a tag that the driver takes back because the device ends. The last tag removes the
    /// device.
    fn lose(&mut self, place: u16) {
        let Some(slot) = self.devices.get_mut(usize::from(place)) else { return };
        if let Some(device) = slot {
            device.tags -= 1;
            if device.tags == 0 {
                self.disk.disconnect(device.client);
                *slot = None;
            }
        }
    }

    fn arrived(&mut self, place: u16, tag: u16) {
        if let Some(Some(device)) = self.devices.get_mut(usize::from(place)) {
            device.waiting.push_back(tag);
            self.go_on(place);
        }
    }

    /// Begins waiting requests of a device while the device has room for them.
    fn go_on(&mut self, place: u16) {
        let share_bytes = self.share_bytes;
        let next = |device: &mut Option<Device>| device.as_mut().and_then(|device| device.next(share_bytes));
        while let Some((tag, request)) = self.devices.get_mut(usize::from(place)).and_then(next) {
            self.begin(place, tag, request);
        }
    }

    /// Submits a request to the disk.
    fn begin(&mut self, place: u16, tag: u16, request: Request) {
        let Some(Some(device)) = self.devices.get(usize::from(place)) else { return };
        let Some(action) = request.action else {
            return self.answer(place, tag, -Errno::ENOTSUP.0);
        };
        let data = if action == Action::Write {
            let mut data = self.disk.buffer(request.length as usize);
            if device.requests.take(tag, &mut data).is_err() {
                return self.answer(place, tag, -Errno::EIO.0);
            }
            Some(data)
        } else {
            None
        };
        let inbox = Arc::clone(&self.inbox);
        let reply = Box::new(move |result| {
            // If this fails, the thread has ended, and nobody needs the answer.
            let _ = inbox.send(Answer { device: place, tag, result });
        });
        let Request { fua, no_hole, offset, length, .. } = request;
        let length = length.into();
        let operation = Operation { fua, no_hole, data, ..Operation::new(action, offset, length) };
        self.disk.submit(device.client, operation, reply);
    }

    fn take_answers(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        self.inbox.take(&mut answers);
        for Answer { device: place, tag, result } in answers.drain(..) {
            let Some(Some(device)) = self.devices.get(usize::from(place)) else { continue };
            let result = match result {
                Ok(data) => {
                    let request = device.requests.get(tag);
                    match data.map(|data| device.requests.give(tag, &data)) {
                        Some(Err(_)) => -Errno::EIO.0,
                        _ if matches!(request.action, Some(Action::Read | Action::Write)) => request.length as i32,
                        _ => 0,
                    }
                }
                Err(Errno(errno)) => -errno,
            };
            self.answer(place, tag, result);
            self.go_on(place);
        }
        self.answers = answers;
    }

    fn answer(&mut self, place: u16, tag: u16, result: i32) {
        if let Some(Some(device)) = self.devices.get_mut(usize::from(place)) {
            device.held_bytes -= device.requests.get(tag).held_bytes();
            let answer = Call::Ublk(QueueCommand::answer(tag, result));
            self.ring.push(device.requests.fd(), answer, (Source::Ublk, id(place, tag)));
        }
    }
}

/// Returns the identifier of a tag's command.
fn id(place: u16, tag: u16) -> u32 {
    u32::from(place) << 16 | u32::from(tag)
}
