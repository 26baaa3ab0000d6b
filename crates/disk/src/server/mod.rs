//! `server`: servers behind one queue, with a measured spread, for virtual disks, disks over a
//! network, and disks with a rate limit.
//!
//! - The device fetches a limited number of commands. It takes them from its hardware queues in
//!   turn.
//! - If there are credits, a command first waits until enough of them are available. After a rest,
//!   the device first wakes up.
//! - A command waits for a free server. The server is busy for the service time, the time of the
//!   data, and a part of the additional time. The data crosses the link that all servers share. The
//!   transit to the device and back keeps no server busy.
//! - Writes can be limited to some of the servers.
//! - The choice of the next command can be random, as among threads that wait for a lock.
//! - A command can miss its turn. It then waits again behind other commands.
//! - A server can take all waiting commands together. They then also complete together.
//! - The additional time of a command is drawn from a measured distribution.
//! - While the device settles written data, some reads wait for occupied parts of its flash.
//! - At random times the device stalls.
//!
//! The place of the data does not matter, with one exception: a command that continues none of the
//! last commands can have different times. Apart from this, from credits and from rests, earlier
//! commands have no effect. In particular, there is no cache for reads. All times are in *working
//! time*, which stops during a stall.

mod config;
mod settling;
mod stalls;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use iosched::{Op, Time};

pub use self::config::{ServerBatch, ServerConfig, ServerMissedTurns, ServerSettling, ServerStalls, ServerTimes};
use self::settling::Settling;
use self::stalls::Stalls;
use crate::config::ConfigError;
use crate::credits::Credits;
use crate::distribution::{QuantilePoint, at};
use crate::ends::Ends;
use crate::link::LinkRate;
use crate::outside::Outside;
use crate::rest::Rest;
use crate::{Card, Command, Device};
use iosched_numbers::SplitMix64;

/// Times in the form that the model needs.
#[derive(Clone, Debug)]
struct Times {
    transit_ns: u64,
    service_ns: u64,
    rate: Option<LinkRate>,
    in_service: f64,
    extra: Vec<QuantilePoint>,
}

impl From<&ServerTimes> for Times {
    fn from(times: &ServerTimes) -> Self {
        Self {
            transit_ns: times.transit_ns,
            service_ns: times.service_ns,
            rate: times.bytes_per_second.map(LinkRate::new),
            in_service: times.extra_in_service,
            extra: times.extra.clone(),
        }
    }
}

/// Kind of a command, which selects its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ServingKind {
    is_read: bool,
    /// Whether the command continues none of the last commands. Always `false` if no times depend
    /// on this.
    is_random: bool,
}

/// A command that is not complete.
#[derive(Clone, Copy, Debug, Default)]
struct Serving {
    tag: u32,
    sequence: u64,
    kind: ServingKind,
    is_flush: bool,
    /// Number of pieces that are not served yet.
    pieces: u32,
    /// The two parts of the additional time, ns. In the first part, the server of the first piece
    /// is busy. The second part is transit time.
    extra_service_ns: u64,
    extra_transit_ns: u64,
}

/// A piece of a command.
#[derive(Clone, Copy, Debug)]
struct Piece {
    slot: u32,
    sectors: u32,
    is_first: bool,
}

/// Model of storage with several equal servers behind one queue.
#[derive(Clone, Debug)]
pub struct Server {
    card: Card,
    /// Times of a command. The first index tells whether the command is random, the second index
    /// whether it is a read.
    times: [[Times; 2]; 2],
    /// Ends of the last commands, if the times depend on them.
    ends: Option<Ends>,
    link: Option<LinkRate>,
    flush_ns: u64,
    piece_sectors: u32,
    choice: usize,
    free_servers: u32,
    /// Number of servers that can still take a write.
    free_write_servers: u32,
    credits: Credits,
    settling: Option<Settling>,
    rest: Rest,
    /// Commands that wait for credits, or for the device to wake up. They are sorted by the end of
    /// this wait, then by the order in which the device fetched them.
    held: BTreeMap<(u64, u64), Command>,
    fetched: u64,
    /// Number of commands that have not completed.
    under_way: u32,
    /// Largest number of commands in the device, and their present number. The device has fetched
    /// these commands from its hardware queues.
    command_slots: u32,
    inside: u32,
    /// Commands that the device has not fetched.
    outside: Outside,
    waiting: VecDeque<Piece>,
    missed_turns: Option<ServerMissedTurns>,
    /// Parameters of batches, if servers take pieces in batches.
    batch: Option<ServerBatch>,
    /// Time at which a server takes the batch that is being gathered, ns; `None`: there is no such
    /// batch.
    gathered_ns: Option<u64>,
    commands: Vec<Serving>,
    free_slots: Vec<u32>,
    /// Pieces that each busy server has taken: one piece or a batch.
    taken: Vec<Vec<Piece>>,
    free_taken: Vec<u32>,
    /// Current services: end, sequence number, index in `taken`.
    served: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Time at which the link becomes free, ns.
    link_ns: u64,
    /// Commands on the way back to the host: time of arrival, number of the submission, tag.
    back: BinaryHeap<Reverse<(u64, u64, u32)>>,
    submitted: u64,
    begun: u64,
    random: SplitMix64,
    stalls: Stalls,
}

impl Server {
    /// Creates a device with all servers free.
    ///
    /// # Errors
    /// The errors of [`ServerConfig::validate`].
    pub fn new(config: &ServerConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let write = config.write.as_ref().unwrap_or(&config.read);
        let random_write = config.random_write.as_ref().unwrap_or(write);
        let random_read = config.random_read.as_ref().unwrap_or(&config.read);
        let place_matters = config.random_read.is_some() || config.random_write.is_some();
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                hw_queues: config.hw_queues,
                rotational: config.rotational,
                write_cache: config.write_cache,
                fua: config.fua,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            times: [[write, &config.read], [random_write, random_read]].map(|speeds| speeds.map(Times::from)),
            ends: place_matters.then(Ends::new),
            link: config.link_bytes_per_second.map(LinkRate::new),
            flush_ns: config.flush_ns,
            piece_sectors: config.piece_sectors.unwrap_or(u32::MAX),
            choice: config.choice as usize,
            free_servers: config.servers,
            free_write_servers: config.write_servers.unwrap_or(u32::MAX),
            credits: Credits::new(&config.credits),
            settling: config.settling.map(Settling::new),
            rest: Rest::new(config.rest.as_ref()),
            held: BTreeMap::new(),
            fetched: 0,
            under_way: 0,
            command_slots: config.command_slots.unwrap_or(u32::MAX),
            inside: 0,
            outside: Outside::new(config.hw_queues),
            waiting: VecDeque::new(),
            missed_turns: config.missed_turns.filter(|missed| missed.share > 0.0),
            batch: config.batch,
            gathered_ns: None,
            commands: Vec::new(),
            free_slots: Vec::new(),
            taken: Vec::new(),
            free_taken: Vec::new(),
            served: BinaryHeap::new(),
            link_ns: 0,
            back: BinaryHeap::new(),
            submitted: 0,
            begun: 0,
            random: SplitMix64::new(0),
            stalls: Stalls::new(config.stalls.as_ref()),
        })
    }

    /// Sets the seed of all random values. Must be called before any command.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
        self.stalls.set_seed(!seed);
    }

    #[inline]
    fn times(&self, kind: ServingKind) -> &Times {
        &self.times[usize::from(kind.is_random)][usize::from(kind.is_read)]
    }

    /// Returns the kind of a command, which depends on the previous commands.
    fn kind(&mut self, command: &Command) -> ServingKind {
        let is_random = self.ends.as_mut().is_some_and(|ends| {
            let continues = ends.continues(command);
            if command.op.has_data() {
                ends.add(command);
            }
            !continues
        });
        ServingKind { is_read: command.op == Op::Read, is_random }
    }

    /// Begins a command at `working_ns`. The command first waits for credits and until the device
    /// has woken up.
    fn fetch(&mut self, working_ns: u64, command: &Command) {
        let random = &mut self.random;
        let awake_ns = self.rest.awake_ns(working_ns, self.under_way == 0, || random.unit());
        let until_ns = self.credits.pay(working_ns, command).max(awake_ns);
        if until_ns > working_ns {
            self.held.insert((until_ns, self.fetched), *command);
        } else {
            self.enqueue(working_ns, command);
            self.begin(working_ns);
        }
        self.fetched += 1;
    }

    /// Adds the pieces of a command to the queue at `working_ns`, after the command's first wait.
    fn enqueue(&mut self, working_ns: u64, command: &Command) {
        let kind = self.kind(command);
        let times = self.times(kind);
        let in_service = times.in_service;
        let share = if times.extra.is_empty() { None } else { Some(self.random.unit()) };
        let extra_ns = share.map_or(0.0, |share| at(&self.times(kind).extra, share));
        let extra_service_ns = (extra_ns * in_service) as u64;
        let random = &mut self.random;
        let occupied_ns =
            self.settling.as_mut().map_or(0, |settling| settling.wait_ns(working_ns, command, || random.unit()));
        let nr_sectors = if command.op.has_data() { command.nr_sectors } else { 0 };
        let pieces = nr_sectors.div_ceil(self.piece_sectors).max(1);
        let serving = Serving {
            tag: command.tag,
            sequence: self.submitted,
            kind,
            is_flush: command.op == Op::Flush,
            pieces,
            extra_service_ns,
            extra_transit_ns: extra_ns as u64 - extra_service_ns + occupied_ns,
        };
        self.submitted += 1;
        let slot = self.slot(serving);
        for i in 0..pieces {
            let sectors = nr_sectors.saturating_sub(i.saturating_mul(self.piece_sectors)).min(self.piece_sectors);
            self.waiting.push_back(Piece { slot, sectors, is_first: i == 0 });
        }
    }

    fn slot(&mut self, serving: Serving) -> u32 {
        if let Some(slot) = self.free_slots.pop() {
            self.commands[slot as usize] = serving;
            return slot;
        }
        self.commands.push(serving);
        (self.commands.len() - 1) as u32
    }

    /// Lets free servers take waiting pieces, or begins to gather a batch.
    fn begin(&mut self, working_ns: u64) {
        match self.batch {
            None => self.take(working_ns, 1),
            Some(batch) if self.free_servers > 0 && !self.waiting.is_empty() => {
                self.gathered_ns.get_or_insert(working_ns + batch.gather_ns);
            }
            Some(_) => {}
        }
    }

    /// Gives each free server up to `most` waiting pieces.
    fn take(&mut self, working_ns: u64, most: u32) {
        while self.free_servers > 0 {
            let Some(first) = self.next_piece() else { break };
            let place = self.free_taken.pop().unwrap_or_else(|| {
                self.taken.push(Vec::new());
                (self.taken.len() - 1) as u32
            });
            self.free_servers -= 1;
            self.free_write_servers -= u32::from(!self.commands[first.slot as usize].kind.is_read);
            let mut busy_ns = self.busy_ns(first, true);
            self.taken[place as usize].push(first);
            for _ in 1..most {
                let Some(piece) = self.next_piece() else { break };
                busy_ns += self.busy_ns(piece, false);
                self.taken[place as usize].push(piece);
            }
            self.served.push(Reverse((working_ns + busy_ns, self.begun, place)));
            self.begun += 1;
        }
    }

    /// Removes and returns the next piece. Pieces that miss their turn move back in the queue.
    /// Returns `None` if no piece waits, or if only writes wait and the limit of writes is reached.
    fn next_piece(&mut self) -> Option<Piece> {
        loop {
            let chosen = if self.free_write_servers > 0 {
                self.choose(|_| true)
            } else {
                self.choose(|waiting| waiting.kind.is_read)
            };
            let piece = self.waiting.remove(chosen?)?;
            let Some(missed) = self.missed_turns.filter(|_| !self.waiting.is_empty()) else { return Some(piece) };
            if self.random.unit() >= missed.share {
                return Some(piece);
            }
            self.waiting.insert(self.waiting.len().min(missed.behind as usize), piece);
        }
    }

    /// Returns the index of a piece, chosen among those that have waited longest and can be served.
    #[inline]
    fn choose(&mut self, may_be_served: impl Fn(&Serving) -> bool) -> Option<usize> {
        let mut may =
            self.waiting.iter().enumerate().filter(|(_, piece)| may_be_served(&self.commands[piece.slot as usize]));
        if self.choice <= 1 {
            return may.next().map(|(place, _)| place);
        }
        let among = may.clone().take(self.choice).count();
        let number = if among <= 1 { 0 } else { self.random.below(among as u64) as usize };
        may.nth(number).map(|(place, _)| place)
    }

    /// Returns the time for which a piece keeps a server busy, ns.
    fn busy_ns(&self, piece: Piece, is_first_of_batch: bool) -> u64 {
        let serving = &self.commands[piece.slot as usize];
        let times = self.times(serving.kind);
        let data_ns = times.rate.map_or(0, |rate| rate.ns(piece.sectors.into()));
        let fixed_ns = if serving.is_flush { self.flush_ns } else { times.service_ns };
        let extra_ns = if piece.is_first && is_first_of_batch { serving.extra_service_ns } else { 0 };
        fixed_ns + data_ns + extra_ns
    }

    /// Ends a service. The server becomes free, the data crosses the link, and commands without
    /// remaining pieces return to the host.
    fn end(&mut self, end_ns: u64, place: u32) {
        let mut pieces = std::mem::take(&mut self.taken[place as usize]);
        let first = pieces.first().map(|piece| self.commands[piece.slot as usize]).unwrap_or_default();
        self.free_servers += 1;
        self.free_write_servers += u32::from(!first.kind.is_read);
        let mut at_ns = end_ns;
        if let Some(link) = self.link {
            let data_ns: u64 = pieces.iter().map(|piece| link.ns(piece.sectors.into())).sum();
            self.link_ns = self.link_ns.max(end_ns) + data_ns;
            at_ns = self.link_ns;
        }
        for piece in pieces.drain(..) {
            let serving = &mut self.commands[piece.slot as usize];
            serving.pieces -= 1;
            if serving.pieces == 0 {
                let Serving { tag, sequence, kind, .. } = *serving;
                self.free_slots.push(piece.slot);
                let back_ns = at_ns + self.times(kind).transit_ns + first.extra_transit_ns;
                self.back.push(Reverse((back_ns, sequence, tag)));
            }
        }
        // The memory of the vector is reused.
        self.taken[place as usize] = pieces;
        self.free_taken.push(place);
        self.begin(end_ns);
    }

    /// Executes everything that is due at `working_ns`.
    fn run(&mut self, working_ns: u64) {
        while let Some(due_ns) = self.next_step_ns().filter(|&due_ns| due_ns <= working_ns) {
            match self.served.peek() {
                Some(&Reverse((end_ns, _, place))) if end_ns == due_ns => {
                    self.served.pop();
                    self.end(end_ns, place);
                }
                _ if self.next_held_ns() == Some(due_ns) => {
                    if let Some((_, command)) = self.held.pop_first() {
                        self.enqueue(due_ns, &command);
                        self.begin(due_ns);
                    }
                }
                _ => {
                    self.gathered_ns = None;
                    self.take(due_ns, self.batch.map_or(1, |batch| batch.commands));
                }
            }
        }
        self.foresee();
    }

    /// Returns the time at which the next held command continues.
    fn next_held_ns(&self) -> Option<u64> {
        self.held.first_key_value().map(|(&(until_ns, _), _)| until_ns)
    }

    /// Returns the time of the next step: a server ends its work or takes a batch, or a held
    /// command continues.
    fn next_step_ns(&self) -> Option<u64> {
        let served = self.served.peek().map(|&Reverse((end_ns, ..))| end_ns);
        served.into_iter().chain(self.gathered_ns).chain(self.next_held_ns()).min()
    }

    fn next_working_ns(&self) -> Option<u64> {
        let back = self.back.peek().map(|&Reverse((back_ns, ..))| back_ns);
        self.next_step_ns().into_iter().chain(back).min()
    }

    /// Generates the stalls up to the next event.
    fn foresee(&mut self) {
        if let Some(next_ns) = self.next_working_ns() {
            self.stalls.foresee(next_ns);
        }
    }
}

impl Device for Server {
    fn card(&self) -> &Card {
        &self.card
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        self.submit_to(now, 0, command);
    }

    #[inline]
    fn submit_to(&mut self, now: Time, hw_queue: u16, command: Command) {
        let working_ns = self.stalls.working_ns(now.as_ns());
        self.run(working_ns);
        if self.inside >= self.command_slots {
            self.outside.push(hw_queue, command, self.fetched);
        } else {
            self.inside += 1;
            self.fetch(working_ns, &command);
        }
        self.under_way += 1;
        self.foresee();
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.next_working_ns().map(|working_ns| Time::from_ns(self.stalls.real_ns(working_ns)))
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        let working_ns = self.stalls.working_ns(now.as_ns());
        self.run(working_ns);
        let &Reverse((back_ns, _, tag)) = self.back.peek()?;
        if back_ns > working_ns {
            return None;
        }
        self.back.pop();
        match self.outside.pop() {
            Some((command, _)) => self.fetch(working_ns, &command),
            None => self.inside -= 1,
        }
        self.under_way -= 1;
        if self.under_way == 0 {
            self.rest.idles(working_ns);
        }
        self.foresee();
        Some(tag)
    }
}
