//! Properties of the sequence of a job's I/Os, one per test.

use std::collections::BTreeSet;

use super::*;
use crate::fio::{FileService, FileServiceOrder, Files, JobFile, Layout, Share, Size, SplitSize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A job on a whole device.
fn on_device(placement: Placement) -> Job {
    Job { files: Files::Named(vec!["/dev/sda".to_owned()]), placement, ..Job::new("j") }
}

const RANDOM: Placement = Placement::Random { ios_per_offset: 1 };

/// Returns the first steps of a job on a device of `bytes`, 10,000 at most.
fn steps(job: &Job, bytes: u64) -> Vec<Step> {
    let file = JobFile { name: "t.fio".to_owned(), jobs: vec![job.clone()], ignored: Vec::new() };
    let layout = Layout::new(&file, bytes, 1).unwrap();
    let mut generator = Generator::new(job, &layout.jobs[0], 7);
    std::iter::from_fn(|| generator.next()).take(10_000).collect()
}

fn ios(job: &Job, bytes: u64) -> Vec<JobIo> {
    steps(job, bytes)
        .into_iter()
        .filter_map(|step| match step {
            Step::Io(io) => Some(io),
            Step::Sync(_) => None,
        })
        .collect()
}

fn starts(job: &Job, bytes: u64) -> Vec<u64> {
    ios(job, bytes).iter().map(|io| io.start / (4 * KIB)).collect()
}

#[test]
fn sequential_accesses_each_block_once_in_order() {
    assert_eq!(starts(&on_device(Placement::default()), 20 * KIB), [0, 1, 2, 3, 4]);
}

#[test]
fn skip_leaves_holes_and_negative_skip_goes_backward() {
    let skip = |skip_bytes| on_device(Placement::Sequential { skip_bytes });
    assert_eq!(starts(&skip(8 * KIB as i64), 32 * KIB), [0, 3, 6]);
    assert_eq!(starts(&skip(-8 * KIB as i64), 32 * KIB), [6, 5, 4, 3, 2, 1, 0]);
    let whole = Job { io_size: Some(Size::Bytes(20 * KIB)), ..skip(8 * KIB as i64) };
    assert_eq!(starts(&whole, 32 * KIB), [0, 3, 6, 0, 3]);
}

#[test]
fn random_accesses_each_block_once_per_pass() {
    let order = starts(&on_device(RANDOM), 4 * MIB);
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..1024).collect());
    assert_eq!(order.len(), 1024);
    let adjacent = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(adjacent < 30, "{adjacent}");
}

#[test]
fn loops_repeat_the_order_and_time_based_draws_a_new_one() {
    let loops = starts(&Job { loops: 2, ..on_device(RANDOM) }, MIB);
    assert_eq!((loops.len(), &loops[..256]), (512, &loops[256..]));
    let endless = starts(&Job { time_based: true, runtime_ns: Some(1), ..on_device(RANDOM) }, MIB);
    assert_eq!(endless.len(), 10_000);
    assert_ne!(endless[..256], endless[256..512]);
    assert_eq!(endless[256..512].iter().copied().collect::<BTreeSet<_>>().len(), 256);
}

#[test]
fn io_size_ends_a_pass_early_or_adds_passes() {
    let sized = |bytes| Job { io_size: Some(Size::Bytes(bytes)), ..on_device(Placement::default()) };
    assert_eq!(starts(&sized(8 * KIB), 16 * KIB), [0, 1]);
    assert_eq!(starts(&sized(24 * KIB), 16 * KIB), [0, 1, 2, 3, 0, 1]);
    assert_eq!(ios(&Job { number_ios: Some(3), ..sized(MIB) }, 16 * KIB).len(), 3);
}

#[test]
fn without_random_map_blocks_repeat() {
    let order = starts(&Job { random_map: false, ..on_device(RANDOM) }, 4 * MIB);
    let distinct = order.iter().collect::<BTreeSet<_>>().len() as f64 / order.len() as f64;
    // The expected value is 1 - 1/e.
    assert!((distinct - 0.632).abs() < 0.03, "{distinct}");
}

#[test]
fn each_random_offset_starts_a_run_of_ios() {
    let job = Job { random_map: false, ..on_device(Placement::Random { ios_per_offset: 4 }) };
    let order = starts(&job, 64 * MIB);
    let follows = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as f64 / order.len() as f64;
    assert!((follows - 0.75).abs() < 0.01, "{follows}");
    let order = starts(&Job { sequencer: Sequencer::Identical, ..job }, 64 * MIB);
    let same = order.windows(2).filter(|pair| pair[1] == pair[0]).count() as f64 / order.len() as f64;
    assert!((same - 0.75).abs() < 0.01, "{same}");
}

#[test]
fn rwmix_sets_the_share_and_directions_have_separate_positions() {
    let job = Job { mode: Mode::ReadWrite, rwmix_read_percent: 70, ..on_device(Placement::default()) };
    let all = ios(&job, 32 * MIB);
    let (reads, writes): (Vec<JobIo>, Vec<JobIo>) = all.iter().copied().partition(|io| io.direction == Direction::Read);
    assert!((reads.len() as f64 / all.len() as f64 - 0.7).abs() < 0.02);
    for one in [reads, writes] {
        assert!(one.iter().enumerate().all(|(i, io)| io.start == i as u64 * 4 * KIB));
    }
    for percent in [0, 100] {
        let one = ios(&Job { rwmix_read_percent: percent, ..job.clone() }, MIB);
        assert!(one.iter().all(|io| (io.direction == Direction::Read) == (percent == 100)));
    }
}

#[test]
fn percentage_random_sets_the_share_of_random_ios() {
    let shares: PerDirection<Share> = PerDirection::all(30);
    let order = starts(&Job { random_percent: shares, random_map: false, ..on_device(RANDOM) }, 256 * MIB);
    let jumps = order.windows(2).filter(|pair| pair[1] != pair[0] + 1).count() as f64 / order.len() as f64;
    assert!((jumps - 0.3).abs() < 0.02, "{jumps}");
}

#[test]
fn bssplit_sets_the_share_of_each_size() {
    let split = [(4 * KIB, 50), (16 * KIB, 30), (64 * KIB, 20)].map(|(bytes, percent)| SplitSize { bytes, percent });
    let job =
        Job { block_size: PerDirection::all(BlockSize::Split(split.to_vec())), random_map: false, ..on_device(RANDOM) };
    let all = ios(&job, 256 * MIB);
    for SplitSize { bytes, percent } in split {
        let share = all.iter().filter(|io| io.bytes == bytes).count() as f64 / all.len() as f64;
        assert!((share - f64::from(percent) / 100.0).abs() < 0.02, "{bytes}: {share}");
    }
}

#[test]
fn range_of_sizes_uses_multiples_of_the_smallest() {
    let range = BlockSize::Range { min: 3 * KIB, max: 16 * KIB };
    let job = Job { block_size: PerDirection::all(range), random_map: false, ..on_device(RANDOM) };
    let sizes: BTreeSet<u64> = ios(&job, 64 * MIB).iter().map(|io| io.bytes).collect();
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [3, 6, 9, 12, 15, 16].map(|k| k * KIB));
    let free: BTreeSet<u64> = ios(&Job { bs_unaligned: true, ..job }, 64 * MIB).iter().map(|io| io.bytes).collect();
    assert!(free.len() > 1000 && free.iter().all(|bytes| (3 * KIB..=16 * KIB).contains(bytes)));
}

#[test]
fn with_random_map_no_block_is_accessed_twice() {
    let range = BlockSize::Range { min: 4 * KIB, max: 64 * KIB };
    let job = Job { block_size: PerDirection::all(range), ..on_device(RANDOM) };
    let mut seen = BTreeSet::new();
    for io in ios(&job, 16 * MIB) {
        for block in io.start / (4 * KIB)..(io.start + io.bytes) / (4 * KIB) {
            assert!(seen.insert(block));
        }
    }
    assert_eq!(seen.len(), 4096);
}

#[test]
fn no_io_extends_beyond_its_file() {
    for (placement, random_map) in [(RANDOM, true), (RANDOM, false), (Placement::default(), true)] {
        let job = Job {
            files: Files::Own(3),
            size: Some(Size::Bytes(3 * MIB + 12345)),
            offset: Size::Bytes(12 * KIB),
            block_size: PerDirection::all(BlockSize::Range { min: 512, max: 100_000 }),
            bs_unaligned: true,
            random_map,
            ..on_device(placement)
        };
        let file = JobFile { name: "t".to_owned(), jobs: vec![job.clone()], ignored: Vec::new() };
        let layout = Layout::new(&file, 16 * MIB, 1).unwrap();
        let all = ios(&job, 16 * MIB);
        assert!(all.len() > 50);
        for io in all {
            let region = layout.jobs[0].regions[io.file as usize];
            assert!(io.start >= region.start() && io.start + io.bytes <= region.start() + region.length, "{io:?}");
        }
    }
}

#[test]
fn file_service_type_sets_the_order_of_files() {
    let service = |order, ios_per_file| {
        let file_service = FileService { order, ios_per_file };
        let job = Job { files: Files::Own(4), size: Some(Size::Bytes(64 * KIB)), file_service, ..on_device(RANDOM) };
        ios(&job, MIB).iter().map(|io| io.file).collect::<Vec<_>>()
    };
    assert_eq!(service(FileServiceOrder::RoundRobin, 1), [0, 1, 2, 3].repeat(4));
    assert_eq!(service(FileServiceOrder::RoundRobin, 2), [0, 0, 1, 1, 2, 2, 3, 3].repeat(2));
    assert_eq!(service(FileServiceOrder::Sequential, 1), [0, 1, 2, 3].map(|file| [file; 4]).concat());
    for order in [
        FileServiceOrder::Random,
        FileServiceOrder::Zipf { theta: 1.2 },
        FileServiceOrder::Pareto { h: 0.2 },
        FileServiceOrder::Gauss { deviation_percent: 10.0 },
    ] {
        let mut served = service(order, 1);
        assert_ne!(served, [0, 1, 2, 3].repeat(4), "{order:?}");
        served.sort_unstable();
        assert_eq!(served, [0, 1, 2, 3].map(|file| [file; 4]).concat(), "{order:?}: every block once");
    }
}

#[test]
fn openfiles_limits_the_number_of_open_files() {
    let job = Job { files: Files::Own(4), open_files: Some(2), size: Some(Size::Bytes(32 * KIB)), ..on_device(RANDOM) };
    let served: Vec<u32> = ios(&job, MIB).iter().map(|io| io.file).collect();
    assert_eq!(served, [0, 1, 0, 1, 2, 3, 2, 3]);
}

#[test]
fn every_trim_is_followed_by_a_write_to_the_same_place() {
    let all = ios(&Job { mode: Mode::TrimWrite, ..on_device(RANDOM) }, MIB);
    assert_eq!(all.len(), 512);
    for pair in all.chunks(2) {
        assert_eq!((pair[0].direction, pair[1].direction), (Direction::Trim, Direction::Write));
        assert_eq!((pair[0].start, pair[0].bytes), (pair[1].start, pair[1].bytes));
    }
}

#[test]
fn fsync_and_fdatasync_follow_every_n_writes() {
    let job = Job { mode: Mode::Write, fsync_ios: 3, fdatasync_ios: 2, ..on_device(Placement::default()) };
    let letters: String = steps(&job, 28 * KIB)
        .iter()
        .map(|step| match step {
            Step::Io(_) => 'w',
            Step::Sync(SyncKind::Fsync) => 'F',
            Step::Sync(_) => 'd',
        })
        .collect();
    assert_eq!(letters, "wwdwFwdwwFw");
}

#[test]
fn cmdprio_percentage_sets_the_share_of_ios_with_priority() {
    let priority = IoPriority::new(iosched::IoClass::RealTime, 0);
    let settings = crate::fio::CmdPriority {
        percentage: PerDirection::all(25),
        priority: PerDirection::all(priority),
        ..Default::default()
    };
    let all = ios(&Job { cmd_priority: Some(settings), ..on_device(RANDOM) }, 32 * MIB);
    let share = all.iter().filter(|io| io.priority == Some(priority)).count() as f64 / all.len() as f64;
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

#[test]
fn mix_and_fsync_do_not_change_random_offsets() {
    let plain = starts(&on_device(RANDOM), 4 * MIB);
    let mixed = starts(&Job { mode: Mode::ReadWrite, fsync_ios: 5, ..on_device(RANDOM) }, 4 * MIB);
    assert_eq!(plain, mixed);
}
