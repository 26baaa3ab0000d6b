//! Task files: task sets in TOML. Their fields have the names that scenarios use.

use std::path::Path;

use crate::error::WorkloadError;
use crate::tasks::{Pattern, Phase, Task, TaskSet, Think};

/// Largest number of I/Os that a task keeps in flight.
const IODEPTH_MAX: u32 = 1 << 20;
/// Largest number of tasks from one description.
const COPIES_MAX: u32 = 1 << 20;
/// The latest time and the longest duration, ns: 36 years.
const TIME_MAX_NS: u64 = 1 << 60;

impl TaskSet {
    /// Reads a task file (TOML) from a path.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has an unknown field or an invalid value.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let text =
            iosched_trace::read_plain(path).map_err(|source| WorkloadError::Io { file: file.clone(), source })?;
        let mut set = Self::parse(&file, &text)?;
        if set.name.is_empty() {
            set.name = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
        }
        Ok(set)
    }

    /// Parses the text of a task file. `file` is its name in errors.
    ///
    /// # Errors
    /// As [`TaskSet::open`], and if the workload would never end.
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let mut set: Self = toml::from_str(text)
            .map_err(|source| WorkloadError::Toml { file: file.to_owned(), source: Box::new(source) })?;
        set.complete(file)?;
        if set.tasks.is_empty() {
            let (field, problem) = ("tasks".to_owned(), "the file has no tasks and no arrivals".to_owned());
            return Err(Check { file }.error(field, problem, "add [[tasks]] with a pid and a pattern"));
        }
        Ok(set)
    }

    /// Checks every value, and adds a task for each unknown pid of the arrivals.
    pub(crate) fn complete(&mut self, file: &str) -> Result<(), WorkloadError> {
        let check = Check { file };
        self.expand_copies(&check)?;
        let mut pids: Vec<u32> = self.tasks.iter().map(|task| task.pid).collect();
        pids.sort_unstable();
        if let Some(twice) = pids.windows(2).find(|pair| pair[0] == pair[1]) {
            let index = self.tasks.iter().rposition(|task| task.pid == twice[0]).unwrap_or(0);
            let problem = format!("{} is the pid of another task", twice[0]);
            return Err(check.error(format!("tasks[{index}].pid"), problem, "give each task a different pid"));
        }
        for arrival in &self.arrivals {
            if let Err(at) = pids.binary_search(&arrival.1) {
                pids.insert(at, arrival.1);
                let stranger = crate::scenario::stranger();
                self.tasks.push(Task { level: stranger.level(), ..Task::new(arrival.1) });
            }
        }
        for (index, task) in self.tasks.iter().enumerate() {
            check.task(self, index, task)?;
            check.successors(&pids, index, task)?;
        }
        for (index, arrival) in self.arrivals.iter().enumerate() {
            check.within(format!("arrivals[{index}]: time"), arrival.0, 0..=TIME_MAX_NS)?;
            check.within(format!("arrivals[{index}]: length"), arrival.5.into(), 1..=u32::MAX.into())?;
        }
        for (index, change) in self.prio_changes.iter().enumerate() {
            if pids.binary_search(&change.pid).is_err() {
                let problem = format!("no task has pid {}", change.pid);
                return Err(check.error(
                    format!("prio_changes[{index}].pid"),
                    problem,
                    "give the pid of a task in this file",
                ));
            }
            check.within(format!("prio_changes[{index}].level"), change.level.into(), 0..=7)?;
        }
        check.cgroups(self)?;
        check.cgroup_changes(self, &pids)
    }

    /// Inserts the copies of each task directly after the task.
    fn expand_copies(&mut self, check: &Check<'_>) -> Result<(), WorkloadError> {
        let mut all = Vec::with_capacity(self.tasks.len());
        for (index, task) in std::mem::take(&mut self.tasks).into_iter().enumerate() {
            check.within(format!("tasks[{index}].copies"), task.copies.into(), 1..=COPIES_MAX.into())?;
            for copy in 0..task.copies {
                let further = u64::from(copy).saturating_mul(task.copy_sectors);
                let moved = |start: Option<u64>| match further {
                    0 => start,
                    _ => Some(start.unwrap_or(0).saturating_add(further)),
                };
                let mut copied = Task { copies: 1, copy_sectors: 0, ..task.clone() };
                copied.pid = task.pid.checked_add(copy).ok_or_else(|| {
                    let problem = format!(
                        "from pid {} to the largest pid, there are not enough pids for {} copies",
                        task.pid, task.copies
                    );
                    check.error(format!("tasks[{index}].pid"), problem, "use a smaller pid")
                })?;
                copied.relay = task.relay.map(|pid| pid.saturating_add(copy));
                copied.wakes = task.wakes.map(|pid| pid.saturating_add(copy));
                copied.seed = task.seed.map(|seed| seed.wrapping_add(copy.into()));
                copied.start_sector = moved(task.start_sector);
                for phase in copied.phases.iter_mut().filter(|phase| phase.start_sector.is_some()) {
                    phase.start_sector = moved(phase.start_sector);
                }
                all.push(copied);
            }
        }
        self.tasks = all;
        Ok(())
    }
}

/// Checks of values, with the file's name for errors.
struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn error(&self, field: String, problem: String, remedy: &'static str) -> WorkloadError {
        WorkloadError::Invalid { file: self.file.to_owned(), field, problem, remedy }
    }

    fn within(&self, field: String, value: u64, allowed: std::ops::RangeInclusive<u64>) -> Result<(), WorkloadError> {
        if allowed.contains(&value) {
            return Ok(());
        }
        let problem = format!("{value} is out of range; it must be from {} to {}", allowed.start(), allowed.end());
        Err(self.error(field, problem, "give a value in this range"))
    }

    fn task(&self, set: &TaskSet, index: usize, task: &Task) -> Result<(), WorkloadError> {
        let field = |name: &str| format!("tasks[{index}].{name}");
        self.within(field("level"), task.level.into(), 0..=7)?;
        self.within(field("iodepth"), task.iodepth.into(), 0..=IODEPTH_MAX.into())?;
        self.within(field("batch"), task.batch.into(), 1..=IODEPTH_MAX.into())?;
        self.within(field("start_ns"), task.start_ns, 0..=TIME_MAX_NS)?;
        if let Some(cgroup) = &task.cgroup
            && cgroup != "root"
            && !set.cgroups.iter().any(|c| c.name == *cgroup)
        {
            let problem = format!("there is no cgroup {cgroup:?}");
            return Err(self.error(
                field("cgroup"),
                problem,
                "declare the cgroup in [[cgroups]]; for the root cgroup, leave the field out",
            ));
        }
        if task.has_program() && task.total().is_none() && set.end_ns.is_none() && task.exit_ns.is_none() {
            let problem = "the field is missing, and the file has no end_ns, so the task would never end".to_owned();
            return Err(self.error(field("total"), problem, "set total or exit_ns of the task, or end_ns of the file"));
        }
        let only_phase = Phase {
            count: 1,
            pattern: task.pattern,
            start_sector: task.start_sector,
            nr_sectors: task.nr_sectors,
            stride: task.stride,
            range: task.range,
            align: task.align,
            think_ns: task.think_ns,
        };
        // If the task has phases, its own fields are only defaults for the phases.
        let only_phase = if task.phases.is_empty() { only_phase } else { Phase { pattern: None, ..only_phase } };
        self.phase(&field(""), &only_phase, &Task { pattern: only_phase.pattern, ..task.clone() })?;
        for (i, phase) in task.phases.iter().enumerate() {
            self.phase(&field(&format!("phases[{i}].")), phase, task)?;
        }
        Ok(())
    }

    /// Checks that the tasks that `relay` and `wakes` name exist. `pids` are all pids, sorted.
    fn successors(&self, pids: &[u32], index: usize, task: &Task) -> Result<(), WorkloadError> {
        let field = |name: &str| format!("tasks[{index}].{name}");
        self.within(field("relay_n"), task.relay_n.into(), 1..=IODEPTH_MAX.into())?;
        for (name, pid) in [("relay", task.relay), ("wakes", task.wakes)] {
            if let Some(pid) = pid
                && pids.binary_search(&pid).is_err()
            {
                return Err(self.error(
                    field(name),
                    format!("no task has pid {pid}"),
                    "give the pid of a task in this file",
                ));
            }
        }
        if task.relay.is_some() && task.wakes.is_some() {
            let problem = "the task already has the field relay".to_owned();
            return Err(self.error(field("wakes"), problem, "set only one of relay and wakes"));
        }
        Ok(())
    }

    fn phase(&self, prefix: &str, phase: &Phase, task: &Task) -> Result<(), WorkloadError> {
        let field = |name: &str| format!("{prefix}{name}");
        if let Some(nr_sectors) = phase.nr_sectors {
            self.within(field("nr_sectors"), nr_sectors.into(), 1..=u32::MAX.into())?;
        }
        if let Some(align) = phase.align {
            self.within(field("align"), align, 1..=1 << 40)?;
        }
        let is_random = phase.pattern.or(task.pattern) == Some(Pattern::Random);
        if let Some([lo, hi]) = phase.range.or(task.range).filter(|_| is_random) {
            let nr_sectors = u64::from(phase.nr_sectors.or(task.nr_sectors).unwrap_or(8));
            let align = phase.align.or(task.align).unwrap_or(nr_sectors);
            if hi <= lo || hi - lo < align {
                let problem = format!("the range [{lo}, {hi}] contains no position");
                return Err(self.error(
                    field("range"),
                    problem,
                    "write [first, last + 1]; the two numbers must differ by at least align",
                ));
            }
        }
        let think_ns = phase.think_ns.unwrap_or(Think::Fixed(0));
        let (Think::Fixed(longest_ns) | Think::Range([_, longest_ns])) = think_ns;
        self.within(field("think_ns"), longest_ns, 0..=TIME_MAX_NS)?;
        if let Think::Range([lo, hi]) = think_ns
            && hi < lo
        {
            let problem = format!("[{lo}, {hi}] is empty");
            return Err(self.error(field("think_ns"), problem, "write [smallest, largest]"));
        }
        Ok(())
    }

    fn cgroups(&self, set: &TaskSet) -> Result<(), WorkloadError> {
        let weights = u64::from(iosched::WEIGHT_MIN)..=u64::from(iosched::WEIGHT_MAX);
        for (index, cgroup) in set.cgroups.iter().enumerate() {
            let field = |name: &str| format!("cgroups[{index}].{name}");
            for (name, weight) in [("weight", cgroup.weight), ("leaf_weight", cgroup.leaf_weight)] {
                if weight != 0 {
                    self.within(field(name), weight.into(), weights.clone())?;
                }
            }
            let earlier = &set.cgroups[..index];
            if cgroup.parent != "root" && !earlier.iter().any(|c| c.name == cgroup.parent) {
                let problem = format!("the parent {:?} is not declared before this cgroup", cgroup.parent);
                return Err(self.error(field("parent"), problem, "declare the parent before its children"));
            }
            if cgroup.name == "root" || earlier.iter().any(|c| c.name == cgroup.name) {
                let problem = format!("another cgroup already has the name {:?}", cgroup.name);
                return Err(self.error(field("name"), problem, "give each cgroup a different name"));
            }
        }
        for (index, change) in set.weight_changes.iter().enumerate() {
            self.within(format!("weight_changes[{index}].weight"), change.weight.into(), weights.clone())?;
            if !set.cgroups.iter().any(|c| c.name == change.cgroup) {
                let problem = format!("there is no cgroup {:?}", change.cgroup);
                return Err(self.error(
                    format!("weight_changes[{index}].cgroup"),
                    problem,
                    "name a cgroup that the file declares",
                ));
            }
        }
        Ok(())
    }
}

impl Check<'_> {
    /// Checks the moves of tasks between cgroups, and the removals of cgroups.
    fn cgroup_changes(&self, set: &TaskSet, pids: &[u32]) -> Result<(), WorkloadError> {
        let exists = |name: &str| set.cgroups.iter().any(|c| c.name == name);
        let unknown = |field: String, name: &str| {
            Err(self.error(field, format!("there is no cgroup {name:?}"), "name a cgroup that the file declares"))
        };
        for (index, change) in set.cgroup_moves.iter().enumerate() {
            if pids.binary_search(&change.pid).is_err() {
                let problem = format!("no task has pid {}", change.pid);
                return Err(self.error(
                    format!("cgroup_moves[{index}].pid"),
                    problem,
                    "give the pid of a task in this file",
                ));
            }
            if change.cgroup != "root" && !exists(&change.cgroup) {
                return unknown(format!("cgroup_moves[{index}].cgroup"), &change.cgroup);
            }
        }
        for (index, removal) in set.cgroup_removals.iter().enumerate() {
            if !exists(&removal.cgroup) {
                return unknown(format!("cgroup_removals[{index}].cgroup"), &removal.cgroup);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        TaskSet::parse("tasks.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_task_file_is_read() {
        let text = r#"
            end_ns = 2_000_000_000
            arrivals = [[5, 77, "write", false, 4096, 8]]
            [[cgroups]]
            name = "batch"
            weight = 100
            [[tasks]]
            pid = 1
            name = "reader"
            pattern = "random"
            range = [0, 1_000_000]
            think_ns = [1_000, 2_000]
            class = "be"
            level = 2
            cgroup = "batch"
        "#;
        let set = TaskSet::parse("tasks.toml", text).unwrap();
        assert_eq!(set.tasks.len(), 2);
        assert_eq!(set.tasks[0].ioprio().to_string(), "be/2");
        assert_eq!(set.tasks[1], Task::new(77));
    }

    #[test]
    fn copies_get_consecutive_pids_and_shifted_sectors() {
        let text =
            "[[tasks]]\npid = 10\npattern = \"seq\"\ntotal = 1\ncopies = 3\nstart_sector = 5\ncopy_sectors = 100\n";
        let set = TaskSet::parse("tasks.toml", text).unwrap();
        let found: Vec<_> = set.tasks.iter().map(|task| (task.pid, task.start_sector)).collect();
        assert_eq!(found, [(10, Some(5)), (11, Some(105)), (12, Some(205))]);
        assert!(wrong(&text.replace("copies = 3", "copies = 0")).contains("tasks[0].copies: 0 is out of range"));
        assert!(wrong(&text.replace("pid = 10", "pid = 4294967295")).contains("tasks[0].pid"));
    }

    #[test]
    fn unknown_or_wrong_field_is_refused_with_its_line() {
        let message = wrong("[[tasks]]\npid = 1\nthink_time = 5\n");
        assert!(message.starts_with("tasks.toml: TOML parse error at line 3"), "{message}");
        assert!(message.contains("unknown field `think_time`") && message.contains("think_ns"), "{message}");
        let message = wrong("[[tasks]]\npid = 1\nthink_ns = \"5 ms\"\n");
        assert!(message.contains("line 3") && message.contains("a time in ns"), "{message}");
    }

    #[test]
    fn empty_range_is_refused_only_where_a_pattern_uses_it() {
        let set = |fields: &str| TaskSet::parse("tasks.toml", &format!("end_ns = 9\n[[tasks]]\npid = 1\n{fields}\n"));
        let error = |fields: &str| set(fields).unwrap_err().to_string();
        for unused in ["seq", "stride", "back"] {
            set(&format!("pattern = \"{unused}\"\nrange = [8, 9]")).unwrap();
        }
        assert!(
            error("pattern = \"random\"\nrange = [8, 9]")
                .contains("tasks[0].range: the range [8, 9] contains no position")
        );
        set("pattern = \"random\"\nrange = [8, 9]\n[[tasks.phases]]\ncount = 1\npattern = \"seq\"").unwrap();
        let phase = "pattern = \"seq\"\nrange = [8, 9]\n[[tasks.phases]]\ncount = 1\npattern = \"random\"";
        assert!(error(phase).contains("tasks[0].phases[0].range: the range [8, 9] contains no position"));
    }

    #[test]
    fn invalid_values_are_refused() {
        let tasks = |fields: &str| wrong(&format!("end_ns = 9\n[[tasks]]\npid = 1\npattern = \"seq\"\n{fields}\n"));
        assert_eq!(
            tasks("level = 8"),
            "tasks.toml: tasks[0].level: 8 is out of range; it must be from 0 to 7; give a value in this range"
        );
        assert!(tasks("think_ns = [8, 7]").contains("tasks[0].think_ns"));
        assert!(tasks("nr_sectors = 0").contains("tasks[0].nr_sectors"));
        assert!(tasks("relay = 2").contains("tasks[0].relay: no task has pid 2"));
        assert!(tasks("relay = 1\nwakes = 1").contains("tasks[0].wakes: the task already has the field relay"));
        assert!(tasks("relay = 1\nrelay_n = 0").contains("tasks[0].relay_n: 0 is out of range"));
        assert!(tasks("cgroup = \"x\"").contains("there is no cgroup \"x\""));
        assert!(tasks("[[tasks]]\npid = 1").contains("tasks[1].pid: 1 is the pid of another task"));
        assert!(tasks("[[prio_changes]]\nt_ns=1\npid=5\nclass=\"rt\"").contains("prio_changes[0].pid"));
        assert!(wrong("[[tasks]]\npid = 1\npattern = \"seq\"").contains("would never end"));
        assert!(wrong("[[cgroups]]\nname = \"a\"\nparent = \"b\"").contains("cgroups[0].parent"));
    }
}
