//! Long work: without the GIL, and ended by Ctrl-C.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How soon Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Does `work` on another thread, while Python's other threads go on. A signal that Python has a handler for calls
/// `stop`, after which `work` should end soon; what the handler raised is the result then.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
    stop: impl Fn() + Send + Sync,
) -> PyResult<T> {
    thread::scope(|scope| {
        let (send, mut done) = channel();
        let worker = scope.spawn(move || {
            let found = work();
            // Nobody listens once a signal has come.
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
