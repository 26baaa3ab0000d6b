//! Tests of devices that never make a request wait. A scheduler then has nothing to decide. It must
//! dispatch submitted I/Os at once, whole or merged on a plug, with the same result as none.

use iosched_disk::Profile;
use iosched_sim::{BlockLayer, Dispatched, Observer, Plan, run};
use iosched_workload::Workload;
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use proptest::prelude::*;

/// Work-conserving schedulers: they never delay requests while the device has room.
const CONSERVING: [&str; 5] = ["mq-deadline", "kyber", "noop", "deadline", "adios"];
/// Schedulers that are not work-conserving. They wait for the next request of a process although
/// other processes have requests, or they alternate reads and writes.
const WAITING: [&str; 6] = ["bfq", "cfq", "cfq-2.6.16", "cfq-2.6.30", "cfq-2.6.34", "anticipatory"];
/// Schedulers of the multi-queue layer, except none.
const MULTI_QUEUE: [&str; 3] = ["mq-deadline", "kyber", "bfq"];

/// Returns a device that takes and serves 64 commands at once.
fn device() -> Profile {
    let text = "kind = \"fixed\"\n[fixed]\ndepth = 64\nparallel = 64\nlat_ns = 100_000\nns_per_sector = 70\n";
    Profile::parse("fixed", text).unwrap()
}

/// Requests that were dispatched to the device, with their times.
#[derive(Default)]
struct Dispatches(Vec<(u64, u64, u32, usize)>);

impl Observer for &mut Dispatches {
    fn dispatched(&mut self, now_ns: u64, request: &Dispatched, _waiting: usize, _in_device: u32) {
        self.0.push((now_ns, request.sector, request.nr_sectors, request.task));
    }
}

fn dispatches(jobs: &str, scheduler: &str, plug: bool) -> Vec<(u64, u64, u32, usize)> {
    let workload = Workload::Jobs(Jobs::new(JobFile::parse("jobs.fio", jobs.as_bytes(), &NoVariables).unwrap()));
    let profile = device();
    let mut plan = Plan::new(&workload, &profile, scheduler.parse().unwrap());
    plan.block_layer = BlockLayer { plug, ..BlockLayer::default() };
    plan.seed = 1;
    plan.limit.ios = Some(400);
    let mut dispatches = Dispatches::default();
    run(&plan, &mut dispatches).unwrap();
    dispatches.0
}

/// Generates a job file. Its depths and numbers of jobs are so small that the device always has
/// room.
fn jobs(modes: &'static [&'static str], numjobs: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = String> {
    let batches = (1u32..=4, 1u32..=4, any::<bool>());
    (prop::sample::select(modes), numjobs, 1u32..=8, batches, 0u32..200, prop::sample::select(&[4u32, 16, 64]))
        .prop_map(|(rw, numjobs, iodepth, (batch, complete, uring), think_us, bs_kib)| {
            let (batch, complete) = (batch.min(iodepth), complete.min(iodepth));
            let engine = if uring { "io_uring" } else { "libaio" };
            format!(
                "[global]\nioengine={engine}\ndirect=1\nfilename=/dev/sdx\nsize=64m\noffset_increment=64m\nrw={rw}\nbs={bs_kib}k\n\
                 iodepth={iodepth}\niodepth_batch={batch}\niodepth_batch_complete_min={complete}\nthinktime={think_us}\n\
                 [job]\nnumjobs={numjobs}\n"
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn work_conserving_schedulers_dispatch_like_none(
        jobs in jobs(&["read", "write", "randread", "randwrite", "randrw", "rw"], 1..=6)
    ) {
        let none = dispatches(&jobs, "none", false);
        for scheduler in CONSERVING {
            prop_assert_eq!(&dispatches(&jobs, scheduler, false), &none, "{}", scheduler);
        }
    }

    #[test]
    fn with_one_process_idling_schedulers_dispatch_like_none(
        jobs in jobs(&["read", "randread", "write", "randrw"], 1..=1)
    ) {
        let none = dispatches(&jobs, "none", false);
        for scheduler in WAITING {
            prop_assert_eq!(&dispatches(&jobs, scheduler, false), &none, "{}", scheduler);
        }
    }

    #[test]
    fn plugged_sequences_merge_equally_under_all_schedulers(jobs in jobs(&["read", "write"], 1..=1)) {
        let none = dispatches(&jobs, "none", true);
        for scheduler in MULTI_QUEUE {
            prop_assert_eq!(&dispatches(&jobs, scheduler, true), &none, "{}", scheduler);
        }
    }
}

/// A regression test: requests of readers with two I/Os in flight were merged, although the device
/// had room for all of them.
#[test]
fn readers_of_depth_two_are_not_merged() {
    let jobs = "[global]\nioengine=io_uring\ndirect=1\nfilename=/dev/sdx\nsize=64m\noffset_increment=64m\nrw=read\nbs=64k\niodepth=2\n\
                [job]\nnumjobs=4\n";
    for scheduler in ["none", "mq-deadline", "bfq", "kyber"] {
        let dispatches = dispatches(jobs, scheduler, true);
        assert!(dispatches.iter().all(|&(_, _, nr_sectors, _)| nr_sectors == 128), "{scheduler}");
    }
}

/// A batch of three I/Os is collected on a plug, but a batch of two is not.
#[test]
fn batches_of_more_than_two_ios_are_merged_on_a_plug() {
    let batches = |batch: u32| {
        format!(
            "[job]\nioengine=io_uring\ndirect=1\nfilename=/dev/sdx\nsize=64m\nrw=read\nbs=4k\niodepth={batch}\niodepth_batch={batch}\n\
             iodepth_batch_complete_min={batch}\n"
        )
    };
    for (batch, nr_sectors) in [(1, 8), (2, 8), (3, 24), (8, 64)] {
        for scheduler in ["none", "mq-deadline", "bfq", "kyber"] {
            let dispatches = dispatches(&batches(batch), scheduler, true);
            assert_eq!(dispatches[0].2, nr_sectors, "{scheduler}, {batch} at once");
        }
    }
}
