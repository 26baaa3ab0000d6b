//! Comparison of times in stages, merges, seeks and plugs with the installed btt, value by value.

use crate::common::*;
use iosched::{Flags, Op, Time};
use iosched_trace::{
    Action, BlkEvent, DeviceStages, EventReader, SeekSummary, Span, StageSummarizer, StageSummary, summarize_stages,
};

/// A value in btt's output.
struct Figure {
    what: String,
    theirs: String,
    ours: f64,
}

/// Returns the numbers of the first line after `title` that begins with `begin`.
fn line<'a>(text: &'a str, title: &str, begin: &str) -> Vec<&'a str> {
    let Some(at) = text.find(title) else { return Vec::new() };
    let line = text[at..].lines().find(|line| line.trim_start().starts_with(begin)).unwrap_or_default();
    let after = line.trim_start().strip_prefix(begin).unwrap_or_default();
    after.split(['|', ' ', '(', ')', '%']).filter(|word| !word.is_empty()).collect()
}

fn figures(text: &str, ours: &StageSummary) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut row = |what: &str, names: &[&str], theirs: &[&str], ours: &[f64]| {
        assert_eq!((names.len(), theirs.len()), (ours.len(), ours.len()), "{what}: {theirs:?}");
        for ((name, theirs), ours) in names.iter().zip(theirs).zip(ours) {
            figures.push(Figure { what: format!("{what} {name}"), theirs: (*theirs).to_owned(), ours: *ours });
        }
    };
    let seconds = |ns: f64| ns / 1e9;
    for (name, span) in ours.all.named() {
        let Span { count, min_ns, max_ns, .. } = *span;
        // btt leaves out stages without requests.
        let Some(mean_ns) = span.mean_ns() else {
            assert_eq!(line(text, "All Devices", name), Vec::<&str>::new());
            continue;
        };
        let values = [seconds(min_ns as f64), seconds(mean_ns), seconds(max_ns as f64), count as f64];
        row(name, &["min s", "mean s", "max s", "N"], &line(text, "All Devices", name), &values);
    }
    let [device] = &ours.devices[..] else { panic!("the sample must have one device") };
    let DeviceStages { queued, issued, .. } = *device;
    let sectors = |bytes: f64| bytes / 512.0;
    let name = format!("({:3},{:3})", device.device >> 20, device.device & 0xf_ffff);
    let lengths = [
        sectors(device.issued_min_bytes as f64),
        sectors(device.issued_bytes as f64 / issued as f64).floor(),
        sectors(device.issued_max_bytes as f64),
        sectors(device.issued_bytes as f64),
    ];
    let merges = [&[queued as f64, issued as f64, device.merge_ratio().unwrap()][..], &lengths].concat();
    let names = ["#Q", "#D", "ratio", "min blocks", "mean blocks", "max blocks", "blocks"];
    row("merges", &names, &line(text, "Device Merge Information", &name), &merges);
    for (title, seeks) in [("Q2Q Seek", device.queue_seeks), ("D2D Seek", device.issue_seeks)] {
        let SeekSummary { count, mean_sectors, median_sectors, mode_sectors, mode_count } = seeks.unwrap();
        let (median, mode) = (median_sectors.unwrap() as f64, mode_sectors.unwrap() as f64);
        let values = [count as f64, mean_sectors, median, mode, mode_count.unwrap() as f64];
        row(title, &["N", "mean", "median", "mode", "mode N"], &line(text, title, &name), &values);
    }
    let plugs = device.plugs.unwrap();
    let values = [plugs.plugs as f64, plugs.by_timer as f64, plugs.plugged.unwrap() * 100.0];
    row("plugs", &["plugs", "timer", "% plugged"], &line(text, "Plug Information", &name), &values);
    let values = [plugs.requests_per_unplug.unwrap_or(0.0), plugs.requests_per_timer_unplug.unwrap_or(0.0)];
    row("plugs", &["IOs/unplug", "IOs/timer"], &line(text, "IOs/Unp   IOs/Unp(to)", &name), &values);
    figures
}

#[test]
fn stage_metrics_equal_those_of_the_installed_btt() {
    let mut sources = vec![samples()];
    sources.extend(shared_folder("samples", "IOSCHED_SAMPLES"));
    for source in sources {
        let folder = Folder::new("btt");
        for base in unpack(&source, &folder) {
            let Some(text) = btt(&folder.0, &base) else { return };
            let ours = summarize_stages(&mut EventReader::open(folder.0.join(&base)).unwrap()).unwrap();
            println!("{base}:\n{:24}{:>16}{:>16}", "", "btt", "here");
            let figures = figures(&text, &ours);
            assert!(figures.len() >= 44, "{}", figures.len());
            for Figure { what, theirs, ours } in figures {
                println!("{what:24}{theirs:>16}{ours:>16.9}");
                let places = theirs.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                let theirs: f64 = theirs.parse().unwrap();
                // Printed values are rounded.
                let rounding = 0.51 * 10f64.powi(-(places as i32));
                assert!((theirs - ours).abs() <= 1e-6 * theirs.abs() + rounding, "{base}: {what}: {theirs} {ours}");
            }
        }
    }
}

fn event(action: Action, time_ns: u64, sector: u64, nr_sectors: u32) -> BlkEvent {
    BlkEvent::new(action, Time::from_ns(time_ns), 8 << 20, 1).with_extent(Op::Write, Flags::empty(), sector, nr_sectors)
}

fn summary(events: &[BlkEvent]) -> StageSummary {
    let mut summarizer = StageSummarizer::new();
    events.iter().for_each(|event| summarizer.add(event));
    summarizer.finish()
}

#[test]
fn unrecorded_stages_are_unknown() {
    let summary = summary(&[event(Action::Queue, 0, 8, 8), event(Action::Complete, 500, 8, 8)]);
    assert_eq!(summary.all.q2c, Span { count: 1, min_ns: 500, max_ns: 500, sum_ns: 500 });
    for (name, span) in summary.all.named().into_iter().filter(|(name, _)| *name != "Q2C") {
        assert_eq!((span.count, span.mean_ns()), (0, None), "{name}");
    }
    let device = &summary.devices[0];
    assert_eq!((device.merge_ratio(), device.issue_seeks, device.plugs), (None, None, None));
    assert!(!summary.to_string().contains("plugs"));
}

#[test]
fn merged_submission_has_all_stages_until_completion() {
    let summary = summary(&[
        event(Action::Queue, 0, 8, 8),
        event(Action::GetRequest, 1, 8, 8),
        event(Action::Insert, 3, 8, 8),
        event(Action::Queue, 10, 16, 8),
        event(Action::BackMerge, 14, 16, 8),
        event(Action::Issue, 100, 8, 16),
        event(Action::Complete, 1_100, 8, 16),
    ]);
    let once = |ns: u64| Span { count: 1, min_ns: ns, max_ns: ns, sum_ns: ns };
    let all = summary.all;
    assert_eq!([all.q2q, all.q2g, all.g2i, all.q2m], [once(10), once(1), once(2), once(4)]);
    assert_eq!([all.i2d, all.m2d], [once(97), once(86)]);
    assert_eq!(all.d2c, Span { count: 2, min_ns: 1_000, max_ns: 1_000, sum_ns: 2_000 });
    assert_eq!(all.q2c, Span { count: 2, min_ns: 1_090, max_ns: 1_100, sum_ns: 2_190 });
    assert_eq!(summary.devices[0].merge_ratio(), Some(2.0));
}

#[test]
fn seek_distance_is_absolute_and_zero_for_overlaps() {
    let queue = |sector| event(Action::Queue, 0, sector, 8);
    // Distances: from 0 forward 100; back 58; forward 10; the same start (0); at the end of the
    // last request (0); before the last start (0).
    let summary = summary(&[queue(100), queue(42), queue(60), queue(60), queue(68), queue(60)]);
    let seeks = summary.devices[0].queue_seeks.unwrap();
    assert_eq!(
        (seeks.count, seeks.median_sectors, seeks.mode_sectors, seeks.mode_count),
        (6, Some(0), Some(0), Some(3))
    );
    assert!((seeks.mean_sectors - (100.0 + 58.0 + 10.0) / 6.0).abs() < 1e-9);
}
