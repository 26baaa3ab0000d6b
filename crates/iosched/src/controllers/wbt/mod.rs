//! wbt: writeback throttling.
//!
//! Buffered writes come in large bursts, and a reader must wait for all of them. wbt limits writes
//! in flight. The fastest read in a window of time must stay below a target. After each window, wbt
//! lowers or raises the limit by one step. wbt does not limit reads, and does not limit the writes
//! of a process that waits for each of its writes (`O_DIRECT`).
//!
//! | file | content |
//! |---|---|
//! | `limits.rs` | limits on writes in flight, by kind and step |
//! | `window.rs` | the verdict on a window's latencies, and the next step |

mod limits;
mod window;

use self::limits::Limits;
use self::window::Samples;
use super::bio_state::{BioId, BioState, Mark, Passage, WbtClass};
use super::site::Site;
use super::waits::Waits;
use super::wheel::TimerId;
use super::write_error::WriteError;
use crate::context::CgroupId;
use crate::decision::WbtEvent;
use crate::kernel::KernelVersion;
use crate::request::{Flags, Op};
use crate::time::{MICROSECOND_NS, MILLISECOND_NS, Time};

/// Default target on devices that are not rotational, ns.
const TARGET_NONROTATIONAL_NS: u64 = 2 * MILLISECOND_NS;
/// Default target on rotational devices, ns.
const TARGET_ROTATIONAL_NS: u64 = 75 * MILLISECOND_NS;

/// Flags of a write with `O_DIRECT`: the process waits for each write, and sends more.
const DIRECT: Flags = Flags::SYNC.union(Flags::IDLE);

/// Returns whether a write to `wbt_lat_usec` waits until no bio is in flight. Measured
/// under Linux 6.1.192, 6.12.117 and 6.18.44; 6.5 to 6.10 are as specified.
fn drains(kernel: KernelVersion) -> bool {
    !kernel.is_since(6, 5) || kernel.is_since(6, 11)
}

/// Returns whether wbt also sees processes outside of the root cgroup that sleep because they have
/// dirtied much memory.
fn sees_all_dirtiers(kernel: KernelVersion) -> bool {
    kernel.is_since(6, 8)
}

/// Returns whether io.cost switches wbt off while io.cost is on.
fn yields_to_io_cost(kernel: KernelVersion) -> bool {
    kernel.is_since(6, 2)
}

/// Causes for which wbt is off by default.
const BFQ: usize = 0;
const IO_COST: usize = 1;

/// Controller wbt of a queue.
#[derive(Debug)]
pub struct Wbt {
    target_ns: u64,
    target_default_ns: u64,
    enabled: bool,
    /// Whether a write to the file has changed the state of wbt. wbt then ignores which elevator is
    /// active.
    written: bool,
    /// Whether a write to the file waits until no bio is in flight.
    drains: bool,
    /// Causes for which wbt is off by default: bfq is the elevator, io.cost is on.
    off_for: [bool; 2],
    /// Whether io.cost switches wbt off.
    yields_to_io_cost: bool,
    /// Whether processes below the root cgroup count in `dirtier_slept`.
    sees_all_dirtiers: bool,
    write_cache: bool,
    queue_depth: u32,
    step: i32,
    limits: Limits,
    waits: [Waits; 3],
    window_ns: u64,
    /// Number of windows in a row without a verdict.
    unknown: u32,
    /// Times of the last start and of the last completion of a read.
    last_issue: Time,
    last_completion: Time,
    /// Jiffy in which a process that dirties memory last slept because of this device.
    dirtier_slept: Option<u64>,
    /// Oldest read in flight that is watched, with the time when the device took it.
    watched: Option<(BioId, Time)>,
    samples: Samples,
    timer: TimerId,
}

impl Wbt {
    /// Creates the controller with the default target, turned on.
    pub fn new(site: &mut Site, rotational: bool, write_cache: bool, queue_depth: u32) -> Self {
        let target_ns = Self::target_default_us(rotational) * MICROSECOND_NS;
        let (timer, now) = (site.wheel.create(), site.now);
        let wbt = Self {
            target_ns,
            target_default_ns: target_ns,
            enabled: true,
            written: false,
            drains: drains(KernelVersion::default()),
            off_for: [false; 2],
            yields_to_io_cost: yields_to_io_cost(KernelVersion::default()),
            sees_all_dirtiers: sees_all_dirtiers(KernelVersion::default()),
            write_cache,
            queue_depth,
            step: 0,
            limits: Limits::first(queue_depth, target_ns),
            waits: Default::default(),
            window_ns: window::WINDOW_NS,
            unknown: 0,
            last_issue: now,
            last_completion: now,
            dirtier_slept: None,
            watched: None,
            samples: Samples::default(),
            timer,
        };
        wbt.note_set(site);
        wbt
    }

    /// Selects the rules of a version of Linux.
    pub(super) fn of_kernel(self, kernel: KernelVersion) -> Self {
        Self {
            drains: drains(kernel),
            yields_to_io_cost: yields_to_io_cost(kernel),
            sees_all_dirtiers: sees_all_dirtiers(kernel),
            ..self
        }
    }

    /// Returns whether a write to the file waits until no bio is in flight.
    pub(super) fn drains(&self) -> bool {
        self.drains
    }

    /// Returns the timer of the window.
    #[must_use]
    pub fn timer_id(&self) -> TimerId {
        self.timer
    }

    /// Returns the number of writes of a class in flight.
    #[must_use]
    pub fn inflight(&self, class: WbtClass) -> i64 {
        self.waits[class as usize].inflight
    }

    /// Returns the class that a bio counts for while it waits or is in flight.
    #[must_use]
    pub fn class(state: &BioState) -> WbtClass {
        match state.op {
            _ if state.flags.contains(Flags::SWAP) => WbtClass::Swap,
            Op::Discard => WbtClass::Discard,
            _ => WbtClass::Background,
        }
    }

    /// Returns whether wbt may make a bio wait.
    #[must_use]
    pub fn is_for(op: Op, flags: Flags) -> bool {
        match op {
            Op::Write => !flags.contains(DIRECT),
            Op::Discard => true,
            Op::Read | Op::WriteZeroes | Op::Flush => false,
        }
    }

    /// Returns the default target, µs.
    #[must_use]
    pub fn target_default_us(rotational: bool) -> u64 {
        (if rotational { TARGET_ROTATIONAL_NS } else { TARGET_NONROTATIONAL_NS }) / MICROSECOND_NS
    }

    fn mark(&self, state: &BioState) -> Mark {
        match state.op {
            _ if !self.enabled => Mark::None,
            Op::Read => Mark::Read,
            op if Self::is_for(op, state.flags) => Mark::Tracked(Self::class(state)),
            _ => Mark::None,
        }
    }

    /// Decides whether a new bio may pass or must wait.
    pub fn throttle(&mut self, site: &mut Site, id: BioId) -> Passage {
        let state = &site.bios[id];
        match self.mark(state) {
            Mark::None => Passage::Pass,
            Mark::Read => {
                self.last_issue = site.now;
                Passage::Pass
            }
            Mark::Tracked(class) => {
                let limit = self.limit(site, state);
                let passage = self.waits[class as usize].arrive(id, limit);
                if passage == Passage::Pass {
                    site.bios[id].wbt_place = Some(class);
                    self.resumed(site);
                }
                passage
            }
        }
    }

    /// Continues a bio that waited.
    pub fn resumed(&mut self, site: &mut Site) {
        if !site.wheel.is_pending(self.timer) {
            self.arm(site);
        }
    }

    /// Handles a bio that has become a request.
    pub fn issued(&mut self, site: &mut Site, id: BioId) {
        let mark = self.mark(&site.bios[id]);
        site.bios[id].wbt = mark;
    }

    /// Handles a request that the device takes.
    pub fn started(&mut self, site: &mut Site, id: BioId) {
        if self.enabled && site.bios[id].wbt == Mark::Read && self.watched.is_none() {
            self.watched = Some((id, site.now));
        }
    }

    /// Handles a request that the device has finished.
    pub fn completed(&mut self, site: &mut Site, id: BioId) {
        let BioState { op, dispatched, .. } = site.bios[id];
        if site.wheel.is_pending(self.timer) {
            self.samples.add(op, site.now.since(dispatched));
        }
        self.done(site, id);
    }

    /// Handles the end of a request: the device has
    /// finished it, or another request has absorbed it.
    pub fn done(&mut self, site: &mut Site, id: BioId) {
        let state = &site.bios[id];
        let Mark::Tracked(class) = state.wbt else {
            if self.watched.is_some_and(|(watched, _)| watched == id) {
                self.watched = None;
            }
            if state.wbt == Mark::Read && self.enabled {
                self.last_completion = site.now;
            }
            return;
        };
        let limit = i64::from(match state.op {
            Op::Discard => self.limits.background,
            _ if self.write_cache && !self.dirties_much(site) => 0,
            _ => self.limits.normal,
        });
        let waits = &mut self.waits[class as usize];
        waits.inflight -= 1;
        let inflight = waits.inflight;
        if inflight > 0 && inflight >= limit {
            return;
        }
        if waits.first().is_some() && (inflight == 0 || limit - inflight >= i64::from(self.limits.background / 2)) {
            self.wake(site, class);
        }
    }

    /// Returns whether a process that dirties memory slept
    /// because of this device within the last second.
    fn dirties_much(&self, site: &Site) -> bool {
        self.dirtier_slept.is_some_and(|slept| site.jiffies() < slept + u64::from(site.hz))
    }

    /// Returns the limit that applies to a bio: a number of writes of the bio's class in flight.
    fn limit(&self, site: &Site, state: &BioState) -> u32 {
        const PRESSING: Flags = Flags::SYNC.union(Flags::PRIO).union(Flags::SWAP);
        if state.op == Op::Discard {
            return self.limits.background;
        }
        if state.flags.intersects(PRESSING) || self.dirties_much(site) {
            return self.limits.depth;
        }
        let (now, recently) = (site.jiffies(), u64::from(site.hz / 10));
        let is_recent = |time: Time| now < time.as_ns() / site.jiffy_ns + recently;
        let reads = is_recent(self.last_issue) || is_recent(self.last_completion);
        if state.flags.contains(Flags::AHEAD) || reads { self.limits.background } else { self.limits.normal }
    }

    fn wake(&mut self, site: &mut Site, class: WbtClass) {
        // Each bio has its own limit. A bio that may not continue holds up all bios after it.
        while let Some(first) = self.waits[class as usize].first() {
            let limit = self.limit(site, &site.bios[first]);
            if !self.waits[class as usize].wake_one(site, limit) {
                return;
            }
            site.bios[first].wbt_place = Some(class);
        }
    }

    fn wake_all(&mut self, site: &mut Site) {
        for class in WbtClass::ALL {
            self.wake(site, class);
        }
    }

    // ---- changes

    /// Writes `wbt_lat_usec`: a target in µs, 0 to turn wbt off, -1 for the default.
    ///
    /// # Errors
    /// Fails if `text` is not a number of this kind; nothing changes then.
    pub fn write(&mut self, site: &mut Site, text: &str) -> Result<(), WriteError> {
        let target_us: i64 = text.trim().parse().map_err(|_| WriteError::Invalid)?;
        let target_ns = match target_us {
            ..-1 => return Err(WriteError::Invalid),
            -1 => self.target_default_ns,
            us => us.unsigned_abs().wrapping_mul(MICROSECOND_NS),
        };
        self.set_target(site, target_ns);
        Ok(())
    }

    /// Lets all waiting bios continue, without counting them as writes in flight.
    pub(super) fn release(&mut self, site: &mut Site) {
        for waits in &mut self.waits {
            waits.release(site);
        }
    }

    /// Makes the two marks of a bio agree when the bio becomes a request. A bio that has a place
    /// but is not tracked returns the place. A bio that is tracked but has no place is no longer
    /// tracked.
    pub(super) fn even_out(&mut self, site: &mut Site, id: BioId) {
        let state = &mut site.bios[id];
        match (state.wbt, state.wbt_place) {
            (Mark::Tracked(_), None) => state.wbt = Mark::None,
            (Mark::None | Mark::Read, Some(class)) => {
                state.wbt_place = None;
                self.waits[class as usize].inflight -= 1;
                // wbt was turned off in the meantime, so no other event would wake the next bio.
                self.wake(site, class);
            }
            _ => {}
        }
    }

    /// Turns wbt off until a target is written.
    pub fn turn_off(&mut self, site: &mut Site) {
        self.set_target(site, 0);
    }

    fn set_target(&mut self, site: &mut Site, target_ns: u64) {
        if target_ns != self.target_ns {
            self.target_ns = target_ns;
            self.enabled = target_ns != 0;
            (self.written, self.off_for) = (true, [false; 2]);
            self.begin_anew(site);
        }
        self.note_set(site);
    }

    /// Returns the content of `wbt_lat_usec`.
    #[must_use]
    pub fn read(&self) -> u64 {
        if self.enabled { self.target_ns / MICROSECOND_NS } else { 0 }
    }

    /// Handles a new depth of the device's queue.
    pub fn set_queue_depth(&mut self, site: &mut Site, queue_depth: u32) {
        self.queue_depth = queue_depth;
        self.begin_anew(site);
        self.note_set(site);
    }

    fn begin_anew(&mut self, site: &mut Site) {
        self.step = 0;
        self.limits = Limits::first(self.queue_depth, self.target_ns);
        self.wake_all(site);
    }

    /// Handles a switch to bfq, which throttles writes itself.
    pub fn bfq_taken(&mut self, site: &mut Site) {
        self.turn_off_for(site, BFQ);
    }

    /// Handles a switch from bfq to another elevator.
    pub fn bfq_given_up(&mut self) {
        self.turn_on_for(BFQ);
    }

    /// Turns wbt off when io.cost is switched on, and on again when io.cost is switched off, unless
    /// a target was written.
    pub(super) fn follow_io_cost(&mut self, site: &mut Site) {
        match self.yields_to_io_cost && site.io_cost_is_on {
            true => self.turn_off_for(site, IO_COST),
            false => self.turn_on_for(IO_COST),
        }
    }

    fn turn_off_for(&mut self, site: &mut Site, cause: usize) {
        if !self.written {
            (self.enabled, self.off_for[cause]) = (false, true);
            site.wheel.cancel(self.timer);
        }
    }

    fn turn_on_for(&mut self, cause: usize) {
        if std::mem::take(&mut self.off_for[cause]) && self.off_for == [false; 2] {
            self.enabled = true;
        }
    }

    /// Records that a process of `group` has dirtied much memory, and sleeps until this device has
    /// written some of it. In some versions, only processes of the root count.
    pub fn dirtier_sleeps(&mut self, site: &Site, group: CgroupId) {
        if self.sees_all_dirtiers || group == CgroupId::ROOT {
            self.dirtier_slept = Some(site.jiffies());
        }
    }

    fn note_set(&self, site: &mut Site) {
        let &Self { target_ns, limits: Limits { background, normal, depth, .. }, .. } = self;
        site.note(|| WbtEvent::Set { target_ns, background, normal, depth }.into());
    }
}
