//! Model of a device with known rates at saturation and, perhaps, known latencies of reads. The
//! model has servers behind one queue.

use super::latencies::Latencies;
use super::model::IoCostModel;
use crate::server::{ServerConfig, ServerTimes};

/// Size of the I/Os for rates in bytes per second. At this size, the cost per command hardly
/// matters.
pub const PROBE_BYTES: u64 = 1 << 20;
const SMALL_BYTES: f64 = 4096.0;
/// Assumed latency of a single random read without other load, s, if it was not measured. This
/// value is typical of flash. The number of servers follows from this latency and the rate, and is
/// at most `SERVERS_MAX`.
const READ_S: f64 = 80e-6;
const SERVERS_MAX: f64 = 32.0;
/// Assumed time of a flush, ns.
const FLUSH_NS: u64 = 1_000_000;
/// Assumed size of the largest command, KiB.
const MAX_HW_SECTORS_KB: u32 = 1024;
/// Number of commands that a SATA device takes at the same time. A device that takes more is NVMe.
const SATA_DEPTH: u32 = 32;
/// Assumed number of hardware queues of NVMe. Linux has one for each processor.
const NVME_HW_QUEUES: u16 = 8;
/// Assumed number of commands that an NVMe device executes at the same time, as in the profile
/// nvme-980pro.
const NVME_COMMAND_SLOTS: u32 = 256;

/// Deviation of the runs of one device from their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// Deviation of rates, per cent.
    pub percent: f64,
}

/// Returns servers that reach the rates of `model`: random and sequential I/Os of 4 KiB, and
/// sequential I/Os of [`PROBE_BYTES`]. The device takes `depth` commands at the same time. With
/// `latencies`, a single read takes as long as measured, and reads wait for parts of the flash that
/// writes occupy.
#[must_use]
pub fn server(
    model: &IoCostModel,
    (capacity_sectors, depth): (u64, u32),
    latencies: Option<&Latencies>,
) -> ServerConfig {
    let read_s = latencies.map_or(READ_S, |latencies| latencies.lone_read.0 as f64 / 1e9);
    let servers = (model.rrandiops as f64 * read_s).round().clamp(1.0, SERVERS_MAX.min(f64::from(depth)));
    let read = Rates { bytes: model.rbps, sequential: model.rseqiops, random: model.rrandiops };
    let write = Rates { bytes: model.wbps, sequential: model.wseqiops, random: model.wrandiops };
    let ([mut read, mut random_read], [write, random_write]) = (read.times(servers), write.times(servers));
    if let Some(Latencies { lone_read: (lone_ns, bytes), .. }) = latencies {
        // For the rest of a single read's latency, no server is busy.
        let served_ns =
            random_read.service_ns as f64 + random_read.bytes_per_second.map_or(0.0, |rate| bytes * 1e9 / rate as f64);
        let transit_ns = lone_ns.saturating_sub(served_ns as u64);
        (read.transit_ns, random_read.transit_ns) = (transit_ns, transit_ns);
    }
    let is_nvme = depth > SATA_DEPTH;
    ServerConfig {
        capacity_sectors,
        depth,
        hw_queues: if is_nvme { NVME_HW_QUEUES } else { 1 },
        command_slots: is_nvme.then_some(NVME_COMMAND_SLOTS),
        max_hw_sectors_kb: MAX_HW_SECTORS_KB,
        rotational: false,
        write_cache: true,
        fua: false,
        servers: servers as u32,
        write_servers: None,
        choice: 1,
        missed_turns: None,
        batch: None,
        piece_sectors: None,
        link_bytes_per_second: None,
        flush_ns: FLUSH_NS,
        read,
        write: Some(write),
        random_read: Some(random_read),
        random_write: Some(random_write),
        stalls: None,
        settling: latencies.map(|latencies| latencies.settling),
        rest: None,
        credits: Vec::new(),
    }
}

/// Known rates of one direction, bytes or I/Os per second.
#[derive(Clone, Copy)]
struct Rates {
    bytes: u64,
    sequential: u64,
    random: u64,
}

impl Rates {
    /// Returns the times of sequential and random commands on one of `servers` servers.
    fn times(self, servers: f64) -> [ServerTimes; 2] {
        let small_s = |per_second: u64| servers / per_second as f64;
        let large_s = servers * PROBE_BYTES as f64 / self.bytes as f64;
        let byte_s = (large_s - small_s(self.sequential)) / (PROBE_BYTES as f64 - SMALL_BYTES);
        let fixed_s = small_s(self.sequential) - SMALL_BYTES * byte_s;
        let sequential = if fixed_s >= 0.0 {
            (fixed_s, byte_s)
        } else {
            // Small I/Os move more bytes per second than large I/Os. No fixed time per I/O explains
            // this. Therefore the model uses the geometric mean of the two times per byte.
            (0.0, (small_s(self.sequential) / SMALL_BYTES * large_s / PROBE_BYTES as f64).sqrt())
        };
        let random_s = small_s(self.random) - SMALL_BYTES * sequential.1;
        let random = if random_s >= 0.0 { (random_s, sequential.1) } else { (0.0, small_s(self.random) / SMALL_BYTES) };
        [sequential, random].map(|(fixed_s, byte_s)| ServerTimes {
            transit_ns: 0,
            service_ns: (fixed_s * 1e9).round() as u64,
            bytes_per_second: Some((1.0 / byte_s).round() as u64),
            extra_in_service: 0.0,
            extra: Vec::new(),
        })
    }
}
