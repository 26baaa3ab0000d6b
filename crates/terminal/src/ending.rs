//! The orderly end of a command that serves a disk, after a signal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use anyhow::Result;
use iosched_live::reactor::Served;

use crate::output::{self, say};
use crate::signals::{on_signal, on_signal_and_hangup};

/// Base of the exit code after a signal, as in shells. The exit code is the base plus the signal
/// number.
const BY_SIGNAL: i32 = 128;

/// Phase of a command that serves a disk.
enum Phase {
    /// The command reads and checks files, which may take long. No resource needs an orderly end.
    Preparing,
    /// A resource needs an orderly end, but the function for the end is not set yet.
    Starting,
    /// A signal arrived in phase `Starting`. The end begins when its function is set.
    EndRequested,
    Serving(Arc<Stop>),
    Stopping,
}

/// Function that begins the end. Returns whether the end has begun.
type Stop = dyn Fn() -> bool + Send + Sync;

/// The end of a served disk. After SIGTERM, SIGINT or SIGHUP (unless SIGHUP has
/// another meaning), the disk finishes its requests and flushes. The next signal
/// exits immediately. Before [`Ending::starts`], the first signal exits immediately.
#[derive(Clone)]
pub struct Ending(Arc<Mutex<Phase>>);

impl Ending {
    /// Handles signals from now on. Call this function before any resource needs an orderly end.
    pub fn on_signal() -> Result<Self> {
        let ending = Self(Arc::new(Mutex::new(Phase::Preparing)));
        let for_signal = ending.clone();
        on_signal(move |signal| for_signal.signalled(signal))?;
        Ok(ending)
    }

    /// Does the same as [`Ending::on_signal`], but SIGHUP does not begin the end. Instead, SIGHUP
    /// sends a message to the receiver. A message stands for all SIGHUPs since the last message.
    pub fn on_signal_but_hangup() -> Result<(Self, mpsc::Receiver<()>)> {
        let ending = Self(Arc::new(Mutex::new(Phase::Preparing)));
        let for_signal = ending.clone();
        let (sender, hangups) = mpsc::sync_channel(1);
        let hung_up = move || {
            // The pending message also stands for this SIGHUP.
            let _ = sender.try_send(());
        };
        on_signal_and_hangup(move |signal| for_signal.signalled(signal), hung_up)?;
        Ok((ending, hangups))
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signalled(&self, signal: i32) {
        let mut phase = self.phase();
        match &*phase {
            Phase::Preparing => output::exit(BY_SIGNAL + signal),
            Phase::Starting => *phase = Phase::EndRequested,
            Phase::Serving(stop) => {
                let stop = Arc::clone(stop);
                self.begin(&mut phase, stop);
            }
            Phase::EndRequested | Phase::Stopping => {
                say!("the server ended at once; data that was not flushed may be lost");
                output::exit(BY_SIGNAL + signal);
            }
        }
    }

    /// Records that a resource, such as a socket, needs an orderly end from now on. Between this
    /// call and [`Ending::by`], the caller must not wait for other processes, because a signal
    /// takes effect only after [`Ending::by`].
    pub fn starts(&self) {
        *self.phase() = Phase::Starting;
    }

    /// Sets the function for the end. If a signal has already arrived, the end begins immediately.
    /// The caller must therefore finish all other work with the disk before this call.
    pub fn by(&self, stop: impl Fn() -> bool + Send + Sync + 'static) {
        let mut phase = self.phase();
        let stop = Arc::new(stop);
        match *phase {
            Phase::EndRequested => self.begin(&mut phase, stop),
            _ => *phase = Phase::Serving(stop),
        }
    }

    /// Sets the function for the end of a disk without mounts or devices. See [`Ending::by`].
    pub fn stops(&self, served: &Served) {
        let handle = served.handle.clone();
        self.by(move || {
            say!("\nthe server finishes its requests and flushes; a second signal ends the server at once");
            handle.stop();
            true
        });
    }

    /// Runs `stop` on a separate thread, because `stop` may take long and the next signal must
    /// still end the process.
    fn begin(&self, phase: &mut Phase, stop: Arc<Stop>) {
        *phase = Phase::Stopping;
        let (ending, stop_again) = (self.clone(), Arc::clone(&stop));
        let run = move || {
            if !stop_again() {
                *ending.phase() = Phase::Serving(stop_again);
            }
        };
        // If there is no memory for a thread, `stop` runs here, and further signals wait until it
        // returns.
        if thread::Builder::new().name("stop".to_owned()).spawn(run).is_err() && !stop() {
            *phase = Phase::Serving(stop);
        }
    }
}
