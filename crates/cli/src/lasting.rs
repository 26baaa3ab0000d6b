//! What is set at every start, too: a udev rule for each disk, which keeps what was set so before.

use std::path::Path;

use anyhow::Result;
use iosched_kernel::settings::{assigned, rule, rule_name};
use iosched_kernel::{BlockDevice, Roots};

use crate::fail::usage;
use crate::output::{self, Kind, MARK, Output, Outputs, WriteArgs};
use crate::tree::{Disks, Named};

const QUEUE: &str = "queue/";
const SCHEDULER: &str = "scheduler";
/// Where tunables are: they come and go with the scheduler.
const TUNABLES: &str = "iosched/";

/// Rules to be written once everything is set.
#[derive(Default)]
pub(crate) struct LastingRules {
    rules: Vec<Rule>,
}

/// The rule of a disk.
struct Rule {
    disk: String,
    out: Output,
    /// What is there already, then what is set now, by names below `queue`.
    assignments: Vec<(String, String)>,
}

impl LastingRules {
    /// Rules for the disks of `files`, in `directory`; looked at before anything is set.
    ///
    /// # Errors
    /// They are not the kernel's disks, something else is in a file's place, or what is set is no attribute of a queue.
    pub(crate) fn prepare(directory: &Path, disks: &Disks, files: &[Named], write: WriteArgs) -> Result<Self> {
        if !disks.are_the_kernels {
            return Err(usage(
                "--persist is only for disks of the kernel; configure a served disk when you serve it, for example \
                 with iosched serve --scheduler",
            ));
        }
        let mut outputs = Outputs::new(write);
        let mut rules: Vec<Rule> = Vec::new();
        for file in files {
            if file.of_disk().strip_prefix(QUEUE).is_none() {
                return Err(usage(format_args!("{}: --persist is only for attributes of the queue", file.name)));
            }
            let disk = &file.disk.name;
            if rules.iter().any(|rule| rule.disk == *disk) {
                continue;
            }
            let path = directory.join(rule_name(disk));
            let out = outputs.output("--persist", &path, Kind::Setting)?;
            let assignments = std::fs::read_to_string(&path).map(|text| assigned(&text)).unwrap_or_default();
            rules.push(Rule { disk: disk.clone(), out, assignments });
        }
        Ok(Self { rules })
    }

    /// This has been set.
    pub(crate) fn add(&mut self, file: &Named, value: &str) {
        let rule = self.rules.iter_mut().find(|rule| rule.disk == file.disk.name);
        if let (Some(rule), Some(name)) = (rule, file.of_disk().strip_prefix(QUEUE)) {
            rule.set(name, value);
        }
    }

    /// Writes the rules.
    ///
    /// # Errors
    /// One cannot be written.
    pub(crate) fn write(&mut self, disks: &mut Disks) -> Result<()> {
        for rule in &mut self.rules {
            let device = BlockDevice::named(&Roots::default(), &rule.disk)?;
            let here = disks.disks.iter().find(|disk| disk.name == rule.disk).cloned();
            let scheduler = here.and_then(|disk| disks.scheduler(&disk));
            rule.begin_with(scheduler.as_deref());
            rule.out.text(&rule.text(&device))?;
            output::print(&format!("at every start: {}\n", rule.out.name().display()))?;
        }
        Ok(())
    }
}

impl Rule {
    fn set(&mut self, name: &str, value: &str) {
        if name == SCHEDULER {
            let is_another = self.assignments.iter().all(|own| own.0 != SCHEDULER || own.1 != value);
            self.assignments.retain(|own| own.0 != SCHEDULER && !(is_another && own.0.starts_with(TUNABLES)));
            self.assignments.insert(0, (name.to_owned(), value.to_owned()));
            return;
        }
        match self.assignments.iter_mut().find(|own| own.0 == name) {
            Some(own) => value.clone_into(&mut own.1),
            None => self.assignments.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Tunables are there under their scheduler only, so that it is set first.
    fn begin_with(&mut self, scheduler: Option<&str>) {
        let has = |begin: &str| self.assignments.iter().any(|own| own.0.starts_with(begin));
        if let Some(scheduler) = scheduler.filter(|_| has(TUNABLES) && !has(SCHEDULER)) {
            self.assignments.insert(0, (SCHEDULER.to_owned(), scheduler.to_owned()));
        }
    }

    fn text(&self, device: &BlockDevice) -> String {
        format!("{MARK} set --persist.\n{}", rule(device, "what was set", &self.assignments))
    }
}
