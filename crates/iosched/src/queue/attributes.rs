//! Attributes of a request queue: the files in `/sys/block/<dev>/queue`.

use super::config::QueueConfig;
use crate::layer::{Layer, MultiQueueRules, Tags};
use crate::tunable::{Declarations, Span, TunableError, tunable};

/// Sectors in a KiB.
const SECTORS_PER_KIB: u64 = 2;

/// Values of the attributes, in base units.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    pub(super) nr_requests: u32,
    pub(super) max_sectors: u32,
    pub(super) max_hw_sectors: u32,
    pub(super) read_ahead_kb: u32,
    pub(super) rotational: bool,
    pub(super) nomerges: u32,
    pub(super) iostats: bool,
    pub(super) wbt_lat_usec: u32,
}

/// Declarations of the attributes of every request queue.
pub(super) static ATTRIBUTES: Declarations<Attributes> = Declarations {
    owner: "a request queue",
    what: "attribute",
    tunables: &[
        tunable!(
            Attributes.nr_requests,
            "nr_requests",
            Requests,
            1,
            128,
            1..=u32::MAX as u64,
            "2.6.0",
            "largest number of requests, waiting or in the device. In the legacy queue, this limit applies to sync \
             and to async requests separately. In blk-mq, it applies to each hardware queue. 4294967295: no limit",
            { tuning: Span::of(16, 1_024) }
        ),
        tunable!(
            Attributes.max_sectors,
            "max_sectors_kb",
            Kibibytes,
            SECTORS_PER_KIB,
            512,
            4..=(u32::MAX / 2) as u64,
            "2.6.0",
            "largest request; at most max_hw_sectors_kb",
            { tuning: Span::of(64, 4_096) }
        ),
        tunable!(Attributes.max_hw_sectors, "max_hw_sectors_kb", Kibibytes, SECTORS_PER_KIB, 512, 4..=(u32::MAX / 2) as u64, "2.6.0",
            "largest request that the device accepts", { read_only: true }),
        tunable!(
            Attributes.read_ahead_kb,
            "read_ahead_kb",
            Kibibytes,
            1,
            128,
            0..=u32::MAX as u64,
            "2.6.0",
            "largest readahead of a sequential reader",
            { tuning: Span::or_zero(16, 4_096) }
        ),
        tunable!(Attributes.rotational, "rotational", Switch, 1, 1, 0..=1, "2.6.29",
            "1: the device has seek times, as rotating disks do", { read_only: true }),
        tunable!(
            Attributes.nomerges,
            "nomerges",
            Count,
            1,
            0,
            0..=2,
            "2.6.25",
            "0: merge all requests that can be merged; 1: merge only with the last merged \
             request; 2: do not merge",
            { tuning: Span::or_zero(1, 2) }
        ),
        tunable!(
            Attributes.wbt_lat_usec,
            "wbt_lat_usec",
            Microseconds,
            1,
            0,
            0..=u32::MAX as u64,
            "4.10",
            "target latency of reads for writeback throttling (blk-mq only); 0: off. Default on simulated \
             disks, as in Linux: 2000 for a disk without seek times (SSD), 75000 for a rotating disk, 0 under bfq. Default on \
             served disks: 0"
        ),
        tunable!(
            Attributes.iostats,
            "iostats",
            Switch,
            1,
            1,
            0..=1,
            "2.6.29",
            "1: keep \
            statistics of the disk"
        ),
    ],
};

/// Default of the largest request since Linux 6.17, in sectors, if the device accepts it.
const LARGE_SECTORS: u32 = 8192;

/// Default of `nr_requests` in the single-queue layer.
const SINGLE_QUEUE_REQUESTS: u32 = 128;

/// Returns the default of `nr_requests` for an elevator of `layer`, on a device that accepts
/// `depth` commands per hardware queue.
pub(super) fn default_nr_requests(layer: Layer, depth: u32) -> u32 {
    match layer {
        Layer::SingleQueue => SINGLE_QUEUE_REQUESTS,
        Layer::MultiQueue(MultiQueueRules { tags: Tags::Device, .. }) => depth,
        Layer::MultiQueue(_) => 2 * depth.min(SINGLE_QUEUE_REQUESTS),
    }
}

impl Attributes {
    pub(super) fn new(config: &QueueConfig, layer: Layer) -> Self {
        let mut attributes = Self::default();
        ATTRIBUTES.set_defaults(&mut attributes);
        attributes.max_hw_sectors = config.max_hw_sectors_kb.saturating_mul(2);
        if layer.is_multi_queue() && config.kernel.is_since(6, 17) {
            attributes.max_sectors = LARGE_SECTORS;
        }
        attributes.max_sectors = attributes.max_sectors.min(attributes.max_hw_sectors);
        attributes.read_ahead_kb = config.read_ahead_kb;
        attributes.rotational = config.rotational;
        attributes.nr_requests = default_nr_requests(layer, config.depth.max(1));
        attributes
    }

    /// Parses `text` and sets the attribute `name`.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), TunableError> {
        let mut changed = self.clone();
        ATTRIBUTES.set(&mut changed, name, text)?;
        if changed.max_sectors > changed.max_hw_sectors {
            return Err(TunableError::OutOfRange {
                name: "max_sectors_kb",
                value: (u64::from(changed.max_sectors) / SECTORS_PER_KIB).to_string(),
                takes: format!("4 to {} KiB", u64::from(self.max_hw_sectors) / SECTORS_PER_KIB),
            });
        }
        *self = changed;
        Ok(())
    }
}
