//! Traces that are damaged, incomplete, or not traces.

mod content;
mod formats;
mod times;
mod whole;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::list::{Answer, Case, Sandbox, case, of_repository};

pub(crate) const CASES: &[Case] = &[
    case("the file of one CPU is not taken for the recording", whole::one_cpu_alone),
    case("a comparison of a part needs consent, and says it first, last and in the report", whole::compared),
    case("a search on a part needs consent", whole::searched),
    case("the files that are read together are told", whole::read_together),
    case("a CPU that is not there and that nothing is missing of is no error", whole::idle_cpu),
    case("a CPU that is not there and that something is missing of is an error", whole::cpu_between),
    case("a CPU's file that is cut at a whole record shows by what never completes", whole::cut_at_a_record),
    case("blkparse's text of one CPU is not taken for the recording", whole::blkparse_of_one_cpu),
    case("events filtered by process are told as requests without completions", whole::without_completions),
    case("a part is not written on as if it were the whole", whole::not_written),
    case("a slice of what is cut is not written, even where it lies before the cut", whole::not_sliced),
    case("a part is not printed to be piped on", whole::not_printed),
    case("a compressed block trace that ends early is an error", whole::zstd_cut),
    case("compressed text that ends early is an error", whole::gzip_cut),
    case("a record that is cut is an error, in every binary format", whole::records_cut),
    case("a line that is cut is an error, in every format of text", whole::lines_cut),
    case("a last line without an end is read, and told", whole::no_line_end),
    case("a log of fio that was not ended is told", whole::fio_not_ended),
    case("a job that replays a part of a log is refused", whole::job_of_a_part),
    case("recordings put one behind the other are told from one recording", whole::one_behind_the_other),
    case("many records lost while recording need consent, few are told", whole::dropped),
    case("what is said of a part is data in JSON", whole::as_data),
    case("a whole recording is not doubted", whole::whole),
    case("a heading that names columns is believed, in any order and unit", formats::headed),
    case("a heading of other columns is not one bad line of a format it is not of", formats::other_heading),
    case("a refused trace names one cause, and with --verbose every format", formats::tried),
    case("the unit of bare times can be given", formats::time_unit),
    case("a table is read by the names given to its columns", formats::columns),
    case("what is wrong in a table is told with its column", formats::named_columns),
    case("names of columns that do not do are told with those that do", formats::wrong_columns),
    case("a format can be forced, and what does not fit is told", formats::forced),
    case("columns can be named wherever a trace is read", formats::columns_everywhere),
    case("how to read a trace is refused where there is none", formats::no_trace),
    case("many bad lines are refused, unless the format is given and a part will do", formats::many_bad_lines),
    case("few bad lines are told with their places", formats::few_bad_lines),
    case("line ends and marks of other systems change nothing", formats::other_systems),
    case("text in UTF-16 is told as such", formats::utf_16),
    case("a compression that is not read is told by name", formats::other_compression),
    case("a file is what it holds, not what its name ends in", formats::misnamed),
    case("compressed files put one behind the other are one", formats::members),
    case("a directory is told with what lies in it", formats::directory),
    case("standard input is a trace for every command", formats::standard_input),
    case("a pipe is a trace, also where it is read twice", formats::pipe),
    case("what is not there is told with the names that were looked for", formats::not_there),
    case("a part of a trace that is nothing is refused with what there is", content::no_part),
    case("a time before a trace's beginning is none", content::times_below_0),
    case("nothing that is left after filtering is told", content::nothing_left),
    case("a trace of one request has figures", content::one_request),
    case("a trace whose times are all 0 has figures", content::no_time),
    case("coarse times give the latency of exact ones, and are told", times::coarse),
    case("rounded latencies leave one I/O in flight", times::coarse_latencies),
    case("times that step back are told, and replayed as fio does", times::stepping),
    case("a trace without times is replayed one I/O after another", times::none),
    case("impossible times and places name the likely unit", times::impossible),
    case("positions beyond any device are told, and change no figure silently", content::far_positions),
    case("I/Os of no length are passed over and told", content::no_length),
    case("negative numbers are told with their lines", content::negative),
    case("numbers too large to be any are told with their lines", content::too_large),
    case("a trace of several devices is told before it goes to one", content::several_devices),
    case("a trace without requests is refused where it would be replayed", content::no_requests),
];

/// Copies the file of one CPU of a sample, without the files of the other CPUs. Returns its path.
fn cpu(place: &Sandbox, number: u32) -> PathBuf {
    let name = format!("pgbench.blktrace.{number}.zst");
    let path = place.path(&name);
    fs::copy(of_repository("crates/trace/samples").join(name), &path).unwrap();
    path
}

/// Returns a table with `rows` reads and writes of four processes.
fn table(rows: u64) -> String {
    let row = |n: u64| {
        let (pid, op) = (n % 4, if n.is_multiple_of(3) { "W" } else { "R" });
        format!("{},{pid},{op},1,{},8,8388608,100000,,p{pid}\n", n * 1_000_000, n * 977 % 100_000 * 8)
    };
    let heading = "arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process\n";
    heading.to_owned() + &(0..rows).map(row).collect::<String>()
}

/// Returns the answer of `trace info` for a file with this content.
#[track_caller]
fn info(place: &Sandbox, name: &str, content: impl AsRef<[u8]>) -> Answer {
    place.file(name, content);
    place.iosched(&["trace", "info", name])
}

/// Returns the answer of the command with this content on standard input.
#[track_caller]
fn fed(place: &Sandbox, args: &[&str], content: &[u8]) -> Answer {
    let mut child =
        place.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let content = content.to_owned();
    // The command may end before it has read all of its input.
    let feeder = std::thread::spawn(move || drop(input.write_all(&content)));
    let answer = Answer::of(child.wait_with_output().unwrap(), args);
    feeder.join().unwrap();
    answer
}

/// Returns the output of a program with this content on standard input.
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
