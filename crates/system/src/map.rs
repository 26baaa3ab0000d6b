//! Memory that is mapped: a [`ZeroedMap`] reads as zeroes where nothing was written, and takes room only where
//! something was; a [`FileMap`] is a file in memory. Of both a [`View`] can be given to the kernel, to read what stands
//! there without a copy of it.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, OnceLock};

use memmap2::{Advice, MmapOptions, MmapRaw};

/// What is zeroed page by page rather than byte by byte is at least so long. Of a view, what is read of one page is of
/// one moment.
const PAGE_BYTES: usize = 4096;
/// Pages that the system is asked about at once.
const PAGES_MAX: usize = 256;

/// Memory of its own; see the module page.
pub struct ZeroedMap(Arc<MmapRaw>);

impl ZeroedMap {
    /// So many bytes, all zeroes.
    ///
    /// # Errors
    /// If there is no room for them in the address space.
    pub fn new(length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
        Ok(Self(Arc::new(map.into())))
    }

    /// These bytes for the kernel: it reads what stands there when it does, which may change meanwhile. `None` where the
    /// system lets no view be read.
    ///
    /// # Panics
    /// If they are not all in it.
    #[must_use]
    pub fn view(&self, bytes: Range<usize>) -> Option<View> {
        can_read_views().then(|| View::new(&self.0, bytes))
    }

    /// Faster to read and write, and slower to touch first: the kernel may make room for a huge page for milliseconds.
    pub fn prefer_huge_pages(&self) {
        // Where there are none, small pages do.
        let _ = self.0.advise(Advice::HugePage);
    }

    /// These bytes read as zeroes from now on; whole pages take no memory any more.
    ///
    /// # Panics
    /// If they are not all in it.
    pub fn zero(&mut self, Range { start, end }: Range<usize>) {
        assert!(start <= end && end <= self.0.len(), "zeroes lie in their map");
        let (first, last) = (start.next_multiple_of(PAGE_BYTES), end / PAGE_BYTES * PAGE_BYTES);
        // SAFETY: the map is private and anonymous, borrowed mutably, and the range lies in it: the pages read as
        // zeroes afterwards.
        let dropped = first < last
            && unsafe { libc::madvise(self.0.as_mut_ptr().add(first).cast(), last - first, libc::MADV_DONTNEED) } == 0;
        if dropped {
            self[start..first].fill(0);
            self[last..end].fill(0);
        } else {
            self[start..end].fill(0);
        }
    }
}

impl Deref for ZeroedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the map is so long, and only its one owner writes to it. Views of it are the kernel's to read.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }
}

impl DerefMut for ZeroedMap {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and its owner is borrowed mutably. The kernel may read meanwhile: what it finds is
        // nothing that this program sees.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr(), self.0.len()) }
    }
}

/// A file in memory (of tmpfs), to be read by the kernel alone: whoever makes the file shorter takes pages from under it.
pub struct FileMap(Arc<MmapRaw>);

impl FileMap {
    /// The first `length` bytes of `file`.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn new(file: &File, length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self(Arc::new(MmapOptions::new().len(length).map_raw_read_only(file)?)))
    }

    /// These bytes for the kernel, as [`ZeroedMap::view`] has them; `None` if some of them are not in memory, as a hole
    /// that would be filled by looking at it, or lie behind what is mapped.
    #[must_use]
    pub fn view(&self, bytes: Range<usize>) -> Option<View> {
        let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        let is_there = bytes.end <= self.0.len() && can_read_views() && self.has_pages(pages);
        is_there.then(|| View::new(&self.0, bytes))
    }

    /// Whether all of these pages, which lie in it, are in memory.
    fn has_pages(&self, mut pages: Range<usize>) -> bool {
        let mut residency = [0_u8; PAGES_MAX];
        while !pages.is_empty() {
            let count = pages.len().min(PAGES_MAX);
            // SAFETY: the pages are mapped, and there is room to be told of so many. Nothing is written but that.
            let failed = unsafe {
                let start = self.0.as_mut_ptr().add(pages.start * PAGE_BYTES);
                libc::mincore(start.cast(), count * PAGE_BYTES, residency.as_mut_ptr())
            };
            if failed != 0 || residency[..count].iter().any(|page| page & 1 == 0) {
                return false;
            }
            pages.start += count;
        }
        true
    }
}

/// Copies `into.len()` bytes of this process from `start` on, whatever happens to them meanwhile. Whether they are there.
///
/// The kernel does that: to read memory that others may write to is nothing that the language has.
fn copy(start: *const u8, into: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: start.cast_mut().cast(), iov_len: into.len() };
    // SAFETY: what is written to is borrowed mutably; what is read is looked at by the kernel, which says if it is not
    // there.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied) == Ok(into.len())
}

/// Whether the system lets a process copy its own memory so: some do not.
fn can_read_views() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| copy([1_u8].as_ptr(), &mut [0]))
}

/// A part of mapped memory for the kernel to read; it stays mapped as long. Nobody else looks at it: it may change at any
/// moment.
#[derive(Clone)]
pub struct View {
    map: Arc<MmapRaw>,
    first: usize,
    length: usize,
}

impl View {
    fn new(map: &Arc<MmapRaw>, Range { start, end }: Range<usize>) -> Self {
        assert!(start <= end && end <= map.len(), "a view lies in its map");
        Self { map: Arc::clone(map), first: start, length: end - start }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn start(&self) -> *const u8 {
        self.map.as_ptr().wrapping_add(self.first)
    }

    /// These bytes of it.
    pub(crate) fn part(&self, Range { start, end }: Range<usize>) -> Self {
        assert!(start <= end && end <= self.length, "a part lies in its view");
        Self { map: Arc::clone(&self.map), first: self.first + start, length: end - start }
    }

    /// How many bytes from its byte `at` on are of the page that the byte before is of; none behind its end.
    pub(crate) fn rest_of_page(&self, at: usize) -> usize {
        let place = self.first + at;
        (place.next_multiple_of(PAGE_BYTES) - place).min(self.length.saturating_sub(at))
    }

    /// Copies what stands there now, from byte `at` on. Whether it is there.
    pub(crate) fn copy(&self, at: usize, into: &mut [u8]) -> bool {
        assert!(at <= self.length && into.len() <= self.length - at, "what is copied lies in its view");
        copy(self.start().wrapping_add(at), into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_given_range_is_zeroed() {
        for range in [0..0, 10..20, 4096..8192, 100..9000, 4095..12_289, 0..20_000] {
            let mut map = ZeroedMap::new(20_000).unwrap();
            map.fill(1);
            map.zero(range.clone());
            assert!(map.iter().enumerate().all(|(at, &byte)| (byte == 0) == range.contains(&at)), "{range:?}");
        }
    }

    #[test]
    fn only_what_is_in_memory_is_viewed_and_holes_stay() {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else {
            println!("skipped: there is no tmpfs at /dev/shm");
            return;
        };
        file.set_len(3 << 20).unwrap();
        file.write_all_at(&vec![1; 1 << 20], 1 << 20).unwrap();
        let blocks = file.metadata().unwrap().blocks();
        let map = FileMap::new(&file, 3 << 20).unwrap();
        assert_eq!(map.view(1 << 20..2 << 20).map(|view| view.len()), Some(1 << 20));
        for bytes in [(1 << 20) - 1..2 << 20, 1 << 20..(2 << 20) + 1, 0..1, (2 << 20) + 5000..3 << 20] {
            assert!(map.view(bytes).is_none());
        }
        assert!(map.view((3 << 20) - 1..(3 << 20) + 1).is_none(), "it ends there");
        assert_eq!(file.metadata().unwrap().blocks(), blocks);
    }
}
