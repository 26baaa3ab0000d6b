//! Runs commands for tests, and creates their directories.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Runs a command with an empty standard input. Returns its exit code, standard output and standard
/// error.
///
/// # Panics
/// If the command cannot start, if a signal ends it, or if its output is not UTF-8.
#[track_caller]
pub fn answer(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    let code = status.code().unwrap_or_else(|| panic!("{command:?}: {status}: {out}{err}"));
    (code, out, err)
}

/// Creates an empty directory `name` in `parent`. Files from an earlier run are removed.
///
/// # Panics
/// If the directory cannot be created.
#[must_use]
pub fn empty_directory(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Sends SIGINT, as Ctrl-C does.
///
/// # Panics
/// If the signal cannot be sent, for example because the caller has already waited for the process.
#[track_caller]
pub fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_code_and_both_outputs() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo out; echo err >&2; exit 3"]);
        assert_eq!(answer(&mut command), (3, "out\n".to_owned(), "err\n".to_owned()));
    }

    #[test]
    fn empty_directory_removes_old_files() {
        let parent = std::env::temp_dir().join(format!("iosched-testing-{}", std::process::id()));
        let path = empty_directory(&parent, "case");
        std::fs::write(path.join("left"), "x").unwrap();
        assert_eq!(std::fs::read_dir(empty_directory(&parent, "case")).unwrap().count(), 0);
        std::fs::remove_dir_all(parent).unwrap();
    }
}
