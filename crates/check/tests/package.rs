//! Tests of the packages of the libraries. Outside of the workspace, tests and examples compile
//! only if the package has every file that they name. `.ci/run` compiles and runs them there.
#![allow(clippy::disallowed_methods, reason = "cargo lists the packaged files")]

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Folders of the libraries that are packaged.
const LIBRARIES: [&str; 2] = ["iosched", "nbd"];

fn library(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(folder)
}

/// Returns the files in the package of `library`, as paths relative to the package.
fn packaged(library: &Path) -> BTreeSet<PathBuf> {
    let list = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .current_dir(library)
        .output()
        .expect("cargo runs");
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    String::from_utf8_lossy(&list.stdout).lines().map(PathBuf::from).collect()
}

/// Returns `path` without `..` components, except those at the front.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        let goes_up = component == Component::ParentDir && plain.file_name().is_some();
        if goes_up {
            plain.pop();
        } else {
            plain.push(component);
        }
        plain
    })
}

/// Returns the files that a source file names. For each of them, returns all possible paths.
fn named(file: &Path, source: &str) -> Vec<Vec<PathBuf>> {
    let folder = file.parent().expect("a file is in a folder");
    // Modules of `name.rs` are in `name/`.
    let modules = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("main" | "lib" | "mod") | None => folder.to_owned(),
        Some(stem) => folder.join(stem),
    };
    let quoted = |line: &str| line.split('"').nth(1).map(|path| vec![plain(&folder.join(path))]);
    let mut has_path = false;
    let mut all = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.contains("include_str!(") || line.contains("include_bytes!(") || line.contains("include!(") {
            all.extend(quoted(line));
        } else if line.starts_with("#[path = ") {
            all.extend(quoted(line));
            has_path = true;
            continue;
        } else if let Some(name) = line.strip_suffix(';').and_then(|line| line.split("mod ").nth(1))
            && !line.starts_with("//")
            && !has_path
        {
            all.push(vec![modules.join(format!("{name}.rs")), modules.join(name).join("mod.rs")]);
        }
        has_path = false;
    }
    all
}

#[test]
fn packaged_files_name_only_packaged_files() {
    for folder in LIBRARIES {
        let library = library(folder);
        let packaged = packaged(&library);
        let mut names = 0;
        for file in packaged.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
            let source = std::fs::read_to_string(library.join(file)).expect("a packaged file is read");
            for places in named(file, &source) {
                names += 1;
                assert!(places.iter().any(|place| packaged.contains(place)), "{} names {places:?}", file.display());
            }
        }
        assert!(names > 10, "{folder}: {names} names of files were found");
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "tests/main.rs"] {
            assert!(packaged.contains(Path::new(file)), "{folder}: {file}");
        }
    }
    assert!(packaged(&library("iosched")).contains(Path::new("examples/two_tenants.rs")));
}

#[test]
fn package_manifests_have_descriptive_keys() {
    for folder in LIBRARIES {
        let manifest = std::fs::read_to_string(library(folder).join("Cargo.toml")).expect("a manifest is read");
        let package = manifest.split("\n[").next().expect("a manifest begins with its package");
        for key in ["description", "rust-version", "license", "keywords", "categories", "readme"] {
            let has_key = package.lines().any(|line| line.starts_with(key));
            assert!(has_key, "{folder}: {key} is missing");
        }
    }
}
