//! The path to a directory, and a check that no other user can redirect the path.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;

/// Maximum number of symbolic links on a path, as in the kernel.
const LINKS_MAX: u32 = 40;
const STICKY: u32 = 0o1000;

/// Reason why another user could replace a directory or a directory above it.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// A directory or a symbolic link belongs to another user.
    #[error("{path} belongs to another user (uid {uid})", path = path.display())]
    OfAnother {
        /// Path of the directory or link.
        path: PathBuf,
        /// Owner of the directory or link.
        uid: u32,
    },
    /// Other users may write to a directory without the sticky bit.
    #[error("other users may write to {path} (mode {mode:04o})", path = path.display())]
    Open {
        /// Path of the directory.
        path: PathBuf,
        /// Permissions of the directory.
        mode: u32,
    },
    /// Error of the system.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Path of the directory or link that caused the error.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Follows the path to a directory from the root, through symbolic links. Every directory and link
/// on the path must belong to root or to this user. No other user may have write access to a
/// directory, unless the directory is sticky. If all this holds, no other user can redirect the
/// path, now or later. Returns the device and the inode of the directory.
///
/// # Errors
/// Another user could replace a directory or link. The error names the directory or link that is
/// closest to the root.
pub(crate) fn check_path(directory: &Path) -> Result<(u64, u64), PathError> {
    let failed = |path: &Path, source| PathError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(directory).map_err(|error| failed(directory, error))?;
    let mut rest: VecDeque<OsString> = parts(&absolute);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    let mut found = check_directory(&at)?;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
        } else {
            at.push(&part);
        }
        let about = at.symlink_metadata().map_err(|error| failed(&at, error))?;
        if !about.is_symlink() {
            found = check_directory(&at)?;
            continue;
        }
        if is_of_another(about.uid()) {
            return Err(PathError::OfAnother { path: at, uid: about.uid() });
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(failed(&at, io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error())));
        }
        let target = at.read_link().map_err(|error| failed(&at, error))?;
        at.pop();
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        parts(&target).into_iter().rev().for_each(|part| rest.push_front(part));
    }
    Ok(found)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let is_part = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_part).map(|part| part.as_os_str().to_owned()).collect()
}

fn is_of_another(uid: u32) -> bool {
    uid != 0 && uid != geteuid().as_raw()
}

fn check_directory(path: &Path) -> Result<(u64, u64), PathError> {
    let about = path.metadata().map_err(|source| PathError::Io { path: path.to_owned(), source })?;
    let (uid, mode) = (about.uid(), about.mode() & 0o7777);
    if is_of_another(uid) {
        return Err(PathError::OfAnother { path: path.to_owned(), uid });
    }
    // By convention of distributions, a group with the same number as the user has only this user
    // as a member.
    let others = if about.gid() == geteuid().as_raw() { 0o002 } else { 0o022 };
    if mode & others != 0 && mode & STICKY == 0 {
        return Err(PathError::Open { path: path.to_owned(), mode });
    }
    Ok((about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    const NOBODY: u32 = 65_534;

    #[test]
    fn path_through_a_directory_others_may_change_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let open = here.path().join("open");
        let inner = open.join("inner/deep");
        fs::create_dir_all(&inner).unwrap();
        let checked = |mode: u32| {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            check_path(&inner)
        };
        for mode in [0o777, 0o757] {
            let error = checked(mode).unwrap_err();
            assert!(matches!(&error, PathError::Open { path, mode: m } if *path == open && *m == mode), "{error}");
        }
        for mode in [0o1777, 0o755, 0o700] {
            let about = inner.metadata().unwrap();
            assert_eq!(checked(mode).unwrap(), (about.dev(), about.ino()));
        }
        if geteuid().is_root() {
            chown(&open, Some(NOBODY), None).unwrap();
            let error = checked(0o700).unwrap_err();
            assert!(matches!(&error, PathError::OfAnother { path, uid: NOBODY } if *path == open), "{error}");
        }
    }

    #[test]
    fn path_check_follows_links_and_refuses_foreign_ones() {
        let here = tempfile::tempdir().unwrap();
        let root = here.path();
        fs::create_dir_all(root.join("to/deep")).unwrap();
        fs::create_dir(root.join("open")).unwrap();
        fs::set_permissions(root.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
        for (target, name) in [("to", "link"), ("open/link", "through"), ("loop", "loop"), ("to/deep/..", "up")] {
            symlink(target, root.join(name)).unwrap();
        }
        symlink(root.join("to"), root.join("open/link")).unwrap();
        let id = |path: &str| {
            let about = root.join(path).metadata().unwrap();
            (about.dev(), about.ino())
        };
        assert_eq!(check_path(&root.join("link/deep")).unwrap(), id("to/deep"));
        assert_eq!(check_path(&root.join("up/deep/../deep")).unwrap(), id("to/deep"));
        // Another user can replace a link on the path, although the last directory of the path is
        // safe.
        assert!(
            matches!(check_path(&root.join("through")), Err(PathError::Open { path, .. }) if path.ends_with("open"))
        );
        assert!(matches!(check_path(&root.join("loop")), Err(PathError::Io { .. })));
        assert!(matches!(check_path(&root.join("gone/deep")), Err(PathError::Io { .. })));
        if geteuid().is_root() {
            lchown(root.join("link"), Some(NOBODY), None).unwrap();
            let error = check_path(&root.join("link/deep")).unwrap_err();
            assert!(matches!(&error, PathError::OfAnother { path, .. } if path.ends_with("link")), "{error}");
        }
    }
}
