//! Tests of a database under CFQ of Linux 2.6.16: the combined effect of slice_idle and max_depth.

use iosched::{Decision, Op};
use iosched_disk::Profile;
use iosched_machine::description::Machine;
use iosched_sim::{BlockLayer, Dispatched, Observer, Plan, RunResult, run};
use iosched_workload::Workload;

/// Requests and waits on the data disk.
#[derive(Debug, Default)]
struct Seen {
    /// Number of requests at each depth of the device, counted directly after a dispatch.
    by_depth: Vec<u64>,
    waits: u64,
    waits_over: u64,
}

impl Seen {
    fn dispatched(&self) -> u64 {
        self.by_depth.iter().sum()
    }

    fn share_of_depth(&self, depths: std::ops::RangeInclusive<usize>) -> f64 {
        let those: u64 =
            self.by_depth.iter().enumerate().filter(|(depth, _)| depths.contains(depth)).map(|(_, n)| n).sum();
        those as f64 / self.dispatched() as f64
    }
}

impl Observer for Seen {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn decision(&mut self, _now_ns: u64, decision: &Decision) {
        match decision {
            Decision::IdleArm { .. } => self.waits += 1,
            Decision::IdleFire => self.waits_over += 1,
            _ => {}
        }
    }

    fn dispatched(&mut self, _now_ns: u64, request: &Dispatched, _waiting: usize, in_device: u32) {
        assert!(matches!(request.op, Op::Read | Op::Write));
        let depth = in_device as usize;
        if self.by_depth.len() <= depth {
            self.by_depth.resize(depth + 1, 0);
        }
        self.by_depth[depth] += 1;
    }
}

fn machine() -> Machine {
    toml::from_str(include_str!("../../lab/machines/server-2005.toml")).unwrap()
}

fn database(scheduler: &str) -> (RunResult, Seen) {
    let machine = machine();
    let workload = Workload::open("tpcc sessions=4 warehouses=600 warmup=5 seconds=20").unwrap();
    let profile = Profile::named("raid-2005").unwrap();
    let log = [(profile.clone(), "deadline".parse().unwrap())];
    let plan = Plan {
        machine: Some(&machine),
        more_disks: &log,
        block_layer: BlockLayer { hz: machine.hz, ..BlockLayer::default() },
        ..Plan::new(&workload, &profile, scheduler.parse().unwrap())
    };
    let mut seen = Seen::default();
    let result = run(&plan, &mut seen).unwrap();
    (result, seen)
}

fn figure(result: &RunResult, name: &str) -> f64 {
    let figures = &result.app.as_ref().unwrap().figures;
    figures.iter().find(|figure| figure.name == name).unwrap().value
}

#[test]
fn max_depth_and_idling_reduce_database_throughput() {
    let (deadline, _) = database("deadline");
    let (throttled, throttled_seen) = database("cfq-2.6.16:slice_idle=0");
    let (free, free_seen) = database("cfq-2.6.16:slice_idle=0,max_depth=64");
    let (idling, idling_seen) = database("cfq-2.6.16:slice_idle=1,max_depth=64");
    let tps = |result| figure(result, "tps");
    let (base, a, b, c) = (tps(&deadline), tps(&throttled), tps(&free), tps(&idling));
    assert!((0.5..0.85).contains(&(a / base)), "{a} of {base}");
    assert!((0.93..1.07).contains(&(b / base)), "{b} of {base}");
    // With idling, CFQ serves one read per tick.
    assert!(c < 0.8 * base, "{c} of {base}");

    // The depth is limited to two. However, the rest of the four requests of a turn can exceed this
    // limit.
    assert!(throttled_seen.share_of_depth(0..=5) == 1.0 && throttled_seen.share_of_depth(0..=2) > 0.6);
    assert_eq!((throttled_seen.waits, free_seen.waits), (0, 0), "CFQ does not idle");
    assert!(free_seen.share_of_depth(3..=64) > 0.5);
    assert!(idling_seen.waits_over > 0 && idling_seen.share_of_depth(1..=4) > 0.5);
}

#[test]
fn overwriting_the_log_keeps_log_waits_short() {
    let (result, _) = database("deadline");
    // The log's blocks already exist, so overwriting them changes nothing in the journal.
    assert!(figure(&result, "log_file_parallel_write") < 1.0, "{result:?}");
    assert!(figure(&result, "log_file_sync") < 1.0);
}

#[test]
fn quantum_and_queued_hardly_change_database_throughput() {
    let (base, _) = database("cfq-2.6.16:slice_idle=0,max_depth=64");
    let (other, _) = database("cfq-2.6.16:slice_idle=0,max_depth=64,queued=32,quantum=64");
    let ratio = figure(&other, "tps") / figure(&base, "tps");
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}
