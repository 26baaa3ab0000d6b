//! The trees of all disks of a server. Each tree is below the name of its disk, as in `/sys/block`.

use super::tree::{self, Entry, Kind};
use super::wire::{Answer, Request};
use super::{ControlError, ControlServer};
use crate::Handle;
use crate::OwnedListener;
use crate::reactor::Stopped;

impl From<Stopped> for ControlError {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

/// Served disks by name. The root of the forest lists their names.
#[derive(Clone)]
pub struct Forest {
    disks: Vec<Handle>,
}

impl Forest {
    /// Creates the forest of these disks. The names of the disks must differ.
    #[must_use]
    pub fn new(disks: Vec<Handle>) -> Self {
        Self { disks }
    }

    /// Answers requests at `listener` until the returned server is dropped.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn serve(self, listener: OwnedListener) -> std::io::Result<ControlServer> {
        ControlServer::spawn(listener, move |request| self.answer(request))
    }

    /// Returns the kind of the node `path`.
    ///
    /// # Errors
    /// The path does not exist, or the disk has ended.
    pub fn kind(&self, path: &str) -> Result<Kind, ControlError> {
        match self.split(path)? {
            None => Ok(Kind::Directory),
            Some((disk, below)) => disk.control(move |disk, _| tree::kind(disk, &below))?,
        }
    }

    /// Returns the entries of the directory `path`.
    ///
    /// # Errors
    /// The directory does not exist, or the disk has ended.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, ControlError> {
        match self.split(path)? {
            None => {
                let disk = |disk: &Handle| Entry { name: disk.name().to_owned(), kind: Kind::Directory };
                Ok(self.disks.iter().map(disk).collect())
            }
            Some((disk, below)) => disk.control(move |disk, _| tree::list(disk, &below))?,
        }
    }

    /// Returns the content of the file `path`.
    ///
    /// # Errors
    /// The file does not exist, or the disk has ended.
    pub fn read(&self, path: &str) -> Result<String, ControlError> {
        let (disk, below) = self.of_disk(path)?;
        disk.control(move |disk, now| tree::read(disk, now, &below))?
    }

    /// Writes `value` to the file `path`.
    ///
    /// # Errors
    /// The file does not exist, it does not accept the value, or the disk has ended.
    pub fn write(&self, path: &str, value: String) -> Result<(), ControlError> {
        let (disk, below) = self.of_disk(path)?;
        disk.control(move |disk, now| tree::write(disk, now, &below, &value))?
    }

    /// Creates the directory `path`: see [`tree::make_directory`].
    ///
    /// # Errors
    /// The directory cannot be created, or the disk has ended.
    pub fn make_directory(&self, path: &str) -> Result<(), ControlError> {
        let (disk, below) = self.of_disk(path)?;
        disk.control(move |disk, _| tree::make_directory(disk, &below))?
    }

    /// Removes the directory `path`: see [`tree::remove_directory`].
    ///
    /// # Errors
    /// The directory cannot be removed, or the disk has ended.
    pub fn remove_directory(&self, path: &str) -> Result<(), ControlError> {
        let (disk, below) = self.of_disk(path)?;
        disk.control(move |disk, now| tree::remove_directory(disk, now, &below))?
    }

    /// Splits a path into the disk and the path in the tree of the disk. Returns `None` for the
    /// root.
    fn split(&self, path: &str) -> Result<Option<(&Handle, String)>, ControlError> {
        let (name, below) = path.split_once('/').unwrap_or((path, ""));
        if name.is_empty() {
            return Ok(None);
        }
        match self.disks.iter().find(|disk| disk.name() == name) {
            Some(disk) => Ok(Some((disk, below.to_owned()))),
            None => {
                let names: Vec<_> = self.disks.iter().map(Handle::name).collect();
                let known = format!("available: {}", names.join(", "));
                Err(ControlError::NotFound { path: path.to_owned(), known })
            }
        }
    }

    fn of_disk(&self, path: &str) -> Result<(&Handle, String), ControlError> {
        self.split(path)?.ok_or_else(|| ControlError::IsDirectory { path: "/".to_owned() })
    }

    fn answer(&self, request: Request) -> Answer {
        let answered = match request {
            Request::List { path } => self.list(&path).map(|entries| {
                let lines = entries.into_iter().map(|Entry { name, kind }| match kind {
                    Kind::Directory => format!("{name}/\n"),
                    Kind::File { .. } => format!("{name}\n"),
                });
                lines.collect()
            }),
            Request::Read { path } => self.read(&path),
            Request::Write { path, value } => self.write(&path, value).map(|()| String::new()),
        };
        answered.map_or_else(|error| Answer::Error { errno: error.errno(), message: error.to_string() }, Answer::Ok)
    }
}
