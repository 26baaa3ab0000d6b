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
    case("the file of one CPU is reported as incomplete", whole::file_of_one_cpu),
    case("compare requires --partial for an incomplete recording and warns", whole::compare_requires_partial),
    case("tune requires --partial for an incomplete recording", whole::tune_requires_partial),
    case("files that are read together are named", whole::read_together),
    case("a missing CPU file is no error if all requests are complete", whole::missing_file_of_an_idle_cpu),
    case("missing CPU files are an error if requests are incomplete", whole::missing_files_of_busy_cpus),
    case("a CPU file truncated between records is incomplete", whole::truncated_between_records),
    case("blkparse text of one CPU is reported as incomplete", whole::blkparse_of_one_cpu),
    case("a trace without completions gets a warning", whole::without_completions),
    case("trace commands write incomplete traces only with --partial", whole::writing_requires_partial),
    case("slice refuses a truncated trace, even before the truncation", whole::slice_of_a_truncated_trace),
    case("convert prints no incomplete trace to standard output", whole::incomplete_trace_is_not_printed),
    case("a truncated zstd block trace is an error", whole::truncated_zstd),
    case("a truncated or damaged gzip trace is an error", whole::truncated_or_damaged_gzip),
    case("a truncated record is an error in every binary format", whole::truncated_records),
    case("a truncated last line is an error in ten text formats", whole::truncated_lines),
    case("a last line without a newline is read with a warning", whole::no_final_newline),
    case("a fio log with an open file gets a warning", whole::fio_log_with_an_open_file),
    case("a job that replays a truncated log is refused", whole::job_with_a_truncated_log),
    case("concatenated recordings are refused; slight disorder is not", whole::concatenated_recordings),
    case("many lost records are an error, few are a warning", whole::lost_records),
    case("JSON lists what is missing from an incomplete recording", whole::missing_parts_in_json),
    case("a complete recording gets no warning or note", whole::complete_recordings),
    case("a heading sets the order and the units of the columns", formats::columns_in_the_heading),
    case("a table with an unknown heading is refused", formats::unknown_heading),
    case("the error for an unknown format lists all formats if --verbose", formats::unknown_format),
    case("--time-unit sets the unit of times without a unit", formats::time_unit),
    case("--columns names the columns of a table", formats::columns),
    case("errors in a table name the line or the column", formats::errors_in_tables),
    case("wrong values of --columns are refused", formats::wrong_columns),
    case("--input-format overrides detection and reports mismatches", formats::forced_format),
    case("convert, compare and tune accept --columns", formats::commands_accept_columns),
    case("--partial is refused for a job file", formats::partial_for_a_job),
    case("many bad lines require --input-format and --partial", formats::many_bad_lines),
    case("a single bad line is reported with its line number", formats::one_bad_line),
    case("CRLF and byte order marks do not change the result", formats::crlf_and_byte_order_marks),
    case("UTF-16 text and zero bytes are reported", formats::utf_16_and_zero_bytes),
    case("the error for unsupported compression names it", formats::unsupported_compression),
    case("the content decides the format, not the file name", formats::wrong_file_names),
    case("concatenated compressed files are read as one", formats::concatenated_compressed_files),
    case("the error for a directory names traces in it", formats::directory),
    case("trace commands and compare read standard input", formats::standard_input),
    case("remap, which reads its input twice, accepts a pipe", formats::pipe),
    case("the error for a missing trace lists the tried names", formats::missing_file),
    case("the error for an empty slice or filter describes the trace", content::empty_slice_or_filter),
    case("slice refuses negative times", content::negative_times),
    case("a filter without matches writes nothing", content::filter_without_matches),
    case("a trace of one request gives finite metrics", content::one_request),
    case("a trace whose times are all 0 gives finite metrics", content::all_times_zero),
    case("coarse times do not distort latencies and are reported", times::coarse_times),
    case("rounded latencies do not cause overlapping I/O", times::coarse_latencies),
    case("times that go backwards are reported and replayed as by fio", times::backward_times),
    case("a trace without times is replayed one I/O after another", times::no_usable_times),
    case("the likely unit is suggested for impossible times and offsets", times::impossible_times_and_offsets),
    case("trace commands and compare accept sectors up to 2^64 - 1", content::huge_sector_numbers),
    case("I/O of length 0 is skipped and reported", content::length_zero),
    case("negative numbers are reported with their lines", content::negative_numbers),
    case("numbers that are too large are reported with their lines", content::numbers_too_large),
    case("compare reports a trace of several devices", content::several_devices),
    case("compare refuses a trace without requests", content::no_requests),
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
