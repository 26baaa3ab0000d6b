//! Metrics of devices: names, meanings, and valid units.
//!
//! The list of metrics is complete. An anchor is therefore either measured or rejected, and never
//! ignored.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Quantity that a metric measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A duration; base unit ns.
    Time,
    /// Commands per second.
    Rate,
    /// Bytes per second.
    Throughput,
    /// A ratio of two metrics.
    Ratio,
}

/// A unit of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Commands per second.
    #[serde(rename = "IOPS")]
    Iops,
    /// Millions of bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// A factor.
    #[serde(rename = "times")]
    Times,
}

impl Unit {
    /// All units of metrics.
    pub const ALL: &[Self] =
        &[Self::Milliseconds, Self::Microseconds, Self::Iops, Self::MegabytesPerSecond, Self::Times];

    /// Returns the name of the unit in a profile.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Iops => "IOPS",
            Self::MegabytesPerSecond => "MB/s",
            Self::Times => "times",
        }
    }

    /// Returns the quantity of the unit.
    #[must_use]
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Milliseconds | Self::Microseconds => Quantity::Time,
            Self::Iops => Quantity::Rate,
            Self::MegabytesPerSecond => Quantity::Throughput,
            Self::Times => Quantity::Ratio,
        }
    }

    /// Returns the factor from this unit to the base unit of the quantity: ns, IOPS, bytes per
    /// second.
    #[must_use]
    pub const fn factor(self) -> f64 {
        match self {
            Self::Milliseconds | Self::MegabytesPerSecond => 1e6,
            Self::Microseconds => 1e3,
            Self::Iops | Self::Times => 1.0,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for an unknown name of a metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no metric {name:?}; available: {known}")]
pub struct UnknownFigure {
    /// The name that was given.
    pub name: String,
    /// Names of the metrics.
    pub known: String,
}

macro_rules! figures {
    ($($variant:ident $name:literal $quantity:ident $title:literal: $doc:literal,)*) => {
        /// A metric of a device. Random commands have 4 KiB, and sequential commands have 128 KiB.
        /// Commands are aligned to their size. Random commands are anywhere on the device, unless
        /// the metric defines something else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Figure {
            $(#[doc = $doc] $variant,)*
        }

        impl Figure {
            /// All metrics in the order of the output.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name of the metric in a profile.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the quantity of the metric.
            #[must_use]
            pub const fn quantity(self) -> Quantity {
                match self { $(Self::$variant => Quantity::$quantity,)* }
            }

            /// Returns the title of the metric in a table.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Returns a description of the metric in one sentence.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

figures! {
    AverageReadSeek "average_read_seek" Time "average seek, read":
        "Mean time to seek from one random sector to another, for reads, without the rotational delay.",
    AverageWriteSeek "average_write_seek" Time "average seek, write":
        "Mean time to seek from one random sector to another, for writes, without the rotational delay.",
    TrackToTrackReadSeek "track_to_track_read_seek" Time "single-track seek, read":
        "Seek time from one cylinder to the next.",
    TrackToTrackWriteSeek "track_to_track_write_seek" Time "single-track seek, write":
        "Seek time from one cylinder to the next, for writes.",
    FullStrokeReadSeek "full_stroke_read_seek" Time "full-stroke seek, read":
        "Seek time from the first sector to the last.",
    FullStrokeWriteSeek "full_stroke_write_seek" Time "full-stroke seek, write":
        "Seek time from the first sector to the last, for writes.",
    RandomRead4kLatency "random_read_4k_latency" Time "random read, one at a time":
        "Mean latency of 4 KiB random reads at queue depth 1.",
    RandomRead4kDepth1 "random_read_4k_depth_1" Rate "random read, depth 1":
        "4 KiB random reads per second, one in flight.",
    RandomRead4kDepth32 "random_read_4k_depth_32" Rate "random read, depth 32":
        "4 KiB random reads per second, 32 in flight.",
    RandomRead4kDepth256 "random_read_4k_depth_256" Rate "random read, depth 256":
        "4 KiB random reads per second, 256 in flight.",
    RandomWrite4kLatency "random_write_4k_latency" Time "random write, one at a time":
        "Mean latency of the first 200 random 4 KiB writes to a new device, one at a time. These writes go into the \
         cache of the device.",
    RandomWrite4kDepth1 "random_write_4k_depth_1" Rate "random write, depth 1":
        "4 KiB random writes per second, one in flight, after caches are full.",
    RandomWrite4kDepth32 "random_write_4k_depth_32" Rate "random write, depth 32":
        "4 KiB random writes per second, 32 in flight, after caches are full.",
    SteadyRandomWrite4kDepth32 "steady_random_write_4k_depth_32" Rate "random write, steady state":
        "4 KiB random writes per second, 32 in flight, on an SSD that was filled and then overwritten at random.",
    SequentialReadOuterEdge "sequential_read_outer_edge" Throughput "sequential read, first sectors":
        "Rate of sequential reads from the first sector on (on a rotating disk, the outer edge).",
    SequentialReadAverage "sequential_read_average" Throughput "sequential read, average":
        "Rate of sequential reads of the whole device.",
    SequentialReadInnerEdge "sequential_read_inner_edge" Throughput "sequential read, last sectors":
        "Rate of sequential reads of the last sectors (on a rotating disk, the inner edge).",
    SequentialWriteOuterEdge "sequential_write_outer_edge" Throughput "sequential write, first sectors":
        "Rate of sequential writes from the first sector on, after caches are full.",
    SequentialWriteInnerEdge "sequential_write_inner_edge" Throughput "sequential write, last sectors":
        "Rate of sequential writes to the last sectors, after caches are full.",
    FlushAfterWrite "flush_after_write" Time "flush after one write":
        "Latency of a flush right after one 4 KiB write was acknowledged.",
    FlushAfter4ScatteredWrites "flush_after_4_scattered_writes" Time "flush after 4 random writes":
        "Mean latency of a flush right after 4 random 4 KiB writes were acknowledged.",
    FlushAfter16ScatteredWrites "flush_after_16_scattered_writes" Time "flush after 16 random writes":
        "Mean latency of a flush right after 16 random 4 KiB writes were acknowledged.",
    FlushAfter64ScatteredWrites "flush_after_64_scattered_writes" Time "flush after 64 random writes":
        "Mean latency of a flush right after 64 random 4 KiB writes were acknowledged.",
    ShortStrokeHalf "short_stroke_half" Ratio "random reads: first half against whole device":
        "Rate of 4 KiB random reads on the first half of the device, divided by the rate on the whole device.",
    ShortStrokeTenth "short_stroke_tenth" Ratio "random reads: first tenth against whole device":
        "Rate of 4 KiB random reads on the first tenth of the device, divided by the rate on the whole device.",
}

impl Figure {
    /// Returns the unit in which tables show a value. `value` is in the base unit.
    #[must_use]
    pub fn unit_for(self, value: f64) -> Unit {
        match self.quantity() {
            Quantity::Time if value < 1e6 => Unit::Microseconds,
            Quantity::Time => Unit::Milliseconds,
            Quantity::Rate => Unit::Iops,
            Quantity::Throughput => Unit::MegabytesPerSecond,
            Quantity::Ratio => Unit::Times,
        }
    }
}

impl Figure {
    /// Returns whether the metric changes when the flash must be cleaned. The value of a fresh
    /// device then does not apply.
    #[must_use]
    pub const fn is_of_fresh_flash(self) -> bool {
        matches!(
            self,
            Self::RandomWrite4kLatency
                | Self::RandomWrite4kDepth1
                | Self::RandomWrite4kDepth32
                | Self::SequentialWriteOuterEdge
                | Self::SequentialWriteInnerEdge
        )
    }

    /// Returns the number of outstanding commands during the measurement. Returns 1 if the metric
    /// does not specify this number.
    #[must_use]
    pub const fn depth(self) -> u32 {
        match self {
            Self::RandomRead4kDepth256 => 256,
            Self::RandomRead4kDepth32 | Self::RandomWrite4kDepth32 | Self::SteadyRandomWrite4kDepth32 => 32,
            _ => 1,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Figure {
    type Err = UnknownFigure;

    fn from_str(name: &str) -> Result<Self, UnknownFigure> {
        Self::ALL.iter().copied().find(|figure| figure.name() == name).ok_or_else(|| UnknownFigure {
            name: name.to_owned(),
            known: Self::ALL.iter().map(|figure| figure.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
