//! `iosched compare --blktrace DIR`: simulated runs as files that blkparse finds.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use iosched_lab::Experiment;

use crate::fail::usage;
use crate::output;

/// Makes the directory, if it is not there.
pub(crate) fn prepare(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| usage(format_args!("{}: no directory for block traces: {error}", directory.display())))
}

/// Writes a file for every setting on every device.
pub(crate) fn write(experiment: &Experiment, directory: &Path) -> Result<()> {
    let several = experiment.profiles().len() > 1;
    let mut bases: Vec<String> = Vec::new();
    for (device, profile) in experiment.profiles().enumerate() {
        for (setting, record) in experiment.settings().iter().enumerate() {
            let mut base = file_name(&record.label);
            if several {
                base = format!("{}.{base}", file_name(profile.name()));
            }
            let base = unused(base, &bases);
            output::whole_file(&directory.join(format!("{base}.blktrace.0")), |out| {
                iosched_lab::write_blktrace(experiment, device, setting, out)?;
                Ok(out.flush()?)
            })?;
            bases.push(base);
        }
    }
    Ok(())
}

/// A name for people as part of a file's: without directories, and without what a shell would take for its own.
fn file_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.strip_suffix(".toml").unwrap_or(last);
    last.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.=,+".contains(c) { c } else { '-' }).collect()
}

/// The name, with a number if it is taken.
fn unused(base: String, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let found = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
    found.unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_hold_no_directories_and_nothing_that_a_shell_takes_for_its_own() {
        let names = ["cfq:slice_idle=0,quantum=32", "sata-ssd", "./my disks/old one.toml"].map(file_name);
        assert_eq!(names, ["cfq-slice_idle=0,quantum=32", "sata-ssd", "old-one"]);
    }

    #[test]
    fn names_that_are_taken_get_a_number() {
        let taken = ["a".to_owned(), "a-2".to_owned()];
        assert_eq!([unused("a".to_owned(), &taken), unused("b".to_owned(), &taken)], ["a-3", "b"]);
    }
}
