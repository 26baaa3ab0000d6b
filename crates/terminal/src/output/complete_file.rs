//! Files that appear complete or not at all. The content is written to a temporary file, which has
//! no name if the file system supports unnamed files. One step then gives the temporary file its
//! final name. If the process ends earlier, no file remains.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::FallocateFlags;

use super::messages::exit;
use super::place::{DESCRIPTORS, Place};
use crate::error::INTERRUPTED;
use crate::signals::on_signal_if_nobody_does;

/// A new file that is not yet in place.
pub(super) struct New {
    file: File,
    target: Place,
    /// Temporary name, if the file system does not support unnamed files.
    name: Option<Named>,
    replaces: bool,
}

impl New {
    /// Begins a file for the place `target`. The new file gets owner, group and mode of an existing
    /// file.
    ///
    /// # Errors
    /// The directory or the existing file is not writable, or the owner cannot be changed.
    pub(super) fn begin(target: &Place) -> io::Result<Self> {
        let old = match target.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            old => Some(old?),
        };
        if old.is_some() {
            target.check_access()?;
        }
        let (file, name) = match unnamed(target)? {
            Some(file) => (file, None),
            None => named(target).map(|(file, name)| (file, Some(name)))?,
        };
        if let Some(old) = &old {
            adopt(&file, old)?;
        }
        Ok(Self { file, target: target.clone(), name, replaces: old.is_some() })
    }

    /// Returns the destination.
    pub(super) const fn target(&self) -> &Place {
        &self.target
    }

    /// Returns the file for writing.
    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in place. The caller can continue to write.
    ///
    /// # Errors
    /// - The file cannot be renamed or linked.
    /// - A file has appeared at its place in the meantime.
    /// - The directory is no longer at its path.
    pub(super) fn put(self) -> io::Result<File> {
        let Self { file, target, name, replaces } = self;
        if !target.is_in_place() {
            return Err(io::Error::other(
                "another program renamed or replaced the directory of this file while the command ran",
            ));
        }
        match name {
            Some(name) => name.0.rename_to(&target)?,
            None if !replaces => target.link(&file)?,
            None => {
                let name = Named(temporary(&target));
                name.0.link(&file)?;
                name.0.rename_to(&target)?;
            }
        }
        Ok(file)
    }
}

/// Room that is reserved in the file system of an output before the output is written.
pub struct Room {
    /// The file that reserves the room. `None` for a pipe or a file system without reservations.
    file: Option<New>,
    bytes: u64,
}

impl Room {
    /// Additional bytes of each reservation.
    const STEP_BYTES: u64 = 1 << 20;

    pub(super) fn at(target: Option<&Place>) -> io::Result<Self> {
        Ok(Self { file: target.map(New::begin).transpose()?, bytes: 0 })
    }

    /// Reserves room for `bytes` plus one step. Also succeeds if the file system does not support
    /// reservations.
    ///
    /// # Errors
    /// The file system is full, or a quota is exceeded. Earlier reservations remain.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        use rustix::io::Errno;
        let Some(new) = &self.file else { return Ok(()) };
        if bytes + Self::STEP_BYTES / 2 <= self.bytes {
            return Ok(());
        }
        let wanted = bytes + Self::STEP_BYTES;
        match rustix::fs::fallocate(new.file(), FallocateFlags::empty(), 0, wanted) {
            Ok(()) => self.bytes = wanted,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.file = None,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Creates a file without a name, if the file system supports it.
fn unnamed(target: &Place) -> io::Result<Option<File>> {
    use rustix::io::Errno;
    if !Path::new(DESCRIPTORS).exists() {
        return Ok(None);
    }
    match target.make_unnamed() {
        Ok(file) => Ok(Some(file)),
        // Kernels and file systems report missing support with different errors.
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::ISDIR | Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn named(target: &Place) -> io::Result<(File, Named)> {
    let place = temporary(target);
    let file = place.make(0o666)?;
    named_files(|all| all.push(place.clone()));
    // If the command handles Ctrl-C itself, its handler is
    // already installed, and dropping `Named` removes the file.
    let _ = on_signal_if_nobody_does(|_| {
        named_files(|all| all.iter().for_each(|place| drop(place.remove())));
        exit(INTERRUPTED.into());
    });
    Ok((file, Named(place)))
}

/// Returns a temporary name next to `target` that no other process uses.
pub(super) fn temporary(target: &Place) -> Place {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    target.beside(format!(".iosched-{}-{number}.tmp", std::process::id()))
}

fn named_files(change: impl FnOnce(&mut Vec<Place>)) {
    static FILES: Mutex<Vec<Place>> = Mutex::new(Vec::new());
    if let Ok(mut files) = FILES.lock() {
        change(&mut files);
    }
}

/// A temporary name that is removed on drop. After a rename, there is nothing to remove.
struct Named(Place);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.0.remove();
        named_files(|all| all.retain(|place| place.path() != self.0.path()));
    }
}

/// Copies owner, group and mode of the replaced file.
fn adopt(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid())).map_err(|error| {
            let problem = format!("cannot give the new file the owner of the existing file: {error}");
            io::Error::new(error.kind(), problem)
        })?;
    }
    file.set_permissions(old.permissions())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn here(name: &str) -> PathBuf {
        let here = std::env::temp_dir().join(format!("iosched-whole-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&here);
        fs::create_dir_all(&here).unwrap();
        here
    }

    #[test]
    fn temporary_file_replaces_the_target_only_when_complete() {
        let here = here("named");
        let target = here.join("out");
        fs::write(&target, "old").unwrap();
        let begin = || {
            let target = Place::of(&target).unwrap();
            let (file, name) = named(&target).unwrap();
            New { file, target, name: Some(name), replaces: true }
        };
        let new = begin();
        new.file().write_all(b"half").unwrap();
        assert_eq!(fs::read_dir(&here).unwrap().count(), 2);
        drop(new);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        let new = begin();
        new.file().write_all(b"whole").unwrap();
        new.put().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "whole");
        assert_eq!(fs::read_dir(&here).unwrap().count(), 1);
        fs::remove_dir_all(here).unwrap();
    }

    #[test]
    fn replaced_file_keeps_its_mode() {
        let here = here("mode");
        let target = here.join("out");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        let new = New::begin(&Place::of(&target).unwrap()).unwrap();
        new.file().write_all(b"new").unwrap();
        new.put().unwrap();
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        fs::remove_dir_all(here).unwrap();
    }

    #[test]
    fn file_created_meanwhile_is_not_replaced() {
        let here = here("meanwhile");
        let target = here.join("out");
        let new = New::begin(&Place::of(&target).unwrap()).unwrap();
        fs::write(&target, "precious").unwrap();
        // The check and the final name are one step only for an unnamed file.
        if new.name.is_none() {
            assert_eq!(new.put().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        }
        fs::remove_dir_all(here).unwrap();
    }

    #[test]
    fn no_file_is_written_if_the_directory_was_replaced() {
        let here = here("exchanged");
        let (directory, other) = (here.join("out"), here.join("other"));
        for path in [&directory, &other] {
            fs::create_dir(path).unwrap();
        }
        let new = New::begin(&Place::of(&directory.join("page.html")).unwrap()).unwrap();
        fs::rename(&directory, here.join("moved")).unwrap();
        std::os::unix::fs::symlink(&other, &directory).unwrap();
        let problem = new.put().unwrap_err().to_string();
        assert!(problem.contains("renamed or replaced"), "{problem}");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        assert_eq!(fs::read_dir(here.join("moved")).unwrap().count(), 0);
        fs::remove_dir_all(here).unwrap();
    }

    #[test]
    fn symlink_created_meanwhile_at_the_target_is_refused() {
        let here = here("link");
        let victim = here.join("victim");
        fs::write(&victim, "precious").unwrap();
        let place = Place::of(&here.join("out")).unwrap();
        std::os::unix::fs::symlink(&victim, here.join("out")).unwrap();
        assert!(New::begin(&place).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        fs::remove_dir_all(here).unwrap();
    }
}
