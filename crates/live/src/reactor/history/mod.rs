//! Histories: complete runs of a served disk in virtual time, each determined by a seed. They are
//! for tests and long test runs.
//!
//! This module contains all code of histories, except `nbd/audit.rs`, which needs private fields of
//! the server. Without the feature `histories`, a build omits this code.
//!
//! A history is a disk and several lives of its server. A life is one run of the server, from its
//! start to its end. In each life, the real reactor, the real NBD server and the real request queue
//! run on a virtual system (`world`). Clients connect, send requests, stall, send invalid bytes and
//! leave. Their bytes arrive in pieces of any size. The scheduler, its tunables, the queue depth,
//! weights and classes change. The back end (`platter`) is slow, fails or is full. A life ends
//! normally or by a power cut. From the requests and answers of all clients, the checker computes
//! which contents each block may have, in this life and in the next one.
//!
//! Real: everything above the system calls of a disk's thread, except TLS and file back ends.
//! Simulated: io_uring, the bytes of sockets, and time.

mod broken;
mod changes;
mod client;
mod insiders;
mod platter;
mod wire;
mod witness;
mod world;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use iosched::{IoClass, IoPriority, MILLISECOND_NS, Registry, SECOND_NS, Setting, Time};
use iosched_check::{Contents, Digest, Random, Stamp};

use super::handle::Inbox;
use super::record::Recorders;
use super::{Ending, Reactor, nbd};
use crate::backend::{Backend, BackendCard, CachePlan, FaultPlan, Faulty};
use crate::disk::Settings;
use crate::nbd::{Export, Exports};
use crate::{LiveDisk, Messages, Pool};
use broken::Mistaken;
pub use broken::{Broken, Mistake};
use insiders::Insiders;
pub(crate) use platter::{Image, Platter};
use witness::{Excuses, Witness};
use world::{Fate, World};

/// Names of exports that clients request, and whether the exports are read-only. The last export
/// does not exist.
const EXPORTS: [(&str, bool); 5] = [("a", false), ("a", false), ("b", false), ("read", true), ("none", false)];
/// Size of a unit, bytes. The medium writes a unit either completely or not at all.
const UNIT_BYTES: u32 = 512;
/// Number of turns between detailed checks of a life's state.
const LOOKS_EVERY: u64 = 8;

/// Theme of random histories: the kind of event that they test most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// Everything.
    All,
    /// Power cuts. Every life ends by a power cut, and there is a volatile cache.
    Cuts,
}

/// Counts of the operations and faults of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryTally {
    /// Number of histories.
    pub histories: u64,
    /// Lives that ended by a power cut.
    pub cuts: u64,
    /// Lives that ended normally.
    pub ends: u64,
    /// Answered operations.
    pub answers: u64,
    /// Answered operations that failed.
    pub failures: u64,
    /// Turns of the reactor.
    pub turns: u64,
    /// Hash of all events. The hashes of several histories are combined by XOR.
    pub digest: u64,
}

impl HistoryTally {
    /// Adds the counts of another tally.
    pub fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        self.cuts += other.cuts;
        self.ends += other.ends;
        self.answers += other.answers;
        self.failures += other.failures;
        self.turns += other.turns;
        // XOR makes the result independent of the order of the histories.
        self.digest ^= other.digest;
    }
}

/// A property that does not hold in a history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("seed {seed}, life {life}: {what}")]
pub struct Violation {
    /// Seed of the history.
    pub seed: u64,
    /// Life of the server, counted from 0.
    pub life: u32,
    /// Description of the violation.
    pub what: String,
}

/// Returns a queue that drops all messages. All histories share its thread.
fn nobody() -> Messages {
    static NOBODY: OnceLock<Messages> = OnceLock::new();
    NOBODY.get_or_init(Messages::to_nobody).clone()
}

/// The disk of a history, which outlives its servers.
struct Medium {
    image: Image,
    block_bytes: u32,
    capacity_bytes: u64,
    cache: Option<CachePlan>,
    /// Whether the disk never fails. Some disks never fail, because a history with only failures
    /// tests little.
    is_sound: bool,
    contents: Contents,
    stamps: Stamp,
}

impl Medium {
    fn new(random: &mut Random, theme: Theme, broken: Option<Broken>) -> Self {
        let block_bytes = random.pick(&[512, 512, 512, 4096]);
        let capacity_bytes = u64::from(block_bytes) * (16 + random.below(50));
        let has_cache = theme == Theme::Cuts || broken.is_some() || random.chance(60);
        let lie = match broken {
            Some(Broken::Lie(lie)) => Some(lie),
            _ => None,
        };
        let bytes = random.pick(&[4096, 32_768, 1 << 20]);
        Self {
            image: Arc::new(Mutex::new(vec![0; capacity_bytes as usize])),
            block_bytes,
            capacity_bytes,
            cache: has_cache.then_some(CachePlan { bytes, tear_bytes: UNIT_BYTES.into(), lie }),
            is_sound: broken.is_some_and(|broken| !broken.needs_errors())
                || random.chance(if theme == Theme::Cuts { 80 } else { 50 }),
            contents: Contents::new(UNIT_BYTES as usize, capacity_bytes as usize),
            stamps: 0,
        }
    }

    fn card(&self, block_bytes: u32, random: &mut Random) -> BackendCard {
        let depth_max = random.pick(&[1, 4, 32]);
        BackendCard {
            about: "a platter".to_owned(),
            device: iosched_disk::Card {
                capacity_sectors: self.capacity_bytes / iosched::SECTOR_BYTES,
                depth: 1 + random.index(depth_max as usize) as u32,
                hw_queues: 1,
                rotational: random.chance(50),
                write_cache: random.chance(50),
                fua: false,
                max_hw_sectors_kb: random.pick(&[16, 64]),
            },
            block_bytes,
            depth_max,
            trim_zeroes: true,
            fast_zeroes: random.chance(50),
        }
    }

    /// Returns the faults of this life, and the errors that clients may therefore get.
    fn faults(&self, random: &mut Random) -> (FaultPlan, u32, Excuses) {
        let (seed, late_ms) = (random.next_word(), 1 + random.index(100) as u32);
        let mut plan = FaultPlan { seed, late_ms, late: random.pick(&[0, 0, 20_000]), ..FaultPlan::default() };
        let (mut behind, mut excuses) = (0, Excuses::default());
        let kind = if self.is_sound { 4 } else { random.index(5) };
        match kind {
            0 => (plan.eio, excuses.eio) = (20_000, true),
            1 => (plan.enospc, excuses.enospc) = (50_000, true),
            2 => {
                let block = u64::from(self.block_bytes);
                let first = random.below(self.capacity_bytes / block);
                let bad = first * block..(first + 1 + random.below(4)).min(self.capacity_bytes / block) * block;
                plan.bad.push(bad.clone());
                excuses.bad = bad;
            }
            // A flush returns the error if the cache cannot write to the back end.
            3 if self.cache.is_some() => (behind, excuses.eio) = (20_000, true),
            _ => {}
        }
        (plan, behind, excuses)
    }

    /// Returns the back end of a life.
    fn backend(&self, plan: FaultPlan, behind: u32, broken: Option<Broken>, random: &mut Random) -> Box<dyn Backend> {
        let card = self.card(UNIT_BYTES, random);
        let mut backend: Box<dyn Backend> =
            Box::new(Platter::new(card, Arc::clone(&self.image), Random::new(random.next_word())));
        if let Some(cache) = self.cache {
            let fails = FaultPlan { eio: behind, seed: random.next_word(), ..FaultPlan::default() };
            let cache = FaultPlan { cache: Some(cache), seed: random.next_word(), ..FaultPlan::default() };
            backend = Box::new(Faulty::new(Box::new(Faulty::new(backend, fails)), cache));
        }
        let backend: Box<dyn Backend> = Box::new(Faulty::new(backend, plan));
        match broken {
            Some(Broken::Command(mistake)) => {
                Box::new(Mistaken::new(backend, mistake, Random::new(random.next_word())))
            }
            _ => backend,
        }
    }

    /// Returns the server's settings for the back end.
    fn settings(&self, backend: &dyn Backend, broken: Option<Broken>, random: &mut Random) -> Settings {
        let card = backend.card();
        let mut device = card.device.clone();
        device.fua = device.fua && random.chance(50);
        if broken == Some(Broken::NoFlushes) {
            (device.write_cache, device.fua) = (false, false);
        }
        Settings {
            name: "disk".to_owned(),
            setting: Setting::defaults(random.pick(&Registry::linux().names())),
            registry: Registry::linux(),
            card: BackendCard { device, block_bytes: self.block_bytes, ..card.clone() },
            budget_bytes: random.pick(&[0, 100_000, 16 << 20]),
            recorded: false,
        }
    }
}

fn exports() -> Exports {
    let mut exports = Exports::default();
    let idle = IoPriority::new(IoClass::Idle, 0);
    for export in [
        Export { weight: Some(300), ..Export::new("a") },
        Export { ioprio: idle, ..Export::new("b") },
        Export { read_only: true, ..Export::new("read") },
    ] {
        // This call cannot fail, because the names differ.
        let _ = exports.add(export);
    }
    exports
}

/// Result of one life of the server: how the life ended.
enum Life {
    Cut,
    Ended,
    Wrong(String),
}

fn live(
    medium: &mut Medium,
    fate: Fate,
    broken: Option<Broken>,
    random: &mut Random,
    tally: &mut HistoryTally,
) -> Life {
    let (plan, behind, excuses) = medium.faults(random);
    let backend = medium.backend(plan, behind, broken, random);
    let settings = medium.settings(&*backend, broken, random);
    let pool = Pool::within(settings.budget_bytes);
    let Ok(mut disk) = LiveDisk::new(Time::BEGINNING, settings, pool) else {
        return Life::Wrong("the disk does not accept its defaults".to_owned());
    };
    let limits = nbd::Limits {
        connections: random.pick(&[2, 8, 256]),
        handshake_ns: 10 * SECOND_NS,
        stall_timeout_ns: random.pick(&[60 * SECOND_NS, 3000 * MILLISECOND_NS]),
    };
    let Ok(pair) = std::os::unix::net::UnixStream::pair() else { return Life::Wrong("no socket".to_owned()) };
    // No client uses this socket. Its file descriptor identifies the listener.
    let listeners = vec![nbd::Listener::Unix(std::os::fd::OwnedFd::from(pair.0).into())];
    let config = nbd::Config { listeners, exports: exports(), tls: None, plain: true, limits };
    let server = nbd::Server::new(config, &mut disk, nobody());
    let Ok(inbox) = Inbox::new().map(Arc::new) else { return Life::Wrong("no eventfd".to_owned()) };
    let contents = std::mem::replace(&mut medium.contents, Contents::new(1, 0));
    let block_bytes = u64::from(medium.block_bytes);
    let mut witness = Witness::new(contents, medium.stamps, block_bytes, medium.capacity_bytes, excuses);
    witness.fua_unheard = broken == Some(Broken::FuaUnheard);
    let insiders = Insiders::new(Arc::clone(&inbox), disk.pool().clone());
    let world = World::new(Random::new(random.next_word()), witness, insiders, Arc::clone(&inbox), fate);
    let mut reactor = Reactor::new(world, disk, backend, inbox, Some(server), Recorders::default(), nobody());
    let turns = run(&mut reactor);
    tally.turns += turns;
    let flushed = reactor.result;
    let at_end = about(&reactor.disk);
    let Reactor { ring: mut world, .. } = reactor;
    if !world.is_cut {
        world.insiders_hear();
    }
    let World { witness: Witness { wrong, answers, failures, .. }, .. } = &world;
    tally.answers += answers;
    tally.failures += failures;
    let mut digest = Digest::default();
    [tally.digest, *answers, *failures, turns, world.now_ns()].into_iter().for_each(|number| digest.add(number));
    tally.digest = digest.value();
    if let Some(wrong) = wrong {
        return Life::Wrong(format!("{wrong}; at the end, {at_end}"));
    }
    let is_cut = world.is_cut;
    medium.stamps = world.witness.last_stamp();
    let mut contents = world.witness.contents;
    if !is_cut && flushed.is_ok() {
        let now = contents.now();
        contents.flushed(now);
    }
    let image = medium.image.lock().unwrap_or_else(PoisonError::into_inner);
    let checked = contents.cut(&image);
    medium.contents = contents;
    match checked {
        Err(wrong) => Life::Wrong(format!("after {}: {wrong}", if is_cut { "a cut" } else { "an end in order" })),
        Ok(()) if is_cut => Life::Cut,
        Ok(()) => Life::Ended,
    }
}

/// Describes the state of a disk, for the analysis of a violation.
fn about(disk: &LiveDisk) -> String {
    let queue = disk.queue();
    let tunables = disk.registry().get(queue.scheduler()).map(|elevator| (elevator.tunables)()).unwrap_or_default();
    let tunables =
        tunables.iter().map(|spec| format!(" {}={}", spec.name, queue.tunable(spec.name).unwrap_or_default()));
    let [reads, writes] = disk.inflight();
    format!(
        "{} requests wait in {}{}, {} are in the driver, {reads} reads and {writes} writes in the device of depth \
         {}; its timer is {:?}",
        queue.waiting(),
        queue.scheduler(),
        tunables.collect::<String>(),
        queue.in_driver(),
        disk.depth(),
        disk.next_timer(),
    )
}

/// Runs the reactor and checks its state. Returns the number of turns.
fn run(reactor: &mut Reactor<World>) -> u64 {
    let mut turns = 0;
    reactor.begin();
    while reactor.ending != Ending::Ended {
        reactor.turn();
        turns += 1;
        look(reactor, turns % LOOKS_EVERY == 0);
        if reactor.ending != Ending::Ended {
            reactor.wait();
        }
    }
    reactor.refuse_the_rest();
    turns
}

/// Checks that the counts of the reactor, the disk and the server agree.
fn look(reactor: &mut Reactor<World>, closely: bool) {
    let Reactor { ring: world, disk, nbd, replies, flusher, .. } = reactor;
    let Some(server) = nbd else { return };
    let is_idle = disk.is_idle();
    if is_idle && world.witness.has_orphans() && server.audit().connections <= world.connections() {
        world.witness.settle_orphans();
    }
    if !closely {
        return;
    }
    let audit = server.audit();
    let witness = &mut world.witness;
    if audit.held_bytes != audit.charged_bytes {
        witness.is_wrong(|| {
            format!("connections hold {} bytes, but the disk counts {} bytes", audit.held_bytes, audit.charged_bytes)
        });
    }
    if audit.held_bytes > audit.bytes_max {
        witness.is_wrong(|| {
            format!("connections hold {} bytes, but only {} bytes are allowed", audit.held_bytes, audit.bytes_max)
        });
    }
    let front_ends = audit.operations + replies.len() + usize::from(flusher.is_some());
    let clients: usize = disk.clients().map(|client| client.operations as usize).sum();
    if clients > front_ends {
        witness.is_wrong(|| {
            format!("clients have {clients} operations in flight, but the front ends have only {front_ends}")
        });
    }
    if is_idle && (audit.operations + replies.len() > 0 || disk.inflight() != [0, 0]) {
        witness.is_wrong(|| {
            format!(
                "the disk should be idle, but it has {front_ends} operations, {:?} of them in \
            the device",
                disk.inflight()
            )
        });
    }
}

/// Runs the history that a seed determines.
///
/// # Errors
/// A property does not hold.
pub fn history(seed: u64, theme: Theme, broken: Option<Broken>) -> Result<HistoryTally, Violation> {
    let mut random = Random::new(seed);
    let mut medium = Medium::new(&mut random, theme, broken);
    let mut tally = HistoryTally { histories: 1, ..HistoryTally::default() };
    for life in 0..1 + random.index(4) as u32 {
        let cut = (theme == Theme::Cuts || random.chance(40)).then(|| random.index(60) as u32);
        let acts_max = random.pick(&[20, 100, 300]);
        let acts = 5 + random.index(acts_max) as u32;
        let fate = Fate { acts, cut, drains: random.chance(60) };
        match live(&mut medium, fate, broken, &mut random, &mut tally) {
            Life::Cut => tally.cuts += 1,
            Life::Ended => tally.ends += 1,
            Life::Wrong(what) => return Err(Violation { seed, life, what }),
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests;
