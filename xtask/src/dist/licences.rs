//! Collects the licences of all software in the packages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::VERSION;
use super::metadata::{COMMAND, Metadata, PYTHON, Package};

/// Beginnings of the names of licence files, in capital letters.
const FILES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// Directories in which some crates keep their licences.
const DIRECTORIES: [&str; 2] = ["LICENSES", "licenses"];
/// Third-party code in this repository, with the directory of its licence.
const VENDORED: [(&str, &str); 1] = [("uPlot", "crates/report/vendor/uplot")];

/// Software with a licence.
struct Licensed {
    /// Name, version and licence.
    title: String,
    texts: Vec<String>,
}

/// Returns the licences of all crates in the command and in the native part of the Python package,
/// and of third-party code in this repository.
pub(crate) fn third_party(root: &Path, metadata: &Metadata) -> Result<String> {
    let mut crates: BTreeMap<(&str, &str), &Package> = BTreeMap::new();
    for package in [COMMAND, PYTHON] {
        let linked = metadata.linked(root, package)?;
        crates.extend(linked.into_iter().map(|it| ((it.name.as_str(), it.version.as_str()), it)));
    }
    let mut all = Vec::new();
    for package in crates.into_values().filter(|package| package.source.is_some()) {
        let mut title = format!("{} {}", package.name, package.version);
        let expression = package.expression().with_context(|| format!("{title} has no licence"))?;
        write!(title, ": {expression}")?;
        let texts = texts(package.directory())?;
        if texts.is_empty() {
            let authors = if package.authors.is_empty() { "unknown".to_owned() } else { package.authors.join(", ") };
            write!(title, "\n    The crate has no licence file. Authors: {authors}")?;
        }
        all.push(Licensed { title, texts });
    }
    for (name, directory) in VENDORED {
        let texts = texts(&root.join(directory))?;
        all.push(Licensed { title: name.to_owned(), texts });
    }
    Ok(document(&all))
}

/// Returns the licence files of a directory, in the order of their names.
fn texts(directory: &Path) -> Result<Vec<String>> {
    let mut paths: Vec<PathBuf> = entries(directory)?;
    paths.retain(|path| path.is_file() && is_licence(path));
    for place in DIRECTORIES.map(|name| directory.join(name)) {
        if place.is_dir() {
            paths.extend(entries(&place)?.into_iter().filter(|path| path.is_file()));
        }
    }
    paths.sort();
    let read = |path: &PathBuf| Ok(String::from_utf8_lossy(&fs::read(path)?).replace("\r\n", "\n").trim().to_owned());
    paths.iter().map(read).collect()
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
    FILES.iter().any(|file| name.starts_with(file))
}

/// Returns the page. It lists the software with numbers of texts, and has each different text only
/// once.
fn document(all: &[Licensed]) -> String {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut page = format!(
        "Licences of software in iosched {VERSION}\n\n\
         The packages contain the standard library of Rust (MIT OR Apache-2.0) and the following software.\n\
         The static binary also contains a C library: musl (MIT) or glibc (LGPL-2.1-or-later).\n\
         Numbers refer to the texts below.\n\n"
    );
    for licensed in all {
        let list: Vec<String> = licensed
            .texts
            .iter()
            .map(|text| {
                let number = *numbers.entry(text).or_insert_with(|| {
                    texts.push(text);
                    texts.len()
                });
                number.to_string()
            })
            .collect();
        let list = if list.is_empty() { String::new() } else { format!(" [{}]", list.join(", ")) };
        page.push_str(&format!("{}{list}\n", licensed.title));
    }
    for (number, text) in texts.iter().enumerate() {
        page.push_str(&format!("\n==== [{}] ====\n\n{text}\n", number + 1));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_written_once() {
        let licensed = |title: &str, texts: &[&str]| Licensed {
            title: title.to_owned(),
            texts: texts.iter().map(|&text| text.to_owned()).collect(),
        };
        let page = document(&[licensed("a 1: MIT", &["terms"]), licensed("b 2: MIT", &["terms", "others"])]);
        assert!(page.contains("a 1: MIT [1]\nb 2: MIT [1, 2]\n"), "{page}");
        assert_eq!(page.matches("terms").count(), 1, "{page}");
        assert!(page.ends_with("==== [2] ====\n\nothers\n"), "{page}");
    }

    #[test]
    fn licence_files_are_found_by_name() {
        let here = tempfile::tempdir().unwrap();
        for name in ["LICENSE-MIT", "license.txt", "Cargo.toml", "COPYING"] {
            fs::write(here.path().join(name), name).unwrap();
        }
        fs::create_dir(here.path().join("LICENSES")).unwrap();
        fs::write(here.path().join("LICENSES/ISC"), "isc").unwrap();
        let mut found = texts(here.path()).unwrap();
        found.sort();
        assert_eq!(found, ["COPYING", "LICENSE-MIT", "isc", "license.txt"]);
    }
}
