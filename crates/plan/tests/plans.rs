//! Tests of whole plans, from an intents file to the result.

use std::path::{Path, PathBuf};

use iosched_lab::Control;
use iosched_plan::{Intents, PlanOptions, plan};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/intents")
}

#[test]
fn same_file_and_seed_give_the_same_bytes() {
    let text = "device = \"sata-7200\"\n\
                [unit.web]\nmatch = \"web.service\"\nworkload = \"paced.fio\"\ngoal = \"p99(read) < 60 ms\"\n\
                [unit.log]\nmatch = \"log.slice\"\nworkload = \"log.fio\"\nscale = 0.1\ngoal = \"mean(fsync) < 60 ms\"\n";
    let intents = Intents::parse("i.toml", text, &folder()).unwrap();
    let bytes = |seed, threads| {
        let options = PlanOptions { seed, ..PlanOptions::default() };
        let planned = plan(&intents, &options, &Control::new(threads), |_| ()).unwrap();
        serde_json::to_string(&planned).unwrap()
    };
    let first = bytes(1, 1);
    assert_eq!(first, bytes(1, 3));
    assert_ne!(first.replace("\"seed\":1", ""), bytes(2, 3).replace("\"seed\":2", ""), "the seed has no effect");
}

#[test]
fn a_short_trace_is_refused() {
    let here = tempfile::tempdir().unwrap();
    let row =
        |number: u64| format!("{},h,0,Read,{},4096,1000\n", 128_166_372_000_000_000 + number * 1_000, number * 8192);
    std::fs::write(here.path().join("short.csv"), (0..2_000).map(row).collect::<String>()).unwrap();
    let text =
        "device = \"sata-ssd\"\n[unit.db]\nmatch = \"db.slice\"\nworkload = \"short.csv\"\ngoal = \"iops >= 5\"\n";
    let intents = Intents::parse("i.toml", text, here.path()).unwrap();
    let error = plan(&intents, &PlanOptions::default(), &Control::new(1), |_| ()).unwrap_err().to_string();
    assert!(error.contains("unit.db") && error.contains("lasts 0.200 s"), "{error}");
}
