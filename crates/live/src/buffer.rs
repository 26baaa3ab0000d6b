//! Buffers for data on its way: aligned for direct I/O, and kept for the next that needs one.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Advice, MmapMut, MmapOptions};

/// Alignment of every buffer, in bytes: enough for any direct I/O.
const ALIGNMENT: usize = 4096;
/// Sizes are powers of two from one page on.
const CLASSES: usize = 20;
/// Blocks up to this class are the allocator's and take their memory at once; larger ones are mapped, and take each
/// page when it is written to.
const ALLOCATED_CLASS_MAX: u8 = 2;
/// Bytes that a pool keeps for later at most, unless it is told otherwise.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Memory of a size class, owned.
struct Block {
    start: NonNull<u8>,
    class: u8,
    /// What it lies in, if it is not the allocator's.
    map: Option<MmapMut>,
}

// SAFETY: a block is the only owner of plain memory.
unsafe impl Send for Block {}
// SAFETY: through a shared reference it is only read.
unsafe impl Sync for Block {}

fn layout(class: u8) -> Layout {
    // SAFETY: the alignment is a power of two, and the size is a multiple of it below 2^32.
    unsafe { Layout::from_size_align_unchecked(ALIGNMENT << class, ALIGNMENT) }
}

impl Block {
    /// `None` if there is no memory.
    fn new(class: u8) -> Option<Self> {
        if class > ALLOCATED_CLASS_MAX {
            return Self::mapped(class);
        }
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout(class)) };
        NonNull::new(start).map(|start| Self { start, class, map: None })
    }

    fn mapped(class: u8) -> Option<Self> {
        let mut map = MmapOptions::new().len(layout(class).size()).no_reserve_swap().map_anon().ok()?;
        // Page by page is what it is for. Where there are no huge pages it is as well.
        let _ = map.advise(Advice::NoHugePage);
        NonNull::new(map.as_mut_ptr()).map(|start| Self { start, class, map: Some(map) })
    }

    fn bytes(&self) -> usize {
        layout(self.class).size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.map.is_none() {
            // SAFETY: it was allocated with this layout and is owned.
            unsafe { dealloc(self.start.as_ptr(), layout(self.class)) };
        }
    }
}

struct Kept {
    classes: [Vec<Block>; CLASSES],
    bytes: usize,
    bytes_max: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self { classes: Default::default(), bytes: 0, bytes_max: KEPT_BYTES_MAX }
    }
}

/// Where buffers come from and go back to. Cloning gives another handle to the same pool.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<Kept>>);

/// The class of a buffer of `length` bytes.
fn class_of(length: usize) -> u8 {
    length.div_ceil(ALIGNMENT).max(1).next_power_of_two().trailing_zeros() as u8
}

impl Pool {
    /// A pool that keeps a quarter of `budget_bytes` for later, or less.
    #[must_use]
    pub fn within(budget_bytes: u64) -> Self {
        let bytes_max = usize::try_from(budget_bytes / 4).map_or(KEPT_BYTES_MAX, |bytes| bytes.min(KEPT_BYTES_MAX));
        Self(Arc::new(Mutex::new(Kept { bytes_max, ..Kept::default() })))
    }

    /// Memory that a buffer of `length` bytes takes once it is full, in bytes.
    #[must_use]
    pub fn bytes_taken(length: usize) -> usize {
        let class = class_of(length);
        if class > ALLOCATED_CLASS_MAX { length.next_multiple_of(ALIGNMENT) } else { ALIGNMENT << class }
    }

    /// A buffer of `length` bytes; what stands in it is what its last user left. The program ends if there is no
    /// memory for it.
    ///
    /// # Panics
    /// If `length` is above 2 GiB: no operation is that large.
    #[must_use]
    pub fn buffer(&self, length: usize) -> Buffer {
        self.try_buffer(length).unwrap_or_else(|| handle_alloc_error(layout(class_of(length))))
    }

    /// As [`Pool::buffer`]; `None` if there is no memory for it.
    ///
    /// # Panics
    /// If `length` is above 2 GiB: no operation is that large.
    #[must_use]
    pub fn try_buffer(&self, length: usize) -> Option<Buffer> {
        let class = class_of(length);
        assert!(usize::from(class) < CLASSES, "a buffer of {length} bytes");
        let kept = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let block = kept.classes[usize::from(class)].pop();
            kept.bytes -= block.as_ref().map_or(0, Block::bytes);
            block
        };
        let block = kept.or_else(|| Block::new(class))?;
        Some(Buffer { block: Some(block), pool: self.clone(), first: 0, length })
    }

    fn keep(&self, block: Block) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + block.bytes() <= kept.bytes_max {
            kept.bytes += block.bytes();
            kept.classes[usize::from(block.class)].push(block);
        }
    }
}

/// Bytes in memory whose place does not change, and the window of them that counts.
pub struct Buffer {
    /// Always there until the buffer is dropped.
    block: Option<Block>,
    pool: Pool,
    first: usize,
    length: usize,
}

impl Buffer {
    /// Narrows the window to `length` bytes from its byte `first` on.
    ///
    /// # Panics
    /// If they are not all in it.
    pub fn narrow(&mut self, first: usize, length: usize) {
        assert!(first + length <= self.length, "a window is narrowed, not moved");
        self.first += first;
        self.length = length;
    }

    fn start(&self) -> *mut u8 {
        self.block.as_ref().map_or(std::ptr::null_mut(), |block| block.start.as_ptr().wrapping_add(self.first))
    }

    /// Where `length` bytes from byte `first` of the window on are in memory.
    ///
    /// # Panics
    /// If they are not all in it.
    pub(crate) fn segment(&mut self, first: usize, length: usize) -> Segment {
        assert!(first + length <= self.length, "a segment lies in its buffer");
        Segment { start: self.start().wrapping_add(first), length }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.keep(block);
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the window lies in the block, which is initialised, owned, and lives as long as the buffer.
        unsafe { std::slice::from_raw_parts(self.start(), self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.length) }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer of {} bytes", self.length)
    }
}

/// A part of a buffer that a back end reads or fills. Whoever made it keeps the buffer until the command is complete.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

// SAFETY: what it points to belongs to a live disk, and both move to the disk's thread together.
unsafe impl Send for Segment {}

impl Segment {
    /// The bytes to write.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the live disk keeps the buffer of a command under way, and gives nobody else access to it.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    /// The bytes to fill.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; the back end uses one segment at a time.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_as_long_as_asked() {
        let pool = Pool::default();
        for length in [0, 1, 512, 4096, 4097, 1 << 20] {
            let mut buffer = pool.buffer(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            buffer.fill(1);
        }
    }

    #[test]
    fn a_buffer_is_used_again_and_the_pool_stays_small() {
        let pool = Pool::default();
        let first = pool.buffer(5000);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(pool.buffer(8192).as_ptr(), place);
        drop((0..40).map(|_| pool.buffer(4 << 20)).collect::<Vec<_>>());
        assert!(pool.0.lock().unwrap().bytes <= KEPT_BYTES_MAX);
    }

    #[test]
    fn a_pool_keeps_no_more_than_a_quarter_of_its_budget() {
        let pool = Pool::within(16 << 20);
        drop((0..40).map(|_| pool.buffer(1 << 20)).collect::<Vec<_>>());
        assert_eq!(pool.0.lock().unwrap().bytes, 4 << 20);
    }

    #[test]
    fn a_large_buffer_takes_memory_as_it_is_filled() {
        let resident_kib = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
            line.trim_end_matches("kB").trim().parse::<u64>().unwrap()
        };
        let pool = Pool::within(0);
        let before = resident_kib();
        let mut buffers: Vec<_> = (0..64).map(|_| pool.try_buffer(32 << 20).unwrap()).collect();
        buffers.iter_mut().for_each(|buffer| buffer[..1000].fill(1));
        // Other tests of the process take some, too.
        let taken_kib = resident_kib().saturating_sub(before);
        assert!(taken_kib < 512 << 10, "{taken_kib} KiB for 64,000 bytes in 2 GiB");
        assert_eq!(Pool::bytes_taken(1), 4096);
        assert_eq!(Pool::bytes_taken(9000), 16_384);
        assert_eq!(Pool::bytes_taken(33_000), 36_864);
    }

    #[test]
    fn a_window_is_what_is_seen() {
        let mut buffer = Pool::default().buffer(16);
        buffer.copy_from_slice(b"0123456789abcdef");
        buffer.narrow(4, 8);
        assert_eq!(&*buffer, b"456789ab");
        buffer.narrow(1, 2);
        assert_eq!(&*buffer, b"56");
    }
}
