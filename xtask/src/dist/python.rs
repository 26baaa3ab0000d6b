//! The wheel and the source distribution of the Python package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Recipe, done, printed, without_paths};

/// Requirement for maturin, which builds Python packages. `python/pyproject.toml` has the same
/// versions.
const MATURIN: &str = "maturin>=1.8,<2";
/// Package with a linker that supports other versions of glibc than the version of this machine.
const ZIG: &str = "ziglang";
/// The oldest glibc that the standard library of Rust supports.
const OLDEST_GLIBC: &str = "manylinux_2_17";

/// A virtual environment with the programs that build the package.
pub(crate) struct Tools {
    directory: PathBuf,
    has_zig: bool,
}

impl Drop for Tools {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Tools {
    /// Installs maturin and `others` from PyPI in a new environment, which is removed on drop.
    pub(crate) fn install(directory: &Path, others: &[&str]) -> Result<Self> {
        let tools = Self { directory: directory.to_owned(), has_zig: false };
        done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory))?;
        done(Command::new(tools.program("pip")).args(["install", "--quiet", MATURIN]).args(others))?;
        Ok(tools)
    }

    /// Adds zig, if PyPI has it for this machine. With zig, the wheel also supports older versions
    /// of glibc.
    pub(crate) fn add_zig(&mut self) {
        // pip itself prints why it cannot install a package.
        self.has_zig = done(Command::new(self.program("pip")).args(["install", "--quiet", ZIG])).is_ok();
        if !self.has_zig {
            println!("the wheel needs a glibc as new as that of this machine, because {ZIG} cannot be installed");
        }
    }

    /// Returns the path of a program of the environment.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.directory.join("bin").join(name)
    }

    fn maturin(&self, recipe: &Recipe, subcommand: &str, output: &Path) -> Command {
        let _ = fs::remove_dir_all(output);
        let mut maturin = recipe.command(self.program("maturin"));
        maturin.current_dir(recipe.root.join("python")).args([subcommand, "--out"]).arg(output);
        maturin.env("CARGO_TARGET_DIR", &recipe.target_directory);
        maturin
    }
}

/// Builds the wheel with a profile of cargo, in the directory `output`.
///
/// The name of the wheel has the oldest glibc that it supports, as PyPI requires. Without zig,
/// crates that were already built for this machine with the same profile are not built again.
pub(crate) fn wheel(recipe: &Recipe, tools: &Tools, profile: &str, output: &Path) -> Result<PathBuf> {
    let mut maturin = tools.maturin(recipe, "build", output);
    if tools.has_zig {
        // maturin finds zig through the Python of this environment.
        let path = std::env::var("PATH").unwrap_or_default();
        maturin.env("PATH", format!("{}:{path}", tools.directory.join("bin").display()));
        maturin.args(["--profile", profile, "--zig", "--compatibility", OLDEST_GLIBC]);
    } else {
        maturin.args(["--profile", profile, "--compatibility", "pypi"]);
    }
    if !recipe.is_light {
        let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        maturin.env("RUSTFLAGS", format!("{flags} {}", without_paths(recipe)));
    }
    done(&mut maturin)?;
    only_file(output)
}

/// Makes the source distribution in the directory `output`. It contains all crates that the package
/// needs.
pub(crate) fn sdist(recipe: &Recipe, tools: &Tools, output: &Path) -> Result<PathBuf> {
    // maturin repeats cargo's warnings for every crate, so its output is shown only after a
    // failure.
    printed(&mut tools.maturin(recipe, "sdist", output))?;
    only_file(output)
}

fn only_file(directory: &Path) -> Result<PathBuf> {
    Ok(fs::read_dir(directory)?.next().context("maturin has made no file")??.path())
}
