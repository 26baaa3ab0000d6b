//! Tests with random overlapping requests. Several connections have many requests in flight at the
//! same time. The tests check every byte of every answer. They correspond to the reference server's
//! `integrity-test` and `integrityhuge-test`, with short requests and with requests of many MiB.
//!
//! Each connection writes distinct data. All connections share the set of possible values of each
//! byte. A read may return the value of the last write that was answered before the read began. It
//! may also return the value of any write that was in flight during the read.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use iosched_check::{Contents, Moment, Random, bytes_of};
use iosched_nbd::client::{FLAGS, Messages};
use iosched_nbd::wire;

use super::disk::Disk;

/// Maximum time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

/// Load on a disk.
#[derive(Clone, Copy)]
struct Load {
    disk_bytes: u64,
    /// Size of a unit, bytes. A unit in the result of a read contains data of only one write,
    /// unless a write begins or ends inside the unit.
    unit_bytes: u64,
    /// Alignment of requests, bytes.
    step_bytes: u64,
    length_max: u64,
    connections: usize,
    /// Number of requests in flight on each connection.
    depth: usize,
    /// Number of requests of each connection.
    requests: u64,
}

/// A request that has no answer yet.
struct Ask {
    command: u16,
    fua: bool,
    bytes: Range<u64>,
    at: Moment,
    /// Data of a read that has already arrived.
    data: Vec<u8>,
}

/// Knowledge that all clients share.
struct World {
    contents: Contents,
    stamps: u64,
}

impl World {
    /// Returns a random request with its data.
    fn ask(&mut self, load: &Load, random: &mut Random) -> (Ask, Vec<u8>) {
        let command = match random.index(20) {
            0..9 => wire::CMD_WRITE,
            9..16 => wire::CMD_READ,
            16..18 => wire::CMD_FLUSH,
            _ => wire::CMD_WRITE_ZEROES,
        };
        let steps = load.disk_bytes / load.step_bytes;
        let first = random.below(steps);
        // The maximum length is divided by a random power of two, so that short requests are not
        // rare.
        let most = (load.length_max / load.step_bytes) >> random.below(6);
        let last = (first + 1 + random.below(most.max(1))).min(steps);
        let bytes = if command == wire::CMD_FLUSH { 0..0 } else { first * load.step_bytes..last * load.step_bytes };
        let fua = matches!(command, wire::CMD_WRITE | wire::CMD_WRITE_ZEROES) && random.chance(15);
        self.stamps += 1;
        let (at, data) = match command {
            wire::CMD_READ => (self.contents.read(), Vec::new()),
            wire::CMD_FLUSH => (self.contents.now(), Vec::new()),
            wire::CMD_WRITE => {
                let at = self.contents.write(self.stamps, &bytes);
                (at, bytes_of(self.stamps, bytes.start, (bytes.end - bytes.start) as usize))
            }
            _ => (self.contents.write(0, &bytes), Vec::new()),
        };
        (Ask { command, fua, bytes, at, data: Vec::new() }, data)
    }

    fn answer(&mut self, ask: &Ask) {
        match ask.command {
            wire::CMD_READ => self.contents.check_read(ask.at, &ask.bytes, &ask.data).unwrap(),
            wire::CMD_FLUSH => self.contents.flushed(ask.at),
            _ => self.contents.answer(ask.at, &ask.bytes, true, ask.fua),
        }
    }
}

/// A connection. One thread sends requests, and another thread receives the answers.
struct Connection {
    socket: UnixStream,
    pending: Mutex<HashMap<u64, Ask>>,
    answered: Condvar,
}

impl Connection {
    fn new(disk: &Disk, structured: bool) -> Self {
        let mut socket = UnixStream::connect(disk.path("s")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut sent = Messages::flags(FLAGS);
        let mut replies = wire::GREETING_BYTES;
        if structured {
            sent = sent.option(wire::OPT_STRUCTURED_REPLY, &[]);
            replies += wire::OPTION_REPLY_HEADER_BYTES;
        }
        socket.write_all(&sent.go("").0).unwrap();
        // The replies contain the export and an ACK.
        socket.read_exact(&mut vec![0; replies + 2 * wire::OPTION_REPLY_HEADER_BYTES + 12]).unwrap();
        Self { socket, pending: Mutex::default(), answered: Condvar::new() }
    }

    fn ask_all(&self, load: &Load, mut random: Random, world: &Mutex<World>) {
        for cookie in 0..load.requests {
            let pending = self.pending.lock().unwrap();
            let wait = self.answered.wait_timeout_while(pending, PATIENCE, |pending| pending.len() >= load.depth);
            drop(wait.unwrap());
            let (ask, data) = world.lock().unwrap().ask(load, &mut random);
            let flags = if ask.fua { wire::CMD_FLAG_FUA } else { 0 };
            let length = u32::try_from(ask.bytes.end - ask.bytes.start).unwrap();
            let sent = Messages::default().request(ask.command, flags, cookie, ask.bytes.start, length);
            self.pending.lock().unwrap().insert(cookie, ask);
            (&self.socket).write_all(&sent.0).unwrap();
            (&self.socket).write_all(&data).unwrap();
        }
    }

    fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (&self.socket).read_exact(&mut bytes).unwrap();
        bytes
    }

    fn data(&self, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        (&self.socket).read_exact(&mut data).unwrap();
        data
    }

    fn take_all(&self, load: &Load, world: &Mutex<World>) {
        for _ in 0..load.requests {
            let cookie = loop {
                if let Some(cookie) = self.take() {
                    break cookie;
                }
            };
            let ask = self.pending.lock().unwrap().remove(&cookie).unwrap();
            world.lock().unwrap().answer(&ask);
            self.answered.notify_one();
        }
    }

    /// Receives a simple reply or a chunk. Returns the cookie of the request that it completes, if
    /// any.
    fn take(&self) -> Option<u64> {
        match u32::from_be_bytes(self.bytes()) {
            wire::SIMPLE_REPLY_MAGIC => {
                assert_eq!(u32::from_be_bytes(self.bytes()), 0, "no error");
                let cookie = u64::from_be_bytes(self.bytes());
                let length = {
                    let pending = self.pending.lock().unwrap();
                    let ask = &pending[&cookie];
                    if ask.command == wire::CMD_READ { ask.bytes.end - ask.bytes.start } else { 0 }
                };
                let data = self.data(length as usize);
                self.pending.lock().unwrap().get_mut(&cookie).unwrap().data = data;
                Some(cookie)
            }
            wire::STRUCTURED_REPLY_MAGIC => {
                let (flags, kind) = (u16::from_be_bytes(self.bytes()), u16::from_be_bytes(self.bytes()));
                let cookie = u64::from_be_bytes(self.bytes());
                let length = u32::from_be_bytes(self.bytes()) as usize;
                if kind == wire::REPLY_TYPE_OFFSET_DATA {
                    let offset = u64::from_be_bytes(self.bytes());
                    let data = self.data(length - 8);
                    let mut pending = self.pending.lock().unwrap();
                    let ask = pending.get_mut(&cookie).unwrap();
                    // The pieces of a read arrive in order.
                    assert_eq!(offset, ask.bytes.start + ask.data.len() as u64);
                    ask.data.extend_from_slice(&data);
                } else {
                    assert_eq!((kind, length), (wire::REPLY_TYPE_NONE, 0));
                }
                (flags & wire::REPLY_FLAG_DONE != 0).then_some(cookie)
            }
            magic => panic!("magic {magic:#x}"),
        }
    }
}

/// Runs a load and checks every answer, and then checks the contents of the disk.
fn keeps_every_byte(disk: &Disk, load: &Load, seed: u64) {
    let contents = Contents::new(load.unit_bytes as usize, load.disk_bytes as usize);
    let world = Mutex::new(World { contents, stamps: 0 });
    let connections: Vec<_> = (0..load.connections).map(|number| Connection::new(disk, number % 2 == 0)).collect();
    thread::scope(|scope| {
        for (number, connection) in connections.iter().enumerate() {
            let (world, random) = (&world, Random::new(seed * 1000 + number as u64));
            scope.spawn(move || connection.ask_all(load, random, world));
            scope.spawn(move || connection.take_all(load, world));
        }
    });
    // A later connection must find the same contents.
    let all = Load { requests: 1, ..*load };
    let last = Connection::new(disk, false);
    let mut world = world.into_inner().unwrap();
    for start in (0..load.disk_bytes).step_by(MIB as usize) {
        let bytes = start..(start + MIB).min(load.disk_bytes);
        let at = world.contents.read();
        let ask = Ask { command: wire::CMD_READ, fua: false, bytes: bytes.clone(), at, data: Vec::new() };
        last.pending.lock().unwrap().insert(start, ask);
        let length = (bytes.end - bytes.start) as u32;
        (&last.socket)
            .write_all(&Messages::default().request(wire::CMD_READ, 0, start, bytes.start, length).0)
            .unwrap();
        let shared = Mutex::new(world);
        last.take_all(&all, &shared);
        world = shared.into_inner().unwrap();
    }
}

/// Creates a disk. `DIR` in `backend` stands for a directory, and `SHM` stands for a directory in
/// tmpfs.
fn disk(backend: &str, disk_bytes: u64, budget_mib: u64) -> Disk {
    let parent = if backend.starts_with("SHM") { "/dev/shm" } else { env!("CARGO_TARGET_TMPDIR") };
    let folder = tempfile::tempdir_in(parent).unwrap();
    let file = std::fs::File::create(folder.path().join("disk.img")).unwrap();
    file.set_len(disk_bytes).unwrap();
    Disk::within(folder, &backend.replace("SHM", "DIR"), budget_mib)
}

#[test]
fn short_requests_that_overlap_keep_every_byte() {
    let load = Load {
        disk_bytes: 2 * MIB,
        unit_bytes: 512,
        step_bytes: 512,
        length_max: 128 << 10,
        connections: 4,
        depth: 64,
        requests: 1500,
    };
    // With a budget of 1 MiB, the server executes most requests in pieces.
    let backends = ["memory:2M", "DIR/disk.img", "SHM/disk.img"].map(|backend| (backend, 64));
    for (backend, budget_mib) in backends.into_iter().chain([("memory:2M", 1), ("model:nvme,size=2M", 4)]) {
        keeps_every_byte(&disk(backend, load.disk_bytes, budget_mib), &load, 1);
    }
}

#[test]
fn requests_of_any_bytes_keep_every_byte() {
    let load = Load {
        disk_bytes: 64 << 10,
        unit_bytes: 512,
        step_bytes: 1,
        length_max: 5000,
        connections: 4,
        depth: 16,
        requests: 1000,
    };
    for backend in ["memory:64K", "DIR/disk.img"] {
        keeps_every_byte(&disk(backend, load.disk_bytes, 64), &load, 2);
    }
}

#[test]
fn requests_of_up_to_64_mib_keep_every_byte() {
    let load = Load {
        disk_bytes: 96 * MIB,
        unit_bytes: 4096,
        step_bytes: 4096,
        length_max: 64 * MIB,
        connections: 3,
        depth: 8,
        requests: 12,
    };
    for backend in ["memory:96M", "DIR/disk.img", "SHM/disk.img"] {
        keeps_every_byte(&disk(backend, load.disk_bytes, 256), &load, 3);
    }
}
