//! Cases about the content of records.

use super::{info, table};
use crate::list::{Sandbox, of_repository};

const RUN: [&str; 6] = ["-s", "noop", "-n", "1", "-d", "sata-ssd"];

pub(super) fn filter_without_matches(place: &Sandbox) {
    place.file("x.csv", table(50));
    let answer = place.iosched(&["trace", "filter", "--pid", "4711", "x.csv", "y.csv"]);
    answer.refused(
        2,
        &["no request of x.csv matches; the trace has 50 requests, from 0 s to 0.049 s", "by process p0 (0), "],
    );
    assert!(!place.path("y.csv").exists());
    place.file("y.csv", table(0));
    place.iosched(&["trace", "info", "y.csv"]).code(0).says(&["0 requests"]).never(&["NaN", "inf"]);
    place.iosched(&[&["compare", "--workload", "y.csv"], &RUN[..]].concat()).refused(2, &["y.csv", "no request"]);
}

pub(super) fn empty_slice_or_filter(place: &Sandbox) {
    let sample = of_repository("crates/trace/samples/pgbench.blktrace.0.zst");
    for out in ["out.csv", "out.blktrace.0"] {
        let nothing = |step: &str, args: &[&str]| {
            let answer = place.iosched(&[&["trace", step, sample.to_str().unwrap(), out], args].concat());
            let there_is = "; the trace has 7,638 requests, from 0 s to 2.488490765 s: by operation read 674, write 4,164, flush 2,800";
            answer.refused(2, &["no request of pgbench.blktrace.0.zst and ", there_is, "by process postgres ("]);
            answer.says(&[" more; to 7,0; up to sector 4536983"]);
            assert!(!place.path(out).exists());
        };
        nothing("slice", &["--from", "1h"]);
        nothing("filter", &["--process", "mysqld"]);
        nothing("filter", &["--sectors", "99999999999-"]);
    }
}

pub(super) fn negative_times(place: &Sandbox) {
    place.file("x.csv", table(5));
    for (option, value) in [("--from", "-1s"), ("--from", "-1"), ("--to", "-5ms")] {
        let answer = place.iosched(&["trace", "slice", "x.csv", "y.csv", option, value]);
        answer.refused(2, &[value, option, "times count from the start of the trace"]);
    }
}

pub(super) fn one_request(place: &Sandbox) {
    info(place, "x.csv", table(1)).code(0).says(&["1 requests"]).never(&["NaN", "inf"]);
    place.iosched(&[&["compare", "--workload", "x.csv"], &RUN[..]].concat()).code(0).never(&["NaN", "inf"]);
    place.iosched(&["trace", "convert", "x.csv", "x.blktrace.0"]).code(0);
    place.iosched(&["trace", "info", "x.blktrace.0"]).code(0).never(&["NaN", "inf", "warning"]);
}

pub(super) fn all_times_zero(place: &Sandbox) {
    let rows: String = (0..100).map(|n| format!("0,R,{},8\n", n * 8)).collect();
    let answer = info(place, "x.csv", format!("arrival_ns,op,sector,nr_sectors\n{rows}"));
    answer.code(0).says(&["100 requests"]).never(&["NaN", "inf"]);
    place.iosched(&[&["compare", "--workload", "x.csv"], &RUN[..]].concat()).code(0).never(&["NaN", "inf"]);
}

pub(super) fn huge_sector_numbers(place: &Sandbox) {
    let far = [u64::MAX, u64::MAX - 7, 1 << 63, (1 << 63) + 1];
    let rows: String = far.iter().map(|sector| format!("5,R,{sector},8\n")).collect();
    let text = format!("arrival_ns,op,sector,nr_sectors\n0,R,0,8\n{rows}");
    info(place, "x.csv", &text).code(0).says(&["5 requests"]).never(&["NaN", "inf"]);
    place.iosched(&[&["compare", "--workload", "x.csv"], &RUN[..]].concat()).code(0).says(&["4 "]);
    for to in ["y.msr", "y.blktrace.0", "y.spc"] {
        place.iosched(&["trace", "convert", "x.csv", to]).code(0);
    }
    place.iosched(&["trace", "remap", "--capacity", "1GiB", "x.csv", "z.csv"]).code(0);
}

pub(super) fn length_zero(place: &Sandbox) {
    for (name, text) in [
        ("x.msr", "1,h,0,Read,0,512,\n2,h,0,Read,0,0,\n3,h,0,Write,0,512,\n"),
        ("x.alibaba", "1,R,0,512,5\n1,R,0,0,6\n1,W,0,512,7\n"),
        ("x.tencent", "1,0,8,0,3\n1,0,0,0,3\n1,0,8,1,3\n"),
        ("x.spc", "0,0,512,r,0.1\n0,0,0,r,0.2\n0,0,512,w,0.3\n"),
        ("x.mqsim", "1 0 0 8 1\n2 0 0 0 1\n3 0 0 8 0\n"),
        ("x.csv", "arrival_ns,op,sector,nr_sectors\n1,R,0,8\n2,R,0,0\n3,W,0,8\n"),
        (
            "x.iolog",
            "fio version 3 iolog\n1 /d add\n1 /d open\n1 /d read 0 512\n2 /d read 0 0\n3 /d write 0 512\n4 /d close\n",
        ),
    ] {
        info(place, name, text).code(0).says(&["2 requests", "iosched skipped an I/O of length 0"]);
        place.iosched(&["compare", "-w", name, "-s", "none", "-n", "1"]).code(0).says(&["because they are not I/O"]);
    }
}

pub(super) fn negative_numbers(place: &Sandbox) {
    let text = "arrival_ns,op,sector,nr_sectors\n-5,R,0,8\n5,R,-8,8\n6,R,0,-8\n7,R,0,8\n";
    info(place, "x.csv", text).refused(
        2,
        &["3 of the 5 lines (60.0 %)", "x.csv: line 2", "found \"-5\"", "column 1, arrival_ns", "line 3", "line 4"],
    );
}

pub(super) fn numbers_too_large(place: &Sandbox) {
    let text = "arrival_ns,op,sector,nr_sectors\n1,R,99999999999999999999999,8\n2,R,0,99999999999\n3,R,0,8\n";
    info(place, "x.csv", text).refused(2, &["2 of the 4 lines", "x.csv: line 2", "line 3"]);
}

pub(super) fn several_devices(place: &Sandbox) {
    let mut text = table(100);
    text.push_str(&table(100).split_once('\n').unwrap().1.replace(",8388608,", ",8388624,"));
    place.file("x.csv", text);
    place.iosched(&["trace", "info", "x.csv"]).code(0).says(&["200 requests"]);
    let answer = place.iosched(&[&["compare", "--workload", "x.csv"], &RUN[..]].concat());
    answer.code(0).says(&["has 2 devices", "iosched trace filter --device"]);
    place.iosched(&["trace", "filter", "--device", "8388624", "x.csv", "one.csv"]).code(0);
    let answer = place.iosched(&[&["compare", "--workload", "one.csv"], &RUN[..]].concat());
    answer.code(0).says(&["100 requests"]).never(&["has 2 devices"]);
}

pub(super) fn no_requests(place: &Sandbox) {
    place.file("x.csv", table(0));
    place.iosched(&["trace", "info", "x.csv"]).code(0).says(&["0 requests"]).never(&["NaN", "inf"]);
    place.iosched(&[&["compare", "--workload", "x.csv"], &RUN[..]].concat()).refused(2, &["x.csv", "no request"]);
}
