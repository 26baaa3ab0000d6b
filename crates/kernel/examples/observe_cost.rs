//! Measures the cost of observing a disk at 50,000 IOPS, as root, with fio and a loop device.
//!
//! Run it with `cargo run --profile dist -p iosched-kernel --example observe_cost`. The cost has
//! two parts. The first part is the CPU time of the observer while fio makes I/Os. The second part
//! is the CPU time that the kernel needs for the events of an I/O. To measure the second part, the
//! program reads from the disk in short rounds, alternately with and without events. The result is
//! the median of the differences.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
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
/// Number of rounds, number of reads in a round, and size of a read in bytes.
const ROUNDS: usize = 40;
const READS: u64 = 4_000;
const BLOCK: usize = 4096;
/// Limit for the CPU time of the observer, % of a core.
const GOAL: f64 = 1.0;

/// Returns the CPU time of this thread, s.
fn thread_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Returns the CPU time of the kernel's worker threads that serve loop devices, s.
fn workers_seconds() -> f64 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let time = |entry: fs::DirEntry| {
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.starts_with("kworker") && comm.contains("loop")).then_some(())?;
        // The first number is the time on a CPU, ns.
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    processes.filter_map(time).sum::<f64>() / 1e9
}

/// Runs fio and returns its rate, IOPS.
fn load(disk: &str) -> f64 {
    let output = Command::new("fio")
        .args(["--name=load", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=16"])
        .args(["--time_based", "--output-format=json", &format!("--runtime={SECONDS}")])
        .args([format!("--rate_iops={IOPS}"), format!("--filename={disk}")])
        .output()
        .expect("fio runs");
    let text = String::from_utf8(output.stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio prints JSON");
    json["jobs"][0]["read"]["iops"].as_f64().unwrap()
}

/// Returns the CPU time that events add to one I/O, ns. The first value is for the thread that
/// submits the I/O, the second for the loop device's worker that completes the I/O.
fn events_ns(disk: &BlockDevice) -> (f64, f64) {
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(disk.path()).unwrap();
    let mut memory = vec![0; 2 * BLOCK];
    let aligned = memory.as_ptr().align_offset(BLOCK);
    let block = &mut memory[aligned..aligned + BLOCK];
    let mut round = |with: bool| {
        let options = ObserveOptions { sampled_above: None, ..ObserveOptions::default() };
        let mut observer = with.then(|| Observer::begin(&Roots::default(), vec![disk.clone()], options));
        if let Some(observer) = &mut observer {
            observer.take().unwrap();
        }
        let (thread, workers) = (thread_seconds(), workers_seconds());
        for number in 0..READS {
            file.read_exact_at(block, (number % 1024) * BLOCK as u64).unwrap();
        }
        let (thread, workers) = (thread_seconds() - thread, workers_seconds() - workers);
        [thread, workers].map(|seconds| seconds * 1e9 / READS as f64)
    };
    let differences: Vec<[f64; 2]> = (0..ROUNDS)
        .map(|_| {
            let (without, with) = (round(false), round(true));
            [with[0] - without[0], with[1] - without[1]]
        })
        .collect();
    let of = |part: usize| median(differences.iter().map(|difference| difference[part]).collect());
    (of(0), of(1))
}

/// Runs the load under an observer. Returns the load's rate, the observer's CPU time in % of a
/// core, and the fraction of requests that it observed.
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
        assert_eq!(lost, 0, "events were lost");
        (percent, requests as f64)
    });
    let iops = load(disk.path().to_str().unwrap());
    stop.store(true, Ordering::SeqCst);
    let (percent, requests) = observer.join().unwrap();
    (iops, percent, requests / (iops * f64::from(SECONDS)))
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
    let (submit_ns, complete_ns) = events_ns(&disk);
    println!("events of an I/O: {submit_ns:.0} ns where it is made, {complete_ns:.0} ns where it is completed");
    for (name, sampled_above) in [("a sample", Some(ObserveOptions::SAMPLED_ABOVE)), ("all requests", None)] {
        let runs: Vec<_> = (0..REPEATS).map(|_| observed(&disk, sampled_above)).collect();
        let [iops, observer, part] =
            [0, 1, 2].map(|at| median(runs.iter().map(|run| [run.0, run.1, run.2][at]).collect()));
        let events = (submit_ns + complete_ns).max(0.0) * f64::from(IOPS) * part.min(1.0) / 1e9 * 100.0;
        println!(
            "{name} ({:.0} %): at {iops:.0} IOPS, the observer takes {observer:.2} % of a core and the events take \
             {events:.2} %, together {:.2} % (goal: below {GOAL} %)",
            part * 100.0,
            observer + events
        );
    }
    let _ = Command::new("losetup").arg("--detach").arg(&path).status();
    let _ = fs::remove_file(&image);
}
