//! Clients of a served disk, the groups in which they share weights, and their statistics.

use std::collections::{BTreeMap, VecDeque};

use iosched::{Cgroup, CgroupId, ContextId, Driver, IoPriority, Time, WeightError};
use slab::Slab;

use super::Action;
use super::operation::Running;

/// Maximum number of clients that are connected at once.
const CLIENTS_MAX: usize = 4096;

/// Identifier of a client of one disk. An identifier is never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId {
    slot: u32,
    generation: u32,
}

impl ClientId {
    /// Returns the client's index in tables. After this client has disconnected, a later client can
    /// get the same index.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

impl std::fmt::Display for ClientId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.generation)
    }
}

/// Selects which of a client's writes are sync for the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SyncWrites {
    /// Writes with FUA, and operations with [`Operation::sync`](super::Operation::sync). All other
    /// writes count as writeback.
    #[default]
    Fua,
    /// All writes, as for a process that uses `O_DIRECT`.
    All,
}

impl std::fmt::Display for SyncWrites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fua => "fua",
            Self::All => "all",
        })
    }
}

/// Error: the text is not the name of a [`SyncWrites`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a valid value: write fua (only writes with FUA are sync) or all (all writes are sync)")]
pub struct UnknownSyncWrites(String);

impl std::str::FromStr for SyncWrites {
    type Err = UnknownSyncWrites;

    fn from_str(text: &str) -> Result<Self, UnknownSyncWrites> {
        let all = [Self::Fua, Self::All];
        all.into_iter().find(|sync| sync.to_string() == text).ok_or_else(|| UnknownSyncWrites(text.to_owned()))
    }
}

/// Description of a client: its name, process and share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Name of the client.
    pub name: String,
    /// Process number of the client; 0 if it is not known.
    pub pid: u32,
    /// I/O priority of the client.
    pub ioprio: IoPriority,
    /// Group of the client; `None` is the root. A new connection creates the group if it does not
    /// exist.
    pub group: Option<String>,
    /// Whether the client may only read.
    pub read_only: bool,
    /// Selects which of the client's writes are sync.
    pub sync: SyncWrites,
}

impl Identity {
    /// Creates the description of a writable client without a group, with the class best effort and
    /// the default level.
    #[must_use]
    pub fn new(name: impl Into<String>, pid: u32) -> Self {
        let (name, ioprio, sync) = (name.into(), IoPriority::default(), SyncWrites::default());
        Self { name, pid, ioprio, group: None, read_only: false, sync }
    }
}

/// Error: the disk already has the maximum number of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the disk already has {CLIENTS_MAX} clients, the maximum")]
pub struct TooManyClients;

/// Histogram of latencies, with four buckets for each doubling from about 1 µs (1,024 ns).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    counts: [u64; Self::BUCKETS],
    sum_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: [0; Self::BUCKETS], sum_ns: 0 }
    }
}

impl Latencies {
    /// The last bucket begins above one hour.
    const BUCKETS: usize = 128;
    const FIRST_SHIFT: u32 = 10;

    fn bucket(latency_ns: u64) -> usize {
        let scaled = latency_ns >> (Self::FIRST_SHIFT - 2);
        if scaled < 4 {
            return 0;
        }
        let log = scaled.ilog2();
        let quarter = (scaled >> (log - 2)) & 3;
        ((log - 2) as usize * 4 + quarter as usize).min(Self::BUCKETS - 1)
    }

    /// Returns the upper bound of `bucket`, ns. All latencies in the bucket are below this bound.
    #[must_use]
    pub fn bound_ns(bucket: usize) -> u64 {
        let (log, quarter) = (bucket as u32 / 4, bucket as u64 % 4);
        (4 + quarter + 1) << (log + Self::FIRST_SHIFT - 2)
    }

    fn record(&mut self, latency_ns: u64) {
        self.counts[Self::bucket(latency_ns)] += 1;
        self.sum_ns += latency_ns;
    }

    /// Returns the number of latencies in each bucket.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all latencies, ns.
    #[must_use]
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns an upper bound of the quantile `quantile` (0 to 1) of the latencies, ns. The bound
    /// is at most 25 % too high. Returns 0 if there are no latencies.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = (self.count() as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return Self::bound_ns(bucket);
            }
        }
        0
    }
}

/// Statistics of a client's operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// Number of answered operations.
    pub ios: u64,
    /// Bytes of the answered operations.
    pub bytes: u64,
    /// Number of answered operations that failed.
    pub errors: u64,
    /// Latencies from submission to answer.
    pub latencies: Latencies,
}

/// Statistics of a client: operations, bytes and latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientStat {
    /// Statistics of reads.
    pub reads: Had,
    /// Statistics of writes, including writes of zeroes.
    pub writes: Had,
    /// Statistics of trims.
    pub trims: Had,
    /// Statistics of flushes.
    pub flushes: Had,
}

impl ClientStat {
    pub(super) fn count(&mut self, running: &Running, now: Time) {
        let had = match running.action {
            Action::Read => &mut self.reads,
            Action::Write | Action::WriteZeroes => &mut self.writes,
            Action::Trim => &mut self.trims,
            Action::Flush => &mut self.flushes,
        };
        had.ios += 1;
        if running.action != Action::Flush {
            had.bytes += running.length;
        }
        had.errors += u64::from(running.result.is_err());
        had.latencies.record(now.since(running.began));
    }

    /// Replaces each count by `f` of this count and the same count of `other`.
    fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64) {
        let Self { reads, writes, trims, flushes } = self;
        let others = [&other.reads, &other.writes, &other.trims, &other.flushes];
        for (had, other) in [reads, writes, trims, flushes].into_iter().zip(others) {
            had.ios = f(had.ios, other.ios);
            had.bytes = f(had.bytes, other.bytes);
            had.errors = f(had.errors, other.errors);
            had.latencies.sum_ns = f(had.latencies.sum_ns, other.latencies.sum_ns);
            for (count, other) in had.latencies.counts.iter_mut().zip(other.latencies.counts) {
                *count = f(*count, other);
            }
        }
    }
}

/// A client that is connected to a served disk.
#[derive(Debug)]
pub struct Client {
    /// Identifier of the client.
    pub id: ClientId,
    /// Description of the client.
    pub identity: Identity,
    /// Statistics of the client.
    pub stat: ClientStat,
    /// Number of operations without an answer.
    pub operations: u32,
    /// Number of the client's bios in the queue.
    pub(super) parts: u32,
    /// Operations that are not yet completely in the queue, oldest first.
    pub(super) pending: VecDeque<u32>,
    pub(super) context: ContextId,
    pub(super) leaving: bool,
    /// Part of the statistics that belongs to earlier groups of the client; `None` if the client
    /// never changed its group.
    of_earlier_groups: Option<Box<ClientStat>>,
}

impl Client {
    /// Returns the statistics of the client since it is in its present group.
    fn stat_in_group(&self) -> ClientStat {
        let mut stat = self.stat.clone();
        if let Some(earlier) = &self.of_earlier_groups {
            stat.combine(earlier, u64::saturating_sub);
        }
        stat
    }

    /// Returns the process number that represents the client in block traces.
    #[must_use]
    pub fn trace_pid(&self) -> u32 {
        super::watch::trace_pid(self.identity.pid, self.id.generation)
    }
}

/// All clients and groups of a disk.
#[derive(Debug, Default)]
pub(super) struct Clients {
    table: Slab<Client>,
    connected: u32,
    groups: BTreeMap<String, Group>,
    /// Statistics of the clients that left each group. `None` is the root.
    left: BTreeMap<Option<String>, ClientStat>,
}

/// A group of clients.
#[derive(Debug)]
struct Group {
    cgroup: CgroupId,
    /// Whether an export declares the group. A declared group remains even without clients.
    is_declared: bool,
}

/// Reason why a user cannot remove a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RemoveGroupError {
    /// No group has this name.
    #[error("there is no such group")]
    Missing,
    /// An export has declared the group.
    #[error("an export declares this group; remove the export instead")]
    Declared,
    /// The group has clients.
    #[error(
        "this group still has clients ({0}); first write the name of another group to the file `group` of each client"
    )]
    InUse(usize),
}

impl Clients {
    pub(super) fn add(&mut self, identity: Identity, context: ContextId) -> Result<ClientId, TooManyClients> {
        if self.table.len() >= CLIENTS_MAX {
            return Err(TooManyClients);
        }
        self.connected = self.next_number();
        let entry = self.table.vacant_entry();
        let id = ClientId { slot: entry.key() as u32, generation: self.connected };
        entry.insert(Client {
            id,
            identity,
            stat: ClientStat::default(),
            operations: 0,
            parts: 0,
            pending: VecDeque::new(),
            context,
            leaving: false,
            of_earlier_groups: None,
        });
        Ok(id)
    }

    /// Returns the number that the next client will get.
    pub(super) fn next_number(&self) -> u32 {
        self.connected.wrapping_add(1)
    }

    #[inline]
    pub(super) fn get(&self, id: ClientId) -> Option<&Client> {
        self.table.get(id.slot()).filter(|client| client.id == id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.table.get_mut(id.slot()).filter(|client| client.id == id)
    }

    pub(super) fn remove(&mut self, id: ClientId) {
        let client = self.table.remove(id.slot());
        self.leave(client.identity.group.clone(), &client.stat_in_group());
    }

    /// Moves a client to another group. The statistics so far stay with the old group.
    pub(super) fn move_to(&mut self, id: ClientId, group: Option<String>) -> Option<&Client> {
        let client = self.table.get_mut(id.slot()).filter(|client| client.id == id)?;
        let stat = client.stat_in_group();
        client.of_earlier_groups = Some(Box::new(client.stat.clone()));
        let old = std::mem::replace(&mut client.identity.group, group);
        self.leave(old, &stat);
        self.get(id)
    }

    fn leave(&mut self, group: Option<String>, stat: &ClientStat) {
        // Nobody reads the statistics of a removed group.
        if group.as_ref().is_none_or(|name| self.groups.contains_key(name)) {
            self.left.entry(group).or_default().combine(stat, u64::saturating_add);
        }
    }

    /// Returns the statistics of each group since its creation. They include clients that have
    /// left. `None` is the root.
    pub(super) fn group_stats(&self) -> BTreeMap<Option<String>, ClientStat> {
        let mut stats = self.left.clone();
        stats.entry(None).or_default();
        for name in self.groups.keys() {
            stats.entry(Some(name.clone())).or_default();
        }
        for (_, client) in &self.table {
            let stat = stats.entry(client.identity.group.clone()).or_default();
            stat.combine(&client.stat_in_group(), u64::saturating_add);
        }
        stats
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.table.iter().map(|(_, client)| client).filter(|client| !client.leaving)
    }

    /// Returns the cgroup of the group `name`. Creates the group with the default weight if it does
    /// not exist.
    pub(super) fn cgroup(&mut self, driver: &mut Driver, name: Option<&str>) -> CgroupId {
        let Some(name) = name else { return CgroupId::ROOT };
        if let Some(group) = self.groups.get(name) {
            return group.cgroup;
        }
        let cgroup = Cgroup { name: name.to_owned(), parent: Some(CgroupId::ROOT), weight: None, leaf_weight: None };
        // Creation fails only if the weight is out of range, and this cgroup has no weight.
        let id = driver.create_cgroup(cgroup).unwrap_or(CgroupId::ROOT);
        self.groups.insert(name.to_owned(), Group { cgroup: id, is_declared: false });
        id
    }

    /// Sets whether an export declares the group `name`.
    pub(super) fn declare(&mut self, name: &str, is_declared: bool) {
        if let Some(group) = self.groups.get_mut(name) {
            group.is_declared = is_declared;
        }
    }

    /// Removes a group if it has no clients and no export declares it.
    pub(super) fn remove_group(&mut self, driver: &mut Driver, now: Time, name: &str) -> Result<(), RemoveGroupError> {
        let &Group { cgroup, is_declared } = self.groups.get(name).ok_or(RemoveGroupError::Missing)?;
        let inside = self.iter().filter(|client| client.identity.group.as_deref() == Some(name)).count();
        match inside {
            _ if is_declared => Err(RemoveGroupError::Declared),
            0 => {
                // Requests of disconnected clients can still wait in the group. They move to the
                // root.
                driver.remove_cgroup(now, cgroup);
                self.groups.remove(name);
                self.left.remove(&Some(name.to_owned()));
                Ok(())
            }
            count => Err(RemoveGroupError::InUse(count)),
        }
    }

    /// Sets the weight of the group `name`. Creates the group if it does not exist.
    pub(super) fn set_weight(
        &mut self,
        driver: &mut Driver,
        name: &str,
        weight: Option<u32>,
    ) -> Result<(), WeightError> {
        let cgroup = self.cgroup(driver, Some(name));
        driver.set_weights(cgroup, weight, weight)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, CgroupId)> {
        self.groups.iter().map(|(name, group)| (name.as_str(), group.cgroup))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_within_the_bounds_of_its_bucket() {
        for latency_ns in (0..63).flat_map(|shift| [1u64 << shift, (1 << shift) + 1, 3 << shift >> 1]) {
            let bucket = Latencies::bucket(latency_ns);
            if bucket < Latencies::BUCKETS - 1 {
                assert!(latency_ns < Latencies::bound_ns(bucket), "{latency_ns} in {bucket}");
            }
            if bucket > 0 {
                assert!(latency_ns >= Latencies::bound_ns(bucket - 1), "{latency_ns} in {bucket}");
            }
        }
    }

    #[test]
    fn quantiles_are_at_most_26_percent_too_high() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile_ns(0.5), 0);
        for us in 1..=1000 {
            latencies.record(us * 1000);
        }
        for (quantile, exact) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let found = latencies.quantile_ns(quantile) as f64;
            assert!(found >= exact && found <= exact * 1.26, "{quantile}: {found}");
        }
    }
}
