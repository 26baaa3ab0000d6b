//! Conversion of one job's settings into a [`Job`]: fio's defaults, and options that imply or
//! override each other.

use iosched::{IoClass, IoPriority};

use super::files;
use super::settings::Settings;
use super::value::{Pattern, SizeValue, Value};
use crate::fio::job::Job;
use crate::fio::value::{
    BlockSize, CgroupMember, Client, CmdPriority, Delay, Distribution, ExitWhat, LatencyTarget, OpenSync, PerDirection,
    Percentiles, Placement, RandomGenerator, RateProcess, ReplayLog, Sequencer, Size, SplitPriority, ThinkTime,
    ThinkTimeBlocks,
};

/// Default of `latency_window`, ns. A search always needs a window.
pub(super) const LATENCY_WINDOW_NS: u64 = 5_000_000_000;

/// I/O priority level of a process that has not set a level.
const LEVEL_DEFAULT: u8 = 4;

/// Resolves all options of a job that depend only on the settings of this job. `section` is the
/// name of its section.
pub(super) fn resolve(settings: &Settings, section: &str) -> Job {
    let name = settings.text("name").unwrap_or(section);
    let mut job = Job::new(name);
    job.description = settings.text("description").unwrap_or("").to_owned();
    time(&mut job, settings);
    pattern(&mut job, settings);
    blocks(&mut job, settings);
    region(&mut job, settings);
    random(&mut job, settings);
    depth(&mut job, settings);
    durability(&mut job, settings);
    pace(&mut job, settings);
    process(&mut job, settings);
    job.replay = replay(settings);
    job.percentiles = percentiles(settings);
    job
}

fn on(settings: &Settings, option: &str) -> bool {
    settings.is_on(option).unwrap_or(false)
}

fn time(job: &mut Job, settings: &Settings) {
    job.group_reporting = on(settings, "group_reporting");
    job.stonewall = on(settings, "stonewall");
    job.wait_for = settings.text("wait_for").map(str::to_owned);
    if let Some([min, max]) = settings.range("startdelay") {
        job.start_delay = Delay { min_ns: min.saturating_mul(1000), max_ns: max.saturating_mul(1000) };
    }
    job.exit_all = on(settings, "exitall").then(|| match settings.word("exit_what") {
        Some("stonewall") => ExitWhat::Stonewall,
        Some("all") => ExitWhat::All,
        _ => ExitWhat::Group,
    });
    job.runtime_ns = settings.time_ns("runtime").filter(|ns| *ns > 0);
    job.time_based = on(settings, "time_based") && job.runtime_ns.is_some();
    job.ramp_time_ns = settings.time_ns("ramp_time").unwrap_or(0);
    job.loops = settings.number("loops").unwrap_or(1).max(1);
    job.number_ios = settings.number("number_ios").filter(|ios| *ios > 0);
}

fn pattern(job: &mut Job, settings: &Settings) {
    if let Some(Pattern { mode, is_random, suffix }) = settings.pattern() {
        job.mode = mode;
        job.placement = if is_random {
            let ios = suffix.and_then(|suffix| u32::try_from(suffix).ok()).unwrap_or(1);
            Placement::Random { ios_per_offset: ios.max(1) }
        } else {
            Placement::Sequential { skip_bytes: suffix.unwrap_or(0) }
        };
    }
    if settings.word("rw_sequencer") == Some("identical") {
        job.sequencer = Sequencer::Identical;
    }
    let (read, write) = (settings.small("rwmixread"), settings.small("rwmixwrite"));
    job.rwmix_read_percent = match (read, write) {
        (Some(read), Some(_)) if settings.is_later("rwmixread", "rwmixwrite") => read,
        (_, Some(write)) => 100 - write.min(100),
        (Some(read), None) => read,
        (None, None) => job.rwmix_read_percent,
    };
    if let Some(shares) = settings.numbers("percentage_random") {
        job.random_percent = shares.map(|share| share.and_then(|share| u32::try_from(share).ok()).unwrap_or(100));
    }
}

/// Resolves `bs`, `bsrange` and `bssplit`. For each direction, the last of these options that names
/// the direction applies.
fn blocks(job: &mut Job, settings: &Settings) {
    let mut given: Vec<_> = ["bs", "bsrange", "bssplit"].into_iter().filter_map(|name| settings.get(name)).collect();
    given.sort_by_key(|setting| setting.order);
    for setting in given {
        let sizes: PerDirection<Option<BlockSize>> = match &setting.value {
            Value::Numbers(sizes) => sizes.map(|size| size.map(BlockSize::Fixed)),
            Value::Ranges(ranges) => ranges.map(|range| {
                range.map(|[min, max]| if min == max { BlockSize::Fixed(min) } else { BlockSize::Range { min, max } })
            }),
            Value::Split(splits) => splits.map(|split| split.clone().map(BlockSize::Split)),
            _ => continue,
        };
        for direction in crate::fio::value::Direction::ALL {
            if let Some(size) = sizes.of(direction) {
                *job.block_size.of_mut(direction) = size.clone();
            }
        }
    }
    job.bs_unaligned = on(settings, "bs_unaligned");
    job.bs_is_seq_rand = on(settings, "bs_is_seq_rand");
    if let Some(align) = settings.numbers("ba") {
        job.block_align = align;
    }
}

fn size(value: SizeValue) -> Option<Size> {
    match value {
        SizeValue::Bytes(bytes) => Some(Size::Bytes(bytes)),
        SizeValue::Percent(percent) => Some(Size::Percent(percent)),
        // Zones are rejected elsewhere, because a zone has no size without a zoned device.
        SizeValue::Zones(_) => None,
    }
}

fn region(job: &mut Job, settings: &Settings) {
    let given = |option| settings.size(option).and_then(size);
    job.files = files::files(settings, &job.name, 0);
    job.size = given("size").filter(|size| *size != Size::Bytes(0));
    job.io_size = given("io_size").filter(|size| *size != Size::Bytes(0));
    job.file_size = settings.range("filesize").filter(|[_, max]| *max > 0);
    job.fill_device = on(settings, "fill_device");
    job.offset = given("offset").unwrap_or_default();
    job.offset_increment = given("offset_increment").unwrap_or_default();
    job.offset_align = settings.number("offset_align").unwrap_or(0);
    if let Some(Value::FileService(service)) = settings.value("file_service_type") {
        job.file_service = *service;
    }
    job.open_files = settings.small("openfiles").filter(|files| *files > 0);
}

fn random(job: &mut Job, settings: &Settings) {
    if let Some(Value::Distribution(distribution)) = settings.value("random_distribution") {
        job.distribution = distribution.clone();
    }
    // A map is impossible if accesses repeat blocks or do not cover whole blocks.
    let mapless = settings.get("ba").is_some() || job.bs_unaligned || job.distribution != Distribution::Random;
    job.random_map = !on(settings, "norandommap") && !mapless;
    job.soft_random_map = on(settings, "softrandommap");
    job.random_generator = match settings.word("random_generator") {
        Some("lfsr") => RandomGenerator::Lfsr,
        Some("tausworthe64") => RandomGenerator::Tausworthe64,
        _ => RandomGenerator::Tausworthe,
    };
    job.rand_seed = settings.number("randseed");
    job.rand_repeat = settings.is_on("randrepeat");
    job.all_rand_repeat = on(settings, "allrandrepeat");
}

fn depth(job: &mut Job, settings: &Settings) {
    let engine = settings.engine();
    job.io_engine = engine.name.to_owned();
    if let super::engines::EngineBehaviour::Runs { client, .. } = engine.behaviour {
        job.client = client;
    }
    // Threads of the job submit the I/Os. Each thread has one I/O at a time.
    if settings.word("io_submit_mode") == Some("offload") {
        job.client = Client::Async;
    }
    let depth = settings.small("iodepth").unwrap_or(1).max(1);
    let batch = |option, default: u32| match settings.small(option) {
        Some(batch) => batch.min(depth),
        None => default,
    };
    job.io_depth = depth;
    job.batch_submit = match batch("iodepth_batch", 1) {
        0 => depth,
        batch => batch,
    };
    job.batch_complete_min = batch("iodepth_batch_complete_min", 1);
    job.batch_complete_max = match batch("iodepth_batch_complete_max", 0) {
        0 if job.batch_complete_min == 0 => depth,
        max => max.max(job.batch_complete_min),
    };
    job.io_depth_low = match batch("iodepth_low", depth) {
        0 => depth,
        low => low,
    };
}

/// Returns whether I/O bypasses the page cache. Of `direct` and `buffered`, the later one counts.
pub(super) fn is_direct(settings: &Settings) -> bool {
    if settings.is_later("buffered", "direct") {
        settings.is_on("buffered") == Some(false)
    } else {
        on(settings, "direct")
    }
}

fn durability(job: &mut Job, settings: &Settings) {
    job.direct = is_direct(settings);
    job.open_sync = match settings.word("sync") {
        Some("sync" | "1") => OpenSync::Sync,
        Some("dsync") => OpenSync::Dsync,
        _ => OpenSync::None,
    };
    let every = |option| settings.small(option).unwrap_or(0);
    job.fsync_ios = every("fsync");
    job.fdatasync_ios = every("fdatasync");
    job.sync_file_range_ios = every("sync_file_range");
    job.barrier_ios = every("write_barrier");
    job.end_fsync = on(settings, "end_fsync");
    job.fsync_on_close = on(settings, "fsync_on_close");
}

fn pace(job: &mut Job, settings: &Settings) {
    let pause_ns = settings.time_ns("thinktime").unwrap_or(0);
    job.think_time = ThinkTime {
        pause_ns,
        spin_ns: settings.time_ns("thinktime_spin").unwrap_or(0).min(pause_ns),
        blocks: settings.small("thinktime_blocks").unwrap_or(1).max(1),
        counted: match settings.word("thinktime_blocks_type") {
            Some("issue") => ThinkTimeBlocks::Issue,
            _ => ThinkTimeBlocks::Complete,
        },
        io_time_ns: settings.time_ns("thinktime_iotime").unwrap_or(0),
    };
    let rate = |option| {
        let rates = settings.numbers(option).unwrap_or_default();
        rates.map(|rate| rate.filter(|rate| *rate > 0))
    };
    job.rate_bytes_per_s = rate("rate");
    job.rate_min_bytes_per_s = rate("rate_min");
    job.rate_iops = rate("rate_iops");
    job.rate_iops_min = rate("rate_iops_min");
    job.rate_process = match settings.word("rate_process") {
        Some("poisson") => RateProcess::Poisson,
        _ => RateProcess::Linear,
    };
    if let Some(ms) = settings.number("rate_cycle") {
        job.rate_cycle_ns = ms.saturating_mul(1_000_000);
    }
    job.rate_ignore_think_time = on(settings, "rate_ignore_thinktime");
    job.max_latency_ns = rate("max_latency").map(|us| us.map(|us| us.saturating_mul(1000)));
    job.latency_target = settings.time_ns("latency_target").filter(|ns| *ns > 0).map(|target_ns| LatencyTarget {
        target_ns,
        window_ns: settings.time_ns("latency_window").filter(|ns| *ns > 0).unwrap_or(LATENCY_WINDOW_NS),
        percentile: match settings.value("latency_percentile") {
            Some(Value::Real(percentile)) => *percentile,
            _ => 100.0,
        },
        run: on(settings, "latency_run"),
    });
}

fn class(number: u64) -> IoClass {
    match number {
        1 => IoClass::RealTime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => IoClass::None,
    }
}

fn process(job: &mut Job, settings: &Settings) {
    let level = settings.number("prio").and_then(|level| u8::try_from(level).ok());
    job.ioprio = match (settings.number("prioclass").map(class), level) {
        (None, None) => IoPriority::default(),
        // A level without a class belongs to the default class of processes.
        (None | Some(IoClass::None), Some(level)) => IoPriority::new(IoClass::BestEffort, level),
        (Some(class), level) => {
            IoPriority::new(class, level.unwrap_or(if class == IoClass::None { LEVEL_DEFAULT } else { 0 }))
        }
    };
    job.cmd_priority = cmd_priority(settings);
    job.cgroup = settings
        .text("cgroup")
        .map(|name| CgroupMember { name: name.trim_matches('/').to_owned(), weight: settings.small("cgroup_weight") });
}

fn cmd_priority(settings: &Settings) -> Option<CmdPriority> {
    let classes = settings.numbers("cmdprio_class").unwrap_or_default();
    let levels = settings.numbers("cmdprio").unwrap_or_default();
    let priority = |class: &Option<u64>, level: &Option<u64>| {
        let level = level.and_then(|level| u8::try_from(level).ok()).unwrap_or(0);
        IoPriority::new(class.map_or(IoClass::RealTime, self::class), level)
    };
    let priority = PerDirection {
        read: priority(&classes.read, &levels.read),
        write: priority(&classes.write, &levels.write),
        trim: IoPriority::default(),
    };
    let mut percentage = settings.numbers("cmdprio_percentage").unwrap_or_default();
    percentage.trim = None;
    let percentage = percentage.map(|share| share.and_then(|share| u32::try_from(share).ok()).unwrap_or(0));
    let mut split = PerDirection::default();
    if let Some(Value::PrioritySplit(entries)) = settings.value("cmdprio_bssplit") {
        for direction in [crate::fio::value::Direction::Read, crate::fio::value::Direction::Write] {
            let entries = entries.of(direction).iter().map(|entry| SplitPriority {
                bytes: entry.bytes,
                percent: entry.percent,
                priority: entry.priority.map_or(*priority.of(direction), |(class, level)| {
                    IoPriority::new(self::class(class.into()), level)
                }),
            });
            *split.of_mut(direction) = entries.collect();
        }
    }
    let is_used = percentage != PerDirection::default() || split != PerDirection::default();
    is_used.then_some(CmdPriority { percentage, priority, split })
}

fn replay(settings: &Settings) -> Option<ReplayLog> {
    let skipped = match settings.value("replay_skip") {
        Some(Value::Words(words)) => &words[..],
        _ => &[],
    };
    let skips = |direction| skipped.contains(&direction);
    settings.text("read_iolog").map(|path| ReplayLog {
        path: path.to_owned(),
        no_stall: on(settings, "replay_no_stall"),
        time_scale_percent: settings.small("replay_time_scale").unwrap_or(100),
        scale: settings.small("replay_scale").unwrap_or(1),
        align_bytes: settings.number("replay_align").unwrap_or(0),
        skip: PerDirection { read: skips("read"), write: skips("write"), trim: skips("trim") },
        skip_syncs: skips("sync") || skips("flush"),
        redirect: settings.text("replay_redirect").is_some(),
        ios: std::sync::Arc::from([]),
    })
}

fn percentiles(settings: &Settings) -> Percentiles {
    let mut percentiles = Percentiles::default();
    if let Some(Value::Reals(list)) = settings.value("percentile_list") {
        percentiles.list.clone_from(list);
        percentiles.list.sort_by(f64::total_cmp);
    }
    for (option, on) in [
        ("slat_percentiles", &mut percentiles.slat),
        ("clat_percentiles", &mut percentiles.clat),
        ("lat_percentiles", &mut percentiles.lat),
    ] {
        *on = settings.is_on(option).unwrap_or(*on);
    }
    percentiles
}
