//! What the device's flushes promise.

use iosched::Time;

use crate::violation::{Checked, ensure};

/// Who waits for a device flush, and which ones there were. Moments count events.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// The one in the device: when it began.
    pub(super) device: Option<(u64, Time)>,
    /// When the latest began that completed well; 0 for none.
    latest: u64,
    /// Bios that wait for the next one: to be done with it; to have their data written after it.
    waiting: [u32; 2],
    /// The same, for the one in the device.
    served: [u32; 2],
}

/// A device flush that completed.
pub(super) struct Served {
    /// The moment it was given to the device.
    pub(super) started: u64,
    /// The time it was.
    pub(super) began: Time,
    /// Bios that are done with it.
    pub(super) waited: u32,
    /// Bios whose data is to be written now.
    pub(super) waited_before: u32,
}

impl Flushes {
    /// One more bio waits for a flush, to be done with it or to be written after it.
    pub(super) fn wait(&mut self, before: bool) {
        self.waiting[usize::from(before)] += 1;
    }

    /// A flush is given to the device.
    pub(super) fn start(&mut self, now: Time, moment: u64, index: usize) -> Checked {
        ensure!(self.device.is_none(), NothingCrossesAFlush, "rq{index} is a second flush at once");
        ensure!(self.is_awaited(), NothingCrossesAFlush, "rq{index} is a flush that nobody waits for");
        self.device = Some((moment, now));
        self.served = std::mem::take(&mut self.waiting);
        Ok(())
    }

    /// The one in the device completes.
    pub(super) fn complete(&mut self, well: bool) -> Served {
        let (started, began) = self.device.take().unwrap_or((0, Time::ZERO));
        if well {
            self.latest = started;
        }
        let [waited, waited_before] = std::mem::take(&mut self.served);
        Served { started, began, waited, waited_before }
    }

    /// Whether a flush that began after `moment` has completed well.
    pub(super) fn served_after(&self, moment: u64) -> bool {
        self.latest > moment
    }

    /// Whether anybody waits for the next one.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting != [0; 2]
    }

    /// Whether anybody waits, or one is in the device.
    pub(super) fn is_busy(&self) -> bool {
        self.device.is_some() || self.is_awaited()
    }
}
