//! Writes and removes the files of a plan. It never replaces or removes a file that another program
//! wrote or that somebody edited.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{OutputFile, is_unchanged};
use super::{Form, Output};

/// Directories of units and drop-ins that an administrator or a program writes. Packages install
/// their files in other directories. Drop-ins are the usual way to override files of packages.
const UNITS: [&str; 5] = [
    "etc/systemd/system",
    "etc/systemd/system.control",
    "run/systemd/system",
    "run/systemd/system.control",
    "run/systemd/transient",
];
/// Directories of udev rules that an administrator or a program writes.
const RULES: [&str; 2] = ["etc/udev/rules.d", "run/udev/rules.d"];

/// A setting in a file of another program or user, which overrides the plan or is overridden by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// The property or attribute.
    pub name: String,
    /// The file of the plan.
    pub ours: String,
}

/// Reason why files are not written or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PersistError {
    /// The output format has files without a fixed path.
    #[error(
        "{path}: in the output format {form}, this file has no fixed path; write it to a directory with --write \
         {form}=DIR"
    )]
    NoPlace {
        /// The output format.
        form: Form,
        /// Name of the file.
        path: String,
    },
    /// A file with this path exists, but iosched did not make it for a plan.
    #[error(
        "{}: this file exists, but iosched plan did not make it; nothing was changed. Move the file away, then run the \
         command again",
        path.display()
    )]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file of a plan was edited.
    #[error(
        "{}: this file was edited after iosched plan made it; nothing was changed. Move the file away, then run the \
         command again",
        path.display()
    )]
    Edited {
        /// Path of the file.
        path: PathBuf,
    },
    /// Other files set the same values.
    #[error("{}", listed(conflicts))]
    Conflicts {
        /// The settings in other files.
        conflicts: Vec<Conflict>,
    },
    /// The system refuses the operation.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

fn listed(conflicts: &[Conflict]) -> String {
    let mut text = "other files set the same values, so iosched changed nothing:".to_owned();
    for Conflict { path, line, name, ours } in conflicts {
        text += &format!("\n  {}:{line} sets {name}, which {ours} also sets", path.display());
    }
    text + "\nRemove these lines, or write the plan to a directory with --write FORM=DIR and merge the files yourself"
}

/// State of a file before it is written.
enum There {
    Nothing,
    Ours,
}

fn look(path: &Path) -> Result<There, PersistError> {
    match fs::read(path) {
        Ok(bytes) => match std::str::from_utf8(&bytes).ok().and_then(is_unchanged) {
            Some(true) => Ok(There::Ours),
            Some(false) => Err(PersistError::Edited { path: path.to_owned() }),
            None => Err(PersistError::Foreign { path: path.to_owned() }),
        },
        // A dangling link exists but is not a file of a plan.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => Ok(There::Nothing),
        Err(error) => Err(PersistError::Io { path: path.to_owned(), error }),
    }
}

/// Returns the settings in the tree `root` that conflict with the files of `output`: one of the two
/// would override the other. Files of packages are not compared. The function searches units and
/// drop-ins below `/etc` and `/run`, and udev rules for the same disk.
#[must_use]
pub fn conflicts(output: &Output, root: &Path) -> Vec<Conflict> {
    output.files.iter().flat_map(|file| conflicts_of(file, root)).collect()
}

fn conflicts_of(file: &OutputFile, root: &Path) -> Vec<Conflict> {
    let mut found = Vec::new();
    if let Some((unit, _)) = file.path.strip_prefix("/etc/systemd/system/").and_then(|rest| rest.split_once(".d/")) {
        let set: Vec<&str> = file.text.lines().filter_map(property_name).collect();
        for directory in UNITS {
            let mut paths = vec![root.join(directory).join(unit)];
            paths.extend(files_in(&root.join(directory).join(format!("{unit}.d")), "conf"));
            for path in paths {
                let mut name = |line: &str| property_name(line).filter(|name| set.contains(name)).map(str::to_owned);
                search(&path, file, &mut name, &mut found);
            }
        }
    } else if file.path.starts_with("/etc/udev/rules.d/") {
        let set = iosched_kernel::settings::assigned(&file.text);
        let condition = condition(&file.text);
        for path in RULES.iter().flat_map(|directory| files_in(&root.join(directory), "rules")) {
            let mut name = |line: &str| {
                let line = line.trim();
                if line.starts_with('#') || !may_match(line, &condition) {
                    return None;
                }
                let sets = |name: &str| line.contains(&format!("ATTR{{queue/{name}}}=\""));
                set.iter().map(|(name, _)| name).find(|name| sets(name)).map(|name| format!("queue/{name}"))
            };
            search(&path, file, &mut name, &mut found);
        }
    }
    found
}

/// Searches a file of another program or user line by line.
fn search(path: &Path, ours: &OutputFile, name: &mut dyn FnMut(&str) -> Option<String>, found: &mut Vec<Conflict>) {
    let Ok(text) = fs::read_to_string(path) else { return };
    if is_unchanged(&text).is_some() {
        return;
    }
    for (at, line) in text.lines().enumerate() {
        if let Some(name) = name(line) {
            found.push(Conflict { path: path.to_owned(), line: at + 1, name, ours: ours.path.clone() });
        }
    }
}

/// Returns the name of the property that a line of a unit sets. A line that resets a property by an
/// empty value has no result.
fn property_name(line: &str) -> Option<&str> {
    let (name, value) = line.trim().split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
    (is_name && !value.trim().is_empty()).then_some(name)
}

/// Returns the last condition of the plan's udev rule, which names the disk.
fn condition(rule: &str) -> String {
    let line = rule.lines().find(|line| line.starts_with("ACTION==")).unwrap_or_default();
    line.split(", ").take_while(|part| part.contains("==")).last().unwrap_or_default().to_owned()
}

/// Returns whether a udev rule may match the disk of `condition`. Returns `false` if the rule names
/// another disk by the same key.
fn may_match(line: &str, condition: &str) -> bool {
    let Some((key, value)) = condition.split_once("==") else { return true };
    let same_key = line.split(',').map(str::trim).filter_map(|part| part.strip_prefix(key)?.strip_prefix("=="));
    let is_pattern = |other: &str| other.contains(['*', '?', '[', '|']);
    same_key.clone().all(|other| other == value || is_pattern(other))
}

fn files_in(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

/// Writes the files of `output` to their fixed paths below `root`, where their programs read them.
/// Files without a fixed path are left out. All checks come first, so the function writes either
/// all other files or no file.
///
/// # Errors
/// - A path has a file of another program or user.
/// - Other files set the same values, and `force` is false.
/// - No file has a fixed path.
/// - The system refuses.
pub fn persist(output: &Output, root: &Path, force: bool) -> Result<Vec<PathBuf>, PersistError> {
    let files = with_place(output);
    if let ([], Some(file)) = (&files[..], output.files.first()) {
        return Err(PersistError::NoPlace { form: output.form, path: file.path.clone() });
    }
    let files: Vec<(&OutputFile, PathBuf)> = files.into_iter().map(|(file, below)| (file, root.join(below))).collect();
    files.iter().try_for_each(|(_, path)| look(path).map(drop))?;
    let conflicts = conflicts(output, root);
    if !(conflicts.is_empty() || force) {
        return Err(PersistError::Conflicts { conflicts });
    }
    write_all(files)
}

/// Returns the files with a fixed path, and these paths relative to the root.
fn with_place(output: &Output) -> Vec<(&OutputFile, &str)> {
    output.files.iter().filter_map(|file| Some((file, file.path.strip_prefix('/')?))).collect()
}

/// Writes the files of `output` to a directory, so that a user can read them or copy them
/// elsewhere. A file with an absolute path is written to the same path below the directory.
///
/// # Errors
/// A path has a file of another program or user, or the system refuses.
pub fn write_below(output: &Output, directory: &Path) -> Result<Vec<PathBuf>, PersistError> {
    let below = |file: &OutputFile| directory.join(file.path.trim_start_matches('/'));
    let files: Vec<(&OutputFile, PathBuf)> = output.files.iter().map(|file| (file, below(file))).collect();
    files.iter().try_for_each(|(_, path)| look(path).map(drop))?;
    write_all(files)
}

/// Writes all files and returns their paths. If a file cannot be written, restores the files that
/// were written before it.
fn write_all(files: Vec<(&OutputFile, PathBuf)>) -> Result<Vec<PathBuf>, PersistError> {
    let mut done: Vec<(PathBuf, Option<Vec<u8>>)> = Vec::new();
    for (file, path) in files {
        let before = fs::read(&path).ok();
        if let Err(error) = replace(&path, file.text.as_bytes(), file.mode) {
            for (path, before) in done {
                // If this fails, a file with the mark of iosched remains, which iosched can replace
                // later.
                let _ = match before {
                    Some(bytes) => replace(&path, &bytes, file.mode),
                    None => fs::remove_file(&path),
                };
            }
            return Err(PersistError::Io { path, error });
        }
        done.push((path, before));
    }
    Ok(done.into_iter().map(|(path, _)| path).collect())
}

/// Replaces a file as a whole: a reader sees either the old file or the new one, even after a power
/// cut.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new().prefix(".iosched-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    fs::File::open(directory)?.sync_all()
}

/// Removes the files of an output format below `root` that [`persist`] wrote. Also removes
/// directories of drop-ins that become empty. Returns the removed files.
///
/// # Errors
/// A file was edited, or is not a file of a plan. In this case, no file is removed. The system can
/// also refuse to remove a file after some files are removed.
pub fn unpersist(output: &Output, root: &Path) -> Result<Vec<PathBuf>, PersistError> {
    let mut ours = Vec::new();
    for (_, below) in with_place(output) {
        let path = root.join(below);
        if matches!(look(&path)?, There::Ours) {
            ours.push(path);
        }
    }
    for path in &ours {
        fs::remove_file(path).map_err(|error| PersistError::Io { path: path.clone(), error })?;
        let is_of_unit = |parent: &&Path| parent.parent().is_some_and(|above| above.ends_with("systemd/system"));
        if let Some(directory) = path.parent().filter(is_of_unit) {
            // A directory with other files is not removed.
            let _ = fs::remove_dir(directory);
        }
    }
    Ok(ours)
}

#[cfg(test)]
#[path = "persist_tests.rs"]
mod tests;
