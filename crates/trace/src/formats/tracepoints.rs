//! The kernel's block tracepoints as text, as `perf script`, `trace-cmd report`
//! and the files `trace` and `trace_pipe` of tracefs print them.
//!
//! The tools differ in the text before the name of the event:
//!
//! - perf: `process pid [cpu] seconds:`, with `pid/tid` or without the CPU, depending on the fields
//!   that the user requests
//! - `perf script -F time,event,trace`: only the time
//! - other tools: `process-pid [cpu] flags seconds:`
//! - `trace-cmd report -l`: `process-pid cpu-and-flags seconds:`
//! - the tracer `blk` of ftrace: as other files of tracefs, but an event has no name, and is
//!   `major,minor action RWBS sector + sectors [process]`
//!
//! The text after the name is the same for all tools. For requests, it is
//! `major,minor RWBS bytes (command) sector + sectors priority [process]`. Completions and bios
//! have no bytes. Kernels before 6.12 have no priority. Completions have an error number instead of
//! the process. Events without a device (plugs), events of buffers, and events of other parts of
//! the kernel are skipped.

use iosched::{IoClass, IoPriority, LEVEL_MAX, Op, SECOND_NS, Time};

use super::blkparse::{device, error_number, extent, split_bracket, traced_event};
use super::event_text::{EventFormat, EventLine};
use crate::blktrace::{Action, BlkEvent, Category, Payload, ProcessName};
use crate::names::Names;
use crate::text::{Line, LineFormat, Words, number, number_u32, plain, seconds};

/// The kernel's names of block events.
const EVENTS: [(&str, Action); 16] = [
    ("block_bio_queue", Action::Queue),
    ("block_bio_backmerge", Action::BackMerge),
    ("block_bio_frontmerge", Action::FrontMerge),
    ("block_bio_bounce", Action::Bounce),
    ("block_bio_remap", Action::Remap),
    ("block_bio_complete", Action::Complete),
    ("block_split", Action::Split),
    ("block_getrq", Action::GetRequest),
    ("block_sleeprq", Action::SleepRequest),
    ("block_rq_insert", Action::Insert),
    ("block_rq_issue", Action::Issue),
    ("block_rq_requeue", Action::Requeue),
    ("block_rq_complete", Action::Complete),
    ("block_rq_abort", Action::Abort),
    ("block_rq_merge", Action::BackMerge),
    ("block_rq_remap", Action::Remap),
];
/// The name under which perf prints lost events.
const PERF_LOST: &[u8] = b"PERF_RECORD_LOST";

/// Parses the lines.
pub(crate) struct Tracepoints;

impl EventFormat for Tracepoints {
    const EXPECTED: &'static str = "\"process pid [cpu] seconds: block_rq_issue: major,minor RWBS bytes () sector + \
         sectors [process]\" as perf script, trace-cmd report and tracefs print it";
    const FROM_FIRST: bool = true;

    fn parse(&mut self, line: &[u8]) -> EventLine {
        let line = line.trim_ascii();
        if line.is_empty() || is_beside(line) {
            return EventLine::Other;
        }
        if let Some(lost) = lost(line) {
            return EventLine::Lost(lost);
        }
        let Some(head) = Head::of(line) else {
            return blk_event(line).map_or(EventLine::Bad, |(event, name)| EventLine::Event(event, name));
        };
        if head.event == PERF_LOST {
            let count = Words::new(head.fields).last().and_then(number);
            return count.map_or(EventLine::Bad, EventLine::Lost);
        }
        let Some((_, action)) = EVENTS.iter().find(|(name, _)| name.as_bytes() == head.event) else {
            return EventLine::Other;
        };
        head.block_event(*action).map_or(EventLine::Bad, |(event, name)| EventLine::Event(event, name))
    }
}

/// The lines of the format, to detect the format of a file. At least one line must be an event of a
/// block device, of any kind.
pub(super) struct Lines;

impl LineFormat for Lines {
    const EXPECTED: &'static str = Tracepoints::EXPECTED;

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        let is_named = || Head::of(line.trim_ascii()).is_some_and(|head| head.event.starts_with(b"block_"));
        match Tracepoints.parse(line) {
            EventLine::Event(event, _) => Line::Request(plain(event.time, Op::Read, event.sector, 0)),
            EventLine::Other if is_named() => Line::Request(plain(Time::ZERO, Op::Read, 0, 0)),
            EventLine::Lost(_) | EventLine::Other => Line::Other,
            EventLine::Bad => Line::Bad,
        }
    }
}

/// Returns whether a line is an event of any part of the kernel.
pub(super) fn is_event(line: &[u8]) -> bool {
    Head::of(line.trim_ascii()).is_some()
}

/// Returns whether a line names a block event, readable or not.
pub(super) fn is_block_event(line: &[u8]) -> bool {
    EVENTS.iter().any(|(name, _)| contains(line, name.as_bytes()))
}

/// Returns the reason why a line with a block event does not fit the format, and the remedy.
pub(super) fn fault(line: &[u8]) -> &'static str {
    let is_count = |word: &[u8]| word.strip_suffix(b":").is_some_and(|count| number(count).is_some());
    let is_of_latency_format = |word: &[u8]| {
        let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
        digits > 0 && word[digits..].starts_with(b"us")
    };
    let words = || Words::new(line);
    if contains(line, b"(dev: ") || contains(line, b"(dev=") {
        "it is the output of perf trace, which iosched does not read; record with perf record -e 'block:*' -a, and \
         print with perf script"
    } else if Head::of(line.trim_ascii()).is_some_and(|head| Origin::of(head.origin).is_none()) {
        "its events have no process ids; print the events with perf script -F comm,pid,cpu,time,event,trace"
    } else if words().any(is_of_latency_format) {
        "it is in the latency format of ftrace; turn this format off with echo nolatency-format > trace_options, and \
         print the events again"
    } else if words().any(is_count) {
        "its times come from a trace clock that does not count in seconds; record again with a clock in seconds \
         (echo mono > trace_clock, or trace-cmd record -C mono)"
    } else {
        "iosched cannot read the times of its block events; print the events with perf script -F \
         comm,pid,cpu,time,event,trace, or with trace-cmd report"
    }
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|found| found == part)
}

/// Returns the resolution of the times of a file, ns, as the start of the file shows it.
pub(super) fn resolution_ns(head: &[u8]) -> u64 {
    let digits = |line: &[u8]| {
        let line = line.trim_ascii();
        let time = Head::of(line).map(|head| head.time).or_else(|| blk_time(line).map(|(_, time, _)| time))?;
        Some(time.len() - time.iter().position(|&b| b == b'.')? - 1)
    };
    let most = head.split(|&b| b == b'\n').filter_map(digits).max().unwrap_or(0);
    (0..most).fold(SECOND_NS, |ns, _| ns / 10).max(1)
}

/// Returns whether this is a line that the tools print between events. Such lines are comments,
/// messages of `tpoint`, messages of `trace-cmd` about CPUs, and the frames of a stack:
/// `address symbol (file)` or `=> symbol`.
fn is_beside(line: &[u8]) -> bool {
    let is_hex = |word: &[u8]| word.len() >= 6 && word.iter().all(u8::is_ascii_hexdigit);
    let mut words = Words::new(line);
    let (first, second, rest) = (words.next().unwrap_or_default(), words.next(), words.rest());
    line.starts_with(b"#")
        || line.starts_with(b"Tracing ")
        || line.starts_with(b"Ending tracing")
        || (first.starts_with(b"cpus=") && second.is_none())
        || (first, second) == (b"version", Some(&b"="[..]))
        || (first == b"CPU" && rest == b"is empty")
        || (first == b"=>" || line.ends_with(b"<stack trace>"))
        || (is_hex(first) && second.is_some() && (rest.is_empty() || rest.starts_with(b"(")))
}

/// Parses the number of lost events. tracefs prints `CPU:3 [LOST 20 EVENTS]`, without the
/// number if the kernel does not know it. trace-cmd prints `CPU:3 [20 EVENTS DROPPED]`.
fn lost(line: &[u8]) -> Option<u64> {
    let inner = line.strip_prefix(b"CPU:")?.strip_suffix(b"]")?;
    let inner = &inner[inner.iter().position(|&b| b == b'[')? + 1..];
    let words: Vec<&[u8]> = Words::new(inner).collect();
    match words[..] {
        [b"LOST", b"EVENTS"] | [b"EVENTS", b"DROPPED"] => Some(1),
        [b"LOST", count, b"EVENTS"] | [count, b"EVENTS", b"DROPPED"] => number(count),
        _ => None,
    }
}

/// Parses an event of the tracer `blk`: `process-pid [cpu] flags seconds: major,minor action …`.
fn blk_event(line: &[u8]) -> Option<(BlkEvent, Option<ProcessName>)> {
    let (origin, time, mut words) = blk_time(line)?;
    let time = seconds(time)?;
    let Origin { process, pid, cpu } = Origin::of(origin)?;
    let device = device(&mut words)?;
    let (event, name) = traced_event(words, time, pid, cpu, 0, device)?;
    Some((event, name.or_else(|| process.map(ProcessName::new).filter(|_| pid != 0))))
}

/// Returns the text before the time of an event of the tracer `blk`, the time, and the words after
/// the time.
fn blk_time(line: &[u8]) -> Option<(&[u8], &[u8], Words<'_>)> {
    let mut words = Words::new(line);
    loop {
        let origin_and_time = words.rest();
        let time = words.next()?.strip_suffix(b":").filter(|time| time.contains(&b'.'));
        if let Some(time) = time.filter(|time| seconds(time).is_some()) {
            device(&mut words.clone())?;
            return Some((&line[..line.len() - origin_and_time.len()], time, words));
        }
    }
}

/// The parts of a line of a tracepoint in any part of the kernel.
struct Head<'l> {
    /// Text before the time.
    origin: &'l [u8],
    time: &'l [u8],
    /// Name of the event, without the kernel's subsystem.
    event: &'l [u8],
    /// Text after the name.
    fields: &'l [u8],
}

impl<'l> Head<'l> {
    /// Splits a line at the first `seconds.fraction:` before the name of an event. Tools may print
    /// a number between the time and the name. The name of a process may contain blanks and colons.
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut words = Words::new(line);
        loop {
            let origin_and_time = words.rest();
            let word = words.next()?;
            let Some(time) = word.strip_suffix(b":").filter(|time| time.contains(&b'.')) else { continue };
            if seconds(time).is_none() {
                continue;
            }
            let mut after = words.clone();
            let mut name = after.next()?;
            // The number is a count of perf, or the time since the previous event
            // (`trace-cmd report --ts-diff`).
            if number(name).is_some() || name.starts_with(b"(+") {
                name = after.next()?;
            }
            let origin = &line[..line.len() - origin_and_time.len()];
            if name == PERF_LOST {
                return Some(Self { origin, time, event: name, fields: after.rest() });
            }
            let Some(event) = name.strip_suffix(b":").filter(|name| is_event_name(name)) else { continue };
            let event = event.rsplit(|&b| b == b':').next().unwrap_or(event);
            return Some(Self { origin, time, event, fields: after.rest() });
        }
    }

    fn block_event(&self, action: Action) -> Option<(BlkEvent, Option<ProcessName>)> {
        let Origin { process, pid, cpu } = Origin::of(self.origin)?;
        let mut words = Words::new(self.fields);
        let device = device(&mut words)?;
        let letters = words.next()?;
        let (what, bracket, _) = split_bracket(words.rest());
        let mut event = BlkEvent {
            time: seconds(self.time)?,
            sector: 0,
            bytes: 0,
            action,
            category: category(letters)?,
            pid,
            device,
            cpu,
            sequence: 0,
            error: 0,
            payload: Payload::None,
        };
        let what = self.without_command(what, &mut event)?;
        if self.event == b"block_rq_remap" {
            // The number of bios follows the extent.
            let end = what.iter().rposition(|&b| b == b' ')?;
            extent(&mut event, &what[..end])?;
        } else {
            extent(&mut event, what)?;
        }
        if event.bytes == 0 {
            event.sector = if event.sector == u64::MAX { 0 } else { event.sector };
        } else if matches!(action, Action::Insert | Action::Issue)
            && let Some(ioprio) = Words::new(what).nth(3).and_then(priority)
        {
            event.payload = Payload::Priority(ioprio);
        }
        let is_outcome = matches!(self.event, b"block_rq_complete" | b"block_rq_requeue" | b"block_bio_complete");
        let of_event = match bracket {
            Some(text) if is_outcome => {
                event.error = error_number(text.trim_ascii())?;
                None
            }
            Some(text) => Some(text.trim_ascii()).filter(|name| !name.is_empty()),
            None => None,
        };
        let name = of_event.or(process).filter(|_| pid != 0 && !is_outcome);
        Some((event, name.map(ProcessName::new)))
    }

    /// Removes the bytes and the command of requests, such as `4096 ()`. Marks a passed-through
    /// command in the event, because its sectors have no meaning.
    fn without_command<'w>(&self, what: &'w [u8], event: &mut BlkEvent) -> Option<&'w [u8]> {
        let mut words = Words::new(what);
        let before = words.clone();
        let first = words.next()?;
        let command = if first.starts_with(b"(") { before.rest() } else { words.rest() };
        if !command.starts_with(b"(") {
            return Some(what);
        }
        let close = command.iter().position(|&b| b == b')')?;
        if !command[1..close].trim_ascii().is_empty() {
            event.category |= Category::PC;
        }
        Some(command[close + 1..].trim_ascii())
    }
}

/// Returns whether a text is `system:name` or `name`.
fn is_event_name(name: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        part.first().is_some_and(|&b| b.is_ascii_alphabetic() || b == b'_')
            && part.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    };
    name.split(|&b| b == b':').all(is_word)
}

/// The running process and the CPU.
struct Origin<'l> {
    process: Option<&'l [u8]>,
    pid: u32,
    cpu: u32,
}

impl<'l> Origin<'l> {
    fn of(text: &'l [u8]) -> Option<Self> {
        if text.trim_ascii().is_empty() {
            return Some(Self { process: None, pid: 0, cpu: 0 });
        }
        let (task, cpu) = split_cpu(text).or_else(|| split_latency(text)).unwrap_or((text, 0));
        let task = without_group(task.trim_ascii());
        let blank = task.iter().rposition(|&b| b == b' ' || b == b'\t');
        let last = &task[blank.map_or(0, |at| at + 1)..];
        // perf prints the number of the thread as a separate word, possibly as `pid/tid`. The
        // kernel's pid is the number of the thread.
        let thread = last.rsplit(|&b| b == b'/').next().unwrap_or(last);
        let is_perf = last.split(|&b| b == b'/').all(|number| number_u32(number).is_some());
        let (process, pid) = if is_perf {
            (blank.map_or(&task[..0], |at| &task[..at]), thread)
        } else {
            let dash = task.iter().rposition(|&b| b == b'-')?;
            (&task[..dash], &task[dash + 1..])
        };
        let process = process.trim_ascii();
        let is_unknown = process.is_empty() || process == b"<...>" || process == b"<idle>" || process.starts_with(b":");
        // perf prints -1 for an unknown thread.
        Some(Self { process: (!is_unknown).then_some(process), pid: number_u32(pid)?, cpu })
    }
}

/// Splits a text at the last `[cpu]`. Returns the text before `[cpu]`, and the CPU.
fn split_cpu(text: &[u8]) -> Option<(&[u8], u32)> {
    text.iter().enumerate().rev().filter(|(_, b)| **b == b'[').find_map(|(at, _)| {
        let close = text[at..].iter().position(|&b| b == b']')?;
        let cpu = number_u32(&text[at + 1..at + close])?;
        let is_apart = at == 0 || text[at - 1].is_ascii_whitespace();
        is_apart.then_some((&text[..at], cpu))
    })
}

/// Splits a text at the CPU and the flags of the latency format, such as `1d..1.`. Returns the text
/// before them, and the CPU.
fn split_latency(text: &[u8]) -> Option<(&[u8], u32)> {
    let text = text.trim_ascii_end();
    let blank = text.iter().rposition(|b| b.is_ascii_whitespace())?;
    let (task, word) = (&text[..blank], &text[blank + 1..]);
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    let flags = &word[digits..];
    let is_flag = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'#' | b'*' | b'!');
    let are_flags = (4..=8).contains(&flags.len()) && flags.iter().all(is_flag);
    Some((task, number_u32(&word[..digits]).filter(|_| are_flags)?))
}

/// Removes the text that the option `record-tgid` of tracefs adds: `( 1234)` or `(-----)`.
fn without_group(task: &[u8]) -> &[u8] {
    let Some(open) = task.iter().rposition(|&b| b == b'(').filter(|_| task.ends_with(b")")) else { return task };
    let inner = task[open + 1..task.len() - 1].trim_ascii();
    let is_group = !inner.is_empty() && (number(inner).is_some() || inner.iter().all(|&b| b == b'-'));
    if is_group && open > 0 { task[..open].trim_ascii() } else { task }
}

/// Parses the letters of a request. Operations of drivers and of zones count as commands, but a
/// zone append is a write. A flush that the kernel sends is `FF`.
fn category(letters: &[u8]) -> Option<Category> {
    let letters: Vec<u8> = letters.iter().copied().filter(|&b| b != b'U').collect();
    match &letters[..] {
        [b'F', b'F', ..] => Some(Category::FLUSH),
        [b'Z', b'A', rest @ ..] => Category::from_letters(&[b"W", rest].concat()),
        [b'Z', ..] => Some(Category::PC),
        [b'N', rest @ ..] => Some(Category::from_letters(&[b"N", rest].concat())? | Category::PC),
        other => Category::from_letters(other),
    }
}

/// Parses `class,hint,level`.
fn priority(text: &[u8]) -> Option<IoPriority> {
    let mut parts = text.split(|&b| b == b',');
    let class = match parts.next()? {
        b"none" => IoClass::None,
        b"rt" => IoClass::RealTime,
        b"be" => IoClass::BestEffort,
        b"idle" => IoClass::Idle,
        _ => return None,
    };
    number_u32(parts.next()?)?;
    let level = u8::try_from(number(parts.next()?)?).ok().filter(|&level| level <= LEVEL_MAX)?;
    parts.next().is_none().then(|| IoPriority::new(class, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> (BlkEvent, String) {
        match Tracepoints.parse(line.as_bytes()) {
            EventLine::Event(event, name) => (event, name.map(ProcessName::to_text).unwrap_or_default()),
            EventLine::Bad => panic!("bad: {line}"),
            EventLine::Lost(_) | EventLine::Other => panic!("no event: {line}"),
        }
    }

    #[test]
    fn process_cpu_and_time_are_parsed_for_every_tool() {
        let what = "8,16 W 8192 () 838826496 + 16";
        for (origin, name, pid, cpu) in [
            ("     jbd2/sdb1-8   812 [001] ", "jbd2/sdb1-8", 812, 1),
            ("my job 2  4020/4021 [012] ", "my job 2", 4021, 12),
            ("C2 Compiler Thre  4020 ", "C2 Compiler Thre", 4020, 0),
            ("       jbd2/sdb1-8-812     [001] ..... ", "jbd2/sdb1-8", 812, 1),
            ("  kworker/0:1H-54      [000] d..2. ", "kworker/0:1H", 54, 0),
            ("    my: 1.5: job-9526  [003] ", "my: 1.5: job", 9526, 3),
            ("   web [x]-9526    (   9520) [003] d..1 ", "web [x]", 9526, 3),
            ("           <...>-77      (-------) [003] .... ", "", 77, 3),
            ("          :4711  4711 [000] ", "", 4711, 0),
            ("(sd-pam)  4711 [000] ", "(sd-pam)", 4711, 0),
        ] {
            for event_name in ["block:block_rq_issue:", "block_rq_issue:      ", "  1 block:block_rq_issue:"] {
                let line = format!("{origin} 20.412006: {event_name} {what}");
                let (event, found) = event(&line);
                assert_eq!((&found[..], event.pid, event.cpu), (name, pid, cpu), "{line}");
                assert_eq!((event.time.as_ns(), event.sector, event.bytes), (20_412_006_000, 838_826_496, 8_192));
                assert_eq!((event.device, event.action), (8 << 20 | 16, Action::Issue));
            }
        }
    }

    #[test]
    fn fields_of_every_kernel_are_read() {
        let of = |what: &str| event(&format!("fio-7 [000] ..... 1.000002: {what}"));
        let (issue, name) = of("block_rq_issue: 7,0 WS 65536 () 2048 + 128 idle,0,7 [my job]");
        assert_eq!((&name[..], issue.bytes), ("my job", 65_536));
        assert!(matches!(issue.payload, Payload::Priority(ioprio) if ioprio.to_string() == "idle"));
        let (old, _) = of("block_rq_insert: 202,1 R 0 () 6139904 + 64 [cksum]");
        assert_eq!((old.bytes, &old.payload), (32_768, &Payload::None));
        let (done, name) = of("block_rq_complete: 7,0 RA () 512 + 8 be,0,4 [-5]");
        assert_eq!((done.error, done.action, &name[..]), (-5, Action::Complete, ""));
        let (flush, _) = of("block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]");
        assert_eq!((flush.sector, flush.bytes, flush.category), (0, 0, Category::FLUSH));
        let (remap, _) = of("block_bio_remap: 8,0 R 2056 + 8 <- (8,1) 8");
        let from = Payload::Remap { from_device: 8 << 20 | 1, from_sector: 8, to_device: 8 << 20 };
        assert_eq!(remap.payload, from);
        assert_eq!(of("block_rq_remap: 8,0 R 2056 + 8 <- (8,1) 8 1").0.payload, from);
        assert_eq!(of("block_split: 8,0 R 8 / 16 [dd]").0.payload, Payload::SplitAt(16));
        let (command, _) = of("block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [udevd]");
        assert!(command.category.contains(Category::PC));
        let (append, _) = of("block_rq_issue: 8,0 ZAS 4096 () 8 + 8 none,0,0 [f2fs]");
        assert!(append.category.contains(Category::WRITE) && !append.category.contains(Category::PC));
    }

    #[test]
    fn other_events_between_block_events_are_skipped() {
        for line in [
            "# tracer: nop",
            "cpus=4",
            "version = 6",
            "CPU 3 is empty",
            "Tracing block:block_rq_issue. Ctrl-C to end.",
            "\tffffffff8130c3c1 blk_peek_request+0x1 ([kernel.kallsyms])",
            " => blk_mq_start_request",
            "bash-7 [001] ..... 14.510030: block_plug: [fio]",
            "bash-7 [001] ..... 14.509535: block_touch_buffer: 254,0 sector=184731 size=4096",
            "bash 812 [001] 205791.412006: sched:sched_switch: prev_comm=bash",
        ] {
            assert!(matches!(Tracepoints.parse(line.as_bytes()), EventLine::Other), "{line}");
        }
        for (line, events) in [
            ("CPU:3 [LOST 20 EVENTS]", 20),
            ("CPU:3 [LOST EVENTS]", 1),
            ("CPU:1 [123 EVENTS DROPPED]", 123),
            ("fio 7 [001] 1.5: PERF_RECORD_LOST lost 12", 12),
        ] {
            assert!(matches!(Tracepoints.parse(line.as_bytes()), EventLine::Lost(lost) if lost == events), "{line}");
        }
        for line in ["fio-7 [000] 1.5: block_rq_issue: 8,0 R 4096 () 12 +", "fio-7 [000] 1.5:", "8,0 R"] {
            assert!(matches!(Tracepoints.parse(line.as_bytes()), EventLine::Bad), "{line}");
        }
    }
}
