//! Search for the longest wait under a scheduler.
//!
//! A victim reads or writes 4 KiB at random places, one I/O at a time, with pauses. Adversaries
//! with the same priority compete with it. The search chooses adversaries at random, keeps those
//! under which the victim waits longest, and varies them. The worst adversaries then run for four
//! times as long. If the wait grows with the run, the search found no upper bound: the scheduler
//! starves the victim.
//!
//! A search shows that a wait is possible. It does not prove that longer waits are impossible.

use iosched::{Op, Registry, Setting};
use iosched_disk::Profile;
use iosched_lab::{Control, LabError, pool};
use iosched_numbers::SplitMix64;
use iosched_sim::{Limit, Plan};
use iosched_workload::{Pattern, Task, TaskOp, TaskSet, Think, Workload};
use serde::Serialize;

use crate::request::{JudgeError, simulate};

/// Devices on which the search runs.
pub const DEVICES: [&str; 2] = ["sata-7200", "sata-ssd"];
/// Length of a run of the search, ns.
const SEARCH_NS: u64 = 5_000_000_000;
/// Factor by which the last run is longer than a run of the search.
const LONGER: u64 = 4;
/// Least ratio of the wait to the length of the longer run at which the wait counts as growing.
const GROWS_FROM: f64 = 0.5;
/// Number of generations after the first generation.
const GENERATIONS: u32 = 3;
/// Number of sectors for random I/O. Sequential streams begin after these sectors.
const PLACES: u64 = 100_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// The longest wait that the search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LongestWait {
    /// Name of the device's profile.
    pub device: &'static str,
    /// Operation of the victim.
    pub op: &'static str,
    /// Longest wait from submission to completion, ns.
    pub wait_ns: u64,
    /// Whether the wait grew with the run, so that the search found no bound.
    pub grows: bool,
    /// Number of workloads that were tried.
    pub tried: u32,
    /// The adversaries, in words.
    pub adversaries: String,
}

/// A group of equal tasks that compete with the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Adversary {
    op: TaskOp,
    waits: bool,
    is_sequential: bool,
    copies: u32,
    iodepth: u32,
    nr_sectors: u32,
    think_ns: u64,
}

fn pick<T: Copy>(random: &mut SplitMix64, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

impl Adversary {
    fn draw(random: &mut SplitMix64) -> Self {
        let op = pick(random, &[TaskOp::Read, TaskOp::Read, TaskOp::Write]);
        Self {
            op,
            waits: op == TaskOp::Read || pick(random, &[true, false]),
            is_sequential: pick(random, &[true, false]),
            copies: pick(random, &[1, 2, 4, 8]),
            iodepth: pick(random, &[1, 2, 8, 32]),
            nr_sectors: pick(random, &[8, 64, 256, 1024]),
            think_ns: pick(random, &[0, 0, MILLISECOND_NS / 10, MILLISECOND_NS, 5 * MILLISECOND_NS]),
        }
    }

    fn tasks(self, first_pid: u32) -> impl Iterator<Item = Task> {
        (first_pid..first_pid + self.copies).map(move |pid| Task {
            name: "adversary".to_owned(),
            op: self.op,
            sync: Some(self.waits).filter(|_| self.op == TaskOp::Write),
            iodepth: self.iodepth,
            pattern: Some(if self.is_sequential { Pattern::Seq } else { Pattern::Random }),
            start_sector: self.is_sequential.then_some(PLACES + u64::from(pid) * 2_000_000),
            range: (!self.is_sequential).then_some([0, PLACES]),
            nr_sectors: Some(self.nr_sectors),
            think_ns: Some(Think::Fixed(self.think_ns)),
            ..Task::new(pid)
        })
    }

    fn words(self) -> String {
        let op = match (self.op, self.waits) {
            (TaskOp::Write, true) => "writer that waits",
            (TaskOp::Write, false) => "writer that does not wait",
            _ => "reader",
        };
        let order = if self.is_sequential { "sequential" } else { "random" };
        let pause = match self.think_ns {
            0 => String::new(),
            think_ns => format!(", pause {} ms", think_ns as f64 / MILLISECOND_NS as f64),
        };
        format!("{} x {order} {op}, {} KiB, {} in flight{pause}", self.copies, self.nr_sectors / 2, self.iodepth)
    }
}

/// The adversaries of one trial, and the longest wait of the victim, ns.
#[derive(Clone, Debug)]
struct Trial {
    adversaries: Vec<Adversary>,
    wait_ns: u64,
}

/// A search for one operation of the victim, on one device and under one setting.
struct Search<'a> {
    profile: Profile,
    setting: &'a Setting,
    op: Op,
    seed: u64,
}

impl Search<'_> {
    fn victim(&self) -> Task {
        Task {
            name: "victim".to_owned(),
            op: if self.op.is_write() { TaskOp::Write } else { TaskOp::Read },
            pattern: Some(Pattern::Random),
            range: Some([0, PLACES]),
            think_ns: Some(Think::Fixed(5 * MILLISECOND_NS)),
            ..Task::new(1)
        }
    }

    /// Returns the longest wait of the victim, ns.
    fn wait_ns(&self, adversaries: &[Adversary], time_ns: u64, control: &Control) -> Result<Option<u64>, LabError> {
        let others = (100..).step_by(100).zip(adversaries).flat_map(|(pid, adversary)| adversary.tasks(pid));
        let tasks = std::iter::once(self.victim()).chain(others).collect();
        let workload = Workload::Tasks(Box::new(TaskSet { tasks, ..TaskSet::default() }));
        let limit = Limit { time_ns: Some(time_ns), ios: None };
        let plan = Plan { seed: self.seed, limit, ..Plan::new(&workload, &self.profile, self.setting.clone()) };
        let Some(result) = simulate(&plan, control)? else { return Ok(None) };
        let victims = result.tasks.iter().filter(|task| task.name == "victim");
        Ok(victims.map(|task| task.latency.max_ns()).max())
    }

    /// Tries all adversaries. Returns `None` if `control` was interrupted.
    fn try_all(&self, all: &[Vec<Adversary>], control: &Control) -> Result<Option<Vec<Trial>>, JudgeError> {
        let mut trials = Vec::new();
        let tried = |adversaries: &Vec<Adversary>| {
            let wait_ns = self.wait_ns(adversaries, SEARCH_NS, control)?;
            Ok(wait_ns.map(|wait_ns| Trial { adversaries: adversaries.clone(), wait_ns }))
        };
        let complete = pool::in_order(control, all, tried, |event| {
            if let pool::Event::Taken(trial) = event {
                trials.push(trial);
            }
            Ok(())
        })?;
        Ok(complete.then_some(trials))
    }

    /// Returns the longest wait that the search finds among `tries` workloads in each generation.
    fn longest(&self, tries: u32, control: &Control) -> Result<Option<LongestWait>, JudgeError> {
        let mut random = SplitMix64::new(self.seed);
        let first = (0..tries).map(|_| (0..=random.below(3)).map(|_| Adversary::draw(&mut random)).collect());
        let first: Vec<Vec<Adversary>> = first.collect();
        let Some(mut best) = self.try_all(&first, control)? else { return Ok(None) };
        for _ in 0..GENERATIONS {
            best.sort_by_key(|trial| std::cmp::Reverse(trial.wait_ns));
            best.truncate(4);
            let varied = (0..tries).map(|at| varied(&best[at as usize % best.len()].adversaries, &mut random));
            let varied: Vec<_> = varied.collect();
            let Some(trials) = self.try_all(&varied, control)? else { return Ok(None) };
            best.extend(trials);
        }
        let longest = best.iter().max_by_key(|trial| trial.wait_ns);
        let Some(Trial { adversaries, wait_ns }) = longest else { return Ok(None) };
        let Some(longer_ns) = self.wait_ns(adversaries, LONGER * SEARCH_NS, control)? else { return Ok(None) };
        let grows = longer_ns as f64 >= GROWS_FROM * (LONGER * SEARCH_NS) as f64;
        Ok(Some(LongestWait {
            device: "",
            op: if self.op.is_write() { "write" } else { "read" },
            wait_ns: longer_ns.max(*wait_ns),
            grows,
            tried: tries * (GENERATIONS + 1),
            adversaries: adversaries.iter().map(|adversary| adversary.words()).collect::<Vec<_>>().join("; "),
        }))
    }
}

/// Returns the adversaries after one of them was replaced, added or removed at random.
fn varied(adversaries: &[Adversary], random: &mut SplitMix64) -> Vec<Adversary> {
    let mut varied = adversaries.to_vec();
    match random.below(4) {
        0 if varied.len() < 4 => varied.push(Adversary::draw(random)),
        1 if varied.len() > 1 => {
            varied.remove(random.below(varied.len() as u64) as usize);
        }
        choice => {
            let at = random.below(varied.len() as u64) as usize;
            let drawn = Adversary::draw(random);
            let Adversary { iodepth, copies, nr_sectors, .. } = drawn;
            varied[at] = if choice == 2 { drawn } else { Adversary { iodepth, copies, nr_sectors, ..varied[at] } };
        }
    }
    varied
}

/// Searches for the longest waits under a scheduler. Returns `None` if `control` was interrupted.
pub(crate) fn search(
    registry: &Registry,
    scheduler: &str,
    (tries, seed): (u32, u64),
    control: &Control,
) -> Result<Option<Vec<LongestWait>>, JudgeError> {
    let setting = Setting::parse(scheduler, registry)?;
    let mut found = Vec::new();
    for device in DEVICES {
        for op in [Op::Read, Op::Write] {
            let search = Search { profile: Profile::named(device)?, setting: &setting, op, seed };
            let Some(longest) = search.longest(tries, control)? else { return Ok(None) };
            found.push(LongestWait { device, ..longest });
        }
    }
    Ok(Some(found))
}
