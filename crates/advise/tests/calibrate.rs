//! Tests that the calibration of a modelled device reproduces
//! its behaviour, also for workloads that no fit used.

use std::sync::atomic::{AtomicBool, Ordering};

use iosched_advise::calibrate::{
    CalibrateError, Calibration, Header, Kind, Measurements, Measurer, Pace, Progress, Quantity, Simulated, Table,
    Target, measure,
};
use iosched_disk::hdd::ReadAheadAfter;
use iosched_disk::{CreditsOf, CreditsUnit, Model, Profile};
use iosched_sim::{Plan, RunResult, SimError, run};
use iosched_testing::machine::has_minutes;
use iosched_workload::{Class, Pattern, Task, TaskSet, Workload};

/// A network disk that serves one command at a time in about 2 ms. It serves pieces of 512 KiB, out
/// of order, and sometimes much later.
const ONE_AT_A_TIME: &str = "
kind = \"server\"
[server]
capacity_sectors = 2_097_152
depth = 128
max_hw_sectors_kb = 1280
servers = 1
choice = 4
piece_sectors = 1024
[server.read]
transit_ns = 60_000
service_ns = 2_150_000
bytes_per_second = 1_500_000_000
extra_in_service = 0.5
extra = [[0.0, 0], [0.5, 20_000], [0.9, 60_000], [0.98, 1_000_000], [1.0, 5_000_000]]
";

/// A virtual disk whose host sometimes gives it no CPU time.
const STALLING: &str = "
kind = \"server\"
[server]
capacity_sectors = 16_777_216
depth = 256
servers = 2
max_hw_sectors_kb = 1280
link_bytes_per_second = 2_000_000_000
[server.read]
transit_ns = 15_000
service_ns = 20_000
bytes_per_second = 3_000_000_000
extra = [[0.0, 0], [0.5, 3_000], [0.9, 15_000], [1.0, 60_000]]
[server.stalls]
every_ns = 12_000_000
length = [[0.0, 900_000], [1.0, 1_100_000]]
";

/// A virtual disk with one thread that takes all waiting commands at
/// once. The latency rises evenly with the depth from the first command.
const TOGETHER: &str = "
kind = \"server\"
[server]
capacity_sectors = 16_777_216
depth = 128
servers = 1
max_hw_sectors_kb = 1280
[server.batch]
commands = 128
gather_ns = 5_000
[server.read]
transit_ns = 60_000
service_ns = 17_000
bytes_per_second = 800_000_000
extra = [[0.0, 0], [0.5, 10_000], [0.9, 40_000], [1.0, 150_000]]
";

fn profile(text: &str) -> Profile {
    Profile::parse("true", text).unwrap()
}

/// Pace for devices whose slowest I/Os are rare or clustered.
const LONGER: Pace = Pace { rounds: 4, ios: 4_000, ios_max: 12_000, ..Pace::SIMULATED };

fn measured<M: Measurer>(device: &mut M) -> Result<Measurements, CalibrateError> {
    measured_at(device, Pace::SIMULATED)
}

fn measured_at<M: Measurer>(device: &mut M, pace: Pace) -> Result<Measurements, CalibrateError> {
    measure(device, pace, 1, "iosched calibrate", &AtomicBool::new(false), |_| Ok(()))
}

/// Returns the profile nvme without a host. A calibration cannot tell the costs of the host from
/// those of the device.
fn nvme() -> Profile {
    Profile::named("nvme").unwrap().without_host()
}

/// Calibrates a device of `profile`. Asserts that the model is of the kind `kind`. For held-out
/// workloads, asserts that the errors of rates are at most `rate`, and the errors of 99th
/// percentiles at most `p99`.
#[track_caller]
fn expect_recovered(profile: &Profile, kind: &str, rate: f64, p99: f64) -> (Measurements, Calibration) {
    expect_recovered_from(measured(&mut Simulated::new(profile.clone())).unwrap(), kind, rate, p99)
}

#[track_caller]
fn expect_recovered_from(measurements: Measurements, kind: &str, rate: f64, p99: f64) -> (Measurements, Calibration) {
    let calibration = Calibration::of(&measurements, "mine", None).unwrap();
    assert_eq!(calibration.profile.model().kind(), kind, "{:?}", calibration.kinds);
    assert!(calibration.verdict.fits, "{}", calibration.verdict);
    assert!(calibration.held_out.len() >= 5);
    for residual in &calibration.held_out {
        for (quantity, bound) in [(Quantity::Iops, rate), (Quantity::P99, p99)] {
            let difference = residual.pair(quantity).difference();
            assert!(difference.abs() < bound, "{}: {quantity:?} {:+.1} %", residual.probe, difference * 100.0);
        }
    }
    (measurements, calibration)
}

#[test]
fn nvme_ssd_is_recovered() {
    if !has_minutes() {
        return;
    }
    expect_recovered(&nvme(), "ssd", 0.05, 0.1);
}

#[test]
fn sata_ssd_is_recovered() {
    if !has_minutes() {
        return;
    }
    expect_recovered(&Profile::named("sata-ssd").unwrap(), "ssd", 0.1, 0.1);
}

#[test]
fn rotating_disk_is_recovered() {
    // No probe shows the write cache separately. Therefore the errors of mixed reads and writes are
    // larger than the errors of reads.
    let device = Profile::named("sata-7200").unwrap();
    expect_recovered_from(measured_at(&mut Simulated::new(device), LONGER).unwrap(), "hdd", 0.1, 0.15);
}

#[test]
fn probes_find_which_reads_start_read_ahead() {
    let Model::Hdd(config) = Profile::named("sata-7200").unwrap().model().clone() else { unreachable!("it is a disk") };
    for read_ahead_after in [ReadAheadAfter::AnyRead, ReadAheadAfter::ContinuedRead] {
        let mut config = config.clone();
        config.read_cache.read_ahead_after = read_ahead_after;
        let device = Profile::of("disk", "", Model::Hdd(config), Vec::new()).unwrap();
        let measurements = measured(&mut Simulated::new(device)).unwrap();
        let calibration = Calibration::of(&measurements, "mine", Some(Kind::Hdd)).unwrap();
        let Model::Hdd(found) = calibration.profile.model() else { unreachable!("it is a disk") };
        assert_eq!(found.read_cache.read_ahead_after, read_ahead_after, "{:?}", found.read_cache);
    }
}

#[test]
fn server_with_stalls_is_recovered() {
    if !has_minutes() {
        return;
    }
    // With only a few hundred stalls, their number varies by chance.
    expect_recovered_from(measured_at(&mut Simulated::new(profile(STALLING)), LONGER).unwrap(), "server", 0.06, 0.25);
}

#[test]
fn burst_credits_are_recovered() {
    if !has_minutes() {
        return;
    }
    // The sustained rate is a thousand reads per second. With saved credits, the rate is eight
    // times as high.
    let credits = "[[server.credits]]\nof = \"all\"\nunit = \"ios\"\nper_second = 1_000\nsaved = 8_000\n";
    let device = profile(&format!("{}{credits}", TOGETHER.replace("depth = 128", "depth = 64")));
    let measurements = measured(&mut Simulated::new(device)).unwrap();
    let calibration = Calibration::of(&measurements, "mine", Some(Kind::Server)).unwrap();
    let Model::Server(config) = calibration.profile.model() else { unreachable!("it is a server") };
    let [found] = config.credits[..] else { panic!("{:?}", config.credits) };
    assert_eq!((found.of, found.unit), (CreditsOf::All, CreditsUnit::Ios));
    assert!((800..1_200).contains(&found.per_second) && (6_000..10_000).contains(&found.saved), "{found:?}");
    // For a device without credits, the calibration finds no credits.
    let measurements = measured(&mut Simulated::new(profile(TOGETHER))).unwrap();
    let calibration = Calibration::of(&measurements, "mine", Some(Kind::Server)).unwrap();
    let Model::Server(config) = calibration.profile.model() else { unreachable!("it is a server") };
    assert_eq!(config.credits, []);
}

#[test]
fn measured_profile_predicts_values_between_its_points() {
    for (device, rate, p99) in [(profile(TOGETHER), 0.15, 0.25), (nvme(), 0.15, 0.25)] {
        let measurements = measured(&mut Simulated::new(device)).unwrap();
        let calibration = Calibration::of(&measurements, "mine", Some(Kind::Empirical)).unwrap();
        assert_eq!(calibration.profile.model().kind(), "empirical");
        for residual in &calibration.held_out {
            for (quantity, bound) in [(Quantity::Iops, rate), (Quantity::P99, p99)] {
                let difference = residual.pair(quantity).difference();
                assert!(difference.abs() < bound, "{}: {quantity:?} {:+.1} %", residual.probe, difference * 100.0);
            }
        }
        // Each residual comes from a fit to the other probes.
        // An empirical model repeats its own probes exactly.
        assert!(
            calibration.residuals.iter().any(|residual| residual.iops.difference().abs() > 0.03),
            "{:?}",
            calibration.kinds
        );
    }
}

#[test]
fn batching_server_is_recovered() {
    if !has_minutes() {
        return;
    }
    let (_, calibration) = expect_recovered(&profile(TOGETHER), "server", 0.03, 0.1);
    let Model::Server(config) = calibration.profile.model() else { unreachable!("it is a server") };
    assert!(config.servers == 1 && config.batch.is_some_and(|batch| batch.commands >= 32), "{config:?}");
    // For a device without batches, the fit uses no batches.
    let measurements = measured(&mut Simulated::new(profile(ONE_AT_A_TIME))).unwrap();
    let calibration = Calibration::of(&measurements, "mine", None).unwrap();
    let Model::Server(config) = calibration.profile.model() else { unreachable!("it is a server") };
    assert_eq!(config.batch, None);
}

#[test]
fn serial_server_is_recovered_and_orders_schedulers() {
    if !has_minutes() {
        return;
    }
    let measurements = measured_at(&mut Simulated::new(profile(ONE_AT_A_TIME)), LONGER).unwrap();
    let (measurements, calibration) = expect_recovered_from(measurements, "server", 0.1, 0.2);
    let Header { target, .. } = &measurements.header;
    assert_eq!(calibration.profile.card().capacity_sectors, target.capacity_sectors);
    let text = calibration.to_toml(&measurements.header).unwrap();
    assert!(text.starts_with("# A model of true, calibrated by iosched"), "{text}");
    let again = Profile::parse("mine", &text).unwrap();
    assert_eq!(again.model(), calibration.profile.model());
    assert_eq!(again.anchors(), calibration.profile.anchors());
    assert!(again.anchors().len() == 3 && again.anchors().iter().all(|anchor| anchor.source == "measured"));
    // The profile that was written and read again has the same errors as the calibration.
    let checked = Calibration::check(&measurements, &again).unwrap();
    assert_eq!(checked.held_out, calibration.held_out);
    order_of_schedulers(&again);
}

/// Two readers with 8 I/Os each, best effort and idle. Whether the idle reader starves
/// depends on the scheduler. On the disk that the model resembles, Linux 6.18 gave them
/// these IOPS: none 223 and 225, kyber 234 and 236, bfq 466 and 5, mq-deadline 469 and 1.
#[track_caller]
fn order_of_schedulers(profile: &Profile) {
    let reader = |pid, class| Task {
        class,
        iodepth: 8,
        pattern: Some(Pattern::Random),
        range: Some([0, profile.card().capacity_sectors]),
        ..Task::new(pid)
    };
    let tasks = vec![reader(1, Class::Be), reader(2, Class::Idle)];
    let workload = Workload::Tasks(Box::new(TaskSet { tasks, end_ns: Some(10_000_000_000), ..TaskSet::default() }));
    let iops = |scheduler: &str| {
        let result = run(&Plan::new(&workload, profile, scheduler.parse().unwrap()), ()).unwrap();
        [0, 1].map(|task: usize| result.tasks[task].ios as f64 / 10.0)
    };
    for (scheduler, starves) in [("none", false), ("kyber", false), ("bfq", true), ("mq-deadline", true)] {
        let [best_effort, idle] = iops(scheduler);
        assert!((400.0..500.0).contains(&(best_effort + idle)), "{scheduler}: {best_effort} {idle}");
        let share = idle / (best_effort + idle);
        assert!(
            if starves { share < 0.02 } else { (0.45..0.55).contains(&share) },
            "{scheduler}: {best_effort} {idle}"
        );
    }
    assert!(iops("bfq")[1] > iops("mq-deadline")[1], "bfq gives the idle reader slightly more");
}

/// A device that is a disk for small reads and flash for large reads. No model fits.
struct TwoFaced {
    small: Simulated,
    large: Simulated,
}

impl Measurer for TwoFaced {
    type Error = SimError;

    fn target(&self) -> &Target {
        self.small.target()
    }

    fn measure(&mut self, workload: &Workload, seed: u64) -> Result<RunResult, SimError> {
        let Workload::Jobs(jobs) = workload else { unreachable!("probes are jobs") };
        let is_large = jobs.file().jobs[0].block_size.read.min_bytes() > 16 << 10;
        if is_large { &mut self.large } else { &mut self.small }.measure(workload, seed)
    }
}

#[test]
fn verdict_names_a_device_that_no_model_fits() {
    if !has_minutes() {
        return;
    }
    let simulated = |name| Simulated::new(Profile::named(name).unwrap());
    let mut device = TwoFaced { small: simulated("sata-7200"), large: simulated("nvme") };
    let measurements = measured(&mut device).unwrap();
    let calibration = Calibration::of(&measurements, "mine", None).unwrap();
    assert!(!calibration.verdict.fits);
    let verdict = calibration.verdict.to_string();
    assert!(verdict.starts_with("no model fits: ") && verdict.contains("the largest error is "), "{verdict}");
    assert!(calibration.to_toml(&measurements.header).unwrap().contains("no model fits"));
}

#[test]
fn interrupted_calibration_keeps_its_samples() {
    let interrupt = AtomicBool::new(false);
    let mut device = Simulated::new(profile(ONE_AT_A_TIME));
    let measurements = measure(&mut device, Pace::SIMULATED, 1, "", &interrupt, |progress| {
        interrupt.store(matches!(progress, Progress::Sample(_)), Ordering::Relaxed);
        Ok(())
    });
    let measurements = measurements.unwrap();
    assert_eq!(measurements.samples.len(), 1);
    let error = Calibration::of(&measurements, "mine", None).unwrap_err().to_string();
    assert!(error.starts_with("a measurement that the fit needs is missing: probe of role"), "{error}");
}

#[test]
fn too_small_device_is_an_error() {
    let text =
        "kind = \"fixed\"\n[fixed]\ndepth = 4\nparallel = 1\nlat_ns = 1000\nns_per_sector = 0\ncapacity_sectors = 100";
    let error = measured(&mut Simulated::new(profile(text))).unwrap_err().to_string();
    assert!(error.contains("true has 51200 bytes"), "{error}");
}

#[test]
fn ssd_fitted_to_a_table_meets_all_its_rows() {
    let table = "rw,bs,depth,jobs,iops,p50,p99\n\
                 randread,4k,1,1,14483,64.26,78.34\n\
                 randread,4k,4,1,58102,63.23,107\n\
                 randread,4k,16,4,573509,88.58,301.1\n\
                 randread,4k,64,4,780809,261.1,1106\n";
    let table = Table::read("t.csv", table).unwrap();
    let target = Target::of_card("t.csv", Profile::named("nvme").unwrap().card());
    let calibration = Calibration::of_table(&table, &target, "fitted", Some(Kind::Ssd)).unwrap();
    assert!(calibration.verdict.fits, "{}", calibration.verdict);
    assert_eq!(calibration.verdict.met.1, 4);
    assert_eq!(calibration.profile.fitted_to().iter().filter(|entry| entry.starts_with("row ")).count(), 4);
    assert_eq!(Calibration::unused_rows(&table, &calibration.profile).unwrap(), []);
}
