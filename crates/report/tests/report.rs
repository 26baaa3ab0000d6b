//! Tests of the report: every page is well-formed, reproducible and complete, for any workload and
//! any settings.
//!
//! `RECORD_GOLDEN=1 cargo test -p iosched-report --test report` writes the golden page again.
//! `RECORD_GOLDEN=records` also writes the records of this page.

mod common;
mod samples;

use std::path::Path;

use iosched_lab::{Control, Overview, Record, RecordReader, RecordWriter, Records, Results, execute};
use iosched_sim::Note;
use samples::{MIXED, records_on};

fn records_of(tasks: &str, settings: &[&str], runs: u32, profile: &str) -> Records {
    records_on(tasks, settings, runs, &[profile])
}

/// Checks a page of records.
#[track_caller]
fn check(records: &Records) -> String {
    let html = iosched_report::html(records, Some("last.jsonl"));
    assert_eq!(html, iosched_report::html(records, Some("last.jsonl")), "the page of the same records differs");
    let unique = common::whole_page(&html);
    let devices = records.header.devices.len();
    let place =
        |device: usize, id: &str| if devices > 1 { format!("device{}-{id}", device + 1) } else { id.to_owned() };
    for id in
        ["figures", "latency", "heat", "sizes", "throughput", "iops", "depth", "shares", "turns", "head", "processes"]
    {
        for device in 0..devices {
            assert!(unique.contains(&place(device, id)), "no section {}", place(device, id));
        }
    }
    assert!(unique.contains("compared") && unique.contains("reproduce"));
    html
}

fn section<'h>(html: &'h str, id: &str) -> &'h str {
    let from = html.find(&format!("<section id=\"{id}\">")).unwrap();
    let to = html[from..].find("</section>").unwrap();
    &html[from..from + to]
}

/// Returns a sentence as the page shows it.
fn shown(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate();
    let code = |part: &str| format!("<code class=\"setting\">{part}</code>");
    let each = parts.map(|(number, part)| if number % 2 == 1 { code(part) } else { part.replace(" %", "\u{a0}%") });
    each.collect()
}

#[test]
fn decision_comes_first_and_page_has_all_sections() {
    let records = records_of(MIXED, &["deadline", "cfq", "cfq:slice_idle=0"], 3, "sata-7200");
    let html = check(&records);
    let results = Results::of(records.on(0).unwrap());
    let decision = &results.decision.sentences[0];
    let at = html.find(&shown(decision)).expect("the decision");
    let chart = html.find("Difference from ").expect("the chart of differences");
    assert!(at < chart && chart < html.find("<section").unwrap());
    // The deciding metric is the first row of the chart.
    let row = &html[chart + html[chart..].find("<text class=\"row\"").expect("a row")..];
    let row = &row[row.find('>').unwrap() + 1..];
    assert!(row.starts_with(&results.label(results.decision.metric.unwrap())), "{}", &row[..40]);
    for (id, word) in [
        ("figures", "async p99"),
        ("latency", "99.9"),
        ("throughput", "MB/s"),
        ("shares", "flusher"),
        ("turns", "in vain"),
        ("turns", "deadline gives processes no turns"),
        ("head", "GB"),
        ("processes", "slowdown"),
        ("reproduce", &records.header.workload.fingerprint),
        ("reproduce", "last.jsonl"),
    ] {
        assert!(section(&html, id).contains(word), "{id} has no {word}");
    }
    // One third of the page is the plotting library and the data for scripts.
    assert!(html.len() < 600_000, "{} bytes", html.len());
}

#[test]
fn waits_for_controllers_are_listed_by_setting() {
    let tasks = MIXED.replace("name = \"scan\"", "name = \"scan\"\n    cgroup = \"batch\"")
        + "\n[[cgroups]]\nname = \"batch\"\n";
    let records =
        records_of(&tasks, &["none:wbt_lat_usec=0", "none:wbt_lat_usec=0,io.max=batch:riops=10"], 2, "sata-7200");
    let html = check(&records);
    let waits = section(&html, "waits");
    let lines: Vec<&str> = waits.split("<tr>").skip(2).collect();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    let (mut bios, mut wait_ns, mut latency_ns) = (0, 0, 0);
    for run in records.runs.iter().filter(|run| run.setting == 1) {
        for note in &run.result.notes {
            if let Note::Throttled { bios: throttled, wait_ns: ns, .. } = note {
                (bios, wait_ns) = (bios + throttled, wait_ns + ns);
            }
        }
        latency_ns += run.result.tasks[1].latency.sum_ns();
    }
    assert!(bios > 0, "{bios}");
    let share = format!("{:.1}\u{a0}%", wait_ns as f64 / latency_ns as f64 * 100.0);
    let bios = (bios as f64 / 2.0).round().to_string();
    for text in [">batch<", ">scan<", ">io.max<", &format!(">{bios}<"), &format!(">{share}<")] {
        assert!(line.contains(text), "{text} is not in {line}");
    }
    let without = check(&records_of(MIXED, &["cfq"], 1, "sata-7200"));
    assert!(!without.contains("<section id=\"waits\""), "no process waited");
}

#[test]
fn winners_of_all_devices_come_before_the_sections() {
    let records = records_on(MIXED, &["deadline", "cfq"], 3, &["sata-7200", "sata-ssd"]);
    let html = check(&records);
    let results: Vec<Results> = records.devices().map(Results::of).collect();
    let decision = &Overview::of(&records, &results).sentences[0];
    let decision_at = html.find(&shown(decision)).expect("the decision");
    let wins = html.find("<table class=\"wins\">").expect("the overview");
    let devices =
        ["device1", "device2"].map(|id| html.find(&format!("<section class=\"device\" id=\"{id}\">")).unwrap());
    assert!(decision_at < wins && wins < devices[0] && devices[0] < devices[1]);
    let table = &html[wins..wins + html[wins..].find("</table>").unwrap()];
    for (device, device_results) in ["sata-7200", "sata-ssd"].iter().zip(&results) {
        let row = &table[table.find(device).expect("a row")..];
        for settings in device_results.answer.best.iter().map(|group| &group.settings) {
            let label = &records.header.settings[settings[0]].label;
            assert!(row.contains(&format!("</svg>{label}<wbr>")), "{device} {label}");
        }
    }
    assert_eq!(html.matches("-t\">Position on the device over time, cfq</title>").count(), 2);
    // One setting has no winner, and its metrics are in one table.
    let html = check(&records_on(MIXED, &["cfq"], 2, &["sata-7200", "sata-ssd"]));
    assert!(!html.contains("<table class=\"wins\">"));
    assert!(html.find("<table class=\"figures\">").unwrap() < html.find("id=\"device1\"").unwrap());
}

#[test]
fn devices_without_complete_runs_make_a_page() {
    let mut records = records_on(MIXED, &["noop", "cfq"], 2, &["sata-7200", "sata-ssd"]);
    records.runs.retain(|run| run.device == 0);
    records.timelines.retain(|record| record.device == 0);
    records.alone.clear();
    check(&records);
    records.runs.clear();
    check(&records);
}

#[test]
fn a_setting_has_one_colour_throughout() {
    let records = records_of(MIXED, &["noop", "cfq"], 2, "sata-7200");
    let html = check(&records);
    for (number, label) in [(0, "noop"), (1, "cfq")] {
        let mut found = 0;
        for (at, _) in html.match_indices(&format!("</svg>{label}<wbr>")) {
            let from = html[..at].rfind("<span class=\"name").unwrap();
            assert!(
                html[from..].starts_with(&format!("<span class=\"name s{number}\">")),
                "{}",
                &html[from..from + 40]
            );
            found += 1;
        }
        assert!(found > 8, "{label} is named {found} times");
        for id in ["throughput", "shares", "head"] {
            let picture = html.find(&format!("aria-labelledby=\"{id}-{number}-t")).unwrap();
            let figure = html[..picture].rfind("<figure").unwrap();
            assert!(
                html[figure..].starts_with(&format!("<figure class=\"facet s{number}\" data-setting=\"{number}\">")),
                "{id}"
            );
        }
    }
}

#[test]
fn chart_lists_goal_metric_before_the_others() {
    let mut experiment = samples::experiment_on(MIXED, &["deadline", "cfq"], &["sata-7200"]);
    experiment.runs = 3;
    experiment.goals = vec!["p99(sync)".parse().unwrap()];
    let records = execute(&experiment, &Control::new(1), |_| Ok(())).unwrap().records;
    let html = check(&records);
    let chart = &html[html.find("Difference from ").unwrap()..html.find("<section").unwrap()];
    let row = |name: &str| chart.find(&format!(">{name}\u{a0}")).unwrap_or_else(|| panic!("{name}: {chart}"));
    assert!(row("device sync p99") < row("device throughput") && row("device throughput") < row("device async p99"));
}

#[test]
fn values_outside_the_plot_are_arrowheads_at_its_edge() {
    // The flusher waits much longer under CFQ than under deadline.
    let records = records_of(MIXED, &["deadline", "cfq"], 3, "sata-7200");
    let html = check(&records);
    let results = Results::of(records.on(0).unwrap());
    let headlines = results.figures.iter().filter(|figure| figure.headline);
    let compared =
        headlines.flat_map(|figure| figure.settings.iter().flatten().filter_map(|figure| figure.comparison.as_ref()));
    let percents: Vec<f64> = compared.filter_map(|comparison| comparison.percent).collect();
    let beyond = percents.iter().filter(|&&percent| percent > 100.0).count();
    assert!(beyond > 0 && beyond < percents.len(), "{percents:?}");
    let figure = &html[html.find("<figcaption>Difference from").unwrap()..];
    let figure = &figure[..figure.find("</figure>").unwrap()];
    let count = |element: &str| {
        ["dot", "hollow"]
            .iter()
            .map(|kind| figure.matches(&format!("<{element} class=\"{kind}\"")).count())
            .sum::<usize>()
    };
    assert_eq!((count("path"), count("circle")), (beyond, percents.len() - beyond));
    assert!(figure.contains("An arrowhead at the edge"));
    let near = check(&records_of(MIXED, &["deadline", "deadline:fifo_batch=16"], 3, "sata-7200"));
    assert!(!near.contains("arrowhead"));
}

#[test]
fn names_with_html_are_escaped() {
    let evil = r#"</title><script>alert(1)</script>&"'"#;
    let mut records = records_of(MIXED, &["deadline", "cfq"], 2, "sata-7200");
    records.header.workload.name = evil.to_owned();
    records.header.command = evil.to_owned();
    records.header.devices[0].profile = Some(evil.to_owned());
    records.header.settings[1].label = format!("cfq:{evil}");
    for run in &mut records.runs {
        run.result.tasks[0].name = evil.to_owned();
    }
    let html = check(&records);
    assert!(html.contains("&lt;script&gt;"));
}

#[test]
fn page_of_one_run_of_one_setting_has_no_differences() {
    let html = check(&records_of(MIXED, &["cfq"], 1, "sata-7200"));
    assert!(section(&html, "figures").contains("With only one run"));
    assert!(!section(&html, "figures").contains("Difference from"));
}

#[test]
fn page_of_one_reader_says_that_async_io_is_missing() {
    let tasks = "name = \"one\"\n[[tasks]]\npid = 7\npattern = \"seq\"\ntotal = 40\n";
    let html = check(&records_of(tasks, &["noop", "cfq"], 2, "sata-7200"));
    assert!(section(&html, "latency").contains("no async I/O"));
    assert!(section(&html, "shares").contains("pid 7, used the device alone"));
}

#[test]
fn single_request_makes_a_complete_page() {
    check(&records_of("[[tasks]]\npid = 7\npattern = \"seq\"\ntotal = 1\n", &["noop", "cfq"], 2, "sata-ssd"));
}

#[test]
fn page_reports_a_run_without_io() {
    let html = check(&records_of("name = \"nothing\"\n[[tasks]]\npid = 7\n", &["noop", "cfq"], 2, "sata-7200"));
    assert!(section(&html, "throughput").contains("Nothing was read or written"));
}

#[test]
fn page_of_40_processes_and_10_settings_stays_below_2_mb() {
    let task = |i: u32| format!("[[tasks]]\npid = {}\npattern = \"random\"\nthink_ns = {}\n", 100 + i, i * 10_000);
    let tasks: String = (0..40).map(task).collect();
    let settings: Vec<String> = (1..=10).map(|quantum| format!("cfq:quantum={quantum}")).collect();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let html = check(&records_of(&format!("end_ns = 200_000_000\n{tasks}"), &settings, 2, "sata-7200"));
    assert!(section(&html, "shares").contains("33 others"));
    assert!(html.contains("s1 dashed"), "repeated colours are dashed");
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
}

#[test]
fn records_without_a_complete_round_still_make_a_page() {
    let mut records = records_of(MIXED, &["noop", "cfq"], 2, "sata-7200");
    records.runs.retain(|run| run.setting == 0);
    records.timelines.clear();
    records.alone.clear();
    for _ in 0..2 {
        let html = check(&records);
        let latency = section(&html, "latency");
        assert!(latency.contains("No round is complete") && !latency.contains("No sync I/O was"), "{latency}");
        records.runs.clear();
    }
}

/// Returns the records of a small run. The records are in a file, so that changes of devices and
/// schedulers do not change the page.
fn small() -> Records {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report-golden.jsonl");
    if std::env::var_os("RECORD_GOLDEN").is_some_and(|what| what == "records") {
        let tasks = "name = \"small\"\nend_ns = 12_000_000\n\
            [[tasks]]\npid = 1\nname = \"a\"\npattern = \"random\"\nrange = [0, 1_000_000]\nthink_ns = 500_000\n\
            [[tasks]]\npid = 2\nname = \"b\"\nop = \"write\"\nsync = false\npattern = \"seq\"\nnr_sectors = 32\n\
            think_ns = 500_000\n";
        let records = records_of(tasks, &["noop", "cfq"], 1, "sata-ssd");
        let mut writer = RecordWriter::new(std::fs::File::create(&file).unwrap());
        let mut write = |record: Record| writer.write(&record).unwrap();
        write(Record::Header(Box::new(records.header)));
        records.runs.into_iter().for_each(|run| write(Record::Run(Box::new(run))));
        records.timelines.into_iter().for_each(|timeline| write(Record::Timeline(Box::new(timeline))));
    }
    RecordReader::open(&file).unwrap()
}

#[test]
fn plots_of_a_small_run_match_the_golden_page() {
    let html = check(&small());
    let shown = ["latency", "heat", "sizes", "throughput", "iops", "depth", "shares", "turns", "head"];
    let found = shown.map(|id| section(&html, id).replace("><", ">\n<"));
    let found = format!("{}\n", found.join("\n"));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report-golden.html");
    if std::env::var_os("RECORD_GOLDEN").is_some() {
        std::fs::write(&golden, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    let differ = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    assert_eq!(
        differ.map(|line| (line + 1, found.lines().nth(line), expected.lines().nth(line))),
        None,
        "first line that differs; to record the page again, set RECORD_GOLDEN=1"
    );
    assert_eq!(found.len(), expected.len());
}

#[test]
fn page_says_that_old_records_lack_latency_over_time() {
    let mut records = records_of(MIXED, &["noop", "cfq"], 2, "sata-7200");
    records.timelines.iter_mut().for_each(|record| record.timeline.io = iosched_sim::IoTimeline::default());
    let html = check(&records);
    for id in ["heat", "sizes", "depth"] {
        assert!(section(&html, id).contains("an earlier version of iosched wrote the records"), "{id}");
    }
    assert!(section(&html, "iops").contains("<svg"), "IOPS come from the timeline of the queue");
}

#[test]
fn page_of_a_real_device_names_missing_plots() {
    let mut records = records_of(MIXED, &["noop", "cfq"], 3, "sata-7200");
    records.header.devices[0].measured = Some(iosched_lab::MeasuredRecord::default());
    for record in &mut records.timelines {
        record.timeline = iosched_sim::Timeline::from(std::mem::take(&mut record.timeline.io));
    }
    let html = iosched_report::html(&records, None);
    let places = common::whole_page(&html);
    for id in ["heat", "sizes", "throughput", "iops", "depth", "runs"] {
        assert!(section(&html, id).contains("<svg viewBox"), "{id}");
    }
    assert!(!places.contains("shares") && section(&html, "untold").contains("exist only for simulated devices"));
}

/// Settings with data for every plot.
const SCANNED: [&str; 5] = ["deadline", "cfq", "cfq:slice_idle=0", "cfq:slice_idle=2", "cfq:slice_idle=4"];

#[test]
fn every_plot_is_a_self_contained_svg() {
    let records = records_on(MIXED, &SCANNED, 3, &["sata-7200", "sata-ssd"]);
    for (name, _) in iosched_report::plots() {
        let svg = iosched_report::plot_svg(&records, name).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        assert_eq!(
            svg,
            iosched_report::plot_svg(&records, name).unwrap(),
            "{name}: the plot of the same records differs"
        );
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""), "{name}");
        for wrong in ["var(", "NaN", "<a ", "<script", "href"] {
            assert!(!svg.contains(wrong), "{name}: {wrong}");
        }
        for device in ["sata-7200", "sata-ssd"] {
            assert!(svg.contains(device), "{name}: {device} is missing");
        }
    }
    assert_eq!(iosched_report::plot_svg(&records, "latencies"), Err(iosched_report::NoPlot::Unknown));
    let one = records_of(MIXED, &["deadline"], 1, "sata-7200");
    assert_eq!(iosched_report::plot_svg(&one, "differences"), Err(iosched_report::NoPlot::Empty));
}

#[test]
fn scan_plots_metrics_over_the_scanned_tunable() {
    let tasks = "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 1000000]\ntotal = 40\n";
    let settings = ["noop", "cfq:slice_idle=8", "cfq:slice_idle=0", "cfq:slice_idle=4"];
    let records = records_of(tasks, &settings, 2, "sata-7200");
    let html = check(&records);
    let scan = section(&html, "scan");
    assert!(scan.contains("over slice_idle of cfq") && scan.contains("The dashed line is the baseline"), "{scan}");
    // The description has the order of the values, not of the settings.
    let about = scan.split("<desc").nth(1).unwrap().split("</desc>").next().unwrap();
    let at = |value: &str| about.find(value).unwrap_or_else(|| panic!("{value} in {about}"));
    assert!(at("0: ") < at("4: ") && at("4: ") < at("8: "), "{about}");
    assert!(iosched_report::plot_svg(&records, "scan").unwrap().contains("slice_idle"));
    // The marks are the values of the settings that were run. The picture and the script both have
    // the baseline.
    let axis = scan.split("text-anchor=\"middle\"").skip(1).take(3).map(|rest| rest.split(['>', '<']).nth(1).unwrap());
    assert_eq!(axis.collect::<Vec<_>>(), ["0", "4", "8"]);
    assert!(scan.contains("class=\"band\"") && scan.contains("The band around a line"), "{scan}");
    assert!(
        scan.contains(r#""marks":[0,4,8]"#)
            && scan.contains(r#""name":"noop","setting":0,"draw":"line","dashed":true"#)
    );
    // Values that increase by factors do not overlap. Lines that differ in another tunable have
    // names.
    let scanned =
        |quantum: &str| [4, 64, 1024, 16384].map(|depth| format!("cfq:nr_requests={depth},quantum={quantum}"));
    let settings = [scanned("4"), scanned("8")].concat();
    let records = records_of(tasks, &settings.iter().map(String::as_str).collect::<Vec<_>>(), 1, "sata-7200");
    let html = check(&records);
    let scan = section(&html, "scan");
    assert!(scan.contains(r#""quantity":"power""#) && scan.contains(r#""marks":[2,6,10,14]"#), "{scan}");
    assert!(scan.contains(">16,384<") && scan.contains("nr_requests: <span"), "{scan}");
    assert!(scan.matches("quantum=8</text>").count() > 1, "{scan}");
    // Neither two values nor values of two parameters are a scan.
    let records = records_of(tasks, &["cfq:slice_idle=8", "cfq:slice_idle=0", "cfq:quantum=4"], 1, "sata-7200");
    assert!(!check(&records).contains("id=\"scan\""));
    assert_eq!(iosched_report::plot_svg(&records, "scan"), Err(iosched_report::NoPlot::Empty));
}

#[cfg(feature = "pictures")]
#[test]
fn png_is_the_same_every_time_and_pdf_has_text() {
    let records = records_of(MIXED, &SCANNED, 2, "sata-7200");
    for (name, _) in iosched_report::plots() {
        let svg = iosched_report::plot_svg(&records, name).unwrap();
        let (png, pdf) = (iosched_report::png(&svg).unwrap(), iosched_report::pdf(&svg).unwrap());
        assert!(png.starts_with(b"\x89PNG") && pdf.starts_with(b"%PDF-"), "{name}");
        assert!(pdf.windows(5).any(|part| part == b"/Font"), "{name}");
        assert_eq!(png, iosched_report::png(&svg).unwrap(), "{name}");
    }
}
