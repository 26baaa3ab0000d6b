//! Compares every line of simulated runs with recorded runs of Linux 6.12's io.cost.
//!
//! The recordings are in the folder `IOSCHED_RECORDED_IOCOST`, with NAME.scenario.json and
//! NAME.trace.jsonl.gz of each run. The test selects the runs whose name contains the value of
//! `IOSCHED_RECORDED_NAME`.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use iosched_golden::controlled::Family;

const SCENARIO: &str = ".scenario.json";
/// Number of lines that are shown before the first difference.
const CONTEXT: usize = 8;
/// Number of runs whose difference is shown.
const SHOWN: usize = 5;

fn recorded(dir: &Path, name: &str) -> String {
    let mut text = String::new();
    let file = File::open(dir.join(format!("{name}.trace.jsonl.gz"))).expect("a scenario has a trace");
    GzDecoder::new(file).read_to_string(&mut text).expect("the trace is compressed text");
    text
}

/// Returns the first difference between the simulated and the recorded run, if there is one.
fn difference(dir: &Path, name: &str) -> Option<String> {
    let scenario = fs::read(dir.join(format!("{name}{SCENARIO}"))).expect("the scenario can be read");
    let ours = match Family::IoCost.play(&scenario) {
        Ok(lines) => lines,
        Err(error) => return Some(error.to_string()),
    };
    let recorded = recorded(dir, name);
    let recorded: Vec<&str> = recorded.lines().collect();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let same = ours.iter().zip(&recorded).take_while(|(a, b)| a == b).count();
    if same == ours.len() && same == recorded.len() {
        return None;
    }
    let before = recorded[same.saturating_sub(CONTEXT)..same].join("\n  ");
    let at = |lines: &[&str]| lines.get(same..lines.len().min(same + 3)).unwrap_or_default().join("\n  ");
    Some(format!("line {}\n  {before}\n- {}\n+ {}", same + 1, at(&recorded), at(&ours)))
}

#[test]
fn every_recorded_io_cost_run_matches_in_every_line() {
    let Some(dir) = std::env::var_os("IOSCHED_RECORDED_IOCOST") else {
        println!("skipped: IOSCHED_RECORDED_IOCOST names no folder of recorded runs");
        return;
    };
    let dir = Path::new(&dir);
    let only = std::env::var("IOSCHED_RECORDED_NAME").unwrap_or_default();
    let files = fs::read_dir(dir).expect("the folder can be listed").map(|entry| entry.expect("an entry").file_name());
    let names = files.filter_map(|file| file.to_str()?.strip_suffix(SCENARIO).map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| name.contains(&only)).collect();
    names.sort();
    let mut differing = 0;
    for name in &names {
        if let Some(difference) = difference(dir, name) {
            differing += 1;
            if differing <= SHOWN {
                println!("{name}: {difference}");
            } else {
                println!("{name} differs");
            }
        }
    }
    println!("{} of {} runs are identical in every line", names.len() - differing, names.len());
    assert!(!names.is_empty() && differing == 0, "{differing} of {} runs differ", names.len());
}
