//! `iosched doctor`: shows which I/O settings of a disk take effect, and which do not.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched_kernel::doctor::{Disk, Finding, Ioprio, Looks, Snapshot, Sure, Throttling, Weight, examine, load};
use iosched_kernel::{BlockDevice, FindError, Roots};
use iosched_lab::request::nearest;
use iosched_trace::{RATES_BYTES_MAX, rates_of, read_text};
use serde::Serialize;

use crate::served::size;
use iosched_attributes::SYS_BLOCK;
use iosched_terminal::fail::{of_file, usage};
use iosched_terminal::output;
use iosched_terminal::show::{Look, Tone, left};

/// Check which I/O settings take effect on a disk, and which do nothing
///
/// doctor examines everything between a process and the disk. This includes the scheduler, ionice, writeback
/// throttling, settings of cgroups, the disk itself, and layers such as LVM, dm-crypt and RAID. For each finding,
/// doctor says what it means, how certain it is, what to do, and which file shows it. doctor changes nothing, and does
/// not need root. Without DISK, it lists all disks briefly, with the most important findings.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Disk to show in full, with its parts: sda, /dev/sda, a mount point or a file on the disk [default: all disks]
    #[arg(value_name = "DISK", value_hint = ValueHint::AnyPath)]
    disk: Option<PathBuf>,

    /// Output of `iostat -x` or `sar -d` for these disks, as text or JSON; - for standard input
    ///
    /// doctor then also says whether requests queue up in a scheduler.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rates: Option<PathBuf>,

    /// Print all findings as one JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  iosched doctor
  iosched doctor sda
  iosched doctor /srv/data
  iosched doctor sda --rates iostat.txt
      after: iostat -x 1 60 > iostat.txt
  iostat -x 1 60 | iosched doctor sda --rates -
  iosched doctor --json";

/// Version of the JSON document. It increases if a field changes its meaning or is removed.
const SCHEMA: u32 = 1;
/// Columns of text without a terminal, and the maximum.
const WIDTH: usize = 80;

pub(crate) fn run(args: &DoctorArgs) -> Result<()> {
    let roots = Roots::default();
    let name = args.disk.as_deref().map(|given| find(&roots, given)).transpose()?;
    fs::read_dir(SYS_BLOCK).map_err(|error| anyhow!("{SYS_BLOCK}: {error}; iosched finds no disks without it"))?;
    let machine = Snapshot::of(&roots);
    let mut findings = examine(&machine);
    if let Some(file) = &args.rates {
        findings.extend(of_rates(&machine, file)?);
        findings.sort_by_key(|finding| finding.weight);
    }
    let report = match &name {
        Some(name) => Report::of_disk(&machine, name, findings)?,
        None => Report::of_all(&machine, findings),
    };
    if args.json {
        return output::json(&report.document());
    }
    let look = Look::of_standard_output();
    let look = Look { width: Some(look.width.map_or(WIDTH, |width| width.min(WIDTH))), ..look };
    output::print(&if name.is_some() { report.in_full(look) } else { report.briefly(look) })
}

/// Returns the findings from a file with the output of iostat or sar.
fn of_rates(machine: &Snapshot, file: &Path) -> Result<Vec<Finding>> {
    let shown = file.display();
    let from = if file == Path::new("-") { Path::new("/dev/stdin") } else { file };
    // The file is read only once, because a pipe cannot be read twice.
    let text = read_text(from, RATES_BYTES_MAX).map_err(|error| {
        of_file(format!("--rates {shown}: {error}; give a file with the output of iostat -x or sar -d"), &error)
    })?;
    let rates = rates_of(&text).ok_or_else(|| usage(format!("{shown}: is not the output of iostat -x or sar -d")))?;
    let found = load(machine, &rates, &shown.to_string());
    if found.is_empty() {
        let seen: Vec<&str> = rates.devices.iter().map(|own| own.device.as_str()).collect();
        let disks: Vec<&str> = machine.disks.iter().map(|own| own.name.as_str()).collect();
        let (seen, disks) = (seen.join(", "), disks.join(", "));
        return Err(usage(format!(
            "{shown}: has {seen}, but none of these has a scheduler on this machine; its disks are {disks}"
        )));
    }
    Ok(found)
}

/// Returns the name of the disk. The error for an unknown name suggests the nearest one.
fn find(roots: &Roots, given: &Path) -> Result<String> {
    match BlockDevice::find(roots, given) {
        Ok(device) => Ok(device.disk_name().to_owned()),
        Err(FindError::Unknown { name, known }) => {
            let meant = nearest(&name, known.split(", "));
            let told = meant.map_or_else(|| format!("disks are {known}"), |meant| format!("did you mean {meant}?"));
            Err(usage(format!("{name}: there is no such disk; {told}")))
        }
        Err(FindError::Io { path, error }) if error.kind() == std::io::ErrorKind::NotFound => {
            let last = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let disks = BlockDevice::disks(roots);
            let near = nearest(last, disks.iter().map(BlockDevice::name)).filter(|_| path.starts_with("/dev"));
            let told = near.map_or_else(String::new, |near| format!("; did you mean /dev/{near}?"));
            Err(usage(format!("{}: no such file or directory{told}", path.display())))
        }
        Err(error) => Err(error.into()),
    }
}

/// The content of the output.
struct Report<'m> {
    machine: &'m Snapshot,
    /// The disks of the stack, the chosen disk first.
    disks: Vec<&'m Disk>,
    findings: Vec<Finding>,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document<'r> {
    schema: u32,
    kernel: &'r str,
    ioprios: Option<&'r [Ioprio]>,
    disks: &'r [&'r Disk],
    findings: &'r [Finding],
}

impl<'m> Report<'m> {
    fn of_all(machine: &'m Snapshot, findings: Vec<Finding>) -> Self {
        Self { machine, disks: machine.disks.iter().collect(), findings }
    }

    /// Creates the report of a disk, the disks below it, and the layers above it.
    fn of_disk(machine: &'m Snapshot, name: &str, mut findings: Vec<Finding>) -> Result<Self> {
        let disks = machine.way(name);
        if disks.is_empty() {
            return Err(usage(format!(
                "{name}: is memory, a loop device without a file, or a drive without a medium; it has no scheduler"
            )));
        }
        let above = machine.above(name);
        let place = |finding: &Finding| match &finding.disk {
            None => Some(disks.len() + 1),
            Some(own) => {
                let is_layer =
                    finding.file.contains("/dm/") || finding.file.contains("/md/") || finding.file.contains("/loop/");
                let above = above.iter().any(|disk| disk.name == *own && is_layer).then_some(disks.len());
                disks.iter().position(|disk| disk.name == *own).or(above)
            }
        };
        findings.retain(|finding| place(finding).is_some());
        findings.sort_by_key(|finding| (finding.weight, place(finding)));
        Ok(Self { machine, disks, findings })
    }

    fn document(&self) -> Document<'_> {
        Document {
            schema: SCHEMA,
            kernel: &self.machine.kernel,
            ioprios: self.machine.ioprios.as_deref(),
            disks: &self.disks,
            findings: &self.findings,
        }
    }

    /// Returns a line for each disk, and the important findings.
    fn briefly(&self, look: Look) -> String {
        let mut text = table(self.machine, &self.disks);
        let matter: Vec<&Finding> = self.findings.iter().filter(|own| own.weight == Weight::Matters).collect();
        let of_machine = self.findings.iter().filter(|own| own.weight == Weight::Note && own.disk.is_none());
        for (title, findings) in [("what matters", matter), ("the machine", of_machine.collect())] {
            if !findings.is_empty() {
                let _ = writeln!(text, "\n{title}");
                findings.into_iter().for_each(|own| text.push_str(&shown(own, look, false)));
            }
        }
        let rest = self.findings.iter().filter(|own| own.weight == Weight::Note && own.disk.is_some()).count();
        if let Some(disk) = self.disks.first().filter(|_| rest > 0) {
            let notes = if rest == 1 { "1 note".to_owned() } else { format!("{rest} notes") };
            let _ = writeln!(
                text,
                "\n{}",
                look.wrap(&format!("{notes} on single disks: iosched doctor {}", disk.name), "")
            );
        }
        text
    }

    /// Returns the full text.
    fn in_full(&self, look: Look) -> String {
        let mut text = String::new();
        for disk in &self.disks {
            let line = format!("{:10} {}", disk.name, about(disk));
            let _ = writeln!(text, "{}", look.wrap(&line, &" ".repeat(11)));
        }
        for (title, weight) in [("what matters", Weight::Matters), ("good to know", Weight::Note)] {
            let findings: Vec<&Finding> = self.findings.iter().filter(|own| own.weight == weight).collect();
            if !findings.is_empty() {
                let _ = writeln!(text, "\n{title}");
                findings.into_iter().for_each(|own| text.push_str(&shown(own, look, true)));
            }
        }
        text
    }
}

/// Describes a disk, such as `mq-deadline; 64 requests,
/// 32 commands; rotating; 1.0 TB; ST1000DM003`.
fn about(disk: &Disk) -> String {
    let mut parts = vec![disk.scheduler.clone().unwrap_or_else(|| "no scheduler".to_owned())];
    if let (Some(queues), true) = (disk.hw_queues, disk.scheduler.is_some()) {
        parts.push(if queues == 1 { "1 hardware queue".to_owned() } else { format!("{queues} hardware queues") });
    }
    if let (Some(requests), true) = (disk.nr_requests, disk.scheduler.is_some()) {
        let depth = disk.queue_depth.map_or_else(String::new, |depth| format!(", driver queue depth {depth}"));
        parts.push(format!("{requests} requests{depth}"));
    }
    parts.extend(disk.is_rotational.map(|is| if is { "rotating" } else { "not rotating" }.to_owned()));
    // A no-break space keeps the number with its unit.
    parts.push(size(disk.size_bytes).replace(' ', "\u{a0}"));
    parts.extend(disk.model.clone().filter(|model| !model.is_empty()));
    if !disk.below.is_empty() {
        parts.push(format!("over {}", disk.below.join(", ")));
    }
    parts.join("; ")
}

/// Returns in one word how far ionice takes effect on a disk.
fn ionice(machine: &Snapshot, disk: &Disk) -> &'static str {
    match machine.looks(disk) {
        Some(Looks::AtBoth) => "yes",
        Some(Looks::AtClasses) => "classes",
        Some(Looks::Nowhere) => "no",
        None => "-",
    }
}

/// Returns a table with one line per disk.
fn table(machine: &Snapshot, disks: &[&Disk]) -> String {
    let heads = ["name", "size", "scheduler", "ionice", "wbt", "rotating", "over"].map(str::to_owned);
    let row = |disk: &&Disk| {
        let wbt = match disk.wbt.filter(|_| disk.scheduler.is_some()) {
            Some(Throttling::TargetUs(us)) if us % 1000 == 0 => format!("{} ms", us / 1000),
            Some(Throttling::TargetUs(us)) => format!("{us} us"),
            Some(Throttling::Off) => "off".to_owned(),
            None => "-".to_owned(),
        };
        let rotating = match disk.is_rotational {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        let scheduler = disk.scheduler.clone().unwrap_or_else(|| "-".to_owned());
        let over = disk.below.join(", ");
        [
            disk.name.clone(),
            size(disk.size_bytes),
            scheduler,
            ionice(machine, disk).to_owned(),
            wbt,
            rotating.to_owned(),
            over,
        ]
    };
    let rows: Vec<[String; 7]> = std::iter::once(heads).chain(disks.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().enumerate().map(|(column, cell)| left(cell, width(column))).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

/// Formats a finding. `in_full` adds its file. The
/// certainty always appears if the finding is not certain.
fn shown(finding: &Finding, look: Look, in_full: bool) -> String {
    let tone = if finding.weight == Weight::Matters { Tone::Bad } else { Tone::Faint };
    let head = match &finding.disk {
        Some(disk) => format!("{disk}: {}", finding.id.name()),
        None => finding.id.name().to_owned(),
    };
    let sure = match finding.sure {
        Sure::Certain => "",
        Sure::Likely => " (likely)",
        Sure::CannotKnow => "(unknown from here)",
    };
    let mut text = format!("  {}{sure}\n", look.paint(&head, tone));
    let indent = "    ";
    let _ = writeln!(text, "{}", look.wrap(&format!("{indent}{}", finding.meaning), indent));
    if let Some(remedy) = &finding.remedy {
        // A command is not wrapped, so that it can be copied.
        let _ = writeln!(text, "{indent}do:   {remedy}");
    }
    if in_full {
        let _ = writeln!(text, "{indent}read: {}", finding.file);
    }
    text
}

#[cfg(test)]
mod tests {
    use iosched_kernel::doctor::{Cgroups, Group, Layer, Unified, Weights};

    use super::*;

    /// Returns a rotating disk without a scheduler below an
    /// encrypted device, on a machine with weights of units.
    fn machine() -> Snapshot {
        let sda = Disk {
            name: "sda".to_owned(),
            number: "8:0".parse().unwrap(),
            size_bytes: 4 << 40,
            scheduler: Some("none".to_owned()),
            schedulers: ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned).to_vec(),
            hw_queues: Some(1),
            nr_requests: Some(64),
            queue_depth: Some(32),
            prio_aging_expire_ms: None,
            drive_priority: None,
            is_rotational: Some(true),
            nomerges: Some(0),
            iostats: Some(true),
            wbt: Some(Throttling::TargetUs(75_000)),
            write_cache: Some("write back".to_owned()),
            drive_cache: Some("write back".to_owned()),
            discard_max_bytes: Some(0),
            discard_max_hw_bytes: Some(0),
            max_sectors_kb: Some(1280),
            max_hw_sectors_kb: Some(32_767),
            read_ahead_kb: Some(128),
            model: Some("ST4000DM004".to_owned()),
            driver: Some("sd".to_owned()),
            is_usb: false,
            virtual_kind: None,
            is_read_only: false,
            layer: None,
            below: Vec::new(),
        };
        let dm = Disk {
            name: "dm-0".to_owned(),
            number: "253:0".parse().unwrap(),
            scheduler: None,
            schedulers: Vec::new(),
            wbt: None,
            model: None,
            layer: Some(Layer::Crypt),
            below: vec!["sda".to_owned()],
            ..sda.clone()
        };
        let weights = || Some(Weights { usual: 50, on_disks: Vec::new() });
        let backup = Group {
            directory: "/sys/fs/cgroup/system.slice/backup.service".to_owned(),
            name: "backup.service".to_owned(),
            weight: weights(),
            bfq_weight: weights(),
            max: vec![(sda.number, "rbps=20971520 wbps=max riops=max wiops=max".to_owned())],
            ..Group::default()
        };
        let unified = Unified {
            root: "/sys/fs/cgroup".to_owned(),
            has_io: true,
            passes_io_on: true,
            is_part: false,
            cost: Some(Vec::new()),
        };
        Snapshot {
            kernel: "6.12.5-amd64".to_owned(),
            disks: vec![dm, sda],
            cgroups: Cgroups { unified: Some(unified), blkio: None, groups: vec![backup] },
            ioprios: Some(vec![Ioprio { class: "idle", level: None, threads: 2, example: "updatedb".to_owned() }]),
            ..Snapshot::default()
        }
    }

    const LOOK: Look = Look { width: Some(WIDTH), colours: false, details: false };

    #[test]
    fn the_sample_of_the_page_is_what_is_printed() {
        let machine = machine();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
        let page = fs::read_to_string(&path).unwrap();
        let samples = [Report::of_all(&machine, examine(&machine)).briefly(LOOK)];
        let parts: Vec<&str> = page.split("```text\n").collect();
        assert_eq!(parts.len(), samples.len() + 1);
        let mut written = parts[0].to_owned();
        for (printed, part) in samples.iter().zip(&parts[1..]) {
            let (_, rest) = part.split_once("```\n").unwrap();
            written += &format!("```text\n{printed}```\n{rest}");
        }
        if std::env::var_os("IOSCHED_RERECORD").is_some() {
            fs::write(&path, &written).unwrap();
        } else {
            assert!(page == written, "IOSCHED_RERECORD=1 cargo test -p iosched-cli doctor writes the samples anew");
        }
    }

    #[test]
    fn disk_in_full_is_printed_as_recorded() {
        let machine = machine();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor-in-full.txt");
        let printed = Report::of_disk(&machine, "sda", examine(&machine)).unwrap().in_full(LOOK);
        if std::env::var_os("IOSCHED_RERECORD").is_some() {
            fs::write(&path, &printed).unwrap();
        } else {
            let recorded = fs::read_to_string(&path).unwrap();
            assert!(recorded == printed, "IOSCHED_RERECORD=1 cargo test -p iosched-cli doctor writes it anew");
        }
    }

    #[test]
    fn important_findings_come_first_and_lines_fit() {
        let machine = machine();
        let report = Report::of_disk(&machine, "dm-0", examine(&machine)).unwrap();
        let names: Vec<&str> = report.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda"]);
        assert!(report.findings.is_sorted_by_key(|own| own.weight));
        assert_eq!(
            report.findings.iter().find(|own| own.weight == Weight::Note).unwrap().disk.as_deref(),
            Some("dm-0")
        );
        let text = report.in_full(LOOK);
        for line in text.lines().filter(|line| !line.contains("read: ") && !line.contains("do:   ")) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        // For a disk above, only the finding about its layer appears.
        let above: Vec<_> = Report::of_disk(&machine, "sda", examine(&machine)).unwrap().findings;
        let above: Vec<_> = above.iter().filter(|own| own.disk.as_deref() == Some("dm-0")).collect();
        assert!(above.len() == 1 && above[0].id.is_of_layer(), "{above:?}");
        assert!(Report::of_disk(&machine, "sdb", examine(&machine)).is_err());
    }

    #[test]
    fn the_document_has_every_finding() {
        let machine = machine();
        let report = Report::of_all(&machine, examine(&machine));
        let document = serde_json::to_value(report.document()).unwrap();
        assert_eq!(document["schema"], SCHEMA);
        assert_eq!(document["disks"].as_array().unwrap().len(), 2);
        assert_eq!(document["ioprios"][0]["class"], "idle");
        let findings = document["findings"].as_array().unwrap();
        assert_eq!(findings.len(), report.findings.len());
        for finding in findings {
            let fields: Vec<&str> = finding.as_object().unwrap().keys().map(String::as_str).collect();
            let mut expected = ["id", "disk", "weight", "sure", "meaning", "remedy", "file"];
            expected.sort_unstable();
            let mut fields = fields;
            fields.sort_unstable();
            assert_eq!(fields, expected);
        }
    }
}
