//! Compares two builds of the same sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::SUMS;

/// Prints for each file whether both builds have the same bytes. Returns the number of files that
/// differ.
pub(super) fn compare(first: &Path, second: &Path) -> Result<usize> {
    let [first, second] = [read(first)?, read(second)?];
    let [first, second] = [sums(&first), sums(&second)];
    let mut differ = 0;
    for (name, is_equal) in compared(&first, &second) {
        println!("two builds: {name}: {}", if is_equal { "identical" } else { "differs" });
        differ += usize::from(!is_equal);
    }
    Ok(differ)
}

fn read(directory: &Path) -> Result<String> {
    let file = directory.join(SUMS);
    fs::read_to_string(&file).with_context(|| file.display().to_string())
}

/// Parses the checksum of each file.
fn sums(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once("  ").map(|(sum, name)| (name, sum))).collect()
}

/// Returns all files of both builds, and whether the two files are equal.
fn compared<'a>(first: &BTreeMap<&'a str, &str>, second: &BTreeMap<&'a str, &str>) -> BTreeMap<&'a str, bool> {
    first.keys().chain(second.keys()).map(|&name| (name, first.get(name) == second.get(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_in_only_one_build_counts_as_different() {
        let (first, second) = (sums("11  a\n22  b\n33  c\n"), sums("11  a\n23  b\n44  d\n"));
        let found = compared(&first, &second);
        assert_eq!(found, BTreeMap::from([("a", true), ("b", false), ("c", false), ("d", false)]));
    }
}
