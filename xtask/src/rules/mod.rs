//! `cargo xtask rules`: the rules of this house, checked.
//!
//! Each rule is a function from what it reads to breaches; each has a test on a made-up breach. ARCHITECTURE.md and
//! CONTRIBUTING.md say why the rules are.

mod circles;
mod commits;
mod dependencies;
mod help;
mod manifests;
mod names;
mod prose;
mod sources;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

/// A rule broken somewhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Breach {
    /// The file, from the root.
    file: String,
    /// The line, from 1; 0 for the whole file.
    line: usize,
    /// What is wrong, and what would be right.
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
    /// From the root, with slashes.
    path: String,
    text: String,
}

/// Crates whose behaviour is a function of their arguments: clippy refuses there what would break that.
const DETERMINISTIC: &[&str] = &["iosched", "numbers", "disk", "workload", "machine", "sim", "check"];
/// What it refuses.
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
        breaches.extend(names::meaningless(file));
    }
    // Those of pages; what is vendored is others'.
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

/// The repository's own files with an extension, in order of their paths.
fn files(root: &Path, extension: &str) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                // What is built, what is others', and what is hidden.
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
