//! Memory that reads as zeroes where nothing was written, and takes room only where something was.

use std::io;
use std::ops::{Deref, DerefMut, Range};

use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};

/// What is zeroed page by page rather than byte by byte is at least so long.
const PAGE_BYTES: usize = 4096;

/// See the module page.
pub struct ZeroedMap(MmapMut);

impl ZeroedMap {
    /// So many bytes, all zeroes.
    ///
    /// # Errors
    /// If there is no room for them in the address space.
    pub fn new(length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
        Ok(Self(map))
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
            && unsafe { self.0.unchecked_advise_range(UncheckedAdvice::DontNeed, first, last - first) }.is_ok();
        if dropped {
            self.0[start..first].fill(0);
            self.0[last..end].fill(0);
        } else {
            self.0[start..end].fill(0);
        }
    }
}

impl Deref for ZeroedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for ZeroedMap {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_zeroed_is_that_and_nothing_else() {
        for range in [0..0, 10..20, 4096..8192, 100..9000, 4095..12_289, 0..20_000] {
            let mut map = ZeroedMap::new(20_000).unwrap();
            map.fill(1);
            map.zero(range.clone());
            assert!(map.iter().enumerate().all(|(at, &byte)| (byte == 0) == range.contains(&at)), "{range:?}");
        }
    }
}
