//! Measures the cost of a simulated command: the time that this machine needs per command, ns. Only
//! the device is simulated, in a closed loop.
//!
//! `cargo run --release -p iosched-disk --example cost [PART OF A LINE'S NAME]`

#![allow(clippy::disallowed_methods, reason = "it measures this machine")]

use std::time::Instant;

use iosched::{Op, Time};
use iosched_disk::{AnyDevice, Command, Device, Profile};

/// Keeps `depth` commands outstanding until `total` commands are complete. Returns the wall time
/// and the virtual time per command, ns.
fn drive(device: &mut AnyDevice, depth: u32, total: u64, mut next: impl FnMut(u64) -> (Op, u64, u32)) -> (f64, f64) {
    let began = Instant::now();
    let mut now = Time::ZERO;
    let (mut submitted, mut completed) = (0, 0);
    let mut submit = |device: &mut AnyDevice, now: Time, tag: u32| {
        let (op, sector, nr_sectors) = next(submitted);
        submitted += 1;
        device.submit(now, Command { tag, op, sector, nr_sectors, fua: false });
    };
    for tag in 0..depth.min(device.card().depth) {
        submit(device, now, tag);
    }
    while completed < total {
        let Some(at) = device.next_event() else { break };
        now = at;
        while let Some(tag) = device.advance(now) {
            completed += 1;
            submit(device, now, tag);
        }
    }
    (began.elapsed().as_nanos() as f64 / completed as f64, now.as_ns() as f64 / completed as f64)
}

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(below)) >> 64) as u64
    };
    println!("{:<34} {:>12} {:>14}", "", "ns/request", "us simulated");
    for (profile, pattern, op, depth, total) in [
        ("sata-7200", "sequential", Op::Read, 1, 20_000_000),
        ("sata-7200", "sequential", Op::Read, 32, 5_000_000),
        ("sata-7200", "random", Op::Read, 1, 3_000_000),
        ("sata-7200", "random", Op::Read, 4, 3_000_000),
        ("sata-7200", "random", Op::Read, 32, 2_000_000),
        ("sata-7200", "sequential", Op::Write, 1, 20_000_000),
        ("sata-7200", "random", Op::Write, 1, 2_000_000),
        ("sata-7200", "random", Op::Write, 32, 2_000_000),
        ("sata-7200", "hit", Op::Read, 1, 20_000_000),
        ("sata-ssd", "random", Op::Read, 1, 5_000_000),
        ("sata-ssd", "random", Op::Read, 32, 5_000_000),
        ("sata-ssd", "random", Op::Write, 32, 5_000_000),
        ("sata-ssd", "sequential", Op::Read, 32, 5_000_000),
        ("sata-ssd:steady", "random", Op::Write, 32, 2_000_000),
        ("nvme", "random", Op::Read, 1, 5_000_000),
        ("nvme", "random", Op::Read, 256, 5_000_000),
        ("nvme", "random", Op::Write, 256, 5_000_000),
        ("san-lun", "random", Op::Read, 32, 1_000_000),
        ("san-lun", "random", Op::Write, 32, 1_000_000),
    ] {
        let Ok(profile) = Profile::named(profile) else { continue };
        let direction = if op == Op::Read { "read" } else { "write" };
        let name = format!("{} {pattern} {direction} depth {depth}", profile.name());
        if !name.contains(&only) {
            continue;
        }
        let mut device = profile.device(1);
        let blocks = profile.card().capacity_sectors / 8;
        let (wall_ns, virtual_ns) = drive(&mut device, depth, total, |i| {
            let block = match pattern {
                // The run never reaches the end of the device.
                "sequential" => i,
                "hit" => i & 15,
                _ => random(blocks),
            };
            (op, block * 8, 8)
        });
        println!("{name:<34} {wall_ns:>12.1} {:>14.2}", virtual_ns / 1e3);
    }
}
