//! State for the next server: the requests in flight of each queue, in memory that the frontend
//! keeps. The server can therefore be killed at any moment. The next server executes all unanswered
//! requests again, in their original order.
//!
//! The layout and the order of the writes follow the vhost-user specification ("Inflight I/O
//! tracking", split virtqueues). The server notes a request before it begins the request. It
//! removes the note after the answer is in the used ring. If the server is killed between these two
//! steps, the index of the used ring is ahead of the index in this memory. The next server then
//! knows which request was answered last, and does not execute it again.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags};
use vhost::vhost_user::message::VhostUserInflight;
use vm_memory::{Bytes, MmapRegion, VolatileMemory, VolatileSlice};

use super::memory::map_file;

/// Bytes of a queue's state before the states of its descriptors.
const HEADER_BYTES: usize = 16;
/// Bytes of a descriptor's state.
const STATE_BYTES: usize = 16;
/// The only version of the layout.
const VERSION: u16 = 1;

const VERSION_AT: usize = 8;
const SIZE_AT: usize = 10;
const LAST_HEAD_AT: usize = 12;
const USED_AT: usize = 14;

const UNDER_WAY_AT: usize = 0;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;

/// Returns the memory for a queue with `size` descriptors, bytes. Each queue begins on its own
/// cache line.
fn queue_bytes(size: u16) -> usize {
    (HEADER_BYTES + usize::from(size) * STATE_BYTES).next_multiple_of(64)
}

/// Creates the memory for `queues` queues with `size` descriptors each. The memory is in a file
/// that the frontend keeps.
///
/// # Errors
/// The system does not have enough memory.
pub(crate) fn create(queues: u16, size: u16) -> io::Result<(VhostUserInflight, File)> {
    let bytes = (usize::from(queues) * queue_bytes(size)) as u64;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file: OwnedFd = rustix::fs::memfd_create("iosched-inflight", flags)?;
    rustix::fs::ftruncate(&file, bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let about = VhostUserInflight::new(bytes, 0, queues, size);
    Region::map(&about, File::from(file.try_clone()?))?.format();
    Ok((about, file.into()))
}

/// The mapped memory of all queues.
pub(crate) struct Region {
    map: MmapRegion,
    queues: u16,
    size: u16,
}

impl Region {
    /// Maps memory that a frontend has kept.
    ///
    /// # Errors
    /// The memory is too small for its queues or longer than its file, or the system does not map
    /// it.
    pub(crate) fn map(about: &VhostUserInflight, file: File) -> io::Result<Self> {
        let &VhostUserInflight { mmap_size, mmap_offset, num_queues: queues, queue_size: size } = about;
        let needed = usize::from(queues) * queue_bytes(size);
        let bytes = usize::try_from(mmap_size).map_err(io::Error::other)?;
        if bytes < needed {
            let why = format!(
                "{queues} queues of {size} entries need {needed} bytes for requests in flight, but the \
                 file has only {bytes} bytes"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Self { map: map_file(file, mmap_offset, bytes)?, queues, size })
    }

    fn format(&self) {
        for mut queue in (0..self.queues).filter_map(|number| self.queue(number)) {
            queue.set(VERSION_AT, VERSION);
            queue.set(SIZE_AT, self.size);
        }
    }

    /// Returns the state of a queue.
    pub(crate) fn queue(&self, number: u16) -> Option<Queue<'_>> {
        let first = usize::from(number) * queue_bytes(self.size);
        let slice = self.map.get_slice(first, queue_bytes(self.size)).ok()?;
        (number < self.queues).then_some(Queue { slice, size: self.size })
    }
}

/// State of a queue's requests.
pub(crate) struct Queue<'a> {
    slice: VolatileSlice<'a>,
    size: u16,
}

impl Queue<'_> {
    fn get(&self, at: usize) -> u16 {
        self.slice.load(at, Ordering::Acquire).unwrap_or_default()
    }

    fn set(&mut self, at: usize, value: u16) {
        // The position is always inside the slice.
        let _ = self.slice.store(value, at, Ordering::Release);
    }

    fn state(head: u16) -> usize {
        HEADER_BYTES + usize::from(head) * STATE_BYTES
    }

    fn is_under_way(&self, head: u16) -> bool {
        self.slice.load::<u8>(Self::state(head) + UNDER_WAY_AT, Ordering::Acquire).unwrap_or_default() != 0
    }

    fn set_under_way(&mut self, head: u16, is: bool) {
        let _ = self.slice.store(u8::from(is), Self::state(head) + UNDER_WAY_AT, Ordering::Release);
    }

    /// Notes that a request begins. The request is the `counter`th one of its queue.
    pub(crate) fn begin(&mut self, head: u16, counter: u64) {
        if head < self.size {
            let _ = self.slice.store(counter, Self::state(head) + COUNTER_AT, Ordering::Release);
            self.set_under_way(head, true);
        }
    }

    /// Notes that the server is about to answer a request.
    pub(crate) fn answer(&mut self, head: u16) {
        if head < self.size {
            let last = self.get(LAST_HEAD_AT);
            self.set(Self::state(head) + NEXT_AT, last);
            self.set(LAST_HEAD_AT, head);
        }
    }

    /// Notes that the answer is in the used ring. `used` is the new index of this ring.
    pub(crate) fn answered(&mut self, head: u16, used: u16) {
        if head < self.size {
            self.set_under_way(head, false);
            self.set(USED_AT, used);
        }
    }

    /// Takes over the state of an earlier server. `used` is the index of the used ring. Returns the
    /// heads of the unanswered requests, in the order in which the requests began, and the counter
    /// of the next request.
    pub(crate) fn take_over(&mut self, used: u16) -> (Vec<u16>, u64) {
        let mut head = self.get(LAST_HEAD_AT);
        for _ in 0..used.wrapping_sub(self.get(USED_AT)).min(self.size) {
            if head >= self.size {
                break;
            }
            self.set_under_way(head, false);
            head = self.get(Self::state(head) + NEXT_AT);
        }
        self.set(USED_AT, used);
        let counter =
            |head| self.slice.load::<u64>(Self::state(head) + COUNTER_AT, Ordering::Acquire).unwrap_or_default();
        let mut left: Vec<_> =
            (0..self.size).filter(|&head| self.is_under_way(head)).map(|head| (counter(head), head)).collect();
        left.sort_unstable();
        let next = left.last().map_or(0, |&(counter, _)| counter.wrapping_add(1));
        (left.into_iter().map(|(_, head)| head).collect(), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region() -> (VhostUserInflight, File) {
        create(2, 8).unwrap()
    }

    #[test]
    fn next_server_gets_unanswered_requests_in_order() {
        let (about, file) = region();
        let first = Region::map(&about, file.try_clone().unwrap()).unwrap();
        let mut queue = first.queue(1).unwrap();
        for (counter, head) in [5, 3, 7, 0].into_iter().enumerate() {
            queue.begin(head, counter as u64);
        }
        queue.answer(3);
        queue.answered(3, 1);
        let second = Region::map(&about, file).unwrap();
        assert_eq!(second.queue(1).unwrap().take_over(1), (vec![5, 7, 0], 4));
        assert_eq!(second.queue(0).unwrap().take_over(0), (vec![], 0), "another queue");
        assert!(second.queue(2).is_none());
    }

    #[test]
    fn answered_requests_are_not_repeated_after_a_crash() {
        let (about, file) = region();
        let region = Region::map(&about, file).unwrap();
        let mut queue = region.queue(0).unwrap();
        for (counter, head) in [1, 2, 4].into_iter().enumerate() {
            queue.begin(head, counter as u64);
        }
        queue.answer(1);
        queue.answered(1, 1);
        // The server is killed twice: after the answer is in the ring, and then before the answer
        // is in the ring.
        queue.answer(4);
        assert_eq!(queue.take_over(2), (vec![2], 2));
        queue.answer(2);
        assert_eq!(queue.take_over(2), (vec![2], 2));
    }

    #[test]
    fn damaged_inflight_memory_causes_no_panic() {
        let (about, file) = region();
        let region = Region::map(&about, file).unwrap();
        let slice = region.map.get_slice(0, queue_bytes(8)).unwrap();
        slice.write_slice(&vec![0xff; queue_bytes(8)], 0).unwrap();
        let (left, _) = region.queue(0).unwrap().take_over(9);
        assert_eq!(left.len(), 8);
        let short = VhostUserInflight::new(64, 0, 2, 8);
        assert!(Region::map(&short, tempfile::tempfile().unwrap()).is_err());
        assert!(
            Region::map(&about, tempfile::tempfile().unwrap()).is_err(),
            "the region extends beyond the end of its file"
        );
    }
}
