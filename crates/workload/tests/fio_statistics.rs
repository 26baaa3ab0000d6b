//! Comparison of the I/O sequences of iosched with the sequences of an installed fio.
//! `cargo test -p iosched-workload fio_statistics:: -- --nocapture` prints the table of distances.
//! Without fio, the tests print a message and skip.
//!
//! fio runs each job with its `null` engine and `write_iolog`, so it only writes the log.

#![expect(clippy::disallowed_methods, reason = "another program is run, and its log read")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use iosched_workload::fio::{
    BlockSize, Direction, Distribution, Files, Generator, Job, JobFile, JobLayout, Layout, Mode, PerDirection,
    Placement, RandomGenerator, Sequencer, Size, SplitSize, Step, Zone, ZoneSize,
};

const MIB: u64 = 1 << 20;
/// Size of the file that jobs use.
const SIZE: u64 = 64 * MIB;
/// Critical value of the Kolmogorov-Smirnov test. Take two samples of n values with the same
/// distribution. In one of a thousand tests, their distance exceeds this value divided by the
/// square root of n. The critical value is also used for proportions.
const CRITICAL: f64 = 1.95 * std::f64::consts::SQRT_2;
/// Limit of the length of a run of I/Os. Longer runs count as runs of this length. Thus all runs up
/// to the end of the file count as equal.
const RUN_MAX: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Io {
    direction: Direction,
    offset: u64,
    bytes: u64,
}

/// Returns the I/Os of fio for a job. Without fio, prints a message and returns `None`.
fn ios_of_fio(name: &str, arguments: &[&str]) -> Option<Vec<Io>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fio-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let log = folder.join("io.log");
    let _ = std::fs::remove_file(&log);
    let run = Command::new("fio")
        .args(["--name=j", "--ioengine=null", "--filename=data", "--size=64m", "--write_iolog=io.log"])
        .args(arguments)
        .current_dir(&folder)
        .output();
    let run = match run {
        Ok(run) => run,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "fio cannot be run ({error}), and CI skips nothing");
            println!("skipped: fio cannot be run ({error}); install it to compare sequences with it");
            return None;
        }
    };
    assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(&log).unwrap();
    let ios = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [.., action, offset, bytes] = fields[..] else { return None };
        let direction = match action {
            "read" => Direction::Read,
            "write" => Direction::Write,
            "trim" => Direction::Trim,
            _ => return None,
        };
        Some(Io { direction, offset: offset.parse().ok()?, bytes: bytes.parse().ok()? })
    });
    Some(ios.collect())
}

/// Returns the I/Os of iosched for a job.
fn ios_of_iosched(job: &Job) -> Vec<Io> {
    let file = JobFile { name: "t.fio".to_owned(), jobs: vec![job.clone()], ignored: Vec::new() };
    let layout: JobLayout = Layout::new(&file, SIZE, 1).unwrap().jobs.remove(0);
    let mut generator = Generator::new(job, &layout, 1);
    std::iter::from_fn(|| generator.next())
        .filter_map(|step| match step {
            Step::Io(io) => Some(Io { direction: io.direction, offset: io.start, bytes: io.bytes }),
            Step::Sync(_) => None,
        })
        .collect()
}

/// Returns the largest difference between the distribution functions of two samples.
fn distance(mut a: Vec<u64>, mut b: Vec<u64>) -> f64 {
    a.sort_unstable();
    b.sort_unstable();
    let below = |all: &[u64], value| all.partition_point(|&v| v <= value) as f64 / all.len().max(1) as f64;
    a.iter().chain(&b).map(|&value| (below(&a, value) - below(&b, value)).abs()).fold(0.0, f64::max)
}

/// Returns the rank of each I/O's place. Places are ranked by the number of their I/Os.
fn ranks(ios: &[Io]) -> Vec<u64> {
    let mut counts = BTreeMap::new();
    ios.iter().for_each(|io| *counts.entry(io.offset).or_insert(0u64) += 1);
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    counts.iter().zip(0..).flat_map(|(&count, rank)| std::iter::repeat_n(rank, count as usize)).collect()
}

/// Returns the number of sequential I/Os of the same direction before each I/O.
fn runs(ios: &[Io]) -> Vec<u64> {
    let mut all = Vec::new();
    for direction in Direction::ALL {
        let (mut end, mut run) = (None, 0);
        for io in ios.iter().filter(|io| io.direction == direction) {
            run = if end == Some(io.offset) { RUN_MAX.min(run + 1) } else { 0 };
            all.push(run);
            end = Some(io.offset + io.bytes);
        }
    }
    all
}

/// Returns the standard deviation of the sizes, divided by their mean.
fn variation(ios: &[Io]) -> f64 {
    let n = ios.len().max(1) as f64;
    let mean = ios.iter().map(|io| io.bytes as f64).sum::<f64>() / n;
    (ios.iter().map(|io| (io.bytes as f64 - mean).powi(2)).sum::<f64>() / n).sqrt() / mean
}

fn reads(ios: &[Io]) -> f64 {
    ios.iter().filter(|io| io.direction == Direction::Read).count() as f64 / ios.len().max(1) as f64
}

/// A job, as arguments of fio and as a `Job`.
struct Case {
    name: &'static str,
    arguments: &'static str,
    job: Job,
    /// Whether a hash scatters the places from a random origin. Only the frequencies of the places
    /// are then comparable.
    scattered: bool,
}

fn case(name: &'static str, arguments: &'static str, job: Job) -> Case {
    Case { name, arguments, job, scattered: false }
}

fn sequential() -> Job {
    Job { files: Files::Named(vec!["/dev/x".to_owned()]), size: Some(Size::Bytes(SIZE)), ..Job::new("j") }
}

fn random() -> Job {
    Job { placement: every(1), ..sequential() }
}

fn every(ios_per_offset: u32) -> Placement {
    Placement::Random { ios_per_offset }
}

fn split() -> BlockSize {
    let shares = [(4, 50), (16, 30), (64, 20)];
    BlockSize::Split(shares.map(|(kib, percent)| SplitSize { bytes: kib << 10, percent }).to_vec())
}

fn sequences() -> Vec<Case> {
    let by = |skip_bytes| Job { placement: Placement::Sequential { skip_bytes }, ..sequential() };
    let mixed = |job| Job { mode: Mode::ReadWrite, rwmix_read_percent: 70, ..job };
    let four = || Job { placement: every(4), ..random() };
    vec![
        case("seq", "rw=read", sequential()),
        case("seq-skip", "rw=read:8k", by(8192)),
        case("seq-again", "rw=read io_size=100m", Job { io_size: Some(Size::Bytes(100 * MIB)), ..sequential() }),
        case("trimwrite", "rw=trimwrite", Job { mode: Mode::TrimWrite, ..sequential() }),
        case("seq-back", "rw=read:-8k", by(-8192)),
        case("seq-mix", "rw=rw rwmixread=70", mixed(sequential())),
        case(
            "seq-split",
            "rw=read bssplit=4k/50:16k/30:64k/20",
            Job { block_size: PerDirection::all(split()), ..sequential() },
        ),
        case("rand", "rw=randread", random()),
        case(
            "rand-lfsr",
            "rw=randread random_generator=lfsr",
            Job { random_generator: RandomGenerator::Lfsr, ..random() },
        ),
        case("rand-nomap", "rw=randread norandommap=1", Job { random_map: false, ..random() }),
        case("rand-mix", "rw=randrw rwmixread=70", mixed(random())),
        case("rand:4", "rw=randread:4", four()),
        case("rand:4-mix", "rw=randrw:4 rwmixread=70", mixed(four())),
        case(
            "identical",
            "rw=randrw:4 rwmixread=70 rw_sequencer=identical",
            mixed(Job { sequencer: Sequencer::Identical, ..four() }),
        ),
        case(
            "part-random",
            "rw=randread percentage_random=30",
            Job { random_percent: PerDirection::all(30), ..random() },
        ),
        case(
            "aligned",
            "rw=randread blockalign=64k",
            Job { block_align: PerDirection::all(Some(64 << 10)), ..random() },
        ),
    ]
}

fn lengths() -> Vec<Case> {
    let of = |size, random_map| Job { block_size: PerDirection::all(size), random_map, ..random() };
    let range = |min, max| BlockSize::Range { min, max };
    let more = |mib, job| Job { io_size: Some(Size::Bytes(mib * MIB)), ..job };
    vec![
        case("split", "rw=randread bssplit=4k/50:16k/30:64k/20", of(split(), true)),
        case(
            "split-nomap",
            "rw=randread bssplit=4k/50:16k/30:64k/20 norandommap=1 io_size=256m",
            more(256, of(split(), false)),
        ),
        case("range", "rw=randread bsrange=4k-16k", of(range(4096, 16384), true)),
        case(
            "range-3k",
            "rw=randread bsrange=3k-16k norandommap=1 io_size=128m",
            more(128, of(range(3072, 16384), false)),
        ),
        case(
            "range-free",
            "rw=randread bsrange=512-8k bs_unaligned=1 norandommap=1",
            Job { bs_unaligned: true, ..of(range(512, 8192), false) },
        ),
    ]
}

fn distributions() -> Vec<Case> {
    let skewed = |distribution| Job { distribution, ..random() };
    let zone = |(access_percent, percent)| Zone { access_percent, size: ZoneSize::Percent(percent) };
    let zones: Vec<Zone> = [(60, 10), (30, 20), (8, 30), (2, 40)].map(zone).to_vec();
    let zipf = |theta, centre| skewed(Distribution::Zipf { theta, centre });
    let pareto = |h, centre| skewed(Distribution::Pareto { h, centre });
    let normal = |deviation_percent| skewed(Distribution::Normal { deviation_percent, centre: None });
    let scattered = |name, arguments, job| Case { scattered: true, ..case(name, arguments, job) };
    vec![
        scattered("zipf:1.2", "rw=randread random_distribution=zipf:1.2", zipf(1.2, None)),
        scattered("zipf:0.8", "rw=randread random_distribution=zipf:0.8", zipf(0.8, None)),
        case("zipf:1.2:0.25", "rw=randread random_distribution=zipf:1.2:0.25", zipf(1.2, Some(0.25))),
        scattered("pareto:0.2", "rw=randread random_distribution=pareto:0.2", pareto(0.2, None)),
        case("pareto:0.2:0.5", "rw=randread random_distribution=pareto:0.2:0.5", pareto(0.2, Some(0.5))),
        case("normal:5", "rw=randread random_distribution=normal:5", normal(5.0)),
        case("normal:20", "rw=randread random_distribution=normal:20", normal(20.0)),
        case("normal:60", "rw=randread random_distribution=normal:60", normal(60.0)),
        case(
            "zoned",
            "rw=randread random_distribution=zoned:60/10:30/20:8/30:2/40",
            skewed(Distribution::Zoned(PerDirection::all(zones))),
        ),
    ]
}

/// Returns the arguments of a case.
fn arguments(case: &Case) -> Vec<String> {
    case.arguments.split(' ').map(|option| format!("--{option}")).collect()
}

fn run_case_with_fio(case: &Case, suffix: &str) -> Option<Vec<Io>> {
    let arguments = arguments(case);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    ios_of_fio(&format!("{}{suffix}", case.name.replace([':', '.'], "-")), &arguments)
}

#[test]
fn io_sequences_have_the_statistics_of_fio() {
    println!("distances (largest difference of distribution functions; I/Os: relative):");
    println!("{:<15}  fio I/Os  ours      place    rank    size   reads    runs", "job");
    let mut failures = Vec::new();
    for case in sequences().into_iter().chain(lengths()).chain(distributions()) {
        let Some(theirs) = run_case_with_fio(&case, "") else {
            return;
        };
        let ours = ios_of_iosched(&case.job);
        let by = |of: fn(&Io) -> u64| distance(theirs.iter().map(of).collect(), ours.iter().map(of).collect());
        let found = [
            ("place", if case.scattered { 0.0 } else { by(|io| io.offset) }),
            ("rank", distance(ranks(&theirs), ranks(&ours))),
            ("size", by(|io| io.bytes)),
            ("reads", (reads(&theirs) - reads(&ours)).abs()),
            ("runs", distance(runs(&theirs), runs(&ours))),
            ("I/Os", theirs.len().abs_diff(ours.len()) as f64 / theirs.len() as f64),
        ];
        let shown: String = found[..5].iter().map(|(_, found)| format!("{found:>8.4}")).collect();
        println!("{:<15} {:>9} {:>5}  {shown}", case.name, theirs.len(), ours.len());
        let critical = CRITICAL / (theirs.len() as f64).sqrt();
        let allowed = |what| match what {
            "I/Os" => critical * variation(&theirs) + 1e-3,
            // With more I/Os, there are more ranks.
            "rank" => critical + found[5].1,
            _ => critical,
        };
        let far = found.iter().filter(|(what, found)| *found > allowed(*what));
        failures.extend(far.map(|(what, found)| format!("{}: {what} {found:.4}", case.name)));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn deterministic_sequences_equal_those_of_fio() {
    for case in sequences().iter().take(4) {
        let Some(theirs) = run_case_with_fio(case, "-exact") else {
            return;
        };
        assert!(theirs == ios_of_iosched(&case.job), "{}", case.name);
    }
}
