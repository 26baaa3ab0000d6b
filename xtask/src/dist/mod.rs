//! `cargo xtask dist`: packages for machines without a compiler. It makes a static binary, a Debian
//! package, a tarball and a wheel.
//!
//! `cargo xtask release` makes its packages from the same files.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the build of the binary: its target and profile |
//! | `stage.rs` | the installed files and their places |
//! | `pack.rs`, `rpm.rs` | the packages and the tarball |
//! | `python.rs` | the wheel and the source distribution of the Python package |
//! | `metadata.rs`, `licences.rs` | the dependencies and their licences |
//! | `fresh.rs` | a test of the package in a minimal root |
//! | `units.rs`, `units.sh` | a test of its units under a running systemd |

pub(crate) mod fresh;
pub(crate) mod licences;
pub(crate) mod metadata;
pub(crate) mod pack;
pub(crate) mod python;
pub(crate) mod rpm;
pub(crate) mod stage;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::page;
use metadata::Metadata;

/// Make packages: a static binary, a .deb, a tarball with man pages, completions and systemd units, and a Python wheel
///
/// Needs cc with binutils, dpkg-deb and tar. The wheel needs python3 with venv, and PyPI. --try needs mmdebstrap,
/// systemd-nspawn, root and a configured apt-get.
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

/// Directories and options of the packages.
pub(crate) struct Recipe {
    /// Root of the repository.
    pub(crate) root: PathBuf,
    /// Directory of cargo's output.
    pub(crate) target_directory: PathBuf,
    /// Directory for packages.
    pub(crate) output: PathBuf,
    /// Time of all files in packages, in seconds since 1970. It is the time of the last commit.
    pub(crate) epoch: String,
    /// Whether packages are compressed only lightly, which takes less time.
    pub(crate) is_light: bool,
}

/// Version of all packages.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Recipe {
    /// Creates the recipe of packages in `output`, or in the directory `name` of cargo's output.
    pub(crate) fn new(output: Option<&Path>, name: &str, is_light: bool) -> Result<Self> {
        let root = page::path("").canonicalize()?;
        let target_directory = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let output = output.map_or_else(|| target_directory.join(name), Path::to_owned);
        // The programs run in other directories, so the path must be absolute.
        let output = std::path::absolute(output)?;
        let commit = printed(Command::new("git").current_dir(&root).args(["log", "-1", "--format=%ct"]))?;
        let epoch = std::env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| commit.trim().to_owned());
        Ok(Self { root, target_directory, output, epoch, is_light })
    }

    /// Returns a command that runs in the root of the repository. Its output depends only on the
    /// sources.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("SOURCE_DATE_EPOCH", &self.epoch);
        command
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let recipe = Recipe::new(args.output.as_deref(), "dist-packages", args.quick)?;
    std::fs::create_dir_all(&recipe.output)?;
    // The packages for the fresh root directory are downloaded during the build of the binary.
    let fresh = args.is_tried.then(fresh::Root::begin).transpose()?;
    let began = Instant::now();
    let profile = if args.quick { "release" } else { "dist" };
    let program = build(&recipe, profile)?;
    println!("built in {:.0} s: {}", began.elapsed().as_secs_f64(), program.display());
    println!("static and stripped: {}", megabytes(&program)?);
    let licences = licences::third_party(&recipe.root, &Metadata::read(&recipe.root)?)?;
    let staged = stage::stage(&recipe, &program, &licences, &recipe.output.join("stage"))?;
    let [deb, tarball] = [pack::deb(&recipe, &staged)?, pack::tarball(&recipe, &staged)?];
    for file in [&deb, &tarball] {
        println!("{}: {}", file.display(), megabytes(file)?);
    }
    if !args.no_wheel {
        let mut tools = python::Tools::install(&recipe.output.join("wheel-environment"), &[])?;
        if !args.quick {
            tools.add_zig();
        }
        let wheel = python::wheel(&recipe, &tools, profile, &recipe.output.join("wheel"))?;
        println!("{}: {}", wheel.display(), megabytes(&wheel)?);
    }
    if let Some(fresh) = fresh {
        fresh.ready()?.install_deb(&deb)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn megabytes(file: &Path) -> Result<String> {
    let bytes = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
    Ok(format!("{:.1} MB", bytes as f64 / 1e6))
}

/// Runs a command. If it fails, the error names the command.
pub(crate) fn done(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    ensure!(status.success(), "{}: {status}", command.get_program().display());
    Ok(())
}

/// Runs a command and returns its output. If it fails, the error names the command.
pub(crate) fn printed(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {}", command.get_program().display(), output.status, text.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the default target of the compiler.
pub(crate) fn host() -> Result<String> {
    let version = printed(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    Ok(host.to_owned())
}

/// Returns the target of the binary, and whether its C library is musl. If the standard library for
/// musl is not installed, the target uses glibc, linked statically.
fn target() -> Result<(String, bool)> {
    let host = host()?;
    let musl = host.replace("-gnu", "-musl");
    let library = printed(Command::new("rustc").args(["--print", "target-libdir", "--target", &musl]))?;
    let has_musl = Path::new(library.trim()).is_dir();
    Ok((if has_musl { musl } else { host }, has_musl))
}

/// Builds the static binary without symbols and without paths of this machine.
pub(crate) fn build(recipe: &Recipe, profile: &str) -> Result<PathBuf> {
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
    let mut cargo = recipe.command("cargo");
    cargo.args(["build", "--package", "iosched-cli", "--features", "full", "--profile", profile, "--target", &target]);
    cargo.env("CARGO_TARGET_DIR", &recipe.target_directory);
    // Cargo ignores `strip` of a profile if the profile also has options for the package that it builds.
    let options = "-C target-feature=+crt-static -C strip=symbols";
    cargo.env("RUSTFLAGS", format!("{flags} {options} {}", without_paths(recipe)));
    done(&mut cargo)?;
    let program = recipe.target_directory.join(target).join(profile).join("iosched");
    let sections = printed(Command::new("readelf").args(["--sections", "--wide"]).arg(&program))?;
    ensure!(!sections.contains(".symtab"), "{}: the program has symbols", program.display());
    Ok(program)
}

/// Returns flags of the compiler that replace the paths of this machine in the binary.
pub(crate) fn without_paths(recipe: &Recipe) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let target = recipe.target_directory.display();
    // If several replacements match a path, the compiler uses the last one.
    let replaced =
        [(recipe.root.display().to_string(), "/iosched"), (target.to_string(), "/target"), (cargo, "/cargo")];
    replaced.map(|(from, to)| format!("--remap-path-prefix={from}={to}")).join(" ")
}
