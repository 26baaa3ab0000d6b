//! Prepares the start of a run: waits for an idle device, and drops caches.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::block::BlockDevice;

/// Interval at which the device is checked.
const LOOK: Duration = Duration::from_millis(5);

/// Writes dirty data and waits until the device has no requests in flight. Waits at most
/// `patience`, and stops when `interrupt` is true. Returns whether the device is idle. A device
/// without statistics counts as idle.
pub fn settle(device: &BlockDevice, patience: Duration, interrupt: &AtomicBool) -> bool {
    rustix::fs::sync();
    let begun = Instant::now();
    loop {
        if device.stat().is_none_or(|stat| stat.in_flight == 0) {
            return true;
        }
        if begun.elapsed() > patience || interrupt.load(Ordering::Relaxed) {
            return false;
        }
        thread::sleep(LOOK);
    }
}

/// Returns whether this process may drop the machine's caches. Only root may drop them.
#[must_use]
pub fn may_drop_caches() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes dirty data and drops all of the machine's caches.
///
/// # Errors
/// This process lacks permission.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    std::fs::write(Path::new("/proc/sys/vm/drop_caches"), "3")
}
