//! Memory for the data of I/Os. It is aligned for direct I/O and allocated once, before the clock
//! starts.

use std::ops::Range;
use std::sync::Arc;

use iosched_numbers::SplitMix64;
use iosched_system::{Buffer, Pool, Shared};

/// Alignment of data in memory and in files, bytes. It is sufficient for any direct I/O.
pub(super) const ALIGN_BYTES: usize = 4096;
/// Range of the start positions of write data, bytes. A start position is reused only after all
/// other positions were used.
const VARIETY_BYTES: usize = 4 << 20;

/// Returns memory of `length` bytes. The function writes to the memory, which prevents page faults
/// later.
pub(super) fn room(length: usize) -> Buffer {
    let mut room = Pool::default().buffer(length);
    room.fill(0);
    room
}

/// Data for writes: incompressible random bytes that all writers share.
pub(super) struct WriteData {
    bytes: Arc<Buffer>,
    /// Number of positions at which the data of an I/O can start.
    places: u64,
}

impl WriteData {
    /// Creates data for writes of up to `io_bytes` from a seed.
    pub(super) fn new(io_bytes: usize, seed: u64) -> Self {
        let mut bytes = Pool::default().buffer(io_bytes.next_multiple_of(ALIGN_BYTES) + VARIETY_BYTES);
        let mut random = SplitMix64::new(seed);
        for chunk in bytes.chunks_exact_mut(size_of::<u64>()) {
            chunk.copy_from_slice(&random.next_u64().to_ne_bytes());
        }
        Self { bytes: Arc::new(bytes), places: (VARIETY_BYTES / ALIGN_BYTES) as u64 }
    }

    /// Creates empty data for threads that do not write.
    pub(super) fn none() -> Self {
        Self { bytes: Arc::new(room(0)), places: 1 }
    }

    /// Returns all data for the ring of one thread.
    pub(super) fn share(&self) -> Shared {
        Arc::new(Arc::clone(&self.bytes))
    }

    /// Returns the range of the data of write `number`.
    pub(super) fn place(&self, number: u64, bytes: usize) -> Range<usize> {
        let start = (number % self.places) as usize * ALIGN_BYTES;
        start..start + bytes
    }

    /// Returns the data of write `number`.
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
