//! How large a disk is, and how it grows with its backing. There is one size for all who ask, on whichever thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::LiveDisk;

/// A disk's size, shared by all who tell it. It never becomes less.
#[derive(Clone, Debug)]
pub(crate) struct Size(Arc<AtomicU64>);

impl Size {
    pub(super) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks a backing how large it is now, in bytes, as far as whole blocks go.
pub(crate) type Measure = Box<dyn Fn() -> io::Result<u64> + Send>;

/// Why a disk keeps the size that it has.
#[derive(Debug, thiserror::Error)]
pub enum RescanError {
    /// Its backing has the size that it was made with.
    #[error("{about} cannot grow; only files and block devices can")]
    Fixed {
        /// What it is on.
        about: String,
    },
    /// The system does not say how large it is.
    #[error("{about}: {error}")]
    System {
        /// What it is on.
        about: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is less than what clients were promised.
    #[error(
        "{about} has shrunk to {bytes} bytes, but clients see {size_bytes}: requests beyond its end fail; make it as \
         large again"
    )]
    Shrunk {
        /// What it is on.
        about: String,
        /// What there is, in bytes.
        bytes: u64,
        /// The size that the disk has, in bytes.
        size_bytes: u64,
    },
}

impl LiveDisk {
    /// How its backing is measured, if that may grow.
    pub(crate) fn measure_by(&mut self, measure: Option<Measure>) {
        self.measure = measure;
    }

    /// To be shown to other threads.
    pub(crate) fn size(&self) -> Size {
        self.size.clone()
    }

    /// Whether its backing may grow.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.measure.is_some()
    }

    /// Asks the backing for its size, and takes what it has grown by; the disk's size in bytes. Clients that are told a
    /// size once, as those of NBD, keep it.
    ///
    /// # Errors
    /// If the backing does not grow, cannot be asked, or has shrunk: the disk's size is what it was.
    pub fn rescan(&mut self) -> Result<u64, RescanError> {
        let about = || self.settings.card.about.clone();
        let Some(measure) = &self.measure else { return Err(RescanError::Fixed { about: about() }) };
        let bytes = measure().map_err(|error| RescanError::System { about: about(), error })?;
        let size_bytes = self.size.bytes();
        if bytes < size_bytes {
            return Err(RescanError::Shrunk { about: about(), bytes, size_bytes });
        }
        self.size.0.store(bytes, Ordering::Relaxed);
        Ok(bytes)
    }
}
