//! Short descriptions of a job for the table of `iosched job check`.

use iosched::{IoClass, IoPriority};
use iosched_lab::grouped;
use iosched_workload::fio::{
    BlockSize, Client, Direction, Distribution, Files, IoEngine, Job, Mode, OpenSync, PerDirection, Placement,
    RateProcess, Size, io_engine,
};

/// Returns the directions of a mode, with fio's letters for them.
fn directions(mode: Mode) -> &'static [(Direction, &'static str)] {
    match mode {
        Mode::Read => &[(Direction::Read, "r")],
        Mode::Write => &[(Direction::Write, "w")],
        Mode::Trim => &[(Direction::Trim, "t")],
        Mode::ReadWrite => &[(Direction::Read, "r"), (Direction::Write, "w")],
        Mode::TrimWrite => &[(Direction::Trim, "t"), (Direction::Write, "w")],
    }
}

/// Returns one text if all directions of the job have the same text, otherwise one text per
/// direction.
fn per_direction<T>(job: &Job, values: &PerDirection<T>, tell: impl Fn(&T) -> String) -> String {
    let texts: Vec<(String, &str)> =
        directions(job.mode).iter().map(|(direction, letter)| (tell(values.of(*direction)), *letter)).collect();
    match &texts[..] {
        [(first, _), rest @ ..] if rest.iter().all(|(other, _)| other == first) => first.clone(),
        texts => texts.iter().map(|(text, letter)| format!("{letter} {text}")).collect::<Vec<_>>().join(", "),
    }
}

/// Formats a number of bytes in the largest unit that gives a whole number.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [(1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{} B", grouped(bytes)), |(unit, name)| format!("{} {name}", grouped(bytes / unit)))
}

/// Formats a time in the largest unit that gives a whole number.
fn time(ns: u64) -> String {
    let units =
        [(3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns >= *unit && ns.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ns} ns"), |(unit, name)| format!("{} {name}", grouped(ns / unit)))
}

/// Formats a time in seconds if this gives a whole number, so that times are easy to compare.
fn seconds(ns: u64) -> String {
    if ns.is_multiple_of(1_000_000_000) { format!("{} s", grouped(ns / 1_000_000_000)) } else { time(ns) }
}

fn size(size: Size) -> String {
    match size {
        Size::Bytes(number) => bytes(number),
        Size::Percent(percent) => format!("{percent} %"),
    }
}

/// Returns `rw` and the options that change it.
pub(super) fn pattern(job: &Job) -> String {
    if job.replay.is_some() {
        return "replay".to_owned();
    }
    let (random, suffix) = match job.placement {
        Placement::Sequential { skip_bytes: 0 } | Placement::Random { ios_per_offset: 1 } => {
            (matches!(job.placement, Placement::Random { .. }), String::new())
        }
        Placement::Sequential { skip_bytes } => {
            let sign = if skip_bytes < 0 { "-" } else { "" };
            (false, format!(":{sign}{}", bytes(skip_bytes.unsigned_abs())))
        }
        Placement::Random { ios_per_offset } => (true, format!(":{ios_per_offset}")),
    };
    let name = match job.mode {
        Mode::Read => "read",
        Mode::Write => "write",
        Mode::Trim => "trim",
        Mode::ReadWrite => "rw",
        Mode::TrimWrite => "trimwrite",
    };
    let mut text = format!("{}{name}{suffix}", if random { "rand" } else { "" });
    if job.mode == Mode::ReadWrite {
        text.push_str(&format!(" {} % reads", job.rwmix_read_percent));
    }
    if random {
        let shares = per_direction(job, &job.random_percent, |share| format!("{share} %"));
        if shares != "100 %" {
            text.push_str(&format!(", {shares} random"));
        }
        text.push_str(&distribution(&job.distribution));
    }
    text
}

fn distribution(distribution: &Distribution) -> String {
    let centred = |centre: Option<f64>| centre.map_or_else(String::new, |centre| format!(":{centre}"));
    match distribution {
        Distribution::Random => String::new(),
        Distribution::Zipf { theta, centre } => format!(", zipf:{theta}{}", centred(*centre)),
        Distribution::Pareto { h, centre } => format!(", pareto:{h}{}", centred(*centre)),
        Distribution::Normal { deviation_percent, centre } => {
            format!(", normal:{deviation_percent}{}", centred(*centre))
        }
        Distribution::Zoned(zones) => {
            format!(", {} zones", zones.read.len().max(zones.write.len()).max(zones.trim.len()))
        }
    }
}

/// Returns the block sizes: `bs`, `bsrange` or `bssplit`.
pub(super) fn block_size(job: &Job) -> String {
    if job.replay.is_some() {
        return String::new();
    }
    per_direction(job, &job.block_size, |size| match size {
        BlockSize::Fixed(fixed) => bytes(*fixed),
        BlockSize::Range { min, max } => format!("{} to {}", bytes(*min), bytes(*max)),
        BlockSize::Split(sizes) if sizes.len() <= 3 => {
            let parts = sizes.iter().map(|one| format!("{} {} %", bytes(one.bytes), one.percent));
            parts.collect::<Vec<_>>().join(" + ")
        }
        BlockSize::Split(sizes) => {
            format!("{} sizes, {} to {}", sizes.len(), bytes(size.min_bytes()), bytes(size.max_bytes()))
        }
    })
}

/// Returns the files of the job.
pub(super) fn target(job: &Job) -> String {
    match &job.files {
        Files::Named(names) => match &names[..] {
            [name] => name.clone(),
            [first, ..] => format!("{first} and {} more", grouped(names.len() as u64 - 1)),
            [] => String::new(),
        },
        Files::Own(1) => "own file".to_owned(),
        Files::Own(files) => format!("{} own files", grouped((*files).into())),
    }
}

/// Returns the region of the job: `size`, `offset` and increments.
pub(super) fn region(job: &Job) -> String {
    let mut text = match (job.size, job.file_size) {
        (Some(given), _) => size(given),
        (None, Some([min, max])) if min == max => format!("{} each", bytes(min)),
        (None, Some([min, max])) => format!("{} to {} each", bytes(min), bytes(max)),
        (None, None) if job.replay.is_some() => "as the log says".to_owned(),
        (None, None) => "all".to_owned(),
    };
    if job.offset != Size::default() {
        text.push_str(&format!(" from {}", size(job.offset)));
    }
    if job.offset_increment != Size::default() {
        text.push_str(&format!(" + {} a copy", size(job.offset_increment)));
    }
    if let Some(io_size) = job.io_size {
        text.push_str(&format!(", {} of I/O", size(io_size)));
    }
    text
}

/// Returns the condition that ends the job, if it is not the end of the region.
pub(super) fn end(job: &Job) -> String {
    let mut parts = Vec::new();
    if job.loops > 1 {
        parts.push(format!("{} loops", grouped(job.loops)));
    }
    if let Some(ios) = job.number_ios {
        parts.push(if ios == 1 { "1 I/O".to_owned() } else { format!("{} I/Os", grouped(ios)) });
    }
    if let Some(ns) = job.runtime_ns {
        parts.push(if job.time_based { time(ns) } else { format!("{} at most", time(ns)) });
    }
    if job.ramp_time_ns > 0 {
        parts.push(format!("ramp {}", time(job.ramp_time_ns)));
    }
    parts.join(", ")
}

/// Returns the queue depth, with the batch sizes.
pub(super) fn depth(job: &Job) -> String {
    match job.client {
        Client::Sync if io_engine(&job.io_engine).is_some_and(IoEngine::is_supported) => "1".to_owned(),
        _ => {
            let mut text = grouped(job.io_depth.into());
            if job.batch_submit > 1 {
                text.push_str(&format!(", batches of {}", grouped(job.batch_submit.into())));
            }
            if job.io_depth_low < job.io_depth {
                text.push_str(&format!(", low {}", grouped(job.io_depth_low.into())));
            }
            text
        }
    }
}

/// Returns how writes reach the medium, and whether the job uses the page cache.
pub(super) fn cache(job: &Job) -> String {
    let mut parts = vec![if job.direct { "direct" } else { "buffered" }.to_owned()];
    match job.open_sync {
        OpenSync::None => {}
        OpenSync::Sync => parts.push("sync".to_owned()),
        OpenSync::Dsync => parts.push("dsync".to_owned()),
    }
    for (name, ios) in [
        ("fsync", job.fsync_ios),
        ("fdatasync", job.fdatasync_ios),
        ("sync_file_range", job.sync_file_range_ios),
        ("barrier", job.barrier_ios),
    ] {
        if ios > 0 {
            parts.push(format!("{name} every {}", grouped(ios.into())));
        }
    }
    if job.end_fsync {
        parts.push("end_fsync".to_owned());
    }
    if job.fsync_on_close {
        parts.push("fsync_on_close".to_owned());
    }
    parts.join(", ")
}

/// Returns rates, pauses and latency targets.
pub(super) fn pace(job: &Job) -> String {
    let mut parts = Vec::new();
    let rate = |values: &PerDirection<Option<u64>>, tell: fn(u64) -> String| {
        let is_set = directions(job.mode).iter().any(|(direction, _)| values.of(*direction).is_some());
        is_set.then(|| per_direction(job, values, |value| value.map_or_else(|| "any".to_owned(), tell)))
    };
    parts.extend(rate(&job.rate_bytes_per_s, |value| format!("{}/s", bytes(value))));
    parts.extend(rate(&job.rate_iops, |value| format!("{} IOPS", grouped(value))));
    if job.rate_process == RateProcess::Poisson && !parts.is_empty() {
        parts.push("poisson".to_owned());
    }
    if job.think_time.pause_ns > 0 {
        let blocks = match job.think_time.blocks {
            1 => String::new(),
            blocks => format!(" every {}", grouped(blocks.into())),
        };
        parts.push(format!("think {}{blocks}", time(job.think_time.pause_ns)));
    }
    if let Some(target) = job.latency_target {
        parts.push(format!("{} % within {}", target.percentile, time(target.target_ns)));
    }
    parts.join(", ")
}

fn ioprio(priority: IoPriority) -> String {
    if priority.class() == IoClass::None { String::new() } else { priority.to_string() }
}

/// Returns the priority of the job and of single I/Os.
pub(super) fn priority(job: &Job) -> String {
    let mut parts = vec![ioprio(job.ioprio)];
    if let Some(single) = &job.cmd_priority {
        let shares = per_direction(job, &single.percentage, |share| format!("{share} %"));
        if single.percentage.read > 0 || single.percentage.write > 0 {
            parts.push(format!("{shares} {}", per_direction(job, &single.priority, ToString::to_string)));
        } else {
            parts.push("by size".to_owned());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// Returns the cgroup of the job.
pub(super) fn cgroup(job: &Job) -> String {
    job.cgroup.as_ref().map_or_else(String::new, |member| match member.weight {
        Some(weight) => format!("{} ({weight})", member.name),
        None => member.name.clone(),
    })
}

/// Returns the condition that starts the job, if it does not start immediately.
pub(super) fn start(job: &Job, is_first: bool) -> String {
    let mut parts = Vec::new();
    if job.stonewall && !is_first {
        parts.push("after all above".to_owned());
    }
    if let Some(name) = &job.wait_for {
        parts.push(format!("after {name}"));
    }
    match (job.start_delay.min_ns, job.start_delay.max_ns) {
        (_, 0) => {}
        (min, max) if min == max => parts.push(format!("+{}", seconds(min))),
        (min, max) => parts.push(format!("+{} to {}", seconds(min), seconds(max))),
    }
    parts.join(", ")
}
