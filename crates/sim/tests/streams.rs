//! Tests of one sequential stream of reads from an application to the modelled disk.

use iosched_disk::Profile;
use iosched_disk::measure::Figure;
use iosched_sim::{Plan, run};
use iosched_workload::Workload;
use iosched_workload::fio::{BlockSize, Client, Files, Job, JobFile, Jobs, PerDirection, Size};

const KIB: u64 = 1 << 10;

/// Returns direct sequential reads of `block_size` bytes, with `depth` in flight.
fn reader(block_size: u64, depth: u32) -> Workload {
    let job = Job {
        files: Files::Named(vec!["/dev/sda".to_owned()]),
        direct: true,
        client: Client::Async,
        io_depth: depth,
        io_depth_low: depth,
        block_size: PerDirection { read: BlockSize::Fixed(block_size), ..Job::new("reader").block_size },
        size: Some(Size::Bytes((64 << 20).max(16 * block_size))),
        ..Job::new("reader")
    };
    Workload::Jobs(Jobs::new(JobFile { name: "reader.fio".to_owned(), jobs: vec![job], ignored: Vec::new() }))
}

#[test]
fn a_reader_gets_the_disk_rate_at_any_block_size() {
    let mut off = Vec::new();
    for device in ["sata-desktop", "sata-7200", "sata-7200-slow", "sata-2005", "st3500641as", "scsi-10k", "scsi-15k"] {
        let profile = Profile::named(device).unwrap();
        let named = profile.anchors().iter().find(|anchor| anchor.figure == Figure::SequentialReadOuterEdge).unwrap();
        for block_size in [64 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB, 2048 * KIB, 4096 * KIB, 16_384 * KIB] {
            for depth in [1, 2, 3, 4, 8, 32] {
                let workload = reader(block_size, depth);
                for scheduler in ["none", "mq-deadline"] {
                    let result = run(&Plan::new(&workload, &profile, scheduler.parse().unwrap()), ()).unwrap();
                    let rate = result.bytes_read as f64 * 1e3 / result.finished_ns as f64;
                    let worst_ns = result.jobs[0].read.latency.max_ns();
                    // The bound has two parts: 1.5 times the time of all I/Os in flight at the
                    // named rate, and the time of a seek and a revolution.
                    let turn_ns = block_size as f64 * f64::from(depth) * 1e3 / named.value;
                    if rate < 0.95 * named.value || worst_ns as f64 > 1.5 * turn_ns + 40e6 {
                        off.push(format!(
                            "{device}, {scheduler}, {} KiB, depth {depth}: {rate:.1} of {} MB/s, at worst {} ms",
                            block_size / KIB,
                            named.value,
                            worst_ns / 1_000_000
                        ));
                    }
                }
            }
        }
    }
    assert!(off.is_empty(), "{}:\n{}", off.len(), off.join("\n"));
}
