//! `ssd`: flash dies on channels behind one link, a write buffer, and a flash translation layer
//! with garbage collection.
//!
//! - The address of a read determines its die. The read interrupts programming or erasing on this
//!   die. Its data crosses the channel of the die and then the link. Data that is still in the
//!   write buffer is not read from flash. Several dies can read for one command at the same time.
//! - A controller executes a limited number of commands. It fetches them from its hardware queues
//!   in turn (round robin, as in NVMe). When the write buffer is full, reads also wait.
//! - A write crosses the link into the buffer, and the device then acknowledges the write. When the
//!   buffer has filled a unit, the next die in turn programs this unit. When the buffer is full,
//!   writes wait until programs end. The number of dies that program at the same time is limited.
//!   While data waits, a die can begin its next program before it serves reads.
//! - With a cache in single-level cells, units are programmed there first, which is faster. When
//!   the cache is full, each new unit forces the device to move an older unit out.
//! - Pages that are written again leave invalid copies. When few free blocks are left, the device
//!   cleans blocks while the host writes. It moves the valid pages, either page by page with the
//!   host's writes or in bursts, and erases the block. Cleaning makes writes slower. A device can
//!   [start](SsdStartConfig) in this state.
//! - A flush programs the contents of the buffer and waits for the end, unless the buffer is
//!   protected against power loss.
//!
//! Not modelled: wear and bad blocks, cleaning and folding while idle, faster reads of unwritten
//! data, and limits of power and heat. The model does not track to which die an address moves when
//! it is written again.

mod buffer;
mod config;
mod die;
mod ftl;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Arc, OnceLock};

use iosched::{Op, Time};

use self::buffer::Buffer;
use self::config::PAGE_SECTORS;
pub use self::config::{
    SsdBufferConfig, SsdCacheConfig, SsdCleaningConfig, SsdConfig, SsdFlashConfig, SsdInterfaceConfig,
    SsdQuickReadConfig, SsdStartConfig, SsdVictim,
};
use self::die::{Die, Finished, Limits, NOBODY, Part, Work, WorkKind};
use self::ftl::Ftl;
pub use self::ftl::SsdWear;
use crate::completions::Completions;
use crate::config::ConfigError;
use crate::link::{Arrival, LinkRate};
use crate::outside::Outside;
use crate::{Card, Command, Device};

/// Parameters in the form that the model needs.
#[derive(Clone, Debug)]
struct Settings {
    limits: Limits,
    read_sectors: u64,
    read_ns: u64,
    /// Largest command with a quick read, sectors, and the time of the quick read, ns.
    quick_sectors: u32,
    quick_ns: u64,
    program_ns: u64,
    /// Time to program a unit of the host, ns.
    host_program_ns: u64,
    programs_max: u32,
    erase_ns: u64,
    unit_pages: u64,
    /// Number of pages that the device gathers before it moves them, at least a unit.
    burst_pages: u64,
    /// Size of the cache in units; `None`: there is no cache.
    cache_units: Option<u64>,
    command_slots: u32,
    read_page_ns: u64,
    channel: LinkRate,
    link: LinkRate,
    full_duplex: bool,
    read_latency_ns: u64,
    write_latency_ns: u64,
    read_command_ns: u64,
    write_command_ns: u64,
    power_loss_protection: bool,
    flush_ns: u64,
}

/// State that all devices of a profile share: the configuration, and the initial translation layer.
/// The first write of any device creates the initial translation layer.
#[derive(Debug)]
struct Template {
    config: SsdConfig,
    start: OnceLock<Ftl>,
}

/// An event in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The end of a die's operation, if the die's `begun` has not changed since.
    Die { die: u32, begun: u32 },
    /// Part of a read that is ready to cross the link.
    Fetched { slot: u32, sectors: u32 },
}

/// A read with parts that are not complete.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    parts: u32,
    /// Number of pages of the command.
    pages: u32,
    tag: u32,
    sequence: u64,
}

/// A write, or the rest of a write, that waits for space.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    first_page: u64,
    pages: u32,
    fua: bool,
    tag: u32,
    sequence: u64,
}

/// A flush or forced write that waits until units are programmed.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    /// First unit for which the barrier does not wait.
    unit: u64,
    /// Additional time of a flush, ns; `None` for a forced write.
    extra_ns: Option<u64>,
    tag: u32,
    sequence: u64,
}

/// Model of flash dies and a controller behind one link.
#[derive(Clone, Debug)]
pub struct Ssd {
    card: Card,
    settings: Settings,
    template: Arc<Template>,
    /// The translation layer, after the first write.
    ftl: Option<Box<Ftl>>,
    dies: Vec<Die>,
    /// Time at which each channel becomes free, ns.
    channels: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Counter of scheduled events. Events with equal times are executed in the order of this
    /// counter.
    foreseen: u64,
    /// Times at which the link becomes free, ns, for data from the device and for data to the
    /// device. A half-duplex link uses only `link_out_ns`.
    link_out_ns: u64,
    link_in_ns: u64,
    arrivals: VecDeque<Arrival>,
    readings: Vec<Reading>,
    free_slots: Vec<u32>,
    buffer: Buffer,
    /// Number of commands in the controller.
    inside: u32,
    /// Commands that wait for the controller.
    outside: Outside,
    /// Writes that wait for space in the write buffer.
    waiting: VecDeque<Waiting>,
    /// Number of running programs, and programs that wait until a running program ends, with their
    /// dies.
    programs: u32,
    held_programs: VecDeque<(u32, WorkKind)>,
    /// Number of units in the cache.
    cached_units: u64,
    barriers: VecDeque<Barrier>,
    /// The next die to program, the next die to read for cleaning, and the next die to erase.
    next_die: u32,
    next_source: u32,
    next_erase: u32,
    /// Pages to move, and units to erase, that no die has taken yet.
    owed_pages: u64,
    owed_erases: u64,
    /// Whether data was written since the last flush.
    written: bool,
    /// Time at which the last flush is done, if known, ns.
    stable_ns: u64,
    done: Completions,
    submitted: u64,
}

impl Ssd {
    /// Creates an idle device with an empty buffer.
    ///
    /// # Errors
    /// The errors of [`SsdConfig::validate`].
    pub fn new(config: &SsdConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let SsdConfig { flash, interface, buffer, .. } = config;
        let channel = LinkRate::new(flash.channel_bytes_per_second);
        let cache_units = config.cache.map(|cache| cache.sectors / u64::from(flash.program_sectors));
        let is_overwritten = config.start.overwritten_percent > 0;
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                hw_queues: config.hw_queues,
                rotational: false,
                write_cache: buffer.reported.unwrap_or(!buffer.power_loss_protection),
                fua: config.fua,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            settings: Settings {
                limits: Limits {
                    suspend_ns: flash.suspend_ns,
                    suspends_max: flash.suspends_max,
                    reads_in_a_row: flash.reads_in_a_row,
                    cached_programs: flash.cached_programs,
                    unit_ns: channel.ns(flash.program_sectors.into()),
                },
                read_sectors: u64::from(flash.read_sectors),
                read_ns: flash.read_ns,
                quick_sectors: flash.quick_read.map_or(0, |quick| quick.sectors),
                quick_ns: flash.quick_read.map_or(0, |quick| quick.ns),
                program_ns: flash.program_ns,
                host_program_ns: config.cache.map_or(flash.program_ns, |cache| cache.program_ns),
                programs_max: flash.programs_max.unwrap_or(u32::MAX),
                erase_ns: flash.erase_ns,
                unit_pages: u64::from(flash.program_sectors / PAGE_SECTORS),
                burst_pages: u64::from(config.cleaning.burst_sectors.max(flash.program_sectors) / PAGE_SECTORS),
                cache_units,
                command_slots: interface.command_slots.unwrap_or(u32::MAX),
                read_page_ns: interface.read_page_ns,
                channel,
                link: LinkRate::new(interface.bytes_per_second),
                full_duplex: interface.full_duplex,
                read_latency_ns: interface.read_latency_ns,
                write_latency_ns: interface.write_latency_ns,
                read_command_ns: interface.read_command_ns,
                write_command_ns: interface.write_command_ns,
                power_loss_protection: buffer.power_loss_protection,
                flush_ns: buffer.flush_ns,
            },
            template: Arc::new(Template { config: config.clone(), start: OnceLock::new() }),
            ftl: None,
            dies: (0..flash.dies).map(|_| Die::new()).collect(),
            channels: vec![0; flash.channels as usize],
            events: BinaryHeap::new(),
            foreseen: 0,
            link_out_ns: 0,
            link_in_ns: 0,
            arrivals: VecDeque::new(),
            readings: Vec::new(),
            free_slots: Vec::new(),
            buffer: Buffer::new(buffer.sectors / PAGE_SECTORS, flash.program_sectors / PAGE_SECTORS),
            inside: 0,
            outside: Outside::new(config.hw_queues),
            waiting: VecDeque::new(),
            programs: 0,
            held_programs: VecDeque::new(),
            cached_units: cache_units.filter(|_| is_overwritten).unwrap_or(0),
            barriers: VecDeque::new(),
            next_die: 0,
            next_source: 0,
            next_erase: 0,
            owed_pages: 0,
            owed_erases: 0,
            written: false,
            stable_ns: 0,
            done: Completions::new(config.depth.min(1024)),
            submitted: 0,
        })
    }

    /// Creates another disk of the same model. `config` may differ from the configuration of this
    /// disk only in times. The disks share the state at the start.
    ///
    /// # Errors
    /// The errors of [`SsdConfig::validate`].
    pub(crate) fn another(&self, config: &SsdConfig) -> Result<Self, ConfigError> {
        Ok(Self { template: Arc::clone(&self.template), ..Self::new(config)? })
    }

    /// Returns the numbers of pages written and moved, and of blocks erased, since the start.
    #[must_use]
    pub fn wear(&self) -> SsdWear {
        self.ftl.as_ref().map_or_else(SsdWear::default, |ftl| ftl.wear())
    }

    /// Returns the number of sectors in the write buffer, in whole pages of 4 KiB.
    #[must_use]
    pub fn buffered_sectors(&self) -> u64 {
        u64::from(self.buffer.pages() * PAGE_SECTORS)
    }

    fn ftl(&mut self) -> &mut Ftl {
        let template = &self.template;
        self.ftl.get_or_insert_with(|| {
            let config = &template.config;
            if config.start == SsdStartConfig::FRESH {
                // Untouched memory of a new layer costs nothing. A clone would touch all of it.
                return Box::new(Ftl::new(config));
            }
            Box::new(template.start.get_or_init(|| Ftl::new(config)).clone())
        })
    }

    #[inline]
    const fn link_ns(&self, nr_sectors: u32) -> u64 {
        self.settings.link.ns(nr_sectors as u64)
    }

    #[inline]
    fn foresee(&mut self, at_ns: u64, event: Event) {
        self.foreseen += 1;
        self.events.push(Reverse((at_ns, self.foreseen, event)));
    }

    #[inline]
    fn foresee_die(&mut self, die: u32, end_ns: Option<u64>) {
        if let Some(end_ns) = end_ns {
            let begun = self.dies[die as usize].begun();
            self.foresee(end_ns, Event::Die { die, begun });
        }
    }

    #[inline]
    fn channel_of(&self, die: u32) -> usize {
        die as usize % self.channels.len()
    }

    #[inline]
    fn give_read(&mut self, now_ns: u64, die: u32, part: Part) {
        let channel = self.channel_of(die);
        let end_ns = self.dies[die as usize].read(now_ns, part, &mut self.channels[channel], &self.settings.limits);
        self.foresee_die(die, end_ns);
    }

    /// Gives work to a die. A program waits while the limit of programs is reached.
    #[inline]
    fn give_work(&mut self, now_ns: u64, die: u32, kind: WorkKind) {
        if kind.is_program() {
            if self.programs >= self.settings.programs_max {
                self.held_programs.push_back((die, kind));
                return;
            }
            self.programs += 1;
        }
        self.begin_work(now_ns, die, kind);
    }

    /// Handles the end of a program, and starts the program that has waited longest. This program
    /// runs on its own die or, if cache programming continues, on the die whose program ended.
    #[inline]
    fn program_ended(&mut self, now_ns: u64, ended: u32) {
        match self.held_programs.pop_front() {
            Some((die, kind)) => {
                let continues = self.dies[ended as usize].continues(&self.settings.limits);
                self.begin_work(now_ns, if continues { ended } else { die }, kind);
            }
            None => self.programs -= 1,
        }
    }

    #[inline]
    fn begin_work(&mut self, now_ns: u64, die: u32, kind: WorkKind) {
        let busy_ns = match kind {
            WorkKind::Program(_) => self.settings.host_program_ns,
            WorkKind::MoveIn => self.settings.program_ns,
            WorkKind::MoveOut => self.settings.read_ns,
            WorkKind::Erase => self.settings.erase_ns,
        };
        let channel = self.channel_of(die);
        let work = Work { kind, busy_ns };
        let end_ns = self.dies[die as usize].add(now_ns, work, &mut self.channels[channel], &self.settings.limits);
        self.foresee_die(die, end_ns);
    }

    #[inline]
    fn slot(&mut self, reading: Reading) -> u32 {
        if let Some(slot) = self.free_slots.pop() {
            self.readings[slot as usize] = reading;
            return slot;
        }
        self.readings.push(reading);
        (self.readings.len() - 1) as u32
    }

    #[inline]
    fn read(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let pages = command.nr_sectors.div_ceil(PAGE_SECTORS).max(1);
        let slot = self.slot(Reading { parts: 1, pages, tag: command.tag, sequence });
        let (start, end) = (command.sector, command.sector + u64::from(command.nr_sectors.max(1)));
        let read_sectors = self.settings.read_sectors;
        let is_quick = command.nr_sectors <= self.settings.quick_sectors;
        let read_ns = if is_quick { self.settings.quick_ns } else { self.settings.read_ns };
        let (first, last) = (start / read_sectors, (end - 1) / read_sectors);
        let dies = self.dies.len() as u64;
        let (mut parts, mut buffered) = (0, 0);
        // A die reads its units of the command one after another.
        for i in 0..(last - first + 1).min(dies) {
            let (mut units, mut sectors) = (0, 0);
            let mut unit = first + i;
            while unit <= last {
                let (from, to) = ((unit * read_sectors).max(start), ((unit + 1) * read_sectors).min(end));
                if self.is_buffered(from, to) {
                    buffered += (to - from) as u32;
                } else {
                    units += 1;
                    sectors += (to - from) as u32;
                }
                unit += dies;
            }
            if units > 0 {
                parts += 1;
                let part = Part { slot, sectors, busy_ns: units * read_ns };
                self.give_read(now_ns, ((first + i) % dies) as u32, part);
            }
        }
        if buffered > 0 || parts == 0 {
            parts += 1;
            self.foresee(now_ns, Event::Fetched { slot, sectors: buffered });
        }
        self.readings[slot as usize].parts = parts;
    }

    /// Returns whether all of `from..to` is still in the write buffer.
    #[inline]
    fn is_buffered(&self, from: u64, to: u64) -> bool {
        let page = u64::from(PAGE_SECTORS);
        self.buffer.pages() > 0 && (from / page..to.div_ceil(page)).all(|page| self.buffer.holds(page))
    }

    /// Transfers a command other than a read over the link.
    #[inline]
    fn send(&mut self, now_ns: u64, command: Command, sequence: u64) {
        let nr_sectors = if matches!(command.op, Op::Discard) { 0 } else { command.nr_sectors };
        let took_ns = self.settings.write_command_ns + self.link_ns(nr_sectors);
        let free_ns = if self.settings.full_duplex { self.link_in_ns } else { self.link_out_ns };
        let at_ns = free_ns.max(now_ns) + took_ns;
        if self.settings.full_duplex {
            self.link_in_ns = at_ns;
        } else {
            self.link_out_ns = at_ns;
        }
        self.arrivals.push_back(Arrival { at_ns, command, sequence });
    }

    #[inline]
    fn complete(&mut self, at_ns: u64, sequence: u64, tag: u32) {
        self.done.push(Time::from_ns(at_ns + self.settings.write_latency_ns), sequence, tag);
    }

    fn arrive(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let page = u64::from(PAGE_SECTORS);
        let (start, end) = (command.sector, command.sector + u64::from(command.nr_sectors));
        let tag = command.tag;
        match command.op {
            Op::Write | Op::WriteZeroes => {
                let (first_page, end_page) = (start / page, end.div_ceil(page).max(start / page + 1));
                let pages = (end_page - first_page) as u32;
                self.complete_pages(now_ns, start, end);
                let fua = command.fua && !self.settings.power_loss_protection;
                self.waiting.push_back(Waiting { first_page, pages, fua, tag, sequence });
                self.admit(now_ns);
            }
            Op::Flush => self.flush(now_ns, tag, sequence),
            Op::Discard => {
                self.ftl().discard(start.div_ceil(page), end / page);
                self.complete(now_ns, sequence, tag);
            }
            Op::Read => {}
        }
    }

    /// Reads the missing parts of pages that `start..end` covers only in part. Flash is written in
    /// whole pages.
    #[inline]
    fn complete_pages(&mut self, now_ns: u64, start: u64, end: u64) {
        let page = u64::from(PAGE_SECTORS);
        let (first, last) = (start / page, end.max(start + 1).div_ceil(page) - 1);
        let head = !start.is_multiple_of(page);
        let tail = !end.is_multiple_of(page) && (last != first || !head);
        for page_wanted in [head.then_some(first), tail.then_some(last)].into_iter().flatten() {
            if !self.buffer.holds(page_wanted) {
                let die = page_wanted * page / self.settings.read_sectors % self.dies.len() as u64;
                let part = Part { slot: NOBODY, sectors: 0, busy_ns: self.settings.read_ns };
                self.give_read(now_ns, die as u32, part);
            }
        }
    }

    /// Moves waiting writes into the buffer while it has space.
    #[inline]
    fn admit(&mut self, now_ns: u64) {
        while let Some(mut write) = self.waiting.front().copied() {
            while write.pages > 0 && self.buffer.room() > 0 {
                let taken = self.buffer.take(write.first_page, write.pages);
                let end_page = write.first_page + u64::from(taken);
                self.ftl_write(write.first_page, end_page);
                (write.first_page, write.pages) = (end_page, write.pages - taken);
                if self.buffer.is_unit() {
                    self.issue(now_ns);
                }
            }
            self.written = true;
            if write.pages > 0 {
                self.waiting[0] = write;
                return;
            }
            self.waiting.pop_front();
            let Waiting { fua, tag, sequence, .. } = write;
            if fua {
                self.issue(now_ns);
                self.barriers.push_back(Barrier { unit: self.buffer.next_unit(), extra_ns: None, tag, sequence });
            } else {
                self.complete(now_ns, sequence, tag);
            }
        }
    }

    #[inline]
    fn ftl_write(&mut self, first_page: u64, end_page: u64) {
        let blocks = self.dies.len() as u64;
        let ftl = self.ftl();
        let before = ftl.wear();
        ftl.write(first_page, end_page);
        let now = ftl.wear();
        self.owed_pages += now.moved_pages - before.moved_pages;
        self.owed_erases += (now.erased_blocks - before.erased_blocks) * blocks;
    }

    /// Gives the full or partly full unit to the next die, and pending cleaning work to other dies.
    fn issue(&mut self, now_ns: u64) {
        let Some(unit) = self.buffer.issue() else { return };
        match self.settings.cache_units {
            Some(units) if self.cached_units >= units => self.owed_pages += self.settings.unit_pages,
            Some(_) => self.cached_units += 1,
            None => {}
        }
        let die = self.turn(|ssd| &mut ssd.next_die);
        self.give_work(now_ns, die, WorkKind::Program(unit));
        let is_due = self.owed_pages >= self.settings.burst_pages;
        while is_due && self.owed_pages >= self.settings.unit_pages {
            self.owed_pages -= self.settings.unit_pages;
            let source = self.turn(|ssd| &mut ssd.next_source);
            self.give_work(now_ns, source, WorkKind::MoveOut);
            let die = self.turn(|ssd| &mut ssd.next_die);
            self.give_work(now_ns, die, WorkKind::MoveIn);
        }
        if self.owed_erases > 0 {
            self.owed_erases -= 1;
            let die = self.turn(|ssd| &mut ssd.next_erase);
            self.give_work(now_ns, die, WorkKind::Erase);
        }
    }

    /// Returns the next die in turn (round robin).
    #[inline]
    fn turn(&mut self, which: impl Fn(&mut Self) -> &mut u32) -> u32 {
        let dies = self.dies.len() as u32;
        let next = which(self);
        let die = *next;
        *next = if die + 1 == dies { 0 } else { die + 1 };
        die
    }

    fn flush(&mut self, now_ns: u64, tag: u32, sequence: u64) {
        if self.settings.power_loss_protection {
            return self.complete(now_ns + self.settings.flush_ns, sequence, tag);
        }
        self.issue(now_ns);
        let extra_ns = Some(if std::mem::take(&mut self.written) { self.settings.flush_ns } else { 0 });
        self.barriers.push_back(Barrier { unit: self.buffer.next_unit(), extra_ns, tag, sequence });
        self.release(now_ns);
    }

    /// Completes flushes and forced writes whose units are all programmed.
    #[inline]
    fn release(&mut self, now_ns: u64) {
        while let Some(&Barrier { unit, extra_ns, tag, sequence }) = self.barriers.front() {
            if unit > self.buffer.oldest() {
                return;
            }
            self.barriers.pop_front();
            let Some(extra_ns) = extra_ns else {
                self.complete(now_ns, sequence, tag);
                continue;
            };
            // A flush without new data waits for the previous flush.
            self.stable_ns = self.stable_ns.max(now_ns + extra_ns);
            self.complete(self.stable_ns, sequence, tag);
        }
    }

    #[inline]
    fn die_ends(&mut self, now_ns: u64, die: u32) {
        let finished = self.dies[die as usize].finish();
        let channel = self.channel_of(die);
        match finished {
            Some(Finished::Read(Part { slot, sectors, .. })) if slot != NOBODY => {
                let took_ns = self.settings.channel.ns(sectors.into());
                let at_ns = self.channels[channel].max(now_ns) + took_ns;
                self.channels[channel] = at_ns;
                self.foresee(at_ns, Event::Fetched { slot, sectors });
            }
            Some(Finished::Work(kind)) if kind.is_program() => {
                self.program_ended(now_ns, die);
                if let WorkKind::Program(unit) = kind {
                    self.buffer.programmed(unit);
                    self.release(now_ns);
                    self.admit(now_ns);
                }
            }
            _ => {}
        }
        let end_ns = self.dies[die as usize].begin(now_ns, &mut self.channels[channel], &self.settings.limits);
        self.foresee_die(die, end_ns);
    }

    /// Transfers a part of a read over the link. The last part completes the command.
    #[inline]
    fn fetched(&mut self, now_ns: u64, slot: u32, sectors: u32) {
        let link_ns = self.link_ns(sectors);
        let reading = &mut self.readings[slot as usize];
        reading.parts -= 1;
        let Reading { parts, pages, tag, sequence } = *reading;
        let pages_ns = u64::from(pages - 1) * self.settings.read_page_ns;
        let command_ns = if parts == 0 { self.settings.read_command_ns + pages_ns } else { 0 };
        self.link_out_ns = self.link_out_ns.max(now_ns) + command_ns + link_ns;
        if parts == 0 {
            self.free_slots.push(slot);
            self.done.push(Time::from_ns(self.link_out_ns + self.settings.read_latency_ns), sequence, tag);
        }
    }

    /// Starts a command in the controller.
    #[inline]
    fn fetch(&mut self, now_ns: u64, command: Command, sequence: u64) {
        match command.op {
            Op::Read => self.read(now_ns, &command, sequence),
            _ => self.send(now_ns, command, sequence),
        }
    }

    /// Executes everything that is due at `now_ns`.
    #[inline]
    fn run(&mut self, now_ns: u64) {
        loop {
            let event_ns = self.events.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns);
            let arrival_ns = self.arrivals.front().map_or(u64::MAX, |arrival| arrival.at_ns);
            if event_ns.min(arrival_ns) > now_ns {
                return;
            }
            if event_ns <= arrival_ns {
                match self.events.pop() {
                    Some(Reverse((_, _, Event::Die { die, begun }))) if self.dies[die as usize].begun() == begun => {
                        self.die_ends(event_ns, die);
                    }
                    Some(Reverse((_, _, Event::Fetched { slot, sectors }))) => self.fetched(event_ns, slot, sectors),
                    _ => {}
                }
            } else if let Some(Arrival { at_ns, command, sequence }) = self.arrivals.pop_front() {
                self.arrive(at_ns, &command, sequence);
            }
        }
    }
}

impl Device for Ssd {
    fn card(&self) -> &Card {
        &self.card
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        self.submit_to(now, 0, command);
    }

    #[inline]
    fn submit_to(&mut self, now: Time, hw_queue: u16, command: Command) {
        let now_ns = now.as_ns();
        self.run(now_ns);
        let sequence = self.submitted;
        self.submitted += 1;
        if self.inside >= self.settings.command_slots {
            self.outside.push(hw_queue, command, sequence);
            return;
        }
        self.inside += 1;
        self.fetch(now_ns, command, sequence);
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let event = self.events.peek().map(|&Reverse((at_ns, ..))| Time::from_ns(at_ns));
        let arrival = self.arrivals.front().map(|arrival| Time::from_ns(arrival.at_ns));
        event.into_iter().chain(arrival).chain(self.done.next()).min()
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        self.run(now.as_ns());
        let tag = self.done.pop(now)?;
        match self.outside.pop() {
            Some((command, sequence)) => self.fetch(now.as_ns(), command, sequence),
            None => self.inside -= 1,
        }
        Some(tag)
    }
}
