//! `cargo xtask arm`: tests for 64-bit ARM on a machine of another architecture.
//!
//! This command builds the tests of the libraries and of the recorded runs for ARM, and QEMU
//! emulates them. The emulator passes system calls to the kernel of this machine, so tests of disks
//! cannot run.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

use crate::page;

/// The target, and its name in the variables of cargo.
const TARGET: &str = "aarch64-unknown-linux-gnu";
const VARIABLE: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU";
/// Linker for the target. It is also the C compiler for crates with C code.
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// Emulator that runs programs with the libraries of the linker's package.
const RUNNER: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";
/// Crates with all their tests. `iosched-golden` has the recorded runs.
const TESTED: [&str; 2] = ["iosched-golden", "iosched-nbd"];
/// Crates with only their unit tests. The tests of whole simulations take hours in QEMU.
const UNIT_TESTED: [&str; 3] = ["iosched", "iosched-numbers", "iosched-sim"];
/// Crates that call the system. They are only checked, because their tests cannot run.
const CHECKED: [&str; 3] = ["iosched-system", "iosched-live", "iosched-cli"];
/// Number of random cases of each property, because QEMU is slow.
const CASES: &str = "8";

/// Build for 64-bit ARM, and run the unit tests of the libraries and the recorded runs in QEMU
///
/// Needs `rustup target add aarch64-unknown-linux-gnu` and the Debian packages gcc-aarch64-linux-gnu,
/// libc6-dev-arm64-cross and qemu-user.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also check the command and the served disks for the target, which takes longer to build
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    for program in [LINKER, "qemu-aarch64"] {
        let found = Command::new(program).arg("--version").output();
        ensure!(found.is_ok(), "{program} cannot be run: cargo xtask arm --help lists the needed packages");
    }
    if args.all {
        called(cargo("check").args(CHECKED.iter().flat_map(|name| ["--package", *name])))?;
    }
    called(cargo("test").arg("--lib").args(UNIT_TESTED.iter().flat_map(|name| ["--package", *name])))?;
    called(cargo("test").args(TESTED.iter().flat_map(|name| ["--package", *name])))?;
    println!("64-bit ARM: the unit tests of the libraries and all recorded runs pass in QEMU");
    Ok(ExitCode::SUCCESS)
}

/// Returns a call of cargo for the target.
fn cargo(subcommand: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(page::path("")).args([subcommand, "--target", TARGET]);
    cargo.env(format!("{VARIABLE}_LINKER"), LINKER).env(format!("{VARIABLE}_RUNNER"), RUNNER);
    cargo.env("PROPTEST_CASES", CASES);
    // If CI is not set, a test that needs a missing program prints this reason and is skipped.
    cargo.env_remove("CI");
    cargo
}

fn called(command: &mut Command) -> Result<()> {
    let status = command.status().context("cargo cannot be run")?;
    ensure!(status.success(), "cargo: {status}");
    Ok(())
}
