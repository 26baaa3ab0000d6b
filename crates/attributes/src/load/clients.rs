//! The clients of a served disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use iosched_kernel::attribute::chosen;

use super::Source;
use super::table::{Cell, Column, Kind, Row, Sample};
use crate::error::{failed, wrong};
use crate::{AttributesError, Disk, Disks, Named, Tree, TreeError};

const COLUMNS: &[Column] = &[
    Column { head: "no", name: "client", width: 4, kind: Kind::Number(0) },
    Column { head: "pid", name: "pid", width: 7, kind: Kind::Number(0) },
    Column { head: "client", name: "name", width: 14, kind: Kind::Text },
    Column { head: "prio", name: "ioprio", width: 4, kind: Kind::Text },
    Column { head: "wght", name: "weight", width: 4, kind: Kind::Number(0) },
    Column { head: "use%", name: "share_percent", width: 4, kind: Kind::Percent(f64::INFINITY, f64::INFINITY) },
    Column { head: "r/s", name: "reads_per_s", width: 6, kind: Kind::Number(0) },
    Column { head: "MB/s", name: "read_mb_per_s", width: 6, kind: Kind::Number(1) },
    Column { head: "wait ms", name: "read_wait_ms", width: 7, kind: Kind::Number(2) },
    Column { head: "w/s", name: "writes_per_s", width: 6, kind: Kind::Number(0) },
    Column { head: "MB/s", name: "write_mb_per_s", width: 6, kind: Kind::Number(1) },
];
const SHARE: usize = 5;
const SETTABLE: &[(char, &str)] = &[('i', "ioprio"), ('w', "weight")];

/// Totals of one kind of I/O of a client since it connected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Had {
    ios: u64,
    bytes: u64,
    total_us: u64,
    p99_us: u64,
}

/// The attributes of a client in the tree.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    name: String,
    pid: Option<u64>,
    ioprio: String,
    group: String,
    weight: String,
    inflight: String,
    reads: Had,
    writes: Had,
}

impl Shown {
    /// Returns the name without the process number, which has its own column.
    fn short_name(&self) -> String {
        let number = self.pid.map(|pid| format!("[{pid}]")).unwrap_or_default();
        self.name.strip_suffix(number.as_str()).unwrap_or(&self.name).to_owned()
    }
}

/// The clients of one served disk, with their previous totals.
pub(super) struct Clients {
    disks: Disks,
    disk: Disk,
    /// The path as the user gave it.
    at: PathBuf,
    before: BTreeMap<u64, Shown>,
    since: Instant,
}

impl Clients {
    pub(super) fn of(mut disks: Disks, at: &Path) -> Result<Self, AttributesError> {
        let [disk] = &disks.disks[..] else {
            return Err(wrong(format!(
                "{}: top can show only one served disk at a time; name the disk: \
                 {0}/NAME",
                at.display()
            )));
        };
        let disk = disk.clone();
        if disks.tree.list(&disk.path_of("clients")).is_err() {
            return Err(wrong(format!(
                "{}: this disk has no list of clients, because it is not a served disk",
                at.display()
            )));
        }
        let before = clients(disks.tree.as_mut(), &disk);
        Ok(Self { disks, disk, at: at.to_owned(), before, since: Instant::now() })
    }

    /// Converts an error of a missing file, which means that the server has ended.
    fn ended(&self, error: TreeError) -> AttributesError {
        let at = self.at.display();
        if error.is_absence() || error.is_end() {
            failed(format_args!("{at}: the server of the disk has ended"))
        } else {
            error.into()
        }
    }
}

impl Source for Clients {
    fn sample(&mut self) -> Result<Sample, AttributesError> {
        let scheduler =
            self.disks.tree.read(&self.disk.path_of("queue/scheduler")).map_err(|error| self.ended(error))?;
        let now = clients(self.disks.tree.as_mut(), &self.disk);
        let seconds = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        let sample = table(&self.disk.name, chosen(&scheduler), &self.before, &now, seconds);
        self.before = now;
        Ok(sample)
    }

    fn set(&mut self, row: &str, attribute: &str, value: &str) -> Result<(), AttributesError> {
        let name = format!("clients/{row}/{attribute}");
        let file = Named { disk: self.disk.clone(), path: self.disk.path_of(&name), name };
        let scheduler = self.disks.scheduler(&self.disk).unwrap_or_default();
        if let Some(problem) = self.disks.wrong_value(&file, &scheduler, value) {
            return Err(wrong(problem));
        }
        Ok(self.disks.tree.write(&file.path, value)?)
    }
}

/// Returns all clients. A client that disconnects during this call is left out.
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
        pid: read("pid").and_then(|pid| pid.parse().ok()).filter(|&pid| pid != 0),
        ioprio: read("ioprio")?,
        group: read("group").unwrap_or_default(),
        weight: read("weight").unwrap_or_default(),
        inflight: read("inflight").unwrap_or_default(),
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
) -> Sample {
    let nothing = Shown::default();
    let moved = |now: &Shown, before: &Shown| {
        (now.reads.bytes + now.writes.bytes).saturating_sub(before.reads.bytes + before.writes.bytes)
    };
    let was = |number: &u64| before.get(number).unwrap_or(&nothing);
    let together: u64 = now.iter().map(|(number, shown)| moved(shown, was(number))).sum();
    let rows = now.iter().map(|(number, now)| {
        let before = was(number);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let reads = now.reads.ios.saturating_sub(before.reads.ios);
        let wait_us = now.reads.total_us.saturating_sub(before.reads.total_us).checked_div(reads);
        let share = if together == 0 { 0.0 } else { moved(now, before) as f64 / together as f64 * 100.0 };
        Row {
            id: number.to_string(),
            cells: vec![
                Cell::Number(*number as f64),
                Cell::number(now.pid.map(|pid| pid as f64)),
                Cell::Text(now.short_name()),
                Cell::Text(now.ioprio.clone()),
                Cell::number(now.weight.parse().ok()),
                Cell::Number(share),
                Cell::Number(rate(now.reads.ios, before.reads.ios)),
                Cell::Number(rate(now.reads.bytes, before.reads.bytes) / 1e6),
                Cell::number(wait_us.map(|us| us as f64 / 1e3)),
                Cell::Number(rate(now.writes.ios, before.writes.ios)),
                Cell::Number(rate(now.writes.bytes, before.writes.bytes) / 1e6),
            ],
            details: details(*number, now),
        }
    });
    let title = format!(
        "{disk}  {scheduler}  {:.1} MB/s, {} client{}",
        together as f64 / 1e6 / seconds,
        now.len(),
        if now.len() == 1 { "" } else { "s" }
    );
    Sample { title, columns: COLUMNS, sorted_by: SHARE, rows: rows.collect(), note: None, settable: SETTABLE }
}

/// Returns details of a client, with totals since it connected.
fn details(number: u64, shown: &Shown) -> Vec<String> {
    let pid = shown.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
    let kind = |name: &str, had: &Had| {
        let mean_us = had.total_us.checked_div(had.ios).unwrap_or(0);
        format!(
            "{name}, since the client connected: {}, {:.1} MB, mean {:.2} ms, p99 {:.2} ms",
            had.ios,
            had.bytes as f64 / 1e6,
            mean_us as f64 / 1e3,
            had.p99_us as f64 / 1e3
        )
    };
    vec![
        format!("client {number}{pid}: {}", shown.name),
        format!(
            "ioprio {}, group {}, weight {}, in flight {}",
            shown.ioprio, shown.group, shown.weight, shown.inflight
        ),
        kind("reads", &shown.reads),
        kind("writes", &shown.writes),
        format!("iosched set DISK clients/{number}/ioprio=idle"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, reads: u64, mean_us: u64) -> Shown {
        let reads = had(&format!("ios={reads} bytes={} errors=0 mean_us={mean_us} p50_us=1 p99_us=7", reads * 4096));
        Shown { name: name.to_owned(), ioprio: "be/4".to_owned(), weight: "500".to_owned(), reads, ..Shown::default() }
    }

    #[test]
    fn rates_shares_and_waits_are_of_the_interval() {
        let before = BTreeMap::from([(1, shown("slow", 100, 10)), (2, shown("gone", 5, 5))]);
        let now = BTreeMap::from([(1, shown("slow", 300, 30)), (3, shown("new", 600, 1000))]);
        let mut sample = table("disk", "cfq", &before, &now, 2.0);
        sample.sort(sample.sorted_by, true);
        let text = sample.text();
        let rows: Vec<Vec<&str>> =
            text.trim_end().lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 2, "{text}");
        // 600 of the 800 reads in two seconds. The wait is the mean over all reads of this client.
        assert_eq!(rows[0][..9], ["3", "-", "new", "be/4", "500", "75", "300", "1.2", "1.00"], "{text}");
        // 300 x 30 - 100 x 10 = 8,000 us for 200 reads.
        assert_eq!(rows[1][..9], ["1", "-", "slow", "be/4", "500", "25", "100", "0.4", "0.04"], "{text}");
        assert_eq!(sample.json()["rows"][1]["read_wait_ms"], 0.04);
    }

    #[test]
    fn table_fits_80_columns() {
        assert!(COLUMNS.iter().map(|column| column.width + 1).sum::<usize>() <= 81);
        assert!(COLUMNS.iter().all(|column| column.head.len() <= column.width));
    }
}
