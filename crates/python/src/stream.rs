//! Reads Python file objects as a stream.

use std::io::{self, Read};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::{About as _, ArgumentTypeError};

/// Size of a read, bytes. Each read needs the GIL, so reads are large.
const CHUNK_BYTES: usize = 1 << 20;

/// A Python object with a method `read` that returns bytes.
pub(crate) struct Stream {
    file: Py<PyAny>,
    chunk: Option<PyBackedBytes>,
    /// Number of bytes of the chunk that were already read.
    taken: usize,
    /// Whether the file is closed on drop.
    closes_file: bool,
}

impl Stream {
    /// Creates a stream of a file that the caller closes.
    pub(crate) const fn borrowed(file: Py<PyAny>) -> Self {
        Self { file, chunk: None, taken: 0, closes_file: false }
    }

    /// Creates a stream that closes its file on drop.
    pub(crate) const fn owned(file: Py<PyAny>) -> Self {
        Self { file, chunk: None, taken: 0, closes_file: true }
    }

    /// Opens a URL with fsspec.
    pub(crate) fn of_url(py: Python<'_>, url: &str) -> PyResult<Self> {
        let place = py.import("fsspec")?.call_method1("open", (url, "rb"))?;
        Ok(Self::owned(place.call_method0("open")?.unbind()))
    }

    fn next_chunk(&self) -> PyResult<PyBackedBytes> {
        Python::attach(|py| {
            let read = self.file.bind(py).call_method1("read", (CHUNK_BYTES,))?;
            read.extract().map_err(|_| {
                let kind = read.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
                let message = format!("open the file in binary mode; this file returns {kind}, not bytes");
                ArgumentTypeError::new_err(message).about("source")
            })
        })
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.as_ref().is_none_or(|chunk| chunk.len() == self.taken) {
            self.chunk = Some(self.next_chunk().map_err(io::Error::other)?);
            self.taken = 0;
        }
        let rest = self.chunk.as_deref().map_or(&[][..], |chunk| &chunk[self.taken..]);
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        Ok(count)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.closes_file {
            // All data was already read, so an error of closing does not matter.
            Python::attach(|py| drop(self.file.call_method0(py, "close")));
        }
    }
}
