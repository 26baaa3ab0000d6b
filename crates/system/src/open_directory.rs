//! Directories that are held open by their descriptors. Files in such a directory are opened,
//! created and removed relative to the descriptor. Symbolic links below the directory are refused.
//! Therefore, a user cannot redirect iosched to other files by renaming directories on the path, or
//! by replacing them by links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Permissions of a new directory: only for the owner.
const OWNER_ONLY: RawMode = 0o700;
/// Permissions of a directory or file that a user names, before the umask is applied.
const DIRECTORY: RawMode = 0o777;
const FILE: RawMode = 0o666;
/// Write permission of the group and of all other users. With an access control list, the group's
/// permission covers every user in the list.
const OTHERS_WRITE: RawMode = 0o022;
/// Mode bit of a directory in which only the owner of a file may rename or remove this file.
const STICKY: RawMode = 0o1000;

/// Identity of a file on the machine. It may change at the next boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileId {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
}

impl FileId {
    /// Returns the identity in the metadata of a file.
    #[must_use]
    pub const fn of(about: &Stat) -> Self {
        Self { device: about.st_dev, inode: about.st_ino }
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn of_file(file: &impl AsFd) -> io::Result<Self> {
        Ok(Self::of(&rustix::fs::fstat(file)?))
    }
}

/// A directory that stays open even if its path changes.
#[derive(Debug)]
pub struct OpenDirectory {
    file: File,
    /// Path of the directory when it was opened, for messages only.
    path: PathBuf,
    id: FileId,
    /// Directory in which this directory was opened, and the name of this directory in it.
    parent: Option<(Arc<Self>, PathBuf)>,
}

impl OpenDirectory {
    /// Opens a directory whose path the user gave. Follows symbolic links on the path.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Self::new(opened, path.to_owned(), None)
    }

    /// Opens a directory whose path the user gave, to access files in it. The process need not have
    /// the permission to list the directory.
    ///
    /// # Errors
    /// The path is not a directory, or the system refuses.
    pub fn reach(path: &Path) -> io::Result<Arc<Self>> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let opened = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Self::new(opened, path.to_owned(), None)
    }

    /// Does the same as [`reach`](Self::reach), and creates the missing directories of the path. If
    /// another user puts a symbolic link in the place of a new directory, this link is not
    /// followed.
    ///
    /// # Errors
    /// A directory cannot be created or opened, or a part of the path is a file.
    pub fn reach_or_make(path: &Path) -> io::Result<Arc<Self>> {
        match Self::reach(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            reached => return reached,
        }
        let name = path.file_name().ok_or(io::ErrorKind::NotFound)?;
        let above = Self::reach_or_make(path.parent().unwrap_or(Path::new("")))?;
        above.reach_or_make_in(Path::new(name))
    }

    /// Opens a directory in this directory, and creates the missing directories of its name.
    ///
    /// # Errors
    /// A part of the name is a file or a symbolic link, or the system refuses.
    pub fn reach_or_make_in(self: &Arc<Self>, name: &Path) -> io::Result<Arc<Self>> {
        let mut at = Arc::clone(self);
        for part in name {
            match mkdirat(&at.file, part, Mode::from_raw_mode(DIRECTORY)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let opened = at.open_name(part, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
            at = Self::new(opened.into(), at.path.join(part), Some((Arc::clone(&at), part.into())))?;
        }
        Ok(at)
    }

    /// Opens or creates a file of this directory. A symbolic link is an error.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open_name(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        Ok(openat(&self.file, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)?.into())
    }

    /// Creates a file named `name` with the data that `write` writes. The file appears when it is
    /// complete, and replaces a file or a symbolic link of this name.
    ///
    /// # Errors
    /// The error of `write`, or an error of the system, converted by `failed`. After an error, no
    /// file is replaced.
    pub fn put<T, E>(
        &self,
        name: &OsStr,
        failed: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<T, E> {
        let part_name: OsString = format!(".{}.part-{}", name.to_string_lossy(), std::process::id()).into();
        let remove = || unlinkat(&self.file, &part_name, AtFlags::empty());
        // A killed process with the same process number may have left a file with this name. If the
        // name is a link, the link is removed and not followed.
        let _ = remove();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = self.open_name(&part_name, flags, Mode::from_raw_mode(FILE)).map_err(&failed)?;
        let rename =
            || rustix::fs::renameat(&self.file, &part_name, &self.file, name).map_err(|error| failed(error.into()));
        write(&mut file).and_then(|written| rename().map(|()| written)).inspect_err(|_| {
            let _ = remove();
        })
    }

    fn new(opened: OwnedFd, path: PathBuf, parent: Option<(Arc<Self>, PathBuf)>) -> io::Result<Arc<Self>> {
        let id = FileId::of_file(&opened)?;
        Ok(Arc::new(Self { file: opened.into(), path, id, parent }))
    }

    /// Opens a directory in this directory.
    ///
    /// # Errors
    /// The system refuses.
    pub fn directory(self: &Arc<Self>, name: &Path) -> io::Result<Arc<Self>> {
        let opened = self.open_at(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Self::new(opened, self.path.join(name), Some((Arc::clone(self), name.to_owned())))
    }

    /// Creates a directory that only its owner may use, and opens it.
    ///
    /// # Errors
    /// The system refuses, or the opened directory is not the created directory. Such a directory
    /// has another owner, other users may write to it, or it is not empty.
    pub fn make(self: &Arc<Self>, name: &Path) -> io::Result<Arc<Self>> {
        self.make_directory(name)?;
        let created = self.directory(name)?;
        let about = rustix::fs::fstat(&created.file)?;
        let is_ours = about.st_uid == rustix::process::geteuid().as_raw() && about.st_mode & OTHERS_WRITE == 0;
        if is_ours && created.names()?.is_empty() {
            return Ok(created);
        }
        Err(io::Error::other(
            "another user may write to the directory that iosched created here; use a file system that keeps owners \
             and permissions, and a directory that no other user may write to",
        ))
    }

    /// Returns the path of the directory when it was opened, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of the directory.
    #[must_use]
    pub const fn id(&self) -> FileId {
        self.id
    }

    /// Returns the descriptor of the directory.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Describes which other user may rename or remove files in the directory, if this process is
    /// root. Returns `None` if no other user may do this.
    ///
    /// If the process is not root, the function returns `None` without a check. In this case, only
    /// files of the process's user are at risk. On many systems, a group may write to all
    /// directories of a user.
    ///
    /// # Errors
    /// The system refuses.
    pub fn others(&self) -> io::Result<Option<String>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let about = rustix::fs::fstat(&self.file)?;
        Ok(besides_root(about.st_uid, about.st_gid, about.st_mode))
    }

    /// Checks that this directory and all directories above it still have their names.
    ///
    /// # Errors
    /// A directory's name now belongs to another file, or to no file.
    pub fn check(&self) -> io::Result<()> {
        self.parent.as_ref().map_or(Ok(()), |(parent, _)| parent.check())?;
        self.check_name()
    }

    fn check_name(&self) -> io::Result<()> {
        let Some((parent, name)) = &self.parent else { return Ok(()) };
        if parent.look(name).is_ok_and(|found| FileId::of(&found) == self.id) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "another process replaced or moved the directory {} while iosched used it; iosched changed no file \
             outside this directory. Use a directory that no other user may write to",
            self.path.display()
        )))
    }

    /// Returns whether `path` still leads to this directory.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        Self::reach(path).is_ok_and(|found| found.id == self.id)
    }

    /// Opens an existing file in the directory.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open_file(&self, name: &Path, flags: OFlags) -> io::Result<File> {
        Ok(self.open_at(name, flags, Mode::empty())?.into())
    }

    /// Opens a file and creates it if it does not exist.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make_file(&self, name: &Path, flags: OFlags) -> io::Result<File> {
        Ok(self.open_at(name, flags | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Returns the metadata of a name. A symbolic link is not followed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn look(&self, name: &Path) -> io::Result<Stat> {
        self.in_parent(name, |parent, name| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Returns whether the name is a regular file of this size.
    #[must_use]
    pub fn has_file(&self, name: &Path, bytes: u64) -> bool {
        let is_file = |about: &Stat| FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        self.look(name).is_ok_and(|about| is_file(&about) && u64::try_from(about.st_size) == Ok(bytes))
    }

    /// Creates a directory that only its owner may use.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make_directory(&self, name: &Path) -> io::Result<()> {
        self.in_parent(name, |parent, name| mkdirat(parent, name, Mode::from_raw_mode(OWNER_ONLY)))
    }

    /// Removes a file from the directory.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_file(&self, name: &Path) -> io::Result<()> {
        self.in_parent(name, |parent, name| unlinkat(parent, name, AtFlags::empty()))
    }

    /// Removes an empty directory from this directory.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_directory(&self, name: &Path) -> io::Result<()> {
        self.in_parent(name, |parent, name| unlinkat(parent, name, AtFlags::REMOVEDIR))
    }

    /// Removes a directory with all its contents.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_all(self: &Arc<Self>, name: &Path) -> io::Result<()> {
        let directory = self.directory(name)?;
        directory.empty(None)?;
        directory.remove()
    }

    /// Removes all contents of the directory except `kept`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn empty(self: &Arc<Self>, kept: Option<&OsStr>) -> io::Result<()> {
        for name in self.names()?.iter().filter(|name| Some(&***name) != kept) {
            let name = Path::new(name);
            let removed = match unlinkat(&self.file, name, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => self.remove_all(name),
                removed => removed.map_err(io::Error::from),
            };
            removed.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", name.display())))?;
        }
        Ok(())
    }

    /// Removes this directory, which must be empty, from the directory in which it was opened.
    ///
    /// # Errors
    /// Another file now has its name, or the system refuses.
    pub fn remove(&self) -> io::Result<()> {
        let Some((parent, name)) = &self.parent else { return Err(io::ErrorKind::InvalidInput.into()) };
        self.check_name()?;
        parent.remove_directory(name)
    }

    /// Returns the names in the directory.
    ///
    /// # Errors
    /// The system refuses.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.file)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open_at(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        const BENEATH: ResolveFlags =
            ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat2(&self.file, name, flags, mode, BENEATH) {
            // Linux before 5.6 does not have this system call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => self.walk(name, flags, mode),
            opened => opened,
        };
        opened.map_err(|error| match error {
            Errno::LOOP => io::Error::other(
                "this is a symbolic link, or its path contains one, and iosched does not follow symbolic links",
            ),
            error => error.into(),
        })
    }

    /// Opens the directories of a path one after the other.
    fn walk(&self, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let mut held: Option<OwnedFd> = None;
        let mut parts = name.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(part) = part else { break };
            let at = held.as_ref().map_or(self.file.as_fd(), AsFd::as_fd);
            if parts.peek().is_none() {
                return openat(at, part, flags, mode);
            }
            let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            held = Some(openat(at, part, on_the_way, Mode::empty())?);
        }
        Err(Errno::XDEV)
    }

    /// Calls `act` with the directory that contains the last part of `name`, and with this last
    /// part.
    fn in_parent<T>(&self, name: &Path, act: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>) -> io::Result<T> {
        let last = name.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        match name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            None => Ok(act(self.file.as_fd(), last)?),
            Some(parent) => {
                let parent = self.open_at(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
                Ok(act(parent.as_fd(), last)?)
            }
        }
    }
}

/// Implements [`OpenDirectory::others`] for a process that is root.
fn besides_root(owner: u32, group: u32, mode: RawMode) -> Option<String> {
    if owner != 0 {
        return Some(format!("its owner (user {owner})"));
    }
    if mode & OTHERS_WRITE == 0 || mode & STICKY != 0 {
        return None;
    }
    Some(if mode & 0o002 != 0 { "every user".to_owned() } else { format!("group {group}") })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Creates directories and files for the tests. Some links lead to these files, and others lead
    /// out of the directory.
    fn tree() -> (tempfile::TempDir, Arc<OpenDirectory>) {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir_all(here.path().join("held/a/b")).unwrap();
        for name in ["outside", "held/file", "held/a/b/file"] {
            fs::write(here.path().join(name), "x").unwrap();
        }
        for (to, name) in [("../outside", "held/link"), ("a", "held/to-a"), ("..", "held/a/up")] {
            symlink(to, here.path().join(name)).unwrap();
        }
        let held = OpenDirectory::open(&here.path().join("held")).unwrap();
        (here, held)
    }

    #[test]
    fn open_refuses_links_and_paths_out_of_the_directory() {
        let (_here, held) = tree();
        for (name, opens) in [
            ("file", true),
            ("a/b/file", true),
            ("link", false),
            ("to-a/b/file", false),
            ("a/up/file", false),
            ("../outside", false),
            ("a/../../outside", false),
            ("/etc/passwd", false),
        ] {
            let name = Path::new(name);
            assert_eq!(held.open_file(name, OFlags::RDONLY).is_ok(), opens, "{}", name.display());
            let walked = held.walk(name, OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty());
            assert_eq!(walked.is_ok(), opens, "{} without openat2", name.display());
        }
    }

    #[test]
    fn removal_does_not_follow_links() {
        let (here, held) = tree();
        held.empty(None).unwrap();
        assert!(held.names().unwrap().is_empty());
        assert!(here.path().join("outside").exists());
    }

    #[test]
    fn make_creates_a_private_directory_or_fails_if_it_exists() {
        let (here, held) = tree();
        let parent = OpenDirectory::open(here.path()).unwrap();
        assert!(parent.make(Path::new("new")).unwrap().names().unwrap().is_empty());
        assert_eq!(fs::metadata(here.path().join("new")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(held.make(Path::new("a")).is_err());
    }

    #[test]
    fn users_who_may_rename_files_are_named() {
        let of = |owner, mode| besides_root(owner, 6, mode);
        assert_eq!((of(0, 0o755), of(0, 0o1777), of(0, 0o1770)), (None, None, None));
        assert_eq!(of(0, 0o775).as_deref(), Some("group 6"));
        assert_eq!(of(0, 0o777).as_deref(), Some("every user"));
        assert_eq!(of(999, 0o1755).as_deref(), Some("its owner (user 999)"));
    }

    #[test]
    fn missing_directories_are_created_but_links_are_not_followed() {
        let (here, held) = tree();
        let new = here.path().join("x/y/z");
        assert!(OpenDirectory::reach_or_make(&new).unwrap().is_at(&new));
        assert!(
            OpenDirectory::reach_or_make(&here.path().join("held/to-a/b/new")).is_ok(),
            "the person named this link"
        );
        for (name, is_made) in [("a/b/c/d", true), ("to-a/new", false), ("link/new", false), ("file/new", false)] {
            assert_eq!(held.reach_or_make_in(Path::new(name)).is_ok(), is_made, "{name}");
        }
        assert!(!here.path().join("held/a/new").exists());
    }

    #[test]
    fn put_replaces_a_link_and_leaves_no_partial_file() {
        let (here, held) = tree();
        let put = |text: &str, fails: bool| {
            held.put(
                "link".as_ref(),
                |error| error,
                |file| {
                    file.write_all(text.as_bytes())?;
                    if fails { Err(io::Error::other("no")) } else { Ok(()) }
                },
            )
        };
        assert!(put("new", true).is_err());
        assert_eq!(fs::read_link(here.path().join("held/link")).unwrap(), Path::new("../outside"));
        put("new", false).unwrap();
        assert_eq!(fs::read_to_string(here.path().join("held/link")).unwrap(), "new");
        assert_eq!(fs::read_to_string(here.path().join("outside")).unwrap(), "x");
        assert_eq!(held.names().unwrap().len(), 4);
    }
}
