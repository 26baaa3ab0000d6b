//! `cargo xtask dist`: packages for machines without a compiler:
//! a static binary, a Debian package, a tarball and a wheel.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the build of the binary: its target and profile |
//! | `stage.rs` | the installed files and their places |
//! | `pack.rs` | the package and the tarball |
//! | `wheel.rs` | the wheel of the Python package |
//! | `fresh.rs` | a test of the package in a minimal root |
//! | `units.rs`, `units.sh` | a test of its units under a running systemd |

mod fresh;
mod pack;
mod stage;
mod units;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::page;

/// Make packages: a static binary, a .deb, a tarball with man pages, completions and systemd units, and a Python wheel
///
/// Needs cc, dpkg-deb and tar. The wheel needs python3 with venv, and PyPI. --try needs mmdebstrap, systemd-nspawn,
/// root and a configured apt-get.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build as `cargo build --release` does, which is faster than the profile for published packages
    #[arg(long)]
    quick: bool,
    /// Make no Python wheel
    #[arg(long)]
    no_wheel: bool,
    /// Install the package in a fresh root of Debian packages, use it there, and remove it again
    #[arg(long = "try")]
    is_tried: bool,
    /// Directory for the packages [default: target/dist-packages]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = page::path("").canonicalize()?;
    let target_directory = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let output = args.output.clone().unwrap_or_else(|| target_directory.join("dist-packages"));
    let _ = std::fs::remove_dir_all(output.join("stage"));
    std::fs::create_dir_all(&output)?;
    // Packages for the fresh root are downloaded while the binary is built.
    let fresh = args.is_tried.then(fresh::Root::begin).transpose()?;
    let began = Instant::now();
    let profile = if args.quick { "release" } else { "dist" };
    let program = build(&root, &target_directory, profile)?;
    println!("built in {:.0} s: {}", began.elapsed().as_secs_f64(), program.display());
    println!("static and stripped: {}", megabytes(&program)?);
    let version = env!("CARGO_PKG_VERSION");
    let staged = stage::stage(&root, &program, &output.join("stage"), version)?;
    let [deb, tarball] = [pack::deb(&root, &staged, &output, version)?, pack::tarball(&staged, &output, version)?];
    for file in [&deb, &tarball] {
        println!("{}: {}", file.display(), megabytes(file)?);
    }
    if !args.no_wheel {
        let wheel = wheel::wheel(&root, &output, profile)?;
        println!("{}: {}", wheel.display(), megabytes(&wheel)?);
    }
    if let Some(fresh) = fresh {
        fresh.install(&deb)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn megabytes(file: &Path) -> Result<String> {
    let bytes = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
    Ok(format!("{:.1} MB", bytes as f64 / 1e6))
}

/// Runs a command. An error names the command.
fn done(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    ensure!(status.success(), "{}: {status}", command.get_program().display());
    Ok(())
}

/// Returns the output of a command that succeeds.
fn printed(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {}", command.get_program().display(), output.status, text.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the target of the binary, and whether its C library is musl. If the
/// standard library for musl is not installed, glibc is linked statically.
fn target() -> Result<(String, bool)> {
    let version = printed(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let musl = host.replace("-gnu", "-musl");
    let library = printed(Command::new("rustc").args(["--print", "target-libdir", "--target", &musl]))?;
    let has_musl = Path::new(library.trim()).is_dir();
    Ok((if has_musl { musl } else { host.to_owned() }, has_musl))
}

/// Builds the binary, static and without symbols.
fn build(root: &Path, target_directory: &Path, profile: &str) -> Result<PathBuf> {
    let (target, is_musl) = target()?;
    if is_musl {
        println!("for {target}, profile {profile}");
    } else {
        println!(
            "for {target}, profile {profile}: the standard library for musl is not installed, so glibc is linked statically. \
             Names of hosts (--tcp, --metrics) are then looked up by the glibc that the machine has, of the same version; \
             addresses work everywhere."
        );
    }
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let strip = format!("CARGO_PROFILE_{}_STRIP", profile.to_uppercase());
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args([
        "build",
        "--package",
        "iosched-cli",
        "--features",
        "full",
        "--profile",
        profile,
        "--target",
        &target,
    ]);
    cargo.env("RUSTFLAGS", format!("{flags} -C target-feature=+crt-static")).env(strip, "symbols");
    done(&mut cargo)?;
    Ok(target_directory.join(target).join(profile).join("iosched"))
}
