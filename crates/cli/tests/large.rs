//! Tests of traces that are larger than the memory that iosched uses for traces.

mod common;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{IOSCHED, directory};

/// Number of I/Os of the trace. They need 8 MB of memory, or 19 MB in a closed replay.
const IOS: u64 = 250_000;
/// Limit for the additional memory that a trace in temporary files needs, compared with a trace of
/// few I/Os, KiB.
const LIMIT_KIB: u64 = 6 << 10;

fn trace(directory: &Path, ios: u64) -> PathBuf {
    let file = directory.join(format!("{ios}.csv"));
    let mut out = BufWriter::new(File::create(&file).unwrap());
    writeln!(out, "time_us,op,offset_bytes,length_bytes,pid").unwrap();
    for io in 0..ios {
        let place = io.wrapping_mul(2_654_435_761) % (1 << 20) * 4096;
        writeln!(out, "{},{},{place},4096,{}", io * 300, if io % 4 == 0 { "write" } else { "read" }, 1 + io % 7)
            .unwrap();
    }
    file
}

/// Returns the output of a comparison, and the peak of its memory, including mapped files, KiB.
fn replay(trace: &Path, mode: &str, rows_mib: u64) -> (String, u64) {
    let mut command = Command::new(IOSCHED)
        .args(["compare", "-d", "nvme", "-s", "none", "-n", "1", "-j", "1", "--no-fairness", "--json"])
        .args(["--replay", mode, "-w"])
        .arg(trace)
        .env("IOSCHED_ROWS_MIB", rows_mib.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = command.stdout.take().unwrap();
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    let status = format!("/proc/{}/status", command.id());
    let mut peak_kib = 0;
    while command.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now_kib = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
        peak_kib = peak_kib.max(now_kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(command.wait().unwrap().success());
    let printed = printed.join().unwrap();
    let lines = printed.lines().filter(|line| !line.contains("elapsed"));
    (lines.collect::<Vec<_>>().join("\n"), peak_kib)
}

#[test]
fn memory_use_is_limited_for_large_traces() {
    let here = directory("large");
    let (few, many) = (trace(&here, 1000), trace(&here, IOS));
    for mode in ["open", "closed"] {
        let (_, least_kib) = replay(&few, mode, 2);
        let (expected, whole_kib) = replay(&many, mode, 1024);
        let (found, small_kib) = replay(&many, mode, 2);
        assert!(expected == found, "{mode}");
        assert!(small_kib < least_kib + LIMIT_KIB, "{mode}: {small_kib} KiB; a short trace takes {least_kib} KiB");
        assert!(whole_kib > least_kib + LIMIT_KIB, "{mode}: {whole_kib} KiB; the trace is too short for this test");
    }
}
