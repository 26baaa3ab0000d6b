//! Buffers for data on its way: aligned for direct I/O, and kept for the next that needs one.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Alignment of every buffer, in bytes: enough for any direct I/O.
const ALIGNMENT: usize = 4096;
/// Sizes are powers of two from one page on.
const CLASSES: usize = 20;
/// Bytes that a pool keeps for later at most.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Memory of a size class, owned.
struct Block {
    start: NonNull<u8>,
    class: u8,
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
    fn new(class: u8) -> Self {
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout(class)) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout(class)));
        Self { start, class }
    }

    fn bytes(&self) -> usize {
        layout(self.class).size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is owned.
        unsafe { dealloc(self.start.as_ptr(), layout(self.class)) };
    }
}

#[derive(Default)]
struct Kept {
    classes: [Vec<Block>; CLASSES],
    bytes: usize,
}

/// Where buffers come from and go back to. Cloning gives another handle to the same pool.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<Kept>>);

impl Pool {
    /// A buffer of `length` bytes; what stands in it is what its last user left.
    ///
    /// # Panics
    /// If `length` is above 2 GiB: no operation is that large.
    #[must_use]
    pub fn buffer(&self, length: usize) -> Buffer {
        let pages = length.div_ceil(ALIGNMENT).max(1).next_power_of_two();
        let class = pages.trailing_zeros() as u8;
        assert!(usize::from(class) < CLASSES, "a buffer of {length} bytes");
        let kept = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let block = kept.classes[usize::from(class)].pop();
            kept.bytes -= block.as_ref().map_or(0, Block::bytes);
            block
        };
        let block = kept.unwrap_or_else(|| Block::new(class));
        Buffer { block: Some(block), pool: self.clone(), first: 0, length }
    }

    fn keep(&self, block: Block) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + block.bytes() <= KEPT_BYTES_MAX {
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
    fn a_window_is_what_is_seen() {
        let mut buffer = Pool::default().buffer(16);
        buffer.copy_from_slice(b"0123456789abcdef");
        buffer.narrow(4, 8);
        assert_eq!(&*buffer, b"456789ab");
        buffer.narrow(1, 2);
        assert_eq!(&*buffer, b"56");
    }
}
