//! Parameters of io.cost for a device: the linear model and the target latencies. The linear model
//! has bytes and I/Os per second at saturation, sequential and random, for reads and writes. Input
//! and output formats are the kernel's files, systemd's hwdb and results of resctl-bench. These
//! parameters alone are enough to create a profile of a device.

mod document;
mod family;
mod latencies;
mod model;
mod rates;
mod resctl;
mod text;

pub use self::document::DocumentError;
pub use self::family::{Family, Member};
pub use self::latencies::{Latencies, LatencyRow};
pub use self::model::{Described, IoCostModel, IoCostQos};
pub use self::rates::{PROBE_BYTES, Spread, server};
pub use self::resctl::{BenchResult, results};
pub use self::text::{MODEL_HEADING, PERMANENT, TextError, hwdb, hwdb_name, hwdb_path};

/// Share of the largest rate at which a device counts as busy. Latencies are measured with the
/// smallest number of commands in flight that reaches this share.
pub const BUSY: f64 = 0.9;
/// Share of the I/Os to which the latencies of a QoS apply.
pub const QOS_SHARE: f64 = 0.95;

/// Error in a text that describes parameters of io.cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// An error in lines or hwdb.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An error in a JSON document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Parses descriptions, in their order: lines of the kernel's two files, entries of hwdb, or a JSON
/// document.
///
/// # Errors
/// The text has none of these formats, or no model.
pub fn read(text: &str) -> Result<Vec<Described>, DescriptionError> {
    if document::is_document(text) { Ok(document::read(text)?) } else { Ok(text::read(text)?) }
}
