//! Names of back ends on a command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use iosched_disk::{Profile, ProfileError};

use super::file::OpenError;
use super::size::bytes_of_size;
use super::{Backend, FaultPlan, FaultPlanError, Faulty, File, Memory, Modelled};

/// Name of a back end: `PATH`, `memory:SIZE`, or `model:PROFILE[,size=SIZE]`. The prefix
/// `fault:PLAN:` adds faults to any of these back ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A file or block device.
    File(PathBuf),
    /// Memory of this size, bytes.
    Memory(u64),
    /// A modelled device.
    Model {
        /// Profile of the device: a name or a file.
        profile: String,
        /// Size in bytes, if it differs from the profile's size.
        capacity_bytes: Option<u64>,
    },
    /// A back end with faults.
    Faulty(FaultPlan, Box<Spec>),
}

/// Reason why a back end cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The text is not a size.
    #[error(
        "{given:?} is not a size: write a number of bytes, or a number with K, M, G or T (powers of 1024); the \
         smallest size is 512 bytes"
    )]
    Size {
        /// The text.
        given: String,
    },
    /// A model does not have this option.
    #[error("{given:?}: the only option of a model is size=SIZE, as in model:sata-7200,size=1G")]
    Option {
        /// The option.
        given: String,
    },
    /// The fault plan is not valid.
    #[error(transparent)]
    Fault(#[from] FaultPlanError),
    /// The profile cannot be loaded.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The file cannot be served.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system has not enough memory.
    #[error("cannot get memory for {bytes} bytes: {error}")]
    Memory {
        /// Requested bytes.
        bytes: u64,
        /// Error of the system.
        error: std::io::Error,
    },
}

fn size(text: &str) -> Result<u64, SpecError> {
    bytes_of_size(text).ok_or_else(|| SpecError::Size { given: text.to_owned() })
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("fault:") {
            let (plan, inner) = rest.split_once(':').unwrap_or((rest, ""));
            return Ok(Self::Faulty(plan.parse()?, Box::new(inner.parse()?)));
        }
        if let Some(bytes) = text.strip_prefix("memory:") {
            return Ok(Self::Memory(size(bytes)?));
        }
        let Some(model) = text.strip_prefix("model:") else {
            return Ok(Self::File(PathBuf::from(text)));
        };
        let (profile, options) = model.split_once(',').map_or((model, None), |(name, rest)| (name, Some(rest)));
        let capacity_bytes = match options {
            None => None,
            Some(option) => match option.strip_prefix("size=") {
                Some(bytes) => Some(size(bytes)?),
                None => return Err(SpecError::Option { given: option.to_owned() }),
            },
        };
        Ok(Self::Model { profile: profile.to_owned(), capacity_bytes })
    }
}

impl Spec {
    /// Opens the back end. `seed` determines the random decisions of a model. If `shared` is true,
    /// other programs may also use the device.
    ///
    /// # Errors
    /// The back end cannot be opened.
    pub(crate) fn open(&self, seed: u64, shared: bool) -> Result<Box<dyn Backend>, SpecError> {
        Ok(match self {
            Self::File(path) => Box::new(File::open(path, shared)?),
            &Self::Memory(bytes) => Box::new(Memory::new(bytes).map_err(|error| SpecError::Memory { bytes, error })?),
            Self::Model { profile, capacity_bytes } => {
                let profile = Profile::load(profile)?;
                let bytes = capacity_bytes.unwrap_or(profile.card().capacity_sectors * iosched::SECTOR_BYTES);
                let model = Modelled::new(&profile, *capacity_bytes, seed);
                Box::new(model.map_err(|error| SpecError::Memory { bytes, error })?)
            }
            Self::Faulty(plan, inner) => Box::new(Faulty::new(inner.open(seed, shared)?, plan.clone())),
        })
    }

    /// Returns the path of the file or block device that contains the data, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Memory(_) | Self::Model { .. } => None,
            Self::Faulty(_, inner) => inner.path(),
        }
    }

    /// Returns the default name of a disk with this back end.
    #[must_use]
    pub fn default_name(&self) -> String {
        match self {
            Self::File(path) => {
                path.file_stem().map_or_else(|| "disk".into(), |stem| stem.to_string_lossy().into_owned())
            }
            Self::Memory(_) => "memory".to_owned(),
            Self::Model { profile, .. } => {
                let stem = Path::new(profile).file_stem();
                stem.map_or_else(|| profile.clone(), |stem| stem.to_string_lossy().into_owned()).replace(':', "-")
            }
            Self::Faulty(_, inner) => inner.default_name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_back_end_is_parsed() {
        let spec = |text: &str| text.parse::<Spec>().unwrap();
        assert_eq!(spec("/dev/sdb"), Spec::File("/dev/sdb".into()));
        assert_eq!(spec("memory:1G"), Spec::Memory(1 << 30));
        assert_eq!(
            spec("model:sata-7200,size=64M"),
            Spec::Model { profile: "sata-7200".into(), capacity_bytes: Some(64 << 20) }
        );
        assert!(matches!(spec("fault:eio=5:memory:1M"), Spec::Faulty(_, inner) if *inner == Spec::Memory(1 << 20)));
    }

    #[test]
    fn errors_of_a_back_end_name_the_fault() {
        for (text, part) in [
            ("memory:", "not a size"),
            ("memory:5Q", "\"5Q\""),
            ("memory:99999999999T", "not a size"),
            ("model:sata-7200,depth=3", "size=SIZE"),
            ("fault:eio:memory:1M", "is not a known fault"),
        ] {
            let message = text.parse::<Spec>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
