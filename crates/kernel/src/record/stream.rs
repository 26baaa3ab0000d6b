//! Splits the data from the kernel's pipe of events into block trace records and messages about
//! lost events.

/// First bytes of a record: the magic of a block trace and its version, on a little-endian machine.
const BEGINNING: [u8; 4] = [0x07, 0x74, 0x61, 0x65];
/// Bytes of a record without its data.
const HEADER_BYTES: usize = 48;
/// Position of the data's length in the header.
const DATA_LENGTH: std::ops::Range<usize> = 46..48;
/// Position of the action in the header.
const ACTION: std::ops::Range<usize> = 28..32;
/// Bit of the action that marks a record about a process or the recording, instead of a request.
const NOTE: u32 = 1 << 26;
/// Low byte of the action when a bio is submitted.
const SUBMISSION: u8 = 1;
/// Position of the time (ns) in the header.
const TIME: std::ops::Range<usize> = 8..16;
/// Position of the process id in the header.
const PID: std::ops::Range<usize> = 32..36;

/// A record without its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>(&'a [u8; HEADER_BYTES]);

impl Record<'_> {
    fn u32(self, range: std::ops::Range<usize>) -> u32 {
        self.0[range].try_into().map_or(0, u32::from_le_bytes)
    }

    /// Returns whether the record is about a request.
    fn is_event(self) -> bool {
        self.u32(ACTION) & NOTE == 0
    }

    /// Returns whether the record is the submission of a bio.
    pub(super) fn is_submission(self) -> bool {
        self.is_event() && self.u32(ACTION) as u8 == SUBMISSION
    }

    pub(super) fn pid(self) -> u32 {
        self.u32(PID)
    }

    pub(super) fn time_ns(self) -> u64 {
        self.0[TIME].try_into().map_or(0, u64::from_le_bytes)
    }
}

/// Iterator over whole records.
#[derive(Debug)]
pub(super) struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    pub(super) const fn of(records: &'a [u8]) -> Self {
        Self(records)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.0.first_chunk::<HEADER_BYTES>()?;
        let data = header[DATA_LENGTH].try_into().map_or(0, u16::from_le_bytes);
        self.0 = self.0.get(HEADER_BYTES + usize::from(data)..).unwrap_or_default();
        Some(Record(header))
    }
}

/// Extracts records from a stream of bytes. A record may begin in one read and end in a later read.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Bytes that do not yet form a whole record.
    rest: Vec<u8>,
    events: u64,
    lost: u64,
    /// Bytes that belong to no record.
    foreign_bytes: u64,
}

impl Stream {
    /// Takes bytes that were read, and appends the whole records to `out`.
    pub(super) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(length) = self.piece(at) {
            let piece = &self.rest[at..at + length];
            if piece.starts_with(&BEGINNING) {
                self.events += Records::of(piece).filter(|record| record.is_event()).count() as u64;
                out.extend_from_slice(piece);
            } else if let Some(lost) = lost_events(piece) {
                self.lost += lost;
            } else {
                self.foreign_bytes += length as u64;
            }
            at += length;
        }
        self.rest.drain(..at);
    }

    /// Returns the length of the piece at `at`: a record, a line of text, or other bytes. Returns
    /// `None` if the piece is incomplete.
    fn piece(&self, at: usize) -> Option<usize> {
        let rest = &self.rest[at..];
        if rest.len() < BEGINNING.len() {
            return None;
        }
        if !rest.starts_with(&BEGINNING) {
            let line = rest.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
            let record = rest.windows(BEGINNING.len()).position(|window| window == BEGINNING);
            return line.into_iter().chain(record).min();
        }
        let data = u16::from_le_bytes(rest.get(DATA_LENGTH)?.try_into().ok()?);
        let length = HEADER_BYTES + usize::from(data);
        (rest.len() >= length).then_some(length)
    }

    /// Returns the number of events of requests.
    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    /// Returns the number of events that were lost because the kernel's buffer was full.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of bytes that belong to no record. They come from another user of the
    /// kernel's trace.
    pub(super) fn foreign_bytes(&self) -> u64 {
        self.foreign_bytes + self.rest.len() as u64
    }
}

/// Parses the number in `CPU:1 [LOST 25 EVENTS]`, which the kernel writes in place of lost events.
fn lost_events(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let about = line.strip_prefix("CPU:")?.split_once(' ')?.1;
    let number = about.strip_prefix("[LOST")?.strip_suffix("EVENTS]")?.trim();
    // The kernel does not always know the number.
    Some(number.parse().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: u8, data: &[u8]) -> Vec<u8> {
        let mut record = vec![0; HEADER_BYTES];
        record[..4].copy_from_slice(&BEGINNING);
        record[32] = pid;
        record[46] = data.len() as u8;
        record.extend(data);
        record
    }

    #[test]
    fn records_are_reassembled_from_chunks_of_any_size() {
        let all = [record(1, b""), record(2, b"twelve bytes"), record(3, b"")].concat();
        for size in [1, 3, 47, 48, 49, 1000] {
            let (mut stream, mut out) = (Stream::default(), Vec::new());
            all.chunks(size).for_each(|bytes| stream.take(bytes, &mut out));
            assert_eq!((out.as_slice(), stream.events()), (all.as_slice(), 3), "{size}");
            assert_eq!((stream.lost(), stream.foreign_bytes()), (0, 0));
        }
    }

    #[test]
    fn stream_counts_lost_events_and_drops_foreign_bytes() {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        let words = b"CPU:1 [LOST 25 EVENTS]\n".to_vec();
        let all = [record(1, b""), words, record(2, b""), b"somebody else's\n".to_vec(), record(3, b""), vec![7, 0x74]];
        stream.take(&all.concat(), &mut out);
        assert_eq!(out, [record(1, b""), record(2, b""), record(3, b"")].concat());
        assert_eq!((stream.events(), stream.lost(), stream.foreign_bytes()), (3, 25, 18));
    }

    #[test]
    fn fua_writes_count_as_events_but_notes_do_not() {
        let with_action = |action: u32| {
            let mut record = record(1, b"");
            record[ACTION].copy_from_slice(&action.to_le_bytes());
            record
        };
        // Actions with the bits BLK_TC_FUA and BLK_TC_NOTIFY.
        let all = [with_action(1 << 31 | 1), with_action(1 << 26 | 2)].concat();
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.take(&all, &mut out);
        assert_eq!((stream.events(), out), (1, all));
    }
}
