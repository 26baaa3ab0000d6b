//! Tests of power cuts of a disk that another program provides: nbdkit with a write-back cache,
//! mounted by nbdfuse. The test kills nbdkit while iosched serves a disk from this mount. After
//! that, nbdkit's file must contain all data that iosched acknowledged as durable.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;

use common::{FuseDisk, Server, directory, has_fuse, has_minutes, has_program, image};
use iosched_check::{Contents, Moment, Random, bytes_of};

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const WRITE_ZEROES: u16 = 6;
const FUA: u16 = 1;
const NO_HOLE: u16 = 2;

const SIZE: u64 = 1 << 20;
/// Smallest part of a write to nbdkit's file that is either complete or missing, bytes.
const UNIT_BYTES: usize = 512;
const BYTES_MAX: u64 = 20_000;
/// Number of requests in flight.
const DEPTH: usize = 12;

/// A request without a reply.
struct SentRequest {
    command: u16,
    fua: bool,
    bytes: Range<u64>,
    at: Moment,
}

/// A client that records which data the server has acknowledged as durable.
struct Client {
    socket: UnixStream,
    in_flight: BTreeMap<u64, SentRequest>,
    /// Last used cookie. The cookie of a request is also the written data. Cookies are unique over
    /// all runs.
    cookies: u64,
    /// Number of replies without an error.
    done: u64,
}

impl Client {
    fn ask(&mut self, random: &mut Random, contents: &mut Contents) {
        let command = random.pick(&[READ, WRITE, WRITE, WRITE, WRITE, FLUSH, WRITE_ZEROES]);
        let offset = random.below(SIZE);
        let length = if command == FLUSH { 0 } else { (1 + random.below(BYTES_MAX)).min(SIZE - offset) };
        let bytes = if command == FLUSH { 0..0 } else { offset..offset + length };
        self.cookies += 1;
        let value = if command == WRITE { self.cookies } else { 0 };
        let at = match command {
            READ => contents.read(),
            FLUSH => contents.now(),
            _ => contents.write(value, &bytes),
        };
        let fua = matches!(command, WRITE | WRITE_ZEROES) && random.chance(15);
        let hole = if command == WRITE_ZEROES && random.chance(50) { NO_HOLE } else { 0 };
        let mut sent = vec![0x25, 0x60, 0x95, 0x13];
        sent.extend((if fua { FUA | hole } else { hole }).to_be_bytes());
        sent.extend(command.to_be_bytes());
        sent.extend(self.cookies.to_be_bytes());
        sent.extend(bytes.start.to_be_bytes());
        sent.extend((length as u32).to_be_bytes());
        if command == WRITE {
            sent.extend(bytes_of(value, offset, length as usize));
        }
        self.socket.write_all(&sent).unwrap();
        self.in_flight.insert(self.cookies, SentRequest { command, fua, bytes, at });
    }

    /// Processes the next reply.
    fn receive(&mut self, contents: &mut Contents) {
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply).unwrap();
        let is_done = reply[4..8] == [0; 4];
        let cookie = u64::from_be_bytes(reply[8..].try_into().unwrap());
        let SentRequest { command, fua, bytes, at } =
            self.in_flight.remove(&cookie).expect("the reply has the cookie of a request");
        self.done += u64::from(is_done);
        match command {
            READ if is_done => {
                let mut data = vec![0; (bytes.end - bytes.start) as usize];
                self.socket.read_exact(&mut data).unwrap();
                contents.check_read(at, &bytes, &data).unwrap();
            }
            READ => contents.read_failed(at),
            FLUSH if is_done => contents.flushed(at),
            FLUSH => {}
            _ => contents.answer(at, &bytes, is_done, fua),
        }
    }
}

/// Runs nbdkit with this cache, and kills it while a client sends requests.
fn run_until_power_cut(here: &Path, cache: &str, cut: u64, contents: &mut Contents) -> u64 {
    let random = &mut Random::new(cut);
    let image = here.join("disk.img");
    let file = format!("file={}", image.display());
    let mut disk = FuseDisk::new(here, "cached", &["--filter=cache", "file", &file, &format!("cache={cache}")]);
    let elevator = random.pick(&["noop", "cfq", "bfq", "mq-deadline"]);
    let server = Server::serving(here, &[disk.file().to_str().unwrap(), "--scheduler", elevator]);
    let mut client = Client { socket: server.connect(), in_flight: BTreeMap::new(), cookies: cut << 32, done: 0 };
    let acts = 50 + random.index(300);
    for _ in 0..acts {
        client.ask(random, contents);
        while client.in_flight.len() >= DEPTH {
            client.receive(contents);
        }
    }
    disk.nbdkit.0.kill().unwrap();
    disk.nbdkit.0.wait().unwrap();
    // Replies until now count. Most later replies are errors.
    while !client.in_flight.is_empty() {
        client.receive(contents);
    }
    client.done
}

/// Cuts the power `cuts` times. Returns a description of the first loss.
fn first_loss(name: &str, cache: &str, cuts: u64) -> Option<String> {
    let here = directory(name);
    let image = image(&here, "disk.img", SIZE);
    let mut contents = Contents::new(UNIT_BYTES, SIZE as usize);
    for cut in 0..cuts {
        let done = run_until_power_cut(&here, cache, cut, &mut contents);
        assert!(done >= 30, "only {done} replies before cut {cut}");
        if let Err(wrong) = contents.cut(&fs::read(&image).unwrap()) {
            return Some(format!("after cut {cut}: {wrong}"));
        }
    }
    None
}

fn has_all() -> bool {
    has_fuse() && ["nbdkit", "nbdfuse"].iter().all(|program| has_program(program))
}

#[test]
fn flushed_data_survive_power_cuts_of_an_nbdkit_cache() {
    if has_all() {
        let cuts = if has_minutes() { 60 } else { 5 };
        assert_eq!(first_loss("power", "writeback", cuts), None);
    }
}

#[test]
fn loss_in_an_unsafe_nbdkit_cache_is_detected() {
    if has_all() {
        assert!(first_loss("power-lost", "unsafe", 3).is_some());
    }
}
