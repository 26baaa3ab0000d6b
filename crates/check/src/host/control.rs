//! Operations on processes, cgroups, tunables, attributes and elevators.

use iosched::controllers::Wbt;
use iosched::{Cgroup, CgroupId, IoPriority, QueueConfig, RequestQueue, Spec, Unit};

use super::submit::Recent;
use super::{CGROUPS_MAX, Host, Task};
use crate::config::Preset;
use crate::model::Layer;
use crate::operation::Value;
use crate::violation::{Checked, ensure};

/// File that sets wbt.
const WBT_FILE: &str = "wbt_lat_usec";

/// The name and text of a write, and the expected result.
struct Write {
    name: &'static str,
    text: String,
    value: Option<u64>,
    /// Whether the value is valid, and larger than the values that are useful in a run.
    endless: bool,
}

fn write(specs: &[&'static Spec], queue: &QueueConfig, which: u8, value: Value) -> Write {
    let missing = Write { name: "no_such_name", text: "1".to_owned(), value: None, endless: false };
    let Some(spec) = specs.get(usize::from(which) % specs.len().max(1)) else { return missing };
    let Spec { name, read_only, clamps, signed, reads, .. } = **spec;
    let wide = |value: u64| if signed { i128::from(value as i64) } else { i128::from(value) };
    // The default of wbt's target depends on the device. The device can meet or miss this target.
    let default = if name == WBT_FILE { Wbt::target_default_us(queue.rotational) } else { spec.default };
    let [default, min, max] = [default, spec.min, largest_of(spec, queue)].map(wide);
    let largest = max.min(default.max(1) * 16);
    let number = match value {
        Value::Default => Some(default),
        Value::Min => Some(min),
        // The largest value would only end the run, because no test waits for a timer of 49 days.
        Value::Max => Some(largest),
        Value::Small(more) => Some(max.min(min + i128::from(more))),
        Value::Eighths(eighths) => Some((default * i128::from(eighths) / 8).clamp(min, max)),
        Value::TooSmall if signed || min > 0 => Some(min - 1),
        Value::TooLarge if max < i128::from(u64::MAX) => Some(max + 1),
        Value::TooSmall | Value::TooLarge | Value::NotANumber => None,
        Value::NoSuchName => return missing,
    };
    let text = number.map_or_else(|| "1x".to_owned(), |number| number.to_string());
    let taken = number.filter(|&number| !read_only && reads.holds(number) && (clamps || (min..=max).contains(&number)));
    let endless = taken.is_some_and(|number| number > largest);
    Write { name, text, endless, value: taken.map(|number| spec.reads_as(number.clamp(min, max) as u64, queue.hz)) }
}

/// Returns the largest valid value of a tunable on this queue.
fn largest_of(spec: &Spec, queue: &QueueConfig) -> u64 {
    // ADIOS sorts batches by sector only on devices with seek times.
    if spec.name == "batch_order" && !queue.rotational { 0 } else { spec.max }
}

impl Host {
    // ---- processes

    pub(super) fn start_task(&mut self, ioprio: IoPriority, cgroup: u8) -> Checked {
        if self.tasks.len() >= self.config.tasks_max as usize {
            return Ok(());
        }
        self.pids += 1;
        let cgroup = self.cgroup(cgroup);
        let context = self.driver.create_context(self.pids, ioprio, cgroup);
        self.digest.add(context.index() as u64);
        self.model.started(context)?;
        let env = self.driver.queue().env();
        ensure!(env.pid(context) == self.pids, Control, "pid {}: the queue returns {}", self.pids, env.pid(context));
        let last_end = self.config.first_sector;
        let recent = Recent::default();
        let pid = self.pids;
        self.tasks.push(Task { context, pid, remainder: None, plugged: false, on_plug: 0, last_end, recent });
        Ok(())
    }

    /// Ends a task, even with I/O in flight. If no task is left, a new task starts.
    pub(super) fn exit_task(&mut self, task: u8) -> Checked {
        let task = self.tasks.swap_remove(usize::from(task) % self.tasks.len());
        self.coverage.exits += 1;
        self.coverage.exits_waiting += u64::from(task.remainder.is_some());
        self.driver.exit(self.now, task.context);
        self.model.exited(task.context);
        if let Some(audit) = &mut self.audit {
            audit.waits_no_more(task.pid);
        }
        self.look_at_decisions()?;
        // If the exiting task was woken and has not continued, the queue wakes another task.
        self.run(0)?;
        self.attend_to_kick()?;
        if self.tasks.is_empty() { self.start_task(IoPriority::default(), 0) } else { Ok(()) }
    }

    pub(super) fn yield_to(&mut self, from: u8, to: u8) -> Checked {
        let (from, to) = (self.context(from), self.context(to));
        self.driver.yield_to(self.now, from, to);
        self.look_at_decisions()?;
        self.attend_to_kick()
    }

    // ---- cgroups

    fn cgroup(&self, number: u8) -> CgroupId {
        self.cgroup_ids[usize::from(number) % self.cgroup_ids.len()]
    }

    pub(super) fn create_cgroup(&mut self, parent: u8, weight: u16, leaf_weight: u16) -> Checked {
        if self.cgroup_ids.len() >= CGROUPS_MAX {
            return Ok(());
        }
        let [weight, leaf_weight] = [weight, leaf_weight].map(|w| Some(u32::from(w)));
        let parent = Some(self.cgroup(parent));
        let created = self.driver.create_cgroup(Cgroup { name: "group".to_owned(), parent, weight, leaf_weight });
        let valid = self.takes_weights([weight, leaf_weight]);
        ensure!(created.is_ok() == valid, Control, "a cgroup of weights {weight:?}, {leaf_weight:?}: {created:?}");
        self.cgroup_ids.extend(created);
        Ok(())
    }

    pub(super) fn move_task(&mut self, task: u8, cgroup: u8) -> Checked {
        let (context, cgroup) = (self.context(task), self.cgroup(cgroup));
        self.coverage.moves += 1;
        self.driver.move_context(self.now, context, cgroup);
        self.look_at_decisions()?;
        self.attend_to_kick()
    }

    /// Removes a cgroup. Its index is not reused. Therefore the removal concerns only the host's
    /// processes in this cgroup.
    pub(super) fn remove_cgroup(&mut self, cgroup: u8) -> Checked {
        let at = usize::from(cgroup) % self.cgroup_ids.len();
        if at == 0 {
            return Ok(());
        }
        let cgroup = self.cgroup_ids.remove(at);
        self.coverage.removals += 1;
        self.driver.remove_cgroup(self.now, cgroup);
        self.look_at_decisions()?;
        self.attend_to_kick()
    }

    fn takes_weights(&self, weights: [Option<u32>; 2]) -> bool {
        let range = self.driver.queue().weight_range();
        weights.into_iter().flatten().all(|weight| (range.min..=range.max).contains(&weight))
    }

    pub(super) fn change_weights(&mut self, cgroup: u8, weight: u16, leaf_weight: u16) -> Checked {
        let [weight, leaf_weight] = [weight, leaf_weight].map(|w| Some(u32::from(w)));
        let cgroup = self.cgroup(cgroup);
        let shown = |queue: &RequestQueue| {
            let group = queue.env().cgroups.get(cgroup);
            (group.weight, group.leaf_weight)
        };
        let before = shown(self.driver.queue());
        let valid = self.takes_weights([weight, leaf_weight]);
        let changed = self.driver.set_weights(cgroup, weight, leaf_weight);
        let expected = if valid { (weight, leaf_weight) } else { before };
        let after = shown(self.driver.queue());
        ensure!(
            changed.is_ok() == valid && after == expected,
            Control,
            "weights {weight:?}, {leaf_weight:?}: {changed:?}, {before:?} became {after:?}"
        );
        self.change_rates(cgroup, leaf_weight.unwrap_or(0))
    }

    /// Changes the reservation and the limit of a cgroup under mclock.
    fn change_rates(&mut self, cgroup: CgroupId, number: u32) -> Checked {
        let rate = u64::from(number / 5 + 1) * 100;
        let text = match number % 5 {
            0 => "reservation=0 limit=max".to_owned(),
            1 => format!("reservation=0 limit={rate}"),
            2 => format!("reservation={rate} limit={}", rate * 2),
            3 => format!("reservation={rate}kB limit={rate}"),
            _ => format!("reservation={} limit={rate}", rate + 1),
        };
        let before = self.driver.queue().env().cgroups.rates(cgroup);
        let changed = self.driver.set_cgroup_attribute(self.now, cgroup, "io.mclock", &text);
        let valid = number % 5 != 4;
        let after = self.driver.queue().env().cgroups.rates(cgroup);
        ensure!(changed.is_ok() == valid && (valid || after == before), Control, "{text}: {changed:?}, {after:?}");
        if let Some(audit) = &mut self.audit {
            audit.rates_changed(self.driver.queue(), cgroup);
        }
        self.look_at_decisions()
    }

    // ---- tunables and attributes

    /// Sets all tunables of the home elevator to their first values.
    pub(super) fn preset(&mut self, preset: Preset) -> Checked {
        if preset == Preset::Largest {
            self.endless = true;
            let set = self.driver.set_attribute(self.now, "nr_requests", &u32::MAX.to_string());
            ensure!(set.is_ok(), Control, "the largest nr_requests: {set:?}");
        }
        let specs = (self.config.first().tunables)();
        for spec in specs.into_iter().filter(|spec| spec.alias_of.is_none() && !spec.read_only) {
            let value = match preset {
                Preset::Default => continue,
                Preset::SwitchedOn if spec.unit == Unit::Switch => largest_of(spec, &self.config.queue).min(1),
                Preset::SwitchedOn => continue,
                Preset::Smallest => spec.min,
                Preset::Largest => largest_of(spec, &self.config.queue),
            };
            let set = self.driver.set_tunable(self.now, spec.name, &spec.number(value).to_string());
            ensure!(set.is_ok(), Control, "{}={value}: {set:?}", spec.name);
        }
        if let Some(audit) = &mut self.audit {
            audit.tunables_changed(self.driver.queue());
        }
        self.look_at_decisions()
    }

    pub(super) fn write_tunable(&mut self, which: u8, value: Value) -> Checked {
        let scheduler = self.driver.queue().scheduler();
        let specs = self.config.registry.get(scheduler).map(|elevator| (elevator.tunables)()).unwrap_or_default();
        let Write { name, text, value, endless } = write(&specs, &self.config.queue, which, value);
        self.endless |= endless;
        let read = |queue: &RequestQueue| specs.iter().map(|spec| queue.tunable(spec.name)).collect::<Vec<_>>();
        let before = read(self.driver.queue());
        let set = self.driver.set_tunable(self.now, name, &text);
        ensure!(
            set.is_ok() == value.is_some() && before.iter().all(Result::is_ok),
            Control,
            "{scheduler}: {name}={text}: {set:?}"
        );
        match value {
            Some(value) => {
                let after = self.driver.queue().tunable(name);
                ensure!(after == Ok(value), Control, "{scheduler}: after {name}={text}, the value is {after:?}");
            }
            None => {
                self.coverage.refused += 1;
                let after = read(self.driver.queue());
                ensure!(
                    after == before,
                    Control,
                    "{scheduler}: the queue refused {name}={text}, but changed {before:?} to {after:?}"
                );
            }
        }
        if let Some(audit) = &mut self.audit {
            audit.tunables_changed(self.driver.queue());
        }
        // A write may cause decisions.
        self.look_at_decisions()
    }

    pub(super) fn write_attribute(&mut self, which: u8, value: Value) -> Checked {
        let specs: Vec<_> = RequestQueue::attribute_specs().collect();
        let Write { name, text, mut value, .. } = write(&specs, &self.config.queue, which, value);
        if name == "max_sectors_kb" {
            value = value.filter(|&kib| kib <= u64::from(self.config.queue.max_hw_sectors_kb));
        }
        let read = |queue: &RequestQueue| specs.iter().map(|spec| queue.attribute(spec.name)).collect::<Vec<_>>();
        let before = read(self.driver.queue());
        let set = self.driver.set_attribute(self.now, name, &text);
        ensure!(set.is_ok() == value.is_some() && before.iter().all(Result::is_ok), Control, "{name}={text}: {set:?}");
        let Some(value) = value else {
            self.coverage.refused += 1;
            let after = read(self.driver.queue());
            ensure!(after == before, Control, "the queue refused {name}={text}, but changed {before:?} to {after:?}");
            return Ok(());
        };
        let after = self.driver.queue().attribute(name);
        ensure!(after == Ok(value.to_string()), Control, "after {name}={text}, the value is {after:?}");
        if name == "iostats" {
            self.model.sums.turn(self.now, value != 0);
        }
        self.throttled |= name == WBT_FILE && value != 0;
        // If there is more room, or if wbt is off, some waiting tasks may continue.
        self.run(0)
    }

    // ---- switching

    pub(super) fn switch(&mut self, to: u8) -> Checked {
        let home = self.config.first().name;
        let names: Vec<_> = self
            .config
            .registry
            .elevators()
            .iter()
            .map(|elevator| elevator.name)
            .chain([home, home, "no-such-elevator"])
            .collect();
        let name = names[usize::from(to) % names.len()];
        let (before, switching) = (self.driver.queue().scheduler(), self.driver.queue().is_switching());
        let layer = self.layer();
        let elevator = self.config.registry.get(name);
        if let Ok(elevator) = elevator {
            self.driver.switch(self.now, elevator);
        }
        let expected = elevator.map_or(before, |elevator| elevator.name);
        let after = self.driver.queue().scheduler();
        ensure!(after == expected, Switching, "a switch from {before} to {name} led to {after}");
        if expected == before {
            ensure!(
                self.driver.queue().is_switching() == switching,
                Switching,
                "a switch from {name} to {name} began or ended a switch"
            );
            return Ok(());
        }
        self.coverage.switches += 1;
        self.coverage.switches_twice += u64::from(switching);
        for task in &mut self.tasks {
            // The switch has ended the plugs that held requests.
            task.plugged &= task.on_plug == 0;
            task.on_plug = 0;
        }
        if layer == Layer::Multi || self.layer() == Layer::Multi {
            self.reconcile()?;
        }
        if layer == Layer::Multi {
            // The host does not know which plugs held requests.
            for task in &mut self.tasks {
                task.plugged = self.driver.unplug(self.now, task.context);
                ensure!(!task.plugged, Switching, "after a switch, the plug of {:?} is not empty", task.context);
            }
        }
        if let Some(audit) = &mut self.audit {
            audit.switching();
            audit.tunables_changed(self.driver.queue());
        }
        self.look_at_decisions()?;
        // Under the rules of the new elevator, there may be room for waiting tasks.
        self.run(0)?;
        self.attend_to_kick()
    }
}
