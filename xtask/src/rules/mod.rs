//! `cargo xtask rules`: checks the rules of this repository.
//!
//! Each rule is a function from its input to breaches, with a test of an invented breach.
//! ARCHITECTURE.md and CONTRIBUTING.md give the reasons for the rules.

mod circles;
mod commits;
mod dependencies;
mod headings;
mod help;
mod manifests;
mod names;
mod prose;
mod sources;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

/// A breach of a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Breach {
    /// Path of the file, from the root of the repository.
    file: String,
    /// Number of the line, from 1. 0 means the whole file.
    line: usize,
    /// Description of the fault, and how to correct it.
    what: String,
}

impl Breach {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// A file of the repository.
struct SourceFile {
    /// Path from the root of the repository, with slashes.
    path: String,
    text: String,
}

/// Crates whose behaviour depends only on their arguments. Clippy refuses functions that would make
/// the behaviour depend on other input.
const DETERMINISTIC: &[&str] = &["iosched", "numbers", "disk", "workload", "machine", "sim", "check"];
/// File with the list of refused functions.
const DETERMINISTIC_LINTS: &str = "clippy-deterministic.toml";

pub(crate) fn run() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = files(&root, "rs")?;
    let manifests = files(&root, "toml")?;
    let mut breaches = dependencies::check(&dependencies::packages(&root)?);
    for file in &sources {
        breaches.extend(sources::too_long(file));
        breaches.extend(sources::forbidden(file));
        breaches.extend(sources::may_be_unchecked(file));
        breaches.extend(help::unclear(file));
        breaches.extend(headings::joined(file));
        breaches.extend(names::meaningless(file));
    }
    // Also check the scripts of pages. Vendored scripts are left out.
    let scripts = files(&root, "js")?;
    breaches.extend(scripts.iter().filter_map(sources::too_long));
    breaches.extend(sources::panics(&sources));
    breaches.extend(circles::too_large(&sources));
    for file in manifests.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        breaches.extend(manifests::without_reason(file));
        breaches.extend(manifests::not_of_the_workspace(file));
    }
    breaches.extend(manifests::not_deterministic(&manifests));
    breaches.extend(files(&root, "md")?.iter().flat_map(prose::check));
    breaches.extend(commits::subjects(&root));
    breaches.sort();

    let long: Vec<_> = sources.iter().filter_map(sources::rather_long).collect();
    if !long.is_empty() {
        println!("files that should be split soon, more than {} lines:", sources::LINES_WARNED);
        long.iter().for_each(|(lines, path)| println!("  {lines} {path}"));
    }
    breaches.iter().for_each(|breach| println!("{breach}"));
    println!("rules: {} sources and {} manifests read, {} breaches", sources.len(), manifests.len(), breaches.len());
    Ok(ExitCode::from(u8::from(!breaches.is_empty())))
}

/// Returns the repository's files with an extension, ordered by path. Vendored files are left out.
fn files(root: &Path, extension: &str) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                // Skips build output, vendored code and hidden directories.
                if !["target", "corpus", "vendor", "node_modules"].contains(&name) && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let inside = path.strip_prefix(root)?;
                let path = inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>();
                found.push(SourceFile { path: path.join("/"), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the words that are between two texts.
    fn words<'t>(text: &'t str, from: &str, to: char) -> Vec<&'t str> {
        let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{from:?} is missing"));
        let list = rest.split(to).next().unwrap_or_default();
        list.split([' ', ',']).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn the_public_workflow_runs_every_part_of_ci() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let (script, workflow) = (read(".ci/run"), read(".github/workflows/ci.yml"));
        let parts = words(&script, "\nparts=\"", '"');
        assert_eq!(words(&workflow, "part: [", ']'), parts);
        let begun = script.lines().filter_map(|line| line.trim_start().strip_prefix("begin "));
        assert_eq!(begun.collect::<BTreeSet<_>>(), parts.into_iter().collect());
    }
}
