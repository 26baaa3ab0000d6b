//! Long work that is watched: a bar on a terminal, and records in a file as they are made.

use std::fs::File;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosched_lab::{LabError, RecordWriter};
use serde::Serialize;

/// The bar of work that consists of runs.
pub(crate) const RUNS: &str = "{bar:30} {pos} of {len} runs, {eta} to go";

/// Work on its way; the bar goes when this does.
pub(crate) struct Watched {
    records: Option<(PathBuf, RecordWriter<File>)>,
    bar: ProgressBar,
}

impl Watched {
    /// With a bar of that template, and records to that file, if there is one.
    pub(crate) fn new(template: &str, records: Option<(PathBuf, RecordWriter<File>)>) -> Self {
        Self { records, bar: progress_bar(template) }
    }

    /// The same, with a file that is made.
    pub(crate) fn recorded(template: &str, path: Option<&Path>) -> Result<Self, LabError> {
        let open = |path: &Path| RecordWriter::create(path).map(|out| (path.to_owned(), out));
        Ok(Self::new(template, path.map(open).transpose()?))
    }

    /// Whether records are kept.
    pub(crate) const fn keeps_records(&self) -> bool {
        self.records.is_some()
    }

    /// Keeps a record.
    pub(crate) fn record(&mut self, record: &impl Serialize) -> Result<(), LabError> {
        match &mut self.records {
            Some((path, out)) => {
                out.write(record).map_err(|source| LabError::Io { file: path.display().to_string(), source })
            }
            None => Ok(()),
        }
    }

    /// So much is done.
    pub(crate) fn done(&self, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
    }

    /// Whatever is printed now stands by itself.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.clear();
    }
}

/// On a terminal only.
pub(crate) fn progress_bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
