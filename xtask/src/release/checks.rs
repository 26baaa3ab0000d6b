//! Checks of a release before its files are made: versions, names, licences and metadata.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::expression::is_allowed;
use crate::dist::VERSION;
use crate::dist::metadata::{COMMAND, Metadata, PYTHON, Package};

/// Longest name that crates.io accepts, in characters.
const NAME_MAX: usize = 64;
/// The crates for users. They must have a page of documentation, and keywords.
const LIBRARIES: [&str; 2] = ["iosched", "iosched-nbd"];

/// Results of the checks.
#[derive(Default)]
pub(super) struct Findings {
    /// Reasons not to release.
    pub(super) faults: Vec<String>,
    /// Facts that a person must know before the release.
    pub(super) notes: Vec<String>,
}

/// The part of `deny.toml` that lists licences.
#[derive(Deserialize)]
struct Deny {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

/// Runs all checks. `published` are the crates for crates.io.
pub(super) fn check(root: &Path, metadata: &Metadata, published: &[&Package]) -> Result<Findings> {
    let mut findings = Findings::default();
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    for package in published {
        findings.faults.extend(faults_of(package));
        findings.faults.extend(outside(package)?);
    }
    let python = metadata.member(PYTHON).context("the Python package has a crate")?;
    if python.version != VERSION {
        findings.faults.push(format!("{PYTHON} has version {}, not {VERSION}", python.version));
    }
    if !read("CITATION.cff")?.lines().any(|line| line == format!("version: {VERSION}")) {
        findings.faults.push(format!("CITATION.cff does not have the line version: {VERSION}"));
    }
    let deny: Deny = toml::from_str(&read("deny.toml")?).context("deny.toml")?;
    let allowed: Vec<&str> = deny.licenses.allow.iter().map(String::as_str).collect();
    for name in [COMMAND, PYTHON] {
        findings.faults.extend(metadata.linked(root, name)?.into_iter().filter_map(|it| of_licence(it, &allowed)));
    }
    let ours = metadata.member(COMMAND).and_then(|command| command.rust_version.as_deref());
    let ours = ours.context("the command has no rust-version")?;
    findings.faults.extend(metadata.packages.iter().filter_map(|package| of_rust(package, ours)));
    findings.faults.sort();
    findings.faults.dedup();
    if published.iter().any(|package| package.repository.is_none()) {
        let note = "no crate names a repository, because no address of the project is known. crates.io accepts this";
        findings.notes.push(note.to_owned());
    }
    if !read("CHANGELOG.md")?.lines().any(|line| line.starts_with(&format!("## {VERSION}"))) {
        findings.notes.push(format!("CHANGELOG.md has no section ## {VERSION}"));
    }
    let names = "only the registries know whether the names iosched, iosched-nbd and iosched-cli are still free";
    findings.notes.push(names.to_owned());
    Ok(findings)
}

/// Returns the faults in the manifest of a published crate.
fn faults_of(package: &Package) -> Vec<String> {
    let name = &package.name;
    let mut faults = Vec::new();
    if package.version != VERSION {
        faults.push(format!("{name} has version {}, not {VERSION}", package.version));
    }
    let is_plain = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    if !is_plain || name.len() > NAME_MAX || !name.starts_with("iosched") {
        faults.push(format!("{name} is not a name of lower-case letters, digits and hyphens that begins with iosched"));
    }
    if package.description.as_ref().is_none_or(String::is_empty) {
        faults.push(format!("{name} has no description"));
    }
    if package.license.is_none() {
        faults.push(format!("{name} has no licence"));
    }
    for dependency in package.dependencies.iter().filter(|it| it.kind.as_deref() != Some("dev")) {
        let needed = &dependency.name;
        if dependency.req == "*" {
            faults.push(format!("{name} needs {needed} without a version"));
        } else if dependency.path.is_some() && dependency.req != format!("^{VERSION}") {
            faults.push(format!("{name} needs {needed} {}, not {VERSION}", dependency.req));
        }
    }
    let manifest = fs::read_to_string(&package.manifest_path).unwrap_or_default();
    if LIBRARIES.contains(&name.as_str()) && !["keywords", "categories", "readme"].iter().all(|key| has(&manifest, key))
    {
        faults.push(format!("{name} needs keywords, categories and readme"));
    }
    faults
}

/// Returns whether a line of a manifest sets `key`.
fn has(manifest: &str, key: &str) -> bool {
    manifest.lines().any(|line| line.split('=').next().is_some_and(|left| left.trim() == key))
}

/// Returns the fault of a crate if its licence is not allowed.
fn of_licence(package: &Package, allowed: &[&str]) -> Option<String> {
    let expression = package.expression().unwrap_or_default();
    let is_fine = is_allowed(&expression, allowed);
    (!is_fine).then(|| format!("{} {} has the licence {expression:?}", package.name, package.version))
}

/// Returns the fault of a crate if it needs a newer Rust than the version `ours`, which the command
/// needs.
fn of_rust(package: &Package, ours: &str) -> Option<String> {
    let needed = package.rust_version.as_deref()?;
    let is_newer = numbers(needed) > numbers(ours);
    is_newer.then(|| format!("{} {} needs Rust {needed}, not {ours}", package.name, package.version))
}

/// Returns the three numbers of a version such as 1.88.
fn numbers(version: &str) -> [u32; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

/// Returns the files that a crate's sources include but that are outside of the crate's directory.
/// A package of the crate would not contain these files.
fn outside(package: &Package) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut next = vec![package.directory().join("src")];
    while let Some(directory) = next.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                next.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                for included in included(&fs::read_to_string(&path)?) {
                    let file = normal(&directory.join(&included));
                    if !file.starts_with(package.directory()) {
                        faults.push(format!("{} includes {included}, which its package does not have", path.display()));
                    }
                }
            }
        }
    }
    Ok(faults)
}

/// Returns the files that a source file includes before its tests.
fn included(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let macros = ["include_str!(\"", "include_bytes!(\""];
    let places = macros.iter().flat_map(|begin| code.match_indices(begin).map(|(at, begin)| at + begin.len()));
    places.filter_map(|at| Some(code[at..].split_once('"')?.0.to_owned())).collect()
}

/// Returns the path without `..` components.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::metadata::Dependency;

    fn package() -> Package {
        Package {
            id: String::new(),
            name: "iosched-lab".to_owned(),
            version: VERSION.to_owned(),
            license: Some("MIT".to_owned()),
            description: Some("Experiments".to_owned()),
            repository: None,
            rust_version: None,
            source: None,
            manifest_path: PathBuf::new(),
            authors: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn workspace_dependency_must_have_the_release_version() {
        let mut crate_of_workspace = package();
        let dependency = |req: &str, kind: Option<&str>| Dependency {
            name: "iosched".to_owned(),
            req: req.to_owned(),
            kind: kind.map(str::to_owned),
            path: Some(PathBuf::from("/x")),
        };
        crate_of_workspace.dependencies = vec![dependency(&format!("^{VERSION}"), None), dependency("*", Some("dev"))];
        assert!(faults_of(&crate_of_workspace).is_empty());
        crate_of_workspace.dependencies = vec![dependency("*", None), dependency("^0.0.9", None)];
        assert_eq!(faults_of(&crate_of_workspace).len(), 2);
    }

    #[test]
    fn wrong_name_version_or_missing_text_is_a_fault() {
        assert!(faults_of(&package()).is_empty());
        let wrong = [
            Package { name: "iosched_lab".to_owned(), ..package() },
            Package { name: "other".to_owned(), ..package() },
            Package { version: "9.9.9".to_owned(), ..package() },
            Package { license: None, ..package() },
            Package { description: None, ..package() },
            Package { name: "iosched-nbd".to_owned(), ..package() },
        ];
        for package in wrong {
            assert_eq!(faults_of(&package).len(), 1, "{}", package.name);
        }
    }

    #[test]
    fn a_crate_that_needs_a_newer_rust_is_a_fault() {
        let needs = |version: &str| Package { rust_version: Some(version.to_owned()), ..package() };
        for older in ["1.88", "1.88.0", "1.9", "1.63.2"] {
            assert_eq!(of_rust(&needs(older), "1.88"), None, "{older}");
        }
        for newer in ["1.88.1", "1.100", "2.0"] {
            assert!(of_rust(&needs(newer), "1.88").is_some(), "{newer}");
        }
        assert_eq!(of_rust(&package(), "1.88"), None);
    }

    #[test]
    fn included_files_are_found_outside_test_code() {
        let source = "include_str!(\"../a.txt\")\ninclude_bytes!(\"b\")\n#[cfg(test)]\ninclude_str!(\"../../../c\")";
        assert_eq!(included(source), ["../a.txt", "b"]);
        assert_eq!(normal(Path::new("/x/src/request/../../../trace/s")), Path::new("/trace/s"));
    }

    #[test]
    fn unlisted_licence_is_a_fault() {
        assert!(of_licence(&package(), &["MIT"]).is_none());
        assert!(of_licence(&package(), &["ISC"]).is_some());
        assert!(of_licence(&Package { license: None, ..package() }, &["MIT"]).is_some());
    }
}
