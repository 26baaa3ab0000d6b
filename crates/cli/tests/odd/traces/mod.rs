//! Traces that are damaged, in part, or something else.

mod content;
mod formats;
mod whole;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::list::{Odd, Place, Told, of_repository};

pub(crate) const CASES: &[Odd] = &[
    Odd { name: "the file of one CPU is not taken for the recording", check: whole::one_cpu_alone },
    Odd {
        name: "a comparison of a part needs consent, and says it first, last and in the report",
        check: whole::compared,
    },
    Odd { name: "a search on a part needs consent", check: whole::searched },
    Odd { name: "the files that are read together are told", check: whole::read_together },
    Odd { name: "a CPU that is not there and that nothing is missing of is no error", check: whole::idle_cpu },
    Odd { name: "a CPU that is not there and that something is missing of is an error", check: whole::cpu_between },
    Odd {
        name: "a CPU's file that is cut at a whole record shows by what never completes",
        check: whole::cut_at_a_record,
    },
    Odd { name: "blkparse's text of one CPU is not taken for the recording", check: whole::blkparse_of_one_cpu },
    Odd {
        name: "events filtered by process are told as requests without completions",
        check: whole::without_completions,
    },
    Odd { name: "a part is not written on as if it were the whole", check: whole::not_written },
    Odd { name: "a slice of what is cut is not written, even where it lies before the cut", check: whole::not_sliced },
    Odd { name: "a part is not printed to be piped on", check: whole::not_printed },
    Odd { name: "a compressed block trace that ends early is an error", check: whole::zstd_cut },
    Odd { name: "compressed text that ends early is an error", check: whole::gzip_cut },
    Odd { name: "a record that is cut is an error, in every binary format", check: whole::records_cut },
    Odd { name: "a line that is cut is an error, in every format of text", check: whole::lines_cut },
    Odd { name: "a last line without an end is read, and told", check: whole::no_line_end },
    Odd { name: "a log of fio that was not ended is told", check: whole::fio_not_ended },
    Odd { name: "a job that replays a part of a log is refused", check: whole::job_of_a_part },
    Odd { name: "recordings put one behind the other are told from one recording", check: whole::one_behind_the_other },
    Odd { name: "many records lost while recording need consent, few are told", check: whole::dropped },
    Odd { name: "what is said of a part is data in JSON", check: whole::as_data },
    Odd { name: "a whole recording is not doubted", check: whole::whole },
    Odd { name: "a heading that names columns is believed, in any order and unit", check: formats::headed },
    Odd {
        name: "a heading of other columns is not one bad line of a format it is not of",
        check: formats::other_heading,
    },
    Odd { name: "what is no trace is told with every format that was tried", check: formats::tried },
    Odd { name: "a table is read by the names given to its columns", check: formats::columns },
    Odd { name: "names of columns that do not do are told with those that do", check: formats::wrong_columns },
    Odd { name: "a format can be forced, and what does not fit is told", check: formats::forced },
    Odd { name: "columns can be named wherever a trace is read", check: formats::columns_everywhere },
    Odd { name: "how to read a trace is refused where there is none", check: formats::no_trace },
    Odd {
        name: "many bad lines are refused, unless the format is given and a part will do",
        check: formats::many_bad_lines,
    },
    Odd { name: "few bad lines are told with their places", check: formats::few_bad_lines },
    Odd { name: "line ends and marks of other systems change nothing", check: formats::other_systems },
    Odd { name: "text in UTF-16 is told as such", check: formats::utf_16 },
    Odd { name: "a compression that is not read is told by name", check: formats::other_compression },
    Odd { name: "a file is what it holds, not what its name ends in", check: formats::misnamed },
    Odd { name: "compressed files put one behind the other are one", check: formats::members },
    Odd { name: "a directory is told with what lies in it", check: formats::directory },
    Odd { name: "standard input is a trace for every command", check: formats::standard_input },
    Odd { name: "a pipe is a trace, also where it is read twice", check: formats::pipe },
    Odd { name: "what is not there is told with the names that were looked for", check: formats::not_there },
    Odd { name: "nothing that is left after filtering is told", check: content::nothing_left },
    Odd { name: "a trace of one request has figures", check: content::one_request },
    Odd { name: "a trace whose times are all 0 has figures", check: content::no_time },
    Odd { name: "positions beyond any device are told, and change no figure silently", check: content::far_positions },
    Odd { name: "I/Os of no length are passed over and told", check: content::no_length },
    Odd { name: "negative numbers are told with their lines", check: content::negative },
    Odd { name: "numbers too large to be any are told with their lines", check: content::too_large },
    Odd { name: "a trace of several devices is told before it goes to one", check: content::several_devices },
    Odd { name: "a trace without requests is refused where it would be replayed", check: content::no_requests },
];

/// One CPU's file of a sample, copied without its siblings unless they are copied, too.
fn cpu(place: &Place, number: u32) -> PathBuf {
    let name = format!("pgbench.blktrace.{number}.zst");
    let path = place.path(&name);
    fs::copy(of_repository("crates/trace/samples").join(name), &path).unwrap();
    path
}

/// A table of our own, of that many reads and writes of four processes.
fn table(rows: u64) -> String {
    let row = |n: u64| {
        let (pid, op) = (n % 4, if n.is_multiple_of(3) { "W" } else { "R" });
        format!("{},{pid},{op},1,{},8,8388608,100000,,p{pid}\n", n * 1_000_000, n * 977 % 100_000 * 8)
    };
    let heading = "arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process\n";
    heading.to_owned() + &(0..rows).map(row).collect::<String>()
}

/// What is told of a file with these bytes.
#[track_caller]
fn info(place: &Place, name: &str, content: impl AsRef<[u8]>) -> Told {
    place.file(name, content);
    place.iosched(&["trace", "info", name])
}

/// What it answers with these bytes on standard input.
#[track_caller]
fn fed(place: &Place, args: &[&str], content: &[u8]) -> Told {
    let mut child =
        place.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let content = content.to_owned();
    // It may end before it has read everything.
    let feeder = std::thread::spawn(move || drop(input.write_all(&content)));
    let told = Told::of(child.wait_with_output().unwrap(), args);
    feeder.join().unwrap();
    told
}

/// What a program makes of bytes.
#[track_caller]
fn through(program: &str, args: &[&str], content: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let content = content.to_owned();
    let feeder = std::thread::spawn(move || input.write_all(&content).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(output.status.success(), "{program}");
    output.stdout
}
