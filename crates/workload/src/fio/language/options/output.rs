//! Metrics, logs and errors, and the options of fio's built-in profiles.

use super::ValueKind::{Bool, Choice, Flag, Floats, Number, OptionalText, Text};
use super::{BYTES, COUNT, Category, JobOption, Treatment, Unit, options};
use Treatment::Honoured;

const NO_LOGS: Treatment = Treatment::none("iosched writes no logs; `iosched compare --records` keeps the results");
const FIO_OUTPUT: Treatment = Treatment::none("changes only fio's own output");
const NO_ERRORS: Treatment = Treatment::none("in iosched, I/Os to a modelled device never fail");
const NO_COST: Treatment = Treatment::none(
    "iosched measures everything, because a measurement takes no simulated \
                                            time",
);
const PROFILE: Treatment =
    Treatment::none("the option belongs to fio's built-in profiles, and has no meaning in a job");

options! {
    /// Output and logs.
    OUTPUT, Output, &[];
    "per_job_logs", Bool, NO_LOGS, "write a separate log for each job";
    "write_bw_log", OptionalText, NO_LOGS, "log of the throughput";
    "write_lat_log", OptionalText, NO_LOGS, "log of latencies";
    "write_iops_log", OptionalText, NO_LOGS, "log of IOPS";
    "write_hist_log", OptionalText, NO_LOGS, "log of histograms of latencies";
    "bwavgtime", COUNT, NO_LOGS, "time in ms over which throughput is averaged";
    "iopsavgtime", COUNT, NO_LOGS, "time in ms over which IOPS are averaged";
    "log_entries", Number(Unit::Count, 1024, 1 << 20), NO_LOGS, "initial number of lines of a log";
    "log_avg_msec", COUNT, NO_LOGS, "time in ms over which the values of a log are averaged";
    "log_hist_msec", COUNT, NO_LOGS, "time in ms that each histogram covers";
    "log_hist_coarseness", COUNT, NO_LOGS, "resolution of the histograms";
    "log_max_value" | "log_window_value", Choice(&["avg", "max", "both", "0", "1"]), NO_LOGS,
        "log the largest value instead of the average";
    "log_offset", Bool, NO_LOGS, "add offsets to the log";
    "log_prio", Bool, NO_LOGS, "add priorities to the log";
    "log_issue_time", Bool, NO_LOGS, "add times of submission to the log";
    "log_compression", Number(Unit::Bytes, 1024, 512 << 20), NO_LOGS, "compress logs in pieces of this size";
    "log_compression_cpus", Text, NO_LOGS, "CPUs that compress logs";
    "log_store_compressed", Bool, NO_LOGS, "keep logs compressed";
    "log_unix_epoch", Bool, NO_LOGS, "use the time of day in logs";
    "log_alternate_epoch", Bool, NO_LOGS, "use the time of another clock in logs";
    "log_alternate_epoch_clock_id", COUNT, NO_LOGS, "number of this other clock";
    "block_error_percentiles", Bool, NO_ERRORS, "histogram that shows how many trims came before each error";
    "stats", Bool, FIO_OUTPUT, "whether metrics are reported";
    "clat_percentiles", Bool, Honoured, "percentiles of completion latency";
    "lat_percentiles", Bool, Honoured, "percentiles of total latency";
    "slat_percentiles", Bool, Honoured, "percentiles of submission latency";
    "percentile_list", Floats(0.0, 100.0), Honoured, "which percentiles are reported";
    "significant_figures", Number(Unit::Count, 1, 10), FIO_OUTPUT, "number of digits in the output";
    "unified_rw_reporting", Choice(&["none", "mixed", "both", "0", "1", "2"]), FIO_OUTPUT,
        "report the metrics of all directions together";
    "disk_util", Bool, FIO_OUTPUT, "report the kernel's statistics of the device";
    "gtod_reduce", Bool, NO_COST, "measure less, to save time";
    "disable_lat", Bool, NO_COST, "do not measure total latency";
    "disable_clat", Bool, NO_COST, "do not measure completion latency";
    "disable_slat", Bool, NO_COST, "do not measure submission latency";
    "disable_bw_measurement" | "disable_bw", Bool, NO_COST, "do not measure throughput";
    "continue_on_error", Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]), NO_ERRORS,
        "kinds of errors after which the job continues";
    "ignore_error", Text, NO_ERRORS, "errors to ignore";
    "error_dump", Bool, NO_ERRORS, "print each error";
    "profile", Text, Treatment::unless(&[], "iosched does not have fio's built-in profiles",
        "write the jobs of the profile yourself"), "run a built-in set of jobs";
}

options! {
    /// Options of fio's built-in profiles. fio accepts them in any job.
    PROFILES, Output, &[];
    "device-names", Text, PROFILE, "devices for profile=act";
    "load", COUNT, PROFILE, "load for profile=act";
    "test-duration", Text, PROFILE, "runtime for profile=act";
    "threads-per-queue", COUNT, PROFILE, "number of threads for profile=act";
    "num-read-blocks", COUNT, PROFILE, "number of blocks in a read, for profile=act";
    "read-req-num-512-blocks", COUNT, PROFILE, "size of reads, for profile=act";
    "num-write-blocks", COUNT, PROFILE, "number of blocks in a write, for profile=act";
    "record-bytes", BYTES, PROFILE, "size of a record, for profile=act";
    "large-block-op-kbytes", COUNT, PROFILE, "size of large I/Os, for profile=act";
    "prep", Flag, PROFILE, "preparation for profile=act";
    "block", COUNT, PROFILE, "block size for profile=tiobench";
    "numruns", COUNT, PROFILE, "number of runs for profile=tiobench";
    "dir", Text, PROFILE, "directory for profile=tiobench";
    "threads", COUNT, PROFILE,
        "number of threads for profile=tiobench; to use threads instead of processes, use the option thread";
}
