//! Options of every command that reads a trace.

use clap::Args;
use iosched_trace::{Columns, Format, InCgroup, Ionice, ReadOptions, TimeUnit};

/// How to read a trace.
#[derive(Args, Debug, Default)]
pub(crate) struct Reading {
    /// Format of the trace: blktrace, blkparse, tracepoints (perf script, trace-cmd, tracefs), fio-v2, fio-v3, msr,
    /// spc, fiu, alibaba, tencent, blkreplay, vscsi, mqsim or csv [default: detected from the content]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    input_format: Option<Format>,
    /// Names of the columns of a trace that is a table, in order, for example
    /// time_s,op,offset_bytes,length_bytes; write "-" to skip a column
    ///
    /// Commas, tabs, semicolons, bars or blanks separate the columns of the table. You can use
    /// these names:
    ///
    /// Time of submission: time_ns, time_us, time_ms or time_s. iosched shifts these times, so that
    /// the trace starts at 0. iosched does not shift the times in a column arrival_ns.
    ///
    /// Time of completion, as in the output of biosnoop: completed_ns, completed_us, completed_ms
    /// or completed_s. A table with such a column must also have a column with the latency.
    ///
    /// Operation: op. If the table writes operations as numbers, give the meaning of each number,
    /// as in op=0:write/1:read.
    ///
    /// Position: sector or offset_bytes. Length: nr_sectors or length_bytes.
    ///
    /// Optional: pid, process, ioprio, device, sync, flags, queue_ms, and one of latency_ns, latency_us, latency_ms and
    /// latency_s.
    #[arg(
        long,
        value_name = "NAME,…",
        conflicts_with = "input_format",
        value_parser = columns,
        allow_hyphen_values = true
    )]
    columns: Option<Columns>,
    /// Unit of the times in the trace: ns, us, ms or s [default: the unit of the format]
    ///
    /// Use this option if the times are numbers without a unit. The default is ns for mqsim and
    /// fiu, us for fio-v2, fio-v3 and alibaba, and s for tencent. With this option, the times can
    /// have decimals, such as DiskSim's times in ms.
    #[arg(long, value_name = "UNIT", conflicts_with = "columns", value_parser = time_unit)]
    time_unit: Option<TimeUnit>,
    /// Accept an incomplete trace: the file of a CPU is missing, or a file is truncated or damaged
    ///
    /// Together with --input-format or --columns, this option also accepts a trace with many bad lines.
    #[arg(long)]
    partial: bool,
    /// Put processes of the trace into a cgroup: db=postgres, 'db=post*' or db=4711; repeat the option for more
    ///
    /// A trace does not record cgroups. Use this option to see how a scheduler or controller shares
    /// the disk between cgroups.
    #[arg(long = "cgroup", value_name = "CGROUP=PROCESS", value_parser = in_cgroup)]
    cgroups: Vec<InCgroup>,
    /// Give processes of the trace a priority: backup=idle, 'db*'=best-effort:2 or 4711=realtime:0; repeat the option
    /// for more
    ///
    /// Few traces record priorities. The classes are those of ionice; the level is from 0 to 7.
    /// '*=none' sets the class none for all other processes. If several of these options match a
    /// process, the first one counts.
    #[arg(long = "ionice", value_name = "PROCESS=CLASS", value_parser = ionice)]
    priorities: Vec<Ionice>,
}

impl Reading {
    /// Returns the options for trace readers.
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
