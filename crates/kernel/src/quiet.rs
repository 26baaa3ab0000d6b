//! A device that does nothing, and a machine that has nothing of it in memory: how every run begins.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::block::BlockDevice;

/// How often it is looked whether a device does nothing.
const LOOK: Duration = Duration::from_millis(5);

/// Writes dirty data, and waits until the device has nothing under way, but no longer than `patience`. Whether it has
/// nothing.
pub fn settle(device: &BlockDevice, patience: Duration) -> bool {
    rustix::fs::sync();
    let begun = Instant::now();
    loop {
        if device.stat().is_none_or(|stat| stat.in_flight == 0) {
            return true;
        }
        if begun.elapsed() > patience {
            return false;
        }
        thread::sleep(LOOK);
    }
}

/// Whether we may drop what the machine has cached: root may.
#[must_use]
pub fn may_drop_caches() -> bool {
    rustix::process::geteuid().is_root()
}

/// Everything that the machine has cached, and that is not dirty, goes.
///
/// # Errors
/// We may not.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    std::fs::write(Path::new("/proc/sys/vm/drop_caches"), "3")
}
