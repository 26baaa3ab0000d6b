//! Progress of long work, records that are written during the work, and the signal that ends the
//! work early.

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosched_lab::Control;
use serde::Serialize;

use crate::output::{Records, say};
use crate::signals::{is_patient, on_signal};

/// Template of the progress bar of runs.
pub const RUNS: &str = "{bar:30} {pos} of {len} runs, {eta} to go";
/// Interval between lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Form in which long work reports its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressKind {
    /// A bar, only on a terminal
    #[default]
    Auto,
    /// A line every 10 s, with or without a terminal
    Plain,
    /// No progress
    None,
}

/// The chosen kind as a number.
static KIND: AtomicU8 = AtomicU8::new(ProgressKind::Auto as u8);

impl ProgressKind {
    /// Sets the kind of progress for the whole process.
    pub fn choose(self) {
        KIND.store(self as u8, Ordering::Relaxed);
    }

    fn chosen() -> Self {
        let number = KIND.load(Ordering::Relaxed);
        Self::value_variants().iter().copied().find(|kind| *kind as u8 == number).unwrap_or_default()
    }
}

/// A meter of progress. Its bar disappears when the meter is dropped.
pub struct Meter {
    bar: ProgressBar,
    /// Time of the last line, for progress by lines.
    line: Option<Mutex<Instant>>,
}

impl Meter {
    /// Creates a meter at 0, with the template of its bar.
    pub fn new(template: &str) -> Self {
        let kind = ProgressKind::chosen();
        let target = match kind {
            ProgressKind::Auto => ProgressDrawTarget::stderr(),
            ProgressKind::Plain | ProgressKind::None => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, line: (kind == ProgressKind::Plain).then(|| Mutex::new(Instant::now())) }
    }

    /// Sets the total amount of work.
    pub fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// Sets the completed amount of work.
    pub fn set_position(&self, position: u64) {
        self.bar.set_position(position);
        self.say_line();
    }

    /// Adds 1 to the completed amount.
    pub fn advance(&self) {
        self.set_position(self.bar.position() + 1);
    }

    /// Sets the completed amount and the total.
    pub fn set(&self, done: usize, total: usize) {
        self.set_length(total as u64);
        self.set_position(done as u64);
    }

    /// Sets the message about the current work.
    pub fn message(&self, message: impl Display) {
        self.bar.set_message(message.to_string());
    }

    /// Prints a warning above the meter.
    pub fn warn(&self, warning: Option<String>) {
        self.bar.suspend(|| warning.iter().for_each(|warning| eprintln!("warning: {warning}")));
    }

    /// Removes the bar, so that other output can follow.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn say_line(&self) {
        let Some(line) = &self.line else { return };
        let Ok(mut last) = line.lock() else { return };
        if last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            say!("{}", self.words());
        }
    }

    /// Returns the progress in words, such as `12 of 60, 2 minutes to go: bfq`.
    fn words(&self) -> String {
        let (position, message) = (self.bar.position(), self.bar.message());
        let done = match self.bar.length() {
            Some(length) if length > 0 => {
                let to_go = HumanDuration(self.bar.eta());
                format!("{position} of {length} done, {to_go} to go")
            }
            _ => format!("{position} done"),
        };
        let message = message.trim().trim_end_matches([',', ':']);
        if message.is_empty() { done } else { format!("{done}: {message}") }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Progress of runs, and the records that they write.
pub struct Watched {
    /// Records of the work.
    pub records: Records,
    meter: Meter,
}

impl Watched {
    /// Creates the progress with the template of its bar.
    pub fn new(template: &str, records: Records) -> Self {
        Self { records, meter: Meter::new(template) }
    }

    /// Writes a record of the work.
    pub fn record(&mut self, record: &impl Serialize) {
        self.records.record(record);
    }

    /// Sets the completed amount and the total.
    pub fn done(&self, done: usize, total: usize) {
        self.meter.set(done, total);
    }

    /// Prints a warning above the meter.
    pub fn warn(&self, warning: Option<String>) {
        self.meter.warn(warning);
    }

    /// Removes the bar, so that other output can follow.
    pub fn clear(&self) {
        self.meter.clear();
    }
}

/// Makes the first Ctrl-C end the work after the current runs. A second Ctrl-C, or any other
/// signal, also ends the current runs. The reason is that a run can take minutes, and that
/// `timeout` and service managers send only one signal.
pub fn on_interrupt(control: &Arc<Control>) -> Result<()> {
    on_interrupt_saying(control, "")
}

/// Does the same as [`on_interrupt`], and prints `ending` after the message about the current runs.
pub fn on_interrupt_saying(control: &Arc<Control>, ending: &'static str) -> Result<()> {
    let control = Arc::clone(control);
    on_signal(move |signal| {
        if is_patient(signal) {
            control.interrupt();
            say!("\nstopping after the current runs; a second Ctrl-C stops them too");
        } else {
            control.abort();
            say!("\nstopping; iosched keeps the results of finished runs{ending}");
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_has_count_remaining_time_and_message() {
        let meter = Meter::new(RUNS);
        meter.set(3, 0);
        assert_eq!(meter.words(), "3 done");
        meter.set(3, 12);
        meter.message("bfq, ");
        let words = meter.words();
        assert!(words.starts_with("3 of 12 done, ") && words.ends_with(" to go: bfq"), "{words}");
    }
}
