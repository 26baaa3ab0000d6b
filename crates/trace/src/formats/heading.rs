//! Recognition of a table's columns by the words of its heading. A known tool may have written the
//! heading, or the heading may state its units. For other headings, this module guesses columns for
//! a proposal.

use std::borrow::Cow;

use super::columns::{COLUMNS_MAX, Column, Columns, DELIMITERS, Delimiter, Fields, IGNORED, unquoted};

/// Words in the headings of a tool, each with the name of the column in iosched.
struct Tool {
    names: &'static [(&'static str, &'static str)],
    /// Whether only this tool uses these words. If so, other words in the heading are skipped.
    is_certain: bool,
}

/// Headings of biosnoop (bcc and libbpf), of iosnoop of perf-tools (with -s or -ts, or with -t),
/// and of the traces of Systor '17.
const TOOLS: [Tool; 4] = [
    Tool {
        names: &[
            ("TIME(s)", "completed_s"),
            ("COMM", "process"),
            ("PID", "pid"),
            ("DISK", "device"),
            ("T", "op"),
            ("SECTOR", "sector"),
            ("BYTES", "length_bytes"),
            ("QUE(ms)", "queue_ms"),
            ("LAT(ms)", "latency_ms"),
        ],
        is_certain: true,
    },
    Tool {
        names: &[
            ("STARTs", "time_s"),
            ("COMM", "process"),
            ("PID", "pid"),
            ("TYPE", "op"),
            ("DEV", "device"),
            ("BLOCK", "sector"),
            ("BYTES", "length_bytes"),
            ("LATms", "latency_ms"),
        ],
        is_certain: true,
    },
    Tool {
        names: &[
            ("ENDs", "completed_s"),
            ("COMM", "process"),
            ("PID", "pid"),
            ("TYPE", "op"),
            ("DEV", "device"),
            ("BLOCK", "sector"),
            ("BYTES", "length_bytes"),
            ("LATms", "latency_ms"),
        ],
        is_certain: true,
    },
    Tool {
        names: &[
            ("Timestamp", "time_s"),
            ("Response", "latency_s"),
            ("IOType", "op"),
            ("LUN", "device"),
            ("Offset", "offset_bytes"),
            ("Size", "length_bytes"),
        ],
        is_certain: false,
    },
];

/// Columns of tables that users often store without the heading, with the name of the tool.
pub(super) const HEADLESS: [(&str, &str); 4] = [
    ("biosnoop", "completed_s,process,pid,device,op,sector,length_bytes,latency_ms"),
    ("biosnoop -Q", "completed_s,process,pid,device,op,sector,length_bytes,queue_ms,latency_ms"),
    ("iosnoop -ts", "time_s,-,process,pid,op,device,sector,length_bytes,latency_ms"),
    ("Systor '17", "time_s,latency_s,op,device,offset_bytes,length_bytes"),
];

/// Kinds of columns, with the words in headings that mean them. The name of a column is the kind
/// and the unit of the heading.
const WORDS: [(&str, &[&str]); 10] = [
    (
        "time",
        &[
            "time",
            "timestamp",
            "ts",
            "arrival",
            "arrival_time",
            "start",
            "start_time",
            "issue",
            "issued",
            "issue_time",
            "submit",
            "submitted",
            "submit_time",
            "submission_time",
            "init_time",
            "op_time",
            "t",
        ],
    ),
    (
        "completed",
        &["end", "end_time", "complete", "complete_time", "completed", "completion", "completion_time", "finish"],
    ),
    (
        "latency",
        &[
            "latency",
            "lat",
            "response",
            "response_time",
            "responsetime",
            "service_time",
            "duration",
            "elapsed",
            "elapsed_time",
            "elapsedtime",
            "io_time",
        ],
    ),
    (
        "op",
        &[
            "op",
            "type",
            "rw",
            "opcode",
            "iotype",
            "io_type",
            "operation",
            "action",
            "cmd",
            "r/w",
            "r_w",
            "op_type",
            "optype",
            "op_name",
            "direction",
            "dir",
            "rwbs",
        ],
    ),
    (
        "offset",
        &[
            "offset",
            "off",
            "position",
            "addr",
            "address",
            "lba",
            "lbn",
            "block",
            "blkno",
            "sector",
            "pos",
            "min_offset",
            "start_offset",
            "byte_offset",
            "file_offset",
            "io_offset",
            "byteoffset",
            "start_lba",
            "start_sector",
        ],
    ),
    (
        "length",
        &[
            "size",
            "length",
            "len",
            "bytes",
            "nbytes",
            "io_size",
            "iosize",
            "request_size",
            "request_io_size",
            "sectors",
            "nr_sectors",
            "nsectors",
            "blocks",
        ],
    ),
    ("device", &["device", "dev", "disk", "volume", "lun", "disknumber", "device_id", "volumeid", "asu"]),
    ("process", &["comm", "process", "command"]),
    ("pid", &["pid", "tid"]),
    ("ioprio", &["ioprio"]),
];

/// Units in names of columns, with the words in headings that mean them.
const UNITS: [(&str, &[&str]); 8] = [
    ("ns", &["ns", "nsec", "nanosecond", "nanoseconds"]),
    ("us", &["us", "usec", "µs", "μs", "microsecond", "microseconds"]),
    ("ms", &["ms", "msec", "millisecond", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("bytes", &["b", "byte", "bytes"]),
    ("kib", &["k", "kb", "kib"]),
    ("mib", &["m", "mb", "mib"]),
    ("sectors", &["sector", "sectors"]),
];
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// Returns the columns of a tool's heading. A first column without a name contains the row's index,
/// and is skipped.
pub(super) fn of_tool(line: &[u8]) -> Option<(Columns, Delimiter)> {
    DELIMITERS.into_iter().find_map(|delimiter| {
        TOOLS.iter().find_map(|tool| {
            let ours = Fields::new(line, delimiter).take(COLUMNS_MAX).enumerate().map(|(at, field)| {
                let field = unquoted(field)?;
                let found = tool.names.iter().find(|(theirs, _)| field.eq_ignore_ascii_case(theirs.as_bytes()));
                let is_passed_over = tool.is_certain || at == 0 && is_row_number(&field);
                found.map(|(_, ours)| *ours).or_else(|| is_passed_over.then_some(IGNORED))
            });
            let ours = ours.collect::<Option<Vec<_>>>()?.join(",");
            Some((Columns::parse(&ours).ok()?, delimiter))
        })
    })
}

/// Returns whether this is the name of the first column that pandas and R add: the row's index.
fn is_row_number(name: &[u8]) -> bool {
    name.is_empty() || name.starts_with(b"Unnamed:")
}

/// Returns the columns of a heading that states the unit of its times, offsets and lengths, such
/// as `Time (ms),Op,Offset (bytes),Size [KiB]`.
pub(super) fn with_units(line: &[u8]) -> Option<(Columns, Delimiter)> {
    DELIMITERS.into_iter().filter(|delimiter| *delimiter != Delimiter::Blanks).find_map(|delimiter| {
        let words = Fields::new(line, delimiter).take(COLUMNS_MAX).map(|field| Some(word(&text(field)?)));
        let words = words.collect::<Option<Vec<_>>>()?;
        let is_clear = words.iter().all(|word| word.is_clear);
        let names = words.into_iter().map(|word| word.name).collect::<Vec<_>>().join(",");
        Some((Columns::parse(&names).ok().filter(|_| is_clear)?, delimiter))
    })
}

/// Guesses columns from the words of a heading. Returns them in the format of `--columns`, or
/// `None` if required columns are missing.
pub(super) fn guess(line: &[u8]) -> Option<String> {
    DELIMITERS.into_iter().find_map(|delimiter| {
        let fields = Fields::new(line, delimiter).take(COLUMNS_MAX);
        let names = fields.map(|field| Some(word(&text(field)?).name)).collect::<Option<Vec<_>>>()?.join(",");
        Columns::parse(&names).is_ok().then_some(names)
    })
}

fn text(field: &[u8]) -> Option<String> {
    let name: Cow<'_, [u8]> = unquoted(field)?;
    Some(String::from_utf8(name.into_owned()).ok()?.to_lowercase())
}

/// A word of a heading, with the column that the word means.
struct Word {
    name: String,
    /// Whether the word makes the unit certain, or the column needs no unit.
    is_clear: bool,
}

fn word(text: &str) -> Word {
    if Column::of_name(text).is_some() {
        return Word { name: text.to_owned(), is_clear: true };
    }
    let parts: Vec<&str> = text.split(|c: char| c.is_whitespace() || "()[]{}_-.:".contains(c)).collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty() && *part != "in").collect();
    let kind = |words: &[&str]| {
        let words = words.join("_");
        WORDS.iter().find(|(_, known)| known.contains(&words.as_str())).map(|(kind, _)| *kind)
    };
    let unit = |word: &str| UNITS.iter().find(|(_, known)| known.contains(&word)).map(|(unit, _)| *unit);
    let last = parts.last().copied().unwrap_or_default();
    let before = &parts[..parts.len().saturating_sub(1)];
    // The unit follows the word, or the word is a unit itself: bytes, sectors.
    let (kind, unit) = match (kind(before), unit(last), kind(&parts)) {
        (Some(kind), Some(unit), _) => (kind, Some(unit)),
        (_, of_itself, Some(kind)) => (kind, of_itself.filter(|_| kind == "length" || kind == "offset")),
        _ => return Word { name: IGNORED.to_owned(), is_clear: true },
    };
    let is_time = |unit: &&str| TIMES.contains(unit);
    let name = match (kind, unit) {
        ("time" | "completed" | "latency", unit) => format!("{kind}_{}", unit.filter(is_time).unwrap_or("s")),
        ("offset", Some("sectors")) => "sector".to_owned(),
        ("length", Some("sectors")) => "nr_sectors".to_owned(),
        ("offset", None) if ["lba", "lbn", "block", "blkno"].contains(&last) => "sector".to_owned(),
        ("length", None) if last == "blocks" || last == "nsectors" => "nr_sectors".to_owned(),
        ("offset" | "length", unit) => format!("{kind}_{}", unit.filter(|unit| !is_time(unit)).unwrap_or("bytes")),
        _ => kind.to_owned(),
    };
    let needs_unit = ["time", "completed", "latency", "offset", "length"].contains(&kind);
    Word { name, is_clear: unit.is_some() || !needs_unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(heading: &str) -> Option<String> {
        with_units(heading.as_bytes()).map(|(columns, _)| columns.to_string())
    }

    #[test]
    fn headings_with_units_are_mapped_to_columns() {
        for (heading, columns) in [
            (
                "Time (ms),Op,Offset (bytes),Size (bytes),Latency (us)",
                "time_ms,op,offset_bytes,length_bytes,latency_us",
            ),
            ("time [s];operation;offset [KiB];length [KiB]", "time_s,op,offset_kib,length_kib"),
            ("\"Start time (µs)\",\"R/W\",\"Sector\",\"Sectors\",host", "time_us,op,sector,nr_sectors,-"),
            ("timestamp_us\trw\toffset_bytes\tbytes\tdisk", "time_us,op,offset_bytes,length_bytes,device"),
        ] {
            assert_eq!(of(heading).as_deref(), Some(columns), "{heading}");
        }
        for unclear in ["time,op,offset (bytes),size (bytes)", "time (ms),op,lba,sectors", "time (ms),op,offset,bytes"]
        {
            assert_eq!(of(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn proposed_columns_have_the_latency_and_known_units() {
        let proposed = |heading: &str| guess(heading.as_bytes()).unwrap();
        let systor = ",Timestamp,Response,IOType,LUN,Offset,Size,x";
        assert_eq!(proposed(systor), "-,time_s,latency_s,op,device,offset_bytes,length_bytes,-");
        assert_eq!(proposed("timestamp_us\top\tlba\tsectors"), "time_us,op,sector,nr_sectors");
    }

    #[test]
    fn tool_headings_may_be_quoted_and_have_more_columns() {
        let of = |heading: &str| of_tool(heading.as_bytes()).map(|(columns, _)| columns.to_string());
        let systor = "time_s,latency_s,op,device,offset_bytes,length_bytes";
        let quoted = "\"Timestamp\",\"Response\",\"IOType\",\"LUN\",\"Offset\",\"Size\"";
        assert_eq!(of(quoted).as_deref(), Some(systor));
        assert_eq!(of(",Timestamp,Response,IOType,LUN,Offset,Size"), Some(format!("-,{systor}")));
        let newer = "TIME(s) COMM PID DISK T SECTOR BYTES PATTERN FLAGS LAT(ms)";
        let columns = "completed_s,process,pid,device,op,sector,length_bytes,-,-,latency_ms";
        assert_eq!(of(newer).as_deref(), Some(columns));
        assert_eq!(
            of("ENDs COMM PID TYPE DEV BLOCK BYTES LATms").as_deref(),
            Some("completed_s,process,pid,op,device,sector,length_bytes,latency_ms")
        );
        // Tencent uses other names.
        assert_eq!(of("Timestamp,Offset,Size,IOType,VolumeID"), None);
    }
}
