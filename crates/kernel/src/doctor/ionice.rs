//! Findings about the effect of ioprio: whether the scheduler or the drive uses the ioprio of
//! processes. Sources: Documentation/block/ioprio.rst of Linux 6.12; for `ncq_prio_enable`
//! Documentation/ABI/testing/sysfs-block-device.

use super::finding::{Finding, Id, Sure};
use super::snapshot::{Disk, Snapshot};

/// Part of a process's ioprio that a scheduler uses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Looks {
    /// Neither class nor level.
    Nowhere,
    /// Classes.
    AtClasses,
    /// Classes, and levels within them.
    AtBoth,
}

/// Returns the part of the ioprio that the scheduler of a disk uses. Returns `None` without a
/// scheduler, or if the scheduler is not known.
pub(super) fn looks(machine: &Snapshot, disk: &Disk) -> Option<Looks> {
    match disk.scheduler.as_deref()? {
        "bfq" | "cfq" => Some(Looks::AtBoth),
        "mq-deadline" if machine.is_since((5, 14)) => Some(Looks::AtClasses),
        // ADIOS is not part of Linux. Up to version 3.3.0, ADIOS uses the ioprio only to prevent
        // merges of requests with different ioprios.
        "none" | "noop" | "deadline" | "mq-deadline" | "kyber" | "adios" => Some(Looks::Nowhere),
        _ => None,
    }
}

impl Snapshot {
    /// Returns the part of the ioprio that the scheduler of a disk uses. Returns `None` without a
    /// scheduler, or if the scheduler is not known.
    #[must_use]
    pub fn looks(&self, disk: &Disk) -> Option<Looks> {
        looks(self, disk)
    }
}

/// Returns a command that chooses a scheduler that uses the ioprio, if one is available.
pub(super) fn remedy(disk: &Disk) -> Option<String> {
    let wanted = if disk.is_nvme() { ["mq-deadline", "bfq"] } else { ["bfq", "mq-deadline"] };
    let better = wanted.into_iter().find(|name| disk.schedulers.iter().any(|known| known == name))?;
    Some(format!("iosched set {} scheduler={better}", disk.name))
}

/// Describes how to examine a scheduler that is not part of Linux.
fn unknown(scheduler: &str) -> String {
    format!(
        "iosched does not know whether {scheduler} uses ionice. To find out, compare {scheduler} with none: \
         iosched compare \
         --on DIR --workload JOBS.fio. DIR is on this disk, and JOBS.fio has two jobs with different prioclass"
    )
}

/// Returns the findings about a disk.
pub(super) fn findings(machine: &Snapshot, disk: &Disk) -> Vec<Finding> {
    let Some(scheduler) = disk.scheduler.as_deref() else { return Vec::new() };
    let note = |id, meaning: String| Finding::note(id, Some(&disk.name), disk.file("queue/scheduler"), meaning);
    let Some(looks) = looks(machine, disk) else { return vec![note(Id::IoniceUnknown, unknown(scheduler))] };
    let ioprios = machine.ioprios.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    match looks {
        // The finding about the drive follows below.
        Looks::Nowhere if disk.drive_priority.is_some() => {}
        Looks::Nowhere => {
            let meaning =
                format!("ionice does nothing on this disk, because the scheduler of this disk is {scheduler}");
            // The facts about ADIOS hold for version 3.3.0.
            let finding = match scheduler {
                "adios" => note(Id::IoniceIgnored, format!("{meaning} (ADIOS 3.3.0 uses neither class nor level)"))
                    .sure(Sure::Likely),
                _ => note(Id::IoniceIgnored, meaning),
            };
            found.push(match remedy(disk) {
                _ if ioprios.is_empty() || disk.layer.is_some() => finding,
                Some(command) => finding.matters().remedy(command),
                None => finding.matters(),
            });
        }
        Looks::AtClasses => {
            let aging = disk
                .prio_aging_expire_ms
                .map_or_else(String::new, |ms| format!(", but for at most {ms} ms (prio_aging_expire)"));
            let meaning = format!(
                "only the class of ionice takes effect, not the level. mq-deadline holds back lower classes while a \
                 higher class has requests{aging}. Buffered writes that a kernel thread sends to the disk do not \
                 have the class of the writing process"
            );
            let finding = note(Id::IoniceClassesOnly, meaning);
            let has_levels = ioprios.iter().any(|set| set.class == "be");
            let has_bfq = disk.schedulers.iter().any(|name| name == "bfq") && !disk.is_nvme();
            found.push(match (has_levels && disk.layer.is_none(), has_bfq) {
                (true, true) => finding.matters().remedy(format!("iosched set {} scheduler=bfq", disk.name)),
                (true, false) => finding.matters(),
                (false, _) => finding,
            });
        }
        Looks::AtBoth => {
            let meaning = format!(
                "ionice takes effect, because {scheduler} uses both class and level. Buffered writes that a kernel \
                 thread sends to the disk do not have the class and level of the writing process"
            );
            found.push(note(Id::IoniceInForce, meaning));
        }
    }
    if let Some(file) = disk.drive_priority {
        let meaning = "the kernel marks the commands of processes with the class rt, and the drive serves marked \
                       commands first. The drive does not know other classes or levels";
        found.push(Finding::note(Id::IoniceByTheDrive, Some(&disk.name), disk.file(file), meaning).sure(Sure::Likely));
    }
    found
}

/// Reports the ioprios that processes of the machine have set.
pub(super) fn seen(machine: &Snapshot) -> Option<Finding> {
    let ioprios = machine.ioprios.as_deref().filter(|ioprios| !ioprios.is_empty())?;
    let seen: Vec<String> = ioprios
        .iter()
        .map(|set| {
            let level = set.level.map_or_else(String::new, |level| format!("/{level}"));
            let threads = if set.threads == 1 { "thread" } else { "threads" };
            format!("{}{level}: {} {threads}, such as {}", set.class, set.threads, set.example)
        })
        .collect();
    let meaning = format!("some processes have an ioprio ({})", seen.join("; "));
    Some(Finding::note(Id::IoprioSeen, None, "/proc (ioprio_get)", meaning))
}
