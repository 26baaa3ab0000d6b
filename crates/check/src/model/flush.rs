//! The guarantees of device flushes.

use iosched::Time;

use crate::violation::{Checked, ensure};

/// Bios that wait for a device flush, and past flushes. A moment is a count of events.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Moment and time at which the flush in the device started.
    pub(super) device: Option<(u64, Time)>,
    /// Start of the latest successful flush, or 0 if there was none.
    latest: u64,
    /// Numbers of bios that wait for the next flush: bios that complete with the flush, and bios
    /// whose data is written after the flush.
    waiting: [u32; 2],
    /// Numbers of bios that wait for the flush in the device.
    served: [u32; 2],
}

/// A device flush that completed.
pub(super) struct Served {
    /// Moment at which the device received the flush.
    pub(super) started: u64,
    /// Time at which the device received the flush.
    pub(super) began: Time,
    /// Number of bios that complete with the flush.
    pub(super) waited: u32,
    /// Number of bios whose data can now be written.
    pub(super) waited_before: u32,
}

impl Flushes {
    /// Adds a bio that waits for a flush. If `before` is true, its data is written after the flush.
    /// Otherwise, the bio completes with the flush.
    pub(super) fn wait(&mut self, before: bool) {
        self.waiting[usize::from(before)] += 1;
    }

    /// Records a flush that is given to the device.
    pub(super) fn start(&mut self, now: Time, moment: u64, index: usize) -> Checked {
        ensure!(self.device.is_none(), NothingCrossesAFlush, "rq{index} is a second flush at once");
        ensure!(self.is_awaited(), NothingCrossesAFlush, "rq{index} is a flush that no bio waits for");
        self.device = Some((moment, now));
        self.served = std::mem::take(&mut self.waiting);
        Ok(())
    }

    /// Completes the flush in the device.
    pub(super) fn complete(&mut self, well: bool) -> Served {
        let (started, began) = self.device.take().unwrap_or((0, Time::ZERO));
        if well {
            self.latest = started;
        }
        let [waited, waited_before] = std::mem::take(&mut self.served);
        Served { started, began, waited, waited_before }
    }

    /// Returns whether a flush that began after `moment` has succeeded.
    pub(super) fn served_after(&self, moment: u64) -> bool {
        self.latest > moment
    }

    /// Returns whether a bio waits for the next flush.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting != [0; 2]
    }

    /// Returns whether a bio waits, or a flush is in the device.
    pub(super) fn is_busy(&self) -> bool {
        self.device.is_some() || self.is_awaited()
    }
}
