//! The most likely reason why a file is in no known format, as a sentence with the remedy.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::columns::{DELIMITERS, Delimiter, Fields};
use super::lines::{BYTES_EXPECTED, LINES_MAX, is_passed_over, is_rounded};
use super::{csv, guess, heading, rewritten, tracepoints};
use crate::error::Misfit;
use crate::text::{Words, decimal};

/// Minimum number of columns of a table that can hold a time, an operation, a start and a length.
const COLUMNS_MIN: usize = 4;

/// Returns the cause for a file that begins with `head`. `misfits` are the text
/// formats that were tried.
pub(super) fn of(head: &[u8], is_text: bool, misfits: &[Misfit]) -> Cow<'static, str> {
    let text = String::from_utf8_lossy(head);
    if crate::rates::looks_like_rates(&text) {
        let Some(fault) = crate::rates::fault(&text) else { return RATES.into() };
        return format!("it looks like a table of rates from iostat or sar. However, {fault}; paste the table again")
            .into();
    }
    if let Some(known) = known_content(head) {
        return known.into();
    }
    if !is_text {
        return "it is binary data without records of blktrace or vscsiStats".into();
    }
    if let Some(remedy) = rewritten::remedy(head) {
        return remedy.into();
    }
    if let Some(known) = likely_text(head) {
        return known.into();
    }
    if let Some(problem) = csv::lacking(head) {
        let table = "it is a table, but its heading does not have all columns that iosched needs";
        let guess = first_line(head).and_then(heading::guess);
        let example = guess.map_or_else(String::new, |names| format!(", perhaps {names}"));
        return format!("{table}: {problem}; name its columns with --columns{example}").into();
    }
    if let Some(Misfit { format, .. }) = misfits.iter().find(|misfit| misfit.expected == BYTES_EXPECTED) {
        return format!(
            "it looks like {format}, but its lengths are below 512 bytes, so the file has other columns or units; \
             name the columns, such as --columns time_s,sector,nr_sectors,op,device"
        )
        .into();
    }
    let nearest = misfits.iter().max_by_key(|misfit| misfit.records).filter(|misfit| misfit.records > 0);
    let table = table(head);
    let is_headed = table.is_some() && first_line(head).is_some_and(|line| !line.iter().any(u8::is_ascii_digit));
    let nearest = nearest.filter(|_| !is_headed);
    if let Some(Misfit { format, line: Some(line), found, expected, .. }) = nearest {
        return format!(
            "some of its lines are records of {format}, but line {line} is not: found {found:?}, expected {expected}; \
             to read the file nevertheless, add --input-format {format} and --partial"
        )
        .into();
    }
    let Some(Table { columns, delimiter, rows }) = table else {
        return "its lines are neither records of a known format nor rows of a table; name the format with \
                --input-format, or the columns with --columns"
            .into();
    };
    let between = match delimiter {
        Delimiter::Byte(b',') => "commas",
        Delimiter::Byte(b'\t') => "tabs",
        Delimiter::Byte(b';') => "semicolons",
        Delimiter::Byte(_) => "bars",
        Delimiter::Blanks => "blanks",
    };
    if columns < COLUMNS_MIN {
        return format!(
            "it is a table of {columns} columns separated by {between}. A trace needs a time, an operation, a start \
             and a length; add the column that is missing, for example with sed 's/$/,R/'"
        )
        .into();
    }
    let named = first_line(head).filter(|_| is_headed).and_then(heading::guess);
    let example = match named.or_else(|| guess::columns(&rows, delimiter)) {
        Some(names) => format!("perhaps --columns {names}"),
        None => "such as --columns time_s,op,offset_bytes,length_bytes,-".to_owned(),
    };
    format!(
        "it is a table of {columns} columns separated by {between}, and their meaning is unknown; name the columns, \
         {example}"
    )
    .into()
}

fn first_line(head: &[u8]) -> Option<&[u8]> {
    head.split(|&b| b == b'\n').find(|line| !is_passed_over(line))
}

/// A table in text.
struct Table<'a> {
    columns: usize,
    delimiter: Delimiter,
    /// The lines that have this number of columns, and numbers in them.
    rows: Vec<&'a [u8]>,
}

/// Returns the table if most lines have the same number of columns and contain numbers.
fn table(head: &[u8]) -> Option<Table<'_>> {
    let complete_lines = &head[..head.iter().rposition(|&b| b == b'\n').unwrap_or(head.len())];
    let lines = || {
        complete_lines
            .split(|&b| b == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !is_passed_over(line))
            .take(LINES_MAX)
    };
    DELIMITERS.into_iter().find_map(|delimiter| {
        let is_number = |field: &&[u8]| field.iter().find(|b| **b != b'"').is_some_and(u8::is_ascii_digit);
        let has_numbers = |line: &&[u8]| Fields::new(line, delimiter).filter(is_number).count() > 1;
        let mut by_columns = BTreeMap::<usize, Vec<&[u8]>>::new();
        for line in lines().filter(has_numbers) {
            by_columns.entry(Fields::new(line, delimiter).count()).or_default().push(line);
        }
        let (columns, rows) = by_columns.into_iter().max_by_key(|(_, rows)| rows.len())?;
        (columns >= COLUMNS_MIN - 1 && 2 * rows.len() > lines().count()).then_some(Table { columns, delimiter, rows })
    })
}

/// Recognises other contents that users give instead of a trace. Returns a description with the
/// remedy.
fn known_content(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is text in UTF-16; convert it with iconv -f UTF-16 -t UTF-8",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "it is compressed with xz; decompress it with xz -dc",
        [b'B', b'Z', b'h', ..] => "it is compressed with bzip2; decompress it with bzip2 -dc",
        [0x04, 0x22, 0x4d, 0x18, ..] => "it is compressed with lz4; decompress it with lz4 -dc",
        [b'P', b'K', 3, 4, ..] if head.windows(3).any(|part| part == b"xl/") => {
            "it is a spreadsheet; export the sheet as CSV"
        }
        [b'P', b'K', 3, 4, ..] => "it is a zip archive; unpack it first",
        [b'7', b'z', 0xbc, 0xaf, ..] => "it is a 7z archive; unpack it first",
        [0xd0, 0xcf, 0x11, 0xe0, ..] => "it is a document of an office program; export the table as CSV",
        [b'P', b'A', b'R', b'1', ..] => "it is a Parquet table; convert it to CSV, or use it in Python",
        head if head.starts_with(b"PERFILE2") => {
            "it is a file of perf record; print its events with perf script -i FILE > trace.txt"
        }
        head if head.starts_with(b"\x17\x08\x44tracing") => {
            "it is a file of trace-cmd record; print its events with trace-cmd report FILE > trace.txt"
        }
        [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0x0a, 0x0d, 0x0d, 0x0a, ..] => {
            "it is a capture of network packets (pcap), which has no requests of a disk; record requests with \
             `iosched record`"
        }
        head if head.get(257..262) == Some(b"ustar") => "it is a tar archive; unpack it first",
        head if !head.is_empty() && head.iter().all(|&b| b == 0) => {
            "it has only zero bytes, so its data was lost; copy the file again"
        }
        head if head.trim_ascii_start().starts_with(b"{") && has(head, b"\"fio version\"") => FIO_RESULT,
        head if head.starts_with(b"AAA,progname") => {
            "it is a file of nmon, which has rates and no requests; record requests with `iosched record`"
        }
        head if head.trim_ascii_start().starts_with(b"<") => "it is a page or document (HTML, XML), not a trace",
        head if head.trim_ascii_start().starts_with(b"{") => {
            "it is JSON, not a trace; convert its objects to a table with a heading, for example: jq -r \
             '[.time_us, .op, .offset, .length] | @csv'"
        }
        head if head.trim_ascii_start().starts_with(b"fio version 1 iolog") => {
            "it is version 1 of fio's I/O log, which has no times and no file names; write the log again with fio 3"
        }
        _ => return None,
    })
}

/// Returns the most likely kind of a text in no known format, by its first lines.
fn likely_text(head: &[u8]) -> Option<&'static str> {
    let lines = || head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !is_passed_over(line));
    let has_words = |all: [&[u8]; 2]| {
        lines().take(LINES_MAX).any(|line| all.iter().all(|word| Words::new(line).any(|found| found == *word)))
    };
    if [&b"kB_read/s"[..], b"Blk_read/s", b"MB_read/s"].into_iter().any(|rate| has_words([b"tps", rate])) {
        return Some(
            "it is the table of iostat without -x, which has no waiting times and no queue lengths; run iostat -x 1 \
             60, or make a trace with `iosched record`",
        );
    }
    if has_words([b"r_await", b"rareq-sz"]) || has_words([b"aqu-sz", b"%util"]) {
        return Some(
            "it is a part of a table of iostat -h or sar -h; paste the whole report, with its parts for reads, \
             writes and %util",
        );
    }
    if has_words([b"kr/s", b"kw/s"]) {
        return Some(
            "it is a table from iostat of FreeBSD or Solaris; iosched reads only iostat -x and sar -d of Linux",
        );
    }
    if let Some((_, known)) =
        OTHER_TOOLS.iter().find(|(words, _)| has_words([words[0].as_bytes(), words[1].as_bytes()]))
    {
        return Some(known);
    }
    let has_most = |is_such: fn(&[u8]) -> bool| {
        let (all, matching) = lines()
            .take(LINES_MAX)
            .fold((0, 0), |(all, matching), line| (all + 1, matching + usize::from(is_such(line))));
        matching > 1 && 2 * matching >= all
    };
    if has_most(|line| line.split(|b| b",;\t|\" ".contains(b)).any(is_rounded)) {
        return Some(
            "a spreadsheet has rounded its numbers (such as 1.28E+17), so some digits are lost; export the table \
             again with whole numbers, or use the original file",
        );
    }
    if has_most(is_file_access) {
        return Some(
            "it is the output of fatrace, which has files but no requests; record requests with `iosched record`",
        );
    }
    if has_most(is_disk_statistics) {
        return Some(
            "it has the counters of /proc/diskstats, which are not requests; run iostat -x 1 60, or record requests \
             with `iosched record`",
        );
    }
    if lines().take(LINES_MAX).any(is_fio_result) {
        return Some(FIO_RESULT);
    }
    let is_section = |line: &[u8]| line.starts_with(b"[") && line.ends_with(b"]");
    if lines().next().is_some_and(is_section) && lines().take(LINES_MAX).any(|line| line.contains(&b'=')) {
        return Some("it looks like a job file of fio or a file of tasks; give it to `iosched compare --workload`");
    }
    if has_most(is_bar) {
        return Some(HISTOGRAM);
    }
    if has_most(is_kernel_message) {
        return Some(
            "it is the log of the kernel (dmesg), which has no requests; record requests with `iosched record`",
        );
    }
    let first: Vec<&[u8]> = Words::new(lines().next()?).take(6).collect();
    let is_action = |word: &&[u8]| {
        [&b"add"[..], b"open", b"close", b"read", b"write", b"trim", b"sync", b"datasync"].contains(word)
    };
    let is_number = |word: &&[u8]| decimal(word, 1).is_some();
    match first[..] {
        [_, action, ..] if is_action(&action) => {
            Some("the first line `fio version 2 iolog` is missing; add it, or give --input-format fio-v2")
        }
        [time, _, action, ..] if is_number(&time) && is_action(&action) => {
            Some("the first line `fio version 3 iolog` is missing; add it, or give --input-format fio-v3")
        }
        [time, device, start, length, op] if [time, device, start, length, op].iter().all(is_number) => Some(
            "it looks like a trace of DiskSim or SSDsim, whose unit of time is unknown; name the unit, such as \
             --time-unit ms, or the columns, such as --columns time_ms,device,sector,nr_sectors,op=1:read",
        ),
        [b"COMM", b"PID", b"TYPE", b"DEV", b"BLOCK", b"BYTES", ..] => {
            Some("it is the table of iosnoop without times; record with iosnoop -ts, or with `iosched record`")
        }
        [b"TIME(ms)", b"DISK", b"COMM", b"PID", ..] => Some(
            "it is the table of bpftrace's biosnoop, which has no sectors; use the biosnoop of bcc, or `iosched \
             record`",
        ),
        _ if lines().take(LINES_MAX).any(tracepoints::is_block_event) => {
            let lines = || lines().take(LINES_MAX);
            Some(tracepoints::fault(lines().find(|line| tracepoints::is_block_event(line))?))
        }
        _ if lines().take(LINES_MAX).any(tracepoints::is_event) => Some(
            "it has kernel events as text (perf script or trace-cmd report), but iosched found no readable block \
             events at its beginning; record block:block_bio_queue, block:block_rq_issue and block:block_rq_complete, \
             or use `iosched record`",
        ),
        _ if lines().take(LINES_MAX).filter(|line| is_call(line)).count() > 1 => Some(
            "it is a list of system calls, as strace prints it. System calls are not requests of the disk; \
             record requests with `iosched record`",
        ),
        _ if lines().take(LINES_MAX).filter(|line| is_formatted_event(line)).count() > 1 => Some(
            "it looks like output of blkparse -f; give the output of blkparse without -f, or the files of blktrace",
        ),
        _ => None,
    }
}

/// Headings of tools that do not print requests. Each entry has two words of the heading, and the
/// remedy.
const OTHER_TOOLS: [([&str; 2], &str); 25] = [
    (["usecs", "distribution"], HISTOGRAM),
    (["msecs", "distribution"], HISTOGRAM),
    (["nsecs", "distribution"], HISTOGRAM),
    (
        ["swpd", "bi"],
        "it is the table of vmstat, which has sums over all disks and no requests; record requests with \
        `iosched record`",
    ),
    (
        ["IO>", "COMMAND"],
        "it is the table of iotop, which has rates and no requests; record requests with `iosched \
        record`",
    ),
    (
        ["kB_rd/s", "kB_wr/s"],
        "it is the table of pidstat, which has rates and no requests; record requests with \
        `iosched record`",
    ),
    (["read", "writ"], DSTAT),
    (["idl", "wai"], DSTAT),
    (["merged", "sectors"], "it is the table of vmstat -d, which has counters and no requests; use `iosched record`"),
    (
        ["DISK", "AVGms"],
        "it is the table of biotop, which has one sum for each process and no requests; use biosnoop, or `iosched \
         record`",
    ),
    (["OFF_KB", "FILENAME"], SLOWER),
    (["TIME", "FILENAME"], SLOWER),
    (["rtps", "wtps"], "it is the table of sar -b, which has sums over all disks; run sar -d, or use `iosched record`"),
    (
        ["AVG", "MAX"],
        "it is the output of btt, which has statistics and no requests; give the original files of blktrace",
    ),
    (["[OVERALL],", "RunTime(ms),"], "it is the result of YCSB, not a trace; record requests with `iosched record`"),
    (
        ["DiskRead,", "TimeStamp,"],
        "it looks like the events of Windows as xperf -a dumper prints them; keep the lines of disks with \
         grep -E '^ *Disk(Read|Write),', and name the columns: --columns \
         op,completed_us,process,-,-,offset_bytes,length_bytes,latency_us,device,-,-,-,-,-,-",
    ),
    (["osd", "commit_latency(ms)"], CEPH),
    (["sec", "Cur"], CEPH),
    (
        ["capacity", "operations"],
        "it is the table of zpool iostat, which has rates and no requests; record requests with `iosched record`",
    ),
    (["KB/t", "tps"], "it is a table of iostat of macOS or BSD; iosched reads only iostat -x and sar -d of Linux"),
    (["Reads", "Queued:"], "it is the summary of blkparse without its events; give the original files of blktrace"),
    (
        ["DSK", "busy"],
        "it is the output of atop, which has rates and no requests; record requests with `iosched record`",
    ),
    (["Smart", "Log"], HEALTH),
    (["smartctl", "local"], HEALTH),
    (["Copyright", "www.smartmontools.org"], HEALTH),
];
const DSTAT: &str = "it is the table of dstat, which has sums over all disks and no requests; record requests with \
    `iosched record`";
const SLOWER: &str = "it is a table of slow file operations (ext4slower and similar), not of requests of the disk; use \
                      biosnoop of bcc, or `iosched record`";
const CEPH: &str = "it is the output of a Ceph tool, which has means and no single requests; record the disks of the \
                    OSDs with `iosched record`";
const HEALTH: &str = "it is a report on the health of a disk (smartctl, nvme smart-log), which has no requests; \
    record requests with `iosched record`";
const HISTOGRAM: &str = "it is a histogram of biolatency or bpftrace, which has no requests; use biosnoop of bcc, or \
                         `iosched record`";

const RATES: &str = "it is a table of rates from iostat or sar, which has no requests; show this table with `iosched \
                     trace info`, or make a trace with `iosched record`";
const FIO_RESULT: &str = "it is a result of fio, not a trace; give the job file of this result to `iosched compare \
                          --workload`";

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|found| found == part)
}

/// Recognises a bar of a histogram: `[256, 512)   2 |@@@   |`
fn is_bar(line: &[u8]) -> bool {
    let is_range = line.starts_with(b"[") || line.starts_with(b"(");
    is_range && line.contains(&b',') && line.ends_with(b"|") && has(line, b" |")
}

/// Recognises a kernel message: `[    1.234567] text`
fn is_kernel_message(line: &[u8]) -> bool {
    let inner = line.strip_prefix(b"[").and_then(|rest| Some(&rest[..rest.iter().position(|&b| b == b']')?]));
    inner.is_some_and(|time| time.contains(&b'.') && decimal(time.trim_ascii(), 1).is_some())
}

/// Recognises an access to a file: `name(pid): RW   /path`
fn is_file_access(line: &[u8]) -> bool {
    let mut words = Words::new(line);
    let (Some(process), Some(letters), Some(path)) = (words.next(), words.next(), words.next()) else { return false };
    process.ends_with(b"):") && letters.iter().all(|b| b"RWCODM<>+".contains(b)) && path.starts_with(b"/")
}

/// Recognises disk statistics: `8 0 sda` and at least eleven counters.
fn is_disk_statistics(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = Words::new(line).take(32).collect();
    let is_number = |at: usize| words.get(at).is_some_and(|word| decimal(word, 1).is_some());
    words.len() >= 14 && is_number(0) && is_number(1) && !is_number(2) && (3..words.len()).all(is_number)
}

/// Recognises a line of fio's results, for people or for programs (`--minimal`).
fn is_fio_result(line: &[u8]) -> bool {
    (has(line, b"(g=") && has(line, b"ioengine="))
        || (matches!(line.first(), Some(b'2'..=b'5')) && line.get(1..6) == Some(b";fio-"))
}

/// Recognises `name(arguments) = result`, possibly after a process and a time.
fn is_call(line: &[u8]) -> bool {
    let calls = [&b"read("[..], b"write(", b"pread64(", b"pwrite64(", b"fsync(", b"openat(", b"preadv(", b"pwritev("];
    calls.iter().any(|call| line.windows(call.len()).any(|part| part == *call))
        && line.windows(4).any(|part| part == b") = ")
}

/// Recognises a line with a time in seconds with nine decimals, followed by a
/// letter of a blktrace event.
fn is_formatted_event(line: &[u8]) -> bool {
    let mut words = line.split(|b| matches!(b, b' ' | b'\t' | b',' | b';')).filter(|word| !word.is_empty());
    let is_time = |word: &[u8]| word.len() > 10 && word[word.len() - 10] == b'.' && decimal(word, 1).is_some();
    words.any(is_time) && words.any(|word| matches!(word, b"Q" | b"G" | b"I" | b"D" | b"C" | b"M" | b"F"))
}
