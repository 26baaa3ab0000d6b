//! Tests of the validation of a profile against a simulated device.

use iosched_advise::calibrate::Target;
use iosched_advise::validation::{
    Battery, FORMAT, Header, Measured, Outcome, Run, TRIALS, simulate, write_header, write_load, write_run,
};
use iosched_disk::Profile;
use iosched_kernel::checks::Finding;

/// A device that serves one command at a time, in 500 us or sometimes longer.
const DEVICE: &str = "
kind = \"server\"
[server]
capacity_sectors = 2_097_152
depth = 64
servers = 1
max_hw_sectors_kb = 1280
[server.read]
transit_ns = 20_000
service_ns = 480_000
bytes_per_second = 2_000_000_000
extra = [[0.0, 0], [0.9, 40_000], [1.0, 400_000]]
";

fn profile(name: &str, text: &str) -> Profile {
    Profile::parse(name, text).unwrap()
}

fn header(device: &Profile, writable: bool) -> Header {
    Header {
        format: FORMAT,
        version: "test".to_owned(),
        command: "iosched validate".to_owned(),
        target: Target { writable, ..Target::of_card(device.name(), device.card()) },
        schedulers: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
        rounds: 3,
        seed: 1,
        warm_up_ns: 50_000_000,
        measured_ns: 500_000_000,
    }
}

fn measured(device: &Profile, writable: bool) -> Measured {
    let mut measured = Measured::new(header(device, writable));
    let bytes = device.card().capacity_sectors * 512;
    let header = measured.header.clone();
    for (number, trial) in header.trials().iter().enumerate() {
        for round in 0..header.rounds {
            for (scheduler, name) in header.schedulers.iter().enumerate() {
                let seed = header.seed_of_run(round);
                let outcome = simulate(trial, (bytes, header.span()), device, name, seed).unwrap();
                measured.runs.push(Run { trial: number, scheduler, run: round, outcome });
            }
        }
    }
    measured
}

#[test]
fn true_profile_is_trusted_and_stores_the_score() {
    let device = profile("device", DEVICE);
    for writable in [true, false] {
        let measured = measured(&device, writable);
        let battery = Battery::of(&measured, &device, |_, _| ()).unwrap();
        assert_eq!(battery.cells.len(), TRIALS * 3);
        assert!(battery.validated.trust_percent >= 95.0 && battery.rates_met.0 == battery.rates_met.1, "{battery}");
        assert_eq!((battery.orders.wrong, battery.wrong_orders.len()), (0, 0), "{battery}");
        assert!(battery.orders.right > 0 && battery.orders.cannot_tell * 3 <= battery.orders.measurable(), "{battery}");
        assert_eq!(battery, Battery::of(&measured, &device, |_, _| ()).unwrap(), "the result is reproducible");
        let trusted = battery.trusted(device.clone());
        let again = profile("again", &trusted.to_toml().unwrap());
        assert_eq!(again.fit().unwrap().validated, Some(battery.validated));
    }
}

#[test]
fn profile_that_differs_from_the_device_is_not_trusted() {
    let device = profile("device", DEVICE);
    let measured = measured(&device, true);
    // At half the speed, all rates are wrong, but the order of schedulers can still be right.
    let slow = profile("slow", &DEVICE.replace("480_000", "980_000"));
    let battery = Battery::of(&measured, &slow, |_, _| ()).unwrap();
    assert!(battery.validated.trust_percent < 20.0, "{battery}");
    let fit = battery.trusted(slow).fit().unwrap();
    assert!(fit.rate_error_percent > 80.0 && fit.rate_error_percent < 130.0, "{fit:?}");
    assert!(battery.validated.rate_difference_error_percent < 40.0, "{battery}: {:?}", battery.validated);
    assert!(battery.orders.wrong * 20 <= battery.orders.measurable(), "{:?}", battery.wrong_orders);
    // A profile that serves all commands at once is also wrong.
    let wide = profile("wide", &DEVICE.replace("servers = 1", "servers = 64"));
    assert!(Battery::of(&measured, &wide, |_, _| ()).unwrap().validated.trust_percent < 20.0);
}

#[test]
fn load_or_varying_runs_make_a_validation_too_noisy() {
    let device = profile("device", DEVICE);
    let mut measured = measured(&device, false);
    let judged = |measured: &Measured| Battery::of(measured, &device, |_, _| ()).unwrap();
    let quiet = judged(&measured);
    assert!(!quiet.is_too_noisy() && quiet.to_string().contains("; score "), "{quiet}");
    let load = |busy_percent: f64| Finding::OtherLoad {
        device: "sda".to_owned(),
        iops: 500.0,
        bytes_per_s: 2e6,
        busy_percent,
        watched_ms: 1000,
    };
    // A small load does not matter. Only the largest load of a disk counts.
    measured.loads.push(load(1.0));
    assert!(!judged(&measured).is_too_noisy());
    measured.loads.push(load(60.0));
    let disturbed = judged(&measured);
    let decision = disturbed.decision();
    assert!(decision.starts_with("Too noisy to tell: ") && decision.contains("busy 60 % of the time"), "{decision}");
    assert!(disturbed.to_string().ends_with("too noisy for a score"), "{disturbed}");
    assert_eq!(disturbed.trusted(device.clone()).fit(), None);
    // Without load on the disk, variation between runs shows that the measurement is too noisy.
    measured.loads = vec![Finding::LoadedCpus { load: 7.0, cpus: 2 }];
    assert!(!judged(&measured).is_too_noisy());
    for run in &mut measured.runs {
        run.outcome.iops *= [1.0, 0.5, 0.7][run.run as usize];
        run.outcome.p99_ns *= [1.0, 3.0, 2.0][run.run as usize];
    }
    let decision = judged(&measured).decision();
    assert!(decision.starts_with("Too noisy to tell: ") && decision.contains("load average is 7.00"), "{decision}");
}

#[test]
fn errors_of_damaged_records_name_line_or_cause() {
    let device = profile("device", DEVICE);
    let mut all = Measured::new(header(&device, true));
    for run in 0..2 {
        let outcome = Outcome { iops: 1.5, p99_ns: 2.25e6 };
        all.runs.push(Run { trial: 3, scheduler: 1, run, outcome });
    }
    let mut text = Vec::new();
    all.loads.push(Finding::LoadedCpus { load: 2.5, cpus: 4 });
    write_header(&mut text, &all.header).unwrap();
    write_load(&mut text, &all.loads[0]).unwrap();
    all.runs.iter().for_each(|run| write_run(&mut text, run).unwrap());
    assert_eq!(Measured::read(&text[..], "v.jsonl").unwrap(), all);
    let cut = Measured::read(&text[..text.len() - 9], "v.jsonl").unwrap();
    assert!(cut.runs.len() == 1 && cut.warnings[0].contains("line 4 is incomplete"), "{:?}", cut.warnings);
    let text = String::from_utf8(text).unwrap();
    for (text, problem) in [
        (String::new(), "is not a file of a validation: the file is empty"),
        ("{\"record\":\"calibration\",\"format\":1}\n".to_owned(), "is not a file of a validation"),
        (text.replace("\"format\":1", "\"format\":9"), "the file has format 9"),
        (
            text.replace("\"trial\":3", "\"trial\":12"),
            "line 3: the header does not list the workload or the scheduler of this run",
        ),
        (text.replacen("{\"record\":\"run\"", "nonsense {\"record\":\"run\"", 1), "line 3: the line is not a run"),
        (text.split_once('\n').unwrap().1.to_owned(), "the first line is a run, not the header"),
    ] {
        let error = Measured::read(text.as_bytes(), "v.jsonl").unwrap_err().to_string();
        assert!(error.contains(problem) && error.starts_with("v.jsonl"), "{error}");
    }
    // Without measurements there is no judgement.
    let nothing = Measured::new(header(&device, true));
    assert!(Battery::of(&nothing, &device, |_, _| ()).unwrap_err().to_string().contains("no workload has two runs"));
}
