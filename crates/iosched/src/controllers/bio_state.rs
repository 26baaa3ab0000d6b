//! State of a bio while it passes controllers.

use std::ops::{Index, IndexMut};

use crate::context::{CgroupId, ContextId, IoPriority};
use crate::issued::Part;
use crate::request::{Bio, Flags, Op, SECTOR_BYTES, Sector};
use crate::time::Time;

/// Id of a bio from its submission to its completion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BioId(u32);

impl BioId {
    /// Returns a small number, dense from 0. The number is reused after the bio completes.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Answer of a controller to a bio: pass or wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Passage {
    /// The bio continues immediately.
    Pass,
    /// The bio waits. The controller has put the bio into a list, and passes it to
    /// [`Site::go_on`](super::Site::go_on) when the bio may continue.
    Wait,
}

/// Classes of writes that wbt counts together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WbtClass {
    /// All other writes.
    Background,
    /// Memory that is written to a swap device.
    Swap,
    /// Discards.
    Discard,
}

impl WbtClass {
    pub(super) const ALL: [Self; 3] = [Self::Background, Self::Swap, Self::Discard];
}

/// Treatment of a bio or request by wbt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mark {
    /// wbt ignores the bio or request.
    #[default]
    None,
    /// A read, whose latency wbt measures.
    Read,
    /// A write. wbt limits the number of writes of its class in flight.
    Tracked(WbtClass),
}

/// Direction of a bio. A group has separate limits for each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Reads.
    Read,
    /// All other operations.
    Write,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::Read, Self::Write];

    pub(super) const fn of(state: &BioState) -> Self {
        if state.op.is_write() { Self::Write } else { Self::Read }
    }
}

/// State of a bio in the controllers.
#[derive(Clone, Copy, Debug)]
pub struct BioState {
    /// Host's name for the bio.
    pub cookie: u64,
    /// First sector.
    pub sector: Sector,
    /// Length, sectors. When the bio enters, the length includes the following parts of its I/O.
    pub nr_sectors: u32,
    /// Length without the following parts, sectors.
    pub(super) own_sectors: u32,
    /// Next part of the same I/O, if that part is held after this part.
    pub(crate) rest: Option<BioId>,
    /// Operation of the bio.
    pub op: Op,
    /// Flags of the operation.
    pub flags: Flags,
    /// Process that submitted the bio.
    pub context: ContextId,
    /// Cgroup of the bio: the cgroup of its process at submission.
    pub cgroup: CgroupId,
    /// Start of the time that io.latency measures.
    pub started: Time,
    /// Start of the present wait at a controller.
    pub(super) waits_since: Time,
    /// Time when the bio requested a tag.
    pub requested: Time,
    /// Time when the bio became a request.
    pub got: Time,
    /// Time when the device took the request.
    pub dispatched: Time,
    /// Ioprio of the bio at submission.
    pub ioprio: IoPriority,
    /// Whether io.max has counted its bytes.
    pub(super) counted: bool,
    /// Whether io.latency counts the bio.
    pub(super) by_latency: bool,
    /// Group of io.latency in which the bio waits.
    pub(super) waits_in: Option<CgroupId>,
    /// Class of wbt in which the bio has taken a place.
    pub(super) wbt_place: Option<WbtClass>,
    /// Treatment of its request by wbt.
    pub(super) wbt: Mark,
    /// Charge of io.cost to its group, in virtual time; 0 if the bio is free or its cost is a debt.
    pub(super) io_cost: u64,
}

impl BioState {
    /// Creates the state of `bio`, which counts for `cgroup`.
    #[must_use]
    #[inline]
    pub fn new(now: Time, bio: &Bio, cgroup: CgroupId) -> Self {
        let &Bio { op, flags, sector, nr_sectors, context, cookie } = bio;
        Self {
            cookie,
            sector,
            nr_sectors,
            own_sectors: nr_sectors,
            rest: None,
            op,
            flags,
            context,
            cgroup,
            started: now,
            waits_since: now,
            requested: now,
            got: now,
            dispatched: now,
            ioprio: IoPriority::default(),
            counted: false,
            by_latency: false,
            waits_in: None,
            wbt_place: None,
            wbt: Mark::None,
            io_cost: 0,
        }
    }

    /// Creates the state of a bio that is a part of an I/O and has a separate ioprio. The first
    /// part counts for the whole I/O.
    #[inline]
    pub(crate) fn of_part(now: Time, bio: &Bio, cgroup: CgroupId, ioprio: IoPriority, part: Part) -> Self {
        let nr_sectors = match part {
            Part::First { of_sectors } => of_sectors.max(bio.nr_sectors),
            Part::Whole | Part::Rest => bio.nr_sectors,
        };
        Self { nr_sectors, ioprio, counted: part == Part::Rest, ..Self::new(now, bio, cgroup) }
    }

    /// Returns the bio with its present values.
    #[must_use]
    pub const fn bio(&self) -> Bio {
        let &Self { op, flags, sector, nr_sectors, context, cookie, .. } = self;
        Bio { op, flags, sector, nr_sectors, context, cookie }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.nr_sectors as u64 * SECTOR_BYTES
    }

    /// Returns the group of io.latency in which the bio waits, or the root.
    #[must_use]
    pub fn waits_in(&self) -> CgroupId {
        self.waits_in.unwrap_or(CgroupId::ROOT)
    }

    /// Returns whether the bio is kernel work for which other processes wait: metadata, or memory
    /// that is written to a swap device. Holding such a bio back would delay these processes.
    #[must_use]
    pub const fn is_urgent(&self) -> bool {
        self.flags.intersects(Flags::PRIO.union(Flags::SWAP))
    }
}

/// States of all bios that controllers know, by [`BioId`].
#[derive(Clone, Debug, Default)]
pub struct BioStates {
    table: Vec<BioState>,
    free: Vec<BioId>,
}

impl BioStates {
    /// Adds the state of a bio.
    #[inline]
    pub(super) fn begin(&mut self, state: BioState) -> BioId {
        if let Some(id) = self.free.pop() {
            self.table[id.index()] = state;
            return id;
        }
        self.table.push(state);
        BioId((self.table.len() - 1) as u32)
    }

    /// Removes a completed bio. Its number is reused.
    #[inline]
    pub(super) fn end(&mut self, id: BioId) {
        self.free.push(id);
    }

    /// Returns the number of bios.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    /// Returns whether there are no bios.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Index<BioId> for BioStates {
    type Output = BioState;

    #[inline]
    fn index(&self, id: BioId) -> &BioState {
        &self.table[id.index()]
    }
}

impl IndexMut<BioId> for BioStates {
    #[inline]
    fn index_mut(&mut self, id: BioId) -> &mut BioState {
        &mut self.table[id.index()]
    }
}
