//! Storage of a recording until it is written: first in memory, then in a file without a name.

use std::io::{self, Seek, Write};

use tempfile::SpooledTempFile;

/// Largest amount of data in memory, bytes. A shorter recording stays in memory, so it does not
/// write to the device that it records.
const MEMORY_BYTES: usize = 64 << 20;

/// Storage for data. When the storage is full, it omits later data and keeps the stored data.
#[derive(Debug)]
pub(super) struct Spool {
    file: SpooledTempFile,
    bytes: u64,
    no_room: Option<io::Error>,
}

impl Spool {
    pub(super) fn new() -> Self {
        Self { file: SpooledTempFile::new(MEMORY_BYTES), bytes: 0, no_room: None }
    }

    /// Returns the number of stored bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the error because of which the storage omits later data. Returns `None` if it omits
    /// nothing.
    pub(super) const fn no_room(&self) -> Option<&io::Error> {
        self.no_room.as_ref()
    }

    /// Returns the stored data, to be read from its beginning.
    pub(super) fn into_file(mut self) -> io::Result<SpooledTempFile> {
        self.file.rewind()?;
        Ok(self.file)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.no_room.is_none() {
            // After an error, a part of a record may remain. Readers ignore an incomplete record.
            match self.file.write_all(bytes) {
                Ok(()) => self.bytes += bytes.len() as u64,
                Err(error) => self.no_room = Some(error),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
