//! The host of the measurements, which keeps a device busy and records the latency of each command.

use iosched::{Op, Time};

use super::latency::Latencies;
use crate::{Command, Device};
use iosched_numbers::SplitMix64;

/// The next command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) op: Op,
    pub(super) sector: u64,
    pub(super) nr_sectors: u32,
}

/// Results of a closed loop.
#[derive(Clone, Debug)]
pub(super) struct Done {
    /// Latencies of all commands.
    pub(super) latencies: Latencies,
    /// Completion time of the first command that counts, ns.
    first_ns: u64,
    /// Completion time of the last command, ns.
    pub(super) last_ns: u64,
    /// Number of commands that completed after the first command that counts.
    counted: u64,
}

impl Done {
    /// Returns commands per second.
    pub(super) fn rate(&self) -> f64 {
        self.counted as f64 * 1e9 / (self.last_ns - self.first_ns).max(1) as f64
    }
}

/// Keeps `depth` commands outstanding from `now_ns` on, until `next` returns `None`. The device
/// gets as many of these commands as it accepts. The measurement of the rate begins with the
/// completion of command number `warm_up`.
pub(super) fn closed_loop<D: Device>(
    device: &mut D,
    now_ns: u64,
    depth: u32,
    warm_up: u64,
    mut next: impl FnMut() -> Option<Next>,
) -> Done {
    let depth = depth.min(device.card().depth) as usize;
    let mut submitted_ns = vec![0; depth];
    let mut done = Done { latencies: Latencies::default(), first_ns: now_ns, last_ns: now_ns, counted: 0 };
    let mut completed = 0;
    let mut outstanding = 0;
    let mut free: Vec<u32> = (0..depth as u32).rev().collect();
    let mut now = Time::from_ns(now_ns);
    loop {
        while let Some(&tag) = free.last() {
            let Some(Next { op, sector, nr_sectors }) = next() else { break };
            free.pop();
            outstanding += 1;
            submitted_ns[tag as usize] = now.as_ns();
            device.submit(now, Command { tag, op, sector, nr_sectors, fua: false });
        }
        if outstanding == 0 {
            return done;
        }
        let Some(at) = device.next_event() else { return done };
        now = at;
        while let Some(tag) = device.advance(now) {
            outstanding -= 1;
            free.push(tag);
            done.latencies.record(now.as_ns() - submitted_ns[tag as usize]);
            done.last_ns = now.as_ns();
            if completed == warm_up {
                done.first_ns = done.last_ns;
            }
            done.counted += u64::from(completed > warm_up);
            completed += 1;
        }
    }
}

/// Generates `count` random commands of 4 KiB below `end_sector`.
pub(super) fn random(op: Op, end_sector: u64, count: u64, seed: u64) -> impl FnMut() -> Option<Next> {
    let blocks = (end_sector / 8).max(1);
    let (mut random, mut left) = (SplitMix64::new(seed), count);
    move || {
        left = left.checked_sub(1)?;
        Some(Next { op, sector: random.below(blocks) * 8, nr_sectors: 8.min(end_sector) as u32 })
    }
}

/// Generates `count` sequential commands of 128 KiB from `start` on.
pub(super) fn sequential(op: Op, start: u64, count: u64) -> impl FnMut() -> Option<Next> {
    let mut i = 0;
    move || {
        i += 1;
        (i <= count).then(|| Next {
            op,
            sector: start + (i - 1) * u64::from(super::SEQUENTIAL_SECTORS),
            nr_sectors: super::SEQUENTIAL_SECTORS,
        })
    }
}
