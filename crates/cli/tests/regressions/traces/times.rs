//! Traces with coarse, decreasing, missing or impossible times.

use crate::list::{Answer, Sandbox};

/// Generator of the random numbers for these traces.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns the value in a row of the table, for the first setting.
fn value(answer: &Answer, row: &str) -> f64 {
    let text = &answer.out;
    let line = text.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row} in\n{text}"));
    line[row.len()..].split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn compared(place: &Sandbox, workload: &str, device: &str, more: &[&str]) -> Answer {
    let run =
        ["compare", "--workload", workload, "-d", device, "-s", "none", "-s", "mq-deadline", "-n", "3", "--details"];
    let answer = place.iosched(&[&run[..], more].concat());
    answer.code(0);
    answer
}

pub(super) fn coarse_times(place: &Sandbox) {
    let mut numbers = Numbers(3);
    // A rate of 300 reads per second with times in whole seconds, as in Tencent's traces.
    let rows: String =
        (0..6_000).map(|i| format!("{},{},16,0,1064\n", 1_538_323_200 + i / 300, numbers.below(1 << 28) * 8)).collect();
    place.file("tencent.csv", rows);
    let text = compared(place, "tencent.csv", "sata-ssd", &[]);
    assert!((0.08..0.13).contains(&value(&text, "sync mean")), "an idle SSD takes 0.098 ms:\n{}", text.out);
    text.says(&["the recorded times are exact only to 1 s"]);
    // Times are multiples of 50 ms, written in ms.
    let mut at_ms = 0;
    let rows: String = (0..2_000)
        .map(|_| {
            at_ms += numbers.below(50);
            format!("{},{},8,R\n", at_ms / 50 * 50, numbers.below(1 << 27) * 8)
        })
        .collect();
    place.file("ms.csv", "time_ms,sector,nr_sectors,op\n".to_owned() + &rows);
    let text = compared(place, "ms.csv", "sata-ssd", &[]);
    assert!((0.07..0.13).contains(&value(&text, "sync mean")), "{}", text.out);
    text.says(&["the recorded times are exact only to 50 ms"]);
    place.iosched(&["trace", "info", "ms.csv"]).code(0).says(&["times exact to 50,000,000 ns"]);
}

pub(super) fn coarse_latencies(place: &Sandbox) {
    let mut numbers = Numbers(4);
    let mut now_ns = 0;
    let mut rows = "time_us,op,sector,length_bytes,pid,latency_us\n".to_owned();
    for _ in 0..400 {
        let latency_ns = 3_000_000 + numbers.below(14_000_000);
        let rounded_us = (latency_ns + 5_000) / 10_000 * 10;
        let sector = numbers.below(1 << 27) * 8;
        rows += &format!("{},R,{sector},16384,4242,{rounded_us}\n", now_ns / 1_000);
        now_ns += latency_ns;
    }
    place.file("rounded.csv", rows);
    let text = compared(place, "rounded.csv", "nvme", &[]);
    assert!((0.034..0.040).contains(&value(&text, "finish")), "400 reads of 0.09 ms, one at a time:\n{}", text.out);
}

/// Returns a log with six parts of 40 I/Os within 1 s. In each part, the times begin at 0 again.
fn stepping_back() -> String {
    let mut text = "fio version 3 iolog\n0 /dev/x add\n0 /dev/x open\n".to_owned();
    for i in 0..240u64 {
        text += &format!("{} /dev/x read {} 4096\n", i % 40 * 25_000, i * 7_919 % 100_000 * 4_096);
    }
    text + "1000000 /dev/x close\n"
}

pub(super) fn backward_times(place: &Sandbox) {
    place.file("back.log", stepping_back());
    place.file("back.fio", "[r]\nread_iolog=back.log\nioengine=libaio\ndirect=1\n");
    // Six times 39 steps of 25 ms. fio takes the same time.
    let job = compared(place, "back.fio", "sata-ssd", &[]);
    assert!((5.8..5.9).contains(&value(&job, "finish")), "{}", job.out);
    let trace = compared(place, "back.log", "sata-ssd", &[]);
    assert!((5.8..5.9).contains(&value(&trace, "finish")), "{}", trace.out);
    trace.says(&["times go backwards 5 times, by up to 0.975 s"]);
    let info = place.iosched(&["trace", "info", "back.log"]);
    info.code(0).says(&["times go backwards 5 times, by up to 0.97 s", "iosched keeps the order of the file"]);
    // In other formats, requests are sorted by time.
    let rows: String = (0..100).map(|i| format!("{},R,{},8\n", (i + 50) % 100, i * 8)).collect();
    place.file("sorted.csv", "time_ms,op,sector,nr_sectors\n".to_owned() + &rows);
    let info = place.iosched(&["trace", "info", "sorted.csv"]);
    info.code(0).says(&["times go backwards 1 time, by up to 0.099 s", "iosched sorted the requests by time"]);
}

pub(super) fn no_usable_times(place: &Sandbox) {
    let mut numbers = Numbers(6);
    let mut log = "fio version 2 iolog\n/dev/x add\n/dev/x open\n".to_owned();
    let mut table = "time_s,op,sector,nr_sectors\n".to_owned();
    for i in 0..200 {
        let (op, sector) = (if i % 2 == 0 { "read" } else { "write" }, numbers.below(1 << 27) * 8);
        log += &format!("/dev/x {op} {} 4096\n", sector * 512);
        table += &format!("7,{op},{sector},8\n");
    }
    place.file("none.log", log + "/dev/x close\n");
    place.file("none.csv", table);
    place.file("none.fio", "[r]\nread_iolog=none.log\ndirect=1\n");
    // The clock of Tencent's traces has a resolution of one second.
    let rows: String = (0..200).map(|i| format!("1538323200,{},8,0,7\n", i * 80_000)).collect();
    place.file("one-second.csv", rows);
    let second = compared(place, "one-second.csv", "sata-ssd", &[]);
    assert!((0.9..1.1).contains(&value(&second, "finish")), "{}", second.out);
    second.says(&["the recorded times are exact only to 1 s"]).never(&["no usable times"]);
    let job = compared(place, "none.fio", "sata-7200", &[]);
    for name in ["none.log", "none.csv"] {
        let trace = compared(place, name, "sata-7200", &["-s", "cfq"]);
        let (finish, expected) = (value(&trace, "finish"), value(&job, "finish"));
        assert!((finish / expected - 1.0).abs() < 0.02, "{finish} s, and fio's job {expected} s:\n{}", trace.out);
        trace.says(&["the trace has no usable times, because all 200 requests"]);
        place.iosched(&["trace", "info", name]).code(0).says(&["the trace has no usable times"]);
        for option in [["--replay", "open"], ["--speed", "2"]] {
            let run = [&["compare", "--workload", name, "-d", "sata-7200", "-s", "none"][..], &option].concat();
            place.iosched(&run).refused(2, &["needs recorded times", "leave the option out, and each process"]);
        }
    }
}

pub(super) fn impossible_times_and_offsets(place: &Sandbox) {
    // Times in ms, and offsets and lengths in bytes. The reader takes them for ns and sectors, as
    // in MQSim's traces.
    let row = |i: u64| format!("{} 0 {} {} 1\n", i * 4, i * 7_919 % 40_000 * 4_096_000_000, 8_192);
    place.file("x.trace", (1..400).map(row).collect::<String>());
    let expected =
        ["the unit of the times may be ms, not ns; if so, add --time-unit ms", "Offsets may be in bytes, not sectors"];
    place.iosched(&["trace", "info", "x.trace"]).code(0).says(&expected);
    let text = compared(place, "x.trace", "nvme", &[]);
    let first = text.out.split("doubts, the most important first:").nth(1).unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.contains("are more than almost any device can serve"), "{}", text.out);
}
