//! Merges the records of several CPUs into one order: by time, then sequence number, then file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched::Time;

use super::binary::BinaryReader;
use super::{BlkEvent, EventSource};
use crate::error::{TracePlace, Warnings};
use crate::reorder::Reorder;

/// Number of records of one CPU that are held to repair their order. An interrupt handler can write
/// its record before the interrupted code writes a record with an earlier time.
const WINDOW_RECORDS: usize = 64;

/// All files of one trace.
pub(crate) struct Merge {
    files: Vec<(BinaryReader, Reorder<BlkEvent>)>,
    heads: BinaryHeap<Reverse<Head>>,
    started: bool,
    /// Time of the first event that is not a note.
    origin: Option<Time>,
    last_file: usize,
}

struct Head {
    key: (Time, u32, usize),
    event: BlkEvent,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Merge {
    pub(crate) fn new(files: Vec<BinaryReader>) -> Self {
        let files = files.into_iter().map(|file| (file, Reorder::new(WINDOW_RECORDS))).collect();
        Self { files, heads: BinaryHeap::new(), started: false, origin: None, last_file: 0 }
    }

    fn start(&mut self, warnings: &mut Warnings) {
        self.started = true;
        for file in 0..self.files.len() {
            if let Some(head) = self.next_of(file, warnings) {
                self.heads.push(Reverse(head));
            }
        }
    }

    #[inline]
    fn next_of(&mut self, file: usize, warnings: &mut Warnings) -> Option<Head> {
        let (reader, window) = &mut self.files[file];
        while !window.is_full() {
            let Some(event) = reader.next_event(warnings) else { break };
            window.push(event.time.as_ns(), event.sequence, event);
        }
        let event = window.pop()?;
        Some(Head { key: (event.time, event.sequence, file), event })
    }
}

impl EventSource for Merge {
    #[inline]
    fn next_event(&mut self, warnings: &mut Warnings) -> Option<BlkEvent> {
        if !self.started {
            self.start(warnings);
        }
        let file = self.heads.peek()?.0.key.2;
        self.last_file = file;
        let mut event = match self.next_of(file, warnings) {
            Some(next) => std::mem::replace(&mut self.heads.peek_mut()?.0, next).event,
            None => self.heads.pop()?.0.event,
        };
        if self.origin.is_none() && !event.is_note() {
            self.origin = Some(event.time);
        }
        event.time = Time::from_ns(self.origin.map_or(0, |origin| event.time.since(origin)));
        Some(event)
    }

    fn place(&self) -> TracePlace {
        self.files[self.last_file].0.place()
    }

    fn origin_ns(&self) -> u64 {
        self.origin.map_or(0, Time::as_ns)
    }
}
