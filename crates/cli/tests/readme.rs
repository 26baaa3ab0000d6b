//! Tests that README and the book (docs/) agree with the command: printed samples, files in
//! commands, links, and the tests that docs/compat.md names.
//!
//! A block that begins with three backquotes and `console` is a sample. Lines that begin with `$ `
//! are commands, and the lines after a command are its output. A line `...` stands for omitted
//! lines. A command that ends with `\` continues on the next line. `cargo run --release` stands for
//! the command `iosched`. Commands read files below the root of the repository and write files in
//! another directory.
//!
//! `IOSCHED_RERECORD=1` writes the present output into the pages. A part between two lines `...`
//! keeps its number of lines. The new part consists of the lines of the output that are most
//! similar to the old part.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{IOSCHED, directory};

/// Line that stands for omitted lines.
const LEFT_OUT: &str = "...";
/// Text before a command in a sample.
const PROMPT: &str = "$ ";
/// Text in README that stands for the command itself.
const BY_CARGO: &str = "cargo run --release";
/// Texts before a duration. Durations differ between machines.
const BEFORE_TIMES: [&str; 1] = [" simulated in "];
/// Directories that contain the files for commands of samples.
const READ: [&str; 2] = ["docs", "crates"];
/// The page with the help of all commands. The build of the book generates it.
const COMMANDS: &str = "docs/commands.md";
/// File names that clearly belong to the reader.
const READERS_OWN: [&str; 27] = [
    "my.blktrace",
    "intents.toml",
    "plan.json",
    "./disk.toml",
    "results.csv",
    "db.blktrace.0",
    "sdb.blktrace.0",
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
    "./mine.toml",
    "tasks.toml",
    "calibration.jsonl",
    "validation.jsonl",
    "records.jsonl",
    "exports.toml",
    "advice/profile.toml",
];
/// Prefix of the names of files that do not exist, in samples of errors.
const MISSING: &str = "nosuch";
/// Endings of files that a command reads or writes.
const ENDINGS: [&str; 10] =
    [".fio", ".job", ".ini", ".toml", ".jsonl", ".html", ".csv", ".img", ".blktrace", ".blktrace.0"];
/// Words before the name of a file that is written.
const WRITTEN: [&str; 6] = [">", "-o", "--output", "--report", "--records", "--decisions"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns README and all pages of the book, with their paths from the root.
fn pages() -> Vec<(String, String)> {
    fn of_folder(folder: &str, all: &mut Vec<String>) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                of_folder(&name, all);
            } else if name.ends_with(".md") {
                all.push(name);
            }
        }
    }
    let mut names = vec!["README.md".to_owned()];
    of_folder("docs", &mut names);
    names.sort();
    let read = |name: String| (name.clone(), fs::read_to_string(root().join(name)).unwrap());
    names.into_iter().map(read).collect()
}

/// Returns the blocks between lines of three backquotes. Each entry has the word after the first
/// backquotes, and the lines of the block.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

/// Returns a line without times that differ between runs.
fn without_times(line: &str) -> &str {
    BEFORE_TIMES.iter().find_map(|before| line.find(before)).map_or(line, |at| &line[..at])
}

/// Returns the commands of a sample with their expected output.
fn samples(block: &str) -> Vec<(String, Vec<&str>)> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    let mut goes_on = false;
    for line in block.trim_end().lines() {
        match (line.strip_prefix(PROMPT), all.last_mut()) {
            (_, Some((command, _))) if goes_on => *command += line,
            (Some(command), _) => all.push((command.to_owned(), Vec::new())),
            (None, Some((_, printed))) => printed.push(line),
            (None, None) => panic!("a sample begins with {PROMPT}COMMAND, not with {line}"),
        }
        if let Some((command, printed)) = all.last_mut() {
            goes_on = printed.is_empty() && command.ends_with('\\');
            if goes_on {
                command.pop();
            }
        }
    }
    all
}

/// Returns the output of a command, including standard error.
fn printed(here: &Path, command: &str) -> String {
    let script = command.split(" #").next().unwrap_or(command).trim();
    let script = script.strip_prefix(BY_CARGO).map_or_else(|| script.to_owned(), |rest| format!("iosched{rest}"));
    let folder = Path::new(IOSCHED).parent().unwrap().to_str().unwrap();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{{ {script}\n}} 2>&1")]).current_dir(here).stdin(Stdio::null()).env("PATH", path);
    shell.env("IOSCHED_STATE_DIR", here.join("state")).env_remove("COLUMNS").env_remove("XDG_RUNTIME_DIR");
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// Asserts that each part of a sample between omitted lines occurs in the output. The parts must
/// have the same order, and the lines of a part must be adjacent.
#[track_caller]
fn compare(place: &str, expected: &[&str], printed: &str) {
    let mut rest: Vec<&str> = printed.trim_end().lines().map(|line| without_times(line).trim_end()).collect();
    let lines: Vec<&str> = expected.iter().map(|line| without_times(line)).collect();
    let parts: Vec<&[&str]> = lines.split(|line| *line == LEFT_OUT).collect();
    for (number, part) in parts.iter().enumerate() {
        let found = match part {
            [] => Some(0),
            part => rest.windows(part.len()).position(|there| there == *part),
        };
        let found = found.unwrap_or_else(|| panic!("{place}: {part:#?}\nis not in the output:\n{printed}"));
        assert!(number > 0 || found == 0, "{place}: the sample omits the first lines without {LEFT_OUT}:\n{printed}");
        rest.drain(..found + part.len());
    }
    let ends_open = parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty());
    assert!(rest.is_empty() || ends_open, "{place}: the sample omits the last lines without {LEFT_OUT}: {rest:#?}");
}

/// Returns the index in `lines` at which the most lines are equal to the lines of `part`. If
/// several indices are equally good, returns the first one.
fn most_similar(part: &[&str], lines: &[&str]) -> usize {
    let starts = 0..=lines.len().saturating_sub(part.len());
    let equal = |start: usize| part.iter().zip(&lines[start..]).filter(|(old, new)| old == new).count();
    starts.max_by_key(|&start| (equal(start), std::cmp::Reverse(start))).unwrap_or(0)
}

/// Returns the lines of a sample with the present output. Omitted lines stay omitted.
fn recorded(expected: &[&str], printed: &str) -> Vec<String> {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let parts: Vec<&[&str]> = expected.split(|line| *line == LEFT_OUT).collect();
    let (first, others) = parts.split_first().expect("a split has a part");
    if others.is_empty() {
        return printed.into_iter().map(str::to_owned).collect();
    }
    let mut at = first.len().min(printed.len());
    let mut lines: Vec<&str> = printed[..at].to_vec();
    for (number, part) in others.iter().enumerate() {
        let rest = &printed[at..];
        let length = part.len().min(rest.len());
        let is_last = number + 1 == others.len();
        let start = if is_last { rest.len() - length } else { most_similar(part, rest) };
        lines.push(LEFT_OUT);
        lines.extend(&rest[start..start + length]);
        at += start + length;
    }
    lines.into_iter().map(str::to_owned).collect()
}

#[test]
fn samples_match_the_output() {
    let mut tried = 0;
    let records = std::env::var_os("IOSCHED_RERECORD").is_some();
    for (name, text) in pages() {
        let here = directory(&format!("page-{}", name.replace('/', "-")));
        READ.into_iter().for_each(|folder| symlink(root().join(folder), here.join(folder)).unwrap());
        let mut written = text.clone();
        for (_, block) in blocks(&text).into_iter().filter(|(kind, _)| *kind == "console") {
            for (command, expected) in samples(block) {
                let place = format!("{name}: {command}");
                let printed = printed(&here, &command);
                if records && std::panic::catch_unwind(|| compare(&place, &expected, &printed)).is_err() {
                    let old: String = expected.iter().map(|line| format!("{line}\n")).collect();
                    let new: String = recorded(&expected, &printed).iter().map(|line| format!("{line}\n")).collect();
                    written = written.replacen(&old, &new, 1);
                } else {
                    compare(&place, &expected, &printed);
                }
                tried += 1;
            }
        }
        if written != text {
            fs::write(root().join(&name), &written).unwrap();
        }
    }
    assert!(tried >= 10, "{tried}");
}

#[test]
fn rerecorded_samples_keep_omitted_lines() {
    let printed = "a\nb\nc 2\nd\ne\nf 2\ng 2\n";
    assert_eq!(recorded(&["a", "b"], printed).len(), 7);
    assert_eq!(recorded(&["a", "...", "g"], printed), ["a", "...", "g 2"]);
    assert_eq!(recorded(&["z", "...", "c", "d", "...", "g"], printed), ["a", "...", "c 2", "d", "...", "g 2"]);
    assert_eq!(recorded(&["a", "b", "..."], printed), ["a", "b", "..."]);
}

/// Returns the words of each command in a block.
fn commands(block: &str) -> Vec<Vec<String>> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" #").next().unwrap_or(line).trim());
    let lines = lines.map(|line| line.strip_prefix(PROMPT).unwrap_or(line));
    let command_lines = lines.filter(|line| line.starts_with("iosched ") || line.contains(" iosched "));
    command_lines
        .map(|line| line.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect())
        .collect()
}

#[test]
fn files_in_documented_commands_exist() {
    let mut looked_at = 0;
    for (page, text) in pages() {
        for words in blocks(&text).into_iter().flat_map(|(_, block)| commands(block)) {
            for (number, word) in words.iter().enumerate().skip(1) {
                let is_file = ENDINGS.iter().any(|ending| word.ends_with(ending)) && !word.contains(['=', ',']);
                let is_written = WRITTEN.contains(&words[number - 1].as_str());
                if is_file && !is_written && !word.starts_with(MISSING) && !READERS_OWN.contains(&word.as_str()) {
                    // A command can also name a recording by the common start of its file names.
                    let is_there = ["", ".0.zst"].iter().any(|rest| root().join(format!("{word}{rest}")).exists());
                    assert!(is_there, "{page}: {word} in: {}", words.join(" "));
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at >= 20, "{looked_at}");
}

/// Returns the targets of a page's links as they are written. Links in code do not count.
fn links(text: &str) -> Vec<String> {
    let outside: String = text.split("```").step_by(2).collect();
    let prose: String = outside.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
        .map(str::to_owned)
        .collect()
}

#[test]
fn links_lead_to_existing_files() {
    let mut tried = 0;
    for (name, text) in pages() {
        for link in links(&text) {
            let path = link.split('#').next().unwrap_or_default();
            let folder = Path::new(&name).parent().unwrap();
            let is_made = folder.join(path) == Path::new(COMMANDS);
            let is_there = path.is_empty() || is_made || root().join(folder).join(path).exists();
            assert!(is_there, "{name}: the target {link} does not exist");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn tests_named_in_compat_page_exist() {
    let page = fs::read_to_string(root().join("docs/compat.md")).unwrap();
    let mut tried = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| feature")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [feature, support, _, shown] = cells[..] else { panic!("four cells: {row}") };
        assert!(["yes", "better", "no"].contains(&support), "{feature}: {support}");
        for test in shown.split('`').skip(1).step_by(2) {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("FILE::TEST: {test}"));
            let text = fs::read_to_string(root().join("crates").join(file));
            let text = text.unwrap_or_else(|error| panic!("{feature}: crates/{file}: {error}"));
            assert!(text.contains(&format!("fn {name}(")), "{feature}: the test {test} does not exist");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

#[test]
fn readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(text.lines().count() <= 120, "{}", text.lines().count());
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(long.is_empty(), "{long:#?}");
}
