//! The crates of the workspace and their dependencies, as cargo reports them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{host, printed};

/// The crate of the command.
pub(crate) const COMMAND: &str = "iosched-cli";
/// The native part of the Python package.
pub(crate) const PYTHON: &str = "iosched-python";

/// The output of `cargo metadata`.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    resolve: Resolve,
}

/// A crate.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) repository: Option<String>,
    /// The oldest version of Rust that can build the crate.
    pub(crate) rust_version: Option<String>,
    /// The registry of the crate. `None` for crates of the workspace.
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: PathBuf,
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// An entry of a manifest's table of dependencies.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// The accepted versions.
    pub(crate) req: String,
    /// `dev` or `build`. `None` for a normal dependency.
    pub(crate) kind: Option<String>,
    /// The directory of the dependency. `None` if it is not a crate of the workspace.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

impl Package {
    /// Returns the directory of the crate.
    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// Returns the licence of the crate as an SPDX expression. Old manifests have `/` instead of
    /// `OR`.
    pub(crate) fn expression(&self) -> Option<String> {
        self.license.as_ref().map(|text| text.split('/').map(str::trim).collect::<Vec<_>>().join(" OR "))
    }
}

impl Metadata {
    /// Runs `cargo metadata`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(["metadata", "--locked", "--format-version=1", "--features=iosched-cli/full"]);
        // Without this option, cargo would also download crates for other systems.
        cargo.args(["--filter-platform", &host()?]);
        Ok(serde_json::from_str(&printed(&mut cargo)?)?)
    }

    /// Returns a crate of the workspace.
    pub(crate) fn member(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.source.is_none() && package.name == name)
    }

    /// Returns the published crates: the command, and all crates of the workspace on which the
    /// command depends, ordered by name.
    pub(crate) fn published(&self) -> Result<Vec<&Package>> {
        let mut found: BTreeMap<&str, &Package> = BTreeMap::new();
        let mut next = vec![self.member(COMMAND).context("the command has a crate")?];
        while let Some(package) = next.pop() {
            if found.insert(&package.name, package).is_none() {
                let needed = package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
                next.extend(
                    needed.filter(|dependency| dependency.path.is_some()).filter_map(|it| self.member(&it.name)),
                );
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns the crates whose code is in the program of `package`. The first crate is `package`
    /// itself. Crates that run only during a build are left out.
    pub(crate) fn linked(&self, root: &Path, package: &str) -> Result<Vec<&Package>> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(["tree", "--locked", "--edges=normal,no-proc-macro", "--prefix=none"]);
        cargo.args(["--format={p}", "--package", package]);
        if package == COMMAND {
            cargo.arg("--features=full");
        }
        let tree = printed(&mut cargo)?;
        let names: BTreeSet<(&str, &str)> = tree.lines().filter_map(named).collect();
        let is_linked = |it: &&Package| names.contains(&(it.name.as_str(), it.version.as_str()));
        let mut linked: Vec<&Package> = self.packages.iter().filter(is_linked).collect();
        linked.sort_by_key(|it| (it.name != package, &it.name, &it.version));
        Ok(linked)
    }

    /// Returns the crates among `linked` that `package` depends on.
    pub(crate) fn needs<'a>(&self, package: &Package, linked: &[&'a Package]) -> Vec<&'a Package> {
        let edges = self.resolve.nodes.iter().find(|node| node.id == package.id).map_or(&[][..], |node| &node.deps);
        let is_normal = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
        let ids: BTreeSet<&str> = edges.iter().filter(is_normal).map(|edge| edge.pkg.as_str()).collect();
        linked.iter().copied().filter(|it| ids.contains(it.id.as_str())).collect()
    }
}

/// Parses name and version from a line such as `serde v1.0.0 (proc-macro)`.
fn named(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_version_are_parsed_from_a_tree_line() {
        assert_eq!(named("serde v1.0.228 (*)"), Some(("serde", "1.0.228")));
        assert_eq!(named("iosched v0.1.0 (/src/crates/iosched)"), Some(("iosched", "0.1.0")));
        assert_eq!(named(""), None);
    }

    #[test]
    fn published_crates_are_the_command_and_its_dependencies() {
        let package = |name: &str, dependencies: &[(&str, Option<&str>)]| Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            license: Some("MIT/Apache-2.0".to_owned()),
            description: None,
            repository: None,
            rust_version: None,
            source: None,
            manifest_path: PathBuf::from("/x/Cargo.toml"),
            authors: Vec::new(),
            dependencies: dependencies
                .iter()
                .map(|&(name, kind)| Dependency {
                    name: name.to_owned(),
                    req: "^0.1.0".to_owned(),
                    kind: kind.map(str::to_owned),
                    path: Some(PathBuf::from("/y")),
                })
                .collect(),
        };
        let packages = vec![
            package(COMMAND, &[("iosched-lab", None), ("iosched-testing", Some("dev"))]),
            package("iosched-lab", &[("iosched", None)]),
            package("iosched", &[]),
            package("iosched-testing", &[]),
        ];
        assert_eq!(packages[0].expression().as_deref(), Some("MIT OR Apache-2.0"));
        let metadata = Metadata { packages, resolve: Resolve { nodes: Vec::new() } };
        let names: Vec<&str> = metadata.published().unwrap().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["iosched", COMMAND, "iosched-lab"]);
    }
}
