//! How traces are read: the options of every command that reads one, and what is said of a trace that is not whole.

use clap::Args;
use iosched_trace::{Columns, Completeness, Format, Gap, InCgroup, Ionice, ReadOptions, TimeUnit};

use crate::output::say;

/// How to read a trace.
#[derive(Args, Debug, Default)]
pub(crate) struct Reading {
    /// Format of the trace: blktrace, blkparse, tracepoints (perf script, trace-cmd, tracefs), fio-v2, fio-v3, msr,
    /// spc, fiu, alibaba, tencent, blkreplay, vscsi, mqsim or csv [default: detected from the content]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    input_format: Option<Format>,
    /// Columns of a trace that is a table, in order, such as time_s,op,offset_bytes,length_bytes; - skips a column
    ///
    /// The table separates its columns by commas, tabs, semicolons, bars or blanks. These columns are known:
    ///
    /// Time: time_ns, time_us, time_ms or time_s; arrival_ns, which is not shifted to start at 0; or completed_s
    /// together with a latency, as in the output of biosnoop.
    ///
    /// Operation: op, or op=0:write/1:read if numbers stand for operations.
    ///
    /// Position and length: sector or offset_bytes, and nr_sectors or length_bytes.
    ///
    /// Optional: pid, process, ioprio, device, sync, flags, queue_ms, and one of latency_ns, latency_us, latency_ms and
    /// latency_s.
    #[arg(long, value_name = "NAME,…", conflicts_with = "input_format", value_parser = columns)]
    columns: Option<Columns>,
    /// Unit of times that are bare numbers: ns, us, ms or s [default: the unit of the format]
    ///
    /// The unit is ns in mqsim and fiu, us in fio-v2, fio-v3 and alibaba, and s in tencent. With this option, the times
    /// may have decimals, such as DiskSim's times in ms.
    #[arg(long, value_name = "UNIT", conflicts_with = "columns", value_parser = time_unit)]
    time_unit: Option<TimeUnit>,
    /// Read an incomplete trace: the file of a CPU is missing, or a file is truncated or damaged
    ///
    /// Together with --input-format or --columns, this option also accepts a trace with many bad lines.
    #[arg(long)]
    partial: bool,
    /// Put processes of the trace into a cgroup: db=postgres, 'db=post*' or db=4711; repeat for several
    ///
    /// Schedulers and controllers that distinguish cgroups need this.
    #[arg(long = "cgroup", value_name = "CGROUP=PROCESS", value_parser = in_cgroup)]
    cgroups: Vec<InCgroup>,
    /// Give processes of the trace a priority: backup=idle, 'db*'=best-effort:2 or 4711=realtime:0; repeat for several
    ///
    /// Few traces record priorities. The classes are those of ionice; the level is from 0 to 7. '*=none' sets the
    /// class none for all other processes. If several options match a process, the first one is used.
    #[arg(long = "ionice", value_name = "PROCESS=CLASS", value_parser = ionice)]
    priorities: Vec<Ionice>,
}

impl Reading {
    /// For readers.
    pub(crate) fn options(&self) -> ReadOptions {
        let Self { input_format, columns, time_unit, partial, cgroups, priorities } = self;
        ReadOptions {
            format: *input_format,
            columns: columns.clone(),
            time_unit: *time_unit,
            partial: *partial,
            cgroups: cgroups.clone(),
            priorities: priorities.clone(),
            ..ReadOptions::default()
        }
    }
}

/// What is to be known before anything else of a trace that is not whole, or may not be: a sentence each.
pub(crate) fn missing(completeness: &Completeness) -> Vec<String> {
    let gaps: Vec<&Gap> = completeness.gaps().iter().filter(|gap| gap.matters()).collect();
    let line = |(number, gap): (usize, &&Gap)| {
        let is = if gap.is_certain() { "is" } else { "may be" };
        let line = format!("the recording {is} incomplete: {gap}");
        // What helps against several is said once, with the last.
        let again = gaps.get(number + 1).is_some_and(|next| next.remedy() == gap.remedy());
        if again { line } else { format!("{line}; {}", gap.remedy()) }
    };
    gaps.iter().enumerate().map(line).collect()
}

/// Says it on standard error, before anything else is said.
pub(crate) fn warn(completeness: &Completeness) {
    missing(completeness).iter().for_each(|line| say!("warning: {line}"));
}

fn in_cgroup(text: &str) -> Result<InCgroup, String> {
    text.parse()
}

fn ionice(text: &str) -> Result<Ionice, String> {
    text.parse()
}

fn time_unit(text: &str) -> Result<TimeUnit, String> {
    text.parse()
}

fn format(text: &str) -> Result<Format, String> {
    Format::from_name(text).ok_or_else(|| format!("formats are {}", Format::names()))
}

fn columns(text: &str) -> Result<Columns, String> {
    Columns::parse(text).map_err(|error| match error {
        iosched_trace::TraceError::Columns { problem, .. } => problem,
        other => other.to_string(),
    })
}
