//! The built-in sample trace as a workload.

use std::sync::Arc;

use iosched::IoPriority;
use iosched_trace::{Ionice, SAMPLE_NAME};
use iosched_workload::{Trace, Workload, WorkloadError};

/// Returns the sample, ready for replay.
///
/// # Errors
/// None in practice, because the data is part of the binary.
pub fn sample() -> Result<Workload, WorkloadError> {
    let mut trace = Trace::read(SAMPLE_NAME, iosched_trace::sample()?)?;
    // blktrace records no priorities. In this recording, no process had set a priority.
    trace.prioritise(&[Ionice { process: "*".to_owned(), ioprio: IoPriority::default() }])?;
    Ok(Workload::Trace(Arc::new(trace)))
}
