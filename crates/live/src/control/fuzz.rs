//! Entry point for fuzzing. The input contains the bytes that a client of the control socket sends
//! while other clients use the disk.
//!
//! The first byte selects the scheduler. The second byte selects how the remaining bytes are cut
//! into pieces. The remaining bytes also determine the actions of the other clients between two
//! requests. The entry point checks for every input:
//!
//! - The requests are the same, however the bytes are cut.
//! - An answer is the same after encoding and decoding.
//! - A refused write changes nothing, and an accepted value can be read.
//! - The disk finally answers every operation.
//!
//! `fuzz/` contains the fuzz target. `cargo test` runs the target's corpus and random conversations
//! through the same entry point.

use iosched::Time;
use iosched_system::Segment;

use super::ControlError;
use super::tree::{kind, list, make_directory, read, write};
use super::wire::{Answer, AnswerDecoder, Request, RequestDecoder, WireError};
use crate::backend::BackendCard;
use crate::disk::{Action, ClientId, Identity, Operation, Settings};
use crate::{Errno, LiveDisk, Pool};

const CAPACITY_BYTES: u64 = 1 << 20;
/// Maximum number of steps until the disk must be idle.
const STEPS_MAX: u32 = 100_000;

/// Counts of the requests and answers of a random conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConversationTally {
    /// Number of lists and values that were returned.
    pub answered: u64,
    /// Number of values that were accepted.
    pub taken: u64,
    /// Number of requests that were refused.
    pub refused: u64,
    /// Number of lines that are not requests.
    pub garbled: u64,
    /// Number of answered operations of the other clients.
    pub operations: u64,
}

/// Runs a conversation with the control tree of a disk that clients use.
///
/// # Panics
/// If one of the properties in the module's documentation does not hold.
pub fn fuzz_control(data: &[u8]) -> ConversationTally {
    let [elevator, cut, sent @ ..] = data else { return ConversationTally::default() };
    let requests = requests(sent, |left| left);
    assert_eq!(requests, requests_in_pieces(sent, *cut), "cutting changes nothing");
    let mut run = Run::new(*elevator, sent);
    for request in requests {
        run.step();
        match request {
            Ok(request) => run.answer(request),
            Err(error) => {
                run.tally.garbled += 1;
                reads_as_written(&Answer::Error { errno: Errno::EINVAL, message: error.to_string() });
            }
        }
    }
    run.finish();
    run.tally
}

fn requests_in_pieces(sent: &[u8], cut: u8) -> Vec<Result<Request, WireError>> {
    let mut seed = u32::from(cut);
    requests(sent, |left| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        left.min(1 + (seed >> 26) as usize)
    })
}

/// Returns the requests in `sent`. The bytes are pushed in pieces. `piece` gets the number of
/// remaining bytes, and returns the length of the next piece.
fn requests(sent: &[u8], mut piece: impl FnMut(usize) -> usize) -> Vec<Result<Request, WireError>> {
    let (mut decoder, mut rest, mut requests) = (RequestDecoder::default(), sent, Vec::new());
    while !rest.is_empty() {
        let (this, after) = rest.split_at(piece(rest.len()));
        decoder.push(this);
        rest = after;
        while let Some(request) = decoder.decode().transpose() {
            let is_over = request.as_ref().is_err_and(WireError::is_fatal);
            requests.push(request);
            if is_over {
                return requests;
            }
        }
    }
    requests
}

fn reads_as_written(answer: &Answer) {
    let mut bytes = Vec::new();
    answer.encode(&mut bytes);
    let mut decoder = AnswerDecoder::default();
    decoder.push(&bytes);
    let read = decoder.decode();
    assert_eq!(read.as_ref(), Ok(&Some(answer.clone())));
    assert_eq!(decoder.decode(), Ok(None), "one answer");
}

/// A disk that clients use.
struct Run<'a> {
    disk: LiveDisk,
    now: Time,
    clients: Vec<ClientId>,
    /// Source of the next steps. At its end, it starts again from the beginning.
    steps: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    /// Commands in the back end.
    commands: Vec<u32>,
    segments: Vec<Segment>,
    submitted: u64,
    tally: ConversationTally,
}

impl<'a> Run<'a> {
    fn new(elevator: u8, steps: &'a [u8]) -> Self {
        let names = iosched::Registry::linux().names();
        let settings = Settings {
            recorded: false,
            name: "disk".to_owned(),
            setting: iosched::Setting::defaults(names[usize::from(elevator) % names.len()]),
            registry: iosched::Registry::linux(),
            card: BackendCard {
                about: "nothing".to_owned(),
                device: iosched_disk::Card {
                    capacity_sectors: CAPACITY_BYTES / iosched::SECTOR_BYTES,
                    depth: 4,
                    hw_queues: 1,
                    rotational: elevator & 0x80 != 0,
                    write_cache: elevator & 0x40 != 0,
                    fua: elevator & 0x20 != 0,
                    max_hw_sectors_kb: 128,
                },
                block_bytes: 512,
                depth_max: 64,
                trim_zeroes: false,
                fast_zeroes: false,
            },
            budget_bytes: 1 << 20,
        };
        let mut disk = LiveDisk::new(Time::ZERO, settings, Pool::default()).unwrap_or_else(|error| panic!("{error}"));
        let clients = [None, Some("db")].map(|group| {
            let (name, group) = (group.unwrap_or("one").to_owned(), group.map(str::to_owned));
            let identity = Identity { group, ..Identity::new(name, 1) };
            disk.connect(Time::ZERO, identity).unwrap_or_else(|error| panic!("{error}"))
        });
        Self {
            disk,
            now: Time::ZERO,
            clients: clients.to_vec(),
            steps: steps.iter().cycle(),
            commands: Vec::new(),
            segments: Vec::new(),
            submitted: 0,
            tally: ConversationTally::default(),
        }
    }

    fn next(&mut self) -> u8 {
        self.steps.next().copied().unwrap_or(0)
    }

    // ---- operations of other clients

    fn step(&mut self) {
        for _ in 0..1 + self.next() % 4 {
            match self.next() % 8 {
                0..4 => self.ask(),
                4 => self.start(),
                5 | 6 => self.complete(),
                _ => {
                    self.now = self.now + u64::from(self.next()) * iosched::MILLISECOND_NS;
                    self.time();
                }
            }
        }
        self.take_answers();
    }

    fn ask(&mut self) {
        let which = usize::from(self.next());
        let client = self.clients[which % self.clients.len()];
        if !self.disk.has_room(client) {
            return;
        }
        let kind = self.next();
        let action =
            [Action::Read, Action::Write, Action::Flush, Action::Trim, Action::WriteZeroes][usize::from(kind) % 5];
        let (offset, length) = (u64::from(self.next()) * 2048, u64::from(self.next()) * 100);
        let data = (action == Action::Write).then(|| self.disk.buffer(length as usize));
        let (fua, no_hole) = (kind & 0x80 != 0, kind & 0x40 != 0);
        self.submitted += 1;
        self.disk.submit(
            self.now,
            client,
            Operation { fua, no_hole, data, cookie: self.submitted, ..Operation::new(action, offset, length) },
        );
    }

    fn start(&mut self) {
        loop {
            while let Some(command) = self.disk.next_command(self.now, &mut self.segments) {
                self.commands.push(command.id);
                self.segments.clear();
            }
            if !self.disk.arrive(self.now) {
                break;
            }
        }
        assert!(self.commands.len() as u32 <= self.disk.depth_max());
    }

    fn complete(&mut self) {
        let which = self.next();
        if !self.commands.is_empty() {
            let command = self.commands.swap_remove(usize::from(which) % self.commands.len());
            self.disk.complete(self.now, command, if which == 0xff { Err(Errno::EIO) } else { Ok(()) });
        }
    }

    fn time(&mut self) {
        self.disk.timer(self.now);
    }

    fn take_answers(&mut self) {
        self.tally.operations += self.disk.take_done().count() as u64;
    }

    fn finish(&mut self) {
        for _ in 0..STEPS_MAX {
            self.start();
            if let Some(command) = self.commands.pop() {
                self.disk.complete(self.now, command, Ok(()));
            } else if let Some(at) = self.disk.next_timer().filter(|_| !self.disk.is_idle()) {
                self.now = self.now.max(at);
                self.time();
            } else {
                break;
            }
        }
        self.take_answers();
        assert!(
            self.disk.is_idle() && self.tally.operations == self.submitted,
            "{:?} of {}",
            self.tally,
            self.submitted
        );
    }

    // ---- requests

    fn answer(&mut self, request: Request) {
        let answered = match request {
            Request::List { path } => self.list(&path),
            Request::Read { path } => read(&mut self.disk, self.now, &path),
            Request::Write { path, value } => self.write(&path, &value).map(|()| String::new()),
        };
        let answer = match answered {
            Ok(body) => {
                self.tally.answered += 1;
                Answer::Ok(body)
            }
            Err(error) => {
                self.tally.refused += 1;
                Answer::Error { errno: error.errno(), message: error.to_string() }
            }
        };
        reads_as_written(&answer);
    }

    /// Lists a directory. If the path is not a directory, first tries to create it, as users can in
    /// a mounted disk.
    fn list(&mut self, path: &str) -> Result<String, ControlError> {
        if kind(&self.disk, path).is_err() && make_directory(&mut self.disk, path).is_ok() {
            assert!(kind(&self.disk, path).is_ok(), "{path} has been made");
        }
        Ok(list(&self.disk, path)?.into_iter().map(|entry| entry.name + "\n").collect())
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), ControlError> {
        let before = read(&mut self.disk, self.now, path);
        let written = write(&mut self.disk, self.now, path, value);
        let after = read(&mut self.disk, self.now, path);
        if written.is_err() {
            assert!(before == after, "{path}: the file refuses {value:?}, but its content changes");
        } else {
            self.tally.taken += 1;
            let after =
                after.unwrap_or_else(|error| panic!("{path}: iosched wrote the file, but cannot read it: {error}"));
            assert!(after.ends_with('\n') && !after.trim().is_empty(), "{path}: {after:?}");
        }
        written
    }
}
