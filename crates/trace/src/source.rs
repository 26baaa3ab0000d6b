//! The source of a trace: its files, or data from a pipe. A source can be read more than once.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::TraceError;
use crate::events::EventReader;
use crate::input::Input;
use crate::open;
use crate::reader::TraceReader;
use crate::reading::ReadOptions;

/// Name of standard input.
const STANDARD_INPUT: &str = "-";

/// A trace that can be opened: one file, or one per CPU.
#[derive(Clone, Debug)]
pub struct Source {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    name: String,
    place: Content,
}

#[derive(Clone, Debug)]
enum Content {
    File(PathBuf),
    /// Data that came through a pipe.
    Spooled(Arc<File>),
}

impl Source {
    /// Finds the files of the trace `path`: a file, or all per-CPU files if `path` is the name of
    /// one of them. If there is no file `path`, finds the per-CPU files whose names begin with
    /// `path`, or the compressed file. `-` is standard input. Data from a pipe is read to its end
    /// and stored in an unnamed file in the directory for temporary files.
    ///
    /// # Errors
    /// If no such file exists, `path` is a directory, or a pipe cannot be read or stored.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        if path == Path::new(STANDARD_INPUT) {
            return Self::keep(io::stdin().lock(), "standard input");
        }
        let name = path.display().to_string();
        let Ok(about) = std::fs::metadata(path) else {
            return Ok(Self::of_files(&open::resolve(path)?));
        };
        let kind = about.file_type();
        if kind.is_dir() {
            return Err(TraceError::Directory { found: open::traces_in(path), file: name });
        }
        if kind.is_fifo() || kind.is_socket() {
            let opened = File::open(path).map_err(|source| TraceError::Io { file: name.clone(), source })?;
            return Self::keep(opened, &name);
        }
        Ok(Self::of_files(&open::resolve(path)?))
    }

    /// Creates a source of exactly these files: one, or one per CPU.
    #[must_use]
    pub fn of_files(paths: &[PathBuf]) -> Self {
        let part = |path: &PathBuf| Part { name: path.display().to_string(), place: Content::File(path.clone()) };
        Self { parts: paths.iter().map(part).collect() }
    }

    /// Stores all data of `reader`. Messages call the data `name`.
    fn keep(mut reader: impl Read, name: &str) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Io { file: name.to_owned(), source };
        let mut file = tempfile::tempfile().map_err(failed)?;
        io::copy(&mut reader, &mut file).map_err(failed)?;
        Ok(Self { parts: vec![Part { name: name.to_owned(), place: Content::Spooled(Arc::new(file)) }] })
    }

    /// Opens a reader of the requests of the trace.
    ///
    /// # Errors
    /// The errors of [`TraceReader::open`].
    pub fn requests(&self, options: &ReadOptions) -> Result<TraceReader, TraceError> {
        TraceReader::from_inputs(self.inputs()?, options)
    }

    /// Opens a reader of the events of the trace.
    ///
    /// # Errors
    /// The errors of [`EventReader::open`].
    pub fn events(&self, options: &ReadOptions) -> Result<EventReader, TraceError> {
        EventReader::from_inputs(self.inputs()?, options)
    }

    /// Returns the names of the files, in the order of their CPUs.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.name.as_str())
    }

    /// Returns a title without directories. For one file, it is `x.csv`. For several files, it is
    /// `x.blktrace.0 to .3, which were read together`.
    #[must_use]
    pub fn title(&self) -> String {
        let base = |part: &Part| {
            let name = Path::new(&part.name).file_name().map(|name| name.to_string_lossy().into_owned());
            name.unwrap_or_else(|| part.name.clone())
        };
        let names: Vec<String> = self.parts.iter().map(base).collect();
        let [first, rest @ ..] = names.as_slice() else { return String::new() };
        if rest.is_empty() {
            return first.clone();
        }
        let Some((stem, from)) = open::split_cpu(first) else { return names.join(", ") };
        let ends: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(stem)).collect();
        let cpus = names.iter().filter_map(|name| open::split_cpu(name)).map(|(_, cpu)| cpu);
        let in_a_row = cpus.eq(from..from.saturating_add(names.len() as u32));
        match ends.as_slice() {
            [first, .., last] if in_a_row && ends.len() > 2 => {
                format!("{stem}{first} to {last}, which iosched read together")
            }
            [first @ .., last] => format!("{stem}{} and {last}, which iosched read together", first.join(", ")),
            [] => names.join(", "),
        }
    }

    fn inputs(&self) -> Result<Vec<Input>, TraceError> {
        let open = |part: &Part| {
            let reader: io::Result<Box<dyn Read + Send>> = match &part.place {
                Content::File(path) => File::open(path).map(|file| Box::new(file) as _),
                Content::Spooled(file) => Ok(Box::new(Spooled { file: Arc::clone(file), at: 0 })),
            };
            let input = reader.and_then(|reader| Input::new(reader, &part.name));
            input.map_err(|source| TraceError::Io { file: part.name.clone(), source })
        };
        self.parts.iter().map(open).collect()
    }
}

/// A reader of a file that other readers read at the same time.
struct Spooled {
    file: Arc<File>,
    at: u64,
}

impl Read for Spooled {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(target, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}
