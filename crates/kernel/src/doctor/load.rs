//! Evaluates the rates that iostat or sar printed. A scheduler can change the order of requests
//! only if requests wait.

use iosched_trace::{DeviceRates, RatesSummary, Spread};

use super::finding::{Finding, Id, Sure};
use super::snapshot::{Disk, Snapshot};

/// Returns the findings about the disks of a machine that follow from `rates`. `file` is the name
/// of the file with the rates.
#[must_use]
pub fn load(machine: &Snapshot, rates: &RatesSummary, file: &str) -> Vec<Finding> {
    let of_disk = |disk: &Disk| {
        let seen = rates.devices.iter().find(|device| is(device, disk))?;
        finding(disk, seen, file, rates.is_since_start)
    };
    machine.disks.iter().filter_map(of_disk).collect()
}

/// Returns whether the rates are of this disk. sar names disks by their numbers, such as `dev8-0`.
fn is(seen: &DeviceRates, disk: &Disk) -> bool {
    seen.device == disk.name || seen.device == format!("dev{}-{}", disk.number.major, disk.number.minor)
}

fn finding(disk: &Disk, seen: &DeviceRates, file: &str, is_since_start: bool) -> Option<Finding> {
    let scheduler = disk.scheduler.as_deref()?;
    let start =
        if is_since_start { "; the file has only one report, with averages since the system started" } else { "" };
    let meaning = format!("{}{}{start}", seen.meaning(), took(seen));
    let note = |id| Finding::note(id, Some(&disk.name), file, meaning.clone());
    Some(match (seen.queue, seen.queued_intervals) {
        (None, _) => note(Id::LoadUnknown).sure(Sure::CannotKnow),
        // A mean hides bursts within its interval. The finding is not a reason to change the
        // scheduler in two cases: the mean covers the whole time since the machine's start, or the
        // values contradict each other.
        (Some(_), 0) => {
            let finding = note(Id::LoadNothingWaits).sure(Sure::Likely);
            let is_vague = is_since_start || seen.contradiction.is_some();
            if scheduler == "none" || is_vague { finding } else { finding.matters() }
        }
        (Some(_), _) => note(Id::LoadWaits).remedy(format!("iosched record {} --for 60", disk.name)),
    })
}

/// Formats the waits: `; reads took 4.2 ms (40.1 in the slowest interval), writes 12.0 ms (80.3)`.
fn took(seen: &DeviceRates) -> String {
    let wait = |verb: &str, wait: Option<Spread>, where_largest: &str| {
        wait.map(|Spread { mean, max }| format!("{verb} {mean:.1} ms ({max:.1}{where_largest})"))
    };
    let waits = [
        wait("reads took", seen.read_wait_ms, " in the slowest interval"),
        wait("writes", seen.write_wait_ms, ""),
        wait("requests took", seen.wait_ms, " in the slowest interval"),
    ];
    let waits: Vec<String> = waits.into_iter().flatten().collect();
    if waits.is_empty() { String::new() } else { format!("; {}", waits.join(", ")) }
}

#[cfg(test)]
mod tests {
    use iosched_trace::rates_of;

    use super::*;
    use crate::doctor::Weight;
    use crate::doctor::tests::FakeMachine;

    fn machine() -> Snapshot {
        let fake = FakeMachine::new();
        fake.sata("sda", "8:0", "A disk", &[("scheduler", "none [mq-deadline]")]);
        fake.sata("sdb", "8:16", "A disk", &[("scheduler", "[none] mq-deadline")]);
        fake.sata("sdc", "8:32", "A disk", &[("scheduler", "none [bfq]")]);
        fake.over("dm-0", "253:0", &["sda"], ("dm/uuid", "LVM-x"));
        fake.snapshot()
    }

    const HEADING: &str = "Device r/s rkB/s r_await w/s wkB/s w_await aqu-sz %util";

    #[test]
    fn findings_are_about_disks_with_a_scheduler() {
        let interval = |sda_queue: &str, sdb_queue: &str| {
            format!(
                "{HEADING}\nsda 100 400 4.00 10 40 12.00 {sda_queue} 95\nsdb 1 4 0.20 0 0 0 {sdb_queue} 1\n\
                 dm-0 1 4 9.00 0 0 0 9 99\nsdz 1 4 9.00 0 0 0 9 99\n\n"
            )
        };
        let text = ["0.1", "8.0", "0.5"].map(|queue| interval(queue, "0.01")).concat();
        let found = load(&machine(), &rates_of(&text).unwrap(), "disks.txt");
        let named: Vec<_> =
            found.iter().map(|finding| (finding.disk.as_deref().unwrap(), finding.id.name(), finding.weight)).collect();
        assert_eq!(named, [("sda", "load-waits", Weight::Note), ("sdb", "load-nothing-waits", Weight::Note)]);
        let sda = &found[0];
        assert_eq!(sda.file, "disks.txt");
        for part in ["in 1 of 2 intervals", "reads took 4.0 ms (4.0 in the slowest interval), writes 12.0 ms (12.0)"] {
            assert!(sda.meaning.contains(part), "{}", sda.meaning);
        }
        assert_eq!(sda.remedy.as_deref(), Some("iosched record sda --for 60"));
    }

    #[test]
    fn idle_scheduler_is_a_finding_in_sar_tables() {
        let text = "12:00:01 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n\
                    12:00:02 dev8-32 10.00 40.00 0.00 0.00 4.00 0.10 1.00 10.00\n";
        let found = load(&machine(), &rates_of(text).unwrap(), "-");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (finding.disk.as_deref(), finding.id, finding.weight),
            (Some("sdc"), Id::LoadNothingWaits, Weight::Matters)
        );
        assert!(finding.meaning.contains("requests took 1.0 ms"), "{}", finding.meaning);
    }

    #[test]
    fn single_report_is_the_mean_since_boot() {
        let of = |reports: usize| {
            let report = format!("{HEADING}\nsda 100 400 4.00 10 40 12.00 0.52 50\n\n");
            let text = format!("Linux 6.1.0 (host) \t11/29/26 \t_x86_64_\t(4 CPU)\n\n{}", report.repeat(reports));
            let [finding] = &load(&machine(), &rates_of(&text).unwrap(), "-")[..] else { panic!("one disk") };
            (finding.weight, finding.meaning.contains("only one report, with averages since the system started"))
        };
        assert_eq!(of(1), (Weight::Note, true));
        // iosched leaves out the first report if there are several. The other reports describe
        // intervals.
        assert_eq!(of(3), (Weight::Matters, false));
    }

    #[test]
    fn contradictory_values_lower_the_finding_to_a_note() {
        // 1,000 reads per second that take 1.86 ms each mean 1.86 requests in flight on average.
        let of = |queue: &str| {
            let report = format!("{HEADING}\nsda 1000 4000 1.86 0 0 0.00 {queue} 100\n\n");
            let [finding] = &load(&machine(), &rates_of(&report.repeat(3)).unwrap(), "-")[..] else {
                panic!("one disk")
            };
            (finding.weight, finding.meaning.clone())
        };
        let (weight, meaning) = of("0.08");
        assert_eq!(weight, Weight::Note, "{meaning}");
        let part = "The queue length in the report is 0.08, but the product of rates and waits is 1.86 requests. Do not rely on either";
        assert!(meaning.contains("the values of 2 of 2 intervals contradict each other") && meaning.contains(part));
        let (_, meaning) = of("1.86");
        assert!(!meaning.contains("contradict"), "{meaning}");
    }
}
