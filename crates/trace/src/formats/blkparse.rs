//! blkparse's default text, read and written:
//! `major,minor cpu sequence seconds pid action letters …` on each line.

use std::fmt::Write as _;

use iosched::Time;

use super::event_text::{EventFormat, EventLine};
use crate::blktrace::{Action, BlkEvent, Category, Payload, ProcessName};
use crate::record::DeviceName;
use crate::text::{Words, number, number_u32, seconds};

const EXPECTED: &str =
    "\"major,minor cpu sequence seconds.nanoseconds pid action RWBS …\" as blkparse prints by default";

/// Parses blkparse's lines.
#[derive(Default)]
pub(crate) struct Blkparse {
    in_summary: bool,
}

impl EventFormat for Blkparse {
    const EXPECTED: &'static str = EXPECTED;
    const FROM_FIRST: bool = false;

    fn parse(&mut self, line: &[u8]) -> EventLine {
        if let Some((event, name)) = parse(line) {
            self.in_summary = false;
            return EventLine::Event(event, name);
        }
        let line = line.trim_ascii();
        self.in_summary |= line.starts_with(b"CPU") || line.starts_with(b"Total (");
        if self.in_summary || line.is_empty() || line.starts_with(b"Input file ") {
            EventLine::Other
        } else {
            EventLine::Bad
        }
    }
}

/// Parses the event of a line, and the name of its process if the line has it.
fn parse(line: &[u8]) -> Option<(BlkEvent, Option<ProcessName>)> {
    let mut words = Words::new(line);
    let device = device(&mut words)?;
    let cpu = number_u32(words.next()?)?;
    let sequence = number_u32(words.next()?)?;
    let time = words.next().filter(|word| word.contains(&b'.'))?;
    let pid = number_u32(words.next()?)?;
    traced_event(words, seconds(time)?, pid, cpu, sequence, device)
}

/// Parses the rest of an event's line, from the action on.
pub(super) fn traced_event(
    mut words: Words<'_>,
    time: Time,
    pid: u32,
    cpu: u32,
    sequence: u32,
    device: u32,
) -> Option<(BlkEvent, Option<ProcessName>)> {
    let action = Action::from_letters(words.next()?)?;
    let letters = words.next()?;
    let mut event = BlkEvent {
        time,
        sector: 0,
        bytes: 0,
        action,
        category: if action == Action::NoteMessage { Category::NOTIFY } else { Category::from_letters(letters)? },
        pid,
        device,
        cpu,
        sequence,
        error: 0,
        payload: Payload::None,
    };
    let rest = words.rest();
    if action == Action::NoteMessage {
        event.payload = Payload::Message(String::from_utf8_lossy(rest).into());
        return Some((event, None));
    }
    let (what, bracket, after) = split_bracket(rest);
    extent(&mut event, what)?;
    if matches!(action, Action::Unplug | Action::UnplugTimer)
        && let Some(count) = number(after)
    {
        event.payload = Payload::Count(count);
    }
    let mut name = None;
    match (action, bracket) {
        // By default, blkparse prints the error here. In a format of the user, it may be the
        // process.
        (Action::Complete | Action::Requeue, Some(text)) => event.error = error_number(text).unwrap_or(0),
        (Action::Remap, _) | (_, None) => {}
        (_, Some(text)) => name = (pid != 0 && text != b"0" && !text.is_empty()).then(|| ProcessName::new(text)),
    }
    Some((event, name))
}

/// Parses `major,minor`. Accepts blanks after the comma, because blkparse pads with blanks.
pub(super) fn device(words: &mut Words<'_>) -> Option<u32> {
    let word = words.next()?;
    let comma = word.iter().position(|&b| b == b',')?;
    let major = number_u32(&word[..comma])?;
    let minor = &word[comma + 1..];
    let minor = number_u32(if minor.is_empty() { words.next()? } else { minor })?;
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// Splits a text at its brackets. Returns the text before, inside and after the brackets.
pub(super) fn split_bracket(rest: &[u8]) -> (&[u8], Option<&[u8]>, &[u8]) {
    let open = rest.iter().position(|&b| b == b'[');
    let close = rest.iter().rposition(|&b| b == b']');
    match (open, close) {
        (Some(open), Some(close)) if open < close => {
            (rest[..open].trim_ascii(), Some(&rest[open + 1..close]), rest[close + 1..].trim_ascii())
        }
        _ => (rest, None, &[]),
    }
}

/// Parses a completion's error. blkparse prints its 16 bits unsigned; some versions print them
/// signed.
pub(super) fn error_number(text: &[u8]) -> Option<i16> {
    match text.strip_prefix(b"-") {
        Some(digits) => i16::try_from(number(digits)?).ok().map(|error| -error),
        None => u16::try_from(number(text)?).ok().map(|error| error as i16),
    }
}

/// Parses `sector + sectors`, `sector`, `sector / sector`,
/// `sector + sectors <- (major,minor) sector`, or nothing. For a passed-through command, the text
/// has the command's length and bytes instead.
pub(super) fn extent(event: &mut BlkEvent, what: &[u8]) -> Option<()> {
    let mut words = Words::new(what);
    let Some(first) = words.next() else { return Some(()) };
    let first = number(first)?;
    match words.next() {
        None => event.sector = first,
        Some(b"+") => {
            event.sector = first;
            event.bytes = number_u32(words.next()?)?.checked_mul(512)?;
            if words.next() == Some(b"<-") {
                let (from_device, from_sector) = remapped_from(words.rest())?;
                event.payload = Payload::Remap { from_device, from_sector, to_device: event.device };
            }
        }
        Some(b"/") => {
            event.sector = first;
            event.payload = Payload::SplitAt(number(words.next()?)?);
        }
        Some(word) if word.starts_with(b"(") => {
            event.bytes = first.try_into().ok()?;
            event.category |= Category::PC;
        }
        Some(_) => return None,
    }
    Some(())
}

/// Parses `(major,minor) sector`.
fn remapped_from(text: &[u8]) -> Option<(u32, u64)> {
    let text = text.strip_prefix(b"(")?;
    let close = text.iter().position(|&b| b == b')')?;
    let device = DeviceName::parse(std::str::from_utf8(&text[..close]).ok()?)?;
    Some((device.0, number(text[close + 1..].trim_ascii())?))
}

impl BlkEvent {
    /// Returns the line that blkparse prints for the event by default, without the newline. `name`
    /// is the name of the process, if known. Returns `None` for events for which blkparse prints no
    /// line, and for passed-through commands.
    #[must_use]
    pub fn to_blkparse_line(&self, name: Option<ProcessName>) -> Option<String> {
        if matches!(self.action.letters(), "?") || self.category.contains(Category::PC) {
            return None;
        }
        let device = match self.payload {
            Payload::Remap { to_device, .. } => to_device,
            _ => self.device,
        };
        let (major, minor) = (device >> 20, device & 0xf_ffff);
        let (seconds, ns) = (self.time.as_ns() / iosched::SECOND_NS, self.time.as_ns() % iosched::SECOND_NS);
        let name = name.map_or_else(|| "0".to_owned(), ProcessName::to_text);
        // blkparse prints messages without their process.
        let (sequence, pid) = if self.action == Action::NoteMessage { (0, 0) } else { (self.sequence, self.pid) };
        let mut line = format!("{major:3},{minor:<3} {:2} {:8} {seconds:5}.{ns:09} {:5} ", self.cpu, sequence, pid);
        let letters =
            if self.action == Action::NoteMessage { "N".to_owned() } else { self.category.letters(self.bytes) };
        let _ = write!(line, "{:>2} {letters:>3} ", self.action.letters());
        let (sector, nr_sectors) = (self.sector, self.bytes / 512);
        let _ = match (self.action, &self.payload) {
            (Action::NoteMessage, Payload::Message(text)) => write!(line, "{text}"),
            (Action::Complete | Action::Requeue, _) if nr_sectors > 0 => {
                write!(line, "{sector} + {nr_sectors} [{}]", self.error as u16)
            }
            (Action::Complete | Action::Requeue, _) => write!(line, "{sector} [{}]", self.error as u16),
            (Action::Remap, Payload::Remap { from_device, from_sector, .. }) => {
                write!(line, "{sector} + {nr_sectors} <- ({}) {from_sector}", DeviceName(*from_device))
            }
            (Action::Split, Payload::SplitAt(at)) => write!(line, "{sector} / {at} [{name}]"),
            (Action::Unplug | Action::UnplugTimer, Payload::Count(count)) => write!(line, "[{name}] {count}"),
            _ if nr_sectors > 0 => write!(line, "{sector} + {nr_sectors} [{name}]"),
            _ => write!(line, "[{name}]"),
        };
        Some(line)
    }
}
