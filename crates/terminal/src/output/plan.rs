//! The outputs of a command. They are checked before anything runs: whether a file exists, whether
//! iosched made it, and whether the command also reads it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;

use super::complete_file::{New, Room};
use super::kind::Kind;
use super::place::{Destination, Place, open_stream};
use crate::error::{Unread, usage};

/// Options of a command that writes files.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct WriteArgs {
    /// Replace existing files that iosched did not write; without this option, such a file is an error
    #[arg(long, alias = "force")]
    pub overwrite: bool,
}

/// Permission to replace files that iosched did not make, and the option that gives this
/// permission.
#[derive(Clone, Copy, Debug)]
pub struct Replacing {
    /// Whether such a file may be replaced.
    pub is_allowed: bool,
    /// The option that gives the permission.
    pub option: &'static str,
}

impl From<WriteArgs> for Replacing {
    fn from(args: WriteArgs) -> Self {
        Self { is_allowed: args.overwrite, option: "--overwrite" }
    }
}

/// All files with a name that a command reads and writes.
#[derive(Debug)]
pub struct Outputs {
    replacing: Replacing,
    /// Device and inode of each input file, and its name.
    inputs: Vec<((u64, u64), PathBuf)>,
    files: Vec<(PathBuf, String)>,
    /// Description of the output on standard output.
    printed: Option<String>,
}

impl Outputs {
    /// Creates the outputs of a command that writes no file yet.
    pub fn new(replacing: impl Into<Replacing>) -> Self {
        Self { replacing: replacing.into(), inputs: Vec::new(), files: Vec::new(), printed: None }
    }

    /// Adds an input file, if it exists. An input file is never replaced, even with --overwrite.
    pub fn reads(mut self, path: impl AsRef<Path>) -> Self {
        if let Ok(metadata) = fs::metadata(&path) {
            self.inputs.push(((metadata.dev(), metadata.ino()), path.as_ref().to_owned()));
        }
        self
    }

    /// Adds several files that the command reads.
    pub fn reads_all(self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        paths.into_iter().fold(self, Self::reads)
    }

    /// Sets the description of the command's output on standard output.
    pub fn prints(mut self, what: &str) -> Self {
        self.printed = Some(what.to_owned());
        self
    }

    /// Adds an output file that `option` names.
    ///
    /// # Errors
    /// The file cannot be written, or the existing file must not be replaced.
    pub fn output(&mut self, option: &str, path: &Path, kind: Kind) -> Result<Output> {
        let place = self.place(option, path, kind)?;
        let stream = if let Destination::Stream(stream) = &place { Some(open_stream(stream)?) } else { None };
        Ok(Output { name: path.to_owned(), kind, place, stream, replacing: self.replacing })
    }

    /// Returns the path of a file or stream that a library opens and writes while the command runs.
    /// The library must not replace a file that appears at this path after this check.
    ///
    /// # Errors
    /// The errors of [`Outputs::output`], or `path` is standard output or standard error.
    pub fn streamed(&mut self, option: &str, path: &Path) -> Result<PathBuf> {
        match self.place(option, path, Kind::Trace)? {
            Destination::File(place) => Ok(place.path().to_owned()),
            Destination::Stream(path) => Ok(path),
            Destination::StandardOutput | Destination::StandardError => Err(usage(format_args!(
                "{option} {}: this is standard output or standard error; name a file or a pipe",
                path.display()
            ))),
        }
    }

    /// Adds the output of an option, if the option is given.
    pub fn optional(&mut self, option: &str, path: Option<&PathBuf>, kind: Kind) -> Result<Option<Output>> {
        path.map(|path| self.output(option, path, kind)).transpose()
    }

    pub(super) fn place(&mut self, option: &str, path: &Path, kind: Kind) -> Result<Destination> {
        let name = path.display();
        let place = Destination::at(path)?;
        match &place {
            Destination::StandardOutput => {
                let what = if option.is_empty() { kind.name().to_owned() } else { option.to_owned() };
                if let Some(other) = self.printed.replace(what) {
                    return Err(usage(format_args!(
                        "{option} {name}: {other} already goes to standard output; name a file"
                    )));
                }
            }
            Destination::File(file) => {
                self.may_be_written(path, file, kind)?;
                if let Some((_, other)) = self.files.iter().find(|(other, _)| other == file.path()) {
                    return Err(usage(format_args!(
                        "{name}: this file is given for both {other} and {option}; name two files"
                    )));
                }
                self.files.push((file.path().to_owned(), option.to_owned()));
            }
            Destination::StandardError | Destination::Stream(_) => {}
        }
        Ok(place)
    }

    fn may_be_written(&self, path: &Path, file: &Place, kind: Kind) -> Result<()> {
        let name = path.display();
        if let Ok(metadata) = file.metadata() {
            let identity = (metadata.dev(), metadata.ino());
            if let Some((_, input)) = self.inputs.iter().find(|(input, _)| *input == identity) {
                let same = if input == path { String::new() } else { format!(", as {}", input.display()) };
                return Err(usage(format_args!(
                    "{name}: this file is an input of the command{same}; name another file for the output"
                )));
            }
        }
        may_replace(path, file, kind, self.replacing)?;
        // Begins the file in the same way as the later write, so that an error appears before any
        // run. The temporary file is removed immediately.
        New::begin(file).map(drop).map_err(|error| usage(format_args!("{name}: cannot be written: {error}")))
    }
}

/// Refuses to replace a file that iosched did not make, unless an option allows it.
pub(super) fn may_replace(path: &Path, file: &Place, kind: Kind, replacing: Replacing) -> Result<()> {
    let name = path.display();
    let option = replacing.option;
    match kind.may_replace(file) {
        _ if replacing.is_allowed => Ok(()),
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) if kind == Kind::Trace => {
            Err(usage(format_args!("{name}: this file exists already; to replace this file, add {option}")))
        }
        Ok(false) => Err(usage(format_args!(
            "{name}: this file exists, and is not a {} made by iosched; name another file, or add {option} to \
             replace this file",
            kind.name()
        ))),
        Err(error) => Err(usage(format_args!(
            "{name}: this file exists, and iosched cannot check its contents ({error}); to replace this file \
             without a check, add {option}"
        ))),
    }
}

/// An output that is written as a whole, after the work.
#[derive(Debug)]
pub struct Output {
    name: PathBuf,
    kind: Kind,
    place: Destination,
    /// The open device or pipe, if `place` is a stream.
    stream: Option<File>,
    replacing: Replacing,
}

impl Output {
    /// Writes the output of `write`. A file appears only when it is complete.
    ///
    /// # Errors
    /// The destination cannot be written, or `write` fails.
    pub fn write<T>(&self, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        match &self.place {
            Destination::StandardOutput => self.stream(io::stdout().lock(), write),
            Destination::StandardError => self.stream(io::stderr().lock(), write),
            Destination::Stream(path) => match &self.stream {
                Some(stream) => self.stream(stream, write),
                None => self.stream(open_stream(path)?, write),
            },
            Destination::File(file) => {
                let new = New::begin(file).map_err(|error| self.cannot(&error))?;
                let value = self.stream(new.file(), write)?;
                new.file().sync_all().map_err(|error| self.cannot(&error))?;
                may_replace(&self.name, file, self.kind, self.replacing)?;
                new.put().map_err(|error| self.cannot(&error))?;
                Ok(value)
            }
        }
    }

    /// Writes a text as the whole content of the output.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub fn text(&self, text: &str) -> Result<()> {
        self.write(|out| Ok(out.write_all(text.as_bytes())?))
    }

    /// Removes an outdated file from an earlier run, if there is one.
    ///
    /// # Errors
    /// The file was not made by iosched, or cannot be removed.
    pub fn remove(&self) -> Result<()> {
        let Destination::File(file) = &self.place else { return Ok(()) };
        may_replace(&self.name, file, self.kind, self.replacing)?;
        match file.remove() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(anyhow!(
                "{}: iosched cannot remove this outdated file: {error}; remove the file yourself",
                self.name.display()
            )),
            _ => Ok(()),
        }
    }

    /// Returns the name as the user gave it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns whether the destination is a file.
    pub const fn is_file(&self) -> bool {
        matches!(self.place, Destination::File(_))
    }

    /// Returns an object that reserves room in the file system of the output.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub fn room(&self) -> Result<Room> {
        let file = if let Destination::File(file) = &self.place { Some(file) } else { None };
        Room::at(file).map_err(|error| self.cannot(&error))
    }

    /// Returns whether the destination is standard output.
    pub const fn is_standard_output(&self) -> bool {
        matches!(self.place, Destination::StandardOutput)
    }

    /// Writes to a stream. An error of the stream is reported with the
    /// name of the output. Other errors of `write` stay unchanged.
    fn stream<T>(&self, out: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        let mut noted = Noted { out, failed: None };
        let mut buffered = BufWriter::new(&mut noted);
        let written = write(&mut buffered);
        let flushed = if written.is_ok() { buffered.flush() } else { Ok(()) };
        drop(buffered.into_parts());
        match (noted.failed, flushed) {
            (Some(error), _) | (None, Err(error)) => Err(self.cannot(&error)),
            (None, Ok(())) => written,
        }
    }

    /// Returns the error of a file that cannot be written.
    pub fn cannot(&self, error: &io::Error) -> anyhow::Error {
        if self.is_standard_output() && error.kind() == io::ErrorKind::BrokenPipe {
            return Unread.into();
        }
        let name = if self.is_standard_output() { "standard output".into() } else { self.name.to_string_lossy() };
        anyhow!("{name}: cannot be written: {error}")
    }
}

/// Writer that remembers the error of the inner writer.
struct Noted<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Noted<W> {
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failed = Some(copy(error));
            }
        })
    }
}

impl<W: Write> Write for Noted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
