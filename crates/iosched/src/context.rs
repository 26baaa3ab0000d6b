//! Io contexts (one per process), their ioprio, and the cgroups of processes.

use std::fmt;
use std::str::FromStr;

use crate::rates::Rates;

/// Id of an io context, which represents one process. [`crate::RequestQueue::create_context`]
/// returns the id. The id is valid until the process has exited and its last request has completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContextId(pub(crate) u32);

impl ContextId {
    /// Returns the id with the given number, for hosts of [controllers](crate::controllers) that
    /// number processes themselves.
    #[must_use]
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// Returns a small number, dense from 0, for use as an index into per-context tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Id of a cgroup of one request queue. [`CgroupId::ROOT`] always exists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CgroupId(pub(crate) u32);

impl CgroupId {
    /// Root group, the default group of every process.
    pub const ROOT: Self = Self(0);

    /// Returns the id with the given number, for hosts of [controllers](crate::controllers) that
    /// number groups themselves.
    #[must_use]
    pub const fn numbered(number: usize) -> Self {
        Self(number as u32)
    }

    /// Returns a small number, dense from 0, for use as an index into per-cgroup tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Class of an ioprio (`man ionice`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum IoClass {
    /// Not set: elevators treat it as best effort. The level
    /// then follows from the process' nice value.
    #[default]
    None,
    /// Real time: served before all other classes.
    RealTime,
    /// Best effort: the usual class.
    BestEffort,
    /// Idle: served only when no other process uses the disk.
    Idle,
}

/// Least urgent level of a class. Level 0 is the most urgent level.
pub const LEVEL_MAX: u8 = 7;
/// Level of a process with nice value 0 that has no set level.
pub const LEVEL_DEFAULT: u8 = 4;

/// I/O priority: a class, and a level from 0 (most urgent) to [`LEVEL_MAX`].
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
    /// Creates a priority from a level that the program knows to be valid.
    ///
    /// # Panics
    /// If `level` is above [`LEVEL_MAX`]: see [`IoPriority::checked`].
    #[must_use]
    pub const fn new(class: IoClass, level: u8) -> Self {
        assert!(level <= LEVEL_MAX, "the level must be from 0 (most urgent) to 7");
        Self { class, level }
    }

    /// Creates a priority from an unchecked level, for example of a file or a client. Returns
    /// `None` if `level` is above [`LEVEL_MAX`].
    #[must_use]
    pub const fn checked(class: IoClass, level: u8) -> Option<Self> {
        if level <= LEVEL_MAX { Some(Self { class, level }) } else { None }
    }

    /// Returns the class.
    #[must_use]
    pub const fn class(self) -> IoClass {
        self.class
    }

    /// Returns the level, from 0 (most urgent) to [`LEVEL_MAX`].
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

/// Error for a text that is not an ioprio.
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

/// Io context of one process.
#[derive(Clone, Debug)]
pub struct Context {
    /// Process id, for display and decision events; need not be unique.
    pub pid: u32,
    /// Present ioprio of the process. Elevators use a change at the process' next request.
    pub ioprio: IoPriority,
    /// Cgroup of the process.
    pub cgroup: CgroupId,
    /// Whether the process has exited.
    pub exited: bool,
    /// Number of bios in flight.
    pub(crate) bios: u32,
}

#[cold]
#[inline(never)]
fn no_context(id: ContextId) -> ! {
    panic!("the queue has no io context {}", id.index());
}

/// All io contexts of one request queue.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    table: Vec<Context>,
    free: Vec<ContextId>,
}

impl Contexts {
    /// Creates a context for a new process. Reuses the id of an exited process if one is free.
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

    /// Marks the process as exited. Its id becomes free when it has no bios in flight.
    pub(crate) fn exit(&mut self, id: ContextId) {
        let context = &mut self.table[id.index()];
        context.exited = true;
        if context.bios == 0 {
            self.free.push(id);
        }
    }

    /// Reduces the number of bios in flight by one.
    #[inline]
    pub(crate) fn bio_done(&mut self, id: ContextId) {
        let context = &mut self.table[id.index()];
        context.bios -= 1;
        if context.exited && context.bios == 0 {
            self.free.push(id);
        }
    }

    /// Returns the context `id` if it was ever created.
    #[inline]
    pub(crate) fn find(&self, id: ContextId) -> Option<&Context> {
        self.table.get(id.index())
    }

    /// Returns the context `id`.
    ///
    /// # Panics
    /// If the context was never created.
    pub(crate) fn require(&self, id: ContextId) -> &Context {
        match self.find(id) {
            Some(context) => context,
            None => no_context(id),
        }
    }

    /// Panics if the context `id` was never created, or if its process has exited.
    pub(crate) fn require_alive(&self, id: ContextId) {
        assert!(!self.require(id).exited, "the process of io context {} has exited", id.index());
    }

    /// Returns the context `id`.
    #[must_use]
    pub fn get(&self, id: ContextId) -> &Context {
        &self.table[id.index()]
    }

    pub(crate) fn get_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.table[id.index()]
    }

    /// Returns the number of contexts in use or free for reuse.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether no context was ever created.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Smallest weight that any elevator accepts.
pub const WEIGHT_MIN: u32 = 1;
/// Largest weight, and the weight of the root.
pub const WEIGHT_MAX: u32 = 1000;

/// Weights of cgroups that an elevator accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightRange {
    /// Smallest weight.
    pub min: u32,
    /// Weight of a cgroup without a set weight.
    pub default: u32,
    /// Largest weight.
    pub max: u32,
}

impl WeightRange {
    /// Range of `blkio.bfq.weight`, and of elevators that ignore weights.
    pub const BFQ: Self = Self { min: WEIGHT_MIN, default: 100, max: WEIGHT_MAX };
    /// Range of `blkio.weight`.
    pub const CFQ: Self = Self { min: 10, default: 500, max: WEIGHT_MAX };

    /// Returns the weight that applies to a cgroup if `weight` was set. A weight that was set under
    /// an elevator with another range becomes the nearest valid weight.
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

/// Cgroup of one request queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// Name, for display and decision events.
    pub name: String,
    /// Parent group; `None` for the root.
    pub parent: Option<CgroupId>,
    /// Weight against its siblings, in the elevator's [`WeightRange`]. If it is `None`, the default
    /// of that range applies.
    pub weight: Option<u32>,
    /// Weight of the group's own processes against its child groups, in the same range. Only some
    /// elevators use it.
    pub leaf_weight: Option<u32>,
}

/// Error for a weight out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("weight {given} of cgroup {name} is out of range; it must be from {} to {}", range.min, range.max)]
pub struct WeightError {
    name: String,
    given: u32,
    range: WeightRange,
}

/// All cgroups of one request queue.
#[derive(Clone, Debug)]
pub struct Cgroups {
    table: Vec<Cgroup>,
    removed: Vec<bool>,
    rates: Vec<Rates>,
    /// Range of the present elevator.
    pub(crate) weights: WeightRange,
}

impl Default for Cgroups {
    fn default() -> Self {
        let root =
            Cgroup { name: "/".to_owned(), parent: None, weight: Some(WEIGHT_MAX), leaf_weight: Some(WEIGHT_MAX) };
        Self { table: vec![root], removed: vec![false], rates: vec![Rates::default()], weights: WeightRange::BFQ }
    }
}

impl Cgroups {
    pub(crate) fn create(&mut self, weights: WeightRange, cgroup: Cgroup) -> Result<CgroupId, WeightError> {
        weights.check(&cgroup.name, cgroup.weight)?;
        weights.check(&cgroup.name, cgroup.leaf_weight)?;
        let id = CgroupId(u32::try_from(self.table.len()).expect("fewer than 2^32 cgroups"));
        self.table.push(cgroup);
        self.removed.push(false);
        self.rates.push(Rates::default());
        Ok(id)
    }

    /// Panics if the cgroup `id` was never created.
    pub(crate) fn require(&self, id: CgroupId) {
        assert!(id.index() < self.table.len(), "the queue has no cgroup {}", id.index());
    }

    /// Returns the names of all groups, the root first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.table.iter().map(|cgroup| cgroup.name.as_str())
    }

    /// Returns all groups, the root first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CgroupId> + use<> {
        (0..self.table.len() as u32).map(CgroupId)
    }

    /// Returns the parents of all groups except the root, in the order of the groups.
    pub(crate) fn parents(&self) -> impl Iterator<Item = CgroupId> + '_ {
        self.table.iter().skip(1).map(|cgroup| cgroup.parent.unwrap_or(CgroupId::ROOT))
    }

    /// Returns the cgroup `id`, removed or not.
    #[must_use]
    pub fn get(&self, id: CgroupId) -> &Cgroup {
        &self.table[id.index()]
    }

    /// Returns the reservation and the limit of `id`. Only mclock uses them.
    #[must_use]
    pub fn rates(&self, id: CgroupId) -> Rates {
        self.rates[id.index()]
    }

    pub(crate) fn set_rates(&mut self, id: CgroupId, rates: Rates) {
        self.rates[id.index()] = rates;
    }

    /// Returns the number of groups created so far, including the root and removed groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns `false`: the root always exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the effective weight of `id` among its siblings under the present elevator.
    #[must_use]
    pub fn weight(&self, id: CgroupId) -> u32 {
        self.weights.effective(self.get(id).weight)
    }

    /// Returns the effective weight of the group's own processes against its child groups, under
    /// the present elevator.
    #[must_use]
    pub fn leaf_weight(&self, id: CgroupId) -> u32 {
        self.weights.effective(self.get(id).leaf_weight)
    }

    /// Returns `id` if it was not removed, otherwise the nearest remaining ancestor.
    #[must_use]
    pub fn living(&self, mut id: CgroupId) -> CgroupId {
        while self.removed[id.index()] {
            id = self.get(id).parent.unwrap_or(CgroupId::ROOT);
        }
        id
    }

    /// Removes `id`. Returns whether the group existed and was not the root.
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
