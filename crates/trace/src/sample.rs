//! A trace that is part of the program: pgbench on ext4, recorded with blktrace on two CPUs.

use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::reading::ReadOptions;

/// Name of the sample trace.
pub const SAMPLE_NAME: &str = "pgbench.blktrace";

const FILES: [(&str, &[u8]); 2] = [
    ("pgbench.blktrace.0.zst", include_bytes!("../samples/pgbench.blktrace.0.zst")),
    ("pgbench.blktrace.1.zst", include_bytes!("../samples/pgbench.blktrace.1.zst")),
];

/// Reads the sample trace.
///
/// # Errors
/// Never in practice: the data are part of the program.
pub fn sample() -> Result<TraceReader, TraceError> {
    TraceReader::from_readers(FILES.map(|(name, bytes)| (name.to_owned(), bytes)), &ReadOptions::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_complete() {
        let mut reader = sample().unwrap();
        assert!(reader.by_ref().all(|request| request.is_ok()));
        assert!(reader.completeness().is_whole());
    }
}
