//! Submissions of tasks: bios, plugs, and waiting for room.

use iosched::controllers::Wbt;
use iosched::{Bio, ContextId, Flags, Op, Submit};

use super::{Host, PLUG_MAX};
use crate::model::{Conditions, Layer, Ordering, Sequence};
use crate::operation::{Near, SectorChoice};
use crate::violation::{Checked, Violation, ensure};

/// Largest gap between two bios that a bio fills, in sectors.
const FILL_MAX: u64 = 64;

/// The rest of a bio that the host splits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remainder {
    op: Op,
    flags: Flags,
    sector: u64,
    nr_sectors: u32,
}

/// A past submission.
#[derive(Clone, Copy, Debug)]
struct Past {
    op: Op,
    flags: Flags,
    sector: u64,
    end: u64,
}

/// The last eight submissions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    ring: [Past; 8],
    next: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self { ring: [Past { op: Op::Read, flags: Flags::empty(), sector: 0, end: 0 }; 8], next: 0 }
    }
}

impl Recent {
    #[inline]
    fn push(&mut self, past: Past) {
        self.ring[self.next % 8] = past;
        self.next += 1;
    }

    /// Returns the first sector of the nearest submission after sector `end`.
    fn next_behind(&self, end: u64) -> Option<u64> {
        self.ring.iter().map(|past| past.sector).filter(|&sector| sector > end).min()
    }

    #[inline]
    fn get(&self, recent: u8) -> Past {
        self.ring[self.next.wrapping_sub(1 + usize::from(recent)) % 8]
    }
}

/// Result of submitting a bio.
#[derive(PartialEq)]
enum Sent {
    Accepted,
    Full,
}

impl Host {
    /// Submits an I/O of a task. If the task already waits for room, does nothing and returns
    /// false.
    #[inline]
    pub(super) fn submit(
        &mut self,
        task: u8,
        op: Op,
        flags: Flags,
        place: SectorChoice,
        nr_sectors: u16,
    ) -> Result<bool, Violation> {
        let task = usize::from(task) % self.tasks.len();
        if self.tasks[task].remainder.is_some() {
            return Ok(false);
        }
        // A few parts are enough.
        let nr_sectors = u32::from(nr_sectors).min(4 * self.driver.queue().max_sectors());
        let remainder = self.place(task, op, flags, place, nr_sectors);
        let Remainder { op, flags, sector, nr_sectors } = remainder;
        if op != Op::Flush {
            let past = Past { op, flags, sector, end: sector + u64::from(nr_sectors) };
            self.tasks[task].recent.push(past);
            self.tasks[task].last_end = past.end;
            self.recent.push(past);
        }
        self.send(task, remainder)?;
        Ok(true)
    }

    #[inline]
    fn place(&self, task: usize, op: Op, flags: Flags, place: SectorChoice, nr_sectors: u32) -> Remainder {
        if op == Op::Flush {
            return Remainder { op, flags, sector: 0, nr_sectors: 0 };
        }
        let machinery = Flags::FUA | Flags::PREFLUSH;
        let length = u64::from(nr_sectors);
        match place {
            SectorChoice::At(sector) => {
                let sector = self.config.first_sector + u64::from(sector) % self.config.nr_sectors;
                Remainder { op, flags, sector, nr_sectors }
            }
            SectorChoice::Onward => Remainder { op, flags, sector: self.tasks[task].last_end, nr_sectors },
            SectorChoice::Near { recent, of_task, how, alike } => {
                let ring = if of_task { &self.tasks[task].recent } else { &self.recent };
                let past = ring.get(recent);
                let room = ring.next_behind(past.end).map(|next| next - past.end).filter(|&room| room <= FILL_MAX);
                let (sector, nr_sectors) = match how {
                    Near::Behind => (past.end, nr_sectors),
                    Near::Before => (past.sector.saturating_sub(length), nr_sectors),
                    Near::Same => (past.sector, nr_sectors),
                    Near::Beyond => (past.end + length, nr_sectors),
                    Near::Fill => (past.end, room.map_or(nr_sectors, |room| room as u32)),
                };
                let alike = alike && !flags.intersects(machinery);
                let (op, flags) = if alike { (past.op, past.flags - machinery) } else { (op, flags) };
                Remainder { op, flags, sector, nr_sectors }
            }
        }
    }

    /// Submits all of `left`, in parts that are short enough for the queue. If the queue is full,
    /// the task waits.
    #[inline]
    fn send(&mut self, task: usize, mut left: Remainder) -> Checked {
        let context = self.tasks[task].context;
        loop {
            let nr_sectors = left.nr_sectors.min(self.driver.queue().max_sectors());
            let Remainder { op, flags, sector, .. } = left;
            let bio = Bio { op, flags, sector, nr_sectors, context, cookie: 0 };
            if self.submit_bio(task, bio)? == Sent::Full {
                self.coverage.full += 1;
                self.tasks[task].remainder = Some(left);
                // The task sleeps, so the requests on its plug must not wait for the task.
                return self.unplug(task);
            }
            left.sector += u64::from(nr_sectors);
            left.nr_sectors -= nr_sectors;
            self.attend_to_kick()?;
            if left.nr_sectors == 0 {
                return Ok(());
            }
        }
    }

    #[inline]
    fn submit_bio(&mut self, task: usize, mut bio: Bio) -> Result<Sent, Violation> {
        let switching = self.driver.queue().is_switching();
        let (max_sectors, cfq, layer) = (self.driver.queue().max_sectors(), self.is_cfq(), self.layer());
        bio.cookie = self.model.announce(self.now, &bio, Conditions { max_sectors, cfq, layer, switching });
        let mut barrier = false;
        let outcome = self.driver.submit(self.now, &bio);
        match outcome {
            Submit::Queued(id) => {
                self.digest.add(6 + ((id.index() as u64) << 8));
                self.coverage.bios += 1;
                let layer = self.layer();
                if layer == Layer::Multi {
                    // The model does not count the new request yet. Requests of the same plug may
                    // have been absorbed.
                    let arena = self.arena() - 1;
                    self.coverage.absorbed +=
                        self.model.reconcile(self.now, arena, self.driver.queue().max_sectors())?;
                }
                let arena = self.arena();
                self.model.founded(self.now, bio.cookie, id.index(), arena)?;
                if let Some(audit) = &mut self.audit {
                    let nr_requests = nr_requests(self.driver.queue());
                    audit.founded(&self.model, bio.cookie, layer, nr_requests)?;
                }
                barrier = self.is_barrier(bio.cookie);
                let collects = self.tasks[task].plugged && layer == Layer::Single;
                if collects && !switching && self.is_elevators(bio.cookie) {
                    self.collected(task);
                }
            }
            Submit::Merged => {
                self.digest.add(7);
                self.coverage.bios += 1;
                self.coverage.merges += 1;
                let arena = self.arena();
                let absorbed = self.model.merged(self.now, bio.cookie, arena, switching, self.layer())?;
                self.coverage.absorbed += u64::from(absorbed);
            }
            Submit::Done(done) => {
                self.digest.add(8);
                self.coverage.bios += 1;
                self.model.done_at_once(self.now, bio.cookie, &done)?;
            }
            Submit::Held => {
                ensure!(false, Progress, "bio {} waits for a controller, but no group has a limit", bio.cookie)
            }
            Submit::Full => {
                self.digest.add(9);
                self.model.withdraw(bio.cookie);
                if let Some(audit) = &self.audit
                    && self.layer() == Layer::Single
                {
                    audit.full(bio.is_sync(), nr_requests(self.driver.queue()))?;
                }
                return Ok(Sent::Full);
            }
        }
        self.look_at_decisions()?;
        if barrier {
            self.drained_for(bio.cookie);
        }
        Ok(Sent::Accepted)
    }

    /// Returns whether the elevator receives this accepted bio.
    fn is_elevators(&self, cookie: u64) -> bool {
        self.model.bio(cookie).is_some_and(|bio| bio.sequence == Sequence::None && bio.ordering == Ordering::None)
    }

    fn is_barrier(&self, cookie: u64) -> bool {
        self.model.bio(cookie).is_some_and(|bio| bio.ordering == Ordering::Barrier)
    }

    /// Records that a barrier has emptied first all plugs and then the elevator.
    fn drained_for(&mut self, barrier: u64) {
        self.coverage.barriers += 1;
        for task in &mut self.tasks {
            task.on_plug = 0;
        }
        if let Some(audit) = &mut self.audit {
            audit.barrier(barrier);
        }
    }

    /// If a switch has ended, handles the bios that it held back.
    pub(super) fn attend_to_takeover(&mut self, was_switching: bool) {
        if was_switching
            && !self.driver.queue().is_switching()
            && let Some(barrier) = self.model.taken_over(self.layer())
        {
            self.coverage.barriers_held += 1;
            self.drained_for(barrier);
        }
    }

    /// Records that a request was added to the task's plug.
    fn collected(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        task.on_plug += 1;
        if task.on_plug == PLUG_MAX {
            self.coverage.full_plugs += 1;
            task.on_plug = 0;
        }
    }

    pub(super) fn plug(&mut self, task: u8) -> Checked {
        let task = usize::from(task) % self.tasks.len();
        if self.tasks[task].remainder.is_none() {
            self.driver.plug(self.tasks[task].context);
            self.tasks[task].plugged = true;
        }
        Ok(())
    }

    pub(super) fn unplug(&mut self, task: usize) -> Checked {
        let context = self.tasks[task].context;
        loop {
            let more = self.driver.unplug(self.now, context);
            self.digest.add(10 + u64::from(more));
            if self.layer() == Layer::Multi {
                self.reconcile()?;
                self.look_at_decisions()?;
                self.attend_to_kick()?;
            }
            if !more {
                break;
            }
            if self.layer() == Layer::Multi {
                continue;
            }
            ensure!(
                self.tasks[task].on_plug > 0,
                DispatchedOnce,
                "the plug of {context:?} has more requests than the \
                process collected"
            );
            self.tasks[task].on_plug -= 1;
            self.look_at_decisions()?;
            self.attend_to_kick()?;
        }
        ensure!(
            self.tasks[task].on_plug == 0,
            Progress,
            "{} requests of {context:?} are lost on its plug",
            self.tasks[task].on_plug
        );
        self.tasks[task].plugged = false;
        Ok(())
    }

    /// Returns the number of remaining parts of all I/Os for which tasks wait.
    pub(super) fn parts_left(&self) -> u32 {
        let left = self.tasks.iter().filter_map(|task| task.remainder);
        left.map(|left| left.nr_sectors.div_ceil(self.driver.queue().max_sectors()).max(1)).sum()
    }

    /// Continues a task that waited for room and was woken.
    #[inline]
    pub(super) fn wake(&mut self, context: ContextId) -> Checked {
        self.digest.add(12 + ((context.index() as u64) << 8));
        self.coverage.woken += 1;
        let task = self.tasks.iter().position(|task| task.context == context);
        let left = task.and_then(|task| self.tasks[task].remainder.take().map(|left| (task, left)));
        ensure!(left.is_some(), Allocation, "{context:?} was woken, but does not wait");
        match left {
            Some((task, left)) => {
                if let Some(audit) = &mut self.audit {
                    audit.waits_no_more(self.tasks[task].pid);
                }
                self.send(task, left)
            }
            None => Ok(()),
        }
    }

    /// Checks that no task waits for room while no request is allocated, and that no task waits at
    /// wbt while wbt counts no request. Such a task would never be woken.
    pub(super) fn check_waiters(&self) -> Checked {
        for task in &self.tasks {
            let Some(Remainder { op, flags, .. }) = task.remainder else { continue };
            let sync = !op.is_write() || flags.contains(Flags::SYNC);
            let allocated = match &self.audit {
                Some(audit) if self.layer() == Layer::Single => u64::from(audit.allocated(sync)),
                _ => self.model.requests,
            };
            ensure!(
                allocated > 0,
                Allocation,
                "{:?} waits for a free request (sync: {sync}), but no request is allocated",
                task.context
            );
            if let Some(audit) = &self.audit
                && self.layer() == Layer::Multi
                && audit.is_throttled(task.pid)
            {
                let waits = (op, flags);
                let is_counted = |bio: (Op, Flags)| counted(bio).is_some() && counted(bio) == counted(waits);
                // Tasks that passed wbt and wait for a tag also count.
                let others = self.tasks.iter().filter(|other| !audit.is_throttled(other.pid));
                let mut others = others.filter_map(|other| other.remainder).map(|left| (left.op, left.flags));
                let is_kept = others.any(is_counted) || self.model.founders().any(is_counted);
                ensure!(
                    is_kept,
                    Allocation,
                    "{:?} waits in wbt, but wbt counts no such write: {waits:?}",
                    task.context
                );
            }
        }
        Ok(())
    }
}

/// Returns the counter of wbt that counts a bio.
fn counted((op, flags): (Op, Flags)) -> Option<(bool, bool)> {
    Wbt::is_for(op, flags).then_some((op == Op::Discard, flags.contains(Flags::SWAP)))
}

/// Returns the present value of `nr_requests`.
pub(super) fn nr_requests(queue: &iosched::RequestQueue) -> u32 {
    queue.attribute("nr_requests").ok().and_then(|value| value.parse().ok()).unwrap_or(0)
}
