//! The model and the QoS of io.cost, and their text in the kernel's files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The linear model of `io.cost.model`: rates of the device at saturation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoCostModel {
    /// Bytes per second of large sequential reads.
    pub rbps: u64,
    /// 4 KiB sequential reads per second.
    pub rseqiops: u64,
    /// 4 KiB random reads per second.
    pub rrandiops: u64,
    /// Bytes per second of large sequential writes.
    pub wbps: u64,
    /// 4 KiB sequential writes per second.
    pub wseqiops: u64,
    /// 4 KiB random writes per second.
    pub wrandiops: u64,
}

/// The target latencies of `io.cost.qos`, and the bounds of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoCostQos {
    /// Share of reads whose latency must be at most `rlat_us`, per cent; 0: reads are not checked.
    pub rpct: f64,
    /// Target latency of reads, us.
    pub rlat_us: u64,
    /// Share of writes whose latency must be at most `wlat_us`, per cent; 0: writes are not
    /// checked.
    pub wpct: f64,
    /// Target latency of writes, us.
    pub wlat_us: u64,
    /// Smallest rate of virtual time, per cent of the model.
    pub min: f64,
    /// Largest rate of virtual time, per cent of the model.
    pub max: f64,
}

/// Parameters of io.cost that a text gives for one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Number or model name of the device; empty if it is not given.
    pub name: String,
    /// Model of the device.
    pub model: IoCostModel,
    /// QoS of the device, if given.
    pub qos: Option<IoCostQos>,
}

impl IoCostModel {
    /// Names of the coefficients in the kernel.
    pub const NAMES: [&'static str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

    /// Returns the coefficients in the order of [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn figures(&self) -> [u64; 6] {
        [self.rbps, self.rseqiops, self.rrandiops, self.wbps, self.wseqiops, self.wrandiops]
    }

    /// Creates a model from coefficients in the order of [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn of([rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops]: [u64; 6]) -> Self {
        Self { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops }
    }

    /// Returns the text to write to `io.cost.model` after the device's number.
    #[must_use]
    pub fn line(&self) -> String {
        format!("ctrl=user model=linear {self}")
    }
}

impl IoCostQos {
    /// Default lower bound of the rate of virtual time, per cent. With the two bounds, io.cost can
    /// correct a model that is wrong by half. The rate does not become so high that weights have no
    /// effect.
    pub const MIN: f64 = 50.0;
    /// Default upper bound. See [`MIN`](Self::MIN).
    pub const MAX: f64 = 150.0;

    /// Returns the text to write to `io.cost.qos` after the device's number.
    #[must_use]
    pub fn line(&self) -> String {
        format!("enable=1 ctrl=user {self}")
    }
}

impl fmt::Display for IoCostModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, figure)) in Self::NAMES.iter().zip(self.figures()).enumerate() {
            write!(f, "{}{name}={figure}", if number == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl fmt::Display for IoCostQos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rpct, rlat_us, wpct, wlat_us, min, max } = self;
        write!(f, "rpct={rpct:.2} rlat={rlat_us} wpct={wpct:.2} wlat={wlat_us} min={min:.2} max={max:.2}")
    }
}
