//! Rule about the subjects of commits.

use std::path::Path;
use std::process::Command;

use super::Breach;

/// The last commit before the rule. Later commits must follow it.
const BEFORE: &str = "0c4d48bb";
/// Longest subject, in characters.
const CHARACTERS_MAX: usize = 72;

/// Returns the fault of a subject that is too long or does not begin with an area.
fn fault(subject: &str) -> Option<String> {
    let characters = subject.chars().count();
    let has_area = subject.split_once(": ").is_some_and(|(area, summary)| !area.is_empty() && !summary.is_empty());
    if characters > CHARACTERS_MAX {
        Some(format!("subject has {characters} characters; {CHARACTERS_MAX} are allowed: {subject}"))
    } else if !has_area {
        Some(format!("subject does not have the form \"area: what changes\": {subject}"))
    } else {
        None
    }
}

/// Checks the subjects of all commits since this rule exists. Checks nothing if the repository does
/// not have their history.
pub(super) fn subjects(root: &Path) -> Vec<Breach> {
    let range = format!("{BEFORE}..HEAD");
    let log = Command::new("git").current_dir(root).args(["log", "--no-merges", "--format=%h %s", &range]).output();
    let Ok(log) = log else { return Vec::new() };
    if !log.status.success() {
        println!("commit subjects: not checked, git log {range} fails here");
        return Vec::new();
    }
    let lines = String::from_utf8_lossy(&log.stdout).into_owned();
    let commits = lines.lines().filter_map(|line| line.split_once(' '));
    let faults = commits.filter_map(|(commit, subject)| Some((commit, fault(subject)?)));
    faults.map(|(commit, fault)| Breach::new(&format!("commit {commit}"), 0, fault)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_subject_needs_an_area_and_a_limited_length() {
        assert_eq!(fault("sim: end all runs at the limit"), None);
        assert_eq!(fault("xtask, docs: check prose"), None);
        assert!(fault("End all runs").is_some());
        let summary = "x".repeat(CHARACTERS_MAX - "sim: ".len());
        assert_eq!(fault(&format!("sim: {summary}")), None);
        assert!(fault(&format!("sim: {summary}x")).is_some());
    }
}
