//! What is kept of advice: a directory with everything that it was made of.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use iosched_kernel::settings::{Lasting, rule_name};

use crate::output::{Kind, MARK, Output, Outputs, Records, all_of};

/// Files in a directory, all looked at before anything runs; or nothing.
#[derive(Default)]
pub(super) struct AdviceDirectory {
    directory: Option<PathBuf>,
    /// Measurements of the device.
    pub(super) calibration: Records,
    /// The search in simulation.
    pub(super) search: Records,
    /// Runs on the device.
    pub(super) device: Records,
    profile: Option<Output>,
    page: Option<Output>,
    rule: Option<Output>,
    tuned: Option<Output>,
    undo: Option<Output>,
}

impl AdviceDirectory {
    /// The directory, which is made if it is not there. What is measured is kept, too, if the device is to be measured.
    pub(super) fn open(directory: Option<&Path>, disk: &str, is_measured: bool, outputs: &mut Outputs) -> Result<Self> {
        let Some(path) = directory else { return Ok(Self::default()) };
        fs::create_dir_all(path).map_err(|error| anyhow!("{}: cannot be made: {error}", path.display()))?;
        let mut file = |name: &str, kind| outputs.output("--output", &path.join(name), kind).map(Some);
        let mut kept = Self {
            directory: Some(path.to_owned()),
            page: file("advice.html", Kind::Page)?,
            rule: file(&rule_name(disk), Kind::Setting)?,
            tuned: file("tuned.conf", Kind::Setting)?,
            undo: file("undo.sh", Kind::Setting)?,
            ..Self::default()
        };
        if is_measured {
            kept.profile = file("profile.toml", Kind::Profile)?;
            kept.calibration = outputs.records(&path.join("calibration.jsonl"), Kind::Measurements)?;
        }
        kept.search = outputs.records(&path.join("search.jsonl"), Kind::Search)?;
        kept.device = outputs.records(&path.join("device.jsonl"), Kind::Comparison)?;
        Ok(kept)
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The model that was made of the device.
    pub(super) fn profile(&self, text: &str) -> Result<()> {
        write(self.profile.as_ref(), text)
    }

    /// The page, and what would set it; what of it all could not be kept.
    pub(super) fn finish(&mut self, page: &str, lasting: Option<&Lasting>) -> Result<()> {
        let records = [&mut self.calibration, &mut self.search, &mut self.device].map(Records::finish);
        let mut written: Vec<Result<()>> = records.into_iter().collect();
        written.push(write(self.page.as_ref(), page));
        if let Some(lasting) = lasting {
            written.push(write(self.rule.as_ref(), &marked(&lasting.rule)));
            written.push(write(self.tuned.as_ref(), &marked(&lasting.profile)));
            written.push(write(self.undo.as_ref(), &script(&lasting.undo)));
        }
        all_of(written)
    }
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
