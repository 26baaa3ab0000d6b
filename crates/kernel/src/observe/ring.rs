//! Events in the sub-buffers of the kernel's ring buffer, as `trace_pipe_raw` returns them.
//!
//! `events/header_page` and `events/header_event` of tracefs describe the layout. A sub-buffer
//! begins with the time of its first event and the number of bytes in use. Each event begins with a
//! word: 5 bits for the type or the length, and 27 bits for the time since the previous event.

/// Layout of a sub-buffer, from `events/header_page`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    /// Size of the field `commit` of a sub-buffer: 4 or 8 bytes. This field contains the number of
    /// bytes in use.
    commit_bytes: usize,
    /// Offset of the first event.
    data: usize,
}

impl Page {
    /// Parses `events/header_page`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let number = |field: &str, word: &str| {
            let line = text.lines().find(|line| line.contains(field))?;
            line.split(';').find_map(|part| part.trim().strip_prefix(word)?.parse::<usize>().ok())
        };
        let page = Self { commit_bytes: number(" commit;", "size:")?, data: number(" data;", "offset:")? };
        ([4, 8].contains(&page.commit_bytes) && page.data >= 8 + page.commit_bytes).then_some(page)
    }
}

/// Two flags in the field with the number of bytes in use. The first flag means that events were
/// lost before this sub-buffer. The second flag means that the number of lost events is stored
/// after the last event.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Bits of that field that contain the number of bytes in use.
const COMMIT_MASK: u64 = (1 << 20) - 1;

/// Types of events. Values below 29 are lengths in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time in the first word.
const TIME_BITS: u32 = 27;
/// Number of bits of an absolute time. The high bits are missing, and are taken from the previous
/// time.
const STAMP_BITS: u32 = 59;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Calls `take` with the time and the bytes of each event in a sub-buffer. Stops at the first event
/// that is not well-formed. Returns the number of events that were lost before the sub-buffer, or 1
/// if the kernel does not report the number.
pub(super) fn events(page: Page, buffer: &[u8], mut take: impl FnMut(u64, &[u8])) -> u64 {
    let commit = match page.commit_bytes {
        4 => word(buffer, 8).map(u64::from),
        _ => long(buffer, 8),
    };
    let (Some(mut time), Some(commit)) = (long(buffer, 0), commit) else { return 0 };
    let used = (commit & COMMIT_MASK) as usize;
    let Some(data) = buffer.get(page.data..).map(|data| &data[..used.min(data.len())]) else { return 0 };
    let lost = match commit {
        commit if commit & MISSED == 0 => 0,
        commit if commit & MISSED_STORED == 0 => 1,
        _ => long(buffer, page.data + used).unwrap_or(1).max(1),
    };
    let mut at = 0;
    while let Some(head) = word(data, at) {
        let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
        at += 4;
        match kind {
            PADDING if delta == 0 => break,
            PADDING => {
                time = time.wrapping_add(delta);
                let Some(length) = word(data, at) else { break };
                at += length as usize;
            }
            TIME_EXTEND => {
                let Some(high) = word(data, at) else { break };
                time = time.wrapping_add(delta + (u64::from(high) << TIME_BITS));
                at += 4;
            }
            TIME_STAMP => {
                let Some(high) = word(data, at) else { break };
                let stamp = delta + (u64::from(high) << TIME_BITS);
                time = (time >> STAMP_BITS << STAMP_BITS) | (stamp & ((1 << STAMP_BITS) - 1));
                at += 4;
            }
            kind => {
                time = time.wrapping_add(delta);
                // The stored length of a long event includes the word of the length.
                let (from, length) = match kind {
                    0 => match word(data, at) {
                        Some(length) => (at + 4, (length as usize).saturating_sub(4)),
                        None => break,
                    },
                    words => (at, words as usize * 4),
                };
                let Some(event) = data.get(from..from + length) else { break };
                take(time, event);
                at = from + length.next_multiple_of(4);
            }
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page { commit_bytes: 8, data: 16 };

    /// Returns a sub-buffer with these words as its events.
    fn buffer(flags: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = 1_000_u64.to_ne_bytes().to_vec();
        bytes.extend(((words.len() as u64 * 4) | flags).to_ne_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    fn head(kind: u32, delta: u32) -> u32 {
        kind | (delta << 5)
    }

    fn found(buffer: &[u8]) -> (Vec<(u64, usize)>, u64) {
        let mut found = Vec::new();
        let lost = events(PAGE, buffer, |time, event| found.push((time, event.len())));
        (found, lost)
    }

    #[test]
    fn layout_of_a_page_is_read() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(Page::parse(text), Some(PAGE));
        assert_eq!(Page::parse("nothing"), None);
    }

    #[test]
    fn event_times_are_sums_of_deltas() {
        let words = [
            head(2, 5),
            7,
            8,
            head(TIME_EXTEND, 1),
            1,
            head(0, 10),
            8,
            9,
            head(PADDING, 3),
            4,
            head(TIME_STAMP, 77),
            0,
            head(1, 1),
            9,
        ];
        let extended = 1_005 + 1 + (1 << 27) + 10;
        assert_eq!(found(&buffer(0, &words)), (vec![(1_005, 8), (extended, 4), (78, 4)], 0));
    }

    #[test]
    fn lost_events_are_counted() {
        let one = [head(1, 1), 9];
        assert_eq!(found(&buffer(MISSED, &one)).1, 1);
        let mut with_count = buffer(MISSED | MISSED_STORED, &one);
        with_count.extend(42_u64.to_ne_bytes());
        assert_eq!(found(&with_count), (vec![(1_001, 4)], 42));
    }

    #[test]
    fn damaged_buffer_causes_no_panic() {
        let whole = buffer(0, &[head(2, 5), 7, 8, head(0, 1), u32::MAX, head(PADDING, 1), 3]);
        for end in 0..whole.len() {
            assert!(found(&whole[..end]).0.len() <= 1);
        }
        let mut random = iosched_numbers::SplitMix64::new(1);
        for _ in 0..10_000 {
            let words: Vec<u32> = (0..16).map(|_| random.below(1 << 32) as u32).collect();
            found(&buffer(0, &words));
        }
    }
}
