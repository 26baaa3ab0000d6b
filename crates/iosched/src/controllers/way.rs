//! A bio on its way past the controllers.

use std::ops::{Index, IndexMut};

use crate::context::{CgroupId, ContextId, IoPriority};
use crate::issued::Part;
use crate::request::{Bio, Flags, Op, SECTOR_BYTES, Sector};
use crate::time::Time;

/// A bio on its way, from when it comes until it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WayId(u32);

impl WayId {
    /// A small number, dense from 0 and used again when a bio is done.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a bio goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Passage {
    /// It goes on at once.
    Pass,
    /// It does not: the controller has put it into a list of its own, and hands it to
    /// [`Site::go_on`](super::Site::go_on) when it may.
    Wait,
}

/// Writes that are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WbtClass {
    /// Whatever is neither of the others.
    Background,
    /// Memory on its way to a swap device.
    Swap,
    /// Discards.
    Discard,
}

impl WbtClass {
    pub(super) const ALL: [Self; 3] = [Self::Background, Self::Swap, Self::Discard];
}

/// What wbt takes a bio or request for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mark {
    /// Nothing it cares for.
    #[default]
    None,
    /// One whose latency matters.
    Read,
    /// One of which only so many may be under way.
    Tracked(WbtClass),
}

/// Which of a group's two allowances a bio counts for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Reads.
    Read,
    /// Everything else.
    Write,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::Read, Self::Write];

    pub(super) const fn of(way: &Way) -> Self {
        if way.op.is_write() { Self::Write } else { Self::Read }
    }
}

/// What controllers know of a bio, and the marks they leave on it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The host's name for the bio.
    pub cookie: u64,
    /// First sector.
    pub sector: Sector,
    /// Its sectors; where it enters, also those of the parts that come behind it.
    pub nr_sectors: u32,
    /// Its own sectors.
    pub(super) own_sectors: u32,
    /// The next part of its I/O, if that is held behind it.
    pub(crate) rest: Option<WayId>,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Whose.
    pub context: ContextId,
    /// The group that it counts for: that of its process when it came.
    pub cgroup: CgroupId,
    /// From when its time counts.
    pub started: Time,
    /// Since when it has waited at a controller.
    pub(super) waits_since: Time,
    /// When it asked for a tag.
    pub requested: Time,
    /// When it became a request.
    pub got: Time,
    /// When the device took its request.
    pub dispatched: Time,
    /// The ioprio that it came with.
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

impl Way {
    /// The way of `bio`, which counts for `cgroup`, at its beginning.
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

/// All bios on their way.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    table: Vec<Way>,
    free: Vec<WayId>,
}

impl Ways {
    /// A bio comes.
    #[inline]
    pub(super) fn begin(&mut self, way: Way) -> WayId {
        if let Some(id) = self.free.pop() {
            self.table[id.index()] = way;
            return id;
        }
        self.table.push(way);
        WayId((self.table.len() - 1) as u32)
    }

    /// A bio is done; its name is free.
    pub(super) fn end(&mut self, id: WayId) {
        self.free.push(id);
    }

    /// Bios on their way.
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

impl Index<WayId> for Ways {
    type Output = Way;

    fn index(&self, id: WayId) -> &Way {
        &self.table[id.index()]
    }
}

impl IndexMut<WayId> for Ways {
    fn index_mut(&mut self, id: WayId) -> &mut Way {
        &mut self.table[id.index()]
    }
}
