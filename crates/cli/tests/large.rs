//! Traces that are longer than memory.

mod common;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;

use common::{IOSCHED, directory};

/// In memory these and what is made of them for closed replay are 40 MB.
const IOS: u64 = 500_000;
/// Memory of its own that the command may have, kB.
const LIMIT_KB: u64 = 36_000;

#[test]
fn a_trace_that_is_longer_than_memory_is_replayed_all_the_same() {
    let here = directory("large");
    let file = here.join("large.csv");
    let mut out = BufWriter::new(File::create(&file).unwrap());
    writeln!(out, "time_us,op,offset_bytes,length_bytes,pid").unwrap();
    for io in 0..IOS {
        let place = io.wrapping_mul(2_654_435_761) % (1 << 20) * 4096;
        writeln!(out, "{},{},{place},4096,{}", io * 300, if io % 4 == 0 { "write" } else { "read" }, 1 + io % 7)
            .unwrap();
    }
    drop(out);
    let replay = |mode: &str, rows_mib: u64, limit: &str| {
        let line = format!("ulimit -d {limit}; exec \"$0\" \"$@\"");
        let arguments = ["-d", "nvme", "-s", "none", "-n", "1", "-j", "1", "--json", "--replay", mode];
        let done = Command::new("sh")
            .args(["-c", &line, IOSCHED, "compare", "-w"])
            .arg(&file)
            .args(arguments)
            .env("IOSCHED_ROWS_MIB", rows_mib.to_string())
            // Who has no memory left has none for that.
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let out = String::from_utf8(done.stdout).unwrap();
        let lines = out.lines().filter(|line| !line.contains("elapsed"));
        (done.status.success(), lines.collect::<Vec<_>>().join("\n"))
    };
    let limit = LIMIT_KB.to_string();
    assert!(!replay("closed", 1024, &limit).0, "it is that long");
    for mode in ["open", "closed"] {
        let (whole, expected) = replay(mode, 1024, "unlimited");
        let (small, found) = replay(mode, 2, &limit);
        assert!(whole && small, "{mode}: {found}");
        assert!(expected == found, "{mode}");
    }
}
