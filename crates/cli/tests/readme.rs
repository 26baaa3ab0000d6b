//! What README and docs/ say is what the command does: the sample it prints, and the files that its commands name.

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{IOSCHED, directory};

/// Stands for lines that are left out.
const LEFT_OUT: &str = "...";
/// Files that are clearly the reader's own.
const READERS_OWN: [&str; 17] = [
    "db.blktrace.0",
    "server.blktrace",
    "part.blktrace.0",
    "postgres.csv",
    "disk.img",
    "db.img",
    "/srv/data/disk.img",
    "sdb.toml",
    "./sdb.toml",
    "img.toml",
    "data.toml",
    "loop0.toml",
    "./imported.toml",
    "./sdX.toml",
    "calibration.jsonl",
    "validation.jsonl",
    "advice/profile.toml",
];
/// What files are called that a command reads or writes.
const ENDINGS: [&str; 10] =
    [".fio", ".job", ".ini", ".toml", ".jsonl", ".html", ".csv", ".img", ".blktrace", ".blktrace.0"];
/// Options that name what is written.
const WRITTEN: [&str; 5] = ["-o", "--output", "--report", "--records", "--decisions"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What stands between lines of three backquotes.
fn blocks(text: &str) -> Vec<&str> {
    text.split("```").skip(1).step_by(2).collect()
}

/// How long it took is another time on each machine.
fn without_time(line: &str) -> &str {
    line.find(" of disk time simulated in ").map_or(line, |at| &line[..at])
}

#[test]
fn the_sample_in_readme_is_what_is_printed() {
    let here = directory("readme");
    let mut command = Command::new(IOSCHED);
    command.current_dir(&here).env("IOSCHED_STATE_DIR", here.join("state")).env_remove("COLUMNS");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let sample = blocks(&readme).into_iter().find(|block| block.contains("finish  ")).unwrap();
    let mut rest: Vec<&str> = printed.lines().map(without_time).collect();
    let lines: Vec<&str> = sample.trim_matches('\n').lines().map(without_time).collect();
    for (number, part) in lines.split(|line| *line == LEFT_OUT).enumerate() {
        let found = rest.windows(part.len()).position(|there| there == part);
        let found = found.unwrap_or_else(|| panic!("{part:#?}\nis not what is printed now:\n{printed}"));
        assert!(number > 0 || found == 0, "the beginning is left out and not marked:\n{printed}");
        rest.drain(..found + part.len());
    }
    assert!(rest.is_empty(), "lines at the end are left out and not marked: {rest:#?}");
}

/// Words of each command in a block, over all its lines.
fn commands(block: &str) -> Vec<Vec<String>> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" #").next().unwrap_or(line).trim());
    let own = lines.filter(|line| line.starts_with("iosched ") || line.contains(" iosched "));
    own.map(|line| line.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect()).collect()
}

#[test]
fn files_that_documented_commands_name_are_there() {
    let mut pages = vec![root().join("README.md")];
    pages.extend(fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut looked_at = 0;
    for page in pages.iter().filter(|page| page.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for words in blocks(&text).into_iter().flat_map(commands) {
            for (number, word) in words.iter().enumerate().skip(1) {
                let is_file = ENDINGS.iter().any(|ending| word.ends_with(ending)) && !word.contains(['=', ',']);
                let is_written = WRITTEN.contains(&words[number - 1].as_str());
                if is_file && !is_written && !READERS_OWN.contains(&word.as_str()) {
                    assert!(root().join(word).exists(), "{}: {word} in: {}", page.display(), words.join(" "));
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at >= 5, "{looked_at}");
}
