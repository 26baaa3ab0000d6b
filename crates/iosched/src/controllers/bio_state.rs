//! The state that controllers keep of a bio while it passes them.

use std::ops::{Index, IndexMut};

use crate::context::{CgroupId, ContextId, IoPriority};
use crate::issued::Part;
use crate::request::{Bio, Flags, Op, SECTOR_BYTES, Sector};
use crate::time::Time;

/// Names a bio from its submission until it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BioId(u32);

impl BioId {
    /// Returns a small number, dense from 0. The number is used again when the bio is done.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The answer of a controller to a bio: pass or wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Passage {
    /// The bio goes on at once.
    Pass,
    /// The bio waits. The controller has put it into a list, and hands it to
    /// [`Site::go_on`](super::Site::go_on) when it may go on.
    Wait,
}

/// Classes of writes that wbt counts together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WbtClass {
    /// All other writes.
    Background,
    /// Memory on its way to a swap device.
    Swap,
    /// Discards.
    Discard,
}

impl WbtClass {
    pub(super) const ALL: [Self; 3] = [Self::Background, Self::Swap, Self::Discard];
}

/// The treatment of a bio or request by wbt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mark {
    /// wbt ignores it.
    #[default]
    None,
    /// A read, whose latency wbt measures.
    Read,
    /// A write; wbt limits how many of its class are in flight.
    Tracked(WbtClass),
}

/// The allowance of a group that a bio counts for.
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

/// A bio as controllers see it, with the marks that they leave on it.
#[derive(Clone, Copy, Debug)]
pub struct BioState {
    /// The host's name for the bio.
    pub cookie: u64,
    /// First sector.
    pub sector: Sector,
    /// Length, sectors. When the bio enters, this includes the parts behind it.
    pub nr_sectors: u32,
    /// Length without the parts behind it, sectors.
    pub(super) own_sectors: u32,
    /// The next part of the same I/O, if it is held behind this one.
    pub(crate) rest: Option<BioId>,
    /// The operation.
    pub op: Op,
    /// The flags of the operation.
    pub flags: Flags,
    /// The process that submitted the bio.
    pub context: ContextId,
    /// The cgroup that the bio counts for: that of its process at submission.
    pub cgroup: CgroupId,
    /// The start of the time that io.latency measures.
    pub started: Time,
    /// The start of the present wait at a controller.
    pub(super) waits_since: Time,
    /// The moment at which the bio asked for a tag.
    pub requested: Time,
    /// The moment at which the bio became a request.
    pub got: Time,
    /// The moment at which the device took the request.
    pub dispatched: Time,
    /// The ioprio of the bio at submission.
    pub ioprio: IoPriority,
    /// io.max has counted its bytes.
    pub(super) counted: bool,
    /// io.latency counts it.
    pub(super) by_latency: bool,
    /// The group of io.latency that it waits in.
    pub(super) waits_in: Option<CgroupId>,
    /// The class of wbt in which it has taken a place.
    pub(super) wbt_place: Option<WbtClass>,
    /// What wbt takes its request for.
    pub(super) wbt: Mark,
    /// What io.cost charged its group for it, in virtual time; 0 if it is free or owed for.
    pub(super) io_cost: u64,
}

impl BioState {
    /// Begins the state of `bio`, which counts for `cgroup`.
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

    /// The same of a bio with its own ioprio that is a part of an I/O: the first counts for all of it.
    #[inline]
    pub(crate) fn of_part(now: Time, bio: &Bio, cgroup: CgroupId, ioprio: IoPriority, part: Part) -> Self {
        let nr_sectors = match part {
            Part::First { of_sectors } => of_sectors.max(bio.nr_sectors),
            Part::Whole | Part::Rest => bio.nr_sectors,
        };
        Self { nr_sectors, ioprio, counted: part == Part::Rest, ..Self::new(now, bio, cgroup) }
    }

    /// The bio as it is now.
    #[must_use]
    pub const fn bio(&self) -> Bio {
        let &Self { op, flags, sector, nr_sectors, context, cookie, .. } = self;
        Bio { op, flags, sector, nr_sectors, context, cookie }
    }

    /// Its length.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.nr_sectors as u64 * SECTOR_BYTES
    }

    /// The group of io.latency that it waits in, if it waits there.
    #[must_use]
    pub fn waits_in(&self) -> CgroupId {
        self.waits_in.unwrap_or(CgroupId::ROOT)
    }

    /// Whether it is the kernel's own work that others wait for: metadata, or memory on its way to a swap device. Who
    /// holds it back holds up everybody.
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
    /// Adds a bio.
    #[inline]
    pub(super) fn begin(&mut self, state: BioState) -> BioId {
        if let Some(id) = self.free.pop() {
            self.table[id.index()] = state;
            return id;
        }
        self.table.push(state);
        BioId((self.table.len() - 1) as u32)
    }

    /// Removes a bio that is done. Its number is used again.
    pub(super) fn end(&mut self, id: BioId) {
        self.free.push(id);
    }

    /// Returns the number of bios.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Index<BioId> for BioStates {
    type Output = BioState;

    fn index(&self, id: BioId) -> &BioState {
        &self.table[id.index()]
    }
}

impl IndexMut<BioId> for BioStates {
    fn index_mut(&mut self, id: BioId) -> &mut BioState {
        &mut self.table[id.index()]
    }
}
