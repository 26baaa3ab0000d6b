//! Properties that must hold for any commands, tested with random commands.

use crate::common::{Outcome, closed_loop};
use iosched::Op::{self, Discard, Flush, Read, Write, WriteZeroes};
use iosched::Time;
use iosched_disk::hdd::{ReadAheadAfter, ReadAheadUntil};
use iosched_disk::{Command, Device, Hdd, HddConfig, Model, Profile, Ssd};
use proptest::prelude::*;

/// A small disk with many boundaries: short tracks, two zones, a cache of a few extents.
const SMALL: &str = r#"
kind = "hdd"
[hdd]
capacity_sectors = 9_990
depth = 8
rpm = 7200.0
heads = 3
head_switch_ns = 700_000
write_settle_ns = 300_000
seek.table = [{ cylinders = 1, ns = 900_000 }, { cylinders = 10, ns = 2_000_000 }, { cylinders = 40, ns = 5_000_000 }]
zones = [{ cylinders = 20, sectors_per_track = 101 }, { cylinders = 21, sectors_per_track = 64 }]
interface = { command_ns = 20_000, bytes_per_second = 300_000_000 }
queue = { starvation_ns = 200_000_000 }
read_cache = { segments = 3, segment_sectors = 300, read_ahead_sectors = 200, sequential_read_ahead_sectors = 10 }
[hdd.write_cache]
enabled = true
sectors = 256
extents = 6
high_percent = 60
idle_ns = 3_000_000
destage_sectors = 32
"#;

fn small() -> HddConfig {
    match Profile::parse("small", SMALL).unwrap().model() {
        Model::Hdd(config) => (**config).clone(),
        _ => unreachable!("kind is hdd"),
    }
}

/// Generates small disks with all kinds of read-ahead.
fn any_small() -> impl Strategy<Value = HddConfig> {
    let after = prop_oneof![Just(ReadAheadAfter::AnyRead), Just(ReadAheadAfter::ContinuedRead)];
    let until = [ReadAheadUntil::Distance, ReadAheadUntil::Track, ReadAheadUntil::NextTrack, ReadAheadUntil::Cylinder];
    (after, prop::sample::select(until.to_vec()), any::<bool>()).prop_map(|(after, until, replace)| {
        let mut config = small();
        config.read_cache.read_ahead_after = after;
        config.read_cache.read_ahead_until = until;
        config.read_cache.replace_requested = replace;
        config
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![8 => Just(Read), 8 => Just(Write), 1 => Just(WriteZeroes), 1 => Just(Discard), 2 => Just(Flush)]
}

/// Generates commands within `capacity`, with think times. Some commands are at the very end.
/// Others directly follow the previous command.
fn commands(capacity: u64) -> impl Strategy<Value = Vec<(u64, Command)>> {
    let sector = prop_oneof![4 => 0..capacity, 1 => capacity - 20..capacity, 4 => Just(u64::MAX)];
    let nr_sectors = prop_oneof![8 => 1u32..40, 1 => 1u32..2000];
    let think_ns = prop_oneof![4 => Just(0u64), 2 => 0u64..100_000, 1 => 0u64..30_000_000];
    let command = (op(), sector, nr_sectors, think_ns, prop::bool::weighted(0.1));
    prop::collection::vec(command, 1..120).prop_map(move |list| {
        let mut follows = 0;
        let mut build = |(op, sector, nr_sectors, think_ns, fua): (Op, u64, u32, u64, bool)| {
            let sector = if sector == u64::MAX { follows % capacity } else { sector };
            let nr_sectors = if op == Flush { 0 } else { nr_sectors.min((capacity - sector) as u32) };
            follows = sector + u64::from(nr_sectors);
            (think_ns, Command { tag: 0, op, sector: if op == Flush { 0 } else { sector }, nr_sectors, fua })
        };
        list.into_iter().map(&mut build).collect()
    })
}

/// A device whose write cache is checked. After every call, the contents of the cache, including
/// the current write of the head, must fit into the cache. When a flush completes, the cache must
/// not have data that was acknowledged before the submission of the flush.
struct Watched {
    hdd: Hdd,
    /// Sectors of the cache, plus the sectors that the head writes in one operation.
    most: u64,
    outstanding: Vec<Option<Command>>,
    /// Total sectors of the writes that were submitted, and of the writes that completed.
    submitted: u64,
    acknowledged: u64,
    /// Value of `acknowledged` at the submission of each flush. The index is the tag.
    before: Vec<u64>,
}

impl Watched {
    fn new(config: &HddConfig) -> Self {
        Self {
            hdd: Hdd::new(config).unwrap(),
            most: u64::from(config.write_cache.sectors) + u64::from(config.write_cache.destage_sectors),
            outstanding: vec![None; config.depth as usize],
            submitted: 0,
            acknowledged: 0,
            before: vec![0; config.depth as usize],
        }
    }
}

impl Device for Watched {
    fn card(&self) -> &iosched_disk::Card {
        self.hdd.card()
    }

    fn submit(&mut self, now: Time, command: Command) {
        if command.op.is_write() {
            self.submitted += u64::from(command.nr_sectors);
        }
        self.before[command.tag as usize] = self.acknowledged;
        self.outstanding[command.tag as usize] = Some(command);
        self.hdd.submit(now, command);
        assert!(self.hdd.dirty_sectors() <= self.most);
    }

    fn next_event(&self) -> Option<Time> {
        self.hdd.next_event()
    }

    fn advance(&mut self, now: Time) -> Option<u32> {
        let tag = self.hdd.advance(now);
        assert!(self.hdd.dirty_sectors() <= self.most);
        let command = self.outstanding[tag? as usize].take().expect("outstanding");
        if command.op.is_write() {
            self.acknowledged += u64::from(command.nr_sectors);
        }
        if command.op == Flush {
            let since = self.submitted - self.before[command.tag as usize];
            assert!(self.hdd.dirty_sectors() <= since, "{} dirty, {since} since", self.hdd.dirty_sectors());
        }
        tag
    }
}

fn run(config: &HddConfig, depth: u32, commands: &[(u64, Command)]) -> (Vec<Outcome>, Hdd) {
    let mut device = Watched::new(config);
    let mut commands = commands.iter().copied();
    let outcomes = closed_loop(&mut device, depth, || commands.next());
    (outcomes, device.hdd)
}

/// Returns the time in which this number of sectors passes in the outer zone, ns. No transfer from
/// the medium is faster.
fn transfer_ns(config: &HddConfig, nr_sectors: u64) -> u64 {
    nr_sectors * (60e9 / config.rpm) as u64 / u64::from(config.zones[0].sectors_per_track)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_command_completes_once_and_not_too_early(config in any_small(), commands in commands(9_990), depth in 1u32..=8) {
        let (outcomes, _) = run(&config, depth, &commands);
        prop_assert_eq!(outcomes.len(), commands.len());
        for outcome in &outcomes {
            let data = if matches!(outcome.command.op, Discard | Flush) { 0 } else { outcome.command.nr_sectors };
            let link_ns = (f64::from(data.min(8)) * 512e9 / 300e6) as u64;
            prop_assert!(outcome.latency_ns() >= config.interface.command_ns.min(link_ns), "{:?}", outcome);
        }
    }

    #[test]
    fn without_caches_nothing_is_faster_than_seek_and_transfer(commands in commands(9_990)) {
        let mut config = small();
        config.write_cache.enabled = false;
        config.read_cache.segments = 1;
        config.read_cache.segment_sectors = 1;
        config.read_cache.read_ahead_sectors = 0;
        config.read_cache.sequential_read_ahead_sectors = 0;
        let (outcomes, hdd) = run(&config, 1, &commands);
        let mut at = None;
        for outcome in outcomes.iter().filter(|outcome| !matches!(outcome.command.op, Discard | Flush)) {
            let Command { sector, nr_sectors, op, .. } = outcome.command;
            let seek_ns = at.map_or(0, |at| hdd.seek_ns(at, sector));
            // A segment can already have the first requested sector.
            let medium_ns = transfer_ns(&config, u64::from(nr_sectors) - u64::from(op == Read).min(u64::from(nr_sectors)));
            if op == Read && nr_sectors == 1 {
                // The test cannot see whether the head moved.
                at = None;
                continue;
            }
            let least_ns = config.interface.command_ns + seek_ns + medium_ns;
            prop_assert!(outcome.latency_ns() + 500 >= least_ns, "{:?} after {:?}", outcome, at);
            at = Some(sector + u64::from(nr_sectors) - 1);
        }
    }

    #[test]
    fn flush_of_an_idle_disk_leaves_no_dirty_sectors(commands in commands(9_990), depth in 1u32..=8) {
        let mut commands = commands;
        let config = small();
        let (_, mut hdd) = run(&config, depth, &commands);
        commands.clear();
        let now = hdd.next_event().unwrap_or(Time::from_ns(u64::MAX / 2));
        hdd.submit(now, Command { tag: 0, op: Flush, sector: 0, nr_sectors: 0, fua: false });
        while let Some(at) = hdd.next_event() {
            if hdd.advance(at).is_some() {
                break;
            }
        }
        prop_assert_eq!(hdd.dirty_sectors(), 0);
    }

    #[test]
    fn the_same_commands_give_the_same_completions(commands in commands(9_990), depth in 1u32..=8) {
        prop_assert_eq!(run(&small(), depth, &commands).0, run(&small(), depth, &commands).0);
    }

    #[test]
    fn command_latency_stays_within_the_starvation_bound(config in any_small(), commands in commands(9_990), depth in 1u32..=8) {
        let (outcomes, _) = run(&config, depth, &commands);
        // Only older commands precede a command that has waited too long. Each takes at most the
        // longest seek, a revolution, its transfer with track switches, and a piece of writing
        // back.
        let longest_ns = outcomes
            .iter()
            .map(|outcome| transfer_ns(&config, u64::from(outcome.command.nr_sectors)) * 4)
            .max()
            .unwrap_or(0);
        let service_ns = 5_000_000 + 2 * 8_400_000 + longest_ns;
        let bound_ns = config.queue.starvation_ns + 2 * u64::from(depth + 8) * service_ns;
        for outcome in outcomes.iter().filter(|outcome| outcome.command.op != Flush) {
            prop_assert!(outcome.latency_ns() <= bound_ns, "{:?}", outcome);
        }
    }

    #[test]
    fn sata_7200_profile_completes_random_commands(seed in any::<u64>(), depth in 1u32..=31) {
        let profile = Profile::named("sata-7200").unwrap();
        let capacity = profile.card().capacity_sectors;
        let mut random = iosched_numbers::SplitMix64::new(seed);
        let mut left = 60;
        let mut device = profile.device(seed);
        let outcomes = closed_loop(&mut device, depth, || {
            left -= 1;
            let op = [Read, Read, Write, Write, Flush][random.below(5) as usize];
            let nr_sectors = [8, 256, 65_534][random.below(3) as usize];
            // Commands can cross zones, and can end at the last sector.
            let sector = if random.below(4) == 0 { capacity - nr_sectors } else { random.below(capacity - nr_sectors + 1) };
            let command = Command { tag: 0, op, sector, nr_sectors: nr_sectors as u32, fua: random.below(9) == 0 };
            (left >= 0).then_some((random.below(3) * 200_000, command))
        });
        prop_assert_eq!(outcomes.len(), 60);
    }

    #[test]
    fn ssd_completes_every_command_once_and_not_too_early(commands in commands(9_990), depth in 1u32..=32) {
        let profile = Profile::named("sata-ssd").unwrap();
        let Model::Ssd(config) = profile.model() else { unreachable!("sata-ssd is an ssd") };
        let mut config = (**config).clone();
        config.buffer.sectors = 64;
        let mut device = Ssd::new(&config).unwrap();
        let mut list = commands.iter().copied();
        let outcomes = closed_loop(&mut device, depth, || list.next());
        prop_assert_eq!(outcomes.len(), commands.len());
        for outcome in &outcomes {
            let least_ns = match outcome.command.op {
                Read => config.interface.read_latency_ns + config.interface.read_command_ns,
                _ => config.interface.write_latency_ns,
            };
            prop_assert!(outcome.latency_ns() >= least_ns, "{:?}", outcome);
        }
    }
}
