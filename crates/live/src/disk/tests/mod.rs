//! Tests of the served disk with random clients. The tests compare the disk with a model of its
//! bytes. The back end completes commands in any order, and commands fail at random. Meanwhile the
//! test changes every setting that can change.
//!
//! Overlapping operations run at the same time only if both are reads. Each operation therefore has
//! only one correct result. Operations that do not overlap may share a block.

mod shares;
mod store;

use std::collections::BTreeMap;
use std::ops::Range;

use iosched::{IoPriority, Op, RequestQueue, Time};
use iosched_check::Random;

use super::{Action, ClientId, Done, Identity, LiveDisk, Operation, Settings, SyncWrites};
use crate::backend::BackendCard;
use crate::{Buffer, Errno, Pool};
use store::{Faults, Store};

/// An operation that the disk has not answered yet.
#[derive(Debug)]
struct PendingOperation {
    client: ClientId,
    action: Action,
    bytes: Range<u64>,
    fua: bool,
    data: Vec<u8>,
    /// Error that the disk must return.
    refusal: Option<Errno>,
    /// For a flush: the version of each block that must be stable.
    must_be_stable: Vec<u64>,
    /// Number of failures of the back end before the operation.
    failures_before: usize,
}

impl PendingOperation {
    fn changes(&self) -> bool {
        !matches!(self.action, Action::Read | Action::Flush)
    }
}

struct Run {
    random: Random,
    now: Time,
    disk: LiveDisk,
    store: Store,
    clients: Vec<ClientId>,
    read_only: Vec<ClientId>,
    gone: Vec<ClientId>,
    pending: BTreeMap<u64, PendingOperation>,
    cookies: u64,
    /// Value of every byte, or `None` if the value is not certain.
    model: Vec<Option<u8>>,
    /// Version of each block after its last answered change.
    answered: Vec<u64>,
    nr_requests: u32,
    parts_max: u32,
    /// Number of operations that succeeded.
    good: u64,
}

const GROUPS: [&str; 2] = ["a", "b"];

impl Run {
    fn new(seed: u64, scheduler: &str) -> Self {
        let mut random = Random::new(seed);
        let block_bytes = random.pick(&[512, 512, 4096]);
        let capacity_bytes = u64::from(block_bytes) * 96;
        let write_cache = random.chance(70);
        let depth_max = random.pick(&[1, 4, 32]);
        let settings = Settings {
            recorded: random.chance(30),
            name: "disk".to_owned(),
            setting: iosched::Setting::defaults(scheduler),
            registry: iosched::Registry::linux(),
            card: BackendCard {
                about: "a store".to_owned(),
                device: iosched_disk::Card {
                    capacity_sectors: capacity_bytes / iosched::SECTOR_BYTES,
                    depth: 1 + random.index(depth_max as usize) as u32,
                    hw_queues: 1,
                    rotational: random.chance(50),
                    write_cache,
                    fua: write_cache && random.chance(50),
                    max_hw_sectors_kb: random.pick(&[16, 64]),
                },
                block_bytes,
                depth_max,
                trim_zeroes: false,
                fast_zeroes: false,
            },
            budget_bytes: random.pick(&[0, 40_000, 1 << 20]),
        };
        let bad = random.index(90) as u64 * u64::from(block_bytes);
        let faults = match random.index(4) {
            0 => Faults::Bad(bad..bad + u64::from(block_bytes) * (1 + random.index(5) as u64)),
            1 => Faults::Percent(3),
            _ => Faults::Never,
        };
        let store = Store::new(&settings.card, faults);
        let disk = LiveDisk::new(Time::ZERO, settings, Pool::default()).unwrap();
        let mut run = Self {
            random,
            now: Time::ZERO,
            nr_requests: disk.nr_requests,
            parts_max: disk.nr_requests,
            disk,
            clients: Vec::new(),
            read_only: Vec::new(),
            gone: Vec::new(),
            pending: BTreeMap::new(),
            cookies: 0,
            model: vec![Some(0); capacity_bytes as usize],
            answered: vec![0; store.versions().len()],
            store,
            good: 0,
        };
        run.connect();
        run
    }

    // ---- actions

    fn step(&mut self) {
        match self.random.index(100) {
            0..55 => self.submit(),
            55..82 => self.complete(),
            82..86 => self.now = self.now + self.random.next_word() % 20_000_000,
            86..90 => self.timer(),
            90..92 => self.switch(),
            92..95 => self.tune(),
            95..97 => self.connect(),
            97..98 => self.leave(),
            _ => self.change_setting(),
        }
        if self.random.chance(90) {
            self.pump();
        }
        self.take_answers();
        self.check();
    }

    fn connect(&mut self) {
        if self.clients.len() >= 6 {
            return;
        }
        let identity = Identity {
            name: "client".to_owned(),
            pid: self.random.index(5) as u32,
            ioprio: self.priority(),
            group: self.group(),
            read_only: self.random.chance(10),
            sync: self.sync(),
        };
        let read_only = identity.read_only;
        let id = self.disk.connect(self.now, identity).unwrap();
        assert!(!self.gone.contains(&id), "client ids are not reused");
        self.clients.push(id);
        if read_only {
            self.read_only.push(id);
        }
    }

    fn leave(&mut self) {
        if self.clients.len() > 1 {
            let id = self.clients.swap_remove(self.random.index(self.clients.len()));
            self.gone.push(id);
            self.disk.disconnect(self.now, id);
        }
    }

    fn priority(&mut self) -> IoPriority {
        self.random.pick(&["rt/1", "be/0", "be/4", "be/7", "idle"]).parse().unwrap()
    }

    fn sync(&mut self) -> SyncWrites {
        self.random.pick(&[SyncWrites::Fua, SyncWrites::All])
    }

    fn group(&mut self) -> Option<String> {
        self.random.pick(&[None, Some(GROUPS[0]), Some(GROUPS[1])]).map(str::to_owned)
    }

    fn change_setting(&mut self) {
        let id = self.random.pick(&self.clients);
        match self.random.index(5) {
            0 => {
                let ioprio = self.priority();
                self.disk.set_client_ioprio(id, ioprio);
            }
            1 => {
                let group = self.group();
                self.disk.set_client_group(self.now, id, group);
            }
            2 => {
                let name = self.random.pick(&GROUPS);
                // The weight may be outside the scheduler's range.
                let weight = self.random.pick(&[None, Some(10), Some(100), Some(1000), Some(9999)]);
                let _ = self.disk.group(name, crate::Portion { weight, ..crate::Portion::default() });
            }
            3 => {
                let sync = self.sync();
                self.disk.set_client_sync(id, sync);
            }
            _ => self.disk.set_depth(self.random.index(40) as u32),
        }
    }

    fn switch(&mut self) {
        let name = self.random.pick(&iosched::Registry::linux().names());
        self.disk.switch(self.now, name).unwrap();
        assert_eq!(
            self.disk.attribute("nr_requests").unwrap(),
            self.nr_requests.to_string(),
            "after a switch to {name}"
        );
    }

    fn tune(&mut self) {
        if self.random.chance(30) {
            let value = self.random.pick(&[1, 4, 5, 9, 32, 128]);
            if self.disk.set_attribute(self.now, "nr_requests", &value.to_string()).is_ok() {
                self.nr_requests = self.disk.nr_requests;
                self.parts_max = self.parts_max.max(self.nr_requests);
            }
            return;
        }
        let attribute = self.random.chance(50);
        let specs: Vec<_> = if attribute {
            RequestQueue::attribute_specs().filter(|spec| spec.name != "nr_requests").collect()
        } else {
            (iosched::Registry::linux().get(self.disk.queue().scheduler()).unwrap().tunables)()
        };
        if specs.is_empty() {
            return;
        }
        let spec = self.random.pick(&specs);
        let small = spec.min.saturating_add(self.random.next_word() % 30);
        let value = self.random.pick(&[spec.min, spec.max, spec.default, small]);
        let text = spec.number(value).to_string();
        // Some attributes are read-only, and some do not accept the value.
        let _ = if attribute {
            self.disk.set_attribute(self.now, spec.name, &text)
        } else {
            self.disk.set_tunable(self.now, spec.name, &text)
        };
    }

    fn timer(&mut self) {
        if let Some(at) = self.disk.next_timer() {
            self.now = self.now.max(at) + self.random.next_word() % 100_000;
            self.disk.timer(self.now);
        }
    }

    /// Returns a range for the next operation that does not conflict with pending operations.
    fn place(&mut self, action: Action) -> Option<Range<u64>> {
        let (capacity, block) = (self.disk.capacity_bytes(), u64::from(self.disk.block_bytes()));
        for _ in 0..8 {
            let (start, length) = match self.random.index(10) {
                // Whole blocks, whether or not they are adjacent to other operations.
                0..4 => {
                    let start = self.random.next_word() % (capacity / block) * block;
                    (start, (1 + self.random.next_word() % 8) * block)
                }
                // A few bytes of a block.
                4..8 => (self.random.next_word() % capacity, self.random.next_word() % 200),
                _ => (self.random.next_word() % capacity, self.random.next_word() % 24_000),
            };
            let bytes = start..(start + length).min(capacity);
            let changes = !matches!(action, Action::Read);
            let in_the_way = |pending: &PendingOperation| {
                (changes || pending.changes()) && pending.bytes.start < bytes.end && bytes.start < pending.bytes.end
            };
            if !self.pending.values().any(in_the_way) {
                return Some(bytes);
            }
        }
        None
    }

    fn submit(&mut self) {
        let client = if self.random.chance(1) && !self.gone.is_empty() {
            self.random.pick(&self.gone)
        } else {
            self.random.pick(&self.clients)
        };
        if self.clients.contains(&client) && !self.disk.has_room(client) {
            return;
        }
        let action = match self.random.index(20) {
            0..8 => Action::Write,
            8..15 => Action::Read,
            15 => Action::Flush,
            16..18 => Action::Trim,
            _ => Action::WriteZeroes,
        };
        let (fua, no_hole, sync) = (self.random.chance(15), self.random.chance(50), self.random.chance(30));
        let (bytes, mut refusal) = match action {
            Action::Flush => (0..0, None),
            _ if self.random.chance(2) => {
                let end = self.disk.capacity_bytes();
                let errno = if action == Action::Read { Errno::EINVAL } else { Errno::ENOSPC };
                (end - 5..end + 5, Some(errno))
            }
            _ => match self.place(action) {
                Some(bytes) => (bytes, None),
                None => return,
            },
        };
        if action != Action::Read && action != Action::Flush && self.read_only.contains(&client) {
            refusal = Some(Errno::EPERM);
        }
        if self.gone.contains(&client) {
            refusal = Some(Errno::ESHUTDOWN);
        }
        let length = bytes.end - bytes.start;
        let data: Vec<u8> = match action {
            Action::Write => (0..length).map(|_| self.random.next_word() as u8).collect(),
            _ => Vec::new(),
        };
        let buffer = (action == Action::Write).then(|| {
            let mut buffer = self.disk.buffer(data.len());
            buffer.copy_from_slice(&data);
            buffer
        });
        self.cookies += 1;
        let cookie = self.cookies;
        let must_be_stable = if action == Action::Flush { self.answered.clone() } else { Vec::new() };
        let failures_before = self.store.failures.len();
        let offset = bytes.start;
        let pending = PendingOperation { client, action, bytes, fua, data, refusal, must_be_stable, failures_before };
        self.pending.insert(cookie, pending);
        let operation = Operation { action, offset, length, fua, sync, no_hole, to_send: false, data: buffer, cookie };
        self.disk.submit(self.now, client, operation);
    }

    fn pump(&mut self) {
        let mut segments = Vec::new();
        loop {
            while let Some(command) = self.disk.next_command(self.now, &mut segments) {
                self.store.start(&mut self.random, command, &mut segments);
                assert!(self.store.len() as u32 <= self.disk.depth_max());
            }
            if !self.disk.arrive(self.now) {
                break;
            }
        }
    }

    fn complete(&mut self) {
        for _ in 0..1 + self.random.index(3) {
            self.now = self.now + self.random.next_word() % 200_000;
            if let Some((id, result)) = self.store.complete_one(&mut self.random) {
                self.disk.complete(self.now, id, result);
            }
        }
    }

    // ---- invariants

    fn take_answers(&mut self) {
        let done: Vec<Done> = self.disk.take_done().collect();
        for Done { client, cookie, result } in done {
            let pending = self.pending.remove(&cookie).expect("an operation is answered once");
            assert_eq!(client, pending.client);
            match result {
                Ok(data) => self.succeeded(&pending, data),
                Err(errno) => self.failed(&pending, errno),
            }
        }
    }

    fn blocks(&self, pending: &PendingOperation) -> Range<u64> {
        let block = u64::from(self.disk.block_bytes());
        match pending.action {
            // A trim does not change partial blocks.
            Action::Trim => {
                let start = pending.bytes.start.next_multiple_of(block);
                start..(pending.bytes.end / block * block).max(start)
            }
            _ => pending.bytes.start / block * block..pending.bytes.end.next_multiple_of(block),
        }
    }

    fn succeeded(&mut self, pending: &PendingOperation, data: Option<Buffer>) {
        self.good += 1;
        assert_eq!(pending.refusal, None, "{pending:?}");
        let (blocks, place) = (self.blocks(pending), pending.bytes.start as usize..pending.bytes.end as usize);
        assert!(
            blocks.is_empty() || place.is_empty() || !self.store.must_fail(&blocks),
            "{pending:?} cannot have succeeded"
        );
        let zeroes = vec![0; place.len()];
        match pending.action {
            Action::Read => {
                let data = data.expect("a read has data");
                assert_eq!(data.len(), place.len());
                let wrong =
                    self.model[place].iter().zip(&*data).position(|(model, &read)| model.is_some_and(|m| m != read));
                assert_eq!(wrong, None, "{pending:?} read a byte that differs from the written byte");
                return;
            }
            Action::Flush => {
                let stable = self.store.stable_versions().iter().zip(&pending.must_be_stable);
                let lost = stable.enumerate().find(|(_, (stable, must))| stable < must);
                assert_eq!(lost, None, "a flush lost a write: the block, its stable version and its answered version");
            }
            Action::Trim => self.model[place].fill(None),
            Action::Write | Action::WriteZeroes => {
                let new = if pending.action == Action::Write { &pending.data } else { &zeroes };
                assert!(self.store.bytes()[place.clone()] == **new, "{pending:?} is answered, but not executed");
                assert!(!pending.fua || self.store.stable()[place.clone()] == **new, "{pending:?} is not stable");
                for (model, &new) in self.model[place].iter_mut().zip(new) {
                    *model = Some(new);
                }
            }
        }
        assert!(data.is_none(), "only reads have data");
        let block_bytes = u64::from(self.disk.block_bytes());
        for block in blocks.start / block_bytes..blocks.end / block_bytes {
            self.answered[block as usize] = self.store.versions()[block as usize];
        }
    }

    fn failed(&mut self, pending: &PendingOperation, errno: Errno) {
        if pending.changes() && pending.refusal.is_none() {
            self.model[pending.bytes.start as usize..pending.bytes.end as usize].fill(None);
        }
        if let Some(refusal) = pending.refusal {
            assert_eq!(errno, refusal, "{pending:?}");
        } else if errno == Errno::ESHUTDOWN {
            assert!(self.gone.contains(&pending.client), "{pending:?} has ESHUTDOWN, but its client did not leave");
        } else {
            assert_eq!(errno, Errno::EIO, "{pending:?}");
            let blocks = self.blocks(pending);
            let overlaps = |(op, place): &(Op, Range<u64>)| match op {
                Op::Flush => pending.action == Action::Flush || pending.fua,
                _ => blocks.start <= place.start && place.end <= blocks.end,
            };
            assert!(
                self.store.failures[pending.failures_before..].iter().any(overlaps),
                "{pending:?} has the error of another operation: {:?}",
                &self.store.failures[pending.failures_before..]
            );
        }
    }

    fn check(&mut self) {
        for client in self.disk.clients.iter() {
            let requests =
                self.pending.values().filter(|pending| pending.client == client.id && pending.refusal.is_none());
            assert_eq!(client.operations as usize, requests.count(), "operations of {}", client.id);
            assert!(
                client.parts <= self.parts_max,
                "a client has {} bios, but only {} are allowed",
                client.parts,
                self.parts_max
            );
        }
        assert_eq!(self.disk.inflight().iter().sum::<u32>() as usize, self.store.len());
        let queue = self.disk.queue();
        // A switch, or the end of a client, changes the value only at the next arrivals.
        if !self.disk.switching && !self.disk.rescale {
            let room = u64::from(self.nr_requests) * self.disk.clients.len() as u64;
            assert_eq!(queue.attribute("nr_requests").unwrap(), room.to_string(), "each client has its requests");
        }
    }

    fn state(&self) -> String {
        let LiveDisk { driver, clients, operations, parts, commands, .. } = &self.disk;
        let queue = driver.queue();
        let clients: Vec<_> =
            clients.iter().map(|c| (c.id, c.parts, c.leaving, c.pending.len(), c.operations)).collect();
        format!(
            "{} under {}, nr_requests {} of {:?}; clients' parts, leaving, pending, operations: {clients:?}; {} \
             operations, {} parts, {} commands",
            queue.waiting(),
            queue.scheduler(),
            self.nr_requests,
            queue.attribute("nr_requests"),
            operations.len(),
            parts.len(),
            commands.len()
        )
    }

    /// Runs all pending operations to completion.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            self.pump();
            if let Some((id, result)) = self.store.complete_one(&mut self.random) {
                self.disk.complete(self.now, id, result);
            } else if !self.disk.is_idle() {
                let at = self.disk.next_timer();
                assert!(at.is_some(), "{} operations wait, but no timer is set: {}", self.pending.len(), self.state());
                self.timer();
            }
            self.take_answers();
            if self.disk.is_idle() {
                break;
            }
        }
        assert!(self.pending.is_empty(), "not answered: {:?}", self.pending.values());
        self.check();
        assert!(self.disk.is_idle() && self.disk.parts.is_empty() && self.disk.commands.is_empty());
        assert!(self.disk.clients.iter().all(|client| !client.leaving && client.parts == 0));
        let wrong = self.model.iter().zip(self.store.bytes()).position(|(model, &is)| model.is_some_and(|m| m != is));
        assert_eq!(wrong, None, "a byte on the disk differs from the last write");
    }
}

fn run(seed: u64, scheduler: &str, steps: u32) -> Run {
    let mut run = Run::new(seed, scheduler);
    for _ in 0..steps {
        run.step();
    }
    run.finish();
    run
}

#[test]
fn acknowledged_operations_are_correct_despite_faults() {
    let from = std::env::var("LIVE_DISK_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = from.map_or(0..40, |seed: u64| seed..seed + 1);
    for scheduler in iosched::Registry::linux().names() {
        for seed in seeds.clone() {
            println!("LIVE_DISK_SEED={seed}, {scheduler}");
            let run = run(seed, scheduler, 600);
            assert!(run.good > 20 && run.store.commands > 20, "too few operations succeeded: {}", run.good);
        }
    }
}

#[test]
fn memory_of_an_operation_is_computed_before_submission() {
    let run = Run::new(1, "noop");
    let block = u64::from(run.disk.settings.card.block_bytes);
    let of_none = run.disk.bytes_of(Action::Flush, 0, 0);
    assert!(of_none > 0, "every operation takes memory");
    for action in [Action::Read, Action::Write] {
        assert_eq!(run.disk.bytes_of(action, 8192, 65_536), of_none + 65_536);
    }
    assert_eq!(run.disk.bytes_of(Action::Trim, 1, u64::MAX), of_none);
    assert_eq!(run.disk.bytes_of(Action::WriteZeroes, 0, 1 << 30), of_none);
    assert!(run.disk.bytes_of(Action::WriteZeroes, 1, 1 << 30) >= of_none + 2 * block);
    assert!(
        run.disk.bytes_of(Action::Write, 1, 65_536) >= of_none + 2 * 65_536,
        "an unaligned write is assembled in another buffer"
    );
    assert!(run.disk.bytes_of(Action::Read, u64::MAX, u64::MAX) > 0, "extreme values do not overflow");
}

#[test]
fn same_seed_gives_the_same_run() {
    let one = || run(7, "cfq", 400);
    let (a, b) = (one(), one());
    assert_eq!((a.now, a.good, a.store.commands), (b.now, b.good, b.store.commands));
    assert!(a.store.bytes() == b.store.bytes());
}
