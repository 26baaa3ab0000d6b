//! Texts that users write to tunables, and the values that Linux stores.
//!
//! `sysfs.tsv` was recorded on a loop device of Linux 6.18 (HZ=250). For each tunable and text,
//! `sysfs.tsv` has the content of the tunable's file after the write, or `!` if the write failed.
//! Before each write, the scheduler was selected again.

use iosched::{Driver, QueueConfig, Registry, RequestQueue, Rerun, Time};

const RECORDED: &str = include_str!("sysfs.tsv");

/// Returns the content of the tunable after the write, in the notation of Linux.
fn written(scheduler: &str, tunable: &str, text: &str) -> String {
    let config = QueueConfig { hz: 250, ..QueueConfig::default() };
    let queue = RequestQueue::new(Time::ZERO, &config, Registry::linux().get(scheduler).unwrap());
    let mut driver = Driver::new(queue, Rerun::LINUX);
    if driver.set_tunable(Time::ZERO, tunable, text).is_err() {
        return "!".to_owned();
    }
    let value = driver.queue().tunable(tunable).unwrap();
    // mq-deadline prints 32 bits with a sign.
    if scheduler == "mq-deadline" { (value as i32).to_string() } else { value.to_string() }
}

#[test]
fn tunables_store_the_same_values_as_linux() {
    let mut lines = RECORDED.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let texts = lines.next().unwrap();
    let mut differences = Vec::new();
    let mut compared = 0;
    for line in lines {
        let (scheduler, tunable) = (line[0], line[1]);
        for (text, recorded) in texts.iter().zip(&line).skip(2) {
            let ours = written(scheduler, tunable, &text.replace("\\n", "\n"));
            if ours != *recorded {
                differences
                    .push(format!("{scheduler} {tunable}={text:?}: iosched stores {ours}, Linux stores {recorded}"));
            }
            compared += 1;
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(compared, 19 * 32);
}

#[test]
fn every_tunable_of_a_recorded_scheduler_is_recorded() {
    for scheduler in ["mq-deadline", "kyber", "bfq"] {
        for spec in (Registry::linux().get(scheduler).unwrap().tunables)() {
            let line = format!("\n{scheduler}\t{}\t", spec.name);
            assert!(RECORDED.contains(&line), "{scheduler} {}", spec.name);
        }
    }
}
