//! The report of doctor, as text.

use std::fmt::Write as _;

use iosched_kernel::doctor::{Disk, Finding, Looks, Report, Snapshot, Sure, Throttling, Weight};

use super::grid::{Look, Tone, left, size};

/// Returns a line for each disk, and the important findings.
pub fn briefly(report: &Report<'_>, look: Look) -> String {
    let mut text = table(report.machine, &report.disks);
    let matter: Vec<&Finding> = report.findings.iter().filter(|finding| finding.weight == Weight::Matters).collect();
    let of_machine = report.findings.iter().filter(|finding| finding.weight == Weight::Note && finding.disk.is_none());
    for (title, findings) in [("what matters", matter), ("the machine", of_machine.collect())] {
        if !findings.is_empty() {
            let _ = writeln!(text, "\n{title}");
            findings.into_iter().for_each(|finding| text.push_str(&shown(finding, look, false)));
        }
    }
    let rest =
        report.findings.iter().filter(|finding| finding.weight == Weight::Note && finding.disk.is_some()).count();
    if let Some(disk) = report.disks.first().filter(|_| rest > 0) {
        let notes = if rest == 1 { "1 note".to_owned() } else { format!("{rest} notes") };
        let _ = writeln!(
            text,
            "\n{}",
            look.wrap(&format!("{notes} about single disks; to see them, run iosched doctor {}", disk.name), "")
        );
    }
    text
}

/// Returns the disks and all their findings.
pub fn in_full(report: &Report<'_>, look: Look) -> String {
    let mut text = String::new();
    for disk in &report.disks {
        let line = format!("{:10} {}", disk.name, about(disk));
        let _ = writeln!(text, "{}", look.wrap(&line, &" ".repeat(11)));
    }
    for (title, weight) in [("what matters", Weight::Matters), ("good to know", Weight::Note)] {
        let findings: Vec<&Finding> = report.findings.iter().filter(|finding| finding.weight == weight).collect();
        if !findings.is_empty() {
            let _ = writeln!(text, "\n{title}");
            findings.into_iter().for_each(|finding| text.push_str(&shown(finding, look, true)));
        }
    }
    text
}

/// Describes a disk, such as
/// `mq-deadline; 64 requests, 32 commands; rotating; 1.0 TB; ST1000DM003`.
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

/// Returns one word that says whether `ionice` takes effect on a disk.
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

/// Formats a finding. With `in_full`, adds the file of the finding. If the finding is not certain,
/// the text always says so.
fn shown(finding: &Finding, look: Look, in_full: bool) -> String {
    let tone = if finding.weight == Weight::Matters { Tone::Bad } else { Tone::Faint };
    let head = match &finding.disk {
        Some(disk) => format!("{disk}: {}", finding.id.name()),
        None => finding.id.name().to_owned(),
    };
    let sure = match finding.sure {
        Sure::Certain => "",
        Sure::Likely => " (likely)",
        Sure::CannotKnow => " (iosched cannot check this)",
    };
    let mut text = format!("  {}{sure}\n", look.paint(&head, tone));
    let indent = "    ";
    let _ = writeln!(text, "{}", look.wrap(&format!("{indent}{}", finding.meaning), indent));
    if let Some(remedy) = &finding.remedy {
        // A command is not wrapped, so that it can be copied.
        let _ = writeln!(text, "{indent}do:   {remedy}");
    }
    if in_full {
        let _ = writeln!(text, "{indent}file: {}", finding.file);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use iosched_kernel::doctor::{Cgroups, Group, Ioprio, Layer, Unified, Weights, examine};

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

    /// Columns of the recorded samples.
    const WIDTH: usize = 80;

    const LOOK: Look = Look { width: Some(WIDTH), colours: false, details: false };

    #[test]
    fn sample_in_docs_doctor_md_matches_the_output() {
        let machine = machine();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
        let page = fs::read_to_string(&path).unwrap();
        let samples = [briefly(&Report::of_all(&machine, examine(&machine)), LOOK)];
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
            assert!(
                page == written,
                "the sample is outdated; to record it again: IOSCHED_RERECORD=1 cargo test -p iosched-terminal doctor"
            );
        }
    }

    #[test]
    fn full_page_of_a_disk_matches_recorded_text() {
        let machine = machine();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor-in-full.txt");
        let printed = in_full(&Report::of_disk(&machine, "sda", examine(&machine)).unwrap(), LOOK);
        if std::env::var_os("IOSCHED_RERECORD").is_some() {
            fs::write(&path, &printed).unwrap();
        } else {
            let recorded = fs::read_to_string(&path).unwrap();
            assert!(
                recorded == printed,
                "to record the page again: IOSCHED_RERECORD=1 cargo test -p iosched-terminal doctor"
            );
        }
    }

    #[test]
    fn important_findings_come_first_and_lines_fit() {
        let machine = machine();
        let report = Report::of_disk(&machine, "dm-0", examine(&machine)).unwrap();
        let names: Vec<&str> = report.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda"]);
        assert!(report.findings.is_sorted_by_key(|finding| finding.weight));
        assert_eq!(
            report.findings.iter().find(|finding| finding.weight == Weight::Note).unwrap().disk.as_deref(),
            Some("dm-0")
        );
        let text = in_full(&report, LOOK);
        for line in text.lines().filter(|line| !line.contains("read: ") && !line.contains("do:   ")) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        // For a disk that is stacked on `sda`, only the finding about its layer appears.
        let above: Vec<_> = Report::of_disk(&machine, "sda", examine(&machine)).unwrap().findings;
        let above: Vec<_> = above.iter().filter(|finding| finding.disk.as_deref() == Some("dm-0")).collect();
        assert!(above.len() == 1 && above[0].id.is_of_layer(), "{above:?}");
        assert!(Report::of_disk(&machine, "sdb", examine(&machine)).is_err());
    }

    #[test]
    fn json_document_has_every_finding() {
        let machine = machine();
        let report = Report::of_all(&machine, examine(&machine));
        let document = serde_json::to_value(report.document()).unwrap();
        assert_eq!(document["schema"], iosched_kernel::doctor::SCHEMA);
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
