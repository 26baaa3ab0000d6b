//! Who asks: io contexts (one per process), their ioprio, and the cgroups they belong to.

use std::fmt;
use std::str::FromStr;

/// An io context: one process as the request queue knows it. Given out by [`crate::RequestQueue::create_context`] and
/// usable until the process has exited and its last request has completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContextId(pub(crate) u32);

impl ContextId {
    /// The context of a number, for hosts of [controllers](crate::controllers) that number processes themselves.
    #[must_use]
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// A small number, dense from 0, good as an index into per-context tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A cgroup of one request queue. [`CgroupId::ROOT`] always exists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CgroupId(pub(crate) u32);

impl CgroupId {
    /// The group every process is in unless told otherwise.
    pub const ROOT: Self = Self(0);

    /// The group of a number, for hosts of [controllers](crate::controllers) that number groups themselves.
    #[must_use]
    pub const fn numbered(number: usize) -> Self {
        Self(number as u32)
    }

    /// A small number, dense from 0, good as an index into per-cgroup tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The class of an ioprio (`man ionice`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum IoClass {
    /// Never set: elevators treat it as best effort at the level that follows from the process' nice value.
    #[default]
    None,
    /// Before everything else.
    RealTime,
    /// The usual class.
    BestEffort,
    /// Only when nobody else wants the disk.
    Idle,
}

/// Lowest urgency within a class; 0 is the highest.
pub const LEVEL_MAX: u8 = 7;
/// The level of a process of nice value 0 that never set one.
pub const LEVEL_DEFAULT: u8 = 4;

/// An ioprio: a class, and a level from 0 (most urgent) to [`LEVEL_MAX`].
///
/// ```compile_fail,E0451
/// # use iosched::{IoClass, IoPriority};
/// let urgent = IoPriority { class: IoClass::BestEffort, level: 99 };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IoPriority {
    pub(crate) class: IoClass,
    pub(crate) level: u8,
}

impl IoPriority {
    /// A priority of a level that the program knows.
    ///
    /// # Panics
    /// If `level` is above [`LEVEL_MAX`]: see [`IoPriority::checked`].
    #[must_use]
    pub const fn new(class: IoClass, level: u8) -> Self {
        assert!(level <= LEVEL_MAX, "the level must be from 0 (most urgent) to 7");
        Self { class, level }
    }

    /// A priority of a level that comes from a file or a client; `None`: `level` is above
    /// [`LEVEL_MAX`].
    #[must_use]
    pub const fn checked(class: IoClass, level: u8) -> Option<Self> {
        if level <= LEVEL_MAX { Some(Self { class, level }) } else { None }
    }

    /// The class.
    #[must_use]
    pub const fn class(self) -> IoClass {
        self.class
    }

    /// The level, from 0 (most urgent) to [`LEVEL_MAX`].
    #[must_use]
    pub const fn level(self) -> u8 {
        self.level
    }
}

impl Default for IoPriority {
    fn default() -> Self {
        Self { class: IoClass::None, level: LEVEL_DEFAULT }
    }
}

/// What could not be read as an ioprio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not an ioprio; write none, idle, rt/LEVEL or be/LEVEL, with LEVEL from 0 (most urgent) to 7")]
pub struct IoPriorityError {
    given: String,
}

impl FromStr for IoPriority {
    type Err = IoPriorityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || IoPriorityError { given: text.to_owned() };
        let (class, level) = match text.split_once('/') {
            Some((class, level)) => (class, level.parse().ok().filter(|&l| l <= LEVEL_MAX).ok_or_else(wrong)?),
            None => (text, LEVEL_DEFAULT),
        };
        let class = match class {
            "none" => IoClass::None,
            "rt" => IoClass::RealTime,
            "be" => IoClass::BestEffort,
            "idle" => IoClass::Idle,
            _ => return Err(wrong()),
        };
        Ok(Self { class, level })
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            IoClass::None => f.write_str("none"),
            IoClass::RealTime => write!(f, "rt/{}", self.level),
            IoClass::BestEffort => write!(f, "be/{}", self.level),
            IoClass::Idle => f.write_str("idle"),
        }
    }
}

/// One io context.
#[derive(Clone, Debug)]
pub struct Context {
    /// The process' id, for people and decision events; need not be unique.
    pub pid: u32,
    /// The process' ioprio now. Elevators notice a change at the process' next request.
    pub ioprio: IoPriority,
    /// The cgroup the process is in.
    pub cgroup: CgroupId,
    /// The process has exited.
    pub exited: bool,
    /// Bios under way.
    pub(crate) bios: u32,
}

/// All io contexts of one request queue.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    table: Vec<Context>,
    free: Vec<ContextId>,
}

impl Contexts {
    /// A context for a new process: that of one that is gone, or a new one.
    pub(crate) fn create(&mut self, pid: u32, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        let context = Context { pid, ioprio, cgroup, exited: false, bios: 0 };
        if let Some(id) = self.free.pop() {
            self.table[id.index()] = context;
            return id;
        }
        let id = ContextId(u32::try_from(self.table.len()).expect("fewer than 2^32 io contexts"));
        self.table.push(context);
        id
    }

    /// The process is gone; its id is free once nothing is under way.
    pub(crate) fn exit(&mut self, id: ContextId) {
        let context = &mut self.table[id.index()];
        context.exited = true;
        if context.bios == 0 {
            self.free.push(id);
        }
    }

    /// One bio less is under way.
    #[inline]
    pub(crate) fn bio_done(&mut self, id: ContextId) {
        let context = &mut self.table[id.index()];
        context.bios -= 1;
        if context.exited && context.bios == 0 {
            self.free.push(id);
        }
    }

    /// The context `id`, if there was ever one.
    #[inline]
    pub(crate) fn find(&self, id: ContextId) -> Option<&Context> {
        self.table.get(id.index())
    }

    /// Panics unless the process of `id` is there.
    pub(crate) fn require_alive(&self, id: ContextId) {
        match self.find(id) {
            None => panic!("the queue has no io context {}", id.index()),
            Some(context) => assert!(!context.exited, "the process of io context {} has exited", id.index()),
        }
    }

    /// The context `id`.
    #[must_use]
    pub fn get(&self, id: ContextId) -> &Context {
        &self.table[id.index()]
    }

    pub(crate) fn get_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.table[id.index()]
    }

    /// Contexts in use, or free to be used again.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no context was ever made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Smallest weight any elevator takes.
pub const WEIGHT_MIN: u32 = 1;
/// Largest weight, and the root's.
pub const WEIGHT_MAX: u32 = 1000;

/// Which weights of cgroups an elevator takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightRange {
    /// The smallest.
    pub min: u32,
    /// That of a cgroup that was given none.
    pub default: u32,
    /// The largest.
    pub max: u32,
}

impl WeightRange {
    /// Those of `blkio.bfq.weight`, and of elevators that do not look at weights.
    pub const BFQ: Self = Self { min: WEIGHT_MIN, default: 100, max: WEIGHT_MAX };
    /// Those of `blkio.weight`.
    pub const CFQ: Self = Self { min: 10, default: 500, max: WEIGHT_MAX };

    /// The weight that counts for a cgroup which was given `weight`, maybe under another elevator.
    #[must_use]
    pub fn effective(&self, weight: Option<u32>) -> u32 {
        weight.unwrap_or(self.default).clamp(self.min, self.max)
    }

    fn check(&self, name: &str, given: Option<u32>) -> Result<(), WeightError> {
        match given {
            Some(given) if !(self.min..=self.max).contains(&given) => {
                Err(WeightError { name: name.to_owned(), given, range: *self })
            }
            _ => Ok(()),
        }
    }
}

/// One cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// Its name, for people and decision events.
    pub name: String,
    /// The group it stands under; `None` for the root.
    pub parent: Option<CgroupId>,
    /// Its share among its siblings, in the elevator's [`WeightRange`]; `None`: that one's default.
    pub weight: Option<u32>,
    /// The share of its own processes against its child groups, in the same range, where an elevator tells them apart.
    pub leaf_weight: Option<u32>,
}

/// A weight out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("weight {given} of cgroup {name} is out of range; it must be from {} to {}", range.min, range.max)]
pub struct WeightError {
    name: String,
    given: u32,
    range: WeightRange,
}

/// The cgroups of one request queue.
#[derive(Clone, Debug)]
pub struct Cgroups {
    table: Vec<Cgroup>,
    removed: Vec<bool>,
    /// That of the elevator in charge.
    pub(crate) weights: WeightRange,
}

impl Default for Cgroups {
    fn default() -> Self {
        let root =
            Cgroup { name: "/".to_owned(), parent: None, weight: Some(WEIGHT_MAX), leaf_weight: Some(WEIGHT_MAX) };
        Self { table: vec![root], removed: vec![false], weights: WeightRange::BFQ }
    }
}

impl Cgroups {
    pub(crate) fn create(&mut self, weights: WeightRange, cgroup: Cgroup) -> Result<CgroupId, WeightError> {
        weights.check(&cgroup.name, cgroup.weight)?;
        weights.check(&cgroup.name, cgroup.leaf_weight)?;
        let id = CgroupId(u32::try_from(self.table.len()).expect("fewer than 2^32 cgroups"));
        self.table.push(cgroup);
        self.removed.push(false);
        Ok(id)
    }

    /// Panics unless there was ever a cgroup `id`.
    pub(crate) fn require(&self, id: CgroupId) {
        assert!(id.index() < self.table.len(), "the queue has no cgroup {}", id.index());
    }

    /// The names of all, the root's first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.table.iter().map(|cgroup| cgroup.name.as_str())
    }

    /// All, the root first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CgroupId> + use<> {
        (0..self.table.len() as u32).map(CgroupId)
    }

    /// The parents of all but the root, in their order.
    pub(crate) fn parents(&self) -> impl Iterator<Item = CgroupId> + '_ {
        self.table.iter().skip(1).map(|cgroup| cgroup.parent.unwrap_or(CgroupId::ROOT))
    }

    /// The cgroup `id`, removed or not.
    #[must_use]
    pub fn get(&self, id: CgroupId) -> &Cgroup {
        &self.table[id.index()]
    }

    /// How many there were so far, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Never: there is the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The share of `id` among its siblings, as the elevator in charge sees it.
    #[must_use]
    pub fn weight(&self, id: CgroupId) -> u32 {
        self.weights.effective(self.get(id).weight)
    }

    /// The share of the processes of `id` against its child groups, as the elevator in charge sees it.
    #[must_use]
    pub fn leaf_weight(&self, id: CgroupId) -> u32 {
        self.weights.effective(self.get(id).leaf_weight)
    }

    /// `id` if it was not removed, otherwise the nearest group above it that was not.
    #[must_use]
    pub fn living(&self, mut id: CgroupId) -> CgroupId {
        while self.removed[id.index()] {
            id = self.get(id).parent.unwrap_or(CgroupId::ROOT);
        }
        id
    }

    /// Whether `id` is still there to be removed.
    pub(crate) fn remove(&mut self, id: CgroupId) -> bool {
        id != CgroupId::ROOT && !std::mem::replace(&mut self.removed[id.index()], true)
    }

    pub(crate) fn set_weights(
        &mut self,
        weights: WeightRange,
        id: CgroupId,
        weight: Option<u32>,
        leaf_weight: Option<u32>,
    ) -> Result<(), WeightError> {
        let cgroup = &mut self.table[id.index()];
        weights.check(&cgroup.name, weight)?;
        weights.check(&cgroup.name, leaf_weight)?;
        cgroup.weight = weight;
        cgroup.leaf_weight = leaf_weight;
        Ok(())
    }
}
