//! Memory that I/Os move data to and from: aligned for direct I/O, allocated once, before the clock starts.

use iosched_workload::SplitMix64;

/// Alignment, bytes: enough for any direct I/O.
pub(super) const ALIGN_BYTES: usize = 4096;
/// Different data that writes begin with, bytes: as much is written before any is written again.
const VARIETY_BYTES: usize = 4 << 20;

/// Aligned bytes.
pub(super) struct Memory {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Memory {
    /// So many bytes, zeroes. They are touched, so that no page is missing later.
    pub(super) fn new(length: usize) -> Self {
        let mut bytes = vec![0u8; length + ALIGN_BYTES];
        bytes.iter_mut().step_by(ALIGN_BYTES).for_each(|byte| *byte = std::hint::black_box(1));
        let start = bytes.as_ptr().align_offset(ALIGN_BYTES);
        Self { bytes, start, length }
    }

    /// All of them.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    /// All of them, to be changed.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// What is written: random bytes that no device can make smaller, the same for everybody who writes.
pub(super) struct WriteData {
    memory: Memory,
    /// Places where an I/O's data may begin.
    places: u64,
}

impl WriteData {
    /// Data for writes of up to `io_bytes`, drawn from a seed.
    pub(super) fn new(io_bytes: usize, seed: u64) -> Self {
        let mut memory = Memory::new(io_bytes.next_multiple_of(ALIGN_BYTES) + VARIETY_BYTES);
        let mut random = SplitMix64::new(seed);
        for chunk in memory.as_mut_slice().chunks_exact_mut(size_of::<u64>()) {
            chunk.copy_from_slice(&random.next_u64().to_ne_bytes());
        }
        Self { memory, places: (VARIETY_BYTES / ALIGN_BYTES) as u64 }
    }

    /// No data: for those who do not write.
    pub(super) fn none() -> Self {
        Self { memory: Memory::new(0), places: 1 }
    }

    /// The data of write number `number`.
    pub(super) fn of(&self, number: u64, bytes: usize) -> &[u8] {
        let start = (number % self.places) as usize * ALIGN_BYTES;
        &self.memory.as_slice()[start..start + bytes]
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
        assert_eq!(Memory::new(5000).as_slice().len(), 5000);
    }
}
