//! `iosched validate recording`: compares the decisions of a served disk's queue with the decisions
//! of the simulator.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched::Registry;
use iosched::recording::{DecisionText, Record, RecordError};
use iosched_lab::grouped;
use iosched_live::reactor::RECORDING_MARK;
use iosched_sim::{RecordedError, Replayed, replay_recorded};
use serde_json::json;

use iosched_terminal::fail::{of_file, usage};
use iosched_terminal::output;

/// Maximum length of a line, bytes. Decisions and names are short.
const LINE_BYTES_MAX: u64 = 1 << 16;

#[derive(Args, Debug)]
pub(crate) struct RecordingArgs {
    /// Recording from --record-driver of serve, mount, ublk or vhost
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
}

/// Reason why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: line {line}: {error}", path.display())]
    Line { path: PathBuf, line: u64, error: RecordError },
    #[error("{}: line {line} is longer than {LINE_BYTES_MAX} bytes: this is not a recording", path.display())]
    Long { path: PathBuf, line: u64 },
}

/// The lines of a recording.
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    line: u64,
    text: String,
}

impl Lines {
    /// Opens a recording, and returns the mark in its first line.
    fn open(path: &Path) -> Result<(Self, String)> {
        let failed = |error: io::Error| of_file(format!("{}: {error}", path.display()), &error);
        let file = BufReader::new(File::open(path).map_err(failed)?);
        let mut lines = Self { path: path.to_owned(), file, line: 0, text: String::new() };
        let mark = match lines.next_line() {
            Some(Ok(())) => lines.text.trim_end().to_owned(),
            _ => String::new(),
        };
        let kind = RECORDING_MARK.rsplit_once(' ').map_or(RECORDING_MARK, |(kind, _)| kind);
        if !mark.starts_with(kind) {
            let problem = format!("this is not a recording of a disk's queue; such a recording begins with {kind:?}");
            return Err(usage(format!(
                "{}: {problem}; make a recording with iosched serve --record-driver FILE",
                path.display()
            )));
        }
        Ok((lines, mark))
    }

    fn next_line(&mut self) -> Option<Result<(), ReadError>> {
        self.line += 1;
        self.text.clear();
        let (path, line) = (|| self.path.clone(), self.line);
        match self.file.by_ref().take(LINE_BYTES_MAX).read_line(&mut self.text) {
            Ok(0) => None,
            Ok(bytes) if bytes as u64 == LINE_BYTES_MAX => Some(Err(ReadError::Long { path: path(), line })),
            Ok(_) => Some(Ok(())),
            Err(error) => Some(Err(ReadError::Io { path: path(), error })),
        }
    }
}

impl Iterator for Lines {
    type Item = Result<Record<DecisionText>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.next_line()?;
        Some(read.and_then(|()| {
            let wrong = |error| ReadError::Line { path: self.path.clone(), line: self.line, error };
            Record::parse(self.text.trim_end_matches('\n')).map_err(wrong)
        }))
    }
}

pub(super) fn run(args: &RecordingArgs) -> Result<()> {
    let (lines, mark) = Lines::open(&args.file)?;
    let replayed = replay_recorded(lines, &Registry::linux(), None).map_err(|error| {
        let other = match &error {
            RecordedError::Diverged { .. } if mark != RECORDING_MARK => {
                format!(
                    "; the recording was made by {mark:?}, and this command is {RECORDING_MARK:?}; the two \
                     versions may decide differently"
                )
            }
            _ => String::new(),
        };
        match error {
            RecordedError::Read(error) => anyhow!(error),
            error => anyhow!("{}: {error}{other}", args.file.display()),
        }
    })?;
    let Replayed { records, bios, requests, decisions } = replayed;
    if args.json {
        let file = args.file.display().to_string();
        return output::json(&json!({
            "file": file, "records": records, "bios": bios, "requests": requests, "decisions": decisions, "identical": true,
        }));
    }
    let counts = [(records, "records"), (bios, "bios"), (requests, "requests")];
    let counts = counts.map(|(count, what)| format!("{} {what}", grouped(count))).join(", ");
    output::print(&format!(
        "The simulator takes the same {} decisions as the disk's queue.\n\n{}: {counts}\n",
        grouped(decisions),
        args.file.display()
    ))
}
