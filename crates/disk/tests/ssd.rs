//! Behaviour of flash, one property per test.

use crate::common::{Outcome, at_once, closed_loop};
use iosched::Op::{self, Discard, Flush, Read, Write};
use iosched::Time;
use iosched_disk::ssd::{Ssd, SsdCacheConfig, SsdConfig, SsdQuickReadConfig, SsdStartConfig};
use iosched_disk::{Command, Device, Model, Profile, StartState};
use iosched_numbers::SplitMix64;

fn config() -> SsdConfig {
    match Profile::named("sata-ssd").unwrap().model() {
        Model::Ssd(config) => (**config).clone(),
        _ => unreachable!("sata-ssd is an ssd"),
    }
}

/// Returns a configuration of 256 MiB, which is small enough to be overwritten several times.
fn small() -> SsdConfig {
    let mut config = config();
    config.capacity_sectors = 1 << 19;
    config.flash.erase_sectors = 256;
    config.buffer.sectors = 2048;
    config.cleaning.spare_percent = 10.0;
    config
}

fn list(device: &mut Ssd, depth: u32, commands: &[(u64, Command)]) -> Vec<Outcome> {
    let mut commands = commands.iter().copied();
    closed_loop(device, depth, || commands.next())
}

/// Runs `count` random 4 KiB commands, `depth` at a time. Returns the time per command, ns.
fn random_ns(device: &mut Ssd, op: Op, depth: u32, count: u64) -> u64 {
    let (mut random, mut left, blocks) = (SplitMix64::new(3), count, device.card().capacity_sectors / 8);
    let outcomes = closed_loop(device, depth, || {
        left = left.checked_sub(1)?;
        Some(at_once(op, random.below(blocks) * 8, 8))
    });
    (outcomes[outcomes.len() - 1].done_ns - outcomes[0].submitted_ns) / count
}

#[test]
fn buffered_pages_are_not_read_from_flash() {
    let config = config();
    let outcomes = list(
        &mut Ssd::new(&config).unwrap(),
        1,
        &[
            at_once(Write, 800, 16),
            at_once(Read, 808, 8),
            at_once(Read, 808, 16),
            (1_000_000_000, at_once(Flush, 0, 0).1),
            at_once(Read, 808, 8),
        ],
    );
    assert!(outcomes[1].latency_ns() < config.flash.read_ns, "{outcomes:?}");
    assert!(outcomes[2].latency_ns() > config.flash.read_ns, "half of the range is not in the buffer: {outcomes:?}");
    assert!(outcomes[4].latency_ns() > config.flash.read_ns, "{outcomes:?}");
}

#[test]
fn a_full_buffer_makes_writes_wait_for_programs() {
    let mut config = config();
    config.buffer.sectors = 2 * config.flash.program_sectors;
    config.interface.bytes_per_second = 10_000_000_000;
    config.interface.write_command_ns = 0;
    let per_write_ns = random_ns(&mut Ssd::new(&config).unwrap(), Write, 32, 4000);
    // At most two units of four writes each are in flight.
    let floor_ns = config.flash.program_ns / 8;
    assert!((floor_ns..floor_ns * 5 / 4).contains(&per_write_ns), "{per_write_ns}, {floor_ns}");
}

#[test]
fn a_write_larger_than_the_buffer_goes_through_it_in_pieces() {
    let mut config = config();
    config.buffer.sectors = 2 * config.flash.program_sectors;
    let mut device = Ssd::new(&config).unwrap();
    let outcomes = list(&mut device, 1, &[at_once(Write, 3, 4096), at_once(Flush, 0, 0)]);
    assert_eq!(outcomes.len(), 2);
    assert!(device.buffered_sectors() == 0);
}

#[test]
fn flush_waits_for_writes_and_second_flush_is_immediate() {
    let config = config();
    let list = |commands: &[_]| list(&mut Ssd::new(&config).unwrap(), 1, commands);
    let outcomes = list(&[at_once(Write, 0, 8), at_once(Flush, 0, 0), at_once(Flush, 0, 0)]);
    assert!(outcomes[0].latency_ns() < 100_000);
    assert!(outcomes[1].latency_ns() > config.flash.program_ns + config.buffer.flush_ns, "{outcomes:?}");
    assert!(outcomes[2].latency_ns() < 100_000, "{outcomes:?}");
}

#[test]
fn with_power_loss_protection_flush_is_immediate() {
    let mut config = config();
    config.buffer.power_loss_protection = true;
    config.buffer.flush_ns = 1000;
    let mut device = Ssd::new(&config).unwrap();
    assert!(!device.card().write_cache);
    let fua = (0, Command { tag: 0, op: Write, sector: 0, nr_sectors: 8, fua: true });
    let outcomes = list(&mut device, 1, &[fua, at_once(Flush, 0, 0)]);
    assert!(outcomes.iter().all(|outcome| outcome.latency_ns() < 100_000), "{outcomes:?}");
    config.buffer.reported = Some(true);
    assert!(Ssd::new(&config).unwrap().card().write_cache);
}

#[test]
fn fua_write_waits_for_its_program() {
    let config = config();
    let fua = (0, Command { tag: 0, op: Write, sector: 0, nr_sectors: 8, fua: true });
    let outcomes = list(&mut Ssd::new(&config).unwrap(), 1, &[fua]);
    assert!(outcomes[0].latency_ns() > config.flash.program_ns, "{outcomes:?}");
}

#[test]
fn program_suspension_reduces_read_latency() {
    let run = |suspends_max| {
        let mut config = small();
        config.flash.suspends_max = suspends_max;
        config.start = SsdStartConfig::STEADY;
        let mut device = Ssd::new(&config).unwrap();
        let (mut random, mut i) = (SplitMix64::new(9), 0);
        let outcomes = closed_loop(&mut device, 8, || {
            i += 1;
            let op = if i % 4 == 0 { Write } else { Read };
            (i <= 20_000).then(|| at_once(op, random.below(1 << 16) * 8, 8))
        });
        let reads = outcomes.iter().filter(|outcome| outcome.command.op == Read);
        let mut reads: Vec<u64> = reads.map(|outcome| outcome.latency_ns()).collect();
        reads.sort_unstable();
        (reads[reads.len() * 9 / 10], outcomes.len())
    };
    let ((interrupting_ns, all), (waiting_ns, _)) = (run(4), run(0));
    assert_eq!(all, 20_000);
    assert!(interrupting_ns * 3 < waiting_ns * 2, "{interrupting_ns} interrupting, {waiting_ns} waiting");
}

#[test]
fn cleaning_slows_random_writes_in_the_steady_state() {
    let fresh = small();
    let mut device = Ssd::new(&fresh).unwrap();
    let fresh_ns = random_ns(&mut device, Write, 32, 30_000);
    assert_eq!(device.wear().write_amplification(), 1.0);
    let mut device = Ssd::new(&SsdConfig { start: SsdStartConfig::STEADY, ..fresh }).unwrap();
    let steady_ns = random_ns(&mut device, Write, 32, 60_000);
    let amplification = device.wear().write_amplification();
    assert!(amplification > 3.0, "{amplification}");
    assert!(
        steady_ns as f64 > fresh_ns as f64 * amplification * 0.5,
        "{fresh_ns}, then {steady_ns} at {amplification}"
    );
    assert!(device.wear().erased_blocks > 0);
}

#[test]
fn after_a_full_discard_writes_move_no_pages() {
    let config = SsdConfig { start: SsdStartConfig::STEADY, ..small() };
    let mut device = Ssd::new(&config).unwrap();
    list(&mut device, 1, &[at_once(Discard, 0, 1 << 19)]);
    random_ns(&mut device, Write, 32, 20_000);
    assert_eq!(device.wear().moved_pages, 0, "no valid pages must be moved");
}

#[test]
fn writing_a_part_of_a_page_reads_the_rest() {
    // With one die, a simultaneous read must wait until the rest of the page is read.
    let read_ns = |nr_sectors| {
        let mut config = config();
        (config.flash.dies, config.flash.channels, config.flash.erase_sectors) = (1, 1, 1 << 20);
        let commands = [at_once(Write, 16, nr_sectors), (12_000, at_once(Read, 800, 8).1)];
        list(&mut Ssd::new(&config).unwrap(), 2, &commands)[1].latency_ns()
    };
    assert!(read_ns(1) > read_ns(8) + config().flash.read_ns / 2, "{} after a part, {}", read_ns(1), read_ns(8));
}

#[test]
fn devices_of_one_profile_and_seed_behave_identically() {
    let profile = Profile::named("sata-ssd:steady").unwrap();
    assert_eq!((profile.name(), profile.about().ends_with("steady")), ("sata-ssd:steady", true));
    let run = |count| {
        let mut device = profile.device(1);
        let (mut random, mut left) = (SplitMix64::new(3), count);
        closed_loop(&mut device, 32, || {
            left -= 1;
            (left >= 0).then(|| at_once(Write, random.below(1 << 20) * 8, 8))
        })
    };
    assert_eq!(run(3000), run(3000));
}

#[test]
fn start_state_is_an_error_for_a_rotating_disk() {
    let error = Profile::named("sata-7200:steady").unwrap_err().to_string();
    assert!(
        error.contains("sata-7200:steady") && error.contains("only a device of kind ssd has this state"),
        "{error}"
    );
    assert!(Profile::named("sata-ssd:fresh").is_ok());
    assert!(Profile::named("sata-ssd:full").unwrap_err().to_string().contains("no device profile \"sata-ssd:full\""));
}

#[test]
fn depth_suffix_reduces_the_queue_depth() {
    let profile = Profile::named("sata-7200:depth=1").unwrap();
    assert_eq!((profile.name(), profile.card().depth), ("sata-7200:depth=1", 1));
    assert!(profile.anchors().iter().all(|anchor| anchor.figure.depth() == 1) && !profile.anchors().is_empty());
    assert_eq!(Profile::named("nvme:steady:depth=4").unwrap().card().depth, 4);
    let error = Profile::named("sata-7200:depth=32").unwrap_err().to_string();
    assert_eq!(error, "sata-7200: depth: the queue depth is out of range; give a depth from 1 to 31 for this device");
    assert!(Profile::named("sata-7200:depth=many").is_err());
    assert!(Profile::named("san-lun:depth=2").unwrap_err().to_string().contains("array.depth"));
}

#[test]
fn errors_name_the_wrong_parameter() {
    let check = |change: fn(&mut SsdConfig), part: &str| {
        let mut config = config();
        change(&mut config);
        let error = Ssd::new(&config).unwrap_err().to_string();
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    };
    check(|config| config.flash.dies = 0, "ssd.flash.dies: 0 is out of range");
    check(|config| config.flash.channels = 17, "ssd.flash.channels: 17 is out of range; it must be from 1 to 16");
    check(|config| config.flash.program_sectors = 12, "ssd.flash.program_sectors: 12 is not a multiple of 8");
    check(|config| config.flash.erase_sectors += 8, "ssd.flash.erase_sectors: 65544 is not a multiple of 32");
    check(|config| config.buffer.sectors = 32, "ssd.buffer.sectors");
    check(|config| config.cleaning.spare_percent = f64::NAN, "ssd.cleaning.spare_percent: NaN is out of range");
    check(
        |config| config.flash.erase_sectors = 1 << 23,
        "ssd.cleaning.spare_percent: with this value, the SSD has 15 blocks",
    );
    check(|config| config.flash.erase_sectors = 32, "ssd.flash.erase_sectors: the SSD has 4082562 blocks");
    check(|config| config.start.filled_percent = 101, "ssd.start.filled_percent");
}

/// Returns a configuration with a buffer of two units, and a link without delay.
fn with_little_buffer() -> SsdConfig {
    let mut config = config();
    config.buffer.sectors = 2 * config.flash.program_sectors;
    config.interface.bytes_per_second = 10_000_000_000;
    config.interface.write_command_ns = 0;
    config
}

#[test]
fn reads_wait_behind_a_full_buffer_without_free_slots() {
    let read_ns = |command_slots| {
        let mut config = with_little_buffer();
        config.depth = 65;
        config.interface.command_slots = command_slots;
        let mut commands: Vec<_> = (0..64).map(|i| at_once(Write, i * 800, 8)).collect();
        commands.push((1_000, at_once(Read, 1 << 20, 8).1));
        let outcomes = list(&mut Ssd::new(&config).unwrap(), 65, &commands);
        outcomes.iter().find(|outcome| outcome.command.op == Read).unwrap().latency_ns()
    };
    let (free, blocked) = (read_ns(None), read_ns(Some(16)));
    let program_ns = config().flash.program_ns;
    assert!(free < program_ns, "{free}");
    // 49 writes come first: four per unit, and two units at a time.
    assert!((5 * program_ns..7 * program_ns).contains(&blocked), "{blocked}");
    assert!(read_ns(Some(65)) == free);
}

#[test]
fn a_bound_on_programs_limits_the_rate_of_writes() {
    let mut config = config();
    let unit_writes = u64::from(config.flash.program_sectors / 8);
    config.flash.programs_max = Some(2);
    let per_write_ns = random_ns(&mut Ssd::new(&config).unwrap(), Write, 256, 20_000);
    let floor_ns = config.flash.program_ns / unit_writes / 2;
    assert!((floor_ns * 8 / 10..floor_ns * 12 / 10).contains(&per_write_ns), "{per_write_ns}, {floor_ns}");
}

#[test]
fn writes_are_fast_until_the_cache_is_full() {
    let mut config = with_little_buffer();
    let unit = u64::from(config.flash.program_sectors);
    config.flash.programs_max = Some(2);
    config.cache = Some(SsdCacheConfig { sectors: 1000 * unit, program_ns: config.flash.program_ns / 10 });
    let mut device = Ssd::new(&config).unwrap();
    let before = random_ns(&mut device, Write, 64, 900 * unit / 8);
    random_ns(&mut device, Write, 64, 200 * unit / 8);
    let after = random_ns(&mut device, Write, 64, 1000 * unit / 8);
    // Each unit takes a tenth of a program in the cache, and then a full program for the moved
    // unit.
    assert!((8 * before..13 * before).contains(&after), "{before}, then {after}");
    config.start.overwritten_percent = 100;
    let full = random_ns(&mut Ssd::new(&config).unwrap(), Write, 64, 900 * unit / 8);
    assert!((after * 8 / 10..after * 12 / 10).contains(&full), "{full}, {after}");
}

#[test]
fn bursts_of_cleaning_stop_writes_for_longer_at_the_same_rate() {
    let run = |burst_sectors| {
        let mut config = small();
        config.start = SsdStartConfig::STEADY;
        config.flash.programs_max = Some(2);
        config.buffer.sectors = 2 * config.flash.program_sectors;
        config.cleaning.burst_sectors = burst_sectors;
        config.flash.erase_ns = 0;
        let mut device = Ssd::new(&config).unwrap();
        let (mut random, mut left) = (SplitMix64::new(3), 20_000u64);
        let outcomes = closed_loop(&mut device, 64, || {
            left = left.checked_sub(1)?;
            Some(at_once(Write, random.below(1 << 16) * 8, 8))
        });
        let longest = outcomes.iter().map(|outcome| outcome.latency_ns()).max().unwrap();
        (outcomes[outcomes.len() - 1].done_ns, longest, u64::from(config.flash.program_sectors))
    };
    let ((smooth_ns, smooth_longest, unit), (burst_ns, burst_longest, _)) = (run(0), run(32_768));
    assert!((burst_ns as f64 / smooth_ns as f64 - 1.0).abs() < 0.1, "{smooth_ns}, {burst_ns}");
    let program_ns = small().flash.program_ns;
    assert!(smooth_longest < burst_longest / 3, "{smooth_longest}, {burst_longest}");
    assert!(burst_longest > 32_768 / unit / 2 * program_ns, "{burst_longest}");
}

/// Returns the longest latency of a read, ns, in a run with 256 writes and one read at a time.
fn longest_read_during_writes_ns(cached_programs: u32) -> u64 {
    let mut config = with_little_buffer();
    config.buffer.sectors = 64 * config.flash.program_sectors;
    config.flash.programs_max = Some(config.flash.dies / 3);
    config.flash.suspends_max = 0;
    config.flash.cached_programs = cached_programs;
    let mut device = Ssd::new(&config).unwrap();
    let (mut random, mut left) = (SplitMix64::new(3), 40_000u64);
    let blocks = config.capacity_sectors / 8;
    let outcomes = closed_loop(&mut device, 32, || {
        left = left.checked_sub(1)?;
        Some(at_once(if left % 40 == 0 { Read } else { Write }, random.below(blocks) * 8, 8))
    });
    outcomes.iter().filter(|outcome| outcome.command.op == Read).map(|outcome| outcome.latency_ns()).max().unwrap()
}

#[test]
fn reads_wait_for_programs_that_begin_from_the_cache_register() {
    let program_ns = config().flash.program_ns;
    let (alone, cached) = (longest_read_during_writes_ns(0), longest_read_during_writes_ns(1));
    assert!((program_ns / 2..program_ns * 3 / 2).contains(&alone), "one program: {alone}");
    assert!((program_ns * 3 / 2..program_ns * 5 / 2).contains(&cached), "two programs: {cached}");
}

#[test]
fn the_controller_fetches_from_its_queues_in_turn() {
    let mut config = config();
    config.hw_queues = 2;
    config.interface.command_slots = Some(1);
    let mut device = Ssd::new(&config).unwrap();
    // Queue 0 gets five commands before queue 1 gets two.
    let queues = [0, 0, 0, 0, 0, 1, 1];
    for (tag, queue) in (0..).zip(queues) {
        let command = Command { tag, op: Read, sector: u64::from(tag) * 800, nr_sectors: 8, fua: false };
        device.submit_to(Time::ZERO, queue, command);
    }
    let mut order = Vec::new();
    while let Some(now) = device.next_event() {
        order.extend(device.advance(now));
    }
    assert_eq!(order, [0, 1, 5, 2, 6, 3, 4]);
}

#[test]
fn specimens_differ_by_up_to_specimens_percent() {
    let mut config = config();
    assert_eq!(config.specimen(3), config, "no difference is given");
    config.specimens_percent = 8.0;
    assert_eq!(config.specimen(0), config, "the first disk is the profile");
    let times: Vec<u64> = (1..8).map(|number| config.specimen(number).flash.read_ns).collect();
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    let read_ns = config.flash.read_ns;
    assert!((read_ns * 92 / 100..read_ns * 96 / 100).contains(least), "{times:?}");
    assert!((read_ns * 105 / 100..=read_ns * 108 / 100).contains(most), "{times:?}");
    let mut different = times.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 7, "{times:?}");
    let slow = config.specimen(1);
    assert!(slow.interface.bytes_per_second < config.interface.bytes_per_second && slow.validate().is_ok());
}

#[test]
fn a_large_read_is_served_by_several_dies_at_once() {
    let config = config();
    let latency =
        |nr_sectors| list(&mut Ssd::new(&config).unwrap(), 1, &[at_once(Read, 0, nr_sectors)])[0].latency_ns();
    let one = latency(config.flash.read_sectors);
    let data_ns = u64::from(8 * config.flash.read_sectors) * 512 * 1_000_000_000 / config.interface.bytes_per_second;
    let eight = latency(8 * config.flash.read_sectors);
    assert!(eight < one + data_ns + config.flash.read_ns / 2, "{one}, {eight}");
}

#[test]
fn quick_reads_and_further_pages_have_separate_times() {
    let mut config = config();
    let latency = |config: &SsdConfig, nr_sectors| {
        list(&mut Ssd::new(config).unwrap(), 1, &[at_once(Read, 0, nr_sectors)])[0].latency_ns()
    };
    let (small, large) = (latency(&config, 8), latency(&config, 32));
    config.flash.quick_read = Some(SsdQuickReadConfig { sectors: 8, ns: config.flash.read_ns / 2 });
    assert_eq!(latency(&config, 8), small - config.flash.read_ns.div_ceil(2));
    assert_eq!(latency(&config, 32), large);
    config.interface.read_page_ns = 700;
    assert_eq!(latency(&config, 8), small - config.flash.read_ns.div_ceil(2));
    assert_eq!(latency(&config, 32), large + 3 * 700);
}

#[test]
fn host_costs_survive_writing_a_profile() {
    let profile = Profile::named("nvme-980pro").unwrap();
    let host = profile.host().unwrap();
    assert_eq!((host.cores, host.schedulers["bfq"].lock_ns), (10, 3_640));
    let again = Profile::parse("again", &profile.to_toml().unwrap()).unwrap();
    assert_eq!(again.host(), Some(host));
    assert_eq!(profile.starting(StartState::Fresh).unwrap().host(), Some(host));
    assert_eq!(Profile::named("sata-ssd").unwrap().host(), None);
    let check = |present: &str, wrong: &str, named: &str| {
        let text = profile.to_toml().unwrap().replace(present, wrong);
        let error = Profile::parse("wrong", &text).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    };
    check("cores = 10", "cores = 0", "host.cores: 0 is out of range");
    check("schedulers.bfq", "schedulers.bqf", "host.schedulers.bqf: there is no scheduler with this name; use one of");
}

#[test]
fn fitted_and_assumed_lists_survive_writing_a_profile() {
    let profile = Profile::named("nvme-980pro").unwrap();
    let again = Profile::parse("again", &profile.to_toml().unwrap()).unwrap();
    assert!(!profile.fitted_to().is_empty() && !profile.assumed().is_empty());
    assert_eq!((again.fitted_to(), again.assumed()), (profile.fitted_to(), profile.assumed()));
    assert_eq!((again.model(), again.card().hw_queues), (profile.model(), 10));
    let steady = Profile::named("nvme-980pro:steady").unwrap();
    assert_eq!(steady.assumed(), profile.assumed());
}
