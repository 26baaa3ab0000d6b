//! The twelve workloads of a validation. They are typical workloads. No probe of a calibration is
//! the same as one of these workloads.

use iosched_workload::Workload;
use iosched_workload::fio::{JobFile, Jobs, NoVariables};

/// Duration of a run of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Warm-up, which does not count, ns.
    pub warm_up_ns: u64,
    /// Measured time, ns.
    pub measured_ns: u64,
}

/// A workload of the battery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Name of the workload.
    pub name: &'static str,
    /// Short description of the workload.
    pub about: &'static str,
    /// Name of the job whose rate and 99th percentile count. Other jobs run at the same time, but
    /// do not count.
    pub watched: &'static str,
    /// Whether the workload writes.
    pub writes: bool,
    /// The jobs as a fio file, without file names, lengths and engine.
    jobs: &'static str,
}

/// Number of workloads for any device.
pub const TRIALS: usize = 12;

const fn trial(
    name: &'static str,
    about: &'static str,
    watched: &'static str,
    writes: bool,
    jobs: &'static str,
) -> Trial {
    Trial { name, about, watched, writes, jobs }
}

/// Workloads that only read. They are used for every device.
const READING: [Trial; 8] = [
    trial("lookups", "random 8 KiB reads, 6 in flight", "lookups", false, "[lookups]\nrw=randread\nbs=8k\niodepth=6\n"),
    trial(
        "readers",
        "four processes with random 4 KiB reads, each with 5 in flight",
        "readers",
        false,
        "[readers]\nrw=randread\nbs=4k\niodepth=5\nnumjobs=4\n",
    ),
    trial("scan", "sequential 512 KiB reads, 2 in flight", "scan", false, "[scan]\nrw=read\nbs=512k\niodepth=2\n"),
    trial(
        "two scans",
        "two sequential readers of 128 KiB blocks, each with 4 in flight, one in each half of the device",
        "first",
        false,
        "[first]\nrw=read\nbs=128k\niodepth=4\nsize=50%\n[second]\nrw=read\nbs=128k\niodepth=4\noffset=50%\nsize=50%\n",
    ),
    trial(
        "lookups beside a scan",
        "random 4 KiB reads, 2 in flight, while a process reads 256 KiB blocks in sequence, 4 in flight",
        "lookups",
        false,
        "[lookups]\nrw=randread\nbs=4k\niodepth=2\n[scan]\nrw=read\nbs=256k\niodepth=4\n",
    ),
    trial(
        "two classes",
        "random 8 KiB reads of two processes, one of class best effort and one of class idle, each with 8 in flight",
        "usual",
        false,
        "[usual]\nrw=randread\nbs=8k\niodepth=8\nprioclass=2\nprio=4\n[idle]\nrw=randread\nbs=8k\niodepth=8\nprioclass=3\n",
    ),
    trial(
        "bursts",
        "bursts of 24 random 4 KiB reads, with pauses of 8 ms",
        "bursts",
        false,
        "[bursts]\nrw=randread\nbs=4k\niodepth=24\nthinktime=8000us\nthinktime_blocks=24\n",
    ),
    trial(
        "large lookups",
        "random 32 KiB reads, 12 in flight",
        "lookups",
        false,
        "[lookups]\nrw=randread\nbs=32k\niodepth=12\n",
    ),
];

/// The other four workloads, if writing to the device is allowed.
const WRITING: [Trial; 4] = [
    trial(
        "updates",
        "random 8 KiB writes, 6 in flight",
        "updates",
        true,
        "[updates]\nrw=randwrite\nbs=8k\niodepth=6\n",
    ),
    trial(
        "transactions",
        "random 8 KiB I/Os, 60 % of them reads, 12 in flight",
        "transactions",
        true,
        "[transactions]\nrw=randrw\nrwmixread=60\nbs=8k\niodepth=12\n",
    ),
    trial(
        "log",
        "random 8 KiB reads, 4 in flight, while a process writes a log: sequential 8 KiB writes, each flushed",
        "lookups",
        true,
        "[lookups]\nrw=randread\nbs=8k\niodepth=4\nsize=50%\n[log]\nrw=write\nbs=8k\niodepth=1\nfsync=1\noffset=50%\nsize=50%\n",
    ),
    trial(
        "reader beside writers",
        "one random 4 KiB read at a time, while three processes write 16 KiB blocks, each with 8 in flight",
        "reader",
        true,
        "[reader]\nrw=randread\nbs=4k\niodepth=1\n[writers]\nrw=randwrite\nbs=16k\niodepth=8\nnumjobs=3\n",
    ),
];

/// The other four workloads, if writing to the device is not allowed.
const READING_ON: [Trial; 4] = [
    trial("one at a time", "random 12 KiB reads", "reader", false, "[reader]\nrw=randread\nbs=12k\niodepth=1\n"),
    trial(
        "reader beside scans",
        "one random 4 KiB read at a time, while three processes read 256 KiB blocks in sequence, each with 2 in \
         flight",
        "reader",
        false,
        "[reader]\nrw=randread\nbs=4k\niodepth=1\n[scans]\nrw=read\nbs=256k\niodepth=2\nnumjobs=3\noffset_increment=30%\n",
    ),
    trial("deep", "random 4 KiB reads, 48 in flight", "deep", false, "[deep]\nrw=randread\nbs=4k\niodepth=48\n"),
    trial("pages", "random 16 KiB reads, 24 in flight", "pages", false, "[pages]\nrw=randread\nbs=16k\niodepth=24\n"),
];

/// Returns the workloads for a device. `writable` tells whether writing to the device is allowed.
#[must_use]
pub fn trials(writable: bool) -> [Trial; TRIALS] {
    let others = if writable { WRITING } else { READING_ON };
    std::array::from_fn(|i| READING.get(i).copied().unwrap_or_else(|| others[i - READING.len()]))
}

impl Trial {
    /// Returns the workload as a fio file for the first `bytes` of the device `/dev/target`.
    #[must_use]
    pub fn job_text(&self, bytes: u64, span: Span) -> String {
        let us = |ns: u64| ns.div_ceil(1000).max(1);
        // The size is rounded down to 2 MiB, so that both halves are aligned to 1 MiB.
        let bytes = if bytes >= 4 << 20 { bytes >> 21 << 21 } else { bytes };
        format!(
            "[global]\nfilename=/dev/target\nioengine=io_uring\ndirect=1\nnorandommap=1\ntime_based=1\nfilesize={bytes}\nsize=100%\n\
             ramp_time={}us\nruntime={}us\n{}",
            us(span.warm_up_ns),
            us(span.measured_ns),
            self.jobs
        )
    }

    /// Returns the workload for the simulator.
    #[must_use]
    pub fn workload(&self, bytes: u64, span: Span) -> Workload {
        match JobFile::parse("trial.fio", self.job_text(bytes, span).as_bytes(), &NoVariables) {
            Ok(file) => Workload::Jobs(Jobs::new(file)),
            Err(error) => unreachable!("a trial is a valid job: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_trial_fits_and_contains_its_watched_job() {
        let span = Span { warm_up_ns: 1_000_000, measured_ns: 2_000_000 };
        for writable in [false, true] {
            let all = trials(writable);
            assert_eq!(all.iter().map(|trial| trial.name).collect::<BTreeSet<_>>().len(), TRIALS);
            for trial in all {
                assert!(writable || !trial.writes, "{}", trial.name);
                assert_eq!(
                    trial.writes,
                    trial.jobs.contains("write") || trial.jobs.contains("randrw"),
                    "{}",
                    trial.name
                );
                for bytes in [16 << 20, 1 << 30, 2_000_398_934_016] {
                    let Workload::Jobs(jobs) = trial.workload(bytes, span) else { unreachable!("it is a job") };
                    jobs.layout(bytes).unwrap_or_else(|error| panic!("{}: {error}", trial.name));
                }
                assert!(trial.jobs.contains(&format!("[{}]", trial.watched)), "{}", trial.name);
            }
        }
    }
}
