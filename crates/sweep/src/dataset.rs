//! Where the files of a dataset are, and what is in them.
//!
//! | place | what |
//! |---|---|
//! | `runs/device=NAME/UNIT.parquet` | a row for each figure of each run |
//! | `verdicts/device=NAME/UNIT.parquet` | a row for each figure of each setting |
//! | `failed.json` | units that could not be made, and why |
//!
//! A unit's verdicts are written before its runs: it is done when its runs are there. `docs/sweep.md` has the columns.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::columns::Table;
use crate::error::SweepError;
use crate::summary::{Gathering, Summary};
use crate::unit::{Unit, UnitTables};

/// The tables of a dataset.
pub const RUNS: &str = "runs";
/// See [`RUNS`].
pub const VERDICTS: &str = "verdicts";
/// Units that could not be made.
pub const FAILED: &str = "failed.json";
const ENDING: &str = ".parquet";

/// Where the file of a unit is in a table.
#[must_use]
pub fn place(table: &str, unit: &Unit) -> String {
    format!("{table}/device={}/{}{ENDING}", partition(unit.device()), unit.id())
}

/// A device's name as a part of a path.
fn partition(device: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    device.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The unit whose file it is, by its path.
#[must_use]
pub fn unit_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(ENDING)
}

/// A dataset in a directory of this machine.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The one at `root`, which is made if it is not there.
    ///
    /// # Errors
    /// It is no directory, or cannot be made.
    pub fn create(root: &Path) -> Result<Self, SweepError> {
        if root.exists() && !root.is_dir() {
            return Err(SweepError::NoDirectory { file: root.display().to_string() });
        }
        fs::create_dir_all(root).map_err(SweepError::io(root.display().to_string()))?;
        Ok(Self { root: root.to_owned() })
    }

    /// The one at `root`, if it is there.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The ids of units that are done.
    ///
    /// # Errors
    /// It cannot be listed.
    pub fn done(&self) -> Result<BTreeSet<String>, SweepError> {
        let files = self.files(RUNS)?;
        Ok(files.iter().filter_map(|path| Some(unit_of(path.to_str()?)?.to_owned())).collect())
    }

    /// The files of a table, in the order of their names.
    fn files(&self, table: &str) -> Result<Vec<PathBuf>, SweepError> {
        let mut all = Vec::new();
        for directory in listed(&self.root.join(table))? {
            let files = listed(&directory)?.into_iter();
            all.extend(files.filter(|path| path.to_str().is_some_and(|path| unit_of(path).is_some())));
        }
        all.sort();
        Ok(all)
    }

    /// Hands the files of a table to `take`, one by one.
    ///
    /// # Errors
    /// One cannot be read or is none of a dataset, or `take` fails.
    pub fn each(&self, table: &str, mut take: impl FnMut(Table) -> Result<(), SweepError>) -> Result<(), SweepError> {
        for path in self.files(table)? {
            let file = path.display().to_string();
            let bytes = fs::read(&path).map_err(SweepError::io(&*file))?;
            take(Table::from_parquet(bytes, &file)?)?;
        }
        Ok(())
    }

    /// A whole table.
    ///
    /// # Errors
    /// As [`Self::each`], or files have other columns than others.
    pub fn table(&self, table: &str) -> Result<Table, SweepError> {
        let mut all = Table::default();
        self.each(table, |part| {
            let problem = |problem| SweepError::Dataset { file: self.root.join(table).display().to_string(), problem };
            all.append(part).map_err(problem)
        })?;
        Ok(all)
    }

    /// What it says of a figure; `None` if nothing is in it.
    ///
    /// # Errors
    /// As [`Self::each`], or nothing can be said of that figure.
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

    /// Puts a unit's files there, each whole or not at all.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn put(&self, unit: &Unit, results: &UnitTables) -> Result<(), SweepError> {
        self.write(&place(VERDICTS, unit), &results.verdicts)?;
        self.write(&place(RUNS, unit), &results.runs)
    }

    /// A file at `place`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, place: &str, content: &[u8]) -> Result<(), SweepError> {
        let target = self.root.join(place);
        let written = || -> io::Result<()> {
            let directory = target.parent().unwrap_or(&self.root);
            fs::create_dir_all(directory)?;
            // Beside its place, with a name that nothing takes for a file of the dataset.
            let name = target.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let beside = directory.join(format!(".{name}.{}", std::process::id()));
            // A killed process with the same number may have left one. A link is removed, and never followed.
            if let Err(error) = fs::remove_file(&beside)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
            let mut file = fs::File::create_new(&beside)?;
            let put =
                file.write_all(content).and_then(|()| file.sync_data()).and_then(|()| fs::rename(&beside, &target));
            put.inspect_err(|_| drop(fs::remove_file(&beside)))
        };
        written().map_err(SweepError::io(target.display().to_string()))
    }
}

/// What is in a directory; nothing if there is none.
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
