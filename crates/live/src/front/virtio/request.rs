//! Requests of a guest: the header, the data and the status of virtio-blk.

use super::chain::{Broken, Chain};
use super::memory::{Memory, Span};
use crate::disk::Action;

const SECTOR_BYTES: u64 = iosched::SECTOR_BYTES;
/// Bytes of a request before its data: the type, the priority and the sector.
const HEADER_BYTES: usize = 16;
/// Bytes of the description of a range to trim or zero: the sector, the number of sectors and
/// flags.
const RANGE_BYTES: u64 = 16;
/// Flag: the range of zeroes may become a hole.
const UNMAP: u32 = 1;
/// Length of the name of a disk, bytes.
pub(crate) const ID_BYTES: usize = 20;

/// Status of a completed request.
pub(crate) const OK: u8 = 0;
/// Status of a failed request.
pub(crate) const IOERR: u8 = 1;
/// Status of a request with an unknown type.
pub(crate) const UNSUPP: u8 = 2;

/// Kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Do(Action),
    /// Return the name of the disk.
    Identify,
    /// Refuse the request with this status.
    Refuse(u8),
}

/// A request without its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    /// Offset, bytes.
    pub(crate) offset: u64,
    /// Length, bytes.
    pub(crate) length: u64,
    /// For a write of zeroes: whether the blocks stay allocated.
    pub(crate) no_hole: bool,
    /// Guest address of the status.
    pub(crate) status: u64,
}

impl Request {
    /// Reads a request. Leaves the memory for its data in `chain`.
    ///
    /// # Errors
    /// The request has no header, or no room for the status.
    pub(crate) fn read(memory: &Memory, chain: &mut Chain) -> Result<Self, Broken> {
        let status = take_last(&mut chain.writable).ok_or(Broken::Short)?;
        let mut header = [0; HEADER_BYTES];
        if total(&chain.readable) < HEADER_BYTES as u64 || memory.gather(&chain.readable, 0, &mut header).is_err() {
            return Err(Broken::Short);
        }
        skip(&mut chain.readable, HEADER_BYTES as u32);
        let offset = sectors(field(&header, 8));
        let kind = match field(&header, 0) as u32 {
            0 => Kind::Do(Action::Read),
            1 => Kind::Do(Action::Write),
            4 => Kind::Do(Action::Flush),
            8 => Kind::Identify,
            11 => Kind::Do(Action::Trim),
            13 => Kind::Do(Action::WriteZeroes),
            _ => Kind::Refuse(UNSUPP),
        };
        let request = Self { kind, offset: offset.unwrap_or(0), length: 0, no_hole: false, status };
        Ok(match kind {
            Kind::Do(Action::Read) => request.transfer(offset, total(&chain.writable)),
            Kind::Do(Action::Write) => request.transfer(offset, total(&chain.readable)),
            Kind::Do(Action::Trim | Action::WriteZeroes) => request.range(memory, chain),
            _ => request,
        })
    }

    fn transfer(self, offset: Option<u64>, length: u64) -> Self {
        match offset {
            Some(_) if length.is_multiple_of(SECTOR_BYTES) => Self { length, ..self },
            _ => Self { kind: Kind::Refuse(IOERR), ..self },
        }
    }

    fn range(self, memory: &Memory, chain: &Chain) -> Self {
        let mut range = [0; RANGE_BYTES as usize];
        // The device accepts only one range per request.
        if total(&chain.readable) != RANGE_BYTES || memory.gather(&chain.readable, 0, &mut range).is_err() {
            return Self { kind: Kind::Refuse(IOERR), ..self };
        }
        let (offset, count, flags) =
            (sectors(field(&range, 0)), field(&range, 8) as u32, (field(&range, 8) >> 32) as u32);
        let trims = self.kind == Kind::Do(Action::Trim);
        let known = if trims { 0 } else { UNMAP };
        match offset {
            _ if flags & !known != 0 => Self { kind: Kind::Refuse(UNSUPP), ..self },
            Some(offset) => {
                Self { offset, length: u64::from(count) * SECTOR_BYTES, no_hole: !trims && flags & UNMAP == 0, ..self }
            }
            None => Self { kind: Kind::Refuse(IOERR), ..self },
        }
    }
}

/// Returns the number that begins at byte `at`.
fn field(bytes: &[u8; 16], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Returns the byte offset of a sector, or `None` if the offset exceeds 64 bits.
fn sectors(sector: u64) -> Option<u64> {
    sector.checked_mul(SECTOR_BYTES)
}

/// Returns the total number of bytes in `spans`.
pub(crate) fn total(spans: &[Span]) -> u64 {
    spans.iter().map(|span| u64::from(span.bytes)).sum()
}

/// Removes the last byte of `spans`. Returns the address of this byte.
fn take_last(spans: &mut Vec<Span>) -> Option<u64> {
    while let Some(span) = spans.last_mut() {
        if let Some(last) = span.bytes.checked_sub(1) {
            span.bytes = last;
            return span.address.checked_add(last.into());
        }
        spans.pop();
    }
    None
}

/// Removes the first `bytes` bytes of `spans`.
fn skip(spans: &mut [Span], mut bytes: u32) {
    for span in spans {
        let here = bytes.min(span.bytes);
        *span = Span { address: span.address + u64::from(here), bytes: span.bytes - here };
        bytes -= here;
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::tests::memory;
    use super::*;

    /// Reads a request of type `kind` at `sector`, with the given readable and writable memory.
    fn read(
        kind: u32,
        sector: u64,
        readable: &[(u64, u32)],
        writable: &[(u64, u32)],
    ) -> Result<(Request, Chain), Broken> {
        let memory = memory(1 << 16);
        let spans = |spans: &[(u64, u32)]| spans.iter().map(|&(address, bytes)| Span { address, bytes }).collect();
        let mut chain = Chain { readable: spans(readable), writable: spans(writable) };
        let mut header = [0; 16];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        memory.scatter(&chain.readable, 0, &header).unwrap();
        let mut range = [0; 16];
        range[..8].copy_from_slice(&sector.to_le_bytes());
        range[8..12].copy_from_slice(&24_u32.to_le_bytes());
        memory.scatter(&chain.readable, 16, &range).unwrap();
        Request::read(&memory, &mut chain).map(|request| (request, chain))
    }

    #[test]
    fn header_data_and_status_are_found_in_any_layout() {
        let (request, chain) = read(0, 8, &[(0, 16)], &[(4096, 1024), (8192, 1)]).unwrap();
        assert_eq!(
            (request.kind, request.offset, request.length, request.status),
            (Kind::Do(Action::Read), 4096, 1024, 8192)
        );
        assert_eq!(total(&chain.writable), 1024);
        let (request, chain) = read(1, 3, &[(0, 10), (100, 6 + 512)], &[(8192, 1)]).unwrap();
        assert_eq!((request.kind, request.offset, request.length), (Kind::Do(Action::Write), 1536, 512));
        assert_eq!(chain.readable[1], Span { address: 106, bytes: 512 });
        let (request, _) = read(0, 0, &[(0, 16)], &[(4096, 513)]).unwrap();
        assert_eq!((request.length, request.status), (512, 4096 + 512), "the status is the last byte");
    }

    #[test]
    fn trim_and_zero_requests_are_parsed() {
        let (request, _) = read(11, 8, &[(0, 16), (64, 16)], &[(8192, 1)]).unwrap();
        assert_eq!((request.kind, request.offset, request.length), (Kind::Do(Action::Trim), 4096, 24 * 512));
        let (request, _) = read(13, 8, &[(0, 32)], &[(8192, 1)]).unwrap();
        assert_eq!((request.kind, request.no_hole), (Kind::Do(Action::WriteZeroes), true));
        let (request, _) = read(11, 8, &[(0, 48)], &[(8192, 1)]).unwrap();
        assert_eq!(request.kind, Kind::Refuse(IOERR), "two ranges");
    }

    #[test]
    fn unanswerable_requests_break_the_queue_and_bad_ones_fail() {
        let kind = |kind, sector, bytes| read(kind, sector, &[(0, 16)], &[(4096, bytes)]).unwrap().0.kind;
        assert_eq!(kind(0, 0, 512), Kind::Refuse(IOERR), "part of a sector");
        assert_eq!(kind(0, u64::MAX / 2, 513), Kind::Refuse(IOERR), "no such sector");
        assert_eq!(kind(99, 0, 1), Kind::Refuse(UNSUPP));
        assert_eq!(kind(8, 0, 21), Kind::Identify);
        assert_eq!(read(0, 0, &[(0, 16)], &[]).unwrap_err(), Broken::Short);
        assert_eq!(read(0, 0, &[(0, 16)], &[(5, 0)]).unwrap_err(), Broken::Short);
        let memory = memory(4096);
        let mut chain =
            Chain { readable: vec![Span { address: 4090, bytes: 16 }], writable: vec![Span { address: 0, bytes: 1 }] };
        assert_eq!(Request::read(&memory, &mut chain).unwrap_err(), Broken::Short);
    }
}
