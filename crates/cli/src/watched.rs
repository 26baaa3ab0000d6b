//! Long work that is watched: a bar on a terminal, records in a file as they are made, and the signal that ends it
//! early.

use std::sync::Arc;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosched_lab::Control;
use serde::Serialize;

use crate::output::{Records, say};
use crate::signals::on_signal;

/// The bar of work that consists of runs.
pub(crate) const RUNS: &str = "{bar:30} {pos} of {len} runs, {eta} to go";

/// Work on its way; the bar goes when this does.
pub(crate) struct Watched {
    /// Its records.
    pub(crate) records: Records,
    bar: ProgressBar,
}

impl Watched {
    /// With a bar of that template.
    pub(crate) fn new(template: &str, records: Records) -> Self {
        Self { records, bar: progress_bar(template) }
    }

    /// Keeps a record.
    pub(crate) fn record(&mut self, record: &impl Serialize) {
        self.records.record(record);
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

/// Runs end after the current ones at the first signal.
pub(crate) fn on_interrupt(control: &Arc<Control>) -> Result<()> {
    let control = Arc::clone(control);
    on_signal(move |_| {
        control.interrupt();
        say!("\nending after the current runs; Ctrl-C again ends those, too");
    })
}
