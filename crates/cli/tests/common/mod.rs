//! The common part of the tests of the command.
#![allow(dead_code, unused_imports, reason = "each test uses its part")]

mod disks;
mod kernel;
mod mounted;
mod server;
mod shaker;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) use disks::{
    FuseDisk, Running, TWO_CLASSES, alone, choose, has_all_schedulers, iosched, json, quick_disk, scheduler, wait_for,
};
pub(crate) use iosched_testing::command::{answer, empty_directory, interrupt};
pub(crate) use iosched_testing::machine::{available, has_minutes, has_program, output};
pub(crate) use kernel::{Loop, Mount, is_root};
pub(crate) use mounted::{Mounted, has_fuse};
pub(crate) use server::Server;
pub(crate) use shaker::{Shaker, setting};

pub(crate) const IOSCHED: &str = env!("CARGO_BIN_EXE_iosched");
/// Maximum time for which a test waits for an event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Creates an empty directory for one test.
pub(crate) fn directory(name: &str) -> PathBuf {
    empty_directory(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
}

/// Creates an image file that contains only zeroes.
pub(crate) fn image(here: &Path, name: &str, bytes: u64) -> PathBuf {
    let path = here.join(name);
    fs::File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

/// Returns whether openssl is installed. It makes certificates.
pub(crate) fn has_openssl() -> bool {
    let mut command = Command::new("openssl");
    available(command.arg("version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()), "openssl")
}

/// Runs the command. Returns its exit code, standard output and standard error.
#[track_caller]
pub(crate) fn run(args: &[&str]) -> (i32, String, String) {
    answer(Command::new(IOSCHED).args(args))
}

/// Returns the command with `here` as its working directory and its state directory.
pub(crate) fn command_in(here: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(IOSCHED);
    command.current_dir(here).args(args).env("IOSCHED_STATE_DIR", here).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Starts a comparison that never ends, sends SIGTERM once, and waits until the command has ended.
#[track_caller]
pub(crate) fn ended_by_sigterm(here: &Path, args: &[&str]) {
    let mut command = command_in(here, args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| catches_sigterm(&child));
    // SIGTERM ends the command at every stage. After this time, the command is usually in a run.
    std::thread::sleep(Duration::from_secs(1));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let done = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert_ne!(done.status.code(), Some(0), "{args:?}: {err}");
    assert!(err.contains("stopping; iosched keeps the results of finished runs"), "{args:?}: {err}");
}

/// Returns whether a process has a handler of SIGTERM.
fn catches_sigterm(child: &std::process::Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).unwrap() >> (rustix::process::Signal::TERM.as_raw() - 1) & 1 == 1
}

/// Runs the command with `here` as its working directory and its state directory.
#[track_caller]
pub(crate) fn run_in(here: &Path, args: &[&str]) -> (i32, String, String) {
    answer(&mut command_in(here, args))
}

/// Runs a shell script with arguments. The script must succeed.
#[track_caller]
pub(crate) fn sh(script: &str, args: &[&Path]) -> String {
    output(Command::new("sh").args(["-ec", script, "sh"]).args(args)).expect("sh is installed")
}

/// Returns the arguments of fio for random writes all over `size`, with verification of every
/// block.
pub(crate) fn verified_writes(name: &str, depth: u32, size: &str, seed: u64) -> Vec<String> {
    let of = [("name", name), ("size", size), ("rw", "randwrite"), ("bsrange", "512-64k"), ("verify", "crc32c")];
    let given = of.map(|(option, value)| format!("--{option}={value}"));
    let numbers = [format!("--iodepth={depth}"), format!("--randseed={seed}")];
    let rest = ["--do_verify=1", "--verify_fatal=1", "--norandommap=0", "--aux-path=."].map(str::to_owned);
    given.into_iter().chain(numbers).chain(rest).collect()
}
