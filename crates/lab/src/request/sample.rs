//! The built-in sample trace: pgbench on ext4, recorded with blktrace on two CPUs.

use std::sync::Arc;

use iosched::IoPriority;
use iosched_trace::{Ionice, ReadOptions, TraceReader};
use iosched_workload::{Trace, Workload, WorkloadError};

/// File name of the trace that is the sample workload.
pub const NAME: &str = "pgbench.blktrace";

const FILES: [(&str, &[u8]); 2] = [
    ("pgbench.blktrace.0.zst", include_bytes!("../../../trace/samples/pgbench.blktrace.0.zst")),
    ("pgbench.blktrace.1.zst", include_bytes!("../../../trace/samples/pgbench.blktrace.1.zst")),
];

/// Returns the sample, ready for replay.
///
/// # Errors
/// Never in practice: the data are part of the binary.
pub fn sample() -> Result<Workload, WorkloadError> {
    let files = FILES.map(|(name, bytes)| (name.to_owned(), bytes));
    let reader = TraceReader::from_readers(files, &ReadOptions::default())?;
    let mut trace = Trace::read(NAME, reader)?;
    // blktrace records no priorities. No process had a priority in this recording.
    trace.prioritise(&[Ionice { process: "*".to_owned(), ioprio: IoPriority::default() }])?;
    Ok(Workload::Trace(Arc::new(trace)))
}
