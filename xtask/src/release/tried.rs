//! Tests the files of a release, each in a clean place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{Artefacts, SUMS, crates, dashboard};
use crate::dist::metadata::PYTHON;
use crate::dist::{Recipe, VERSION, done, fresh, host, pack, printed, python};

/// Versions of Python 3 that the wheel supports.
const PYTHONS: std::ops::RangeInclusive<u32> = 10..=14;
/// The main job of the Python package. It prints the answer and the path of the package.
const PYTHON_JOB: &str = "\
import iosched
c = iosched.compare(None, 'sata-7200', ['mq-deadline', 'bfq'], runs=2)
assert len(c.verdicts) > 0 and c.answer, c
print(iosched.__version__, iosched.__file__)
";
/// Validates a bill of materials strictly by the schema of CycloneDX.
const VALIDATION: &str = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(path).read())
    assert error is None, (path, error)
";

/// A subdirectory of the directory for temporary files. It is removed on drop.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new(name: &str) -> Result<Self> {
        let place = Self(std::env::temp_dir().join(format!("iosched-release-{name}-{}", std::process::id())));
        fs::create_dir_all(&place.0)?;
        Ok(place)
    }
}

/// Tests all files.
pub(super) fn all(recipe: &Recipe, artefacts: &Artefacts, tools: &python::Tools, fresh: fresh::Root) -> Result<()> {
    done(Command::new("sha256sum").current_dir(&recipe.output).args(["--check", "--quiet", SUMS]))?;
    println!("checksums: all files have theirs");
    done(Command::new(tools.program("python")).args(["-c", VALIDATION]).args(&artefacts.bills))?;
    println!("bills of materials: valid by the schema of CycloneDX 1.5");
    tarball(&artefacts.tarball)?;
    wheel(&artefacts.wheel)?;
    sdist(recipe, &artefacts.sdist)?;
    let place = Place::new("crates")?;
    crates::tried(recipe, &artefacts.crates, &place.0, !recipe.is_light)?;
    crates::publishing(recipe, &place.0)?;
    image(recipe)?;
    let root = fresh.ready()?;
    root.install_deb(&artefacts.deb)?;
    root.install_rpm(&artefacts.rpm)
}

/// Unpacks the tarball, runs the main job, and tests the dashboard.
fn tarball(file: &Path) -> Result<()> {
    let place = Place::new("tarball")?;
    done(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(&place.0))?;
    let directory = place.0.join(pack::tarball_directory());
    let text = printed(Command::new(directory.join("bin/iosched")).args(["compare", "--runs=3"]))?;
    ensure!(text.contains("Keep `mq-deadline` for now"), "the command of the tarball prints: {text}");
    println!("tarball: unpacked, and the command compares schedulers");
    let work = Place::new("dashboard")?;
    dashboard::tried(&directory, &work.0)
}

/// Returns the commands of all supported versions of Python on this machine, without duplicates.
fn pythons() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = PYTHONS.map(|minor| PathBuf::from(format!("python3.{minor}"))).collect();
    // The commands that pyenv provides run only the chosen version.
    if let Some(root) = std::env::var_os("PYENV_ROOT") {
        let versions = fs::read_dir(Path::new(&root).join("versions")).into_iter().flatten().flatten();
        found.extend(versions.map(|version| version.path().join("bin/python3")));
    }
    let mut versions: Vec<u32> = Vec::new();
    found.retain(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import sys, venv, ensurepip; print(sys.version_info[1])"]);
        let minor = printed(command.stdin(Stdio::null())).ok().and_then(|text| text.trim().parse().ok());
        let is_new = minor.is_some_and(|minor| PYTHONS.contains(&minor) && !versions.contains(&minor));
        versions.extend(minor);
        is_new
    });
    found
}

/// Installs the wheel with every version of Python on this machine, runs the main job, and removes
/// the wheel.
fn wheel(file: &Path) -> Result<()> {
    let pythons = pythons();
    ensure!(!pythons.is_empty(), "no supported version of Python with venv is here");
    for python in pythons {
        let place = Place::new("wheel")?;
        done(Command::new(&python).args(["-m", "venv"]).arg(&place.0))?;
        let here = |program: &str| {
            let mut command = Command::new(place.0.join("bin").join(program));
            // Python must not find other packages.
            command.current_dir(&place.0).env_remove("PYTHONPATH");
            command
        };
        done(here("pip").args(["install", "--quiet", "--no-index", "--no-deps"]).arg(file))?;
        let text = printed(here("python").args(["-c", PYTHON_JOB])).with_context(|| python.display().to_string())?;
        let is_ours = text.starts_with(VERSION) && text.contains(&place.0.display().to_string());
        ensure!(is_ours, "another package was imported: {text}");
        done(here("pip").args(["uninstall", "--quiet", "--yes", "iosched"]))?;
        let left =
            printed(Command::new("find").arg(&place.0).args(["-name", "*iosched*", "-not", "-path", "*__pycache__*"]))?;
        let left: Vec<&str> = left.lines().filter(|line| Path::new(line) != place.0).collect();
        ensure!(left.is_empty(), "the wheel was removed, and these files are left: {left:?}");
        let version = printed(Command::new(&python).arg("--version"))?;
        println!("wheel: {}: installed, imported, compares schedulers, removed", version.trim());
    }
    Ok(())
}

/// Unpacks the source distribution, and checks that cargo finds all files. Without `--quick`, also
/// builds the source.
fn sdist(recipe: &Recipe, file: &Path) -> Result<()> {
    let place = Place::new("sdist")?;
    done(Command::new("tar").arg("-xzf").arg(file).args(["--strip-components=1", "-C"]).arg(&place.0))?;
    let manifest = place.0.join("crates/python/Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&place.0).args(["metadata", "--format-version=1", "--offline", "--manifest-path"]).arg(&manifest);
    cargo.args(["--filter-platform", &host()?]);
    let text = printed(&mut cargo)?;
    ensure!(text.contains(PYTHON), "the source distribution has no {PYTHON}");
    println!("source distribution: dependencies are complete");
    if recipe.is_light {
        return Ok(());
    }
    let environment = place.0.join("environment");
    done(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--no-deps"]).arg(file).env("CARGO_TARGET_DIR", place.0.join("target"));
    done(&mut pip)?;
    printed(Command::new(environment.join("bin/python")).current_dir(&environment).args(["-c", PYTHON_JOB]))?;
    println!("source distribution: built, installed and imported");
    Ok(())
}

/// Builds the container image and runs the command in it, if this machine has a program for
/// containers.
fn image(recipe: &Recipe) -> Result<()> {
    const NAME: &str = "localhost/iosched-release-test";
    let Ok(version) = printed(Command::new("buildah").arg("--version")) else {
        println!("container image: not tried, because buildah is not installed");
        return Ok(());
    };
    let buildah = |arguments: &[&str]| {
        let mut command = Command::new("buildah");
        command.args(["--storage-driver=vfs"]).args(arguments);
        command
    };
    done(buildah(&["build", "--quiet", "--isolation=chroot", "--tag", NAME]).arg(&recipe.output))?;
    let container = printed(&mut buildah(&["from", NAME]))?;
    // A command that is not static needs libraries that the image does not have.
    let ran = if recipe.is_light {
        Ok(())
    } else {
        let run = printed(&mut buildah(&["run", "--isolation=chroot", container.trim(), "--", "iosched", "--version"]));
        run.and_then(|text| {
            ensure!(text.contains(VERSION), "the command of the image prints: {text}");
            Ok(())
        })
    };
    done(buildah(&["rm", container.trim()]).stdout(Stdio::null()))?;
    done(buildah(&["rmi", NAME]).stdout(Stdio::null()))?;
    ran?;
    println!("container image: built with {}", version.trim());
    Ok(())
}
