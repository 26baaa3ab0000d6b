//! Records that get a line when a run finishes. Finished runs therefore remain even if the process
//! is killed.
//!
//! If the user names a file, the new file appears when its first run finishes. Until then, an
//! existing file with the same name stays. If the user names no file, each comparison writes a
//! separate file. When the first run finishes, the separate file gets the second name `last.jsonl`.
//! If several comparisons run at the same time, the comparison that finishes last leaves its file
//! as `last.jsonl`.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use iosched_lab::RecordWriter;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;

use super::complete_file::{New, temporary};
use super::kind::Kind;
use super::last::{LAST, directory};
use super::messages::say;
use super::place::{Destination, Place, open_stream};
use super::plan::Outputs;
use crate::error::usage;

/// Number of lines before the first run: the plan.
const LINES_OF_PLAN: u64 = 1;

/// The records of a command.
#[derive(Default)]
pub struct Records {
    name: PathBuf,
    sink: Sink,
    lines: u64,
    bytes: u64,
    /// Whether the file is at its final place, with at least one run.
    published: bool,
    /// Whether the user did not request the records. An error is then only a warning.
    unasked: bool,
    problem: Option<io::Error>,
}

#[derive(Default)]
enum Sink {
    #[default]
    Nowhere,
    Stream(File),
    /// A file that has not got its final name yet.
    New(Box<New>),
    File(File, Place),
    Last(Last),
}

impl Outputs {
    /// Creates the records that an option requests.
    ///
    /// # Errors
    /// The file cannot be written, must not be replaced, or is in use by another comparison.
    pub fn records(&mut self, path: &Path, kind: Kind) -> Result<Records> {
        let sink = match self.place("--records", path, kind)? {
            Destination::StandardOutput => {
                return Err(usage("records cannot go to standard output; name a file or a pipe"));
            }
            Destination::StandardError => {
                return Err(usage("records cannot go to standard error; name a file or a pipe"));
            }
            Destination::Stream(stream) => Sink::Stream(open_stream(&stream)?),
            Destination::File(file) => {
                if is_in_use(&file) {
                    return Err(usage(format_args!(
                        "{}: another iosched process is writing records to this file; name another file",
                        path.display()
                    )));
                }
                let cannot = |error| usage(format_args!("{}: cannot be written: {error}", path.display()));
                Sink::New(Box::new(New::begin(&file).map_err(cannot)?))
            }
        };
        Ok(Records { name: path.to_owned(), sink, ..Records::default() })
    }
}

impl Records {
    /// Creates records that are not stored.
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates the records of a comparison without a named file. If the records cannot be stored,
    /// only warns.
    pub fn last() -> Self {
        let begun = directory().and_then(|directory| {
            let begun = Last::begin(&directory);
            begun.map_err(|error| anyhow!("{}: {error}", directory.display()))
        });
        match begun {
            Ok(last) => {
                Self { name: last.target.path().to_owned(), sink: Sink::Last(last), unasked: true, ..Self::default() }
            }
            Err(error) => {
                say!(
                    "warning: {error}; iosched stores no records of this comparison. To store records, name a \
                    file with --records FILE"
                );
                Self::default()
            }
        }
    }

    /// Writes a record as a line of JSON.
    pub fn record(&mut self, record: &impl Serialize) {
        self.line_of(|line| RecordWriter::new(line).write(record));
    }

    /// Writes the line that `write` produces.
    pub fn line_of(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) {
        if self.problem.is_some() || matches!(self.sink, Sink::Nowhere) {
            return;
        }
        let mut line = Vec::new();
        if let Err(error) = write(&mut line).and_then(|()| self.write(&line)) {
            self.fails(error);
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match &mut self.sink {
            Sink::Nowhere => return Ok(()),
            Sink::Stream(file) | Sink::File(file, _) => file.write_all(line)?,
            Sink::New(new) => new.file().write_all(line)?,
            Sink::Last(last) => last.file.write_all(line)?,
        }
        self.bytes += line.len() as u64;
        self.lines += 1;
        if self.lines == LINES_OF_PLAN + 1 {
            self.publish()?;
        }
        Ok(())
    }

    /// Gives the file its final name when its first run is complete.
    fn publish(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.sink) {
            Sink::New(new) => {
                flock(new.file(), FlockOperation::NonBlockingLockExclusive)?;
                let target = new.target().clone();
                self.sink = Sink::File(new.put()?, target);
            }
            Sink::Last(mut last) => {
                last.show();
                self.sink = Sink::Last(last);
            }
            other => {
                self.sink = other;
                return Ok(());
            }
        }
        self.published = true;
        Ok(())
    }

    /// Handles an error of writing: keeps the complete lines of the file. The runs continue.
    fn fails(&mut self, error: io::Error) {
        let (Sink::File(file, _) | Sink::Last(Last { file, .. })) = &mut self.sink else {
            self.sink = Sink::Nowhere;
            self.problem = Some(error);
            return self.warn();
        };
        let _ = file.set_len(self.bytes).and_then(|()| file.rewind());
        self.problem = Some(error);
        self.warn();
    }

    fn warn(&self) {
        if let Some(error) = &self.problem {
            say!("warning: {}: {error}; iosched stores no further records", self.name.display());
        }
    }

    /// Returns the path of the file with the finished runs, if they are stored.
    pub fn stored_at(&self) -> Option<&Path> {
        self.published.then_some(&*self.name)
    }

    /// Returns whether these are the records without a file name, which `iosched report --last`
    /// shows.
    pub const fn are_last(&self) -> bool {
        self.unasked
    }

    /// Ends the records, and reports an error of writing.
    ///
    /// # Errors
    /// The user requested the records, and they are incomplete.
    pub fn finish(&mut self) -> Result<()> {
        let name = self.name.display();
        if let Sink::File(file, target) = std::mem::take(&mut self.sink)
            && !target.is(&file)
        {
            return Err(anyhow!(
                "{name}: another program replaced this file while iosched wrote records to it; the records are lost"
            ));
        }
        match &self.problem {
            Some(error) if !self.unasked => Err(anyhow!("{name}: this file does not contain all records: {error}")),
            _ => Ok(()),
        }
    }
}

/// Returns whether another process writes records to the file.
fn is_in_use(place: &Place) -> bool {
    let Ok(file) = place.open(OFlags::RDONLY | OFlags::NONBLOCK) else { return false };
    matches!(flock(&file, FlockOperation::NonBlockingLockShared), Err(rustix::io::Errno::WOULDBLOCK))
}

/// The separate file of a comparison in the state directory. The file is locked while it is
/// written. At the end, it gets the name `last.jsonl`.
struct Last {
    file: File,
    place: Place,
    target: Place,
    has_runs: bool,
}

impl Last {
    fn begin(directory: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let target = Place::of(&directory.join(LAST))?;
        match Kind::Comparison.may_replace(&target) {
            Ok(false) => {
                return Err(io::Error::other(format!(
                    "{LAST} is not a file of records, so iosched does not replace this file"
                )));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => remove_left_over(directory, &target),
        }
        let mut number = 0;
        loop {
            let place = target.beside(format!("last-{}-{number}.jsonl", std::process::id()));
            match place.make(0o600) {
                Ok(file) => {
                    flock(&file, FlockOperation::LockExclusive)?;
                    // Another comparison may have removed the
                    // file as a leftover before it was locked.
                    if place.is(&file) {
                        return Ok(Self { file, place, target, has_runs: false });
                    }
                }
                // A process in another container can have the same process number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file its second name, so that the user finds it even if this process is killed.
    /// Does nothing if the file system does not support hard links.
    fn show(&mut self) {
        self.has_runs = true;
        let second = temporary(&self.target);
        if self.place.link_to(&second).and_then(|()| second.rename_to(&self.target)).is_err() {
            let _ = second.remove();
        }
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if self.has_runs {
            let _ = self.place.rename_to(&self.target);
        }
        // The first name still exists if there are no runs, or if both names are links to the same
        // file.
        let _ = self.place.remove();
    }
}

/// Removes the files of comparisons that were killed.
fn remove_left_over(directory: &Path, target: &Place) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_own = |name: &str| name.strip_prefix("last-").is_some_and(|rest| rest.ends_with(".jsonl"));
    for name in entries.map(|entry| entry.file_name()).filter(|name| name.to_str().is_some_and(is_own)) {
        let place = target.beside(name);
        // O_NONBLOCK avoids waiting for a FIFO with this name.
        let Ok(file) = place.open(OFlags::RDONLY | OFlags::NONBLOCK) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = place.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn fifo_in_the_records_directory_does_not_block() {
        let here = tempfile::tempdir().unwrap();
        for name in ["last-1-0.jsonl", LAST] {
            mknodat(CWD, here.path().join(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            let begun = Last::begin(here.path());
            assert_eq!(begun.is_ok(), name != LAST, "{name}");
        }
    }
}
