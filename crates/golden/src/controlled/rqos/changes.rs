//! Writes to files, and the freezes of the queue during these writes.

use iosched::CgroupId;
use iosched::controllers::{IoLatency, IoMax, WriteError};

use super::path::Step;
use super::player::{Owner, Player};

/// A step of a kernel thread, or of the thread that writes to files.
#[derive(Clone, Copy)]
pub(super) enum KernelStep {
    /// A change of the scenario begins.
    Change(usize),
    /// No further bio enters the queue until all bios in the queue are complete.
    Freeze,
    Frozen,
    Unfreeze,
    ActivateMax,
    ActivateLatency,
    WriteMax(usize),
    WriteLatency(usize),
    /// io.latency is switched on or off, if this is required.
    Switch,
    SwitchNow,
}

impl Player {
    pub(super) fn show_write(&mut self, file: &str, group: Option<CgroupId>, text: &str) {
        let mut line = self.line("write");
        if let Some(group) = group {
            line = line.text("cg", self.names.group(group));
        }
        self.say(line.text("file", file).text("value", text));
    }

    fn show_outcome(&mut self, outcome: Result<(), WriteError>) {
        if let Err(error) = outcome {
            let line = self.line("error").number("n", -i64::from(error.number()));
            self.say(line);
        }
        self.wake_ready();
        self.show_latency();
    }

    pub(super) fn write_wbt(&mut self, text: &str) {
        let mut outcome = Ok(());
        self.with_wbt(|wbt, site| outcome = wbt.write(site, text));
        self.show_outcome(outcome);
    }

    pub(super) fn write_max(&mut self, group: CgroupId, text: &str) {
        if let Some(max) = &mut self.max {
            let outcome = max.write(&mut self.site, group, text);
            self.show_outcome(outcome);
        }
    }

    pub(super) fn write_latency(&mut self, group: CgroupId, text: &str) {
        if let Some(latency) = &mut self.latency {
            let outcome = latency.write(&self.site, group, text);
            self.show_outcome(outcome);
        }
    }

    /// Activates io.max, which sees bios from now on.
    pub(super) fn activate_max(&mut self) {
        if self.max.is_some() {
            return;
        }
        let max = IoMax::new(&mut self.site);
        let timers: Vec<_> = max.timers(&self.site).collect();
        for (cgroup, timer) in timers {
            let name = cgroup.map_or("TOP", |group| self.names.group(group)).to_owned();
            self.add_timer(timer, &name, Owner::Max(cgroup));
        }
        self.max = Some(max);
    }

    /// Creates io.latency. It sees bios only after it is switched on.
    pub(super) fn activate_latency(&mut self) {
        if self.latency.is_none() {
            let latency = IoLatency::new(&mut self.site, self.rotational, self.nr_requests);
            self.add_timer(latency.timer_id(), "lat", Owner::Latency);
            self.latency = Some(latency);
        }
    }

    pub(super) fn switch_latency(&mut self) {
        if let Some(latency) = &mut self.latency {
            latency.switch();
        }
    }

    fn is_to_be_switched(&self) -> bool {
        self.latency.as_ref().is_some_and(|latency| latency.is_wanted() != latency.is_enabled())
    }

    /// Wakes the thread that switches io.latency, if io.latency must be switched.
    fn call_switcher(&mut self) {
        if self.is_to_be_switched() {
            let switcher = self.switcher();
            self.threads[switcher].work.push_back(Step::Kernel(KernelStep::Switch));
            self.wake_idle(switcher);
        }
    }

    pub(super) fn change(&mut self, thread: usize, step: KernelStep) {
        match step {
            KernelStep::Change(index) => self.begin_change(thread, index),
            KernelStep::Freeze => {
                let line = self.line("freeze");
                self.say(line);
                self.gates += 1;
                if self.inside == 0 {
                    self.next(thread, Step::Kernel(KernelStep::Frozen));
                } else {
                    self.freezers.push(thread);
                    self.block(thread, Step::Kernel(KernelStep::Frozen));
                }
            }
            KernelStep::Frozen => {
                let line = self.line("frozen");
                self.say(line);
            }
            KernelStep::ActivateMax => self.activate_max(),
            KernelStep::ActivateLatency => self.activate_latency(),
            KernelStep::SwitchNow => self.switch_latency(),
            KernelStep::Unfreeze => {
                let line = self.line("unfreeze");
                self.say(line);
                self.gates -= 1;
                if self.gates == 0 {
                    for sleeper in std::mem::take(&mut self.at_gate).into_iter().rev() {
                        self.wake(sleeper);
                    }
                }
            }
            KernelStep::WriteMax(index) => {
                if let Some(group) = self.group_of(index) {
                    self.write_max(group, &self.changes[index].text());
                }
            }
            KernelStep::WriteLatency(index) => {
                if let Some(group) = self.group_of(index) {
                    self.write_latency(group, &self.changes[index].text());
                    self.call_switcher();
                }
            }
            KernelStep::Switch if self.is_to_be_switched() => {
                self.begin_with(thread, &[KernelStep::Freeze, KernelStep::SwitchNow, KernelStep::Unfreeze]);
            }
            KernelStep::Switch => {}
        }
    }

    fn group_of(&self, index: usize) -> Option<CgroupId> {
        self.changes[index].cgroup.as_deref().and_then(|name| self.names.find(name).ok())
    }

    /// Makes `thread` do these steps before all its other steps.
    fn begin_with(&mut self, thread: usize, steps: &[KernelStep]) {
        for &step in steps.iter().rev() {
            self.next(thread, Step::Kernel(step));
        }
    }

    fn begin_change(&mut self, thread: usize, index: usize) {
        let change = self.changes[index].clone();
        let group = self.group_of(index);
        match (change.what.as_str(), group) {
            ("io.max", Some(_)) => {
                self.show_write("io.max", group, &change.text());
                self.next(thread, Step::Kernel(KernelStep::WriteMax(index)));
                if self.max.is_none() {
                    self.begin_with(thread, &[KernelStep::Freeze, KernelStep::ActivateMax, KernelStep::Unfreeze]);
                }
            }
            ("io.latency", Some(_)) => {
                self.show_write("io.latency", group, &change.text());
                self.next(thread, Step::Kernel(KernelStep::WriteLatency(index)));
                if self.latency.is_none() {
                    let steps = [
                        KernelStep::Freeze,
                        KernelStep::Unfreeze,
                        KernelStep::Freeze,
                        KernelStep::ActivateLatency,
                        KernelStep::Unfreeze,
                    ];
                    self.begin_with(thread, &steps);
                }
            }
            ("wbt_lat_usec", _) => {
                self.show_write("wbt_lat_usec", None, &change.text());
                self.write_wbt(&change.text());
            }
            ("queue_depth", _) => {
                self.show_write("queue_depth", None, &change.text());
                let depth = change.text().parse().unwrap_or(1);
                self.with_wbt(|wbt, site| wbt.set_queue_depth(site, depth));
                self.show_outcome(Ok(()));
            }
            ("move", Some(group)) => {
                if let Some((task, pid)) = change.pid.and_then(|pid| Some((self.pid(pid)?, pid))) {
                    let line = self.line("move").number("pid", pid).text("cg", self.names.group(group));
                    self.say(line);
                    self.groups[task] = group;
                }
            }
            ("rmdir", Some(group)) => {
                let line = self.line("rmdir").text("cg", self.names.group(group));
                self.say(line);
                self.site.remove_group(group);
                if let Some(latency) = &mut self.latency {
                    latency.group_removed(&self.site, group);
                }
                self.show_outcome(Ok(()));
                self.call_switcher();
            }
            (event, _) => {
                let line = self.line(event);
                self.say(line);
                match event {
                    "bdp_sleep" => self.with_wbt(|wbt, site| wbt.dirtier_sleeps(site, CgroupId::ROOT)),
                    "bfq_on" => self.with_wbt(|wbt, site| wbt.bfq_taken(site)),
                    "bfq_off" => self.with_wbt(|wbt, _| wbt.bfq_given_up()),
                    _ => {}
                }
            }
        }
    }

    fn pid(&self, pid: u32) -> Option<usize> {
        self.pids.iter().position(|&other| other == pid)
    }
}
