//! `iosched record`: records the requests of a disk as a block trace, and prints a summary.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched::MILLISECOND_NS;
use iosched_advise::calibrate::size_option;
use iosched_kernel::block::Mount;
use iosched_kernel::target::free_bytes;
use iosched_kernel::{BlockDevice, Recorder, Roots, StateDirectory};
use iosched_lab::grouped;
use iosched_lab::request::quoted;
use iosched_trace::{ProcessSummary, ReadOptions, TraceSummary};

use crate::options::seconds_above_0;
use iosched_terminal::fail::FAILED;
use iosched_terminal::output::{self, Kind, Outputs, WriteArgs};
use iosched_terminal::progress::Meter;
use iosched_terminal::show;
use iosched_terminal::show::trace::{TraceReport, first_processes};
use iosched_terminal::signals::on_signal;

/// Interval between two reads of the kernel's events.
const TICK: Duration = Duration::from_millis(5);

/// Record the requests of a disk as a trace for compare, tune and advise
///
/// The trace has every request of every process, from submission to completion. iosched uses the
/// kernel's tracer `blk` and restores the state of the tracer at the end. iosched also records the
/// priority (ionice) of each process; blktrace does not. The disk keeps working during the
/// recording. At the end, the command prints a summary. The command needs root.
///
/// After Ctrl-C, the recording ends early, iosched keeps the recorded part, and the exit status is 0. If the file
/// system of the trace becomes full, the recording also ends early. iosched keeps the recorded part, and the exit
/// status is 1. If there was no request, iosched writes no trace, and the exit status is 1.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Disk or partition, such as /dev/sdb or sdb; or a mount point or file on it
    #[arg(value_name = "DISK", value_hint = ValueHint::AnyPath)]
    disk: PathBuf,

    /// Length of the recording: seconds, or a time such as 500ms, 90s, 5m or 2h
    #[arg(long = "for", value_name = "SECONDS", default_value = "60", value_parser = seconds_above_0)]
    seconds: f64,

    /// Block trace to write [default: DISK.blktrace.0 in the current directory]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Print the summary as one JSON document, as `iosched trace info --json` does
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "Examples:
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
    let mut room = out.room()?;
    room.take(0).map_err(|error| out.cannot(&error))?;
    let begun = Recorder::begin(&device, &StateDirectory::usual()?);
    let recorder = begun.map_err(|error| anyhow!("{}: {error}", args.disk.display()))?;
    // The trace can be larger than the kernel's events, because it also contains names and
    // priorities of processes.
    let mut recorder = recorder.with_room(move |bytes| room.take(bytes + bytes / 4));
    let recorded_for = record(&mut recorder, &device, args.seconds)?;
    let recorded = recorder.end()?;
    let (lost, foreign_bytes) = (recorded.lost(), recorded.foreign_bytes());
    let no_room = recorded.no_room().map(ToString::to_string);
    if recorded.events() == 0 {
        return Err(nothing_recorded(&device, recorded_for, "iosched wrote no trace"));
    }
    out.write(|out| Ok(recorded.write(out)?))?;
    if let Some(error) = &no_room {
        let seconds = recorded_for.as_secs_f64();
        eprintln!(
            "warning: {error}: the recording ended after {seconds:.1} s, and iosched kept the recorded part. Free \
             some space, or name a file on another disk with -o"
        );
    } else if recorded_for.as_secs_f64() < args.seconds {
        let (recorded, requested) = (recorded_for.as_secs_f64(), args.seconds);
        eprintln!("the recording ended early, after {recorded:.1} s of {requested} s; iosched kept the recorded part");
    }
    if lost > 0 {
        eprintln!(
            "warning: the kernel's buffer was full and {} events were lost, so the trace is incomplete; record for \
             a shorter time, or when the machine is less busy",
            grouped(lost)
        );
    }
    if foreign_bytes > 0 {
        eprintln!(
            "warning: another program traced at the same time; iosched left out the events of that program \
            ({foreign_bytes} bytes)"
        );
    }
    let code = if lost > 0 || no_room.is_some() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS };
    if !out.is_file() {
        return Ok(code);
    }
    let report = TraceReport::of(&path, &ReadOptions { partial: true, ..ReadOptions::default() })?;
    if report.summary().all.requests == 0 {
        return Err(nothing_recorded(&device, recorded_for, &format!("{} is empty", path.display())));
    }
    if args.json {
        output::print(&report.json()?)?;
        return Ok(code);
    }
    show::page(&page(&device, args, &path, recorded_for, report.summary()))?;
    Ok(code)
}

/// Returns the error for a recording without requests. No command can use such a recording.
fn nothing_recorded(device: &BlockDevice, recorded_for: Duration, outcome: &str) -> anyhow::Error {
    let (name, seconds) = (device.name(), recorded_for.as_secs_f64());
    anyhow!(
        "{name}: the disk got no requests in {seconds:.1} s, so {outcome}; run the workload on {name} during the \
         recording, or record for longer with --for. Reads from the page cache cause no requests"
    )
}

/// Records until the time is over, a signal arrives or there is no more room. Returns the duration.
fn record(recorder: &mut Recorder, device: &BlockDevice, seconds: f64) -> Result<Duration> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    on_signal(move |_| flag.store(true, Ordering::SeqCst))?;
    let meter = Meter::new("recording {bar:30} {pos} of {len} s, {msg}");
    meter.set_length(seconds.ceil() as u64);
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds && !ended.load(Ordering::SeqCst) {
        recorder.take()?;
        if recorder.no_room().is_some() {
            break;
        }
        meter.message(format_args!("{} events of {}", grouped(recorder.events()), device.name()));
        meter.set_position(begun.elapsed().as_secs());
        std::thread::sleep(TICK);
    }
    Ok(begun.elapsed())
}

/// Returns the summary and the next commands.
fn page(device: &BlockDevice, args: &RecordArgs, path: &Path, recorded_for: Duration, seen: &TraceSummary) -> String {
    let name = device.name();
    let seconds = recorded_for.as_secs_f64();
    let mut lines = vec![format!(
        "{name}: {} requests in {seconds:.1} s ({:.0} per second): {} reads, {} writes, {} MB{}",
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
            "from submission to completion: mean {:.2} ms, p50 {:.2}, p99 {:.2}, longest {:.2}",
            latency.mean_ns / MILLISECOND_NS as f64,
            ms(latency.p50_ns),
            ms(latency.p99_ns),
            ms(latency.max_ns)
        ));
    }
    let who = |process: &ProcessSummary| {
        let name = process.name.as_deref().unwrap_or("?");
        let ionice = match process.priorities.as_slice() {
            [] | [_] if process.priorities.iter().all(|priorities| priorities == "none") => String::new(),
            priorities => format!(" (ionice {})", priorities.join(", ")),
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
    if let Some((on, size)) =
        advised_on(device, &args.disk, seen.writes.requests > 0).and_then(|on| size_in(&on).map(|size| (on, size)))
    {
        let size = if size.is_empty() { size } else { format!(" {size}") };
        next.push(format!("iosched advise {} --workload {file}{size}", quoted(&on.display().to_string())));
    }
    lines.push(format!("next:  {}", next.join("\n       ")));
    lines.join("\n") + "\n"
}

/// Returns the target on which `iosched advise` can run the trace. iosched does not write to a
/// device, so a trace with writes needs a directory on a file system of the device.
fn advised_on(device: &BlockDevice, given: &Path, writes: bool) -> Option<PathBuf> {
    if !writes {
        return (!device.is_partition()).then(|| device.path());
    }
    let given = if given.is_dir() { Some(given) } else { given.parent().filter(|_| given.is_file()) };
    let given = given.map(|given| if given.as_os_str().is_empty() { Path::new(".") } else { given });
    let is_here = |mount: &Mount| {
        BlockDevice::named(device.roots(), &mount.device).is_ok_and(|on| on.disk_name() == device.disk_name())
            && mount.at.is_dir()
    };
    let mounted = || device.usage().mounts.into_iter().find(is_here).map(|mount| mount.at);
    given.map(Path::to_owned).or_else(mounted)
}

/// Returns the option that makes the file of `iosched advise` fit in `on`. The text is empty if no
/// option is necessary. Returns `None` if there is too little room.
fn size_in(on: &Path) -> Option<String> {
    if !on.is_dir() {
        return Some(String::new());
    }
    size_option(free_bytes(File::open(on).ok()?).ok()?)
}

/// Returns the profile that is most similar to the device, by its name and the kernel's attributes.
/// Returns `None` for virtual and stacked devices, because their attributes say little about the
/// hardware.
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
