//! Long work without the GIL, which Ctrl-C can interrupt.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// Interval of checks for Ctrl-C.
const TICK: Duration = Duration::from_millis(50);

/// Runs `work` on another thread, while Python's other threads continue. A signal with a Python
/// handler calls `stop`, after which `work` should end soon. If the handler raises an exception,
/// this exception is the result.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
    stop: impl Fn() + Send + Sync,
) -> PyResult<T> {
    thread::scope(|scope| {
        let (send, mut done) = channel();
        let worker = scope.spawn(move || {
            let found = work();
            // After a signal, no thread receives the message.
            let _ = send.send(());
            found
        });
        let mut raised = None;
        while raised.is_none() {
            let (again, message) = py.detach(move || {
                let message = done.recv_timeout(TICK);
                (done, message)
            });
            done = again;
            match message {
                Err(RecvTimeoutError::Timeout) => raised = py.check_signals().err(),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if raised.is_some() {
            stop();
        }
        let found = py.detach(|| worker.join());
        match (raised, found) {
            (Some(error), _) => Err(error),
            (None, Ok(found)) => Ok(found),
            (None, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}
