//! What is kept of advice: a directory with everything that it was made of.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use iosched_kernel::settings::Lasting;

use crate::output::whole_file;

/// A directory of files, or nothing.
pub(super) struct Kept(Option<PathBuf>);

impl Kept {
    /// The directory, which is made if it is not there.
    pub(super) fn open(directory: Option<&Path>) -> Result<Self> {
        if let Some(path) = directory {
            fs::create_dir_all(path).map_err(|error| anyhow!("{}: cannot be made: {error}", path.display()))?;
        }
        Ok(Self(directory.map(Path::to_owned)))
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// Where a file of that name is kept.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(name))
    }

    /// A file that is there whole or not at all.
    pub(super) fn whole(&self, name: &str, text: &str) -> Result<()> {
        match self.path(name) {
            Some(path) => whole_file(&path, |out| Ok(out.write_all(text.as_bytes())?)),
            None => Ok(()),
        }
    }

    /// The page, and what would set it.
    pub(super) fn finish(&self, page: &str, lasting: Option<&Lasting>) -> Result<()> {
        self.whole("advice.html", page)?;
        let Some(lasting) = lasting else { return Ok(()) };
        let rule = Path::new(&lasting.rule_path).file_name().unwrap_or_default().to_string_lossy();
        self.whole(&rule, &lasting.rule)?;
        self.whole("tuned.conf", &lasting.profile)?;
        self.whole("undo.sh", &script(&lasting.undo))
    }
}

fn script(commands: &[String]) -> String {
    format!("#!/bin/sh\nset -e\n{}\n", commands.join("\n"))
}
