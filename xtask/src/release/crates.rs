//! Makes and tests the files for crates.io.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::dist::metadata::{COMMAND, Package};
use crate::dist::{Recipe, VERSION, done, host, printed};

/// Returns the name of a crate's file.
pub(super) fn name(package: &Package) -> String {
    format!("{}-{VERSION}.crate", package.name)
}

/// Makes the files of all published crates with `cargo package`, in the directory `work`.
pub(super) fn make(recipe: &Recipe, published: &[&Package], work: &Path) -> Result<Vec<PathBuf>> {
    let mut cargo = recipe.command("cargo");
    cargo.args(["package", "--quiet", "--locked", "--no-verify"]);
    if recipe.is_light {
        // In tests, changes that are not committed are also packaged.
        cargo.args(["--allow-dirty", "--offline"]);
    }
    for package in published {
        cargo.args(["--package", &package.name]);
    }
    done(cargo.env("CARGO_TARGET_DIR", work))?;
    let mut files = Vec::new();
    for name in published.iter().map(|package| name(package)) {
        let file = recipe.output.join(&name);
        fs::copy(work.join("package").join(&name), &file)?;
        files.push(file);
    }
    Ok(files)
}

/// Unpacks the crates into `directory`, outside of the workspace, and resolves the dependencies of
/// the command. With `is_built`, also installs and uses the command.
pub(super) fn tried(recipe: &Recipe, crates: &[PathBuf], directory: &Path, is_built: bool) -> Result<()> {
    let mut patches = Vec::new();
    for file in crates {
        done(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(directory))?;
        let unpacked = directory.join(file.file_stem().unwrap_or_default());
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(VERSION).trim_end_matches('-');
        // The registry does not have these crates before they are published.
        patches.push(format!("patch.crates-io.{name}.path=\"{}\"", unpacked.display()));
    }
    let command = directory.join(format!("{COMMAND}-{VERSION}"));
    let patched = |cargo: &mut Command| {
        cargo.current_dir(&command);
        patches.iter().for_each(|patch| {
            cargo.args(["--config", patch]);
        });
    };
    let mut metadata = Command::new("cargo");
    patched(metadata.args(["metadata", "--format-version=1", "--features=full", "--filter-platform", &host()?]));
    if recipe.is_light {
        metadata.arg("--offline");
    }
    let resolved = printed(&mut metadata)?;
    let packages = serde_json::from_str::<serde_json::Value>(&resolved)?;
    let outside: Vec<&str> = packages["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| package["manifest_path"].as_str())
        .filter(|path| Path::new(path).starts_with(&recipe.root))
        .collect();
    ensure!(outside.is_empty(), "crates outside of the workspace use files in it: {outside:?}");
    println!("crates outside of the workspace: dependencies are complete");
    if is_built {
        let root = directory.join("root");
        let mut install = Command::new("cargo");
        patched(install.args(["install", "--debug", "--features=full", "--path", ".", "--root"]).arg(&root));
        done(install.env("CARGO_TARGET_DIR", directory.join("target")))?;
        let text = printed(Command::new(root.join("bin/iosched")).args(["compare", "--runs=3"]))?;
        ensure!(text.contains("Keep `mq-deadline` for now"), "the command from the crates prints: {text}");
        println!("crates outside of the workspace: the command is installed and compares schedulers");
    }
    Ok(())
}

/// Does all steps of publishing except the upload: `cargo publish --dry-run`. The registry must not
/// have a crate with the same name and version. Uses the directory `work`.
pub(super) fn publishing(recipe: &Recipe, work: &Path) -> Result<()> {
    let mut cargo = recipe.command("cargo");
    // Another test builds the crates.
    cargo.args(["publish", "--dry-run", "--workspace", "--locked", "--no-verify"]);
    if recipe.is_light {
        // In tests, changes that are not committed are also packaged.
        cargo.arg("--allow-dirty");
    }
    let output = cargo.env("CARGO_TARGET_DIR", work.join("publish")).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo publish --dry-run: {}: {text}", output.status);
    // If the registry already has a version, the dry run only prints a warning.
    let published: Vec<&str> = text.lines().filter(|line| line.contains("already exists")).collect();
    ensure!(published.is_empty(), "the registry has this version: {published:?}");
    let count = text.lines().filter(|line| line.contains("aborting upload due to dry run")).count();
    println!("crates: cargo publish --dry-run accepts {count} crates");
    Ok(())
}
