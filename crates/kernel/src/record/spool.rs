//! Storage of a recording until it is written: first in memory, then in a file without a name.

use std::fmt;
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
    reserve: Reserve,
    no_room: Option<io::Error>,
}

/// Reserves room for a total number of bytes at the destination of the data.
struct Reserve(Box<dyn FnMut(u64) -> io::Result<()>>);

impl fmt::Debug for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reserve")
    }
}

impl Spool {
    pub(super) fn new() -> Self {
        let reserve = Reserve(Box::new(|_| Ok(())));
        Self { file: SpooledTempFile::new(MEMORY_BYTES), bytes: 0, reserve, no_room: None }
    }

    /// Calls `reserve` with the total number of bytes before each write. If it fails, the storage
    /// is full.
    pub(super) fn reserve_with(&mut self, reserve: impl FnMut(u64) -> io::Result<()> + 'static) {
        self.reserve = Reserve(Box::new(reserve));
    }

    /// Returns the error because of which the storage omits later data. Returns `None` if it omits
    /// nothing.
    pub(super) const fn no_room(&self) -> Option<&io::Error> {
        self.no_room.as_ref()
    }

    /// Returns the stored data, to be read from its beginning, and the error because of which later
    /// data is missing.
    pub(super) fn into_file(mut self) -> io::Result<(SpooledTempFile, Option<io::Error>)> {
        self.file.rewind()?;
        Ok((self.file, self.no_room))
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.no_room.is_none() {
            let total = self.bytes + bytes.len() as u64;
            // After an error of the file, a part of a record may remain. Readers ignore an
            // incomplete record.
            match (self.reserve.0)(total).and_then(|()| self.file.write_all(bytes)) {
                Ok(()) => self.bytes = total,
                Err(error) => self.no_room = Some(error),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn data_beyond_the_reserved_room_is_omitted() {
        let mut spool = Spool::new();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        spool.reserve_with(move |bytes| if bytes <= 8 { Ok(()) } else { Err(full()) });
        for part in ["one ", "two ", "three ", "4"] {
            spool.write_all(part.as_bytes()).unwrap();
        }
        let (mut file, no_room) = spool.into_file().unwrap();
        let mut stored = String::new();
        file.read_to_string(&mut stored).unwrap();
        assert_eq!(stored, "one two ");
        assert_eq!(no_room.unwrap().kind(), io::ErrorKind::StorageFull);
    }
}
