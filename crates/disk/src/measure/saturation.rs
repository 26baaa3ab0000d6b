//! Rates of a device at saturation for io.cost: bytes and I/Os per second, sequential and random,
//! for reads and writes. The module also measures the latency of random I/Os when the device is
//! busy but not overloaded.

use iosched::Op;

use super::load::{Done, Next, closed_loop, random};
use crate::io_cost::{BUSY, IoCostModel, IoCostQos, PROBE_BYTES, QOS_SHARE};
use crate::profile::Profile;

/// Numbers of commands in flight that the measurement tries.
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Numbers of 4 KiB commands of a probe, on rotating disks and on other devices. Writes need
/// `WRITES_TIMES` times as many. Their first half does not count, because a cache may accept it.
const SMALL_ROTATING: u64 = 1_000;
const SMALL: u64 = 10_000;
const WRITES_TIMES: u64 = 4;
/// Number of large commands of a probe. The first quarter does not count.
const LARGE: u64 = 2_048;
/// Share of the I/Os to which the latencies of a QoS apply, per cent.
const QOS_PERCENT: f64 = 95.0;

/// Rates of one direction at saturation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturated {
    /// Bytes per second of sequential commands of [`PROBE_BYTES`], and the number of commands in
    /// flight at this rate.
    pub bytes: (f64, u32),
    /// 4 KiB sequential commands per second, and the number of commands in flight at this rate.
    pub sequential: (f64, u32),
    /// 4 KiB random commands per second, and the number of commands in flight at this rate.
    pub random: (f64, u32),
    /// Smallest number of commands in flight that reaches at least nine tenths of the random rate.
    pub busy_depth: u32,
    /// 95th percentile of the latencies of random commands at `busy_depth`, ns.
    pub busy_p95_ns: u64,
}

/// Rates of both directions at saturation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Reads.
    pub reads: Saturated,
    /// Writes of a new device.
    pub writes: Saturated,
}

impl Saturation {
    /// Returns io.cost's linear model.
    #[must_use]
    pub fn model(&self) -> IoCostModel {
        let speeds = |saturated: &Saturated| {
            [saturated.bytes.0, saturated.sequential.0, saturated.random.0].map(|value| (value as u64).max(1))
        };
        let ([a, b, c], [d, e, f]) = (speeds(&self.reads), speeds(&self.writes));
        IoCostModel::of([a, b, c, d, e, f])
    }

    /// Returns a QoS with the latencies of the busy device as targets.
    #[must_use]
    pub fn qos(&self) -> IoCostQos {
        let us = |saturated: &Saturated| saturated.busy_p95_ns.div_ceil(1000).max(1);
        IoCostQos {
            rpct: QOS_PERCENT,
            rlat_us: us(&self.reads),
            wpct: QOS_PERCENT,
            wlat_us: us(&self.writes),
            min: IoCostQos::MIN,
            max: IoCostQos::MAX,
        }
    }
}

/// Measures the device at saturation.
#[must_use]
pub fn saturation(profile: &Profile) -> Saturation {
    let saturated = |op| Saturated::of(profile, op);
    Saturation { reads: saturated(Op::Read), writes: saturated(Op::Write) }
}

impl Saturated {
    fn of(profile: &Profile, op: Op) -> Self {
        let card = profile.card();
        let depths: Vec<u32> = DEPTHS.into_iter().filter(|&depth| depth <= card.depth).collect();
        let small = if card.rotational { SMALL_ROTATING } else { SMALL };
        let small = if op == Op::Write { small * WRITES_TIMES } else { small };
        let skipped = |count: u64| if op == Op::Write { count / 2 } else { 0 };
        let most = |rates: &mut dyn Iterator<Item = (f64, u32)>| {
            rates.fold((0.0, 1), |best, rate| if rate.0 > best.0 * 1.001 { rate } else { best })
        };
        // The rate is highest at depth 1 or at large depths. Depth 1 can be best for devices that
        // read ahead.
        let ends: Vec<u32> =
            depths.iter().copied().filter(|&depth| depth == 1 || depth >= 32 || depth * 2 > card.depth).collect();
        let run = |sectors: u32, count: u64, warm_up: u64, depth: u32| {
            let count = count.min(card.capacity_sectors / u64::from(sectors));
            let mut device = profile.device(u64::from(depth));
            let mut sector = 0;
            let mut left = count;
            closed_loop(&mut device, 0, depth, warm_up.min(count / 2), || {
                left = left.checked_sub(1)?;
                sector += u64::from(sectors);
                Some(Next { op, sector: sector - u64::from(sectors), nr_sectors: sectors })
            })
            .rate()
        };
        let large = (PROBE_BYTES / 512) as u32;
        let bytes = most(&mut ends.iter().map(|&d| (run(large, LARGE, LARGE / 4, d) * PROBE_BYTES as f64, d)));
        let sequential = most(&mut ends.iter().map(|&d| (run(8, small * 2, skipped(small * 2), d), d)));
        let at_random = |depth: u32| {
            let mut device = profile.device(u64::from(depth));
            closed_loop(&mut device, 0, depth, skipped(small), random(op, card.capacity_sectors, small, 5))
        };
        let all: Vec<(u32, Done)> = depths.iter().map(|&depth| (depth, at_random(depth))).collect();
        let best = most(&mut all.iter().map(|(depth, done)| (done.rate(), *depth)));
        let busy = all.into_iter().find(|(_, done)| done.rate() >= BUSY * best.0);
        let (busy_depth, busy_p95_ns) = busy.map_or((1, 0), |(depth, done)| {
            let mut latencies = done.latencies;
            latencies.sort();
            (depth, latencies.quantile_ns(QOS_SHARE))
        });
        Self { bytes, sequential, random: best, busy_depth, busy_p95_ns }
    }
}
