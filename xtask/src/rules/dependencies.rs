//! Rules about dependencies. Each crate may depend only on certain crates of the workspace, and
//! each external crate has only one version.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Breach;

/// Crates of the workspace on which each crate may depend, including its tests. `None` means all
/// crates. See ARCHITECTURE.md.
const MAY_DEPEND_ON: &[(&str, Option<&[&str]>)] = &[
    ("iosched", Some(&[])),
    ("iosched-numbers", Some(&[])),
    ("iosched-disk", Some(&["iosched", "iosched-numbers"])),
    ("iosched-trace", Some(&["iosched", "iosched-numbers"])),
    ("iosched-check", Some(&["iosched", "iosched-numbers"])),
    ("iosched-workload", Some(&["iosched", "iosched-numbers", "iosched-system", "iosched-trace"])),
    ("iosched-machine", Some(&["iosched", "iosched-numbers", "iosched-workload"])),
    (
        "iosched-sim",
        Some(&["iosched", "iosched-numbers", "iosched-disk", "iosched-trace", "iosched-workload", "iosched-machine"]),
    ),
    (
        "iosched-lab",
        Some(&[
            "iosched",
            "iosched-numbers",
            "iosched-disk",
            "iosched-trace",
            "iosched-workload",
            "iosched-machine",
            "iosched-sim",
            "iosched-kernel",
        ]),
    ),
    (
        "iosched-advise",
        Some(&[
            "iosched",
            "iosched-numbers",
            "iosched-disk",
            "iosched-workload",
            "iosched-sim",
            "iosched-kernel",
            "iosched-lab",
        ]),
    ),
    (
        "iosched-plan",
        Some(&[
            "iosched",
            "iosched-numbers",
            "iosched-disk",
            "iosched-trace",
            "iosched-workload",
            "iosched-sim",
            "iosched-kernel",
            "iosched-lab",
            "iosched-advise",
        ]),
    ),
    (
        "iosched-sweep",
        Some(&[
            "iosched",
            "iosched-numbers",
            "iosched-disk",
            "iosched-system",
            "iosched-trace",
            "iosched-workload",
            "iosched-lab",
            "iosched-report",
        ]),
    ),
    (
        "iosched-report",
        Some(&[
            "iosched",
            "iosched-disk",
            "iosched-workload",
            "iosched-sim",
            "iosched-kernel",
            "iosched-lab",
            "iosched-advise",
        ]),
    ),
    (
        "iosched-judge",
        Some(&[
            "iosched",
            "iosched-check",
            "iosched-numbers",
            "iosched-disk",
            "iosched-workload",
            "iosched-sim",
            "iosched-lab",
        ]),
    ),
    ("iosched-golden", Some(&["iosched", "iosched-workload", "iosched-disk", "iosched-sim"])),
    ("iosched-system", Some(&[])),
    (
        "iosched-live",
        Some(&["iosched", "iosched-check", "iosched-disk", "iosched-nbd", "iosched-system", "iosched-trace"]),
    ),
    ("iosched-nbd", Some(&[])),
    ("iosched-testing", Some(&["iosched-check"])),
    ("iosched-kernel", Some(&["iosched", "iosched-numbers", "iosched-system", "iosched-trace", "iosched-workload"])),
    ("iosched-attributes", Some(&["iosched", "iosched-kernel", "iosched-lab", "iosched-live"])),
    (
        "iosched-terminal",
        Some(&[
            "iosched",
            "iosched-numbers",
            "iosched-disk",
            "iosched-system",
            "iosched-trace",
            "iosched-workload",
            "iosched-sim",
            "iosched-kernel",
            "iosched-lab",
            "iosched-advise",
            "iosched-plan",
            "iosched-attributes",
            "iosched-live",
        ]),
    ),
    ("iosched-cli", None),
    ("iosched-python", None),
    ("xtask", None),
];

/// The crate with common code for tests. Only tests and [`TESTER`] may depend on it.
const TESTING: &str = "iosched-testing";
/// The crate that tests packages. It is not published.
const TESTER: &str = "xtask";

/// A package of the workspace, from the output of cargo.
#[derive(Deserialize, Debug)]
pub(super) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize, Debug)]
struct Dependency {
    name: String,
    req: String,
    /// `dev` or `build`. `None` for a normal dependency.
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    path: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Returns the packages of the workspace.
pub(super) fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice::<Metadata>(&output.stdout)?.packages)
}

/// Returns dependencies that the table does not allow, and external crates with different versions.
pub(super) fn check(packages: &[Package]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut versions: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for Package { name, dependencies } in packages {
        let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(package, _)| package == name) else {
            breaches.push(Breach::new(name, 0, "is not in the table of crates: xtask/src/rules/dependencies.rs"));
            continue;
        };
        for Dependency { name: dependency, req, kind, path } in dependencies {
            if path.is_some() {
                if dependency == TESTING {
                    if kind.as_deref() != Some("dev") && name != TESTER {
                        breaches.push(Breach::new(name, 0, format!("may depend on {TESTING} in its tests only")));
                    }
                } else if allowed.is_some_and(|allowed| !allowed.contains(&dependency.as_str())) {
                    breaches.push(Breach::new(name, 0, format!("may not depend on {dependency}")));
                }
                continue;
            }
            let (first, version) = *versions.entry(dependency).or_insert((name, req));
            if version != req {
                let what = format!("asks for {dependency} {req}, and {first} for {version}");
                breaches.push(Breach::new(name, 0, what));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, &str, bool)]) -> Package {
        let dependencies = dependencies.iter().map(|&(name, req, ours)| Dependency {
            name: name.to_owned(),
            req: req.to_owned(),
            kind: None,
            path: ours.then(|| "/".to_owned()),
        });
        Package { name: name.to_owned(), dependencies: dependencies.collect() }
    }

    fn found(packages: &[Package]) -> Vec<String> {
        check(packages).iter().map(Breach::to_string).collect()
    }

    #[test]
    fn dependency_missing_from_the_table_is_a_breach() {
        assert_eq!(
            found(&[package("iosched", &[("iosched-sim", "*", true)])]),
            ["iosched: may not depend on iosched-sim"]
        );
        assert!(found(&[package("iosched-sim", &[("iosched", "*", true)])]).is_empty());
        assert!(found(&[package("iosched-cli", &[("iosched-sim", "*", true)])]).is_empty());
    }

    #[test]
    fn only_tests_may_depend_on_iosched_testing() {
        let mut package = package("iosched", &[(TESTING, "*", true)]);
        assert_eq!(found(std::slice::from_ref(&package)), ["iosched: may depend on iosched-testing in its tests only"]);
        package.dependencies[0].kind = Some("dev".to_owned());
        assert!(found(&[package]).is_empty());
        assert!(found(&[self::package(TESTER, &[(TESTING, "*", true)])]).is_empty());
    }

    #[test]
    fn crate_missing_from_the_table_is_a_breach() {
        assert_eq!(found(&[package("iosched-new", &[])]).len(), 1);
    }

    #[test]
    fn two_versions_of_one_dependency_are_a_breach() {
        let packages = [package("iosched", &[("slab", "^1", false)]), package("xtask", &[("slab", "^1.2", false)])];
        assert_eq!(found(&packages), ["xtask: asks for slab ^1.2, and iosched for ^1"]);
    }
}
