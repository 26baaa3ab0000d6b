//! The wheel of the Python package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::done;

/// Builds the wheel with pip and a profile of cargo, in a virtual environment below `output`.
///
/// The wheel names the oldest glibc that it runs with, as PyPI requires. Crates
/// that were built for the command with the same profile are not built again.
pub(super) fn wheel(root: &Path, output: &Path, profile: &str) -> Result<PathBuf> {
    let environment = output.join("wheel-environment");
    let directory = output.join("wheel");
    let _ = fs::remove_dir_all(&directory);
    done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["wheel", "--quiet", "--no-deps", "--wheel-dir"]).arg(&directory);
    pip.arg(format!("--config-settings=build-args=--profile {profile} --compatibility pypi"));
    done(pip.arg(root.join("python")))?;
    fs::remove_dir_all(&environment)?;
    let wheel = fs::read_dir(&directory)?.next().context("pip has built no wheel")??;
    Ok(wheel.path())
}
