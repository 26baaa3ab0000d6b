//! The guest memory that a frontend shares, and copies from and to this memory. The guest can
//! change its memory during a copy. The copy may then contain a mix of old and new bytes, but no
//! other bytes.

use std::fs::File;
use std::io;

use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

/// Error: a range is not in the guest's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the range {address:#x}+{bytes} is not in the memory of the guest")]
pub(crate) struct Outside {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// A range of guest addresses. The guest may have no memory at these addresses. The range does not
/// wrap around at the last address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
}

/// A part of a guest's memory in the frontend's address space. Frontends use addresses of this
/// space for the rings.
struct Place {
    user: u64,
    guest: u64,
    bytes: u64,
}

/// Maps a range of a frontend's file. An access after the end of the file would end this process.
///
/// # Errors
/// The range is not in the file, or the system does not map it.
pub(super) fn map_file(file: File, offset: u64, bytes: usize) -> io::Result<MmapRegion> {
    let about = file.metadata()?;
    // The file of a memory device has no length, so it is not checked.
    if about.is_file() && offset.checked_add(bytes as u64).is_none_or(|end| end > about.len()) {
        let why = format!("{bytes} bytes at offset {offset} are beyond the end of a file of {}", about.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    MmapRegion::from_file(FileOffset::new(file, offset), bytes).map_err(io::Error::other)
}

/// A guest's mapped memory.
pub(crate) struct Memory {
    pub(crate) guest: GuestMemoryMmap,
    places: Vec<Place>,
}

impl Memory {
    /// Maps the regions of a frontend, each from its file.
    ///
    /// # Errors
    /// The system does not map a region, a region is longer than its file, or two regions overlap.
    pub(crate) fn map(regions: &[VhostUserMemoryRegion], files: Vec<File>) -> io::Result<Self> {
        let (mut mapped, mut places) = (Vec::new(), Vec::new());
        for (region, file) in regions.iter().zip(files) {
            let &VhostUserMemoryRegion { guest_phys_addr: guest, memory_size: bytes, user_addr: user, mmap_offset } =
                region;
            let length = usize::try_from(bytes).map_err(io::Error::other)?;
            let map = map_file(file, mmap_offset, length)?;
            let region = GuestRegionMmap::new(map, GuestAddress(guest));
            mapped.push(region.ok_or_else(|| io::Error::other("a region of memory goes beyond the last address"))?);
            places.push(Place { user, guest, bytes });
        }
        mapped.sort_by_key(vm_memory::GuestMemoryRegion::start_addr);
        Ok(Self { guest: GuestMemoryMmap::from_regions(mapped).map_err(io::Error::other)?, places })
    }

    /// Converts an address of the frontend to a guest address.
    pub(crate) fn guest_address(&self, user: u64) -> Option<u64> {
        let inside = |place: &&Place| user >= place.user && user - place.user < place.bytes;
        self.places.iter().find(inside).map(|place| place.guest + (user - place.user))
    }

    /// Copies bytes from the guest's memory.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Outside> {
        let bytes = into.len() as u64;
        let at = GuestAddress(address);
        match self.guest.get_slice(at, into.len()) {
            Ok(slice) => _ = slice.copy_to(into),
            // The range may continue in the next region. This copy can cross regions.
            Err(_) => self.guest.read_slice(into, at).map_err(|_| Outside { address, bytes })?,
        }
        Ok(())
    }

    /// Copies bytes to the guest's memory.
    pub(crate) fn write(&self, address: u64, data: &[u8]) -> Result<(), Outside> {
        let bytes = data.len() as u64;
        let at = GuestAddress(address);
        match self.guest.get_slice(at, data.len()) {
            Ok(slice) => slice.copy_from(data),
            Err(_) => self.guest.write_slice(data, at).map_err(|_| Outside { address, bytes })?,
        }
        Ok(())
    }

    /// Copies from the concatenation of `spans`, starting at byte `at`. If `into` is longer than
    /// the rest of the spans, its last bytes do not change.
    pub(crate) fn gather(&self, spans: &[Span], at: u64, mut into: &mut [u8]) -> Result<(), Outside> {
        for (address, bytes) in from(spans, at) {
            let here = bytes.min(into.len() as u64) as usize;
            let (part, rest) = std::mem::take(&mut into).split_at_mut(here);
            self.read(address, part)?;
            into = rest;
            if into.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Copies to the concatenation of `spans`, starting at byte `at`. Ignores data after the end of
    /// the spans.
    pub(crate) fn scatter(&self, spans: &[Span], at: u64, mut data: &[u8]) -> Result<(), Outside> {
        for (address, bytes) in from(spans, at) {
            let (part, rest) = data.split_at(bytes.min(data.len() as u64) as usize);
            self.write(address, part)?;
            data = rest;
            if data.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the addresses and lengths of the concatenation of `spans`, starting at byte `at`.
fn from(spans: &[Span], at: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut skip = at;
    spans.iter().filter_map(move |span| {
        let (bytes, skipped) = (u64::from(span.bytes), skip.min(span.bytes.into()));
        skip -= skipped;
        (skipped < bytes).then_some((span.address + skipped, bytes - skipped))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Address of the memory in the frontend's address space.
    pub(crate) const USER: u64 = 1 << 40;

    /// Creates guest memory from address 0, for a test.
    pub(crate) fn memory(bytes: usize) -> Memory {
        let guest = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), bytes)]).unwrap();
        Memory { guest, places: vec![Place { user: USER, guest: 0, bytes: bytes as u64 }] }
    }

    #[test]
    fn spans_are_read_and_written_as_one_range() {
        let memory = memory(4096);
        let spans = [(100, 3), (50, 0), (200, 2), (10, 5)].map(|(address, bytes)| Span { address, bytes });
        memory.scatter(&spans, 0, b"0123456789").unwrap();
        memory.scatter(&spans, 2, b"ab").unwrap();
        let mut found = [0; 10];
        memory.gather(&spans, 0, &mut found).unwrap();
        assert_eq!(&found, b"01ab456789");
        let mut part = [0; 4];
        memory.gather(&spans, 4, &mut part).unwrap();
        assert_eq!(&part, b"4567");
        memory.read(200, &mut part[..2]).unwrap();
        assert_eq!(&part[..2], b"b4");
    }

    #[test]
    fn memory_behind_the_end_of_its_file_is_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let map = |mmap_offset, memory_size| {
            let region = VhostUserMemoryRegion { guest_phys_addr: 0, memory_size, user_addr: 0, mmap_offset };
            Memory::map(&[region], vec![file.try_clone().unwrap()]).map(|memory| memory.write(memory_size - 1, &[1]))
        };
        assert_eq!(map(4096, 4096).unwrap(), Ok(()));
        for (offset, bytes) in [(0, 8193), (4096, 8192), (8192, 1), (u64::MAX - 4095, 4096)] {
            assert_eq!(map(offset, bytes).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{offset}+{bytes}");
        }
    }

    #[test]
    fn addresses_outside_of_guest_memory_are_refused() {
        let memory = memory(4096);
        assert!(memory.write(4000, &[0; 96]).is_ok() && memory.write(4000, &[0; 97]).is_err());
        assert!(memory.read(u64::MAX - 1, &mut [0; 4]).is_err());
        assert_eq!(memory.guest_address(USER + 7), Some(7));
        assert_eq!(memory.guest_address(USER + 4096), None);
        assert_eq!(memory.guest_address(7), None);
    }
}
