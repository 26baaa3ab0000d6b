//! `iosched set --persist`: writes a udev rule for each disk. A rule also keeps the values of
//! earlier calls.

use std::path::Path;

use anyhow::Result;
use iosched_attributes::{Disks, LastingRule, Named};
use iosched_kernel::settings::rule_name;

use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, Kind, MARK, Output, Outputs, WriteArgs};

const QUEUE: &str = "queue/";

/// udev rules that are written after all values are set.
#[derive(Default)]
pub(crate) struct LastingRules {
    rules: Vec<Rule>,
}

/// The rule of a disk, and its file.
struct Rule {
    out: Output,
    values: LastingRule,
}

impl LastingRules {
    /// Prepares the udev rules in `directory` for the disks of `files`, before any value is set.
    ///
    /// # Errors
    /// - The disks are not disks of the kernel.
    /// - A file in the directory is not a rule of iosched.
    /// - An attribute does not belong to the queue.
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
                return Err(usage(format_args!(
                    "{}: --persist is only for attributes of the queue of a disk",
                    file.name
                )));
            }
            let disk = &file.disk.name;
            if rules.iter().any(|rule| rule.values.disk() == disk) {
                continue;
            }
            let path = directory.join(rule_name(disk));
            let out = outputs.output("--persist", &path, Kind::Setting)?;
            rules
                .push(Rule { out, values: LastingRule::of(disk, &std::fs::read_to_string(&path).unwrap_or_default()) });
        }
        Ok(Self { rules })
    }

    /// Adds a value that was set.
    pub(crate) fn add(&mut self, file: &Named, value: &str) {
        if let Some(rule) = self.rules.iter_mut().find(|rule| rule.values.disk() == file.disk.name) {
            rule.values.set(file, value);
        }
    }

    /// Writes the rules.
    ///
    /// # Errors
    /// If a rule cannot be written.
    pub(crate) fn write(&mut self, disks: &mut Disks) -> Result<()> {
        for rule in &mut self.rules {
            let text = rule.values.text(disks)?;
            rule.out.text(&format!("{MARK} set --persist.\n{text}"))?;
            output::print(&format!("at every start: {}\n", rule.out.name().display()))?;
        }
        Ok(())
    }
}
