//! Compares a custom scheduler with those of Linux on a trace and a modelled disk:
//! `cargo run -p iosched-lab --example compare_sedf`.

#[path = "../../iosched/examples/sedf.rs"]
#[allow(dead_code, reason = "the elevator of that example, without its program")]
mod sedf;

use std::sync::Arc;

use iosched::{Registry, Setting};
use iosched_disk::Profile;
use iosched_lab::{Control, Experiment, Figure, Results, execute};
use iosched_workload::{Trace, Workload};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::linux();
    registry.add(sedf::SEDF)?;
    let texts = ["mq-deadline", "cfq", "sedf", "sedf:read_expire=5"];
    let settings = texts.iter().map(|text| Setting::parse(text, &registry)).collect::<Result<_, _>>()?;

    // A run of pgbench, recorded with blktrace.
    let trace = Trace::read("pgbench", iosched_trace::sample()?)?;
    let mut experiment = Experiment::new(Workload::Trace(Arc::new(trace)), Profile::named("sata-7200")?, settings)?;
    experiment.runs = 5;
    let records = execute(&experiment, &Control::new(2), |_| Ok(()))?.records;

    let results = Results::of(records.devices().next().ok_or("there is one device")?);
    let figures = [(Figure::Throughput, "MB/s"), (Figure::SyncP50, "p50, ms"), (Figure::SyncP99, "p99, ms")];
    println!("{:20}{}", "pgbench, sata-7200", figures.map(|(_, name)| format!("{name:>12}")).concat());
    for (number, setting) in records.header.settings.iter().enumerate() {
        let mean =
            |figure| results.figure(figure).and_then(|all| all.settings[number].as_ref()).map(|value| value.mean);
        let row = figures.map(|(figure, _)| mean(figure).map_or("-".to_owned(), |mean| format!("{mean:.2}")));
        println!("{:20}{}", setting.label, row.map(|mean| format!("{mean:>12}")).concat());
    }
    println!("{}", results.decision);
    Ok(())
}

#[test]
fn example_runs_without_an_error() {
    main().unwrap();
}
