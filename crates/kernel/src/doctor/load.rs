//! What iostat or sar saw of the disks: whether a scheduler has anything to do there.

use iosched_trace::{DeviceRates, RatesSummary, Spread};

use super::finding::{Finding, Id, Sure};
use super::snapshot::{Disk, Snapshot};

/// What `rates`, from `file`, say of the disks of a machine.
#[must_use]
pub fn load(machine: &Snapshot, rates: &RatesSummary, file: &str) -> Vec<Finding> {
    let seen = |disk: &Disk| {
        let own = rates.devices.iter().find(|own| is(own, disk))?;
        finding(disk, own, file, rates.is_since_start)
    };
    machine.disks.iter().filter_map(seen).collect()
}

/// sar names disks by their numbers: `dev8-0`.
fn is(seen: &DeviceRates, disk: &Disk) -> bool {
    seen.device == disk.name || seen.device == format!("dev{}-{}", disk.number.major, disk.number.minor)
}

fn finding(disk: &Disk, seen: &DeviceRates, file: &str, is_since_start: bool) -> Option<Finding> {
    let scheduler = disk.scheduler.as_deref()?;
    let start = if is_since_start { "; the only report holds averages since the system started" } else { "" };
    let meaning = format!("{}{}{start}", seen.meaning(), took(seen));
    let of = |id| Finding::note(id, Some(&disk.name), file, meaning.clone());
    Some(match (seen.queue, seen.queued_intervals) {
        (None, _) => of(Id::LoadUnknown).sure(Sure::CannotKnow),
        // More may have waited for a part of an interval. Means since the start, or values that contradict each other,
        // say too little for a change.
        (Some(_), 0) => {
            let own = of(Id::LoadNothingWaits).sure(Sure::Likely);
            let is_vague = is_since_start || seen.contradiction.is_some();
            if scheduler == "none" || is_vague { own } else { own.matters() }
        }
        (Some(_), _) => of(Id::LoadWaits).remedy(format!("iosched record {} --for 60", disk.name)),
    })
}

/// `; reads took 4.2 ms (40.1 in the slowest interval), writes 12.0 ms (80.3)`.
fn took(seen: &DeviceRates) -> String {
    let told = |what: &str, wait: Option<Spread>, of: &str| {
        wait.map(|Spread { mean, max }| format!("{what} {mean:.1} ms ({max:.1}{of})"))
    };
    let own =
        [told("reads took", seen.read_wait_ms, " in the slowest interval"), told("writes", seen.write_wait_ms, "")];
    let all = told("requests took", seen.wait_ms, " in the slowest interval");
    let told: Vec<String> = own.into_iter().chain([all]).flatten().collect();
    if told.is_empty() { String::new() } else { format!("; {}", told.join(", ")) }
}

#[cfg(test)]
mod tests {
    use iosched_trace::rates_of;

    use super::*;
    use crate::doctor::Weight;
    use crate::doctor::tests::Made;

    fn machine() -> Snapshot {
        let made = Made::new();
        made.sata("sda", "8:0", "A disk", &[("scheduler", "none [mq-deadline]")]);
        made.sata("sdb", "8:16", "A disk", &[("scheduler", "[none] mq-deadline")]);
        made.sata("sdc", "8:32", "A disk", &[("scheduler", "none [bfq]")]);
        made.over("dm-0", "253:0", &["sda"], ("dm/uuid", "LVM-x"));
        made.snapshot()
    }

    const HEADING: &str = "Device r/s rkB/s r_await w/s wkB/s w_await aqu-sz %util";

    #[test]
    fn what_waits_and_what_does_not_is_told_of_disks_that_are_there() {
        let interval = |sda_queue: &str, sdb_queue: &str| {
            format!(
                "{HEADING}\nsda 100 400 4.00 10 40 12.00 {sda_queue} 95\nsdb 1 4 0.20 0 0 0 {sdb_queue} 1\n\
                 dm-0 1 4 9.00 0 0 0 9 99\nsdz 1 4 9.00 0 0 0 9 99\n\n"
            )
        };
        let text = ["0.1", "8.0", "0.5"].map(|queue| interval(queue, "0.01")).concat();
        let found = load(&machine(), &rates_of(&text).unwrap(), "disks.txt");
        let told: Vec<_> = found.iter().map(|own| (own.disk.as_deref().unwrap(), own.id.name(), own.weight)).collect();
        assert_eq!(told, [("sda", "load-waits", Weight::Note), ("sdb", "load-nothing-waits", Weight::Note)]);
        let sda = &found[0];
        assert_eq!(sda.file, "disks.txt");
        for part in ["in 1 of 2 intervals", "reads took 4.0 ms (4.0 in the slowest interval), writes 12.0 ms (12.0)"] {
            assert!(sda.meaning.contains(part), "{}", sda.meaning);
        }
        assert_eq!(sda.remedy.as_deref(), Some("iosched record sda --for 60"));
    }

    #[test]
    fn a_scheduler_that_has_nothing_to_do_matters_and_sar_names_disks_by_number() {
        let text = "12:00:01 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n\
                    12:00:02 dev8-32 10.00 40.00 0.00 0.00 4.00 0.10 1.00 10.00\n";
        let found = load(&machine(), &rates_of(text).unwrap(), "-");
        let [own] = &found[..] else { panic!("{found:?}") };
        assert_eq!((own.disk.as_deref(), own.id, own.weight), (Some("sdc"), Id::LoadNothingWaits, Weight::Matters));
        assert!(own.meaning.contains("requests took 1.0 ms"), "{}", own.meaning);
    }
}
