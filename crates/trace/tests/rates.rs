//! Tests of the output of several versions of iostat and sar.

use std::path::{Path, PathBuf};

use iosched_trace::{RatesTool, TraceError, TraceReader, rates_of, read_rates};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rates").join(name)
}

#[test]
fn first_report_of_iostat_is_left_out() {
    let found = read_rates(&file("iostat-x.txt")).unwrap().unwrap();
    assert_eq!((found.tool, found.leaves_out_first, found.devices.len()), (RatesTool::Iostat, true, 1));
    let vda = &found.devices[0];
    assert_eq!((vda.device.as_str(), vda.intervals), ("vda", 3));
    // The three intervals have 0.99, 18.81 and no reads per second.
    assert!((vda.reads_per_s.unwrap().mean - 6.6).abs() < 1e-9 && vda.reads_per_s.unwrap().max == 18.81);
    // Waits are weighted by requests: 0 ms for 0.99 reads per second, 0.16 ms for 18.81.
    assert!((vda.read_wait_ms.unwrap().mean - 0.16 * 18.81 / 19.8).abs() < 1e-9);
    assert!((vda.write_bytes_per_s.unwrap().max - 44_564.0 * 1024.0).abs() < 1e-3);
    assert_eq!((vda.wait_ms, vda.requests_per_s), (None, None));
    // The interval with 2.8 % of busy time had a burst of writes.
    assert_eq!((vda.busy_percent.unwrap().max, vda.busy_intervals, vda.queued_intervals), (2.8, 0, 1));
}

#[test]
fn megabytes_json_and_sar_output_are_read() {
    let of = |name: &str| read_rates(&file(name)).unwrap().unwrap();
    let megabytes = of("iostat-xmty.txt");
    assert_eq!(megabytes.devices[0].read_bytes_per_s.unwrap().mean, 5.92 * 1024.0 * 1024.0);
    let json = of("iostat-x.json");
    assert_eq!((json.tool, json.devices[0].intervals), (RatesTool::Iostat, 2));
    assert_eq!(json.devices[0].reads_per_s.unwrap().max, 0.99);
    for (name, intervals, tps) in [("sar-d.txt", 3, 366.34), ("sar-dp.txt", 2, 4.95)] {
        let sar = of(name);
        let vda = &sar.devices[0];
        assert_eq!((sar.tool, vda.device.as_str(), vda.intervals), (RatesTool::Sar, "vda", intervals), "{name}");
        assert_eq!(
            (vda.requests_per_s.unwrap().max, vda.reads_per_s),
            (tps, None),
            "the average of sar does not count"
        );
    }
}

#[test]
fn older_headings_and_other_locales_are_read() {
    let old = "Device:  rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util\n\
               sda      0,00   0,00   200,00 0,00 1600,00 0,00 8,00 31,50 157,50 5,00 100,00\n";
    let found = rates_of(old).unwrap();
    let sda = &found.devices[0];
    assert_eq!((sda.intervals, found.leaves_out_first), (1, false), "one report alone is kept");
    assert_eq!(sda.read_bytes_per_s.unwrap().mean, 1600.0 * 512.0);
    assert_eq!((sda.wait_ms.unwrap().mean, sda.busy_intervals, sda.queued_intervals), (157.5, 1, 1));
    assert!(found.to_string().contains("can choose between several requests"), "{found}");
    let twelve_hours =
        "12:00:01 AM  DEV  tps  aqu-sz  %util\n12:00:02 AM  sda  1.00  0.10  5.00\nAverage:  sda  1.00  0.10  5.00\n";
    assert_eq!(rates_of(twelve_hours).unwrap().devices[0].intervals, 1);
}

#[test]
fn translated_headings_and_sadf_output_are_read() {
    let german = "Linux 6.1.0 (pg1)  17.03.2024  _x86_64_  (16 CPU)\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1,00    0,00    0,50    0,10    0,00   98,40\n\n\
        Ger\u{e4}t r/s rkB/s r_await w/s wkB/s w_await aqu-sz %util\nsda 1,00 16,00 41,00 20,00 560,00 72,00 1,45 5,20\n";
    let semicolons = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n\
        pg1;600;2024-03-17 10:10:01 UTC;sda;21.00;16.00;560.00;0.00;27.43;1.45;70.52;5.20\n";
    let json = r#"{"sysstat": {"hosts": [{"nodename": "pg1", "statistics": [{"timestamp": {"time": "10:10:01"},
        "disk": [{"disk-device": "sda", "tps": 21.0, "rkB": 16.0, "wkB": 560.0, "areq-sz": 27.43, "aqu-sz": 1.45,
        "await": 70.52, "util-percent": 5.20}]}]}]}}"#;
    for (text, tool) in [(german, RatesTool::Iostat), (semicolons, RatesTool::Sar), (json, RatesTool::Sar)] {
        let found = rates_of(text).unwrap_or_else(|| panic!("{text}"));
        let sda = &found.devices[0];
        assert_eq!((found.tool, sda.device.as_str(), sda.intervals), (tool, "sda", 1), "{text}");
        assert!((sda.queue_while_busy.unwrap().mean - 1.45 / 0.052).abs() < 1e-9, "{text}");
        assert_eq!(sda.write_bytes_per_s.unwrap().mean, 560.0 * 1024.0, "{text}");
    }
}

const HEADING: &str = "Device r/s rkB/s r_await w/s wkB/s w_await f/s f_await aqu-sz %util\n";

#[test]
fn queue_length_is_computed_over_busy_time() {
    let burst =
        format!("{HEADING}sda 2 34 6.2 18 520 70 0.2 8 1.27 5.1\n\n{HEADING}sda 2 32 41 19 540 72 0.2 9 1.45 5.2\n");
    let found = rates_of(&burst).unwrap();
    let sda = &found.devices[0];
    // A mean of 1.45 requests over the whole interval, all of them in its busy 5.2 %.
    assert!((sda.queue_while_busy.unwrap().max - 1.45 / 0.052).abs() < 1e-9);
    assert_eq!((sda.queued_intervals, sda.contradiction, found.is_since_start), (1, None, false));
    let message = found.to_string();
    assert!(
        message.contains("27.9 requests in flight while the disk was busy")
            && message.contains("can choose between several requests"),
        "{message}"
    );
    assert!(!message.contains("never 2"), "{message}");
}

#[test]
fn single_iostat_report_is_a_mean_since_boot() {
    let single = format!("{HEADING}sda 0.30 9.8 3.8 22.3 1693.6 7.7 0 0 0.17 0.13\n");
    let found = rates_of(&single).unwrap();
    assert!(found.is_since_start && !found.leaves_out_first);
    let message = found.to_string();
    assert!(
        message.contains("averages since the system started") && message.contains("130.8 requests in flight"),
        "{message}"
    );
    let sar = "12:00:01 DEV tps aqu-sz await %util\n12:00:02 dev8-0 10.00 0.10 10.00 10.00\n";
    assert!(!rates_of(sar).unwrap().is_since_start, "sar reports intervals");
}

#[test]
fn common_wait_is_not_shown_as_read_or_write_wait() {
    let shown = |text: &str| rates_of(text).unwrap().to_string();
    let sar = shown("12:00:01 DEV tps aqu-sz await %util\n12:00:02 dev8-0 10.00 0.10 10.25 10.00\n");
    assert!(
        sar.contains("request ms") && !sar.contains("read ms") && sar.matches("10.25 (10.25)").count() == 1,
        "{sar}"
    );
    let iostat = shown(&format!("{HEADING}sda 0.30 9.8 3.8 22.3 1693.6 7.7 0 0 0.17 0.13\n"));
    assert!(iostat.contains("read ms") && iostat.contains("7.70 (7.70)"), "{iostat}");
}

#[test]
fn contradictory_values_are_reported() {
    // 300 reads per second with a wait of 6 ms are 1.8 requests in flight, but the printed queue is
    // 0.08.
    let text = format!("{HEADING}sda 300 1200 6 5 20 12 0 0 0.08 100\n");
    let found = rates_of(&text).unwrap();
    let sda = &found.devices[0];
    assert_eq!((sda.contradicting_intervals, sda.contradiction.map(|interval| interval[0])), (1, Some(0.08)));
    let message = sda.meaning();
    assert!(
        message.contains("queue length in the report is 0.08, but the product of rates and waits is 1.86 requests"),
        "{message}"
    );
    // The product of rates and waits includes flushes. For sar, it uses the wait of all requests.
    let flushes = format!("{HEADING}sda 10 40 1 10 40 1 100 20 2.02 100\n");
    assert_eq!(rates_of(&flushes).unwrap().devices[0].contradiction, None);
    let sar = "12:00:01 DEV tps aqu-sz await %util\n12:00:02 dev8-0 100.00 0.10 30.00 50.00\n";
    assert_eq!(rates_of(sar).unwrap().devices[0].contradiction, Some([0.1, 3.0]));
}

#[test]
fn files_of_rates_are_not_traces() {
    for text in
        ["", "Device tps kB_read/s\nsda 1 2\n", "{\"sysstat\": {}}", "{\"sysstat\"", "Device %util\n", "0,1,R,0,8\n"]
    {
        assert_eq!(rates_of(text), None, "{text}");
    }
    for name in ["iostat-x.txt", "iostat-x.json", "sar-d.txt", "sar-dp.txt"] {
        let Err(TraceError::UnknownFormat { looks_like: what, .. }) = TraceReader::open(file(name)) else {
            panic!("{name} was read as a trace");
        };
        assert!(what.contains("iosched trace info") && what.contains("iosched record"), "{what}");
    }
}

#[test]
fn output_of_installed_iostat_and_sar_is_read() {
    // This uses the installed versions. With CI set, they must be installed.
    for (command, tool) in [
        ("iostat -x 1 2", RatesTool::Iostat),
        ("iostat -x -o JSON 1 2", RatesTool::Iostat),
        ("iostat -xh 1 2", RatesTool::Iostat),
        ("sar -dh 1 1", RatesTool::Sar),
        ("sar -d 1 1", RatesTool::Sar),
    ] {
        let output = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
        if !output.status.success() {
            println!("skipped: {command} is not available here");
            assert!(std::env::var_os("CI").is_none(), "{command} is not available");
            continue;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        // A machine that has been idle since its start reports no disks.
        if let Some(found) = rates_of(&text) {
            assert_eq!(found.tool, tool, "{text}");
            assert!(found.devices.iter().all(|device| device.busy_percent.is_some()), "{text}");
        }
    }
}

#[test]
fn quoted_tables_and_values_with_units_are_read() {
    let table = "> Device  r/s  w/s  rkB/s  wkB/s  r_await  w_await  aqu-sz  %util\n\
                 > sda  20.00  110.00  800.00  2640.00  10.00  21.80  2.60  65.00\n";
    let quoted = iosched_trace::rates_of(table).unwrap();
    assert_eq!(quoted.devices[0].device, "sda");
    let human = iosched_trace::rates_of(
        "10:00:01  tps  rkB/s  wkB/s  dkB/s  areq-sz  aqu-sz  await  %util DEV\n\
         10:10:01  112.00  480.0k  2.5M  0.0k  25.7k  1.36  12.10  60.0% sda\n",
    );
    let sda = &human.unwrap().devices[0];
    assert_eq!(sda.read_bytes_per_s.as_ref().unwrap().mean, 480.0 * 1_024.0);
    assert_eq!(sda.write_bytes_per_s.as_ref().unwrap().mean, 2.5 * 1_048_576.0);
    assert_eq!(sda.busy_percent.as_ref().unwrap().mean, 60.0);
}

#[test]
fn device_split_over_tables_or_lines_is_one_row() {
    // The output of iostat -h of version 12, version 11, and version 10.
    let part = |more: &str| {
        format!(
            "     r/s     rkB/s   rrqm/s r_await rareq-sz Device\n{more}  12.31    345.6k     0.10    5.21    28.1k sda\n   \
             0.05      1.2k     0.00    0.40    24.0k sdb\n\n     w/s     wkB/s   wrqm/s w_await wareq-sz Device\n  \
             45.20      2.1M    10.00   11.02    47.6k sda\n   0.01      0.0k     0.00    0.00     4.0k sdb\n\n     \
             f/s f_await  aqu-sz  %util Device\n    0.50    1.20    0.61  21.3% sda\n    0.00    0.00    0.00   0.0% \
             sdb\n\n"
        )
    };
    let columns = "r/s w/s rkB/s wkB/s r_await w_await aqu-sz %util";
    let values = "12.31 45.20 345.60 2150.40 5.21 11.02 0.61 21.3";
    for text in [
        part(""),
        format!("{columns} Device\n{values} sda\n0.05 0.01 1 0 0 0 0 0 sdb\n"),
        format!("Device: {columns}\nsda\n       {values}\nsdb\n       0.05 0.01 1 0 0 0 0 0\n"),
    ] {
        let found = rates_of(&text).unwrap_or_else(|| panic!("{text}"));
        let names: Vec<_> = found.devices.iter().map(|device| (device.device.as_str(), device.intervals)).collect();
        assert_eq!(names, [("sda", 1), ("sdb", 1)], "{text}");
        let sda = &found.devices[0];
        let means = [sda.reads_per_s, sda.writes_per_s, sda.read_wait_ms, sda.write_wait_ms, sda.busy_percent];
        let means = means.map(|spread| (spread.unwrap().mean * 100.0).round());
        assert_eq!(means, [1_231.0, 4_520.0, 521.0, 1_102.0, 2_130.0], "{text}");
        assert!((sda.queue_while_busy.unwrap().mean - 0.61 / 0.213).abs() < 1e-9, "{text}");
    }
    // Each report begins with the table of reads.
    let several = rates_of(&format!("{0}{0}{0}", part(""))).unwrap();
    assert!(several.leaves_out_first && several.devices[0].intervals == 2);
}

#[test]
fn numbers_may_have_thousands_separators() {
    let of =
        |rate: &str| rates_of(&format!("{HEADING}sda {rate} 16 6 5 20 12 0 0 0,08 10\n")).unwrap().devices[0].clone();
    for rate in ["1.234,50", "1234,5", "1,234.50"] {
        assert_eq!(of(rate).reads_per_s.unwrap().mean, 1_234.5, "{rate}");
    }
}
