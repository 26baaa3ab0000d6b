//! Options of time, rates, and the process.

use super::ValueKind::{Bool, Choice, Flag, Float, Number, Numbers, Range, Text};
use super::{
    BYTES, COUNT, COUNT_1, Category, INT_MAX, JobOption, MICROSECONDS, SECONDS, TIME_MAX_US, Treatment, Unit, options,
};
use Treatment::Honoured;

const NO_CPU: Treatment = Treatment::none("iosched does not model CPU time");
const NO_MEMORY: Treatment = Treatment::none("iosched does not model buffers in memory");
const STEADY: Treatment = Treatment::unless(
    &[],
    "iosched does not end a run when its metrics are steady",
    "set runtime, and set ramp_time for the warm-up",
);
const WITH_STEADY: Treatment = Treatment::With("steadystate");
const FLOW: Treatment = Treatment::With("flow");
/// Limits of a rate for each direction.
const RATE: super::ValueKind = Numbers(Unit::Bytes, 0, i64::MAX as u64);
const RATE_IOPS: super::ValueKind = Numbers(Unit::Count, 0, INT_MAX);

options! {
    /// Duration.
    TIME, Pace, &[];
    "runtime" | "timeout", SECONDS, Honoured, "end the job after this time";
    "time_based", Flag, Honoured, "repeat the work until runtime is over";
    "ramp_time", SECONDS, Honoured, "length of the warm-up; the results leave out the I/Os of the warm-up";
    "ramp_size", BYTES, Treatment::unless(&["0"],
        "iosched supports a warm-up of a given time, but not of a given number of bytes", "use \
     ramp_time"), "length of the warm-up as a number of bytes";
    "startdelay", Range(Unit::Seconds), Honoured, "start the job after this time, or after a random time from a range";
    "steadystate" | "ss", Text, STEADY, "end the job when a metric is steady";
    "steadystate_duration" | "ss_dur", SECONDS, WITH_STEADY, "how long the metric must be steady";
    "steadystate_ramp_time" | "ss_ramp", SECONDS, WITH_STEADY, "length of the warm-up before the first check";
    "steadystate_check_interval" | "ss_interval", SECONDS, WITH_STEADY, "time between two checks";
    "clocksource", Choice(&["gettimeofday", "clock_gettime", "cpu"]), Treatment::none("time is virtual"),
        "source of the time";
    "gtod_cpu", COUNT, NO_CPU, "CPU that only reads the clock";
    "job_start_clock_id", COUNT, Treatment::none("changes only fio's own output"),
        "clock for the start time of the job in the output";
}

options! {
    /// Order of the jobs.
    ORDER, Pace, &[];
    "numjobs", Number(Unit::Count, 1, INT_MAX), Honoured, "number of copies of the job";
    "name", Text, Honoured, "name of the job, instead of the name of its section";
    "description", Text, Honoured, "a text to report with the job";
    "stonewall" | "wait_for_previous", Flag, Honoured, "start only after all earlier jobs have ended";
    "wait_for", Text, Honoured, "start only after all copies of the named job have ended";
    "new_group", Flag, Honoured, "begin a new group for reporting";
    "group_reporting", Flag, Honoured, "report the metrics of a group together";
    "exitall", Flag, Honoured, "end the other jobs when this job ends";
    "exit_what", Choice(&["group", "stonewall", "all"]), Honoured, "which jobs exitall ends";
    "exitall_on_error", Flag, Treatment::none("in iosched, I/Os to a modelled device never fail"), "end \
        the other jobs when this job has an error";
    "thread", Flag, Treatment::none("iosched treats threads and processes in the same way"),
        "use a thread instead of a process";
    "flow", COUNT, Treatment::unless(&["0"], "in iosched, no job waits for the progress of another job",
        "give each job a rate_iops"), "weight of the I/Os of this job in its flow";
    "flow_id", COUNT, FLOW, "number of the flow that this job belongs to";
    "flow_sleep", COUNT, FLOW, "time in us that a job waits when the job is ahead of the other jobs";
    "flow_watermark", COUNT, FLOW, "how far a job can be ahead of the other jobs";
}

options! {
    /// Rates and think time.
    RATES, Pace, &[];
    "thinktime", MICROSECONDS, Honoured, "pause between I/Os";
    "thinktime_spin", MICROSECONDS, Honoured, "how long the job uses the CPU during each pause";
    "thinktime_blocks", COUNT, Honoured, "number of I/Os between two pauses";
    "thinktime_blocks_type", Choice(&["complete", "issue"]), Honoured,
        "whether thinktime_blocks counts completed or submitted I/Os";
    "thinktime_iotime", SECONDS, Honoured, "how long the job does I/O between two pauses";
    "rate", RATE, Honoured, "largest rate, in bytes per second";
    "rate_min" | "ratemin", RATE, Honoured, "smallest rate, in bytes per second";
    "rate_iops", RATE_IOPS, Honoured, "largest rate, in IOPS";
    "rate_iops_min", RATE_IOPS, Honoured, "smallest rate, in IOPS";
    "rate_process", Choice(&["linear", "poisson"]), Honoured, "how to spread the I/Os over time: evenly or at random";
    "rate_cycle" | "ratecycle", COUNT_1, Honoured, "time in ms over which a rate is averaged";
    "rate_ignore_thinktime", Bool, Honoured, "after a pause, continue at the given rate instead of catching up";
    "latency_target", MICROSECONDS, Honoured, "search for the largest depth at which I/Os meet this latency";
    "latency_window", MICROSECONDS, Honoured, "time for which the search tests each depth";
    "latency_percentile", Float(0.0, 100.0), Honoured, "share of I/Os that must meet the latency target, in %";
    "latency_run", Bool, Honoured, "after the search, continue with the depth that was found";
    "max_latency", Numbers(Unit::Microseconds, 0, TIME_MAX_US), Honoured,
        "end the job if an I/O takes longer than this time";
}

options! {
    /// Properties of the process.
    PROCESS, Process, &[];
    "prio", Number(Unit::Count, 0, 7), Honoured, "I/O priority level: 0 is the highest";
    "prioclass", Number(Unit::Count, 0, 3), Honoured, "I/O priority class: 1 real time, 2 best effort, 3 idle";
    "priohint", Number(Unit::Count, 0, 1023), Treatment::none("modelled devices ignore hints"), "I/O priority hint";
    "cgroup", Text, Honoured, "cgroup of the job";
    "cgroup_weight", Number(Unit::Count, 10, 1000), Honoured, "weight of the job's cgroup";
    "cgroup_nodelete", Bool, Treatment::none("cgroups exist only during the run"), "keep the cgroup at the end";
    "nice", Number(Unit::Count, -20, 19), NO_CPU, "CPU priority";
    "cpumask", Number(Unit::Count, 0, u64::MAX), NO_CPU, "CPUs for the job, as a bit mask";
    "cpus_allowed", Text, NO_CPU, "CPUs for the job";
    "cpus_allowed_policy", Choice(&["shared", "split"]), NO_CPU, "how the copies of a job share the CPUs";
    "numa_cpu_nodes", Text, NO_CPU, "NUMA nodes for the job";
    "numa_mem_policy", Text, NO_MEMORY, "NUMA nodes for the memory of the job";
    "mem" | "iomem", Text, NO_MEMORY, "kind of memory for the buffers";
    "mem_align" | "iomem_align", BYTES, NO_MEMORY, "alignment of buffers";
    "hugepage-size", BYTES, NO_MEMORY, "size of a huge page";
    "lockmem", BYTES, NO_MEMORY, "amount of memory to lock";
    "uid", Number(Unit::Count, -1, INT_MAX), Treatment::none("iosched does not model users"), "user of the job";
    "gid", Number(Unit::Count, -1, INT_MAX), Treatment::none("iosched does not model users"), "group of the job";
}
