//! Memory that I/Os move data to and from: aligned for direct I/O, allocated once, before the clock starts.

use std::ops::Range;
use std::sync::Arc;

use iosched_numbers::SplitMix64;
use iosched_system::{Buffer, Pool, Shared};

/// Where data begins in memory and in files, bytes: a multiple of this is enough for any direct I/O.
pub(super) const ALIGN_BYTES: usize = 4096;
/// Different data that writes begin with, bytes: as much is written before any is written again.
const VARIETY_BYTES: usize = 4 << 20;

/// So many bytes. They are written to, so that no page is missing later.
pub(super) fn room(length: usize) -> Buffer {
    let mut room = Pool::default().buffer(length);
    room.fill(0);
    room
}

/// What is written: random bytes that no device can make smaller, the same for everybody who writes.
pub(super) struct WriteData {
    bytes: Arc<Buffer>,
    /// Places where an I/O's data may begin.
    places: u64,
}

impl WriteData {
    /// Data for writes of up to `io_bytes`, drawn from a seed.
    pub(super) fn new(io_bytes: usize, seed: u64) -> Self {
        let mut bytes = Pool::default().buffer(io_bytes.next_multiple_of(ALIGN_BYTES) + VARIETY_BYTES);
        let mut random = SplitMix64::new(seed);
        for chunk in bytes.chunks_exact_mut(size_of::<u64>()) {
            chunk.copy_from_slice(&random.next_u64().to_ne_bytes());
        }
        Self { bytes: Arc::new(bytes), places: (VARIETY_BYTES / ALIGN_BYTES) as u64 }
    }

    /// No data: for those who do not write.
    pub(super) fn none() -> Self {
        Self { bytes: Arc::new(room(0)), places: 1 }
    }

    /// All of it, for one thread's ring.
    pub(super) fn share(&self) -> Shared {
        Arc::new(Arc::clone(&self.bytes))
    }

    /// Where in it the data of write number `number` is.
    pub(super) fn place(&self, number: u64, bytes: usize) -> Range<usize> {
        let start = (number % self.places) as usize * ALIGN_BYTES;
        start..start + bytes
    }

    /// The data of write number `number`.
    pub(super) fn of(&self, number: u64, bytes: usize) -> &[u8] {
        &self.bytes[self.place(number, bytes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_writes_differ() {
        let data = WriteData::new(10_000, 7);
        let (one, other) = (data.of(0, 10_000), data.of(1, 10_000));
        assert!([one, other].iter().all(|data| data.as_ptr().align_offset(ALIGN_BYTES) == 0));
        assert_ne!(one, other);
        assert_eq!(data.of(data.places, 512), data.of(0, 512));
        assert_eq!(room(5000).len(), 5000);
    }
}
