//! `array`: disks behind a controller with memory, as in a storage area network.
//!
//! - Data is striped over the members in chunks. If the memory does not have the data of a read,
//!   the read goes to the members that have the chunks. The controller reads ahead for sequential
//!   readers.
//! - The controller acknowledges writes from non-volatile memory while it has space. Writing back
//!   begins when a share of the memory is dirty or some data is old. It continues until no dirty
//!   data is left. The controller writes to each member in order of address, with a limited number
//!   of these writes in flight. If the memory has no space, writes wait.
//! - All commands share one link, which is full duplex. A flush does not wait for writing back.
//!
//! The members are separate devices, each with its queue and its caches.
//!
//! Not modelled: redundancy (no member fails, and no parity is written), multipath, other hosts.

mod config;
mod pages;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use iosched::{Op, Time};

use self::config::PAGE_SECTORS;
pub use self::config::{ArrayConfig, ArrayLinkConfig, ArrayMemberConfig, ArrayReadCacheConfig, ArrayWriteCacheConfig};
use self::pages::{Dirty, Recent};
use crate::any::AnyDevice;
use crate::completions::Completions;
use crate::config::{ConfigError, within};
use crate::link::{Arrival, LinkRate};
use crate::{Card, Command, Device};

/// A time that never comes, ns.
const NEVER_NS: u64 = u64::MAX;

/// Returns whether a command writes data.
const fn is_data(op: Op) -> bool {
    matches!(op, Op::Write | Op::WriteZeroes)
}

/// A command that a member executes, or will execute.
#[derive(Clone, Debug)]
struct Job {
    member: u32,
    /// Pages in the numbering of the member.
    pages: Range<u64>,
    kind: JobKind,
}

#[derive(Clone, Debug)]
enum JobKind {
    /// A read of pages of the array, for the commands in `waiters`.
    Fetch {
        pages: Range<u64>,
        waiters: Vec<u32>,
    },
    WriteBack,
}

/// A member disk, and its pending work.
#[derive(Clone, Debug)]
struct Member {
    device: AnyDevice,
    /// Fetches that wait for the member.
    queue: VecDeque<u32>,
    dirty: Dirty,
    /// Number of commands in flight, for reads and for writing back.
    fetching: u32,
    writing: u32,
    /// Time of the member's next event, ns.
    next_ns: u64,
}

/// A read that waits for pages.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    parts: u32,
    nr_sectors: u32,
    tag: u32,
    sequence: u64,
}

/// A write, or the rest of a write, that waits for space.
#[derive(Clone, Debug)]
struct Waiting {
    pages: Range<u64>,
    tag: u32,
    sequence: u64,
}

/// A sequential reader.
#[derive(Clone, Copy, Debug)]
struct Stream {
    next_sector: u64,
    /// End of the pages that were read ahead.
    ahead_page: u64,
}

/// Model of several disks behind a controller with a cache.
#[derive(Clone, Debug)]
pub struct Array {
    card: Card,
    chunk_pages: u64,
    write: ArrayWriteCacheConfig,
    read: ArrayReadCacheConfig,
    command_ns: u64,
    link: LinkRate,
    members: Vec<Member>,
    jobs: Vec<Job>,
    free_jobs: Vec<u32>,
    /// Current fetches: the first page of each, with its job.
    fetches: BTreeMap<u64, u32>,
    recent: Recent,
    /// Sequential readers, the most recent first.
    streams: VecDeque<Stream>,
    readings: Vec<Reading>,
    free_slots: Vec<u32>,
    arrivals: VecDeque<Arrival>,
    waiting: VecDeque<Waiting>,
    /// Pages in the write cache, including pages that are being written back.
    cached_pages: u64,
    /// Whether writing back is active.
    destaging: bool,
    /// Time at which writing back begins because of the age of the data, ns, or [`NEVER_NS`].
    destage_ns: u64,
    link_out_ns: u64,
    link_in_ns: u64,
    done: Completions,
    submitted: u64,
}

impl Array {
    /// Creates an idle array with empty memory. `members` has one device for each entry in the
    /// configuration.
    ///
    /// # Errors
    /// The errors of [`ArrayConfig::validate`], a member is an array, or the members are smaller
    /// than the capacity.
    pub fn new(config: &ArrayConfig, members: &[AnyDevice]) -> Result<Self, ConfigError> {
        config.validate()?;
        if members.len() != config.members.len() {
            let problem = format!("there are {} kinds of members, but {} devices", config.members.len(), members.len());
            return Err(ConfigError::new("array.members", problem, "give one device for each kind of member"));
        }
        if let Some(i) = members.iter().position(|member| matches!(member, AnyDevice::Array(_))) {
            let field = format!("array.members[{i}].profile");
            return Err(ConfigError::new(
                &field,
                "a member of an array cannot be an array",
                "name a profile of a disk or an SSD",
            ));
        }
        let all =
            || members.iter().zip(&config.members).flat_map(|(device, kind)| (0..kind.count).map(move |_| device));
        let chunk = u64::from(config.chunk_sectors);
        let smallest = members.iter().map(|member| member.card().capacity_sectors / chunk * chunk).min().unwrap_or(0);
        let most = smallest * all().count() as u64;
        let capacity_sectors = config.capacity_sectors.unwrap_or(most);
        within("array.capacity_sectors", capacity_sectors, 1..=most)?;
        let read_depth = members.iter().map(|member| member.card().depth).min().unwrap_or(1);
        within("array.write_cache.destage_depth", config.write_cache.destage_depth, 1..=read_depth.max(2) - 1)?;
        let member = |device: &AnyDevice| Member {
            device: device.clone(),
            queue: VecDeque::new(),
            dirty: Dirty::default(),
            fetching: 0,
            writing: 0,
            next_ns: NEVER_NS,
        };
        Ok(Self {
            card: Card {
                capacity_sectors,
                depth: config.depth,
                hw_queues: 1,
                rotational: members.iter().any(|member| member.card().rotational),
                write_cache: false,
                fua: true,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            chunk_pages: chunk / PAGE_SECTORS,
            write: config.write_cache,
            read: config.read_cache,
            command_ns: config.link.command_ns,
            link: LinkRate::new(config.link.bytes_per_second),
            members: all().map(member).collect(),
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            fetches: BTreeMap::new(),
            recent: Recent::new(u64::from(config.read_cache.sectors) / PAGE_SECTORS),
            streams: VecDeque::new(),
            readings: Vec::new(),
            free_slots: Vec::new(),
            arrivals: VecDeque::new(),
            waiting: VecDeque::new(),
            cached_pages: 0,
            destaging: false,
            destage_ns: NEVER_NS,
            link_out_ns: 0,
            link_in_ns: 0,
            done: Completions::new(config.depth.min(1024)),
            submitted: 0,
        })
    }

    /// Returns the members.
    pub(crate) fn members_mut(&mut self) -> impl Iterator<Item = &mut AnyDevice> {
        self.members.iter_mut().map(|member| &mut member.device)
    }

    /// Returns the number of acknowledged sectors that are not on the members yet, in whole pages
    /// of 4 KiB.
    #[must_use]
    pub fn cached_sectors(&self) -> u64 {
        self.cached_pages * PAGE_SECTORS
    }

    #[inline]
    const fn link_ns(&self, nr_sectors: u32) -> u64 {
        self.command_ns + self.link.ns(nr_sectors as u64)
    }

    /// Returns the member of a page, the number of the page on this member, and the number of pages
    /// from this page to the end of the chunk.
    #[inline]
    fn locate(&self, page: u64) -> (usize, u64, u64) {
        let (chunk, offset) = (page / self.chunk_pages, page % self.chunk_pages);
        let members = self.members.len() as u64;
        ((chunk % members) as usize, chunk / members * self.chunk_pages + offset, self.chunk_pages - offset)
    }

    /// Returns the pages of a command.
    fn pages_of(command: &Command) -> Range<u64> {
        let end = command.sector + u64::from(command.nr_sectors.max(1));
        command.sector / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)
    }

    #[inline]
    fn is_held(&mut self, page: u64) -> bool {
        if self.recent.find(page) {
            return true;
        }
        let (member, own_page, _) = self.locate(page);
        self.cached_pages > 0 && self.members[member].dirty.contains(own_page)
    }

    fn read(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let reading = Reading { parts: 1, nr_sectors: command.nr_sectors, tag: command.tag, sequence };
        let slot = self.slot(reading);
        let pages = Self::pages_of(command);
        self.fetch(now_ns, pages.clone(), Some(slot));
        self.read_ahead(now_ns, command, &pages);
        self.part_done(now_ns, slot);
    }

    fn slot(&mut self, reading: Reading) -> u32 {
        if let Some(slot) = self.free_slots.pop() {
            self.readings[slot as usize] = reading;
            return slot;
        }
        self.readings.push(reading);
        (self.readings.len() - 1) as u32
    }

    /// Fetches the pages that are not cached. The command in `slot`, if any, waits for these pages.
    fn fetch(&mut self, now_ns: u64, pages: Range<u64>, slot: Option<u32>) {
        let mut page = pages.start;
        while page < pages.end {
            if let Some((end, job)) = self.fetched_already(page) {
                if let (Some(slot), JobKind::Fetch { waiters, .. }) = (slot, &mut self.jobs[job as usize].kind) {
                    waiters.push(slot);
                    self.readings[slot as usize].parts += 1;
                }
                page = end;
                continue;
            }
            if self.is_held(page) {
                page += 1;
                continue;
            }
            let (member, own_page, in_chunk) = self.locate(page);
            let end = self.missing_until(page..pages.end.min(page + in_chunk), member, own_page);
            let member_pages = own_page..own_page + (end - page);
            let kind = JobKind::Fetch { pages: page..end, waiters: slot.into_iter().collect() };
            let job = self.job(Job { member: member as u32, pages: member_pages, kind });
            if let Some(slot) = slot {
                self.readings[slot as usize].parts += 1;
            }
            self.fetches.insert(page, job);
            self.members[member].queue.push_back(job);
            self.pump(now_ns, member);
            page = end;
        }
    }

    /// Returns the end of the first part of `pages` that is neither cached nor being fetched. The
    /// first page of `pages` must be missing. All pages must be in one chunk of `member`.
    /// `own_page` is the number of the first page on this member.
    fn missing_until(&self, pages: Range<u64>, member: usize, own_page: u64) -> u64 {
        let Range { start: page, end } = pages;
        let end = self.fetches.range(page + 1..end).next().map_or(end, |(&fetched, _)| fetched);
        let end = self.recent.first_in(page + 1..end).unwrap_or(end);
        let dirty = self.members[member].dirty.first_from(own_page + 1);
        dirty.map_or(end, |dirty| end.min(page + (dirty - own_page)))
    }

    /// Returns the end and the job of the fetch that contains a page, if there is such a fetch.
    #[inline]
    fn fetched_already(&self, page: u64) -> Option<(u64, u32)> {
        if self.fetches.is_empty() {
            return None;
        }
        let (_, &job) = self.fetches.range(..=page).next_back()?;
        match &self.jobs[job as usize].kind {
            JobKind::Fetch { pages, .. } if pages.contains(&page) => Some((pages.end, job)),
            _ => None,
        }
    }

    fn job(&mut self, job: Job) -> u32 {
        if let Some(id) = self.free_jobs.pop() {
            self.jobs[id as usize] = job;
            return id;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1) as u32
    }

    /// Reads ahead for a sequential reader.
    fn read_ahead(&mut self, now_ns: u64, command: &Command, pages: &Range<u64>) {
        let ahead_pages = u64::from(self.read.read_ahead_sectors) / PAGE_SECTORS;
        if ahead_pages == 0 {
            return;
        }
        let next_sector = command.sector + u64::from(command.nr_sectors);
        let known = self.streams.iter().position(|stream| stream.next_sector == command.sector);
        let Some(known) = known else {
            self.streams.truncate(self.read.streams as usize - 1);
            return self.streams.push_front(Stream { next_sector, ahead_page: pages.end });
        };
        let Some(mut stream) = self.streams.remove(known) else { return };
        stream.next_sector = next_sector;
        let wanted = (pages.end + ahead_pages).min(self.card.capacity_sectors.div_ceil(PAGE_SECTORS));
        if stream.ahead_page < pages.end + ahead_pages / 2 {
            let from = stream.ahead_page.max(pages.end);
            stream.ahead_page = wanted;
            self.fetch(now_ns, from..wanted.max(from), None);
        }
        self.streams.push_front(stream);
    }

    /// Records that one part of a read is complete.
    fn part_done(&mut self, now_ns: u64, slot: u32) {
        let reading = &mut self.readings[slot as usize];
        reading.parts -= 1;
        if reading.parts == 0 {
            let Reading { nr_sectors, tag, sequence, .. } = *reading;
            self.free_slots.push(slot);
            self.link_out_ns = self.link_out_ns.max(now_ns) + self.link_ns(nr_sectors);
            self.done.push(Time::from_ns(self.link_out_ns + self.read.latency_ns), sequence, tag);
        }
    }

    fn arrive(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let tag = command.tag;
        if is_data(command.op) {
            self.waiting.push_back(Waiting { pages: Self::pages_of(command), tag, sequence });
            return self.admit(now_ns);
        }
        self.done.push(Time::from_ns(now_ns + self.write.acknowledge_ns), sequence, tag);
    }

    /// Moves waiting writes into the write cache while it has space.
    fn admit(&mut self, now_ns: u64) {
        let most = u64::from(self.write.sectors) / PAGE_SECTORS;
        while let Some(Waiting { pages, tag, sequence }) = self.waiting.front().cloned() {
            let first = pages.start;
            let mut page = first;
            while page < pages.end && self.cached_pages < most {
                let (member, own_page, _) = self.locate(page);
                self.cached_pages += u64::from(self.members[member].dirty.insert(own_page));
                page += 1;
            }
            self.recent.insert(first..page);
            self.destage_ns = self.destage_ns.min(now_ns + self.write.destage_after_ns);
            if self.destaging || self.cached_pages * 100 >= most * u64::from(self.write.destage_percent) {
                self.destage(now_ns);
            }
            if page < pages.end {
                self.waiting[0].pages = page..pages.end;
                return;
            }
            self.waiting.pop_front();
            self.done.push(Time::from_ns(now_ns + self.write.acknowledge_ns), sequence, tag);
        }
    }

    /// Begins or continues writing back.
    fn destage(&mut self, now_ns: u64) {
        self.destage_ns = NEVER_NS;
        self.destaging = true;
        for member in 0..self.members.len() {
            self.pump(now_ns, member);
        }
        self.end_destaging();
    }

    /// Ends writing back if no dirty data is left, except data that is being written.
    fn end_destaging(&mut self) {
        if self.destaging && self.members.iter().all(|member| member.dirty.is_empty()) {
            self.destaging = false;
            self.destage_ns = NEVER_NS;
        }
    }

    /// Submits jobs to a member. Reads come first, but a share of the member's queue is reserved
    /// for writing back.
    fn pump(&mut self, now_ns: u64, index: usize) {
        let depth = self.members[index].device.card().depth;
        let share = self.write.destage_depth.min(depth.max(2) - 1);
        loop {
            let member = &mut self.members[index];
            if member.fetching < (depth - share).max(1)
                && member.fetching + member.writing < depth
                && let Some(job) = member.queue.pop_front()
            {
                member.fetching += 1;
                self.give(now_ns, index, job, Op::Read);
            } else if self.destaging
                && member.writing < share
                && member.fetching + member.writing < depth
                && let Some(pages) = member.dirty.take(u64::from(self.write.destage_sectors) / PAGE_SECTORS)
            {
                member.writing += 1;
                let job = self.job(Job { member: index as u32, pages, kind: JobKind::WriteBack });
                self.give(now_ns, index, job, Op::Write);
            } else {
                break;
            }
        }
        let member = &mut self.members[index];
        member.next_ns = member.device.next_event().map_or(NEVER_NS, Time::as_ns);
    }

    fn give(&mut self, now_ns: u64, index: usize, job: u32, op: Op) {
        let Range { start, end } = self.jobs[job as usize].pages;
        let device = &mut self.members[index].device;
        let (sector, end) = (start * PAGE_SECTORS, (end * PAGE_SECTORS).min(device.card().capacity_sectors));
        let command = Command { tag: job, op, sector, nr_sectors: (end - sector) as u32, fua: false };
        device.submit(Time::from_ns(now_ns), command);
    }

    /// Handles the completions of a member at `now_ns`.
    fn member_event(&mut self, now_ns: u64, index: usize) {
        let mut freed = false;
        while let Some(id) = self.members[index].device.advance(Time::from_ns(now_ns)) {
            self.free_jobs.push(id);
            let job = &mut self.jobs[id as usize];
            debug_assert_eq!(job.member as usize, index, "a job belongs to the member that completes it");
            match std::mem::replace(&mut job.kind, JobKind::WriteBack) {
                JobKind::Fetch { pages, waiters } => {
                    self.members[index].fetching -= 1;
                    self.fetches.remove(&pages.start);
                    self.recent.insert(pages);
                    for slot in waiters {
                        self.part_done(now_ns, slot);
                    }
                }
                JobKind::WriteBack => {
                    self.cached_pages -= job.pages.end - job.pages.start;
                    self.members[index].writing -= 1;
                    freed = true;
                }
            }
        }
        if freed {
            self.admit(now_ns);
        }
        self.pump(now_ns, index);
        if freed {
            self.end_destaging();
        }
    }

    /// Returns the time of the next event of all members, and the member that has this event.
    #[inline]
    fn first_member(&self) -> (u64, usize) {
        let times = self.members.iter().enumerate().map(|(i, member)| (member.next_ns, i));
        times.min().unwrap_or((NEVER_NS, 0))
    }

    /// Executes everything that is due at `now_ns`.
    fn run(&mut self, now_ns: u64) {
        loop {
            let arrival_ns = self.arrivals.front().map_or(NEVER_NS, |arrival| arrival.at_ns);
            let (member_ns, member) = self.first_member();
            let at_ns = arrival_ns.min(member_ns).min(self.destage_ns);
            if at_ns > now_ns || at_ns == NEVER_NS {
                return;
            }
            if member_ns == at_ns {
                self.member_event(at_ns, member);
            } else if arrival_ns == at_ns {
                let Some(Arrival { command, sequence, .. }) = self.arrivals.pop_front() else { return };
                self.arrive(at_ns, &command, sequence);
            } else {
                self.destage(at_ns);
            }
        }
    }
}

impl Device for Array {
    fn card(&self) -> &Card {
        &self.card
    }

    fn submit(&mut self, now: Time, command: Command) {
        let now_ns = now.as_ns();
        self.run(now_ns);
        let sequence = self.submitted;
        self.submitted += 1;
        if command.op == Op::Read {
            return self.read(now_ns, &command, sequence);
        }
        let nr_sectors = if is_data(command.op) { command.nr_sectors } else { 0 };
        self.link_in_ns = self.link_in_ns.max(now_ns) + self.link_ns(nr_sectors);
        self.arrivals.push_back(Arrival { at_ns: self.link_in_ns, command, sequence });
    }

    fn next_event(&self) -> Option<Time> {
        let arrival_ns = self.arrivals.front().map_or(NEVER_NS, |arrival| arrival.at_ns);
        let inside_ns = self.first_member().0.min(arrival_ns).min(self.destage_ns);
        let inside = (inside_ns != NEVER_NS).then(|| Time::from_ns(inside_ns));
        inside.into_iter().chain(self.done.next()).min()
    }

    fn advance(&mut self, now: Time) -> Option<u32> {
        self.run(now.as_ns());
        self.done.pop(now)
    }
}
