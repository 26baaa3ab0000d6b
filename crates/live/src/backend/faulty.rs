//! A back end that fails on purpose. A seed determines the faults, so that every failure can be
//! reproduced.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use iosched::{Op, Time};
use iosched_system::{Memory, Segment};

use super::cache::{CachePlan, Lie, VolatileCache, mix};
use super::contract::{Backend, BackendCard, Completion, Extent};
use super::size::bytes_of_size;
use crate::Errno;
use crate::disk::{Command, Measure};
use crate::ring::Submissions;

/// Denominator of the probabilities.
const MILLION: u64 = 1_000_000;

/// A fault of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The command fails and has no effect.
    Error(Errno),
    /// The command starts late. The value is the delay, ns.
    Late(u64),
}

/// Probabilities and ranges of faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Commands with data that fail with EIO, per million.
    pub eio: u32,
    /// Writes that fail with ENOSPC, per million.
    pub enospc: u32,
    /// Commands that start late, per million.
    pub late: u32,
    /// Delay of late commands, ms.
    pub late_ms: u32,
    /// Byte ranges in which every command fails with EIO.
    pub bad: Vec<Range<u64>>,
    /// Volatile write cache in front of the back end.
    pub cache: Option<CachePlan>,
    /// Seed of the random decisions.
    pub seed: u64,
}

/// Error: the text is not a fault plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a known fault. Write eio=N, enospc=N or late=N (N of a million commands), late_ms=N, \
     bad=OFFSET+BYTES, seed=N or cache=SIZE. After cache=SIZE you can add tear=BYTES and lie=KIND. KIND is flush, \
     fua, write or hole"
)]
pub struct FaultPlanError {
    given: String,
}

impl FromStr for FaultPlan {
    type Err = FaultPlanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut plan = Self { late_ms: 100, ..Self::default() };
        for given in text.split(',') {
            plan.set(given).ok_or_else(|| FaultPlanError { given: given.to_owned() })?;
        }
        Ok(plan)
    }
}

impl FaultPlan {
    fn set(&mut self, given: &str) -> Option<()> {
        let (name, value) = given.split_once('=')?;
        let share = || value.parse().ok().filter(|&share: &u32| u64::from(share) <= MILLION);
        match name {
            "eio" => self.eio = share()?,
            "enospc" => self.enospc = share()?,
            "late" => self.late = share()?,
            "late_ms" => self.late_ms = value.parse().ok()?,
            "seed" => self.seed = value.parse().ok()?,
            "bad" => {
                let (offset, bytes) = value.split_once('+')?;
                let (offset, bytes): (u64, u64) = (offset.parse().ok()?, bytes.parse().ok()?);
                self.bad.push(offset..offset.checked_add(bytes)?);
            }
            "cache" => self.cache = Some(CachePlan { bytes: bytes_of_size(value)?, tear_bytes: 512, lie: None }),
            "tear" => {
                let bytes = bytes_of_size(value).filter(|bytes| bytes.is_power_of_two())?;
                self.cache.as_mut()?.tear_bytes = bytes;
            }
            "lie" => self.cache.as_mut()?.lie = Some(lie(value)?),
            _ => return None,
        }
        Some(())
    }

    /// Returns the fault of the `number`th command, if any.
    #[must_use]
    pub fn draw(&self, number: u64, command: &Command) -> Option<Fault> {
        let bytes = command.offset..command.offset + command.length;
        if self.bad.iter().any(|bad| bad.start < bytes.end && bytes.start < bad.end) {
            return Some(Fault::Error(Errno::EIO));
        }
        let happens = |what: u64, share: u32| mix(self.seed ^ mix(number * 4 + what)) % MILLION < u64::from(share);
        if command.op != Op::Flush && happens(0, self.eio) {
            Some(Fault::Error(Errno::EIO))
        } else if command.op == Op::Write && happens(1, self.enospc) {
            Some(Fault::Error(Errno::ENOSPC))
        } else {
            happens(2, self.late).then(|| Fault::Late(u64::from(self.late_ms) * iosched::MILLISECOND_NS))
        }
    }
}

fn lie(name: &str) -> Option<Lie> {
    Some(match name {
        "flush" => Lie::Flush,
        "fua" => Lie::Fua,
        "write" => Lie::Write,
        "hole" => Lie::Hole,
        _ => return None,
    })
}

/// Commands that start late, by start time and number.
type LateCommands = BTreeMap<(Time, u64), (Command, Vec<Segment>)>;

/// A back end with faults in front of it.
pub struct Faulty {
    inner: Box<dyn Backend>,
    card: BackendCard,
    plan: FaultPlan,
    commands: u64,
    late: LateCommands,
}

impl Faulty {
    /// Adds faults in front of `inner`.
    pub(crate) fn new(inner: Box<dyn Backend>, plan: FaultPlan) -> Self {
        let inner = match plan.cache {
            Some(cache) => Box::new(VolatileCache::new(inner, cache, plan.seed)),
            None => inner,
        };
        let card = BackendCard { about: format!("{}, failing on purpose", inner.card().about), ..inner.card().clone() };
        Self { inner, card, plan, commands: 0, late: BTreeMap::new() }
    }
}

impl Backend for Faulty {
    fn card(&self) -> &BackendCard {
        &self.card
    }

    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        self.commands += 1;
        match self.plan.draw(self.commands, command) {
            Some(Fault::Error(errno)) => done.push((command.id, Err(errno))),
            Some(Fault::Late(late_ns)) => {
                self.late.insert((now + late_ns, self.commands), (*command, std::mem::take(segments)));
            }
            None => self.inner.start(now, command, segments, ring, done),
        }
    }

    fn completed(
        &mut self,
        now: Time,
        id: u32,
        result: i32,
        memory: Memory,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        self.inner.completed(now, id, result, memory, ring, done);
    }

    fn gone(&self) -> Option<PathBuf> {
        self.inner.gone()
    }

    fn measure(&self) -> Option<Measure> {
        self.inner.measure()
    }

    fn extent(&self, bytes: Range<u64>) -> Extent {
        self.inner.extent(bytes)
    }

    fn next_event(&self) -> Option<Time> {
        let late = self.late.first_key_value().map(|(&(at, _), _)| at);
        late.into_iter().chain(self.inner.next_event()).min()
    }

    fn advance(&mut self, now: Time, ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let (command, mut segments) = entry.remove();
            self.inner.start(now, &command, &mut segments, ring, done);
        }
        self.inner.advance(now, ring, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_plans_are_parsed_and_wrong_ones_refused() {
        let plan: FaultPlan = "eio=1000,late=5,late_ms=20,bad=4096+512,seed=7".parse().unwrap();
        assert_eq!((plan.eio, plan.late, plan.late_ms, plan.seed), (1000, 5, 20, 7));
        assert_eq!(plan.bad.first(), Some(&(4096..4608)));
        let plan: FaultPlan = "cache=64K,tear=4096,lie=fua,seed=7".parse().unwrap();
        assert_eq!(plan.cache, Some(CachePlan { bytes: 65536, tear_bytes: 4096, lie: Some(Lie::Fua) }));
        for wrong in [
            "cache=x",
            "tear=512",
            "cache=1M,tear=1536",
            "cache=1M,lie=all",
            "",
            "eio",
            "eio=2000000",
            "bad=5",
            "what=1",
            "eio=1,,",
        ] {
            assert!(wrong.parse::<FaultPlan>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn faults_have_the_set_rate_and_repeat_with_the_seed() {
        let plan: FaultPlan = "eio=50000,seed=3".parse().unwrap();
        let command = Command { id: 0, op: Op::Read, offset: 0, length: 512, fua: false, no_hole: false };
        let draws = || (0..100_000).map(|number| plan.draw(number, &command));
        assert!(draws().eq(draws()));
        let failed = draws().flatten().count();
        assert!((4_500..5_500).contains(&failed), "{failed}");
    }
}
