//! The environment of a disk's thread in a history. It simulates a clock, a network, clients,
//! changes of settings, and power cuts. For the reactor, this environment replaces the system.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use iosched::{MILLISECOND_NS, SECOND_NS, Time};
use iosched_check::Random;
use iosched_system::{Bell, Call, Memory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::super::handle::{Inbox, Message};
use super::client::Client;
use super::insiders::Insiders;
use super::wire::Wire;
use super::witness::Witness;
use super::{EXPORTS, changes};
use crate::ring::{Calls, Completed, Source, System, Tag};

/// Maximum number of requests of a client at the same time.
const ASKS_MAX: usize = 10;
/// Maximum number of NBD clients at the same time.
const SEATS: usize = 4;
/// Maximum time until the disk has answered everything, unless the scheduler idles for longer.
const ANSWERED_NS_MAX: u64 = 1000 * SECOND_NS;

/// An event at a certain time.
enum Event {
    /// Bytes from a client arrive at the server.
    Up(usize),
    /// Bytes from the server arrive at a client.
    Down(usize),
    /// A client acts, or a setting changes.
    Act,
    /// A check whether the life has ended. The value is the time until the next check, ns.
    Look(u64),
}

/// A client and its connection.
struct Seat {
    client: Client,
    wire: Option<usize>,
    /// Time until which the client receives nothing.
    stalls_until: Time,
}

/// Phase of one life of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Busy,
    /// Clients send no more requests. The disk must answer everything by this time.
    Draining(Time),
    /// The disk is ending. The end must be complete by this time.
    Ending(Time),
}

/// The planned end of one life of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    /// Number of actions of clients and changes of settings.
    pub(super) acts: u32,
    /// Number of waits between the last action and the power cut, if the power fails.
    pub(super) cut: Option<u32>,
    /// Whether the disk stops only after it has answered everything. Otherwise it stops at once.
    pub(super) drains: bool,
}

pub(super) struct World {
    now: Time,
    random: Random,
    events: BTreeMap<(Time, u64), Event>,
    numbers: u64,
    ready: Vec<Completed>,
    wires: Vec<Wire>,
    /// Index of each connection, by the server's file descriptor.
    names: BTreeMap<RawFd, usize>,
    accepts: VecDeque<Tag>,
    seats: Vec<Option<Seat>>,
    insiders: Insiders,
    pub(super) witness: Witness,
    inbox: Arc<Inbox>,
    fate: Fate,
    phase: Phase,
    acts: u32,
    /// Number of waits since the last action.
    waits: u32,
    /// Whether a message that wakes the thread was sent.
    is_woken: bool,
    /// Whether the thread had a turn since the last wait. It may then have new results.
    turned: bool,
    /// Whether the world has already replaced a scheduler that may idle for days.
    hurried: bool,
    pub(super) is_cut: bool,
}

impl World {
    pub(super) fn new(random: Random, witness: Witness, insiders: Insiders, inbox: Arc<Inbox>, fate: Fate) -> Self {
        let mut world = Self {
            now: Time::BEGINNING,
            random,
            events: BTreeMap::new(),
            numbers: 0,
            ready: Vec::new(),
            wires: Vec::new(),
            names: BTreeMap::new(),
            accepts: VecDeque::new(),
            seats: (0..SEATS).map(|_| None).collect(),
            insiders,
            witness,
            inbox,
            fate,
            phase: Phase::Busy,
            acts: 0,
            waits: 0,
            is_woken: false,
            turned: false,
            hurried: false,
            is_cut: false,
        };
        world.later(0, Event::Act);
        world
    }

    fn later(&mut self, after_ns: u64, event: Event) {
        self.numbers += 1;
        self.events.insert((self.now + after_ns, self.numbers), event);
    }

    fn below_one_of(&mut self, bounds: &[u64]) -> u64 {
        let bound = self.random.pick(bounds);
        self.random.below(bound)
    }

    /// Schedules an event after a random network delay.
    fn soon(&mut self, event: Event) {
        let after_ns = self.below_one_of(&[1, 2000, 50_000]);
        self.later(after_ns, event);
    }

    fn tell(&mut self, message: Message) {
        self.is_woken |= self.inbox.send(message).is_ok();
    }

    /// Processes the latest answers to insiders.
    pub(super) fn insiders_hear(&mut self) {
        self.insiders.hear(&mut self.witness);
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now.since(Time::BEGINNING)
    }

    /// Returns the number of connections that neither side has ended.
    pub(super) fn connections(&self) -> usize {
        self.wires.iter().filter(|wire| !wire.cut && !wire.closed).count()
    }

    // ---- acts of clients

    fn act(&mut self) {
        self.acts += 1;
        self.waits = 0;
        if self.acts >= self.fate.acts {
            return self.begin_to_end();
        }
        let after_ns = self.below_one_of(&[1, 3000, 100_000, 3 * MILLISECOND_NS]);
        self.later(after_ns, Event::Act);
        match self.random.index(100) {
            0..15 => {
                self.insiders.act(&mut self.random, &mut self.witness);
                self.is_woken = true;
            }
            15..20 => {
                let change = changes::draw(&mut self.random);
                self.tell(Message::Control(change));
            }
            _ => {
                let seat = self.random.index(SEATS);
                self.act_on(seat);
            }
        }
    }

    fn act_on(&mut self, number: usize) {
        let Some(mut seat) = self.seats[number].take() else {
            self.connect(number);
            return;
        };
        let Some(wire) = seat.wire else {
            // The server has not accepted the client yet. The client may give up.
            if !self.random.chance(1) {
                self.seats[number] = Some(seat);
            }
            return;
        };
        match self.random.index(200) {
            0 => {
                seat.client.give_up(&mut self.witness);
                self.wires[wire].cut(&mut self.random);
                return;
            }
            1 => {
                seat.client.misbehaves = true;
                let noise: Vec<u8> = (0..1 + self.random.index(60)).map(|_| self.random.next_word() as u8).collect();
                self.send(wire, &noise);
                seat.client.leaving = true;
            }
            2 if seat.client.may_ask() => {
                let bye = seat.client.say_good_bye();
                self.send(wire, &bye);
            }
            3 if seat.client.may_ask() => {
                seat.client.leaving = true;
                self.wires[wire].end_up();
                self.soon(Event::Up(wire));
            }
            4..6 => {
                let pause_ns = self.below_one_of(&[MILLISECOND_NS, SECOND_NS, 100 * SECOND_NS]);
                seat.stalls_until = self.now + pause_ns;
                seat.client.misbehaves |= pause_ns > SECOND_NS;
                self.later(pause_ns, Event::Down(wire));
            }
            _ => {
                for _ in 0..1 + self.random.index(3) {
                    if seat.client.may_ask() && seat.client.waits() < ASKS_MAX {
                        let request = seat.client.ask(&mut self.random, &mut self.witness);
                        self.send(wire, &request);
                    }
                }
            }
        }
        self.seats[number] = Some(seat);
    }

    fn connect(&mut self, number: usize) {
        let (name, read_only) = self.random.pick(&EXPORTS);
        let client = Client::new(name, read_only, self.random.chance(60));
        self.seats[number] = Some(Seat { client, wire: None, stalls_until: Time::BEGINNING });
    }

    fn send(&mut self, wire: usize, bytes: &[u8]) {
        self.wires[wire].send(bytes);
        self.soon(Event::Up(wire));
    }

    /// Connects waiting clients while the server accepts connections.
    fn accept(&mut self) {
        for number in 0..SEATS {
            let waits = self.seats[number].as_ref().is_some_and(|seat| seat.wire.is_none());
            if !waits || self.accepts.is_empty() {
                continue;
            }
            let Some(tag) = self.accepts.pop_front() else { return };
            let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
            let (Ok((server, client)), false) = (pair, self.random.chance(1)) else {
                self.ready.push(Completed { tag, result: -libc::EMFILE, memory: Memory::Accepting });
                continue;
            };
            let wire = self.wires.len();
            self.names.insert(server.as_raw_fd(), wire);
            self.wires.push(Wire::new(client, &mut self.random));
            if let Some(seat) = &mut self.seats[number] {
                seat.wire = Some(wire);
            }
            self.ready.push(Completed { tag, result: 0, memory: Memory::Socket(server) });
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Act => self.act(),
            Event::Look(again_ns) => self.look_for_the_end(again_ns),
            Event::Up(wire) => {
                if self.wires[wire].carry_up(&mut self.random) {
                    self.soon(Event::Up(wire));
                }
                self.settle(wire);
            }
            Event::Down(wire) => self.arrive(wire),
        }
    }

    /// Delivers bytes to a client, unless the client is stalled.
    fn arrive(&mut self, wire: usize) {
        let of_wire = |seat: &Option<Seat>| seat.as_ref().is_some_and(|seat| seat.wire == Some(wire));
        let Some(number) = self.seats.iter().position(of_wire) else { return };
        let Some(mut seat) = self.seats[number].take() else { return };
        if seat.stalls_until > self.now {
            self.seats[number] = Some(seat);
            return;
        }
        let bytes = self.wires[wire].carry_down(&mut self.random);
        let text = seat.client.hear(&bytes, &mut self.witness);
        if !text.is_empty() {
            self.send(wire, &text);
        }
        let more = self.wires[wire].has_down();
        if more {
            self.soon(Event::Down(wire));
        }
        self.settle(wire);
        if !more && self.wires[wire].closed && !self.wires[wire].has_down() {
            seat.client.end(&mut self.witness);
            self.wires[wire].cut(&mut self.random);
            return;
        }
        self.seats[number] = Some(seat);
    }

    fn settle(&mut self, wire: usize) {
        let had = self.wires[wire].has_down();
        self.wires[wire].settle(&mut self.random, &mut self.ready);
        if !had && self.wires[wire].has_down() {
            self.soon(Event::Down(wire));
        }
    }

    /// Finds the connections that the server has shut down.
    fn look_round(&mut self) {
        let open: Vec<usize> =
            (0..self.wires.len()).filter(|&wire| !self.wires[wire].cut && !self.wires[wire].closed).collect();
        if !open.is_empty() {
            let about = open.iter().map(|&wire| PollFd::new(self.wires[wire].end(), PollFlags::empty()));
            let mut about: Vec<PollFd<'_>> = about.collect();
            let none = Timespec { tv_sec: 0, tv_nsec: 0 };
            let shut: Vec<bool> = match poll(&mut about, Some(&none)) {
                Ok(_) => about.iter().map(|about| about.revents().contains(PollFlags::HUP)).collect(),
                Err(_) => Vec::new(),
            };
            drop(about);
            for (wire, _) in open.into_iter().zip(shut).filter(|(_, shut)| *shut) {
                self.wires[wire].closed = true;
                self.soon(Event::Down(wire));
            }
        }
        for wire in 0..self.wires.len() {
            self.settle(wire);
        }
        self.accept();
        self.insiders.hear(&mut self.witness);
    }

    // ---- end of a life

    fn begin_to_end(&mut self) {
        if self.fate.cut.is_some() {
            return;
        }
        let until = self.now + ANSWERED_NS_MAX;
        if self.fate.drains {
            self.phase = Phase::Draining(until);
        } else {
            self.stop();
        }
        for number in 0..SEATS {
            let Some(mut seat) = self.seats[number].take() else { continue };
            let Some(wire) = seat.wire else { continue };
            seat.client.leaving = true;
            if seat.client.misbehaves && self.random.chance(50) {
                seat.client.give_up(&mut self.witness);
                self.wires[wire].cut(&mut self.random);
                continue;
            }
            seat.stalls_until = self.now;
            self.seats[number] = Some(seat);
            self.soon(Event::Down(wire));
        }
        self.later(MILLISECOND_NS, Event::Look(5 * MILLISECOND_NS));
    }

    fn stop(&mut self) {
        self.phase = Phase::Ending(self.now + ANSWERED_NS_MAX);
        self.witness.ending = true;
        self.tell(Message::Stop);
    }

    /// Replaces a scheduler that may idle for days. Returns the new deadline for all answers.
    fn hurry(&mut self) -> Time {
        self.hurried = true;
        self.tell(Message::Control(changes::switch_if_idle_for(ANSWERED_NS_MAX)));
        self.now + ANSWERED_NS_MAX
    }

    fn look_for_the_end(&mut self, again_ns: u64) {
        // The interval between checks doubles each time.
        self.later(again_ns, Event::Look(2 * again_ns));
        let seats = self.seats.iter().flatten().filter(|seat| seat.wire.is_some());
        let waits = seats.map(|seat| seat.client.waits()).sum::<usize>() + self.insiders.waits();
        match self.phase {
            Phase::Draining(_) if waits == 0 => self.stop(),
            Phase::Draining(until) if until <= self.now && !self.hurried => {
                self.phase = Phase::Draining(self.hurry());
            }
            Phase::Ending(until) if until <= self.now && !self.hurried => {
                self.phase = Phase::Ending(self.hurry());
            }
            Phase::Draining(until) if until <= self.now => {
                self.witness.is_wrong(|| format!("{waits} operations never get a reply"));
            }
            Phase::Ending(until) if until <= self.now => {
                self.witness.is_wrong(|| "the disk got the order to end, but it still runs".to_owned());
            }
            Phase::Busy | Phase::Draining(_) | Phase::Ending(_) => {}
        }
    }

    fn is_over(&mut self) -> bool {
        self.waits += 1;
        let cut = self.acts >= self.fate.acts && self.fate.cut.is_some_and(|waits| self.waits > waits);
        self.is_cut |= cut;
        cut || self.witness.wrong.is_some()
    }
}

impl Calls for World {
    fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: Tag) {
        match call {
            Call::Accept => self.accepts.push_back(tag),
            call => match self.names.get(&file.as_raw_fd()) {
                Some(&wire) => self.wires[wire].push(call, tag),
                None => self.witness.is_wrong(|| "a call uses an object that is not a connection".to_owned()),
            },
        }
    }

    /// Stops accepting connections. The server also cancels the notification files of virtual
    /// machines, but histories have no virtual machines.
    fn cancel(&mut self, tag: Tag) {
        if tag.0 != Source::Accept {
            self.witness.is_wrong(|| "a call ended, but it never began".to_owned());
        } else if self.accepts.contains(&tag) {
            self.accepts.retain(|accept| *accept != tag);
            self.ready.push(Completed { tag, result: -libc::ECANCELED, memory: Memory::Accepting });
        }
    }
}

impl System for World {
    fn listen_to(&mut self, _bell: Arc<Bell>) {}

    fn now(&self) -> Time {
        self.now
    }

    fn completions(&mut self, into: &mut Vec<Completed>) -> usize {
        self.turned = true;
        if self.random.chance(20) {
            self.ready.reverse();
        }
        let count = self.ready.len();
        into.append(&mut self.ready);
        count
    }

    fn has_completions(&mut self) -> bool {
        !self.ready.is_empty()
    }

    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if std::mem::take(&mut self.turned) {
            self.look_round();
        }
        if self.is_over() {
            return Err(io::Error::other("the power has failed"));
        }
        // Even the shortest wait takes some time.
        let most_ns = timeout.map(|timeout| (timeout.as_nanos() as u64).max(1000));
        let until = most_ns.map_or(Time::MAX, |ns| self.now + ns);
        loop {
            if !self.ready.is_empty() || std::mem::take(&mut self.is_woken) {
                return Ok(());
            }
            let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= until) else { break };
            let ((at, _), event) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happens(event);
            self.accept();
            if self.witness.wrong.is_some() {
                return Ok(());
            }
        }
        if until == Time::MAX && self.fate.cut.is_some() {
            self.is_cut = true;
            return Err(io::Error::other("the power has failed"));
        }
        if until == Time::MAX {
            self.witness.is_wrong(|| "all participants wait for each other".to_owned());
        } else {
            self.now = until;
        }
        Ok(())
    }
}
