//! The audit of recorded decisions. It compares them with the events: stage and size of each
//! request, allocation, the order of noop and deadline, and the processes that wait at wbt.

use std::collections::{BTreeSet, VecDeque};

use iosched::{CgroupId, ControlledEvent, Decision, Flags, MergeSide, Op, RequestQueue, Sector, Time};

use super::deadline::DeadlineAudit;
use super::mclock::MClockAudit;
use super::{Layer, Model, slot_of};
use crate::violation::{Checked, ensure};

/// Returns whether this elevator treats a read as sync only if the read has the sync flag. For
/// other elevators, every read is sync.
fn sees_flags_only(elevator: &str) -> bool {
    elevator == "adios"
}

/// Returns whether, under this elevator, no sync bio joins an async request.
pub(crate) fn keeps_sync_apart(elevator: &str) -> bool {
    matches!(elevator, "cfq" | "cfq-2.6.34" | "cfq-2.6.30")
}

/// Stage of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AuditStage {
    /// Not known.
    None,
    /// Allocated: on a plug, held, or waiting for a flush.
    Allocated,
    /// In the elevator, or released by it.
    Inserted,
    /// In the device.
    Dispatched,
    /// Given back by the device.
    GivenBack,
}

/// A request. It is stored in the slot of its first bio.
#[derive(Clone, Copy, Debug)]
struct Extent {
    cookie: u64,
    sector: Sector,
    end: Sector,
    op: Op,
    sync: bool,
    stage: AuditStage,
}

const NO_EXTENT: Extent = Extent { cookie: 0, sector: 0, end: 0, op: Op::Read, sync: false, stage: AuditStage::None };

/// The audit of one queue's decisions.
#[derive(Debug)]
pub(crate) struct Audit {
    extents: Vec<Extent>,
    /// Numbers of allocated async and sync requests.
    allocated: [u32; 2],
    /// Number of requests that are inserted and not dispatched.
    inserted: usize,
    elevator: &'static str,
    /// Requests of noop, oldest first.
    fifo: VecDeque<u64>,
    deadline: DeadlineAudit,
    mclock: MClockAudit,
    /// Processes that wait at wbt and have not been woken.
    throttled: BTreeSet<u32>,
}

impl Audit {
    pub(crate) fn new(queue: &RequestQueue, hz: u32) -> Self {
        Self {
            extents: Vec::new(),
            allocated: [0; 2],
            inserted: 0,
            elevator: queue.scheduler(),
            fifo: VecDeque::new(),
            deadline: DeadlineAudit::new(queue, hz),
            mclock: MClockAudit::default(),
            throttled: BTreeSet::new(),
        }
    }

    /// Returns the number of allocated sync or async requests.
    pub(crate) fn allocated(&self, sync: bool) -> u32 {
        self.allocated[usize::from(sync)]
    }

    /// Returns whether a process waits at wbt.
    pub(crate) fn is_throttled(&self, pid: u32) -> bool {
        self.throttled.contains(&pid)
    }

    /// Records that a waiting process was woken or has exited.
    pub(crate) fn waits_no_more(&mut self, pid: u32) {
        self.throttled.remove(&pid);
    }

    /// Returns the number of requests that deadline dispatched past their deadline.
    pub(crate) fn expired(&self) -> u64 {
        self.deadline.expired
    }

    /// Reads the tunables, which may have changed.
    pub(crate) fn tunables_changed(&mut self, queue: &RequestQueue) {
        self.deadline.tunables_changed(queue);
    }

    /// Reads the reservation and limit of a cgroup, which have changed.
    pub(crate) fn rates_changed(&mut self, queue: &RequestQueue, cgroup: CgroupId) {
        self.mclock.rates_changed(queue, cgroup);
    }

    /// Records the start of a switch, which drains the queued requests.
    pub(crate) fn switching(&mut self) {
        self.deadline.suspend();
        self.mclock.suspend();
    }

    /// Records that a barrier has drained the requests that were submitted before it.
    pub(crate) fn barrier(&mut self, cookie: u64) {
        self.deadline.drain_before(cookie);
    }

    fn extent(&mut self, cookie: u64) -> &mut Extent {
        let slot = slot_of(cookie);
        if self.extents.len() <= slot {
            self.extents.resize(slot + 1, NO_EXTENT);
        }
        &mut self.extents[slot]
    }

    fn known(&mut self, cookie: u64, stages: &[AuditStage]) -> Result<Extent, super::super::Violation> {
        let extent = *self.extent(cookie);
        ensure!(
            extent.cookie == cookie && stages.contains(&extent.stage),
            DispatchedOnce,
            "in a decision, the stage of request {cookie:x} is one of {stages:?}, but the request is {extent:?}"
        );
        Ok(extent)
    }

    /// Records that a request was allocated for a bio.
    pub(crate) fn founded(&mut self, model: &Model, cookie: u64, layer: Layer, nr_requests: u32) -> Checked {
        if layer == Layer::Multi && self.extent(cookie).cookie == cookie {
            // The insertion of this request was recorded earlier.
            return Ok(());
        }
        let Some(bio) = model.bio(cookie) else { return Ok(()) };
        let (sector, end, op, sync) = (bio.sector, bio.sector + u64::from(bio.nr_sectors), bio.op, bio.is_sync());
        *self.extent(cookie) = Extent { cookie, sector, end, op, sync, stage: AuditStage::Allocated };
        let allocated = &mut self.allocated[usize::from(sync)];
        *allocated += 1;
        ensure!(
            layer == Layer::Multi || *allocated <= nr_requests.saturating_add(nr_requests / 2),
            Allocation,
            "{allocated} requests (sync: {sync}) are allocated, but nr_requests is {nr_requests}"
        );
        Ok(())
    }

    /// Checks that the queue was right to refuse a bio.
    pub(crate) fn full(&self, sync: bool, nr_requests: u32) -> Checked {
        let allocated = self.allocated(sync);
        ensure!(
            allocated >= nr_requests,
            Allocation,
            "the queue is full with {allocated} requests (sync: {sync}), but nr_requests is {nr_requests}"
        );
        Ok(())
    }

    /// Records the end of a request that the host submitted.
    pub(crate) fn finished(&mut self, cookie: u64) {
        let extent = self.extent(cookie);
        if extent.cookie == cookie && extent.stage != AuditStage::None {
            let sync = extent.sync;
            *extent = NO_EXTENT;
            self.allocated[usize::from(sync)] -= 1;
        }
    }

    /// Checks a decision.
    pub(crate) fn take(
        &mut self,
        model: &Model,
        now: Time,
        layer: Layer,
        decision: &Decision,
        max_sectors: u32,
    ) -> Checked {
        match *decision {
            Decision::Insert { cookie, sector, nr_sectors, op, sync, .. } => {
                if layer == Layer::Multi {
                    // A request may have ended before the host sees it.
                    self.founded(model, cookie, layer, u32::MAX)?;
                }
                let extent = self.known(cookie, &[AuditStage::Allocated])?;
                let end = sector + u64::from(nr_sectors);
                let flagged = model.bio(cookie).is_some_and(|bio| bio.flags.contains(Flags::SYNC));
                let expected = if sees_flags_only(self.elevator) { flagged } else { extent.sync };
                ensure!(
                    (extent.sector, extent.end, extent.op, expected) == (sector, end, op, sync),
                    WholeBios,
                    "{cookie:x} was inserted as {op:?} {sector}+{nr_sectors}, but is {extent:?}"
                );
                self.extent(cookie).stage = AuditStage::Inserted;
                self.insert(now, cookie, op);
            }
            Decision::Merge { cookie, sector, nr_sectors, op, sync, into, side, .. } => {
                let extent = self.known(into, &[AuditStage::Allocated, AuditStage::Inserted])?;
                let end = sector + u64::from(nr_sectors);
                let meets = if side == MergeSide::Back { extent.end == sector } else { end == extent.sector };
                ensure!(
                    meets && extent.op == op,
                    WholeBios,
                    "{cookie:x}, {op:?} {sector}+{nr_sectors}, joined {extent:?} on its {side:?}"
                );
                let grown = self.extent(into);
                if side == MergeSide::Back {
                    grown.end = end
                } else {
                    grown.sector = sector
                }
                let (size, sync_into) = (grown.end - grown.sector, grown.sync);
                ensure!(
                    size <= u64::from(max_sectors),
                    SizeLimit,
                    "{into:x} grew to {size} sectors, but max_sectors \
                    is {max_sectors}"
                );
                ensure!(
                    !keeps_sync_apart(self.elevator) || !sync || sync_into,
                    SyncJoinsSync,
                    "the sync bio {cookie:x} joined the async request {into:x}"
                );
            }
            Decision::RequestMerge { cookie, into } => self.absorb(model, cookie, into, max_sectors)?,
            Decision::Dispatch { cookie, sector, nr_sectors, .. } if cookie != u64::MAX => {
                self.dispatch(now, cookie, sector, nr_sectors)?;
            }
            Decision::Requeue { cookie } => {
                self.known(cookie, &[AuditStage::Dispatched])?;
                self.extent(cookie).stage = AuditStage::GivenBack;
            }
            Decision::Switch { elevator } => {
                ensure!(
                    self.inserted == 0,
                    Switching,
                    "the queue switched to {elevator} before {} requests of {} were dispatched",
                    self.inserted,
                    self.elevator
                );
                self.elevator = elevator;
                self.fifo.clear();
                self.deadline.resume();
                self.mclock.resume();
            }
            Decision::Controlled(ControlledEvent::Wait { controller, cookie, pid, .. }) => {
                ensure!(
                    controller == "wbt",
                    Control,
                    "{cookie:x} waits in {controller}, but no file of this \
                    controller was written"
                );
                let is_new = self.throttled.insert(pid);
                ensure!(is_new, Allocation, "{pid} already waits in wbt, but waits again with {cookie:x}");
            }
            Decision::MClock(event) => self.mclock.take(now, event)?,
            _ => {}
        }
        Ok(())
    }

    fn insert(&mut self, now: Time, cookie: u64, op: Op) {
        self.inserted += 1;
        match self.elevator {
            "noop" => self.fifo.push_back(cookie),
            "deadline" => self.deadline.insert(now, cookie, op.is_write()),
            _ => {}
        }
    }

    fn absorb(&mut self, model: &Model, cookie: u64, into: u64, max_sectors: u32) -> Checked {
        let absorbed = self.known(cookie, &[AuditStage::Inserted])?;
        let survivor = self.known(into, &[AuditStage::Inserted])?;
        ensure!(
            survivor.end == absorbed.sector && survivor.op == absorbed.op && model.bio(cookie).is_some(),
            WholeBios,
            "{absorbed:?} was absorbed by {survivor:?}"
        );
        let size = absorbed.end - survivor.sector;
        ensure!(
            size <= u64::from(max_sectors),
            SizeLimit,
            "{into:x} grew to {size} sectors, but max_sectors is \
            {max_sectors}"
        );
        ensure!(
            !keeps_sync_apart(self.elevator) || survivor.sync == absorbed.sync,
            SyncJoinsSync,
            "{absorbed:?} was absorbed by {survivor:?}"
        );
        self.extent(into).end = absorbed.end;
        *self.extent(cookie) = NO_EXTENT;
        self.allocated[usize::from(absorbed.sync)] -= 1;
        self.inserted -= 1;
        self.fifo.retain(|&queued| queued != cookie);
        self.deadline.absorb(cookie, into, absorbed.op.is_write());
        Ok(())
    }

    fn dispatch(&mut self, now: Time, cookie: u64, sector: Sector, nr_sectors: u32) -> Checked {
        let extent = self.known(cookie, &[AuditStage::Allocated, AuditStage::Inserted, AuditStage::GivenBack])?;
        ensure!(
            (extent.sector, extent.end) == (sector, sector + u64::from(nr_sectors)),
            WholeBios,
            "{cookie:x} was dispatched as {sector}+{nr_sectors}, but is {extent:?}"
        );
        self.extent(cookie).stage = AuditStage::Dispatched;
        if extent.stage != AuditStage::Inserted {
            // A request that belongs to a flush sequence, or that the device gave back, bypasses
            // the elevator.
            return Ok(());
        }
        self.inserted -= 1;
        match self.elevator {
            "noop" => {
                let first = self.fifo.pop_front();
                ensure!(
                    first == Some(cookie),
                    FirstComeFirstServed,
                    "{cookie:x} was dispatched, but {first:x?} was inserted first"
                );
                Ok(())
            }
            "deadline" => self.deadline.dispatch(now, cookie, extent.op.is_write()),
            _ => Ok(()),
        }
    }
}
