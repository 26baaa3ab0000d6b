//! The guest's side of vhost-user-blk: memory in a file, queues in this memory, and the messages of
//! the frontend.
#![allow(dead_code, reason = "each test uses its part, and so does the benchmark")]

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserInflight, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_queue::desc::RawDescriptor;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};
use vmm_sys_util::eventfd::EventFd;

/// Maximum time to wait for an answer, ms.
const PATIENCE_MS: i32 = 60_000;

/// Address at which the guest's memory begins.
pub(crate) const BASE: u64 = 1 << 30;
/// Number of descriptors of a queue.
pub(crate) const SIZE: u16 = 128;
/// Maximum number of requests in a queue. Each request uses three descriptors.
pub(crate) const SLOTS: u16 = SIZE / 3;
/// Memory of a queue, bytes.
const QUEUE_BYTES: u64 = 128 << 20;
/// Memory of a request, bytes: the header, the status, and the data from the second page on.
const SLOT_BYTES: u64 = 3 << 20;
const AVAILABLE: u64 = 4096;
const USED: u64 = 8192;
const DATA: u64 = 4096;

pub(crate) const F_EVENT_IDX: u64 = 1 << 29;
const F_PROTOCOL_FEATURES: u64 = 1 << 30;

pub(crate) const IN: u32 = 0;
pub(crate) const OUT: u32 = 1;
pub(crate) const FLUSH: u32 = 4;
pub(crate) const GET_ID: u32 = 8;
pub(crate) const DISCARD: u32 = 11;
pub(crate) const WRITE_ZEROES: u32 = 13;

/// State of a queue in the guest.
struct Queue {
    first: u64,
    available: u16,
    used: u16,
    free: Vec<u16>,
    /// Number of bytes that the request of each slot reads.
    reads: [u32; SLOTS as usize],
    kick: EventFd,
    call: EventFd,
    /// Waits, without polling, until `call` is notified.
    sleep: Epoll,
}

/// A guest with a disk.
pub(crate) struct Guest {
    pub(crate) memory: GuestMemoryMmap,
    queues: Vec<Queue>,
    /// Features that the guest does not use, although the server offers them.
    pub(crate) without: u64,
    pub(crate) features: u64,
    inflight: Option<(VhostUserInflight, File)>,
    frontend: Option<Frontend>,
    /// The backend's end of the channel for messages that are not answers.
    pub(crate) channel: Option<UnixStream>,
}

fn bell() -> EventFd {
    EventFd::new(vmm_sys_util::eventfd::EFD_NONBLOCK).unwrap()
}

impl Guest {
    pub(crate) fn new(queues: u64) -> Self {
        let file = tempfile::tempfile().unwrap();
        let bytes = queues * QUEUE_BYTES;
        file.set_len(bytes).unwrap();
        let range = (GuestAddress(BASE), bytes as usize, Some(FileOffset::new(file, 0)));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).unwrap();
        let queue = |number: u64| {
            let (call, sleep) = (bell(), Epoll::new().unwrap());
            let rung = EpollEvent::new(EventSet::IN, 0);
            sleep.ctl(ControlOperation::Add, call.as_raw_fd(), rung).unwrap();
            Queue {
                first: BASE + number * QUEUE_BYTES,
                available: 0,
                used: 0,
                free: (0..SLOTS).rev().collect(),
                reads: [0; SLOTS as usize],
                kick: bell(),
                call,
                sleep,
            }
        };
        let queues = (0..queues).map(queue).collect();
        Self { memory, queues, without: 0, features: 0, inflight: None, frontend: None, channel: None }
    }

    /// Connects to the server, for the first time or again after a server has ended.
    pub(crate) fn connect(&mut self, socket: &Path) {
        let mut frontend = Frontend::connect(socket, self.queues.len() as u64).unwrap();
        frontend.set_owner().unwrap();
        self.features = frontend.get_features().unwrap() & !self.without;
        assert_ne!(self.features & F_PROTOCOL_FEATURES, 0);
        let mut protocol = VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD;
        protocol.set(VhostUserProtocolFeatures::BACKEND_REQ, self.channel.is_some());
        // Servers other than iosched may not support memory for requests in flight.
        protocol &= frontend.get_protocol_features().unwrap();
        frontend.set_protocol_features(protocol).unwrap();
        frontend.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        if let Some(channel) = &self.channel {
            frontend.set_backend_request_fd(channel).unwrap();
        }
        assert!(frontend.get_queue_num().unwrap() >= self.queues.len() as u64);
        frontend.set_features(self.features).unwrap();
        let regions: Vec<_> =
            self.memory.iter().map(|region| VhostUserMemoryRegionInfo::from_guest_region(region).unwrap()).collect();
        frontend.set_mem_table(&regions).unwrap();
        if protocol.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD) {
            let wish = VhostUserInflight::new(0, 0, self.queues.len() as u16, SIZE);
            let (inflight, file) = self.inflight.get_or_insert_with(|| frontend.get_inflight_fd(&wish).unwrap());
            frontend.set_inflight_fd(inflight, file.as_raw_fd()).unwrap();
        }
        for (number, queue) in self.queues.iter().enumerate() {
            frontend.set_vring_num(number, SIZE).unwrap();
            frontend.set_vring_base(number, queue.used).unwrap();
            let user = self.memory.get_host_address(GuestAddress(queue.first)).unwrap() as u64;
            let config = VringConfigData {
                queue_max_size: SIZE,
                queue_size: SIZE,
                flags: 0,
                desc_table_addr: user,
                used_ring_addr: user + USED,
                avail_ring_addr: user + AVAILABLE,
                log_addr: None,
            };
            frontend.set_vring_addr(number, &config).unwrap();
            frontend.set_vring_call(number, &queue.call).unwrap();
            frontend.set_vring_kick(number, &queue.kick).unwrap();
            frontend.set_vring_enable(number, true).unwrap();
        }
        self.frontend = Some(frontend);
    }

    pub(crate) fn frontend(&mut self) -> &mut Frontend {
        self.frontend.as_mut().unwrap()
    }

    /// Ends the connection. The guest continues.
    pub(crate) fn disconnect(&mut self) {
        self.frontend = None;
    }

    pub(crate) fn config(&mut self, offset: u32, bytes: usize) -> Vec<u8> {
        let flags = VhostUserConfigFlags::empty();
        self.frontend().get_config(offset, bytes as u32, flags, &vec![0; bytes]).unwrap().1
    }

    /// Stops a queue. Returns the position from which the queue must continue.
    pub(crate) fn stop(&mut self, queue: usize) -> u32 {
        self.frontend().get_vring_base(queue).unwrap()
    }

    fn slot(&self, queue: usize, slot: u16) -> u64 {
        self.queues[queue].first + (1 << 20) + u64::from(slot) * (SLOT_BYTES - (1 << 14))
    }

    /// Writes a descriptor into the table of a queue.
    pub(crate) fn describe(&mut self, queue: usize, number: u16, descriptor: (u64, u32, u16, u16)) {
        let (address, bytes, flags, next) = descriptor;
        let raw = RawDescriptor::from(Descriptor::new(address, bytes, flags, next));
        let place = self.queues[queue].first + u64::from(number) * 16;
        self.memory.write_obj(raw, GuestAddress(place)).unwrap();
    }

    /// Makes a chain available. Notifies the server if it wants a notification.
    pub(crate) fn offer(&mut self, queue: usize, head: u16) {
        let ring = &mut self.queues[queue];
        let place = ring.first + AVAILABLE + 4 + u64::from(ring.available % SIZE) * 2;
        self.memory.store(head, GuestAddress(place), Ordering::Relaxed).unwrap();
        self.advance(queue, 1);
    }

    /// Announces `count` more available chains.
    pub(crate) fn advance(&mut self, queue: usize, count: u16) {
        let ring = &mut self.queues[queue];
        ring.available = ring.available.wrapping_add(count);
        let place = GuestAddress(ring.first + AVAILABLE + 2);
        self.memory.store(ring.available, place, Ordering::Release).unwrap();
        fence(Ordering::SeqCst);
        let load = |at: u64| self.memory.load::<u16>(GuestAddress(ring.first + USED + at), Ordering::Acquire).unwrap();
        let wanted = if self.features & F_EVENT_IDX == 0 {
            load(0) & 1 == 0
        } else {
            // The index of the request for which the server wants a notification.
            load(4 + u64::from(SIZE) * 8) == ring.available.wrapping_sub(1)
        };
        if wanted {
            ring.kick.write(1).unwrap();
        }
    }

    /// Submits a request. Returns its slot.
    pub(crate) fn submit(&mut self, queue: usize, kind: u32, sector: u64, data: &[u8], reads: u32) -> u16 {
        let slot = self.queues[queue].free.pop().expect("a free slot");
        let place = self.slot(queue, slot);
        let mut header = [0; 16];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        self.memory.write_slice(&header, GuestAddress(place)).unwrap();
        self.memory.write_slice(&[0xff], GuestAddress(place + 16)).unwrap();
        self.memory.write_slice(data, GuestAddress(place + DATA)).unwrap();
        self.queues[queue].reads[usize::from(slot)] = reads;
        let (head, next, write) = (slot * 3, 1, 2);
        let status = (place + 16, 1, write, 0);
        let bytes = data.len() as u32 + reads;
        if bytes == 0 {
            self.describe(queue, head, (place, 16, next, head + 1));
            self.describe(queue, head + 1, status);
        } else {
            let flags = next | if reads > 0 { write } else { 0 };
            self.describe(queue, head, (place, 16, next, head + 1));
            self.describe(queue, head + 1, (place + DATA, bytes, flags, head + 2));
            self.describe(queue, head + 2, status);
        }
        self.offer(queue, head);
        slot
    }

    /// Returns the head and length of the next used chain, if there is one.
    pub(crate) fn used(&mut self, queue: usize) -> Option<(u16, u32)> {
        let ring = &mut self.queues[queue];
        let index: u16 = self.memory.load(GuestAddress(ring.first + USED + 2), Ordering::Acquire).unwrap();
        if index == ring.used {
            return None;
        }
        let place = ring.first + USED + 4 + u64::from(ring.used % SIZE) * 8;
        let head: u32 = self.memory.load(GuestAddress(place), Ordering::Relaxed).unwrap();
        let written: u32 = self.memory.load(GuestAddress(place + 4), Ordering::Relaxed).unwrap();
        ring.used = ring.used.wrapping_add(1);
        Some((head as u16, written))
    }

    /// Requests a notification for the next used chain.
    fn listen(&self, queue: usize) {
        let ring = &self.queues[queue];
        let event = GuestAddress(ring.first + AVAILABLE + 4 + u64::from(SIZE) * 2);
        self.memory.store(ring.used, event, Ordering::Relaxed).unwrap();
        fence(Ordering::SeqCst);
    }

    /// Waits for the next used chain. Sleeps until a notification.
    pub(crate) fn wait_used(&mut self, queue: usize) -> (u16, u32) {
        loop {
            if let Some(used) = self.used(queue) {
                return used;
            }
            self.listen(queue);
            if let Some(used) = self.used(queue) {
                return used;
            }
            let Queue { call, sleep, .. } = &self.queues[queue];
            match sleep.wait(PATIENCE_MS, &mut [EpollEvent::default()]) {
                Ok(notified) => assert!(notified > 0, "the guest must be notified of an answer"),
                // Stopping and continuing the process interrupts the wait.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
            }
            // The read fails if there is no notification.
            let _ = call.read();
        }
    }

    pub(crate) fn has_free(&self, queue: usize) -> bool {
        !self.queues[queue].free.is_empty()
    }

    /// Returns an answer, if there is one: its slot and status.
    pub(crate) fn answered(&mut self, queue: usize) -> Option<(u16, u8)> {
        let (head, _) = self.used(queue)?;
        Some((head / 3, self.take(queue, head / 3).0))
    }

    /// Waits for an answer. Returns its slot, its status and the data that was read.
    pub(crate) fn wait(&mut self, queue: usize) -> (u16, u8, Vec<u8>) {
        let (head, written) = self.wait_used(queue);
        let slot = head / 3;
        let (status, data) = self.take(queue, slot);
        assert_eq!(written, if status == 0 { data.len() as u32 + 1 } else { 1 });
        (slot, status, data)
    }

    /// Returns the status and the data of an answered request, and frees its slot.
    fn take(&mut self, queue: usize, slot: u16) -> (u8, Vec<u8>) {
        let place = self.slot(queue, slot);
        let mut status = [0];
        self.memory.read_slice(&mut status, GuestAddress(place + 16)).unwrap();
        let mut data = vec![0; self.queues[queue].reads[usize::from(slot)] as usize];
        self.memory.read_slice(&mut data, GuestAddress(place + DATA)).unwrap();
        assert!(!self.queues[queue].free.contains(&slot), "a request is answered once");
        self.queues[queue].free.push(slot);
        (status[0], data)
    }

    /// Submits the request of an answered slot again at another sector. Returns the status of the
    /// answered request.
    pub(crate) fn again(&mut self, queue: usize, slot: u16, sector: u64) -> u8 {
        let place = self.slot(queue, slot);
        let status: u8 = self.memory.load(GuestAddress(place + 16), Ordering::Relaxed).unwrap();
        self.memory.store(sector.to_le(), GuestAddress(place + 8), Ordering::Relaxed).unwrap();
        self.offer(queue, slot * 3);
        status
    }

    /// Notifies the server, whether or not it wants a notification.
    pub(crate) fn ring(&self, queue: usize) {
        self.queues[queue].kick.write(1).unwrap();
    }

    /// Replaces the notification file. The new file is used from the next connection on.
    pub(crate) fn ring_by(&mut self, queue: usize, bell: EventFd) {
        self.queues[queue].kick = bell;
    }

    /// Keeps a queue full with the request that begins at `head`, as fast as possible, until `ends`
    /// is set.
    pub(crate) fn flood(&self, queue: usize, head: u16, ends: &AtomicBool) {
        let ring = self.queues[queue].first + AVAILABLE;
        (0..SIZE).for_each(|at| self.memory.write_obj(head, GuestAddress(ring + 4 + u64::from(at) * 2)).unwrap());
        let used = GuestAddress(self.queues[queue].first + USED + 2);
        while !ends.load(Ordering::Relaxed) {
            self.ring(queue);
            for _ in 0..1000 {
                let index: u16 = self.memory.load(used, Ordering::Acquire).unwrap();
                self.memory.store(index.wrapping_add(SIZE), GuestAddress(ring + 2), Ordering::Release).unwrap();
            }
        }
    }

    /// Frees the slot of an answered request without reading its data.
    pub(crate) fn done(&mut self, queue: usize, head: u16) {
        self.queues[queue].free.push(head / 3);
    }

    /// Submits a request and waits for its answer. No other request may be in flight.
    #[track_caller]
    pub(crate) fn call(&mut self, kind: u32, sector: u64, data: &[u8], reads: u32) -> Result<Vec<u8>, u8> {
        let slot = self.submit(0, kind, sector, data, reads);
        let (answered, status, data) = self.wait(0);
        assert_eq!(answered, slot);
        if status == 0 { Ok(data) } else { Err(status) }
    }

    pub(crate) fn read(&mut self, sector: u64, bytes: u32) -> Vec<u8> {
        self.call(IN, sector, &[], bytes).unwrap()
    }

    pub(crate) fn write(&mut self, sector: u64, data: &[u8]) {
        self.call(OUT, sector, data, 0).unwrap();
    }
}

/// Returns a range in the format for trims and zeroes.
pub(crate) fn range(sector: u64, sectors: u32, flags: u32) -> [u8; 16] {
    let mut range = [0; 16];
    range[..8].copy_from_slice(&sector.to_le_bytes());
    range[8..12].copy_from_slice(&sectors.to_le_bytes());
    range[12..].copy_from_slice(&flags.to_le_bytes());
    range
}
