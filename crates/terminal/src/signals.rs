//! Signals that end the command: SIGINT, SIGTERM and SIGHUP. SIGHUP can have another meaning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Whether a handler of signals is installed.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Does the same as [`on_signal`], unless the command has already installed a handler.
pub fn on_signal_if_nobody_does(handle: impl FnMut(i32) + Send + 'static) -> Result<()> {
    if IS_INSTALLED.load(Ordering::SeqCst) { Ok(()) } else { on_signal(handle) }
}

/// Calls `handle` with the number of each signal from now on, in a separate thread. If SIGHUP was
/// ignored at the start, as with nohup, it stays ignored.
pub fn on_signal(handle: impl FnMut(i32) + Send + 'static) -> Result<()> {
    on([SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(SIGHUP)), handle)
}

/// Returns a value that becomes true at the first signal, for work that must undo its changes.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    on_signal(move |_| set.store(true, Ordering::SeqCst))?;
    Ok(stop)
}

/// Does the same as [`on_signal`], except that SIGHUP calls `hung_up` and does not end the command.
pub fn on_signal_and_hangup(
    mut handle: impl FnMut(i32) + Send + 'static,
    mut hung_up: impl FnMut() + Send + 'static,
) -> Result<()> {
    on([SIGINT, SIGTERM, SIGHUP], move |signal| if signal == SIGHUP { hung_up() } else { handle(signal) })
}

fn on(wanted: impl IntoIterator<Item = i32>, mut handle: impl FnMut(i32) + Send + 'static) -> Result<()> {
    IS_INSTALLED.store(true, Ordering::SeqCst);
    let mut signals = Signals::new(wanted).context("cannot wait for signals")?;
    let wait = move || signals.forever().for_each(&mut handle);
    thread::Builder::new().name("signals".to_owned()).spawn(wait).context("cannot start a thread for signals")?;
    Ok(())
}

/// Returns whether the sender of a signal may send a second signal, which also ends the current
/// runs. This is true only for Ctrl-C, because a person at a terminal sends it.
pub const fn is_patient(signal: i32) -> bool {
    signal == SIGINT
}

/// Returns whether the signal was ignored when this process started.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
