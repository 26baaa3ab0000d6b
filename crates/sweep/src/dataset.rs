//! Layout of a dataset's files, and access to them.
//!
//! | place | content |
//! |---|---|
//! | `runs/device=NAME/UNIT.parquet` | a row for each metric of each run |
//! | `verdicts/device=NAME/UNIT.parquet` | a row for each metric of each setting |
//! | `failed.json` | units that failed, with the reasons |
//!
//! The verdicts of a unit are written before its runs. If the file with the runs of a unit exists,
//! the unit is therefore complete. `docs/sweep.md` describes the columns.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iosched_system::open_directory::OpenDirectory;

use crate::columns::Table;
use crate::error::SweepError;
use crate::summary::{Gathering, Summary};
use crate::unit::{Unit, UnitTables};

/// Name of the table of runs.
pub const RUNS: &str = "runs";
/// Name of the table of verdicts.
pub const VERDICTS: &str = "verdicts";
/// Name of the file that lists failed units.
pub const FAILED: &str = "failed.json";
const ENDING: &str = ".parquet";

/// Returns the path of a unit's file in a table, relative to the dataset.
#[must_use]
pub fn place(table: &str, unit: &Unit) -> String {
    format!("{table}/device={}/{}{ENDING}", partition(unit.device()), unit.id())
}

/// Converts the name of a device to a part of a path.
fn partition(device: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    device.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Returns the id of the unit that a file belongs to, from its path.
#[must_use]
pub fn unit_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(ENDING)
}

/// A dataset in a local directory.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
    /// The open directory in which files are written.
    held: Option<Arc<OpenDirectory>>,
}

impl Directory {
    /// Opens the dataset at `root`. Creates its directory if it does not exist.
    ///
    /// # Errors
    /// `root` is not a directory, or cannot be created.
    pub fn create(root: &Path) -> Result<Self, SweepError> {
        if root.exists() && !root.is_dir() {
            return Err(SweepError::NoDirectory { file: root.display().to_string() });
        }
        let held = OpenDirectory::reach_or_make(root).map_err(SweepError::io(root.display().to_string()))?;
        Ok(Self { root: root.to_owned(), held: Some(held) })
    }

    /// Opens the dataset at `root` without creating a directory.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), held: None }
    }

    /// Returns the ids of the units that are complete.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn done(&self) -> Result<BTreeSet<String>, SweepError> {
        let files = self.files(RUNS)?;
        Ok(files.iter().filter_map(|path| Some(unit_of(path.to_str()?)?.to_owned())).collect())
    }

    /// Returns the files of a table, sorted by name.
    fn files(&self, table: &str) -> Result<Vec<PathBuf>, SweepError> {
        let mut all = Vec::new();
        for directory in listed(&self.root.join(table))? {
            let files = listed(&directory)?.into_iter();
            all.extend(files.filter(|path| path.to_str().is_some_and(|path| unit_of(path).is_some())));
        }
        all.sort();
        Ok(all)
    }

    /// Passes the files of a table to `take`, one by one.
    ///
    /// # Errors
    /// A file cannot be read or does not belong to a dataset, or `take` fails.
    pub fn each(&self, table: &str, mut take: impl FnMut(Table) -> Result<(), SweepError>) -> Result<(), SweepError> {
        for path in self.files(table)? {
            let file = path.display().to_string();
            let bytes = fs::read(&path).map_err(SweepError::io(&*file))?;
            take(Table::from_parquet(bytes, &file)?)?;
        }
        Ok(())
    }

    /// Returns a table with the rows of all parts.
    ///
    /// # Errors
    /// The errors of [`Self::each`], or the columns of the files differ.
    pub fn table(&self, table: &str) -> Result<Table, SweepError> {
        let mut all = Table::default();
        self.each(table, |part| {
            let problem = |problem| SweepError::Dataset { file: self.root.join(table).display().to_string(), problem };
            all.append(part).map_err(problem)
        })?;
        Ok(all)
    }

    /// Returns the summary of a metric. `None` if the dataset has no runs.
    ///
    /// # Errors
    /// The errors of [`Self::each`], or the metric has no summary.
    pub fn summary(&self, figure: &str) -> Result<Option<Summary>, SweepError> {
        let mut gathering = Gathering::new(figure);
        let mut rows = 0;
        self.each(RUNS, |runs| {
            rows += runs.rows();
            gathering.runs(&runs)
        })?;
        if rows == 0 {
            return Ok(None);
        }
        self.each(VERDICTS, |verdicts| gathering.verdicts(&verdicts))?;
        Summary::of_all(gathering, figure).map(Some)
    }

    /// Writes the files of a unit. Each is written completely or not at all.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn put(&self, unit: &Unit, results: &UnitTables) -> Result<(), SweepError> {
        self.write(&place(VERDICTS, unit), &results.verdicts)?;
        self.write(&place(RUNS, unit), &results.runs)
    }

    /// Writes a file at `place`, completely or not at all. The directory of the dataset stays open,
    /// so that the file goes to this directory. The function follows no symbolic link in the
    /// dataset.
    ///
    /// # Errors
    /// The file cannot be written, or the directory of the dataset was replaced.
    pub fn write(&self, place: &str, content: &[u8]) -> Result<(), SweepError> {
        let target = Path::new(place);
        let written = || -> io::Result<()> {
            let root =
                self.held.as_ref().map_or_else(|| OpenDirectory::reach(&self.root), |held| Ok(Arc::clone(held)))?;
            if !root.is_at(&self.root) {
                return Err(io::Error::other("the directory of the dataset was renamed or replaced during the sweep"));
            }
            let directory = root.reach_or_make_in(target.parent().unwrap_or(Path::new("")))?;
            let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            directory.put(name, |error| error, |file| file.write_all(content).and_then(|()| file.sync_data()))
        };
        written().map_err(SweepError::io(self.root.join(target).display().to_string()))
    }
}

/// Returns the entries of a directory. Empty if the directory does not exist.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let name = directory.display().to_string();
    match fs::read_dir(directory) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => Ok(Vec::new()),
        Err(source) => Err(SweepError::Io { file: name, source }),
        Ok(entries) => {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<io::Result<_>>().map_err(SweepError::io(name))
        }
    }
}
