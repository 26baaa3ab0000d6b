//! A back end for tests, with an image that outlives its servers. Commands take time and complete
//! in any order. A write may change some blocks when it starts, and changes all its blocks when it
//! ends. If the server ends in between, the write is torn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use iosched::{MILLISECOND_NS, Op, Time};
use iosched_check::Random;
use iosched_system::Segment;

use crate::backend::{Backend, BackendCard, Completion};
use crate::disk::Command;
use crate::ring::Submissions;

/// Content of the medium.
pub(crate) type Image = Arc<Mutex<Vec<u8>>>;

struct UnderWay {
    command: Command,
    segments: Vec<Segment>,
}

/// A back end for tests. See the documentation of this module.
pub(crate) struct Platter {
    card: BackendCard,
    image: Image,
    random: Random,
    numbers: u64,
    under_way: BTreeMap<(Time, u64), UnderWay>,
}

impl Platter {
    /// Creates the back end. `random` determines the durations.
    pub(crate) fn new(card: BackendCard, image: Image, random: Random) -> Self {
        Self { card, image, random, numbers: 0, under_way: BTreeMap::new() }
    }

    fn write(&mut self, under_way: &UnderWay, blocks: impl Fn(&mut Random) -> bool) {
        let UnderWay { command, segments } = under_way;
        let new: Vec<u8> = match command.op {
            Op::Write => segments.iter().flat_map(|segment| segment.iter()).copied().collect(),
            _ => vec![0; command.length as usize],
        };
        let block_bytes = self.card.block_bytes as usize;
        let mut image = self.image.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, new) in new.chunks(block_bytes).enumerate() {
            if blocks(&mut self.random) {
                let at = command.offset as usize + number * block_bytes;
                image[at..at + block_bytes].copy_from_slice(new);
            }
        }
    }

    fn end(&mut self, mut under_way: UnderWay) -> Completion {
        match under_way.command.op {
            Op::Flush => {}
            Op::Read => {
                let mut at = under_way.command.offset as usize;
                let image = self.image.lock().unwrap_or_else(PoisonError::into_inner);
                for segment in &mut under_way.segments {
                    let length = segment.len();
                    segment.copy_from_slice(&image[at..at + length]);
                    at += length;
                }
            }
            Op::Write | Op::Discard | Op::WriteZeroes => self.write(&under_way, |_| true),
        }
        (under_way.command.id, Ok(()))
    }
}

impl Backend for Platter {
    fn card(&self) -> &BackendCard {
        &self.card
    }

    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        _ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        let under_way = UnderWay { command: *command, segments: std::mem::take(segments) };
        let latency_ns = match self.random.index(20) {
            0..5 => 0,
            5..19 => self.random.below(100_000),
            _ => self.random.below(20 * MILLISECOND_NS),
        };
        if latency_ns == 0 {
            done.push(self.end(under_way));
            return;
        }
        if !matches!(command.op, Op::Read | Op::Flush) && self.random.chance(50) {
            self.write(&under_way, |random| random.chance(50));
        }
        self.numbers += 1;
        self.under_way.insert((now + latency_ns, self.numbers), under_way);
    }

    fn next_event(&self) -> Option<Time> {
        self.under_way.first_key_value().map(|(&(at, _), _)| at)
    }

    fn advance(&mut self, now: Time, _ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let under_way = entry.remove();
            done.push(self.end(under_way));
        }
    }
}
