//! Mapped memory.
//!
//! In a [`ZeroedMap`], pages that were never written contain zeros and take no memory. A
//! [`FileMap`] is a file in memory. Both offer a [`View`] of their bytes to the kernel, which reads
//! the bytes without a copy.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, OnceLock};

use memmap2::{Advice, MmapOptions, MmapRaw};

/// Largest number of pages in one query of residency.
const PAGES_MAX: usize = 256;

/// Returns the size of the kernel's pages, bytes. The kernel can zero whole pages without writing
/// each byte. All bytes that are read from one page of a view are from the same time.
///
/// x86-64 has pages of 4 KiB. A kernel for ARM may have pages of 4, 16 or 64 KiB.
fn page_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        // SAFETY: the call only returns a number.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        // The largest page size is a multiple of every page size, so it is always safe.
        usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(65_536)
    })
}

/// Returns the whole pages within a range of bytes, as a range of bytes. Empty if there are none.
fn whole_pages(bytes: &Range<usize>, page_bytes: usize) -> Range<usize> {
    bytes.start.next_multiple_of(page_bytes)..bytes.end / page_bytes * page_bytes
}

/// Private memory that initially contains zeros. See the module documentation.
pub struct ZeroedMap(Arc<MmapRaw>);

impl ZeroedMap {
    /// Creates a map of `length` zero bytes.
    ///
    /// # Errors
    /// If the address space has no room for the map.
    pub fn new(length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
        Ok(Self(Arc::new(map.into())))
    }

    /// Returns a view of these bytes for the kernel. The kernel reads the contents at the time of
    /// its read, which may differ from the present contents. Returns `None` if the system cannot
    /// read views.
    ///
    /// # Panics
    /// If the map does not contain all these bytes.
    #[must_use]
    pub fn view(&self, bytes: Range<usize>) -> Option<View> {
        can_read_views().then(|| View::new(&self.0, bytes))
    }

    /// Makes later accesses faster, but first accesses slower: the kernel may need milliseconds to
    /// make room for a huge page.
    pub fn prefer_huge_pages(&self) {
        // If the system has no huge pages, it uses small pages.
        let _ = self.0.advise(Advice::HugePage);
    }

    /// Fills these bytes with zeros. Whole pages in the range then take no memory.
    ///
    /// # Panics
    /// If the map does not contain all these bytes.
    pub fn zero(&mut self, bytes: Range<usize>) {
        self.zero_in_pages(bytes, page_bytes());
    }

    /// Does the same as [`zero`](Self::zero). `page_bytes` must be a multiple of the kernel's page
    /// size. The kernel refuses ranges that start within a page, and rounds lengths up to whole
    /// pages.
    fn zero_in_pages(&mut self, bytes: Range<usize>, page_bytes: usize) {
        let Range { start: first, end: last } = whole_pages(&bytes, page_bytes);
        let Range { start, end } = bytes;
        assert!(start <= end && end <= self.0.len(), "the zeroes are within their map");
        // SAFETY: the map is private and anonymous, borrowed mutably, and contains the range. Its
        // pages contain zeros afterwards.
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
        // SAFETY: the map has this length, and only its one owner writes to it. Only the kernel
        // reads views of the map.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }
}

impl DerefMut for ZeroedMap {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the owner of the map is borrowed mutably. The kernel may read
        // meanwhile, but the program does not see the result.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr(), self.0.len()) }
    }
}

/// A file in memory (of tmpfs) that only the kernel reads. A process that
/// truncates the file removes pages of the map.
pub struct FileMap(Arc<MmapRaw>);

impl FileMap {
    /// Maps the first `length` bytes of `file`.
    ///
    /// # Errors
    /// If the file cannot be mapped.
    pub fn new(file: &File, length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self(Arc::new(MmapOptions::new().len(length).map_raw_read_only(file)?)))
    }

    /// Returns a view of these bytes for the kernel, like [`ZeroedMap::view`]. Returns `None` if
    /// some of the bytes are beyond the end of the map or not in memory. A hole of the file is not
    /// in memory, and reading the hole would fill it.
    #[must_use]
    pub fn view(&self, bytes: Range<usize>) -> Option<View> {
        let pages = bytes.start / page_bytes()..bytes.end.div_ceil(page_bytes());
        let is_there = bytes.end <= self.0.len() && can_read_views() && self.has_pages(pages);
        is_there.then(|| View::new(&self.0, bytes))
    }

    /// Returns whether all of these pages of the map are in memory.
    fn has_pages(&self, mut pages: Range<usize>) -> bool {
        let mut residency = [0_u8; PAGES_MAX];
        while !pages.is_empty() {
            let count = pages.len().min(PAGES_MAX);
            // SAFETY: the pages are mapped, and `residency` has an element for each of them. The
            // call writes nothing else.
            let failed = unsafe {
                let start = self.0.as_mut_ptr().add(pages.start * page_bytes());
                libc::mincore(start.cast(), count * page_bytes(), residency.as_mut_ptr())
            };
            if failed != 0 || residency[..count].iter().any(|page| page & 1 == 0) {
                return false;
            }
            pages.start += count;
        }
        true
    }
}

/// Copies `into.len()` bytes of this process from the address `start`, even if other processes
/// change the bytes at the same time. Returns whether the bytes exist.
///
/// The kernel makes the copy, because Rust has no defined read of memory that other processes may
/// write to.
fn copy(start: *const u8, into: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: start.cast_mut().cast(), iov_len: into.len() };
    // SAFETY: the destination is borrowed mutably. The kernel checks the source,
    // and reports an error if it does not exist.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied) == Ok(into.len())
}

/// Returns whether the system lets a process copy its own memory with `process_vm_readv`.
fn can_read_views() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| copy([1_u8].as_ptr(), &mut [0]))
}

/// A part of mapped memory that the kernel can read. The memory stays mapped as long as the view
/// exists. The program does not access the memory, because it may change at any time.
#[derive(Clone)]
pub struct View {
    map: Arc<MmapRaw>,
    first: usize,
    length: usize,
}

impl View {
    fn new(map: &Arc<MmapRaw>, Range { start, end }: Range<usize>) -> Self {
        assert!(start <= end && end <= map.len(), "a view is within its map");
        Self { map: Arc::clone(map), first: start, length: end - start }
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn start(&self) -> *const u8 {
        self.map.as_ptr().wrapping_add(self.first)
    }

    /// Returns a view of these bytes of the view.
    pub(crate) fn part(&self, Range { start, end }: Range<usize>) -> Self {
        assert!(start <= end && end <= self.length, "a part is within its view");
        Self { map: Arc::clone(&self.map), first: self.first + start, length: end - start }
    }

    /// Returns the number of bytes from byte `at` to the end of its page, or to the end of the view
    /// if that is nearer. Returns 0 if a page begins at `at`.
    pub(crate) fn rest_of_page(&self, at: usize) -> usize {
        let place = self.first + at;
        (place.next_multiple_of(page_bytes()) - place).min(self.length.saturating_sub(at))
    }

    /// Copies the present contents, starting at byte `at`. Returns whether the bytes exist.
    pub(crate) fn copy(&self, at: usize, into: &mut [u8]) -> bool {
        assert!(at <= self.length && into.len() <= self.length - at, "the copied bytes are within their view");
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
    fn only_the_given_range_is_zeroed_with_any_page_size() {
        let real = page_bytes();
        for pages in [1, 4, 16] {
            let page = pages * real;
            for range in [0..page, 100..3 * page + 1, page - 1..2 * page - 1, real..page + real, 2 * page..4 * page] {
                let mut map = ZeroedMap::new(4 * page as u64).unwrap();
                map.fill(1);
                map.zero_in_pages(range.clone(), page);
                assert!(map.iter().enumerate().all(|(at, &byte)| (byte == 0) == range.contains(&at)), "{range:?}");
            }
        }
    }

    #[test]
    fn whole_pages_are_aligned_to_the_page_size() {
        assert_eq!(whole_pages(&(4096..20_480), 4096), 4096..20_480);
        assert_eq!(whole_pages(&(4096..40_960), 16_384), 16_384..32_768);
        assert_eq!(whole_pages(&(1..196_607), 65_536), 65_536..131_072);
        assert!(whole_pages(&(4096..8192), 65_536).is_empty(), "no whole page of 64 KiB lies in 4 KiB");
    }

    #[test]
    fn view_covers_only_data_and_keeps_holes() {
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
        assert!(map.view((3 << 20) - 1..(3 << 20) + 1).is_none(), "the file ends there");
        assert_eq!(file.metadata().unwrap().blocks(), blocks);
    }
}
