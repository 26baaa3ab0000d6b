//! Measures the cost of observing a disk at 50,000 IOPS, as root, with fio and a loop device.
//!
//! Run it with `cargo run --profile dist -p iosched-kernel --example observe_cost`. The cost has two
//! parts: the CPU time of the observer, and the CPU time that the kernel adds to the load. For the
//! second part, the load runs alternately with and without an observer. CPU times are those of fio
//! and of the kernel's threads of the loop device.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iosched_kernel::observe::{ObserveOptions, Observer};
use iosched_kernel::{BlockDevice, Roots};
use rustix::time::{ClockId, clock_gettime};

const IOPS: u32 = 50_000;
const SECONDS: u32 = 4;
const REPEATS: usize = 5;
/// Goal, % of a core.
const GOAL: f64 = 1.0;

/// Returns the CPU time of this thread, s.
fn thread_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Returns the CPU time of the kernel's worker threads, s.
fn workers_seconds() -> f64 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let time = |entry: fs::DirEntry| {
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        comm.starts_with("kworker").then_some(())?;
        // The first number is the time on a CPU, ns.
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    processes.filter_map(time).sum::<f64>() / 1e9
}

/// Runs the load. Returns its rate and its CPU time in % of a core.
fn load(disk: &str) -> (f64, f64) {
    let before = workers_seconds();
    let output = Command::new("fio")
        .args(["--name=load", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=16"])
        .args(["--time_based", "--output-format=json", &format!("--runtime={SECONDS}")])
        .args([format!("--rate_iops={IOPS}"), format!("--filename={disk}")])
        .output()
        .expect("fio runs");
    let workers = workers_seconds() - before;
    let text = String::from_utf8(output.stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio prints JSON");
    let job = &json["jobs"][0];
    let percent = job["usr_cpu"].as_f64().unwrap() + job["sys_cpu"].as_f64().unwrap();
    (job["read"]["iops"].as_f64().unwrap(), percent + workers / f64::from(SECONDS) * 100.0)
}

/// Runs the load under an observer. Returns the load's rate and CPU time, and the observer's CPU
/// time in % of a core.
fn observed(disk: &BlockDevice, sampled_above: Option<u32>) -> (f64, f64, f64) {
    let stop = Arc::new(AtomicBool::new(false));
    let (device, stopped) = (disk.clone(), Arc::clone(&stop));
    let observer = std::thread::spawn(move || {
        let options = ObserveOptions { sampled_above, ..ObserveOptions::default() };
        let mut observer = Observer::begin(&Roots::default(), vec![device], options);
        assert!(observer.without_latencies().is_none(), "{:?}", observer.without_latencies());
        let (began, clock) = (thread_seconds(), std::time::Instant::now());
        let (mut requests, mut lost) = (0, 0);
        while !stopped.load(Ordering::SeqCst) {
            observer.take_for(Duration::from_secs(1)).unwrap();
            let sample = observer.sample();
            requests += sample.series.iter().map(|series| series.latency.count()).sum::<u64>();
            lost += sample.lost;
        }
        let percent = (thread_seconds() - began) / clock.elapsed().as_secs_f64() * 100.0;
        eprintln!("  observed {:.0} requests/s, lost {lost}", requests as f64 / clock.elapsed().as_secs_f64());
        percent
    });
    let (iops, load) = load(disk.path().to_str().unwrap());
    stop.store(true, Ordering::SeqCst);
    (iops, load, observer.join().unwrap())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let image = std::path::Path::new("/dev/shm").join(format!("iosched-observe-{}", std::process::id()));
    fs::write(&image, vec![1; 64 << 20]).unwrap();
    let found = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().unwrap();
    let path = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    let disk = BlockDevice::find(&Roots::default(), path.as_ref()).expect("a loop device, as root");
    for (name, sampled_above) in [("a sample", Some(ObserveOptions::SAMPLED_ABOVE)), ("all requests", None)] {
        let mut added = Vec::new();
        let mut own = Vec::new();
        let mut rates = Vec::new();
        for _ in 0..REPEATS {
            let (_, without) = load(&path);
            let (iops, with, observer) = observed(&disk, sampled_above);
            rates.push(iops);
            added.push(with - without);
            own.push(observer);
        }
        let (low, high) = added.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        println!(
            "{name}: at {:.0} IOPS, the observer takes {:.2} % of a core (goal: below {GOAL} %), and the load takes \
             {:+.2} % more (from {low:+.2} to {high:+.2})",
            median(rates),
            median(own),
            median(added)
        );
    }
    let _ = Command::new("losetup").arg("--detach").arg(&path).status();
    let _ = fs::remove_file(&image);
}
