//! The binary records of one CPU, in either byte order.

use iosched::Time;

use super::{ACTION_CGROUP, Action, BlkEvent, Category, HEADER_BYTES, MAGIC, Payload, ProcessName, VERSION};
use crate::error::{TracePlace, WarningKind, Warnings};
use crate::input::Input;

/// Maximum length of a record's data, bytes.
const PAYLOAD_MAX_BYTES: usize = u16::MAX as usize;
/// Highest accepted action code. Leaves room for actions of later kernels.
const ACTION_MAX: u32 = 32;
/// Number of bytes that are kept of a message. The kernel's messages are shorter.
const MESSAGE_MAX_BYTES: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the byte order in which `word` is the first word of a record, and the format
    /// version.
    fn of_magic(word: [u8; 4]) -> Option<(Self, u8)> {
        let magic = |value: u32| (value & 0xffff_ff00 == MAGIC).then_some(value as u8);
        magic(u32::from_le_bytes(word))
            .map(|version| (Self::Little, version))
            .or_else(|| magic(u32::from_be_bytes(word)).map(|version| (Self::Big, version)))
    }

    #[inline]
    fn u16(self, at: &[u8; HEADER_BYTES], offset: usize) -> u16 {
        let word = [at[offset], at[offset + 1]];
        match self {
            Self::Little => u16::from_le_bytes(word),
            Self::Big => u16::from_be_bytes(word),
        }
    }

    #[inline]
    fn word(self, word: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(word),
            Self::Big => u32::from_be_bytes(word),
        }
    }

    #[inline]
    fn u32(self, at: &[u8; HEADER_BYTES], offset: usize) -> u32 {
        self.word([at[offset], at[offset + 1], at[offset + 2], at[offset + 3]])
    }

    #[inline]
    fn u64(self, at: &[u8; HEADER_BYTES], offset: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(at, offset)), u64::from(self.u32(at, offset + 4)));
        match self {
            Self::Little => second << 32 | first,
            Self::Big => first << 32 | second,
        }
    }
}

/// Returns the format version if `head` is the start of a block trace.
pub(crate) fn sniff(head: &[u8]) -> Option<u8> {
    let word = head.first_chunk()?;
    ByteOrder::of_magic(*word).map(|(_, version)| version)
}

/// Minimum number of records that prove the byte order.
const ORDER_RECORDS_MIN: u32 = 3;
/// Largest accepted time, ns: nine years. No machine runs longer.
const TIME_MAX_NS: u64 = 1 << 58;

/// Returns a description of the damage to the byte order of a block trace that begins with `head`.
/// Returns `None` if the byte order is not damaged. The reader accepts both byte orders.
pub(crate) fn order_fault(head: &[u8]) -> Option<&'static str> {
    let &[a, b, c, d] = head.first_chunk()?;
    if ByteOrder::of_magic([b, a, d, c]).is_some_and(|(_, version)| version == VERSION) {
        return Some(
            "it is a block trace whose bytes were swapped in pairs, as dd conv=swab does; swap the bytes back",
        );
    }
    let (order, _) = ByteOrder::of_magic([a, b, c, d])?;
    let other = if order == ByteOrder::Little { ByteOrder::Big } else { ByteOrder::Little };
    let is_code = |code: u32| code >> 16 != 0 && code & 0xffff & !ACTION_CGROUP <= ACTION_MAX;
    let (mut records, mut mixed, mut by_words, mut at) = (0, 0, 0, 0);
    while let Some(header) = head.get(at..).and_then(|rest| rest.first_chunk::<HEADER_BYTES>()) {
        if order.u32(header, 0) != MAGIC | u32::from(VERSION) {
            break;
        }
        let is_mixed = !is_code(order.u32(header, 28)) && is_code(other.u32(header, 28));
        let time = order.u64(header, 8);
        let is_by_words = time > TIME_MAX_NS && time.rotate_left(32) <= TIME_MAX_NS;
        records += 1;
        mixed += u32::from(is_mixed);
        by_words += u32::from(is_by_words);
        at += HEADER_BYTES
            + usize::from(match (is_mixed, by_words * 2 > records) {
                (true, _) => other.u16(header, 46),
                (false, true) => order.u16(header, 44),
                (false, false) => order.u16(header, 46),
            });
    }
    let is_most = |some: u32| records >= ORDER_RECORDS_MIN && some * 2 > records;
    if is_most(mixed) {
        return Some(
            "it is a block trace, but its magic number and its other fields have different byte orders; swap the \
             bytes of all fields, or of no field",
        );
    }
    is_most(by_words).then_some(
        "it is a block trace whose bytes were swapped in groups of 4, but some of its fields have 8 or 2 bytes; swap \
         the bytes of each field as a whole",
    )
}

/// Reads one file.
pub(crate) struct BinaryReader {
    input: Input,
    order: Option<ByteOrder>,
    next_sequence: Option<u32>,
    /// A gap in the sequence numbers before the last record. The next record shows whether records
    /// are missing, or whether only the number of the last record is damaged.
    gap: Option<SequenceGap>,
}

/// A gap in sequence numbers.
struct SequenceGap {
    place: TracePlace,
    expected: u32,
    found: u32,
}

impl SequenceGap {
    /// Returns the number that the next record has if the number of this record is damaged.
    const fn next_if_damaged(&self) -> u32 {
        self.expected.wrapping_add(1)
    }
}

impl BinaryReader {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, order: None, next_sequence: None, gap: None }
    }

    /// Returns the position of the reader.
    pub(crate) fn place(&self) -> TracePlace {
        self.input.place()
    }

    /// Returns the next record with its recorded time, or `None` at the end.
    pub(crate) fn next_event(&mut self, warnings: &mut Warnings) -> Option<BlkEvent> {
        loop {
            let Some(header) = self.input.peek(HEADER_BYTES).first_chunk::<HEADER_BYTES>() else {
                self.finish(warnings);
                return None;
            };
            let header = *header;
            let Some(order) = self.order_of(&header) else {
                self.skip_to_magic(0, warnings);
                continue;
            };
            self.order = Some(order);
            return Some(self.record(&header, order, warnings));
        }
    }

    /// Returns the byte order if a record begins here. When the byte order of the file is known,
    /// accepts only this byte order.
    #[inline]
    fn order_of(&self, header: &[u8; HEADER_BYTES]) -> Option<ByteOrder> {
        let word = [header[0], header[1], header[2], header[3]];
        if let Some(order) = self.order {
            return (order.word(word) == MAGIC | u32::from(VERSION)).then_some(order);
        }
        ByteOrder::of_magic(word).filter(|&(_, version)| version == VERSION).map(|(order, _)| order)
    }

    #[inline]
    fn record(&mut self, header: &[u8; HEADER_BYTES], order: ByteOrder, warnings: &mut Warnings) -> BlkEvent {
        let code = order.u32(header, 28);
        let category = Category::from_bits_retain((code >> 16) as u16);
        let mut event = BlkEvent {
            time: Time::from_ns(order.u64(header, 8)),
            sector: order.u64(header, 16),
            bytes: order.u32(header, 24),
            action: Action::from_code(code as u8, category.contains(Category::NOTIFY)),
            category,
            pid: order.u32(header, 32),
            device: order.u32(header, 36),
            cpu: order.u32(header, 40),
            sequence: order.u32(header, 4),
            error: order.u16(header, 44) as i16,
            payload: Payload::None,
        };
        self.count_dropped(&event, warnings);
        let data_bytes = usize::from(order.u16(header, 46));
        if data_bytes == 0 {
            self.input.consume(HEADER_BYTES);
        } else {
            self.data(&mut event, data_bytes, code & ACTION_CGROUP != 0, order, warnings);
        }
        event
    }

    fn data(
        &mut self,
        event: &mut BlkEvent,
        data_bytes: usize,
        has_cgroup: bool,
        order: ByteOrder,
        warnings: &mut Warnings,
    ) {
        let event_bytes = HEADER_BYTES + data_bytes;
        let place = self.input.place();
        let available = self.input.peek(event_bytes + 4);
        let fits = available.len() >= event_bytes;
        // Another record or the end of the file follows.
        let followed = match available.get(event_bytes..event_bytes + 4) {
            Some(word) => ByteOrder::of_magic([word[0], word[1], word[2], word[3]]).is_some(),
            None => true,
        };
        if fits && followed {
            let mut data = &available[HEADER_BYTES..event_bytes];
            if has_cgroup {
                data = data.get(8..).unwrap_or_default();
            }
            event.payload = payload(event.action, data, order);
            self.input.consume(event_bytes);
            return;
        }
        if available[HEADER_BYTES..]
            .windows(4)
            .any(|word| order.word([word[0], word[1], word[2], word[3]]) == MAGIC | 7)
        {
            // No record follows this record, so its length is wrong, and its data may contain a
            // record.
            warnings.push(place, WarningKind::BadLength { claimed_bytes: data_bytes as u64 });
            self.skip_to_magic(HEADER_BYTES, warnings);
        } else if fits {
            let data = &available[HEADER_BYTES..event_bytes];
            event.payload =
                payload(event.action, if has_cgroup { data.get(8..).unwrap_or_default() } else { data }, order);
            self.input.consume(event_bytes);
        } else {
            let have_bytes = available.len();
            if !self.input.has_failed() {
                let (have_bytes, want_bytes) = (have_bytes as u64, event_bytes as u64);
                warnings.push(place, WarningKind::Truncated { have_bytes, want_bytes });
            }
            self.input.consume(have_bytes);
        }
    }

    /// Skips `first` bytes, then continues to the next place where a record could begin.
    fn skip_to_magic(&mut self, first: usize, warnings: &mut Warnings) {
        let place = self.input.place();
        self.input.consume(first);
        let mut skipped_bytes = 0u64;
        let mut at_least = usize::from(first == 0);
        loop {
            let order = self.order;
            let available = self.input.peek(PAYLOAD_MAX_BYTES);
            if available.len() < 4 {
                let rest = available.len();
                self.input.consume(rest);
                skipped_bytes += rest as u64;
                break;
            }
            let found = available.windows(4).skip(at_least).position(|word| {
                ByteOrder::of_magic([word[0], word[1], word[2], word[3]])
                    .is_some_and(|(found, version)| version == VERSION && order.is_none_or(|order| order == found))
            });
            let bytes = found.map_or(available.len() - 3, |at| at + at_least);
            at_least = 0;
            self.input.consume(bytes);
            skipped_bytes += bytes as u64;
            if found.is_some() {
                break;
            }
        }
        if skipped_bytes > 0 {
            warnings.push(place, WarningKind::Damaged { skipped_bytes });
        }
    }

    /// Counts dropped records from gaps in the sequence numbers. The kernel numbers all records of
    /// a CPU, including the records that it drops because its buffer is full.
    #[inline]
    fn count_dropped(&mut self, event: &BlkEvent, warnings: &mut Warnings) {
        let sequence = event.sequence;
        let expected = self.next_sequence.unwrap_or(sequence);
        if sequence == expected {
            self.next_sequence = Some(expected.wrapping_add(1));
            self.tell_gap(warnings);
        } else if !event.category.contains(Category::NOTIFY) {
            self.next_sequence = Some(sequence.wrapping_add(1));
            if let Some(SequenceGap { place, expected, found }) =
                self.gap.take_if(|gap| sequence == gap.next_if_damaged())
            {
                warnings.push(place, WarningKind::BadSequence { found, expected });
                return;
            }
            self.tell_gap(warnings);
            // A much higher or a lower number is the start of a new trace.
            if sequence.wrapping_sub(expected) < 1 << 30 {
                self.gap = Some(SequenceGap { place: self.input.place(), expected, found: sequence });
            }
        }
    }

    /// Reports the gap as lost records, because the sequence numbers continue after the gap.
    #[inline]
    fn tell_gap(&mut self, warnings: &mut Warnings) {
        if let Some(SequenceGap { place, expected, found }) = self.gap.take() {
            warnings.push(place, WarningKind::Dropped { records: u64::from(found.wrapping_sub(expected)) });
        }
    }

    fn finish(&mut self, warnings: &mut Warnings) {
        self.tell_gap(warnings);
        let rest = self.input.peek(HEADER_BYTES).len();
        if rest > 0 {
            if !self.input.has_failed() {
                let kind = WarningKind::Truncated { have_bytes: rest as u64, want_bytes: HEADER_BYTES as u64 };
                warnings.push(self.input.place(), kind);
            }
            self.input.consume(rest);
        }
        self.input.warn_failure(warnings);
        warnings.tally.bytes += self.input.offset_bytes();
    }
}

fn payload(action: Action, data: &[u8], order: ByteOrder) -> Payload {
    let be_u32 = |at: usize| data.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
    let be_u64 = |at: usize| data.get(at..)?.first_chunk().map(|word| u64::from_be_bytes(*word));
    let native = |at: usize| data.get(at..)?.first_chunk().map(|word| order.word(*word));
    let typed = match action {
        Action::Unplug | Action::UnplugTimer => be_u64(0).map(Payload::Count),
        Action::Split => be_u64(0).map(Payload::SplitAt),
        Action::Remap => be_u32(0)
            .zip(be_u32(4))
            .zip(be_u64(8))
            .map(|((from_device, to_device), from_sector)| Payload::Remap { from_device, from_sector, to_device }),
        Action::NoteProcess => Some(Payload::Name(ProcessName::new(data))),
        Action::NoteTimestamp => {
            native(0).zip(native(4)).map(|(seconds, nanoseconds)| Payload::WallClock { seconds, nanoseconds })
        }
        Action::NoteMessage => {
            let text = &data[..data.len().min(MESSAGE_MAX_BYTES)];
            let text = text.split(|&b| b == 0).next().unwrap_or_default();
            Some(Payload::Message(String::from_utf8_lossy(text).into()))
        }
        _ => None,
    };
    typed.unwrap_or_else(|| Payload::Bytes(data.into()))
}
