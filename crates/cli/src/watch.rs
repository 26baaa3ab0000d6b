//! `iosched watch`: latencies and throughput of the kernel's disks by cgroup, as text, JSON and
//! Prometheus metrics.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_kernel::observe::{ObserveOptions, Observer};
use iosched_kernel::{BlockDevice, FindError, Roots};
use iosched_lab::request::nearest;
use iosched_live::metrics::Listening;
use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, say};
use iosched_terminal::show::watch::{SampleExporter, json, table};
use iosched_terminal::signals::stop_on_signal;

use crate::options::seconds_in;

/// Show latencies and throughput of the kernel's disks by cgroup
///
/// watch observes the disks while other programs use them. For each cgroup, I/O priority class and operation, it
/// prints rates and latencies of the last interval. A latency begins when a request enters the request queue, and
/// ends when the disk completes the request. The columns p50, p99 and max are latencies. The column sched is the
/// part of the latency that passed before the driver received the request, in per cent.
///
/// Only root can observe latencies, because they come from the kernel's trace events. watch uses a separate
/// buffer for these events, so watch does not disturb other tracers. If watch cannot observe latencies, it prints why,
/// and prints the load of disks and the I/O of cgroups.
///
/// Above 5,000 requests per second, watch observes a sample of the requests, so that watch needs less than 1 % of
/// a CPU. watch then prints the share of the time in which it observed requests, and estimates rates from the counters
/// of the disk.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Disks to observe, such as sda or /dev/sda [default: all disks with requests]
    #[arg(value_name = "DISK", value_hint = ValueHint::AnyPath)]
    disks: Vec<PathBuf>,

    /// Time between two outputs
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds_in(0.1..=3600.0))]
    interval: f64,

    /// Number of outputs [default: until Ctrl-C]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// Print one line of JSON per interval
    #[arg(long)]
    json: bool,

    /// Serve Prometheus metrics at http://ADDRESS:PORT/metrics, and print nothing else
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::served::address, conflicts_with = "json")]
    metrics: Option<String>,

    /// Depth of cgroups that are shown separately; deeper cgroups count for their ancestor
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    depth: u8,

    /// Number of cgroups that are shown separately; all others count as "(others)"
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cgroups: u32,

    /// Observe every request, at any rate. At 50,000 requests per second, this takes about 4 % of a CPU
    #[arg(long)]
    every_request: bool,
}

const EXAMPLES: &str = "Examples:
  sudo iosched watch sda
  sudo iosched watch sda --depth 3 --json > sda.jsonl
  sudo iosched watch --metrics 127.0.0.1:9733";

pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode> {
    let roots = Roots::default();
    let disks = disks(&roots, &args.disks)?;
    let listening = args.metrics.as_deref().map(Listening::at).transpose();
    let listening = listening.map_err(|error| usage(format!("--metrics {error}")))?;
    let options = ObserveOptions {
        depth_max: usize::from(args.depth),
        groups_max: args.cgroups as usize,
        sampled_above: (!args.every_request).then_some(ObserveOptions::SAMPLED_ABOVE),
        ..ObserveOptions::default()
    };
    let stop = stop_on_signal()?;
    let mut observer = Observer::begin(&roots, disks, options);
    notes(&observer);
    let exporter = match listening {
        Some(listening) => {
            let exporter = Arc::new(SampleExporter::new(roots, observer.without_latencies().is_none()));
            let at = listening.serve_metrics(Arc::clone(&exporter) as Arc<_>)?;
            say!("metrics: http://{at}/metrics");
            Some(exporter)
        }
        None => None,
    };
    let mut left = args.count.unwrap_or(u32::MAX);
    let interval = Duration::from_secs_f64(args.interval);
    while left > 0 && observer.take_unless(interval, || stop.load(Ordering::SeqCst))? {
        let sample = observer.sample();
        match &exporter {
            Some(exporter) => exporter.add(&sample),
            None if args.json => output::print(&format!("{}\n", json(&sample)))?,
            None => output::print(&table(&sample))?,
        }
        if args.count.is_some() {
            left -= 1;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints which values are missing, and why.
pub(crate) fn notes(observer: &Observer) {
    if let Some(reason) = observer.without_latencies() {
        say!("watch cannot observe latencies: {reason}");
    }
    if let Some(reason) = observer.without_groups() {
        say!("watch cannot read io.stat of cgroups: {reason}");
    }
    for disk in observer.disks().iter().filter(|disk| !disk.directory().join("mq").is_dir()) {
        say!("{disk}: this disk has no request queue; observe the disks below it (iosched doctor {disk} shows them)");
    }
}

/// Returns the named disks, or all disks with requests.
pub(crate) fn disks(roots: &Roots, given: &[PathBuf]) -> Result<Vec<BlockDevice>> {
    if given.is_empty() {
        let has_requests =
            |disk: &BlockDevice| disk.size_bytes() > 0 && disk.directory().join("mq").is_dir() && disk.stat().is_some();
        let found: Vec<_> = BlockDevice::disks(roots).into_iter().filter(has_requests).collect();
        return if found.is_empty() { Err(usage("there is no disk with requests; name a disk")) } else { Ok(found) };
    }
    let find = |path: &PathBuf| match BlockDevice::find(roots, path) {
        Ok(device) => Ok(device.disk()),
        Err(FindError::Unknown { name, known }) => {
            let meant = nearest(&name, known.split(", "));
            let hint = meant.map_or_else(|| format!("disks are {known}"), |meant| format!("did you mean {meant}?"));
            Err(usage(format!("{name}: there is no such disk; {hint}")))
        }
        Err(error) => Err(error.into()),
    };
    let mut disks: Vec<BlockDevice> = given.iter().map(find).collect::<Result<_>>()?;
    disks.sort_by(|a, b| a.name().cmp(b.name()));
    disks.dedup_by(|a, b| a.name() == b.name());
    Ok(disks)
}
