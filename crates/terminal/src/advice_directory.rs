//! The directory of `iosched advise --output`. It has all data from which the advice was made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use iosched_kernel::settings::{DropIn, Lasting, rule_name};
use iosched_system::open_directory::OpenDirectory;

use crate::fail::{all_of, usage};
use crate::output::{Kind, MARK, Output, Outputs, Records};

/// Subdirectory for the best simulated setting, if it was not tried on the device.
const UNTRIED: &str = "untried";

/// The files of the directory, checked before anything runs. Empty without a directory.
#[derive(Default)]
pub struct AdviceDirectory {
    directory: Option<PathBuf>,
    /// Measurements of the device.
    pub calibration: Records,
    /// The search in simulation.
    pub search: Records,
    /// Runs on the device.
    pub device: Records,
    profile: Option<Output>,
    page: Option<Output>,
    /// File name of the udev rule.
    rule: String,
    /// Existing files, by path, that set or undo a setting of an earlier advice.
    settings: BTreeMap<PathBuf, Output>,
}

impl AdviceDirectory {
    /// Opens the directory and creates it if it is missing. If iosched will measure the device, the
    /// measurements and the profile are also files in this directory.
    pub fn open(directory: Option<&Path>, disk: &str, is_measured: bool, outputs: &mut Outputs) -> Result<Self> {
        let Some(path) = directory else { return Ok(Self::default()) };
        if path.exists() && !path.is_dir() {
            return Err(usage(format_args!(
                "--output {}: this is a file; name a directory, or write only the report with --report FILE",
                path.display()
            )));
        }
        OpenDirectory::reach_or_make(path)
            .map_err(|error| anyhow!("{}: cannot be created: {error}", path.display()))?;
        let mut file = |name: &str, kind| outputs.output("--output", &path.join(name), kind).map(Some);
        let mut files_of_advice = Self {
            directory: Some(path.to_owned()),
            page: file("advice.html", Kind::Page)?,
            rule: rule_name(disk),
            ..Self::default()
        };
        for place in [path.to_owned(), path.join(UNTRIED)] {
            for file in known(&place, &files_of_advice.rule) {
                files_of_advice.settings.insert(file.clone(), outputs.output("--output", &file, Kind::Setting)?);
            }
        }
        let mut file = |name: &str, kind| outputs.output("--output", &path.join(name), kind).map(Some);
        if is_measured {
            files_of_advice.profile = file("profile.toml", Kind::Profile)?;
            files_of_advice.calibration = outputs.records(&path.join("calibration.jsonl"), Kind::Measurements)?;
        }
        files_of_advice.search = outputs.records(&path.join("search.jsonl"), Kind::Search)?;
        files_of_advice.device = outputs.records(&path.join("device.jsonl"), Kind::Comparison)?;
        Ok(files_of_advice)
    }

    /// Returns the path of the directory. `None` without a directory.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Writes the profile of the device. Does nothing without a profile to write.
    pub fn profile(&self, text: &str) -> Result<()> {
        write(self.profile.as_ref(), text)
    }

    /// Writes the page, and the files of the advised setting and of the setting that
    /// was not tried. Removes the files of an earlier advice. Returns the first error.
    pub fn finish(
        &mut self,
        page: &str,
        lasting: Option<&Lasting>,
        untried: Option<&Lasting>,
        outputs: &mut Outputs,
    ) -> Result<()> {
        let records = [&mut self.calibration, &mut self.search, &mut self.device].map(Records::finish);
        let mut written: Vec<Result<()>> = records.into_iter().collect();
        written.push(write(self.page.as_ref(), page));
        if let Some(directory) = &self.directory {
            let mut files = BTreeMap::new();
            for (place, lasting) in [(directory.clone(), lasting), (directory.join(UNTRIED), untried)] {
                let of_setting = lasting.map_or_else(Vec::new, |lasting| of_setting(lasting, &self.rule));
                files.extend(of_setting.into_iter().map(|(name, text)| (place.join(name), text)));
            }
            written.extend(files.iter().map(|(file, text)| self.set(file, text, outputs)));
            // Files of an earlier advice.
            let of_before = self.settings.iter().filter(|(file, _)| !files.contains_key(*file));
            written.extend(of_before.map(|(_, out)| out.remove()));
        }
        all_of(written)
    }

    /// Writes a file that sets or undoes a setting. Creates its directory if it is missing.
    fn set(&self, file: &Path, text: &str, outputs: &mut Outputs) -> Result<()> {
        if let Some(out) = self.settings.get(file) {
            return out.text(text);
        }
        if let Some(directory) = file.parent() {
            OpenDirectory::reach_or_make(directory)
                .map_err(|error| anyhow!("{}: cannot be created: {error}", directory.display()))?;
        }
        outputs.output("--output", file, Kind::Setting)?.text(text)
    }
}

/// Returns the files of settings that can be checked before anything runs: files with fixed names,
/// and existing drop-ins.
fn known(place: &Path, rule: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut known = [rule, "tuned.conf", "undo.sh"].map(|name| place.join(name)).to_vec();
    let drop_ins = entries.flatten().map(|entry| entry.path().join(DropIn::FILE));
    known.extend(drop_ins.filter(|file| file.exists()));
    known
}

/// Returns the files that set a setting and undo it, with their names in the directory.
fn of_setting(lasting: &Lasting, rule: &str) -> Vec<(PathBuf, String)> {
    let mut files = vec![
        (rule.into(), marked(&lasting.rule)),
        ("tuned.conf".into(), marked(&lasting.profile)),
        ("undo.sh".into(), script(&lasting.undo)),
    ];
    files.extend(lasting.drop_ins.iter().map(|drop_in| (drop_in.below_units(), marked(&drop_in.text))));
    files
}

fn write(out: Option<&Output>, text: &str) -> Result<()> {
    out.map_or(Ok(()), |out| out.text(text))
}

fn marked(text: &str) -> String {
    format!("{MARK} advise.\n{text}")
}

fn script(commands: &[String]) -> String {
    format!("#!/bin/sh\n{MARK} advise.\nset -e\n{}\n", commands.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::WriteArgs;

    fn lasting(drop_in: &str) -> Lasting {
        Lasting {
            commands: Vec::new(),
            rule_path: String::new(),
            rule: "KERNEL==\"sda\"\n".to_owned(),
            profile_name: String::new(),
            profile_path: String::new(),
            profile: "[main]\n".to_owned(),
            drop_ins: vec![DropIn {
                unit: "backup.service".to_owned(),
                path: String::new(),
                text: format!("[Service]\n{drop_in}\n"),
            }],
            undo: vec!["echo none > /sys/block/sda/queue/scheduler".to_owned()],
        }
    }

    fn write_advice(here: &Path, recommended: Option<&Lasting>, untried: Option<&Lasting>) -> Result<()> {
        let mut outputs = Outputs::new(WriteArgs { overwrite: false });
        let mut directory = AdviceDirectory::open(Some(here), "sda", false, &mut outputs)?;
        directory.finish("<meta name=\"generator\" content=\"iosched ", recommended, untried, &mut outputs)
    }

    #[test]
    fn outdated_advice_files_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path();
        let advised = lasting("IOWeight=1");
        write_advice(here, Some(&advised), Some(&advised)).unwrap();
        let files = ["90-iosched-sda.rules", "tuned.conf", "undo.sh", "backup.service.d/50-iosched.conf"];
        let untried = here.join(UNTRIED);
        assert!(files.iter().all(|name| here.join(name).exists() && untried.join(name).exists()));
        let others = here.join("notes.txt");
        fs::write(&others, "mine\n").unwrap();
        write_advice(here, None, Some(&Lasting { drop_ins: Vec::new(), ..advised })).unwrap();
        assert!(files.iter().all(|name| !here.join(name).exists()));
        assert_eq!(files.map(|name| untried.join(name).exists()), [true, true, true, false]);
        assert!(others.exists());
    }

    #[test]
    fn untried_drop_ins_are_separate_and_replace_no_foreign_file() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path();
        write_advice(here, None, Some(&lasting("IOWeight=1"))).unwrap();
        write_advice(here, None, Some(&lasting("IOWeight=2"))).unwrap();
        let untried = here.join(UNTRIED);
        let drop_in = untried.join("backup.service.d/50-iosched.conf");
        assert_eq!(fs::read_to_string(&drop_in).unwrap(), format!("{MARK} advise.\n[Service]\nIOWeight=2\n"));
        assert!(["90-iosched-sda.rules", "tuned.conf", "undo.sh"].iter().all(|name| untried.join(name).exists()));
        assert!(!here.join("undo.sh").exists(), "nothing is recommended");
        fs::write(&drop_in, "[Service]\n").unwrap();
        let mut outputs = Outputs::new(WriteArgs { overwrite: false });
        let refused = AdviceDirectory::open(Some(here), "sda", false, &mut outputs).err().unwrap().to_string();
        assert!(refused.contains("50-iosched.conf: this file exists, and is not a file of advice"), "{refused}");
    }
}
