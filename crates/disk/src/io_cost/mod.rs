//! What io.cost is told of a device: the linear model (bytes and I/Os a second at saturation, sequential and random,
//! both ways) and the latencies that are to be kept; as the kernel's files, systemd's hwdb and results of resctl-bench
//! have them, and as a profile of a device of which nothing else is known.

mod document;
mod family;
mod rates;
mod text;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::document::DocumentError;
pub use self::family::{Family, Member};
pub use self::rates::{PROBE_BYTES, Spread, server};
pub use self::text::{PERMANENT, TOLD, TextError, hwdb};

/// Who does so much of its most is busy, with as few commands under way as that takes.
pub const BUSY: f64 = 0.9;
/// The share of I/Os that the latencies of a QoS are of.
pub const QOS_SHARE: f64 = 0.95;

/// The linear model of `io.cost.model`: what the device does at saturation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoCostModel {
    /// Bytes read a second by large sequential I/Os.
    pub rbps: u64,
    /// 4 KiB sequential reads a second.
    pub rseqiops: u64,
    /// 4 KiB random reads a second.
    pub rrandiops: u64,
    /// Bytes written a second by large sequential I/Os.
    pub wbps: u64,
    /// 4 KiB sequential writes a second.
    pub wseqiops: u64,
    /// 4 KiB random writes a second.
    pub wrandiops: u64,
}

/// The latencies of `io.cost.qos`, and how far the rate may go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoCostQos {
    /// Share of reads that are to take no longer than `rlat_us`, per cent; 0: none are looked at.
    pub rpct: f64,
    /// Latency of reads, us.
    pub rlat_us: u64,
    /// Share of writes, per cent.
    pub wpct: f64,
    /// Latency of writes, us.
    pub wlat_us: u64,
    /// Least rate of virtual time, per cent of what the model says.
    pub min: f64,
    /// Greatest rate of virtual time, likewise.
    pub max: f64,
}

/// What is said of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The device's number or the model name; empty if it is not said whose it is.
    pub name: String,
    /// Its model.
    pub model: IoCostModel,
    /// Its QoS, if that is there.
    pub qos: Option<IoCostQos>,
}

/// What is wrong with descriptions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// Of lines or hwdb.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Of a JSON document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Reads descriptions, in their order: lines of the kernel's two files, entries of hwdb, or a JSON document.
///
/// # Errors
/// What is none of these, or has no model.
pub fn read(text: &str) -> Result<Vec<Described>, DescriptionError> {
    if document::is_document(text) { Ok(document::read(text)?) } else { Ok(text::read(text)?) }
}

impl IoCostModel {
    /// The names of the coefficients, as the kernel has them.
    pub const NAMES: [&'static str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

    /// By [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn figures(&self) -> [u64; 6] {
        [self.rbps, self.rseqiops, self.rrandiops, self.wbps, self.wseqiops, self.wrandiops]
    }

    /// Of figures by [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn of([rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops]: [u64; 6]) -> Self {
        Self { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops }
    }

    /// What is written to `io.cost.model` behind the device's number.
    #[must_use]
    pub fn line(&self) -> String {
        format!("ctrl=user model=linear {self}")
    }
}

impl IoCostQos {
    /// Bounds of the rate of virtual time where nothing else is known, per cent: a model that is off by half corrects
    /// itself, and the rate does not rise until weights mean nothing.
    pub const MIN: f64 = 50.0;
    /// See [`MIN`](Self::MIN).
    pub const MAX: f64 = 150.0;

    /// What is written to `io.cost.qos` behind the device's number.
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
