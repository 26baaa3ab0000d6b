//! `ssd`: flash behind one link.
//!
//! Dies work in parallel; the address of a page says which one it is read from, a write goes to whichever die is
//! next. Writes are acknowledged from a buffer and programmed in the background; a read interrupts a program. All
//! commands share the link.
//!
//! Left out: garbage collection, wear, single-level caching, reads of what is still in the buffer.

use std::collections::VecDeque;

use iosched::{Op, Time};
use serde::Deserialize;

use crate::completions::Completions;
use crate::config::{self, ConfigError, within};
use crate::{Card, Command, Device};

/// Bits behind the point of the link's time per sector.
const LINK_BITS: u32 = 16;

/// Parameters of [`Ssd`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdConfig {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Commands it takes at once, 1 to 65,535.
    pub depth: u32,
    /// Largest command in KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether the host may ask for force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Dies that work at the same time, 1 to 4,096.
    pub dies: u32,
    /// Sectors a die reads at once, 1 to 65,536: also the unit in which addresses go round the dies.
    pub read_sectors: u32,
    /// How long that takes, in ns, up to a second.
    pub read_ns: u64,
    /// Sectors a die programs at once, 1 to 65,536.
    pub program_sectors: u32,
    /// How long that takes, in ns, up to a second.
    pub program_ns: u64,
    /// What a read waits, and a program loses, when the read interrupts the program, in ns, up to a second.
    pub suspend_ns: u64,
    /// The write buffer in sectors: at least what a die programs at once.
    pub buffer_sectors: u32,
    /// What a flush that found something written costs beyond programming it, in ns, up to a thousand seconds.
    pub flush_ns: u64,
    /// The link to the host.
    pub interface: SsdInterfaceConfig,
}

/// The link to the host and the work per command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdInterfaceConfig {
    /// Work for a read beside the link, in ns, up to a second.
    pub read_latency_ns: u64,
    /// Work for a write beside the link, in ns, up to a second.
    pub write_latency_ns: u64,
    /// What a read occupies the link beyond its data, in ns, up to a second.
    pub read_command_ns: u64,
    /// What any other command occupies the link beyond its data, in ns, up to a second.
    pub write_command_ns: u64,
    /// Rate of the link, in bytes per second, a million to a trillion.
    pub bytes_per_second: u64,
}

impl SsdConfig {
    /// Checks every parameter.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const SECOND_NS: u64 = 1_000_000_000;
        within("ssd.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("ssd.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("ssd.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("ssd.dies", self.dies, 1..=4096)?;
        within("ssd.read_sectors", self.read_sectors, 1..=65_536)?;
        within("ssd.read_ns", self.read_ns, 0..=SECOND_NS)?;
        within("ssd.program_sectors", self.program_sectors, 1..=65_536)?;
        within("ssd.program_ns", self.program_ns, 0..=SECOND_NS)?;
        within("ssd.suspend_ns", self.suspend_ns, 0..=SECOND_NS)?;
        within("ssd.buffer_sectors", self.buffer_sectors, self.program_sectors..=1 << 24)?;
        within("ssd.flush_ns", self.flush_ns, 0..=config::LATENCY_NS_MAX)?;
        let interface = &self.interface;
        within("ssd.interface.read_latency_ns", interface.read_latency_ns, 0..=SECOND_NS)?;
        within("ssd.interface.write_latency_ns", interface.write_latency_ns, 0..=SECOND_NS)?;
        within("ssd.interface.read_command_ns", interface.read_command_ns, 0..=SECOND_NS)?;
        within("ssd.interface.write_command_ns", interface.write_command_ns, 0..=SECOND_NS)?;
        within("ssd.interface.bytes_per_second", interface.bytes_per_second, 1_000_000..=1_000_000_000_000)
    }
}

/// Until when a die has something to do, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Die {
    reads_ns: u64,
    programs_ns: u64,
}

/// A read that left its dies, or will.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    /// When it leaves them, in ns.
    at_ns: u64,
    link_ns: u64,
    sequence: u64,
    tag: u32,
}

/// A flash device.
#[derive(Clone, Debug)]
pub struct Ssd {
    card: Card,
    config: SsdConfig,
    link_sector: u64,
    link_free_ns: u64,
    dies: Vec<Die>,
    /// Reads that have not yet crossed the link, in the order in which they will.
    fetched: VecDeque<Fetched>,
    /// The die that programs next.
    next_die: usize,
    /// Programs under way: end and sectors, by end.
    programs: VecDeque<(u64, u32)>,
    /// Sectors in the buffer, those under way included.
    buffered_sectors: u32,
    /// Sectors in the buffer that wait for more to be programmed with.
    open_sectors: u32,
    /// When the last program ends, in ns.
    programmed_ns: u64,
    /// Whether something was written since the last flush.
    written: bool,
    done: Completions,
    submitted: u64,
}

impl Ssd {
    /// An idle device with an empty buffer.
    ///
    /// # Errors
    /// As [`SsdConfig::validate`].
    pub fn new(config: &SsdConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let bytes_per_second = u128::from(config.interface.bytes_per_second);
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                rotational: false,
                write_cache: true,
                fua: config.fua,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            config: config.clone(),
            link_sector: ((512_000_000_000 << LINK_BITS) / bytes_per_second) as u64,
            link_free_ns: 0,
            dies: vec![Die::default(); config.dies as usize],
            fetched: VecDeque::with_capacity(config.depth as usize),
            next_die: 0,
            programs: VecDeque::with_capacity((config.buffer_sectors / config.program_sectors) as usize + 1),
            buffered_sectors: 0,
            open_sectors: 0,
            programmed_ns: 0,
            written: false,
            done: Completions::new(config.depth),
            submitted: 0,
        })
    }

    #[inline]
    const fn link_ns(&self, nr_sectors: u32) -> u64 {
        (nr_sectors as u64 * self.link_sector) >> LINK_BITS
    }

    #[inline]
    fn read(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let config = &self.config;
        let first = command.sector / u64::from(config.read_sectors);
        let last = (command.sector + u64::from(command.nr_sectors.max(1)) - 1) / u64::from(config.read_sectors);
        let pages = last - first + 1;
        let dies = self.dies.len() as u64;
        let mut die = (first % dies) as usize;
        let mut at_ns = 0;
        let ready_ns = now_ns + config.interface.read_latency_ns;
        for i in 0..pages.min(dies) {
            // The first dies in turn have a page more when the pages do not come out even.
            let on_this = if pages <= dies { 1 } else { (pages - i).div_ceil(dies) };
            let Die { reads_ns, programs_ns } = &mut self.dies[die];
            let start_ns = ready_ns.max(*reads_ns);
            let mut busy_ns = on_this * config.read_ns;
            if *programs_ns > start_ns {
                busy_ns += config.suspend_ns;
                *programs_ns += busy_ns;
            }
            *reads_ns = start_ns + busy_ns;
            at_ns = at_ns.max(*reads_ns);
            die = if die + 1 == dies as usize { 0 } else { die + 1 };
        }
        let link_ns = config.interface.read_command_ns + self.link_ns(command.nr_sectors);
        self.fetched.push_back(Fetched { at_ns, link_ns, sequence, tag: command.tag });
        let mut i = self.fetched.len() - 1;
        while i > 0 && self.fetched[i - 1].at_ns > at_ns {
            self.fetched.swap(i - 1, i);
            i -= 1;
        }
    }

    /// Occupies the link for a command other than a read; returns until when.
    #[inline]
    fn link(&mut self, now_ns: u64, nr_sectors: u32) -> u64 {
        let command_ns = self.config.interface.write_command_ns + self.link_ns(nr_sectors);
        self.link_free_ns = self.link_free_ns.max(now_ns) + command_ns;
        self.link_free_ns
    }

    #[inline]
    fn write(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let mut at_ns = self.link(now_ns, command.nr_sectors);
        let mut left = command.nr_sectors;
        while left > 0 {
            let piece = left.min(self.config.program_sectors - self.open_sectors);
            at_ns = self.wait_for_room(at_ns, piece);
            self.open_sectors += piece;
            self.buffered_sectors += piece;
            left -= piece;
            if self.open_sectors == self.config.program_sectors {
                self.program(at_ns);
            }
        }
        self.written = true;
        if command.fua {
            self.program(at_ns);
            at_ns = at_ns.max(self.programmed_ns);
        }
        self.done.push(Time::from_ns(at_ns + self.config.interface.write_latency_ns), sequence, command.tag);
    }

    /// When, from `at_ns` on, the buffer has room for `piece` sectors.
    #[inline]
    fn wait_for_room(&mut self, mut at_ns: u64, piece: u32) -> u64 {
        while let Some(&(end_ns, sectors)) = self.programs.front() {
            if end_ns > at_ns && self.buffered_sectors + piece <= self.config.buffer_sectors {
                break;
            }
            at_ns = at_ns.max(end_ns);
            self.buffered_sectors -= sectors;
            self.programs.pop_front();
        }
        at_ns
    }

    /// Programs what is open, on the next die.
    #[inline]
    fn program(&mut self, at_ns: u64) {
        if self.open_sectors == 0 {
            return;
        }
        let die = &mut self.dies[self.next_die];
        let start_ns = at_ns.max(die.programs_ns).max(die.reads_ns);
        die.programs_ns = start_ns + self.config.program_ns;
        let end_ns = die.programs_ns;
        self.next_die = if self.next_die + 1 == self.dies.len() { 0 } else { self.next_die + 1 };
        self.programmed_ns = self.programmed_ns.max(end_ns);
        self.programs.push_back((end_ns, self.open_sectors));
        self.open_sectors = 0;
        let mut i = self.programs.len() - 1;
        while i > 0 && self.programs[i - 1].0 > end_ns {
            self.programs.swap(i - 1, i);
            i -= 1;
        }
    }

    fn flush(&mut self, now_ns: u64, tag: u32, sequence: u64) {
        let mut at_ns = self.link(now_ns, 0) + self.config.interface.write_latency_ns;
        if self.written {
            self.program(at_ns);
            at_ns = at_ns.max(self.programmed_ns) + self.config.flush_ns;
            self.written = false;
        }
        self.done.push(Time::from_ns(at_ns), sequence, tag);
    }

    /// When the next read has crossed the link, if nothing comes before it.
    #[inline]
    fn next_fetched(&self) -> Option<Time> {
        let fetched = self.fetched.front()?;
        Some(Time::from_ns(self.link_free_ns.max(fetched.at_ns) + fetched.link_ns))
    }

    /// Gives the link to the reads that left their dies up to `now_ns`.
    #[inline]
    fn run(&mut self, now_ns: u64) {
        while let Some(&Fetched { at_ns, link_ns, sequence, tag }) = self.fetched.front() {
            if at_ns > now_ns {
                break;
            }
            self.fetched.pop_front();
            self.link_free_ns = self.link_free_ns.max(at_ns) + link_ns;
            self.done.push(Time::from_ns(self.link_free_ns), sequence, tag);
        }
    }
}

impl Device for Ssd {
    fn card(&self) -> &Card {
        &self.card
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        let now_ns = now.as_ns();
        self.run(now_ns);
        debug_assert!(self.done.len() + self.fetched.len() < self.card.depth as usize, "more than depth commands");
        let sequence = self.submitted;
        self.submitted += 1;
        match command.op {
            Op::Read => self.read(now_ns, &command, sequence),
            Op::Write | Op::WriteZeroes => self.write(now_ns, &command, sequence),
            Op::Flush => self.flush(now_ns, command.tag, sequence),
            Op::Discard => {
                let at_ns = self.link(now_ns, 0) + self.config.interface.write_latency_ns;
                self.done.push(Time::from_ns(at_ns), sequence, command.tag);
            }
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        match (self.done.next(), self.next_fetched()) {
            (Some(done), Some(fetched)) => Some(done.min(fetched)),
            (done, fetched) => done.or(fetched),
        }
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        self.run(now.as_ns());
        self.done.pop(now)
    }
}
