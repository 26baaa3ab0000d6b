//! Kinds of devices that io.cost assumes until the user sets the parameters.

use super::files::{Model, Qos};
use super::model::Speeds;

/// Kind of device, with latency targets and speeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    /// Rotational device.
    Disk,
    /// Device that takes one request at a time.
    OneRequest,
    /// Flash.
    Flash,
    /// Flash that turned out to be fast.
    FastFlash,
}

impl Table {
    /// Returns latency targets and bounds of the rate. The share of requests that must meet the
    /// targets is 0: the targets only determine the period.
    pub(super) fn qos(self) -> Qos {
        let latency_us = match self {
            Self::Disk => 250_000,
            Self::OneRequest | Self::Flash => 25_000,
            Self::FastFlash => 5_000,
        };
        Qos { target_ppm: [0; 2], target_us: [latency_us; 2], slowest_ppm: 10_000, fastest_ppm: 100_000_000 }
    }

    /// Returns the capacity per second.
    pub(super) fn model(self) -> Model {
        let [read, write] = match self {
            Self::Disk => [[174_019_176, 41_708, 370], [178_075_866, 42_705, 378]],
            Self::OneRequest => [[245_855_193, 61_575, 6_946], [141_365_009, 33_716, 26_796]],
            Self::Flash => [[488_636_629, 8_932, 8_518], [427_891_549, 28_755, 21_940]],
            Self::FastFlash => [[3_102_524_156, 724_816, 778_122], [1_742_780_862, 425_702, 443_193]],
        };
        let speeds = |[bps, sequential_iops, random_iops]: [u64; 3]| Speeds { bps, sequential_iops, random_iops };
        Model([speeds(read), speeds(write)])
    }
}
