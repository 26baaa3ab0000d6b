//! Parts of the scenarios that both families share: a device, and errors.

use iosched_disk::{AnyDevice, ConfigError, Disk, DiskConfig, Fixed, FixedConfig};
use serde::Deserialize;
use serde_json::Value;

/// Error in a scenario of controllers.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not JSON, or a field is unknown, missing or of another type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A parameter of the device is not valid.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The scenario names an object that does not exist.
    #[error("there is no {what} {name:?}")]
    Unknown {
        /// Kind of the object.
        what: &'static str,
        /// Name of the object.
        name: String,
    },
}

/// A device.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct DeviceConfig(KnownDevice);

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum KnownDevice {
    Fixed(FixedConfig),
    Disk(DiskConfig),
}

impl TryFrom<Value> for DeviceConfig {
    type Error = serde_json::Error;

    /// Parses a device. If a step has no write latency, its latency also applies to writes.
    fn try_from(mut written: Value) -> Result<Self, Self::Error> {
        for step in written.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(step) = step.as_object_mut()
                && let Some(lat_ns) = step.get("lat_ns").cloned()
            {
                step.entry("write_lat_ns").or_insert(lat_ns);
            }
        }
        serde_json::from_value(written).map(Self)
    }
}

impl DeviceConfig {
    /// Creates the device.
    pub(super) fn device(&self) -> Result<AnyDevice, ConfigError> {
        match &self.0 {
            KnownDevice::Fixed(config) => Fixed::new(config).map(AnyDevice::Fixed),
            KnownDevice::Disk(config) => Disk::new(config).map(AnyDevice::Disk),
        }
    }
}
