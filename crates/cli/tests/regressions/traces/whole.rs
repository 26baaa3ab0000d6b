//! Cases of incomplete recordings.

use std::fs;

use super::{cpu, fed, info, table, through};
use crate::common::has_program;
use crate::list::{Sandbox, of_repository};

const NOT_WHOLE: &str = "the recording is incomplete";

pub(super) fn file_of_one_cpu(place: &Sandbox) {
    for (number, sign) in [(0, "have no completion in the trace"), (1, "whose submission is not in the trace")] {
        fs::create_dir_all(place.path("alone")).unwrap();
        let name = cpu(place, number);
        let name = name.file_name().unwrap().to_str().unwrap();
        let read = format!("read the files of CPU {number}");
        place.iosched(&["trace", "info", name]).refused(1, &[NOT_WHOLE, sign, &read, "--partial"]);
        let answer = place.iosched(&["trace", "info", "--partial", name]);
        answer.code(0).says(&["requests"]);
        assert!(answer.out.starts_with(&format!("warning: {NOT_WHOLE}")), "{}", answer.out);
        fs::remove_file(place.path(name)).unwrap();
    }
}

pub(super) fn compare_requires_partial(place: &Sandbox) {
    cpu(place, 1);
    let args = ["compare", "--workload", "pgbench.blktrace.1.zst", "-s", "noop", "-n", "1", "-d", "sata-ssd"];
    place.iosched(&args).refused(1, &[NOT_WHOLE, "CPU 0", "--partial"]);
    assert!(!place.path("state/last.jsonl").exists(), "nothing was run");
    let answer = place.iosched(&[&args[..], &["--partial", "--details", "--report", "page.html"]].concat());
    answer.code(0).says(&[&format!("  - {NOT_WHOLE}")]);
    assert!(answer.err.starts_with(&format!("warning: {NOT_WHOLE}")), "{}", answer.err);
    let head = answer.out.lines().find(|line| line.starts_with("pgbench.blktrace.1.zst ")).unwrap();
    assert!(head.contains("a part of the recording"), "{head}");
    let first =
        answer.out.split("doubts, the most important first:\n").nth(1).unwrap_or_else(|| panic!("{}", answer.out));
    assert!(first.trim_start().starts_with(&format!("- {NOT_WHOLE}")), "{first}");
    assert!(place.read("page.html").contains(NOT_WHOLE));
    assert!(place.read("state/last.jsonl").contains("--partial"), "the recorded command has --partial");
    place.iosched(&["report", "--last", "-o", "again.html"]).code(0);
    assert!(place.read("again.html").contains(NOT_WHOLE));
}

pub(super) fn tune_requires_partial(place: &Sandbox) {
    cpu(place, 1);
    let args = ["tune", "--workload", "pgbench.blktrace.1.zst", "-s", "deadline", "-g", "throughput"];
    place.iosched(&args).refused(1, &[NOT_WHOLE, "--partial"]);
}

pub(super) fn read_together(place: &Sandbox) {
    cpu(place, 0);
    cpu(place, 1);
    for name in ["pgbench", "pgbench.blktrace", "pgbench.blktrace.0.zst", "pgbench.blktrace.1.zst"] {
        let answer = place.iosched(&["trace", "info", name]);
        answer.code(0).says(&["7,638 requests"]).never(&[NOT_WHOLE]);
        assert!(
            answer.out.starts_with("pgbench.blktrace.0.zst and .1.zst, which iosched read together\n"),
            "{}",
            answer.out
        );
    }
    let args = ["compare", "--workload", "pgbench", "-s", "noop", "-n", "1", "-d", "sata-ssd"];
    let answer = place.iosched(&args);
    answer.code(0);
    assert!(answer.out.contains("\npgbench.blktrace.0.zst and .1.zst, which iosched read together"), "{}", answer.out);
    for idle in [2, 3] {
        place.file(&format!("pgbench.blktrace.{idle}"), "");
    }
    place
        .iosched(&["trace", "info", "pgbench"])
        .code(0)
        .says(&["pgbench.blktrace.0.zst to .3, which iosched read together"]);
}

pub(super) fn missing_file_of_an_idle_cpu(place: &Sandbox) {
    cpu(place, 0);
    cpu(place, 1);
    place.file("pgbench.blktrace.3", "");
    let answer = place.iosched(&["trace", "info", "pgbench"]);
    answer.code(0).says(&[
        "the file of CPU 2 is missing",
        "all submissions in the other files have completions",
        "7,638",
    ]);
    answer.never(&["warning"]);
}

pub(super) fn missing_files_of_busy_cpus(place: &Sandbox) {
    let [first, second] = [0, 1].map(|number| cpu(place, number));
    fs::rename(second, place.path("pgbench.blktrace.2.zst")).unwrap();
    place.iosched(&["trace", "info", "pgbench"]).code(0).says(&["CPU 1 is missing"]).never(&["warning"]);
    fs::remove_file(first).unwrap();
    place
        .iosched(&["trace", "info", "pgbench"])
        .refused(1, &[NOT_WHOLE, "CPUs 0 and 1 are missing (iosched read the files of CPU 2)"]);
}

pub(super) fn truncated_between_records(place: &Sandbox) {
    if !has_program("zstd") {
        return;
    }
    let [_, second] = [0, 1].map(|number| cpu(place, number));
    // Keeps the first half of the file of the CPU that has the completions.
    let data = through("zstd", &["-dc"], &fs::read(&second).unwrap());
    let mut end = 0;
    while end < data.len() / 2 {
        end += 48 + usize::from(u16::from_le_bytes([data[end + 46], data[end + 47]]));
    }
    fs::remove_file(second).unwrap();
    place.file("pgbench.blktrace.1", &data[..end]);
    place.iosched(&["trace", "info", "pgbench"]).refused(1, &[NOT_WHOLE, "have no completion in the trace"]);
}

pub(super) fn blkparse_of_one_cpu(place: &Sandbox) {
    if !has_program("zstd") {
        return;
    }
    let packed = fs::read(of_repository("crates/trace/samples/sqlite-insert.txt.zst")).unwrap();
    let text = String::from_utf8(through("zstd", &["-dc"], &packed)).unwrap();
    info(place, "whole.txt", &text).code(0).never(&[NOT_WHOLE]);
    let of_one = text.lines().filter(|line| line.split_whitespace().nth(1) == Some("1"));
    let of_one: String = of_one.flat_map(|line| [line, "\n"]).collect();
    info(place, "one.txt", of_one).refused(1, &[NOT_WHOLE, "(iosched read the files of CPU 1)"]);
}

pub(super) fn without_completions(place: &Sandbox) {
    if !has_program("zstd") {
        return;
    }
    let packed = fs::read(of_repository("crates/trace/samples/sqlite-insert.txt.zst")).unwrap();
    let text = String::from_utf8(through("zstd", &["-dc"], &packed)).unwrap();
    // A user has filtered the text by process with grep. Completions have no process, so they are
    // missing.
    let named: String = text.lines().filter(|line| !line.contains(" C ")).flat_map(|line| [line, "\n"]).collect();
    let answer = info(place, "named.txt", named);
    answer.code(0).says(&["warning: the recording may be incomplete", "the trace has no completion for any of the"]);
}

pub(super) fn writing_requires_partial(place: &Sandbox) {
    cpu(place, 1);
    place.file("part.csv", &table(500)[..9_000]);
    for (args, output) in [
        (&["convert", "pgbench.blktrace.1.zst", "out.csv"][..], "out.csv"),
        (&["convert", "pgbench.blktrace.1.zst", "out.blktrace.0"], "out.blktrace.0"),
        (&["slice", "--to", "1", "pgbench.blktrace.1.zst", "out.blktrace.0"], "out.blktrace.0"),
        (&["filter", "--op", "read", "pgbench.blktrace.1.zst", "out.blktrace.0"], "out.blktrace.0"),
        (&["scale", "--speed", "2", "pgbench.blktrace.1.zst", "out.blktrace.0"], "out.blktrace.0"),
        (&["remap", "--capacity", "1GiB", "pgbench.blktrace.1.zst", "out.blktrace.0"], "out.blktrace.0"),
        (&["convert", "part.csv", "out.msr"], "out.msr"),
    ] {
        let args = [&["trace"], args].concat();
        place.iosched(&args).refused(1, &[NOT_WHOLE, "--partial"]);
        let left: Vec<_> = fs::read_dir(&place.here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_str().unwrap().contains("out")), "{args:?}: {left:?}");
        place.iosched(&[&args[..], &["--partial"]].concat()).code(0).says(&[NOT_WHOLE]);
        fs::remove_file(place.path(output)).unwrap();
    }
}

pub(super) fn slice_of_a_truncated_trace(place: &Sandbox) {
    let text = table(500);
    place.file("cut.csv", &text[..text.len() - 20]);
    let args = ["trace", "slice", "--to", "0.1", "cut.csv", "out.csv"];
    place.iosched(&args).refused(1, &[NOT_WHOLE, "cut.csv: line 501"]);
    assert!(!place.path("out.csv").exists());
}

pub(super) fn incomplete_trace_is_not_printed(place: &Sandbox) {
    cpu(place, 1);
    for format in ["csv", "blktrace"] {
        let answer = place.iosched(&["trace", "convert", "pgbench.blktrace.1.zst", "-", "--format", format]);
        answer.refused(1, &[NOT_WHOLE]);
        assert!(answer.out.is_empty(), "{}", answer.out.len());
    }
}

pub(super) fn truncated_zstd(place: &Sandbox) {
    let [_, second] = [0, 1].map(|number| cpu(place, number));
    let packed = fs::read(&second).unwrap();
    fs::write(second, &packed[..packed.len() / 2]).unwrap();
    let answer = place.iosched(&["trace", "info", "pgbench"]);
    answer.refused(1, &[NOT_WHOLE, "the data is truncated", "pgbench.blktrace.1.zst: byte", "decompressed data"]);
    place.iosched(&["trace", "info", "--partial", "pgbench"]).code(0).says(&["requests", "the data is truncated"]);
}

pub(super) fn truncated_or_damaged_gzip(place: &Sandbox) {
    if !has_program("gzip") {
        return;
    }
    let packed = through("gzip", &["-c"], table(5_000).as_bytes());
    info(place, "whole.csv.gz", &packed).code(0).says(&["5,000 requests"]);
    let answer = info(place, "cut.csv.gz", &packed[..packed.len() / 2]);
    answer.refused(1, &[NOT_WHOLE, "cut.csv.gz: ", "--partial"]);
    let partial = ["trace", "info", "--partial", "cut.csv.gz"];
    place.iosched(&partial).code(0).says(&["requests", "the data is truncated"]);
    // The end of the file is present, but the middle is damaged.
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0x55;
    info(place, "damaged.csv.gz", &damaged).refused(1, &["damaged.csv.gz: "]);
}

pub(super) fn truncated_records(place: &Sandbox) {
    place.file("whole.csv", table(500));
    for name in ["x.blktrace.0", "x.vscsi"] {
        place.iosched(&["trace", "convert", "whole.csv", name]).code(0);
        let data = fs::read(place.path(name)).unwrap();
        let answer = info(place, name, &data[..data.len() - 7]);
        answer.refused(1, &[NOT_WHOLE, name, "ends inside a record"]);
        place.iosched(&["trace", "info", "--partial", name]).code(0).says(&["ends inside a record"]);
    }
}

pub(super) fn truncated_lines(place: &Sandbox) {
    place.file("whole.csv", table(500));
    for format in ["fio-v2", "fio-v3", "msr", "spc", "fiu", "alibaba", "tencent", "blkreplay", "mqsim", "csv"] {
        place.iosched(&["trace", "convert", "--overwrite", "whole.csv", "x", "--format", format]).code(0);
        let text = place.read("x");
        let last = text.trim_end().rfind('\n').unwrap() + 1;
        info(place, "x", &text[..last + 12]).refused(1, &[NOT_WHOLE, "x: line", "ends inside a line", "--partial"]);
        place.iosched(&["trace", "info", "--partial", "x"]).code(0).says(&["ends inside a line"]);
    }
}

pub(super) fn no_final_newline(place: &Sandbox) {
    let text = table(500);
    let answer = info(place, "x.csv", text.trim_end());
    answer.code(0).says(&["500 requests", "warning: the recording may be incomplete", "has no newline"]);
}

pub(super) fn fio_log_with_an_open_file(place: &Sandbox) {
    let log = "fio version 3 iolog\n0 /f add\n0 /f open\n5 /f read 0 4096\n9 /f write 4096 4096\n";
    info(place, "x.log", format!("{log}20 /f close\n")).code(0).never(&["warning"]);
    info(place, "cut.log", log)
        .code(0)
        .says(&["warning: the recording may be incomplete", "1 file was opened and never closed in the log"]);
}

pub(super) fn job_with_a_truncated_log(place: &Sandbox) {
    let log = "fio version 3 iolog\n0 /f add\n0 /f open\n5 /f read 0 4096\n9 /f wri";
    place.file("x.log", log);
    place.file("x.fio", "[replay]\nread_iolog=x.log\nreplay_redirect=/dev/x\nioengine=libaio\ndirect=1\n");
    let args = ["compare", "--workload", "x.fio", "-s", "noop", "-n", "1"];
    place.iosched(&args).refused(1, &[NOT_WHOLE, "x.log: line 5"]);
}

pub(super) fn concatenated_recordings(place: &Sandbox) {
    let text = table(6_000);
    let rows = text.split_once('\n').unwrap().1;
    let answer = info(place, "two.csv", format!("{text}{rows}"));
    answer.refused(1, &[NOT_WHOLE, "times go backwards", "sort the trace by time"]);
    // iosched corrects a small disorder, as several writers cause it.
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].chunks_mut(7).for_each(<[&str]>::reverse);
    info(place, "mixed.csv", lines.join("\n") + "\n").code(0).says(&["6,000 requests"]).never(&["warning"]);
}

pub(super) fn lost_records(place: &Sandbox) {
    place.file("whole.csv", table(2_000));
    place.iosched(&["trace", "convert", "whole.csv", "x.blktrace.0"]).code(0);
    let data = fs::read(place.path("x.blktrace.0")).unwrap();
    let mut records = Vec::new();
    let mut rest = &data[..];
    while !rest.is_empty() {
        let length = 48 + usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        let (record, after) = rest.split_at(length);
        records.push(record);
        rest = after;
    }
    let without = |range: std::ops::Range<usize>| {
        let kept = records.iter().enumerate().filter(|(number, _)| !range.contains(number));
        kept.flat_map(|(_, record)| record.iter().copied()).collect::<Vec<u8>>()
    };
    info(place, "x.blktrace.0", without(1_000..1_004))
        .code(0)
        .says(&["warning: the recording may be incomplete", "4 of the 4,00"]);
    info(place, "x.blktrace.0", without(1_000..1_200))
        .refused(1, &["200 of the 4,00", "were lost during the recording"]);
}

pub(super) fn missing_parts_in_json(place: &Sandbox) {
    cpu(place, 1);
    let args = ["trace", "info", "--json", "--partial", "pgbench.blktrace.1.zst"];
    let answer = place.iosched(&args);
    let json: serde_json::Value = serde_json::from_str(&answer.code(0).out).unwrap();
    assert_eq!(json["files"], serde_json::json!(["pgbench.blktrace.1.zst"]));
    let missing: Vec<_> =
        json["missing"].as_array().unwrap().iter().map(|gap| (&gap["kind"], &gap["certain"])).collect();
    let yes = serde_json::Value::Bool(true);
    assert_eq!(missing, [(&"missing_cpus".into(), &yes), (&"unmatched".into(), &yes)]);
    let args = ["compare", "--partial", "--json", "--workload", "pgbench.blktrace.1.zst", "-s", "noop", "-n", "1"];
    let json: serde_json::Value = serde_json::from_str(&place.iosched(&args).code(0).out).unwrap();
    let first = json.pointer("/results/doubts/0").or(json.pointer("/doubts/0")).unwrap_or(&serde_json::Value::Null);
    assert_eq!(first["doubt"], "trace_incomplete", "{first}");
}

pub(super) fn complete_recordings(place: &Sandbox) {
    for name in ["pgbench.blktrace", "sqlite-insert.blktrace", "sqlite-insert.txt"] {
        let path = of_repository("crates/trace/samples").join(name);
        let answer = place.iosched(&["trace", "info", path.to_str().unwrap()]);
        answer.code(0).never(&["warning", "note:", "whole recording"]);
    }
    fed(place, &["trace", "info", "-"], table(100).as_bytes()).code(0).never(&["warning", "note:"]);
}
