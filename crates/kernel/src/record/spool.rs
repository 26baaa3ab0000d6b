//! Where a recording is kept until it is written: in memory, then in a file without a name.

use std::io::{self, Seek, Write};

use tempfile::SpooledTempFile;

/// So much is kept in memory, so that a short recording does not write to the device that it records.
const MEMORY_BYTES: usize = 64 << 20;

/// Keeps what is written as long as there is room. What comes later is left out, so that what was kept is not lost.
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

    /// Bytes that are kept.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Why what comes is left out, if it is.
    pub(super) const fn no_room(&self) -> Option<&io::Error> {
        self.no_room.as_ref()
    }

    /// What is kept, to be read from its beginning.
    pub(super) fn into_file(mut self) -> io::Result<SpooledTempFile> {
        self.file.rewind()?;
        Ok(self.file)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.no_room.is_none() {
            // A part of a record may be there then. Whoever reads it takes what is whole.
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
