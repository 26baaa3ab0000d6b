//! `iosched record`: what a disk is asked, recorded as a block trace, and what was seen.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::MILLISECOND_NS;
use iosched_kernel::{BlockDevice, RecordError, Recorder, Roots, StateDirectory};
use iosched_lab::asked::quoted;
use iosched_lab::grouped;
use iosched_trace::{ProcessSummary, ReadOptions, TraceSummary};

use crate::fail::{FAILED, usage};
use crate::options::seconds;
use crate::output::{self, Kind, Outputs, WriteArgs};
use crate::signals::on_signal;
use crate::trace::first_processes;
use crate::watched::Meter;

/// How often the kernel's events are taken.
const TICK: Duration = Duration::from_millis(5);

/// Record what a disk is asked: a trace for compare, tune and advise
///
/// Every request of every process, from when it is submitted until it completes, as blktrace records it: with the
/// kernel's tracer `blk`, which is put back as it was. And the priority (ionice) of each process, which blktrace does
/// not record. The disk goes on as it is. Then it says what it saw. As root.
///
/// Ctrl-C ends it early and keeps what was recorded, which is as good as what was asked for: the exit status is 0.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// A disk or partition, as /dev/sdb or sdb; or a mount point or file on it
    #[arg(value_name = "DISK", value_hint = ValueHint::AnyPath)]
    disk: PathBuf,

    /// How long
    #[arg(long = "for", value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    seconds: f64,

    /// The block trace to write [default: DISK.blktrace.0, here]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Print what was seen as one JSON document, as `iosched trace info --json` has it
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "\
Examples:
  iosched record /dev/sdb --for 60
  iosched record /srv/data --for 600 -o data.blktrace.0
  iosched compare --workload data.blktrace.0 --device sata-ssd";

pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode> {
    let device = BlockDevice::find(&Roots::default(), &args.disk)?;
    let default = || PathBuf::from(format!("{}.blktrace.0", device.name().replace('!', "-")));
    let path = args.output.clone().unwrap_or_else(default);
    let mut outputs = Outputs::new(args.write);
    if args.json {
        outputs = outputs.prints("--json");
    }
    let out = outputs.output("-o", &path, Kind::Trace)?;
    let mut recorder = Recorder::begin(&device, &StateDirectory::usual()?).map_err(|error| told(&args.disk, error))?;
    let recorded_for = record(&mut recorder, &device, args.seconds)?;
    let recorded = recorder.end()?;
    let (lost, foreign_bytes) = (recorded.lost(), recorded.foreign_bytes());
    out.write(|out| Ok(recorded.write(out)?))?;
    if recorded_for.as_secs_f64() < args.seconds {
        let (recorded, asked) = (recorded_for.as_secs_f64(), args.seconds);
        eprintln!("ended early: {recorded:.1} s of the {asked} s asked for were recorded, and are kept");
    }
    if lost > 0 {
        eprintln!(
            "warning: the kernel had no room for {} events: the trace is a part of what was asked; record for a shorter time, \
             or when less else runs",
            grouped(lost)
        );
    }
    if foreign_bytes > 0 {
        eprintln!("warning: something else has begun to trace meanwhile; {foreign_bytes} bytes of it were left out");
    }
    let code = if lost > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS };
    if !out.is_file() {
        return Ok(code);
    }
    let found = crate::trace::Found::of(&path, &ReadOptions { partial: true, ..ReadOptions::default() })?;
    if args.json {
        output::print(&found.json()?)?;
        return Ok(code);
    }
    output::print(&page(&device, &path, recorded_for, &found.summary))?;
    Ok(code)
}

/// Records for so long, or until a signal; how long that was.
fn record(recorder: &mut Recorder, device: &BlockDevice, seconds: f64) -> Result<Duration> {
    let ended = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ended);
    on_signal(move |_| asked.store(true, Ordering::SeqCst))?;
    let meter = Meter::new("recording {bar:30} {pos} of {len} s, {msg}");
    meter.set_length(seconds.ceil() as u64);
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds && !ended.load(Ordering::SeqCst) {
        recorder.take()?;
        meter.message(format_args!("{} events of {}", grouped(recorder.events()), device.name()));
        meter.set_position(begun.elapsed().as_secs());
        std::thread::sleep(TICK);
    }
    Ok(begun.elapsed())
}

/// What cannot be recorded because of how it was asked for is told as such.
fn told(disk: &Path, error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Io { .. } | RecordError::State(_) => error.into(),
        _ => usage(format_args!("{}: {error}", disk.display())),
    }
}

/// What was seen, and what to do with it.
fn page(device: &BlockDevice, path: &Path, recorded_for: Duration, seen: &TraceSummary) -> String {
    let name = device.name();
    let seconds = recorded_for.as_secs_f64();
    if seen.all.requests == 0 {
        return format!("{name}: nothing was asked of it in {seconds:.1} s; {} has no requests\n", path.display());
    }
    let mut lines = vec![format!(
        "{name}: {} requests in {seconds:.1} s ({:.0} a second): {} reads, {} writes, {} MB{}",
        grouped(seen.all.requests),
        seen.all.requests as f64 / seconds,
        grouped(seen.reads.requests),
        grouped(seen.writes.requests),
        grouped(seen.all.bytes / 1_000_000),
        device.scheduler().map(|scheduler| format!("; scheduler {scheduler}")).unwrap_or_default(),
    )];
    if let Some(latency) = &seen.latency {
        let ms = |ns: u64| ns as f64 / MILLISECOND_NS as f64;
        lines.push(format!(
            "submitted until completed: mean {:.2} ms, p50 {:.2}, p99 {:.2}, longest {:.2}",
            latency.mean_ns / MILLISECOND_NS as f64,
            ms(latency.p50_ns),
            ms(latency.p99_ns),
            ms(latency.max_ns)
        ));
    }
    let who = |process: &ProcessSummary| {
        let name = process.name.as_deref().unwrap_or("?");
        let ionice = match process.priorities.as_slice() {
            [] | [_] if process.priorities.iter().all(|own| own == "none") => String::new(),
            own => format!(" (ionice {})", own.join(", ")),
        };
        format!("{name} ({}) {}{ionice}", process.pid, grouped(process.requests))
    };
    let (shown, more) = first_processes(seen, who);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    lines.push(format!("requests by process: {}{more}", shown.join(", ")));
    let file = quoted(&path.display().to_string());
    lines.push(format!("written: {file}\n"));
    let mut next = vec![format!("iosched trace info {file}")];
    let at = device.path();
    let profile = like(device).map_or_else(
        || {
            next.push(format!("iosched calibrate {} --quick -o {name}.toml", at.display()));
            format!("./{name}.toml")
        },
        str::to_owned,
    );
    next.push(format!("iosched compare --workload {file} --device {profile}"));
    if !device.is_partition() {
        next.push(format!("iosched advise {} --workload {file}", at.display()));
    }
    lines.push(format!("next:  {}", next.join("\n       ")));
    lines.join("\n") + "\n"
}

/// The profile that is most like the device, as far as its name and the kernel tell; `None` of virtual disks and what
/// is made of others, of which neither says much.
fn like(device: &BlockDevice) -> Option<&'static str> {
    const DRIVES: [&str; 3] = ["sd", "hd", "nvme"];
    let name = device.disk_name();
    let drive = DRIVES.into_iter().find(|drive| name.starts_with(drive))?;
    Some(match (device.is_rotational(), drive) {
        (true, _) => "sata-7200",
        (false, "nvme") => "nvme",
        (false, _) => "sata-ssd",
    })
}
