//! `iosched top`: who uses a live disk, how much of it, and how long they wait.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use console::Term;
use iosched_kernel::attribute::chosen;

use crate::fail::usage;
use crate::output;
use crate::tree::{Disk, Disks, Tree, TreeError};

/// Names are shown up to so many characters.
const NAME_WIDTH: usize = 28;

/// Show who uses a live disk: rates, waits and shares, by client
///
/// On a terminal the table is drawn anew every interval until Ctrl-C or --count; elsewhere one table follows the other. Waits are means of the
/// interval, p99 is of all since the client came.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Which disk: live:NAME, the directory of a mounted disk, or a control socket
    #[arg(value_name = "DISK", required_unless_present = "at", conflicts_with = "at", value_hint = ValueHint::AnyPath)]
    disk: Option<PathBuf>,

    /// Which disk, the same
    #[arg(long, value_name = "TREE", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Seconds between two tables
    #[arg(short, long, value_name = "S", default_value_t = 2.0)]
    interval: f64,

    /// Tables to show [default: until Ctrl-C]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

/// What a client has had of one kind up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Had {
    ios: u64,
    bytes: u64,
    total_us: u64,
    p99_us: u64,
}

/// A client as the tree shows it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    name: String,
    ioprio: String,
    group: String,
    weight: String,
    reads: Had,
    writes: Had,
}

impl TopArgs {
    /// Where the disk is.
    fn place(&self) -> &Path {
        self.disk.as_deref().or(self.at.as_deref()).unwrap_or(Path::new(""))
    }
}

pub(crate) fn run(args: &TopArgs) -> Result<()> {
    if !(0.1..=3600.0).contains(&args.interval) {
        return Err(usage(format!("--interval {} is out of range 0.1..=3600 s", args.interval)));
    }
    let at = args.place();
    let mut disks = Disks::open(at)?;
    let [disk] = &disks.disks[..] else {
        return Err(usage(format!("{}: top shows one disk; name it, as {0}/NAME", at.display())));
    };
    let disk = disk.clone();
    if disks.tree.list(&disk.path_of("clients")).is_err() {
        return Err(usage(format!(
            "{}: the kernel's disks do not tell who uses them; top is for live disks",
            at.display()
        )));
    }
    let term = Term::stdout();
    let (mut before, mut since) = (clients(disks.tree.as_mut(), &disk), Instant::now());
    for _ in 0..args.count.unwrap_or(u32::MAX) {
        std::thread::sleep(Duration::from_secs_f64(args.interval));
        let scheduler = disks.tree.read(&disk.path_of("queue/scheduler")).map_err(|error| ended(at, error))?;
        let now = clients(disks.tree.as_mut(), &disk);
        let seconds = since.elapsed().as_secs_f64();
        since = Instant::now();
        let table = table(&disk.name, chosen(&scheduler), &before, &now, seconds);
        if term.is_term() {
            term.clear_screen()?;
        }
        output::print(&table)?;
        before = now;
    }
    Ok(())
}

/// What was there a moment ago is there no more: its server has ended.
fn ended(at: &Path, error: TreeError) -> anyhow::Error {
    let at = at.display();
    if error.is_absence() || error.is_end() { anyhow!("{at}: the disk's server has ended") } else { error.into() }
}

/// All clients; one that goes while it is looked at is not among them.
fn clients(tree: &mut dyn Tree, disk: &Disk) -> BTreeMap<u64, Shown> {
    let entries = tree.list(&disk.path_of("clients")).unwrap_or_default();
    let numbers = entries.into_iter().filter_map(|entry| entry.name.parse().ok());
    numbers.filter_map(|number| Some((number, client(tree, disk, number)?))).collect()
}

fn client(tree: &mut dyn Tree, disk: &Disk, number: u64) -> Option<Shown> {
    let mut read = |name: &str| {
        let value = tree.read(&disk.path_of(&format!("clients/{number}/{name}"))).ok()?;
        Some(value.trim_end().to_owned())
    };
    let stat = read("stat")?;
    let kind = |kind: &str| stat.lines().find_map(|line| line.strip_prefix(kind)).map(had).unwrap_or_default();
    Some(Shown {
        name: read("name")?,
        ioprio: read("ioprio")?,
        group: read("group").unwrap_or_default(),
        weight: read("weight").unwrap_or_default(),
        reads: kind("read "),
        writes: kind("write "),
    })
}

fn had(line: &str) -> Had {
    let value = |name: &str| {
        let found = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let (ios, mean_us) = (value("ios"), value("mean_us"));
    Had { ios, bytes: value("bytes"), total_us: ios * mean_us, p99_us: value("p99_us") }
}

fn table(
    disk: &str,
    scheduler: &str,
    before: &BTreeMap<u64, Shown>,
    now: &BTreeMap<u64, Shown>,
    seconds: f64,
) -> String {
    let nothing = Shown::default();
    let rows: Vec<_> = now.iter().map(|(number, shown)| (shown, before.get(number).unwrap_or(&nothing))).collect();
    let moved = |(now, before): &(&Shown, &Shown)| {
        (now.reads.bytes + now.writes.bytes).saturating_sub(before.reads.bytes + before.writes.bytes)
    };
    let together: u64 = rows.iter().map(moved).sum();
    let mut text =
        format!("{disk}  {scheduler}  {:.1} MB/s, {} clients\n", together as f64 / 1e6 / seconds, rows.len());
    let _ = writeln!(
        text,
        "{:NAME_WIDTH$} {:>8} {:>6} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "client", "ioprio", "weight", "share", "reads/s", "MB/s", "wait ms", "p99 ms", "writes/s", "MB/s"
    );
    let mut rows: Vec<_> = rows.into_iter().map(|row| (moved(&row), row)).collect();
    rows.sort_by(|(a, (first, _)), (b, (second, _))| b.cmp(a).then_with(|| first.name.cmp(&second.name)));
    for (bytes, (now, before)) in rows {
        let name: String = now.name.chars().take(NAME_WIDTH).collect();
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let reads = now.reads.ios.saturating_sub(before.reads.ios);
        let wait_us = now.reads.total_us.saturating_sub(before.reads.total_us).checked_div(reads);
        let wait = wait_us.map_or_else(|| "-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
        let share = if together == 0 { 0.0 } else { bytes as f64 / together as f64 * 100.0 };
        let _ = writeln!(
            text,
            "{name:NAME_WIDTH$} {:>8} {:>6} {share:>5.0}% {:>9.0} {:>9.1} {wait:>9} {:>9.2} {:>9.0} {:>9.1}",
            now.ioprio,
            now.weight,
            rate(now.reads.ios, before.reads.ios),
            rate(now.reads.bytes, before.reads.bytes) / 1e6,
            now.reads.p99_us as f64 / 1e3,
            rate(now.writes.ios, before.writes.ios),
            rate(now.writes.bytes, before.writes.bytes) / 1e6,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, reads: u64, mean_us: u64) -> Shown {
        let reads = had(&format!("ios={reads} bytes={} errors=0 mean_us={mean_us} p50_us=1 p99_us=7", reads * 4096));
        Shown { name: name.to_owned(), ioprio: "be/4".to_owned(), reads, ..Shown::default() }
    }

    #[test]
    fn rates_shares_and_waits_are_of_the_interval() {
        let before = BTreeMap::from([(1, shown("slow", 100, 10)), (2, shown("gone", 5, 5))]);
        let now = BTreeMap::from([(1, shown("slow", 300, 30)), (3, shown("new", 600, 1000))]);
        let text = table("disk", "cfq", &before, &now, 2.0);
        let rows: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 2, "{text}");
        // 600 of 800 reads in two seconds; its wait is that of all it had.
        assert_eq!(rows[0][..5], ["new", "be/4", "75%", "300", "1.2"], "{text}");
        // 300 x 30 - 100 x 10 = 8,000 us for 200 reads.
        assert_eq!(rows[1][..6], ["slow", "be/4", "25%", "100", "0.4", "0.04"], "{text}");
    }
}
