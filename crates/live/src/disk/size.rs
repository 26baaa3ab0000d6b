//! The size of a disk, which grows with its backing. All threads share one size.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::LiveDisk;

/// Size of a disk. All threads that need the size share it. It never shrinks.
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

/// Function that measures the current size of a backing, in bytes. Counts only whole blocks.
pub(crate) type Measure = Box<dyn Fn() -> io::Result<u64> + Send>;

/// Reason why a disk keeps its size when a user asks for a rescan.
#[derive(Debug, thiserror::Error)]
pub enum RescanError {
    /// The backing has a fixed size.
    #[error("{about} cannot grow; only files and block devices can grow")]
    Fixed {
        /// Description of the backing.
        about: String,
    },
    /// The system cannot determine the size of the backing.
    #[error("{about}: {error}")]
    System {
        /// Description of the backing.
        about: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The backing is smaller than the size that clients have seen.
    #[error(
        "{about} has shrunk to {bytes} bytes, but clients see {size_bytes} bytes. Requests beyond the new end \
         fail; restore the old size"
    )]
    Shrunk {
        /// Description of the backing.
        about: String,
        /// Current size of the backing, bytes.
        bytes: u64,
        /// Size of the disk, bytes.
        size_bytes: u64,
    },
}

impl LiveDisk {
    /// Sets the function that measures the backing, if the backing can grow.
    pub(crate) fn measure_by(&mut self, measure: Option<Measure>) {
        self.measure = measure;
    }

    /// Returns the size, for use by other threads.
    pub(crate) fn size(&self) -> Size {
        self.size.clone()
    }

    /// Returns whether the backing can grow.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.measure.is_some()
    }

    /// Measures the backing, and adopts its size if it is larger. Returns the size of the disk in
    /// bytes. Clients that read the size only once, such as NBD clients, keep the old size.
    ///
    /// # Errors
    /// The backing cannot grow, cannot be measured, or has shrunk. The size of the disk does not
    /// change.
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
