//! Disks of guests, on the disk's own thread. This module serves the queues in shared memory. The
//! threads of [`crate::vhost`] forward the messages of frontends.
//!
//! While the thread is awake, it polls the queues, and guests need not notify it. Before the thread
//! sleeps, it enables notifications.
//!
//! No guest can block other guests. In each turn, the thread does only a limited amount of work for
//! each guest, even if the guest has queued more. If a guest's notifications announce no requests,
//! the thread ignores them for a while.

mod device;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use iosched::Time;
use iosched_system::Call;
use slab::Slab;

use crate::Messages;
use crate::disk::{Done, Identity, LiveDisk, TooManyClients};
use crate::ring::{Calls, Completed, Source};
use crate::vhost::channel;
use crate::virtio::inflight::Region;
use crate::virtio::memory::Memory;
use crate::virtio::{Addresses, Refusal};
use device::{Device, ServedAs, WORK_MAX, With};

/// Bit that marks the cookies of operations from guests.
pub(super) const COOKIES: u64 = 1 << 62;

/// Maximum number of notifications without a new request. After this number, the thread ignores the
/// notifications of the queue for [`DEAF_NS`] (ns). It finds the queue's requests when it polls, or
/// at the end of this time.
const VAIN_RINGS_MAX: u32 = 8;
const DEAF_NS: u64 = 1_000_000;

/// An operation for which a guest waits.
struct Piece {
    device: usize,
    request: usize,
    /// Offset of the operation's data in the data of the request, bytes.
    at: u64,
    /// Memory of the operation, bytes.
    held_bytes: u64,
}

/// A notification file of a guest's queue.
struct Kick {
    /// Device of the queue; `None` if the file is no longer used.
    device: Option<usize>,
    queue: u32,
    file: File,
}

/// Parts of the reactor that a session's function can use.
pub(crate) struct Hands<'a> {
    pub(crate) now: Time,
    pub(crate) disk: &'a mut LiveDisk,
    pub(crate) ring: &'a mut dyn Calls,
}

/// The server of all guests.
pub(crate) struct Server {
    messages: Messages,
    devices: Slab<Device>,
    pieces: Slab<Piece>,
    kicks: Slab<Kick>,
    /// Ignored notification files, with the times until which the thread ignores them.
    deaf: VecDeque<(Time, u32)>,
    /// Size of the disk that frontends know, bytes.
    size_bytes: u64,
    /// Whether the disk has answered operations since the thread last served the guests.
    answered: bool,
    ending: bool,
}

impl Server {
    pub(super) fn new(messages: Messages) -> Self {
        let (devices, pieces, kicks, deaf) = (Slab::new(), Slab::new(), Slab::new(), VecDeque::new());
        Self { messages, devices, pieces, kicks, deaf, size_bytes: 0, answered: false, ending: false }
    }

    // ---- messages of frontends

    /// Handles a new frontend: creates its device, and connects a client of the disk.
    pub(crate) fn open(
        &mut self,
        hands: &mut Hands<'_>,
        identity: Identity,
        serial: &str,
    ) -> Result<usize, TooManyClients> {
        let name = identity.name.clone();
        let client = hands.disk.connect(hands.now, identity)?;
        Ok(self.devices.insert(Device::new(client, name, serial)))
    }

    /// Handles the end of a frontend. The server no longer uses its memory. `waits` is notified
    /// when all operations of the frontend are complete.
    pub(crate) fn close(&mut self, hands: &mut Hands<'_>, id: usize, waits: SyncSender<()>) {
        let Some(device) = self.devices.get_mut(id) else { return };
        device.closing = Some(waits);
        let kicks: Vec<_> = device
            .queues
            .iter_mut()
            .filter_map(|queue| {
                queue.stop();
                queue.kick.take()
            })
            .collect();
        hands.disk.disconnect(hands.now, device.client);
        kicks.into_iter().for_each(|kick| self.forget(kick, hands.ring));
        self.forget_if_over(id);
    }

    fn forget_if_over(&mut self, id: usize) {
        if self.devices.get(id).is_some_and(Device::is_over)
            && let Some(waits) = self.devices.remove(id).closing
        {
            // If this fails, the session has failed.
            let _ = waits.send(());
        }
    }

    fn device(&mut self, id: usize) -> Result<&mut Device, Refusal> {
        self.devices.get_mut(id).ok_or(Refusal::Gone)
    }

    pub(crate) fn set_features(&mut self, id: usize, features: u64) -> Result<(), Refusal> {
        self.device(id)?.features = features;
        Ok(())
    }

    pub(crate) fn set_channel(&mut self, id: usize, channel: OwnedFd) -> Result<(), Refusal> {
        self.device(id)?.channel = Some(channel);
        Ok(())
    }

    pub(crate) fn set_memory(&mut self, id: usize, memory: Arc<Memory>) -> Result<(), Refusal> {
        let device = self.device(id)?;
        device.memory = Some(memory);
        device.start()
    }

    pub(crate) fn set_region(&mut self, id: usize, region: Region) -> Result<(), Refusal> {
        let device = self.device(id)?;
        if device.queues.iter().any(|queue| queue.started) {
            return Err(Refusal::Running);
        }
        device.region = Some(region);
        Ok(())
    }

    pub(crate) fn set_size(&mut self, id: usize, queue: u32, size: u32) -> Result<(), Refusal> {
        self.device(id)?.queue(queue)?.set_size(size)
    }

    pub(crate) fn set_base(&mut self, id: usize, queue: u32, base: u32) -> Result<(), Refusal> {
        self.device(id)?.queue(queue)?.set_base(base)
    }

    pub(crate) fn set_addresses(&mut self, id: usize, queue: u32, addresses: Addresses) -> Result<(), Refusal> {
        let device = self.device(id)?;
        device.queue(queue)?.set_addresses(addresses)?;
        device.start()
    }

    pub(crate) fn set_kick(&mut self, hands: &mut Hands<'_>, id: usize, queue: u32, file: File) -> Result<(), Refusal> {
        let old = self.device(id)?.queue(queue)?.kick.take();
        if let Some(old) = old {
            self.forget(old, hands.ring);
        }
        let kick = self.kicks.insert(Kick { device: Some(id), queue, file }) as u32;
        self.listen(kick, hands.ring);
        let device = self.device(id)?;
        device.queue(queue)?.kick = Some(kick);
        device.start()
    }

    pub(crate) fn set_call(&mut self, id: usize, queue: u32, file: Option<File>) -> Result<(), Refusal> {
        self.device(id)?.queue(queue)?.call = file;
        Ok(())
    }

    pub(crate) fn enable(&mut self, id: usize, queue: u32, enabled: bool) -> Result<(), Refusal> {
        self.device(id)?.queue(queue)?.enabled = Some(enabled);
        Ok(())
    }

    /// Stops a queue. `waits` gets the position of the next request after all requests of the queue
    /// are returned.
    pub(crate) fn stop(
        &mut self,
        hands: &mut Hands<'_>,
        id: usize,
        queue: u32,
        waits: SyncSender<u16>,
    ) -> Result<(), Refusal> {
        let queue = self.device(id)?.queue(queue)?;
        let next = if queue.started { queue.stop() } else { queue.next_available() };
        let kick = queue.kick.take();
        if queue.under_way == 0 {
            // The session waits for this message, unless the session has failed.
            let _ = waits.send(next);
        } else {
            queue.stopping = Some(waits);
        }
        if let Some(kick) = kick {
            self.forget(kick, hands.ring);
        }
        Ok(())
    }

    // ---- the disk's thread

    fn listen(&self, kick: u32, ring: &mut dyn Calls) {
        if let Some(Kick { file, .. }) = self.kicks.get(kick as usize) {
            ring.push(file.as_fd(), Call::WaitReadable, (Source::Kick, kick));
        }
    }

    /// Stops using a notification file. The kernel still uses the file until the call in flight
    /// completes.
    fn forget(&mut self, kick: u32, ring: &mut dyn Calls) {
        if let Some(at) = self.deaf.iter().position(|&(_, deaf)| deaf == kick) {
            self.deaf.remove(at);
            self.kicks.remove(kick as usize);
        } else if let Some(slot) = self.kicks.get_mut(kick as usize) {
            slot.device = None;
            ring.cancel((Source::Kick, kick));
        }
    }

    /// Handles a notification of a guest, or a failed wait for a notification.
    pub(super) fn kicked(&mut self, now: Time, completed: &Completed, ring: &mut dyn Calls) {
        let Completed { tag: (_, number), result, .. } = *completed;
        let Some(kick) = self.kicks.get(number as usize) else { return };
        let Some(device) = kick.device else {
            self.kicks.remove(number as usize);
            return;
        };
        // The read may fail, because another reader may have read the notification.
        let _ = rustix::io::read(&kick.file, &mut [0_u8; 8]);
        let queue = self.devices.get_mut(device).and_then(|device| device.queues.get_mut(kick.queue as usize));
        if result >= 0 && queue.is_some_and(|queue| queue.rung() <= VAIN_RINGS_MAX) {
            self.listen(number, ring);
        } else {
            self.deaf.push_back((now + DEAF_NS, number));
        }
    }

    /// Returns the time at which the thread stops ignoring the next notification file.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.deaf.front().map(|&(until, _)| until)
    }

    /// Waits again for notifications of files whose pause is over.
    pub(super) fn time(&mut self, now: Time, ring: &mut dyn Calls) {
        while let Some(&(until, kick)) = self.deaf.front()
            && until <= now
        {
            self.deaf.pop_front();
            self.listen(kick, ring);
        }
    }

    /// Takes requests of guests in a new turn while there is room.
    pub(super) fn serve(&mut self, now: Time, disk: &mut LiveDisk) {
        self.devices.iter_mut().for_each(|(_, device)| device.left = WORK_MAX);
        self.go_on(now, disk);
    }

    /// Takes more requests in the same turn, because there may be room again.
    pub(super) fn go_on(&mut self, now: Time, disk: &mut LiveDisk) {
        self.answered = false;
        if self.size_bytes != disk.capacity_bytes() {
            self.size_bytes = disk.capacity_bytes();
            self.devices.iter().filter_map(|(_, device)| device.channel.as_ref()).for_each(channel::tell_changed);
        }
        let share_bytes = disk.budget_bytes() / self.devices.len().max(1) as u64;
        let Self { devices, pieces, messages, ending, .. } = self;
        for (id, device) in devices.iter_mut() {
            let mut with = With { now, disk, pieces, id, share_bytes, ending: *ending };
            if let Some((memory, queues)) = device.running() {
                queues.for_each(|queue| queue.disarm(memory));
            }
            let mut served = device.serve(&mut with);
            while let ServedAs::Broken(queue) = served {
                let text = format!(
                    "{}: the server no longer serves queue {queue}, because the rings of this queue are invalid",
                    device.name
                );
                messages.note("queues of guests with invalid rings", &text);
                served = device.serve(&mut with);
            }
            device.full = served == ServedAs::Full;
        }
    }

    /// Handles the disk's answer to an operation from a guest.
    pub(super) fn answer(&mut self, done: Done) {
        self.answered = true;
        let Some(piece) = self.pieces.try_remove((done.cookie & !COOKIES) as usize) else { return };
        if let Some(device) = self.devices.get_mut(piece.device) {
            device.answer(&piece, done.result);
        }
        self.forget_if_over(piece.device);
    }

    /// Returns whether the disk has answered operations since the thread last served the guests.
    /// Waiting requests may then have room.
    pub(super) fn has_answered(&self) -> bool {
        self.answered
    }

    /// Notifies guests of returned requests that needed no operation of the disk.
    pub(super) fn tell(&mut self) {
        for (_, device) in &mut self.devices {
            if let (Some(memory), None) = (device.memory.clone(), &device.closing) {
                device.queues.iter_mut().for_each(|queue| queue.tell(&memory));
            }
        }
    }

    /// Returns whether there are guests.
    pub(super) fn has_guests(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Returns whether guests have queued requests for which there is room.
    pub(super) fn has_arrived(&mut self) -> bool {
        !self.ending && self.any(|queue, memory| queue.has_arrived(memory))
    }

    /// Enables notifications of guests. Returns whether guests have queued requests that the server
    /// has not taken.
    pub(super) fn arm(&mut self) -> bool {
        !self.ending && self.any(queue::Queue::arm)
    }

    /// Calls `holds` for every running queue of every device that has room. Returns whether `holds`
    /// returned true for any queue.
    fn any(&mut self, mut holds: impl FnMut(&mut queue::Queue, &Memory) -> bool) -> bool {
        let mut any = false;
        for (_, device) in self.devices.iter_mut().filter(|(_, device)| !device.full) {
            if let Some((memory, queues)) = device.running() {
                queues.for_each(|queue| any |= holds(queue, memory));
            }
        }
        any
    }

    /// Stops taking requests.
    pub(super) fn end(&mut self) {
        self.ending = true;
    }
}
