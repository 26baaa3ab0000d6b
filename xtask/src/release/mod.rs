//! `cargo xtask release`: makes every file of a release, and tests each file in a clean place.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the files of a release, and the order in which they are made |
//! | `checks.rs`, `expression.rs` | versions, names, licences and metadata |
//! | `bill.rs` | software bills of materials |
//! | `crates.rs` | files for crates.io, and a test outside of the workspace |
//! | `dashboard.rs` | a test of the dashboard with a served disk and Prometheus |
//! | `twice.rs` | a comparison of two builds |
//! | `tried.rs` | tests of the other files |

mod bill;
mod checks;
mod crates;
mod dashboard;
mod expression;
mod tried;
mod twice;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::dist::metadata::{COMMAND, Metadata, PYTHON, Package};
use crate::dist::{self, Recipe, VERSION, done, fresh, licences, megabytes, pack, printed, python, rpm, stage};

/// Make every file of a release: packages, Python packages, crates, checksums, bills of materials and licences
///
/// The packages need cc, dpkg-deb, rpmbuild and tar. The Python packages need python3 with venv, and PyPI. --try also
/// needs mmdebstrap, systemd-nspawn, root and a configured apt-get, and for the dashboard prometheus and nbdcopy.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only check versions, names, licences and metadata, and print the names of the files
    #[arg(long)]
    dry_run: bool,
    /// Use the command that `cargo test` builds, and compress lightly. These files are for tests only
    #[arg(long)]
    quick: bool,
    /// Install each file in a clean place, use it there, and remove it again
    #[arg(long = "try")]
    is_tried: bool,
    /// Make all files twice, and compare them
    #[arg(long)]
    twice: bool,
    /// Directory for the files [default: target/release-artefacts]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The files of a release.
struct Artefacts {
    deb: PathBuf,
    rpm: PathBuf,
    tarball: PathBuf,
    wheel: PathBuf,
    sdist: PathBuf,
    crates: Vec<PathBuf>,
    bills: [PathBuf; 2],
}

/// Name of the file with the checksums of all other files.
const SUMS: &str = "SHA256SUMS";
/// Recipe of the container image.
const CONTAINERFILE: &str = "Containerfile";
/// Requirement for the Python package that validates bills of materials.
const BILL_VALIDATOR: &str = "cyclonedx-python-lib[json-validation]>=11,<12";

/// Returns the names of all files. The real name of the wheel also has the oldest glibc that it
/// supports.
fn names(published: &[&Package]) -> Result<Vec<String>> {
    let mut names = vec![
        format!("{}.tar.gz", pack::tarball_directory()),
        pack::deb_name()?,
        rpm::name(),
        format!("iosched-{VERSION}-cp310-abi3-manylinux*_{}.whl", std::env::consts::ARCH),
        format!("iosched-{VERSION}.tar.gz"),
        bill_name(COMMAND),
        bill_name(PYTHON),
        licences_name(),
        CONTAINERFILE.to_owned(),
        SUMS.to_owned(),
    ];
    names.extend(published.iter().map(|package| crates::name(package)));
    Ok(names)
}

fn bill_name(package: &str) -> String {
    format!("{package}-{VERSION}.cdx.json")
}

fn licences_name() -> String {
    format!("iosched-{VERSION}-third-party-licences.txt")
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let recipe = Recipe::new(args.output.as_deref(), "release-artefacts", args.quick)?;
    let metadata = Metadata::read(&recipe.root)?;
    let published = metadata.published()?;
    let findings = checks::check(&recipe.root, &metadata, &published)?;
    for note in &findings.notes {
        println!("note: {note}");
    }
    for fault in &findings.faults {
        eprintln!("error: {fault}");
    }
    if !findings.faults.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    println!("versions, names, licences and metadata: no fault");
    if args.dry_run {
        for name in names(&published)? {
            println!("would make {name}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    // The packages for the fresh root directory are downloaded while the files of the release are
    // made.
    let fresh = args.is_tried.then(fresh::Root::begin).transpose()?;
    fs::create_dir_all(&recipe.output)?;
    let validator = if args.is_tried { &[BILL_VALIDATOR][..] } else { &[] };
    let mut tools = python::Tools::install(&recipe.output.join("tools"), validator)?;
    // With `--quick`, the wheel uses crates that were built without zig.
    if !args.quick {
        tools.add_zig();
    }
    let artefacts = make(&recipe, &metadata, &published, &tools)?;
    if args.twice {
        let again = Recipe {
            root: recipe.root.clone(),
            // With `--quick`, the second pass packs the same programs again.
            target_directory: if args.quick {
                recipe.target_directory.clone()
            } else {
                recipe.target_directory.join("twice")
            },
            output: recipe.output.join("again"),
            epoch: recipe.epoch.clone(),
            is_light: recipe.is_light,
        };
        let built = again.target_directory.clone();
        if !args.quick {
            let _ = fs::remove_dir_all(&built);
        }
        make(&again, &metadata, &published, &tools)?;
        let differ = twice::compare(&recipe.output, &again.output)?;
        fs::remove_dir_all(&again.output)?;
        if !args.quick {
            fs::remove_dir_all(&built)?;
        }
        if differ > 0 {
            eprintln!("error: {differ} files differ between two builds");
            return Ok(ExitCode::FAILURE);
        }
    }
    if let Some(fresh) = fresh {
        tried::all(&recipe, &artefacts, &tools, fresh)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes all files in the output directory of the recipe. Removes all other files from this
/// directory.
fn make(recipe: &Recipe, metadata: &Metadata, published: &[&Package], tools: &python::Tools) -> Result<Artefacts> {
    let output = &recipe.output;
    fs::create_dir_all(output)?;
    for entry in fs::read_dir(output)? {
        let path = entry?.path();
        if path.is_file() {
            fs::remove_file(path)?;
        }
    }
    let work = output.join("work");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;

    let program = timed("program", || program(recipe, &work))?;
    let text = licences::third_party(&recipe.root, metadata)?;
    fs::write(output.join(licences_name()), &text)?;
    let staged = timed("man pages and completions", || stage::stage(recipe, &program, &text, &work.join("stage")))?;
    let tarball = timed("tarball", || pack::tarball(recipe, &staged))?;
    let deb = timed("Debian package", || pack::deb(recipe, &staged))?;
    let rpm = timed("RPM package", || rpm::rpm(recipe, &staged))?;
    let profile = if recipe.is_light { "release" } else { "dist" };
    let python = work.join("python");
    let wheel = timed("wheel", || moved(&python::wheel(recipe, tools, profile, &python)?, output))?;
    let sdist = timed("source distribution", || moved(&python::sdist(recipe, tools, &python)?, output))?;
    let crates = timed("crates", || crates::make(recipe, published, &work.join("crates")))?;
    let bills = [COMMAND, PYTHON].map(|package| (package, output.join(bill_name(package))));
    for (package, file) in &bills {
        let linked = metadata.linked(&recipe.root, package)?;
        fs::write(file, bill::bill(recipe, metadata, &linked)?)?;
    }
    let containerfile = fs::read_to_string(recipe.root.join("packaging").join(CONTAINERFILE))?;
    fs::write(output.join(CONTAINERFILE), containerfile.replace("@DIRECTORY@", &pack::tarball_directory()))?;
    fs::remove_dir_all(&work)?;
    sums(output)?;
    Ok(Artefacts { deb, rpm, tarball, wheel, sdist, crates, bills: bills.map(|(_, file)| file) })
}

/// Runs a step. Prints its duration and the size of its file.
fn timed<T>(name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let result = step().with_context(|| name.to_owned())?;
    println!("{name}: {:.0} s", began.elapsed().as_secs_f64());
    Ok(result)
}

fn moved(file: &Path, directory: &Path) -> Result<PathBuf> {
    let to = directory.join(file.file_name().context("a file has a name")?);
    fs::rename(file, &to)?;
    Ok(to)
}

/// Returns the command for the packages: the static command, or with `--quick` the command of the
/// tests.
fn program(recipe: &Recipe, work: &Path) -> Result<PathBuf> {
    if !recipe.is_light {
        return dist::build(recipe, "dist");
    }
    // After `cargo test` with these features, cargo has nothing to build here.
    let mut cargo = recipe.command("cargo");
    cargo.args(["build", "--quiet", "--workspace", "--features=iosched-cli/full", "--bin=iosched"]);
    done(cargo.env("CARGO_TARGET_DIR", &recipe.target_directory))?;
    let program = work.join("iosched");
    done(Command::new("strip").arg("-o").arg(&program).arg(recipe.target_directory.join("debug/iosched")))?;
    Ok(program)
}

/// Writes the checksums of all files in a directory.
fn sums(directory: &Path) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let text = printed(Command::new("sha256sum").current_dir(directory).arg("--").args(&names))?;
    fs::write(directory.join(SUMS), text)?;
    for name in &names {
        println!("{name}: {}", megabytes(&directory.join(name))?);
    }
    println!("{} files in {}", names.len() + 1, directory.display());
    Ok(())
}
