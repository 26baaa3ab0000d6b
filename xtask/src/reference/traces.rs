//! The page of trace formats.

use std::fmt::Write as _;

use iosched::{Flags, Op};
use iosched_trace::{Columns, Format, FormatSpec, Holds, LOST_PERCENT_MAX, UNMATCHED_MIN};

/// The page.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Traces\n\n\
         Written by `cargo xtask reference` from the declarations in the code.\n\n\
         A trace is recognised by its content, whatever its name; so are gzip and Zstandard. Only a block trace that is damaged at \
         its start is told by its name. A \
         name without a file stands for the per-CPU files of blktrace that begin with it; one of them for all of them; `-` for \
         standard input. Files are read as streams, with \
         bounded memory; what comes through a pipe is kept in a temporary file first. Records that are slightly out of order \
         are sorted; damage is told with its place, and what can \
         be read around it is read. What is not aligned to sectors of 512 bytes is widened to whole ones; I/Os of no length \
         are passed over and told. What a format \
         does not say stays unknown: no latency is 0 because it was not recorded. CRLF and a UTF-8 mark change nothing.\n\n\
         `iosched trace info` says what a trace is like. `convert`, `slice`, `scale`, `remap` and `filter` write one, in \
         any format that can be written, and say on standard error what of it the format has no place for. Whatever \
         reads a trace tells first which files were read together and what is missing of the recording.\n\n\
         ## Recognised and read\n\n\
         | format | what it is | names end in | recognised by | a record | what is read | times |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for format in Format::ALL {
        let FormatSpec { name, about, extensions, recognised, record, read, from_first, resolution_ns, .. } =
            format.spec();
        let extensions: Vec<_> = extensions.iter().map(|extension| format!("`.{extension}`")).collect();
        let origin = if from_first { "since the first record" } else { "as written" };
        let record = record.replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{name}` | {about} | {} | {recognised} | {record} | {read} | {origin}, to {} |",
            extensions.join(", "),
            duration(resolution_ns)
        );
    }
    page.push_str(&examples());
    page.push_str(PRIORITIES);
    page.push_str(&told());
    page.push_str(
        "\n## Written\n\n\
         | format | operations | flags | times | processes | priorities | devices | latencies |\n|---|---|---|---|---|---|---|---|\n",
    );
    for format in Format::ALL {
        let FormatSpec { name, resolution_ns, holds, .. } = format.spec();
        let Some(holds) = holds else {
            let _ = writeln!(page, "| `{name}` | not written | | | | | | |");
            continue;
        };
        let times = if holds.times { format!("to {}", duration(resolution_ns)) } else { "lost".to_owned() };
        let held = |held: bool| if held { "held" } else { "lost" };
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} | {times} | {} | {} | {} | {} |",
            operations(&holds),
            flags(holds.flags),
            held(holds.processes),
            held(holds.priorities),
            held(holds.devices),
            held(holds.latencies)
        );
    }
    page.push_str(
        "\nWriting zeroes is written as a write where the format does not tell them apart; other operations that a format \
         does not have are left out. A latency that is not known is left empty in `csv` and `msr`, and has no completion in \
         `blktrace`; a device that is not known is 0, in `blktrace` 8,0. From a block trace to `blktrace` every event is written, else \
         submissions and completions; in the file of one CPU, which blkparse and btt read under the name \
         `BASE.blktrace.0`. Full event \
         streams are written through `EventWriter`.\n\n\
         `fio-v2` is written without times: fio's manual has `wait` in µs since the previous one, fio 3.33 waits until so \
         many ms after its start. `fio-v3` is replayed in time: \
         `fio --name=replay --read_iolog=FILE --replay_redirect=/dev/DEVICE --ioengine=libaio --direct=1`.\n",
    );
    page
}

/// A file of each format that has the same request.
fn examples() -> String {
    let mut section = String::from(
        "\n## An example of each format\n\n\
         Each is a file of one record: a read of 8 sectors from sector 4,530,168 on. A test reads each of them. \
         Lines are \
         separated by `⏎`; binary records are in hexadecimal.\n\n\
         | format | example |\n|---|---|\n",
    );
    for format in Format::ALL {
        let FormatSpec { name, example, .. } = format.spec();
        let _ = writeln!(section, "| `{name}` | `{}` |", example.replace('\n', " ⏎ "));
    }
    section
}

/// The section on times and values that are doubted.
const DOUBTED: &str = "\
## Times and values that are doubted

`trace info` and `compare` examine the times, places and lengths of a trace. `trace info --json` has the sentences as `oddities`.

| what | how it shows | what is done |
|---|---|---|
| coarse times | written in units of 0.1 ms or more, or all on the ticks of such a clock, with different numbers of requests | open replay draws arrivals within each tick, uniformly and in the order of the trace; latency counts from there |
| rounded latencies | the greatest power of ten that divides 16 latencies or more | in closed replay, an I/O that seems to start before another one's end, by less than the resolution, waited for it |
| times that step back | a request of the same device before the one above it, by more than 1 ms and the longest latency | requests are sorted by time |
| the same in `fio-v2` and `fio-v3` | any step back | the order of the file stays, and a step back takes no time, as in fio |
| no times | more than 8 requests, all at one time; in `tencent`, they are of one second | each process submits its I/Os one after another, as fio does with such a log; `--replay open` and `--speed` are refused |
| impossible rate | more than 10,000,000 requests/s from one device; 1,000,000 where times are bare numbers | a doubt that names the likely unit, such as ms, and for bare numbers `--time-unit ms` |
| improbably slow | a log of fio (`fio-v2`, `fio-v3`) of 64 requests or more with fewer than 10 requests/s of a device | a doubt: the times may be in ns, `--time-unit ns` |
| impossible place | beyond 1 PB; with an impossible rate or `--time-unit`, beyond 100 TB | a doubt: offsets may be in bytes |
| impossible length | reads or writes above 1 GiB | a doubt: lengths may be in bytes |

Coarse times are not assumed if every tick has the same number of requests: such bursts are regular.

";

/// Which traces have priorities, and how to give them.
const PRIORITIES: &str = "
## Priorities of processes

bfq, CFQ and mq-deadline serve processes by their priority (ionice): a class and a level. Few traces record it.

| trace | its priorities |
|---|---|
| `blktrace` of `iosched record` | of each process and each change: a message, which blkparse prints and its text keeps |
| `blktrace` of blktrace(8) | none: its records have no field for them |
| `tracepoints` since Linux 6.12 | of each request, as `block_rq_insert` and `block_rq_issue` print it |
| `csv`, `--columns` | a column `ioprio`: `none`, `idle`, `rt/LEVEL` or `be/LEVEL` with a level from 0 to 7; empty if unknown |
| any other | none |

`iosched record` asks the kernel for the priority of each process a few ms after its first request, and again while the
process goes on. A process that ended before that has none in the trace. The priority of a single I/O (`cmdprio` of fio)
is not recorded. Pages that the kernel writes back have the priority of its own threads.

`--ionice PROCESS=CLASS` gives processes a priority, instead of the recorded one: `--ionice backup=idle`,
`--ionice 'db*=best-effort:2'`, `--ionice 4711=realtime:0`. The first option that fits a process counts, so that
`--ionice '*=none'` at the end says it of all others. Without priorities, a comparison with such a scheduler carries this
as a doubt.
";

/// What is taken for what, and what for the whole.
fn told() -> String {
    format!(
        "\n## When the format is not told rightly\n\n\
         Formats of text without a heading of their own are told by the shape of the first 100 lines: the first must be a \
         record, and half of them. A heading of other columns therefore is not taken for a bad line of theirs. What is in no \
         format is refused with the most likely cause; `--verbose` prints the first line that does not fit, for \
         each format.\n\n\
         - `--input-format NAME` reads a trace in this format, whatever it looks like.\n\
         - `--columns NAME,…` reads a table whose columns are these; between them are commas, tabs, semicolons, bars or blanks, \
         whichever makes as many. They are {}. There must be a time, `op`, a start and a length; no two may say the same. \
         Times called `arrival_ns` are as written, others since the first record. `op` is a letter of `csv`, a word (read, \
         write, discard, trim, flush, sync) or what blkparse prints, such as RA or WS. A first line without a number is a heading \
         and passed over. Processes that have a name and no `pid` are numbered by their names.\n\
         - `completed_s` and `end_s` (also `_ns`, `_us`, `_ms`) are times of completion; the arrival is this time less the latency, which must be a column, too. `queue_ms` is a wait that the latency does not include.\n\
         - `op=0:write/1:read` gives words of the file their meaning; `op=1:read` is the same. Other meanings are `discard` and `flush`.\n\
         - Between blanks, the name of a process may hold blanks. It takes the words that the columns before and after it leave.\n\
         - `--time-unit UNIT` (ns, us, ms or s) replaces the unit that a format assumes for times that are bare \
         numbers: `fio-v2`, \
         `fio-v3`, `fiu`, `alibaba`, `tencent` and `mqsim`. The times may then have decimals: `--time-unit ms` \
         reads DiskSim's and \
         SSDsim's ASCII, `3.381531 0 194945240 128 0`, as `mqsim`. The times of other formats carry their unit, \
         and those of a table \
         have it in the column's name.\n\
         - For example, `--columns time_ms,device,sector,nr_sectors,op=1:read` reads DiskSim's ASCII `3.381531 0 194945240 128 0`.\n\n\
         Every command that reads a trace has these options. A heading that names such columns is read so \
         without being asked, in any \
         order; columns of other names are passed over.\n\n\
         These tables are read as `csv`, too:\n\
         \n\
         | table | example |\n\
         |---|---|\n\
         | biosnoop of bcc and libbpf, by its heading `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`; the time is that of the completion | `0.007534 C2 Compiler 4242 sdb R 323946136 16384 7.53` |\n\
         | Systor '17, by its heading `Timestamp,Response,IOType,LUN,Offset,Size` | `1455592811.054253578,0.008407658,W,3,123263663104,4096` |\n\
         | fio's latency log with offsets (`--write_lat_log`, `--log_offset=1`), by its shape. Bandwidth and IOPS logs have the same shape and hold no single I/Os: their names (`_bw.`, `_iops.`) or values tell, and they are refused | `9, 8634305, 1, 4096, 3300663296, 0x0000` |\n\
         \n\
         More than {} % of bad lines are refused: the format is another, or most of the trace is not what it should be. With \
         the format (or columns) given and `--partial` the rest is read.\n\n\
         {DOUBTED}## The whole recording, or a part of it\n\n\
         What is concluded from a part can be wrong. Where it is certain that this is not the whole, every command \
         says so and ends with exit status 1; nothing is written. With `--partial` it takes what is there, says so first, and \
         results and reports carry it as the first doubt. Where it is possible, that is said first, too, and the exit status \
         is 0. `iosched trace info --json` has it as `missing`, each with `kind` and `certain`.\n\n\
         | what | how it shows | certain |\n|---|---|---|\n\
         | `cut` | the data end inside a record, inside a line that is none, or inside a compressed stream | always |\n\
         | `no_line_end` | the last line is a record and has no end | never: some programs leave the last end out |\n\
         | `unmatched` | completions of requests that were neither submitted nor issued before, or requests issued that never \
         complete | {UNMATCHED_MIN} or more, and more than {LOST_PERCENT_MAX} %, of those away from the ends; or any there and a \
         CPU's file is missing |\n\
         | `no_completions` | requests issued, and no completion at all | {UNMATCHED_MIN} or more, and the file of one CPU alone was \
         read; else they were perhaps not recorded (`blktrace -a`) |\n\
         | `no_submissions` | no submission (Q) among the first 4,096 events: insertions (I), or else allocations (G) with bios \
         merged (M), or else issues (D) are taken as submissions | \
         never |\n\
         | `missing_cpus` | the numbers of per-CPU files leave one out | if anything is `unmatched` away from the ends; else it is a \
         note: that CPU was off, or had nothing to do |\n\
         | `dropped` | gaps in the sequence numbers of a CPU; lines of tracefs, trace-cmd or perf about lost events | more than {LOST_PERCENT_MAX} % of the records |\n\
         | `damaged` | bytes that belong to no record | more than {LOST_PERCENT_MAX} % of the bytes |\n\
         | `bad_lines` | lines that are no records | more than {LOST_PERCENT_MAX} % of the lines that are not blank |\n\
         | `disorder` | times that go back further than the 4,096 requests that are sorted: recordings put one behind the other | \
         more than {LOST_PERCENT_MAX} % of the requests |\n\
         | `passed_over` | records of no length, and commands that move no data | never: some programs record them |\n\
         | `unclosed` | files that a log of fio opens and does not close | never: fio may have been ended early |\n\n\
         Why these: sequence numbers of blktrace count within a CPU and say nothing of another; but requests complete on \
         other CPUs than they are submitted on, and a file that is missing leaves completions without submissions and the \
         reverse, all over the recording. I/O that was under way when tracing began completes early, and I/O under way when it \
         ended was issued late: so what counts is completions in the later half (from a quarter or half of the way on), and \
         requests that were issued in the earlier half, overtaken by more than 1,024 completions (more than devices hold), or issued \
         after the last completion into a silence four times as long as any before. {UNMATCHED_MIN} allow for a few that are \
         overtaken by a whole run. {LOST_PERCENT_MAX} % moves means and shares by less than the 2 % that `iosched compare` takes \
         for a difference of quantiles. I/O under way at the ends is a note of `trace info`, no doubt. What cannot be seen: data cut exactly \
         between two records, lines or compressed streams where nothing is without its counterpart, and what a recording was \
         told not to record. Two things look like a part and are not: a device that hangs until the recording ends, and zone \
         appends, which complete elsewhere than they were sent; take those with `--partial`.\n",
        Columns::known(),
        LOST_PERCENT_MAX
    )
}

fn operations(holds: &Holds) -> String {
    let name = |op: &Op| match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::WriteZeroes => "write zeroes",
        Op::Flush => "flush",
    };
    holds.ops.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn flags(flags: Flags) -> String {
    if flags.is_empty() {
        return "none".to_owned();
    }
    let names = [
        (Flags::SYNC, "sync"),
        (Flags::IDLE, "idle"),
        (Flags::PRIO, "priority"),
        (Flags::FUA, "FUA"),
        (Flags::PREFLUSH, "preflush"),
        (Flags::AHEAD, "readahead"),
    ];
    let held = names.into_iter().filter(|(flag, _)| flags.contains(*flag));
    held.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

fn duration(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{} s", ns / 1_000_000_000),
        1_000.. => format!("{} µs", ns / 1_000),
        _ => format!("{ns} ns"),
    }
}
