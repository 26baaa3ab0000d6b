//! The common part of the text formats of blkparse and of the kernel's tracepoints: reads block
//! events from the lines of a file.

use std::collections::{BTreeMap, VecDeque};

use iosched::{Op, Time};

use crate::blktrace::{Action, BlkEvent, Category, EventSource, Payload, ProcessName};
use crate::error::{TracePlace, WarningKind, Warnings};
use crate::input::{Input, excerpt};
use crate::names::{NAMES_MAX, Names};
use crate::text::{Line, LineFormat, bad_line, is_comment, plain};

/// Kind of a line.
pub(crate) enum EventLine {
    /// An event, and the name of its process if the line has it.
    Event(BlkEvent, Option<ProcessName>),
    /// Number of events that were lost here.
    Lost(u64),
    /// A heading, a comment or another line of the format that is not a block event.
    Other,
    /// A line that does not fit the format.
    Bad,
}

/// A format of one event per line.
pub(crate) trait EventFormat: Send {
    /// Description of a correct line, for messages.
    const EXPECTED: &'static str;
    /// Whether the reader subtracts the time of the first event from all times.
    const FROM_FIRST: bool;

    fn parse(&mut self, line: &[u8]) -> EventLine;
}

/// Reads one file of text.
pub(crate) struct EventTextReader<F> {
    input: Input,
    format: F,
    origin: Option<Time>,
    names: BTreeMap<u32, ProcessName>,
    last_name: Option<(u32, ProcessName)>,
    waiting: VecDeque<BlkEvent>,
}

impl<F: EventFormat> EventTextReader<F> {
    pub(crate) fn new(input: Input, format: F) -> Self {
        let origin = (!F::FROM_FIRST).then_some(Time::ZERO);
        Self { input, format, origin, names: BTreeMap::new(), last_name: None, waiting: VecDeque::new() }
    }

    /// Returns a note with the name of the event's process, if the name is new.
    fn note(&mut self, event: &BlkEvent, name: ProcessName) -> Option<BlkEvent> {
        if self.last_name == Some((event.pid, name)) {
            return None;
        }
        self.last_name = Some((event.pid, name));
        if self.names.get(&event.pid) == Some(&name) || self.names.len() >= NAMES_MAX {
            return None;
        }
        self.names.insert(event.pid, name);
        Some(BlkEvent {
            sector: 0,
            bytes: 0,
            action: Action::NoteProcess,
            category: Category::NOTIFY,
            device: 0,
            error: 0,
            payload: Payload::Name(name),
            ..*event
        })
    }
}

impl<F: EventFormat> EventSource for EventTextReader<F> {
    fn next_event(&mut self, warnings: &mut Warnings) -> Option<BlkEvent> {
        if let Some(event) = self.waiting.pop_front() {
            return Some(event);
        }
        loop {
            let Some((line, length)) = self.input.line(warnings) else {
                self.input.warn_failure(warnings);
                return None;
            };
            let parsed = self.format.parse(line);
            let line = line.trim_ascii();
            let is_bad = matches!(parsed, EventLine::Bad) && !line.is_empty() && !is_comment(line);
            let found = if is_bad { excerpt(line) } else { String::new() };
            warnings.tally.lines += u64::from(!line.is_empty());
            if !self.input.line_ended() && self.input.has_failed() {
                // Reading failed within this line, so the line is truncated, even if it looks
                // complete.
                continue;
            }
            match parsed {
                EventLine::Event(mut event, name) => {
                    if !self.input.line_ended() {
                        warnings.push(self.input.line_place(length), WarningKind::NoLineEnd);
                    }
                    let origin = *self.origin.get_or_insert(event.time);
                    event.time = Time::from_ns(event.time.since(origin));
                    let Some(note) = name.and_then(|name| self.note(&event, name)) else { return Some(event) };
                    self.waiting.push_back(event);
                    return Some(note);
                }
                EventLine::Lost(records) => {
                    warnings.push(self.input.line_place(length), WarningKind::Dropped { records });
                }
                EventLine::Bad if is_bad => {
                    warnings.push(self.input.line_place(length), bad_line(&self.input, found, F::EXPECTED));
                }
                EventLine::Bad | EventLine::Other => {}
            }
        }
    }

    fn place(&self) -> TracePlace {
        self.input.line_place(0)
    }

    fn origin_ns(&self) -> u64 {
        self.origin.map_or(0, Time::as_ns)
    }
}

/// The lines of the format, to detect the format of a file.
pub(crate) struct Lines<F>(pub(crate) F);

impl<F: EventFormat> LineFormat for Lines<F> {
    const EXPECTED: &'static str = F::EXPECTED;

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        match self.0.parse(line) {
            EventLine::Event(event, _) => Line::Request(plain(event.time, Op::Read, event.sector, 0)),
            EventLine::Lost(_) | EventLine::Other => Line::Other,
            EventLine::Bad => Line::Bad,
        }
    }
}
