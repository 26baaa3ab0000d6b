//! The kernel's disks, with the columns of iostat. The values come from the counters in
//! `/sys/block/DISK/stat` (Documentation/block/stat.rst).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use iosched_kernel::attribute::chosen;

use super::Source;
use super::table::{Cell, Column, Kind, Row, Sample};
use super::writers::Writers;
use crate::error::wrong;
use crate::{AttributesError, Disk, Disks, Tree};

const COLUMNS: &[Column] = &[
    Column { head: "disk", name: "disk", width: 9, kind: Kind::Text },
    Column { head: "scheduler", name: "scheduler", width: 11, kind: Kind::Text },
    Column { head: "r/s", name: "reads_per_s", width: 6, kind: Kind::Number(0) },
    Column { head: "MB/s", name: "read_mb_per_s", width: 6, kind: Kind::Number(1) },
    Column { head: "wait ms", name: "read_wait_ms", width: 7, kind: Kind::Number(2) },
    Column { head: "w/s", name: "writes_per_s", width: 6, kind: Kind::Number(0) },
    Column { head: "MB/s", name: "write_mb_per_s", width: 6, kind: Kind::Number(1) },
    Column { head: "wait ms", name: "write_wait_ms", width: 7, kind: Kind::Number(2) },
    Column { head: "queue", name: "queue_mean", width: 6, kind: Kind::Number(1) },
    Column { head: "busy%", name: "busy_percent", width: 5, kind: Kind::Percent(60.0, 90.0) },
];
const BUSY: usize = 9;
const SECTOR_BYTES: u64 = iosched::SECTOR_BYTES;
/// Largest number of processes that are named.
const WAITING_MAX: usize = 4;

/// The counters of one kind of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    ios: u64,
    merges: u64,
    sectors: u64,
    total_ms: u64,
}

/// The counters of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counters {
    reads: Counted,
    writes: Counted,
    in_flight: u64,
    busy_ms: u64,
    queued_ms: u64,
}

impl Counters {
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let counted = |at: usize| {
            let [ios, merges, sectors, total_ms] = fields.get(at..at + 4)?.try_into().ok()?;
            Some(Counted { ios, merges, sectors, total_ms })
        };
        Some(Self {
            reads: counted(0)?,
            writes: counted(4)?,
            in_flight: *fields.get(8)?,
            busy_ms: *fields.get(9)?,
            queued_ms: *fields.get(10)?,
        })
    }

    fn read(tree: &mut dyn Tree, disk: &Disk) -> Option<Self> {
        Self::parse(&tree.read(&disk.path_of("stat")).ok()?)
    }
}

/// The kernel's disks, with their previous counters.
pub(super) struct KernelDisks {
    disks: Disks,
    /// Whether disks without any I/O are shown.
    shows_all: bool,
    before: BTreeMap<String, Counters>,
    since: Instant,
    writers: Writers,
}

impl KernelDisks {
    pub(super) fn of(mut disks: Disks, shows_all: bool) -> Self {
        let before = counters(&mut disks);
        Self { disks, shows_all, before, since: Instant::now(), writers: Writers::at(Path::new("/proc")) }
    }
}

fn counters(disks: &mut Disks) -> BTreeMap<String, Counters> {
    let Disks { tree, disks, .. } = disks;
    disks.iter().filter_map(|disk| Some((disk.name.clone(), Counters::read(tree.as_mut(), disk)?))).collect()
}

impl Source for KernelDisks {
    fn sample(&mut self) -> Result<Sample, AttributesError> {
        let now = counters(&mut self.disks);
        let seconds = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        let mut rows = Vec::new();
        for disk in &self.disks.disks {
            let Some(counters) = now.get(&disk.name) else { continue };
            if !self.shows_all && *counters == Counters::default() {
                continue;
            }
            let scheduler = self.disks.tree.read(&disk.path_of("queue/scheduler")).unwrap_or_default();
            let before = self.before.get(&disk.name).copied().unwrap_or_default();
            rows.push(row(&disk.name, chosen(&scheduler), &before, counters, seconds));
        }
        self.before = now;
        let title = format!("{} disk{} in the last {seconds:.1} s", rows.len(), if rows.len() == 1 { "" } else { "s" });
        let notes: Vec<String> = waiting().into_iter().chain(self.writers.note(seconds)).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(Sample { title, columns: COLUMNS, sorted_by: BUSY, rows, note, settable: &[] })
    }

    fn set(&mut self, row: &str, attribute: &str, _: &str) -> Result<(), AttributesError> {
        Err(wrong(format!("{row}: only served disks have clients, so a disk of the kernel has no {attribute} to set")))
    }
}

fn row(disk: &str, scheduler: &str, before: &Counters, now: &Counters, seconds: f64) -> Row {
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let megabytes = |now: &Counted, before: &Counted| rate(now.sectors, before.sectors) * SECTOR_BYTES as f64 / 1e6;
    let wait = |now: &Counted, before: &Counted| {
        let ios = now.ios.saturating_sub(before.ios);
        Cell::number((ios > 0).then(|| now.total_ms.saturating_sub(before.total_ms) as f64 / ios as f64))
    };
    let (reads, writes) = ((&now.reads, &before.reads), (&now.writes, &before.writes));
    Row {
        id: disk.to_owned(),
        cells: vec![
            Cell::Text(disk.to_owned()),
            Cell::Text(scheduler.to_owned()),
            Cell::Number(rate(now.reads.ios, before.reads.ios)),
            Cell::Number(megabytes(reads.0, reads.1)),
            wait(reads.0, reads.1),
            Cell::Number(rate(now.writes.ios, before.writes.ios)),
            Cell::Number(megabytes(writes.0, writes.1)),
            wait(writes.0, writes.1),
            Cell::Number(rate(now.queued_ms, before.queued_ms) / 1e3),
            Cell::Number((rate(now.busy_ms, before.busy_ms) / 10.0).min(100.0)),
        ],
        details: vec![
            format!("{disk}: {} in flight", now.in_flight),
            format!(
                "merged per second: {:.0} reads, {:.0} writes",
                rate(now.reads.merges, before.reads.merges),
                rate(now.writes.merges, before.writes.merges)
            ),
            format!("iosched get {disk} shows its attributes; iosched set {disk} scheduler=NAME changes its scheduler"),
        ],
    }
}

/// Returns a line about the processes in uninterruptible sleep. Most of them wait for a disk.
fn waiting() -> Option<String> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // A name can contain spaces and parentheses.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        (rest.split_whitespace().next() == Some("D")).then(|| format!("{name} ({pid})"))
    });
    let all: Vec<_> = processes.collect();
    let more = if all.len() > WAITING_MAX { format!(" and {} more", all.len() - WAITING_MAX) } else { String::new() };
    (!all.is_empty()).then(|| format!("waiting (state D): {}{more}", all[..all.len().min(WAITING_MAX)].join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_calculated_as_in_iostat() {
        let parse = |text| Counters::parse(text).unwrap();
        let before = parse("100 5 800 1000  10 0 80 50  0 500 1050  0 0 0 0 0 0\n");
        let now = parse("300 5 2400 1800  10 0 80 50  3 1500 2050  0 0 0 0 0 0\n");
        let row = row("sda", "bfq", &before, &now, 2.0);
        let text = Sample {
            title: String::new(),
            columns: COLUMNS,
            sorted_by: BUSY,
            rows: Vec::new(),
            note: None,
            settable: &[],
        }
        .row(&row);
        // 200 reads of 4 KiB in 2 s, with 800 ms in total. The disk is busy for 1 s of the 2 s. On
        // average, 0.5 requests are in flight.
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words, ["sda", "bfq", "100", "0.4", "4.00", "0", "0.0", "-", "0.5", "50"]);
        assert_eq!(Counters::parse("1 2 3"), None);
    }

    #[test]
    fn table_fits_80_columns() {
        assert!(COLUMNS.iter().map(|column| column.width + 1).sum::<usize>() <= 81);
        assert!(COLUMNS.iter().all(|column| column.head.len() <= column.width));
    }
}
