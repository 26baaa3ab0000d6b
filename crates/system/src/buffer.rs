//! Buffers for data in flight: aligned for direct I/O, and kept for reuse.
//!
//! A [`Buffer`] owns its bytes. It can lend parts of them as [`Segment`]s, which own these parts
//! until they are dropped. Segments never overlap. While a segment exists, the buffer cannot be
//! accessed. The buffer and its segments keep the memory alive. The kernel may therefore use the
//! memory of a segment even after the buffer is dropped.
//!
//! A buffer that is only sent need not contain all bytes itself. The owner of a segment may name
//! other memory with the same bytes. The kernel then sends the bytes from that memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use memmap2::{Advice, MmapMut, MmapOptions};

use crate::map::View;

/// Alignment of every buffer, in bytes: enough for any direct I/O.
const ALIGNMENT: usize = 4096;
/// Number of size classes. Sizes are powers of two, beginning with one page.
const CLASSES: usize = 32;
/// Largest class of blocks that come from the allocator. All memory of these blocks is in use at
/// once. Larger blocks are mapped, so each of their pages takes memory only after the first write
/// to it.
const ALLOCATED_CLASS_MAX: u8 = 2;
/// Largest number of bytes that a pool keeps for reuse by default.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Number of lent parts in one list. If more parts of a block are lent, another list follows.
const LENT: usize = 7;

/// The parts of a block that are lent.
#[derive(Default)]
struct Lent {
    /// Lent parts. The upper half of a value is the first byte, and the lower half is the number of
    /// bytes. 0 means no part.
    parts: [AtomicU64; LENT],
    more: OnceLock<Box<Lent>>,
}

impl Lent {
    /// Records that a part is lent. Only the owner of the block may call this function. Returns the
    /// index of the record.
    ///
    /// # Panics
    /// If some bytes of the part are lent already.
    fn add(&self, first: usize, length: usize) -> usize {
        assert!(u32::try_from(first + length).is_ok(), "a lent part is below 4 GiB");
        let (mut free, mut level, mut at) = (None, self, 0);
        loop {
            for part in &level.parts {
                match part.load(Ordering::Acquire) {
                    0 => free = free.or(Some((part, at))),
                    noted => {
                        let (start, bytes) = ((noted >> 32) as usize, noted as u32 as usize);
                        let apart = first + length <= start || start + bytes <= first;
                        assert!(apart, "bytes {first}+{length} of a buffer overlap the lent bytes {start}+{bytes}");
                    }
                }
                at += 1;
            }
            match (level.more.get(), free) {
                (Some(more), _) => level = more,
                (None, Some((part, at))) => {
                    part.store((first as u64) << 32 | length as u64, Ordering::Relaxed);
                    return at;
                }
                (None, None) => level = level.more.get_or_init(Box::default),
            }
        }
    }

    /// Removes the record with the index `at`, because the part is given back.
    fn remove(&self, mut at: usize) {
        let mut level = self;
        while let (true, Some(more)) = (at >= LENT, level.more.get()) {
            (level, at) = (more, at - LENT);
        }
        level.parts[at].store(0, Ordering::Release);
    }

    fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.load(Ordering::Acquire) == 0)
            && self.more.get().is_none_or(|more| more.is_empty())
    }
}

/// Owned memory of a size class.
struct Block {
    start: NonNull<u8>,
    class: u8,
    /// The mapping that contains the block, unless it comes from the allocator.
    map: Option<MmapMut>,
    lent: Lent,
    /// Views that contain bytes of a buffer that is only sent. Each view has the index of its first
    /// byte in the buffer. Sorted by this index.
    elsewhere: Mutex<Vec<(usize, View)>>,
}

// SAFETY: a block is the only owner of plain memory.
unsafe impl Send for Block {}
// SAFETY: a block gives no access to its memory. A buffer gives access only through
// its own borrow, while no part is lent. A segment gives access only to its part.
unsafe impl Sync for Block {}

fn layout(class: u8) -> Layout {
    // SAFETY: the alignment is a power of two, and the size is a multiple of it
    // and far below overflow.
    unsafe { Layout::from_size_align_unchecked(ALIGNMENT << class, ALIGNMENT) }
}

impl Block {
    /// Returns `None` if there is no memory.
    fn new(class: u8) -> Option<Self> {
        if class > ALLOCATED_CLASS_MAX {
            return Self::mapped(class);
        }
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout(class)) };
        NonNull::new(start).map(|start| Self::at(start, class, None))
    }

    fn mapped(class: u8) -> Option<Self> {
        let mut map = MmapOptions::new().len(layout(class).size()).no_reserve_swap().map_anon().ok()?;
        // Memory must be allocated page by page, not in huge pages. An error is harmless, because
        // it means that the system has no huge pages.
        let _ = map.advise(Advice::NoHugePage);
        NonNull::new(map.as_mut_ptr()).map(|start| Self::at(start, class, Some(map)))
    }

    fn at(start: NonNull<u8>, class: u8, map: Option<MmapMut>) -> Self {
        Self { start, class, map, lent: Lent::default(), elsewhere: Mutex::default() }
    }

    fn elsewhere(&self) -> MutexGuard<'_, Vec<(usize, View)>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> usize {
        layout(self.class).size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.map.is_none() {
            // SAFETY: the memory was allocated with this layout and is owned.
            unsafe { dealloc(self.start.as_ptr(), layout(self.class)) };
        }
    }
}

struct FreeBlocks {
    classes: [Vec<Arc<Block>>; CLASSES],
    bytes: usize,
    bytes_max: usize,
}

impl Default for FreeBlocks {
    fn default() -> Self {
        Self { classes: Default::default(), bytes: 0, bytes_max: KEPT_BYTES_MAX }
    }
}

/// A pool of buffers. A clone is another handle to the same pool.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<FreeBlocks>>);

/// Returns the class of a buffer of `length` bytes.
fn class_of(length: usize) -> u8 {
    length.div_ceil(ALIGNMENT).max(1).next_power_of_two().trailing_zeros() as u8
}

impl Pool {
    /// Creates a pool that keeps at most a quarter of `budget_bytes` for reuse.
    #[must_use]
    pub fn within(budget_bytes: u64) -> Self {
        let bytes_max = usize::try_from(budget_bytes / 4).map_or(KEPT_BYTES_MAX, |bytes| bytes.min(KEPT_BYTES_MAX));
        Self(Arc::new(Mutex::new(FreeBlocks { bytes_max, ..FreeBlocks::default() })))
    }

    /// Returns the memory of a full buffer of `length` bytes, in bytes.
    #[must_use]
    pub fn bytes_taken(length: usize) -> usize {
        let class = class_of(length);
        if class > ALLOCATED_CLASS_MAX { length.next_multiple_of(ALIGNMENT) } else { ALIGNMENT << class }
    }

    /// Returns a buffer of `length` bytes. It contains the bytes of its last user. The program ends
    /// if there is no memory for the buffer.
    #[must_use]
    pub fn buffer(&self, length: usize) -> Buffer {
        self.try_buffer(length).unwrap_or_else(|| handle_alloc_error(layout(class_of(length).min(CLASSES as u8))))
    }

    /// Returns a buffer like [`Pool::buffer`], or `None` if there is no memory for the buffer.
    #[must_use]
    pub fn try_buffer(&self, length: usize) -> Option<Buffer> {
        let class = class_of(length);
        if usize::from(class) >= CLASSES {
            return None;
        }
        let kept = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let block = kept.classes[usize::from(class)].pop();
            kept.bytes -= block.as_ref().map_or(0, |block| block.bytes());
            block
        };
        let block = kept.or_else(|| Block::new(class).map(Arc::new))?;
        Some(Buffer { block: Some(block), pool: self.clone(), first: 0, length, to_send: false })
    }

    fn keep(&self, block: Arc<Block>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + block.bytes() <= kept.bytes_max {
            kept.bytes += block.bytes();
            kept.classes[usize::from(block.class)].push(block);
        }
    }
}

/// A buffer at a fixed address in memory, and the window of bytes that is in use.
pub struct Buffer {
    /// `Some` until the buffer is dropped.
    block: Option<Arc<Block>>,
    pool: Pool,
    first: usize,
    length: usize,
    /// Whether the buffer is only sent, so that its bytes may be in other memory.
    to_send: bool,
}

impl Buffer {
    /// Marks the buffer as only sent. Its bytes may then be in other memory: see
    /// [`Segment::stands_for`]. After this call, do not access the buffer's bytes.
    #[must_use]
    pub fn only_to_send(mut self) -> Self {
        self.to_send = true;
        self
    }

    /// Narrows the window to `length` bytes, starting at byte `first` of the window.
    ///
    /// # Panics
    /// If the window does not contain all these bytes.
    pub fn narrow(&mut self, first: usize, length: usize) {
        assert!(first + length <= self.length, "a window can become smaller, but cannot move");
        self.first += first;
        self.length = length;
    }

    /// Returns the number of bytes in the window.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the window is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Lends `length` bytes starting at byte `first` of the window. The buffer's bytes cannot be
    /// accessed until the segment is dropped.
    ///
    /// # Panics
    /// If the bytes are not all in the window, or some of them are lent already.
    #[must_use]
    pub fn lend(&mut self, first: usize, length: usize) -> Segment {
        assert!(first <= self.length && length <= self.length - first, "a segment is within its buffer");
        let block = self.block.clone();
        let first = self.first + first;
        // An empty part cannot overlap another part.
        let noted = block.as_ref().filter(|_| length > 0).map(|block| block.lent.add(first, length));
        if let Some(block) = block.as_ref().filter(|_| self.to_send) {
            // The part gets new bytes, so views of its old bytes no longer count.
            block.elsewhere().retain(|&(other, ref view)| other + view.len() <= first || first + length <= other);
        }
        Segment { block, noted, first, length, to_send: self.to_send }
    }

    /// Converts the buffer into memory that the kernel may write to, but that the program cannot
    /// read.
    ///
    /// # Panics
    /// If a part of the buffer is lent.
    #[must_use]
    pub fn into_scratch(mut self) -> Scratch {
        let _ = self.start();
        Scratch { first: self.first, length: self.length, block: self.block.take() }
    }

    /// Calls `each` with the address and the length of each part of the bytes, in order.
    ///
    /// # Panics
    /// If a part of the buffer is lent.
    pub(crate) fn places(&self, mut each: impl FnMut(*const u8, usize)) {
        let (mapping, end) = (self.own_start().wrapping_sub(self.first), self.first + self.length);
        let mut at = self.first;
        if let Some(block) = self.block.as_ref().filter(|_| self.to_send) {
            for (first, view) in block.elsewhere().iter() {
                let (from, to) = ((*first).max(at), (first + view.len()).min(end));
                if from < to {
                    each(mapping.wrapping_add(at), from - at);
                    each(view.start().wrapping_add(from - first), to - from);
                    at = to;
                }
            }
        }
        each(mapping.wrapping_add(at), end - at);
    }

    /// Records that the kernel has read the bytes before `at`. If `at` lies within a page of other
    /// memory, copies the rest of that page now, so that all bytes of the page are from the same
    /// time.
    pub(crate) fn keep_page(&mut self, at: usize) {
        let Some(block) = self.block.as_ref().filter(|_| self.to_send) else { return };
        let (mapping, at) = (self.own_start().wrapping_sub(self.first), self.first + at);
        let mut elsewhere = block.elsewhere();
        // The last view that begins at or before `at`.
        let Some(place) = elsewhere.partition_point(|&(first, _)| first <= at).checked_sub(1) else { return };
        let (first, view) = elsewhere[place].clone();
        let (sent, kept) = (at - first, view.rest_of_page(at - first));
        // SAFETY: the slice lies in the block, which is initialised. No part is lent, and the
        // buffer is borrowed mutably.
        let rest = unsafe { std::slice::from_raw_parts_mut(mapping.wrapping_add(at), kept) };
        // If the bytes no longer exist, the kernel cannot send them either.
        if kept > 0 && view.copy(sent, rest) {
            let (before, behind) = (view.part(0..sent), view.part(sent + kept..view.len()));
            elsewhere.splice(place..=place, [(first, before), (at + kept, behind)]);
        }
    }

    /// Returns the address of the window.
    ///
    /// # Panics
    /// If a part of the buffer is lent.
    #[inline]
    fn own_start(&self) -> *mut u8 {
        let Some(block) = &self.block else { return NonNull::dangling().as_ptr() };
        assert!(block.lent.is_empty(), "nobody reads a buffer while a part of it is lent");
        block.start.as_ptr().wrapping_add(self.first)
    }

    #[inline]
    pub(crate) fn has_parts_elsewhere(&self) -> bool {
        self.to_send && self.block.as_ref().is_some_and(|block| !block.elsewhere().is_empty())
    }

    /// Returns the address of the window, like [`Buffer::own_start`], for a buffer that contains
    /// all its bytes itself.
    ///
    /// # Panics
    /// If some bytes are in other memory.
    #[inline]
    fn start(&self) -> *mut u8 {
        assert!(!self.has_parts_elsewhere(), "a read needs a buffer that holds all its bytes");
        self.own_start()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A block with lent parts is freed by its last segment.
        if let Some(block) = self.block.take().filter(|block| block.lent.is_empty()) {
            if self.to_send {
                block.elsewhere().clear();
            }
            self.pool.keep(block);
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the window lies in the block, which is initialised and lives as long
        // as the buffer. No part is lent, and none can be lent before the borrow ends.
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

/// A lent part of a buffer. Its owner may read and write it, or let the kernel
/// do so. Dropping it gives the part back.
pub struct Segment {
    block: Option<Arc<Block>>,
    /// Index of the record that the part is lent.
    noted: Option<usize>,
    first: usize,
    length: usize,
    to_send: bool,
}

impl Segment {
    /// Removes the first `bytes` bytes from the segment, or all of them.
    pub fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.length);
        (self.first, self.length) = (self.first + bytes, self.length - bytes);
    }

    /// Uses the bytes of `view` for this segment from now on, if the buffer is only sent. Otherwise
    /// returns false. The owner of the segment must then fill the segment.
    ///
    /// # Panics
    /// If the view has another length.
    pub fn stands_for(&mut self, view: impl FnOnce() -> Option<View>) -> bool {
        let Some(block) = self.block.as_ref().filter(|_| self.to_send && self.length > 0) else { return false };
        let Some(view) = view() else { return false };
        assert_eq!(view.len(), self.length, "the number of bytes elsewhere is the requested number");
        let mut elsewhere = block.elsewhere();
        let place = elsewhere.partition_point(|&(first, _)| first < self.first);
        elsewhere.insert(place, (self.first, view));
        true
    }

    pub(crate) fn start(&self) -> *mut u8 {
        let block = self.block.as_ref().map_or(NonNull::dangling(), |block| block.start);
        block.as_ptr().wrapping_add(self.first)
    }
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the part lies in the block, which is initialised and which the segment keeps
        // alive. No other code can access this part: no other segment overlaps it, and its buffer
        // gives no access.
        unsafe { std::slice::from_raw_parts(self.start(), self.length) }
    }
}

impl DerefMut for Segment {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the segment is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.length) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if let (Some(block), Some(noted)) = (&self.block, self.noted) {
            block.lent.remove(noted);
        }
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment of {} bytes", self.length)
    }
}

/// Memory that the kernel may write to, also in several calls at the same time, and that the
/// program cannot read. A clone is another handle to the same memory.
#[derive(Clone)]
pub struct Scratch {
    block: Option<Arc<Block>>,
    first: usize,
    length: usize,
}

impl Scratch {
    /// Returns the address of `length` bytes that start at byte `first`.
    ///
    /// # Panics
    /// If the memory does not contain all of them.
    pub(crate) fn place(&self, first: usize, length: usize) -> *mut u8 {
        assert!(first <= self.length && length <= self.length - first, "a position is within its memory");
        let block = self.block.as_ref().map_or(NonNull::dangling(), |block| block.start);
        block.as_ptr().wrapping_add(self.first + first)
    }
}

/// Bytes that this program and the kernel only read. A thread that shares the bytes with other
/// threads has its own outer `Arc`, so that threads do not compete for one counter.
pub type Shared = Arc<Arc<Buffer>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_have_the_requested_length() {
        let pool = Pool::default();
        for length in [0, 1, 512, 4096, 4097, 1 << 20] {
            let mut buffer = pool.buffer(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            buffer.fill(1);
        }
    }

    #[test]
    fn buffers_are_reused_and_the_pool_stays_small() {
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
        // Other tests in this process also take memory.
        let taken_kib = resident_kib().saturating_sub(before);
        assert!(taken_kib < 512 << 10, "{taken_kib} KiB for 64,000 bytes in 2 GiB");
        assert_eq!(Pool::bytes_taken(1), 4096);
        assert_eq!(Pool::bytes_taken(9000), 16_384);
        assert_eq!(Pool::bytes_taken(33_000), 36_864);
    }

    #[test]
    fn narrowed_buffer_shows_only_its_window() {
        let mut buffer = Pool::default().buffer(16);
        buffer.copy_from_slice(b"0123456789abcdef");
        buffer.narrow(4, 8);
        assert_eq!(&*buffer, b"456789ab");
        buffer.narrow(1, 2);
        assert_eq!(&*buffer, b"56");
    }

    #[test]
    fn segments_read_and_write_their_part_of_the_buffer() {
        let mut buffer = Pool::default().buffer(16);
        buffer.copy_from_slice(b"0123456789abcdef");
        let (mut first, mut last) = (buffer.lend(0, 8), buffer.lend(12, 4));
        assert_eq!((&*first, &*last), (&b"01234567"[..], &b"cdef"[..]));
        first.skip(6);
        first.fill(b'x');
        last.fill(b'y');
        drop((first, last));
        assert_eq!(&*buffer, b"012345xx89abyyyy");
    }

    #[test]
    #[should_panic(expected = "overlap the lent bytes")]
    fn overlapping_lend_panics() {
        let mut buffer = Pool::default().buffer(1024);
        let _first = buffer.lend(0, 513);
        let _second = buffer.lend(512, 512);
    }

    #[test]
    #[should_panic(expected = "nobody reads a buffer while a part of it is lent")]
    fn reading_a_buffer_with_a_lent_part_panics() {
        let mut buffer = Pool::default().buffer(1024);
        let _lent = buffer.lend(0, 1);
        let _ = buffer[1023];
    }

    #[test]
    fn buffer_can_lend_100_parts_at_once() {
        let pool = Pool::default();
        let mut buffer = pool.buffer(100 * 512);
        let mut segments: Vec<_> = (0..100).map(|part| buffer.lend(part * 512, 512)).collect();
        // Parts that were given back can be lent again, in any order.
        for part in [99, 3, 50, 0] {
            segments[part] = Pool::default().buffer(0).lend(0, 0);
            segments[part] = buffer.lend(part * 512, 512);
        }
        drop(segments);
        assert_eq!(buffer.len(), buffer.iter().count());
    }

    #[test]
    fn lent_memory_outlives_its_buffer() {
        let pool = Pool::default();
        let mut buffer = pool.buffer(4096);
        let mut segment = buffer.lend(0, 4096);
        drop(buffer);
        let mut other = pool.buffer(4096);
        other.fill(1);
        segment.fill(2);
        assert!(other.iter().all(|&byte| byte == 1));
    }
}
