//! Kinds of output files, and the recognition of existing files of iosched, which may be replaced.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use iosched_lab::LabError;
use rustix::fs::OFlags;
use serde_json::Value;

use super::place::Place;

/// Number of bytes at the start of a file that show its kind.
const HEAD_BYTES: u64 = 16 * 1024;
/// First line of texts that have no other mark.
pub const MARK: &str = "# Made by iosched";

/// Kind of a file that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A report as an HTML page.
    Page,
    /// A single plot as SVG, PNG or PDF.
    Picture,
    /// Records of a comparison.
    Comparison,
    /// Records of a search for settings.
    Search,
    /// Records of reproduced experiments.
    Reproduction,
    /// Measurements of a device.
    Measurements,
    /// Runs of a validation of a profile.
    Validation,
    /// Decisions of schedulers.
    Decisions,
    /// A profile of a device.
    Profile,
    /// A file that sets or undoes an advised setting: a udev rule, a TuneD profile or a script.
    Setting,
    /// A plan for several units.
    Plan,
    /// A man page.
    Manual,
    /// The units of a sweep that failed.
    Failures,
    /// A trace. Trace formats do not show that iosched made the file, so an existing trace is
    /// replaced only with the option `--overwrite`.
    Trace,
}

impl Kind {
    /// Returns the name of the kind for messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Page => "report",
            Self::Picture => "picture",
            Self::Comparison => "file of records",
            Self::Search => "file of records of a search",
            Self::Reproduction => "file of records of reproduced experiments",
            Self::Measurements => "file of measurements",
            Self::Validation => "file of a validation",
            Self::Decisions => "file of decisions",
            Self::Profile => "profile",
            Self::Setting => "file of advice",
            Self::Plan => "plan",
            Self::Manual => "manual page",
            Self::Failures => "list of failed units",
            Self::Trace => "trace",
        }
    }

    /// Returns the beginning of a file of records of this kind.
    const fn beginning(self) -> Option<&'static [u8]> {
        match self {
            Self::Comparison => Some(br#"{"record":"header""#),
            Self::Search => Some(br#"{"record":"tune""#),
            Self::Reproduction => Some(br#"{"record":"reproduction""#),
            Self::Measurements => Some(br#"{"record":"calibration""#),
            Self::Validation => Some(br#"{"record":"battery""#),
            _ => None,
        }
    }

    /// Returns whether a file with this beginning is of this kind and was made by iosched.
    fn is_of(self, head: &[u8]) -> bool {
        if let Some(beginning) = self.beginning() {
            return head.starts_with(beginning);
        }
        let text = String::from_utf8_lossy(head);
        let first = text.lines().next().unwrap_or_default();
        match self {
            Self::Page => text.contains(r#"<meta name="generator" content="iosched "#),
            Self::Picture => text.contains("<!-- Made by iosched "),
            Self::Decisions => is_decision(first),
            Self::Profile => {
                let is_model = first.starts_with("# A model of ") && first.contains(" by iosched ");
                is_model || (first.starts_with("# ") && first.ends_with(", as DiskSim describes it."))
            }
            Self::Setting => text.lines().take(2).any(|line| line.starts_with(MARK)),
            Self::Plan => text.starts_with("{\n  \"version\": \"") && text.contains("\"profile\": \""),
            Self::Failures => text == "[]\n" || text.starts_with("[\n  {\n    \"workload\": "),
            Self::Manual => text.lines().any(|line| line.starts_with(".TH iosched")),
            _ => false,
        }
    }

    /// Returns whether a file is of this kind and was made by iosched.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn recognises(self, path: &Path) -> io::Result<bool> {
        Ok(self.is_of(&head(File::open(path)?)?))
    }

    /// Opens a file of records of this kind, and returns it with its name. Returns `None` if the
    /// file is of another kind or cannot be read. The caller tries all kinds, and then reports the
    /// error.
    pub fn records(self, path: &Path) -> Result<Option<(BufReader<File>, String)>, LabError> {
        if !self.recognises(path).unwrap_or(false) {
            return Ok(None);
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| LabError::Io { file: name.clone(), source })?;
        Ok(Some((BufReader::new(file), name)))
    }

    /// Returns whether a file may be replaced, because it is empty or was made by iosched.
    pub(super) fn may_replace(self, place: &Place) -> io::Result<bool> {
        let file = place.open(OFlags::RDONLY | OFlags::NONBLOCK)?;
        let is_file = file.metadata()?.is_file();
        let head = head(file)?;
        Ok(is_file && (head.is_empty() || self.is_of(&head)))
    }
}

fn head(file: File) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns whether a line belongs to a file of decisions.
fn is_decision(line: &str) -> bool {
    serde_json::from_str::<Value>(line)
        .is_ok_and(|line| line["setting"].is_string() && line["ev"].is_string() && line["t"].is_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_match_no_kind_of_iosched_file() {
        let kinds = [
            Kind::Page,
            Kind::Comparison,
            Kind::Measurements,
            Kind::Decisions,
            Kind::Profile,
            Kind::Manual,
            Kind::Plan,
            Kind::Failures,
        ];
        for head in [
            "precious\n",
            "{\"a\":1}\n",
            "[\n  1\n]\n",
            "<!DOCTYPE html><html><head><title>mine</title>",
            "kind = \"hdd\"\n",
        ] {
            for kind in kinds {
                assert!(!kind.is_of(head.as_bytes()), "{kind:?}: {head}");
            }
        }
        assert!(!Kind::Trace.is_of(b"arrival_ns,pid,op,sync,sector,nr_sectors\n"));
    }

    #[test]
    fn calibration_records_are_not_comparison_or_search_records() {
        let head = br#"{"record":"calibration","format":1"#;
        assert!(Kind::Measurements.is_of(head) && !Kind::Comparison.is_of(head) && !Kind::Search.is_of(head));
    }

    #[test]
    fn files_of_iosched_are_recognised() {
        assert!(Kind::Decisions.is_of(br#"{"ev":"insert","id":1,"setting":"cfq","t":0}"#));
        assert!(Kind::Profile.is_of(b"# A model of sata-ssd, calibrated by iosched 0.1.0.\n#\n"));
        assert!(Kind::Profile.is_of(b"# cheetah9LP, as DiskSim describes it.\n#\n"));
        assert!(Kind::Failures.is_of(b"[]\n") && Kind::Failures.is_of(b"[\n  {\n    \"workload\": \"w\","));
        assert!(Kind::Plan.is_of(b"{\n  \"version\": \"0.1.0\",\n  \"device\": null,\n  \"profile\": \"nvme\""));
        assert!(Kind::Setting.is_of(b"#!/bin/sh\n# Made by iosched advise.\nset -e\n"));
    }
}
