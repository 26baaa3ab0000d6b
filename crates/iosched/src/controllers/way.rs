//! A bio on its way past the controllers.

use std::ops::{Index, IndexMut};

use crate::context::{CgroupId, ContextId};
use crate::request::{Bio, Flags, Op, SECTOR_BYTES, Sector};
use crate::time::Time;

/// A bio on its way, from when it comes until it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

/// What controllers know of a bio, and the marks they leave on it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The host's name for the bio.
    pub cookie: u64,
    /// First sector.
    pub sector: Sector,
    /// Sectors that are left of it, when parts were split off in front.
    pub nr_sectors: u32,
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
}

impl Way {
    /// The way of `bio`, which counts for `cgroup`, at its beginning.
    #[must_use]
    pub fn new(now: Time, bio: &Bio, cgroup: CgroupId) -> Self {
        let &Bio { op, flags, sector, nr_sectors, context, cookie } = bio;
        Self { cookie, sector, nr_sectors, op, flags, context, cgroup, started: now }
    }

    /// Its length.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.nr_sectors as u64 * SECTOR_BYTES
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
    pub fn begin(&mut self, way: Way) -> WayId {
        if let Some(id) = self.free.pop() {
            self.table[id.index()] = way;
            return id;
        }
        self.table.push(way);
        WayId((self.table.len() - 1) as u32)
    }

    /// A bio is done; its name is free.
    pub fn end(&mut self, id: WayId) {
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
