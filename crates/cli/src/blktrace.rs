//! `iosched compare --blktrace DIR`: writes the events of simulated runs as files for blkparse.

use std::path::Path;

use anyhow::Result;
use iosched_lab::Experiment;
use iosched_system::open_directory::OpenDirectory;

use iosched_terminal::fail::usage;
use iosched_terminal::output::{Kind, Output, Outputs};

/// The file of one setting on one device.
pub(crate) struct BlockTrace {
    device: usize,
    setting: usize,
    out: Output,
}

impl BlockTrace {
    /// Writes the events of the first run.
    pub(crate) fn write(&self, experiment: &Experiment) -> Result<()> {
        self.out.write(|mut out| Ok(iosched_lab::write_blktrace(experiment, self.device, self.setting, &mut out)?))
    }
}

/// Creates the directory if it is missing. Returns a file for every setting on every device.
pub(crate) fn prepare(experiment: &Experiment, directory: &Path, outputs: &mut Outputs) -> Result<Vec<BlockTrace>> {
    OpenDirectory::reach_or_make(directory).map_err(|error| {
        usage(format_args!("{}: cannot create the directory for block traces: {error}", directory.display()))
    })?;
    let several = experiment.profiles().len() > 1;
    let (mut bases, mut traces): (Vec<String>, Vec<BlockTrace>) = Default::default();
    for (device, profile) in experiment.profiles().enumerate() {
        for (setting, record) in experiment.settings().iter().enumerate() {
            let mut base = file_name(&record.label);
            if several {
                base = format!("{}.{base}", file_name(profile.name()));
            }
            let base = unused(base, &bases);
            let out = outputs.output("--blktrace", &directory.join(format!("{base}.blktrace.0")), Kind::Trace)?;
            traces.push(BlockTrace { device, setting, out });
            bases.push(base);
        }
    }
    Ok(traces)
}

/// Returns a name as part of a file name, without directories and special characters of shells.
fn file_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.strip_suffix(".toml").unwrap_or(last);
    last.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.=,+".contains(c) { c } else { '-' }).collect()
}

/// Returns the name. If the name is already used, adds a number.
fn unused(base: String, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let found = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
    found.unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_safe_for_shells() {
        let names = ["cfq:slice_idle=0,quantum=32", "sata-ssd", "./my disks/old one.toml"].map(file_name);
        assert_eq!(names, ["cfq-slice_idle=0,quantum=32", "sata-ssd", "old-one"]);
    }

    #[test]
    fn duplicate_file_names_get_a_number() {
        let taken = ["a".to_owned(), "a-2".to_owned()];
        assert_eq!([unused("a".to_owned(), &taken), unused("b".to_owned(), &taken)], ["a-3", "b"]);
    }
}
