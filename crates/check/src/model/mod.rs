//! The model, which is independent of the library's data: bios in flight, requests in the device,
//! the guarantees of flushes, and the sums that the statistics should show.

pub(crate) mod audit;
mod barrier;
mod deadline;
mod flush;
mod mclock;
mod sums;
#[cfg(test)]
mod tests;

use iosched::{Bio, BioDone, ContextId, Flags, IoError, Op, QueueConfig, Sector, Time};

use crate::violation::{Checked, ensure};
use barrier::Barriers;
pub(crate) use barrier::Ordering;
use flush::{Flushes, Served};
pub(crate) use sums::Sums;

/// Bits of a cookie that hold the slot of its record.
const SLOT_BITS: u32 = 24;

/// Number of contexts that the queue creates for itself. There is one, for the worker that
/// continues bios that controllers held back.
const WORKERS: usize = 1;

/// Returns the slot of a cookie's record.
#[inline]
pub(crate) fn slot_of(cookie: u64) -> usize {
    (cookie & ((1 << SLOT_BITS) - 1)) as usize
}

/// A bio in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BioRecord {
    /// Cookie, or 0 for a free record.
    pub(crate) cookie: u64,
    pub(crate) sector: Sector,
    pub(crate) submitted: Time,
    /// Moment after which the device flush for this bio must start.
    pub(crate) flush_after: u64,
    pub(crate) nr_sectors: u32,
    /// The size limit when the bio was submitted, sectors.
    max_sectors: u32,
    pub(crate) context: ContextId,
    /// Index of the request that began with this bio.
    request: u32,
    pub(crate) op: Op,
    /// Flags, without those that the queue may ignore.
    pub(crate) flags: Flags,
    founder: bool,
    /// Whether the elevator was CFQ at submission. CFQ then decided whether the bio joined a
    /// request.
    cfq: bool,
    /// Reason why the bio bypasses the elevator.
    pub(crate) sequence: Sequence,
    /// Whether the bio is a barrier.
    pub(crate) ordering: Ordering,
}

/// State of the queue when a bio is submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// The size limit, sectors.
    pub(crate) max_sectors: u32,
    /// Whether the elevator is CFQ.
    pub(crate) cfq: bool,
    pub(crate) layer: Layer,
    /// Whether a switch of elevators is in progress.
    pub(crate) switching: bool,
}

/// Progress of a bio that needs a flush of the device's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sequence {
    /// The bio needs no flush.
    None,
    /// The bio completes after a flush.
    Flush,
    /// The data of the bio is written after a flush.
    Before,
    /// The data of the bio may be written.
    Data,
    /// The data of the bio is written. The bio completes after a flush.
    After,
}

impl BioRecord {
    pub(crate) fn is_sync(&self) -> bool {
        !self.op.is_write() || self.flags.contains(Flags::SYNC)
    }
}

/// A request as the device received it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) cookie: u64,
    pub(crate) sector: Sector,
    pub(crate) nr_sectors: u32,
    pub(crate) op: Op,
    pub(crate) sync: bool,
    pub(crate) fua: bool,
}

/// Layer of a request queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    /// Linux' legacy layer.
    Single,
    /// blk-mq.
    Multi,
}

#[derive(Clone, Copy, Default, Debug)]
struct ContextUse {
    alive: bool,
    bios: u32,
}

/// The model of one queue.
#[derive(Debug)]
pub(crate) struct Model {
    write_cache: bool,
    device_fua: bool,
    /// Whether flushes are barriers in the single-queue layer.
    makes_barriers: bool,
    bios: Vec<BioRecord>,
    free: Vec<u32>,
    serial: u64,
    /// Requests in the device, by index.
    in_device: Vec<Option<Seen>>,
    /// Requests that the device gave back and that were not dispatched again. They must be
    /// dispatched in reverse order.
    given_back: Vec<u64>,
    /// Number of events so far. It orders flushes.
    moment: u64,
    flushes: Flushes,
    barriers: Barriers,
    pub(crate) sums: Sums,
    /// Number of requests that are allocated for bios and not finished.
    pub(crate) requests: u64,
    /// Number of bios that are not complete and that were the first bio of an absorbed request.
    absorbed: u64,
    requests_most: u64,
    /// Largest size limit, sectors, that was valid when another request absorbed an inserted
    /// request.
    insertion_limit: u32,
    contexts: Vec<ContextUse>,
    contexts_used: usize,
    contexts_most: usize,
}

impl Model {
    pub(crate) fn new(config: &QueueConfig, now: Time) -> Self {
        Self {
            write_cache: config.write_cache,
            device_fua: config.fua,
            makes_barriers: config.barriers,
            bios: Vec::new(),
            free: Vec::new(),
            serial: 0,
            in_device: Vec::new(),
            given_back: Vec::new(),
            moment: 0,
            flushes: Flushes::default(),
            barriers: Barriers::default(),
            sums: Sums::new(now),
            requests: 0,
            absorbed: 0,
            requests_most: 0,
            insertion_limit: 0,
            contexts: Vec::new(),
            contexts_used: 0,
            contexts_most: 0,
        }
    }

    /// Returns the number of bios in flight.
    pub(crate) fn live(&self) -> usize {
        self.bios.len() - self.free.len()
    }

    /// Returns the record of a bio in flight.
    #[inline]
    pub(crate) fn bio(&self, cookie: u64) -> Option<&BioRecord> {
        self.bios.get(slot_of(cookie)).filter(|record| record.cookie == cookie)
    }

    /// Returns operation and flags of all bios in flight with which a request began.
    pub(crate) fn founders(&self) -> impl Iterator<Item = (Op, Flags)> + '_ {
        self.bios.iter().filter(|record| record.cookie != 0 && record.founder).map(|record| (record.op, record.flags))
    }

    // ---- submission

    /// Records a bio that is about to be submitted, and returns its cookie.
    pub(crate) fn announce(&mut self, now: Time, bio: &Bio, conditions: Conditions) -> u64 {
        let Conditions { max_sectors, cfq, layer, switching } = conditions;
        self.serial += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.bios.push(BioRecord {
                cookie: 0,
                sector: 0,
                submitted: Time::ZERO,
                flush_after: 0,
                nr_sectors: 0,
                max_sectors: 0,
                context: bio.context,
                request: 0,
                op: Op::Read,
                flags: Flags::empty(),
                founder: false,
                cfq: false,
                sequence: Sequence::None,
                ordering: Ordering::None,
            });
            self.bios.len() as u32 - 1
        });
        let cookie = self.serial << SLOT_BITS | u64::from(slot);
        let flags = if self.write_cache { bio.flags } else { bio.flags - Flags::PREFLUSH - Flags::FUA };
        let sequence = if bio.op == Op::Flush {
            Sequence::Flush
        } else if flags.contains(Flags::PREFLUSH) {
            Sequence::Before
        } else if flags.contains(Flags::FUA) && !self.device_fua {
            Sequence::Data
        } else {
            Sequence::None
        };
        let flushes_first = bio.op == Op::Flush || bio.flags.contains(Flags::PREFLUSH);
        let ordering = match layer {
            _ if !self.makes_barriers || !flushes_first => Ordering::None,
            _ if switching => Ordering::Undecided,
            Layer::Single => Ordering::Barrier,
            Layer::Multi => Ordering::None,
        };
        self.bios[slot as usize] = BioRecord {
            cookie,
            sector: bio.sector,
            submitted: now,
            flush_after: 0,
            nr_sectors: bio.nr_sectors,
            max_sectors,
            context: bio.context,
            request: u32::MAX,
            op: bio.op,
            flags,
            founder: false,
            cfq,
            sequence,
            ordering,
        };
        cookie
    }

    /// Removes the record of a bio that was refused.
    pub(crate) fn withdraw(&mut self, cookie: u64) {
        self.bios[slot_of(cookie)].cookie = 0;
        self.free.push(slot_of(cookie) as u32);
    }

    fn accept(&mut self, cookie: u64) -> &mut BioRecord {
        let record = &mut self.bios[slot_of(cookie)];
        self.contexts[record.context.index()].bios += 1;
        record
    }

    /// Records that the bio became the first bio of request `index`. `arena` is the number of
    /// existing requests, including the device flush.
    pub(crate) fn founded(&mut self, now: Time, cookie: u64, index: usize, arena: usize) -> Checked {
        self.moment += 1;
        let moment = self.moment;
        let record = self.accept(cookie);
        record.founder = true;
        record.request = index as u32;
        record.flush_after = moment;
        self.order(cookie);
        self.sums.advance(now);
        self.requests += 1;
        self.sums.in_flight = self.requests;
        self.requests_most = self.requests_most.max(self.requests + 1);
        if self.in_device.len() <= index {
            self.in_device.resize(index + 1, None);
        }
        ensure!(
            self.in_device[index].is_none(),
            DispatchedOnce,
            "rq{index} is in the device, but was dispatched again"
        );
        let expected = self.requests + u64::from(self.flushes.device.is_some());
        ensure!(arena as u64 == expected, CompletedOnce, "{arena} requests are alive instead of {expected}");
        Ok(())
    }

    /// Records that the bio joined a request. Returns whether this request absorbed another
    /// request.
    pub(crate) fn merged(
        &mut self,
        now: Time,
        cookie: u64,
        arena: usize,
        switching: bool,
        layer: Layer,
    ) -> Result<bool, super::Violation> {
        let record = *self.accept(cookie);
        ensure!(!switching, Switching, "bio {cookie:x} was merged while elevators were switched");
        ensure!(
            record.sequence == Sequence::None
                && !record.flags.contains(Flags::FUA)
                && record.ordering == Ordering::None,
            NothingCrossesAFlush,
            "bio {cookie:x}, {:?} {:?}, was merged",
            record.op,
            record.flags
        );
        let alive = arena as u64 - u64::from(self.flushes.device.is_some());
        // In the multi-queue layer, a request that absorbs another request may then be absorbed
        // itself.
        let lacks_one = alive + 1 == self.requests;
        if layer == Layer::Multi {
            // The bio may have had a separate request for a short time.
            self.requests_most = self.requests_most.max(self.requests + 2);
        }
        ensure!(
            alive == self.requests || lacks_one || layer == Layer::Multi && alive < self.requests,
            CompletedOnce,
            "{alive} requests are alive after a merge, but {} were alive before",
            self.requests
        );
        self.sums.merged(record.op);
        let absorbed = alive < self.requests;
        while alive < self.requests {
            self.sums.advance(now);
            self.sums.merged(record.op);
            self.requests -= 1;
            self.absorbed += 1;
            self.sums.in_flight = self.requests;
        }
        Ok(absorbed)
    }

    /// Counts the requests that were absorbed in a call that inserts requests in the multi-queue
    /// layer. Returns the number of these requests. `max_sectors` is the present limit.
    pub(crate) fn reconcile(&mut self, now: Time, arena: usize, max_sectors: u32) -> Result<u64, super::Violation> {
        let alive = arena as u64 - u64::from(self.flushes.device.is_some());
        ensure!(
            alive <= self.requests,
            CompletedOnce,
            "{alive} requests are alive, but {} are allocated and not complete",
            self.requests
        );
        let gone = self.requests - alive;
        if gone > 0 {
            self.insertion_limit = self.insertion_limit.max(max_sectors);
            // The absorbed requests may have existed at the same time as the request of the call.
            self.requests_most = self.requests_most.max(self.requests + 2);
            self.sums.advance(now);
            self.sums.merged_unseen(gone);
            self.requests = alive;
            self.absorbed += gone;
            self.sums.in_flight = alive;
        }
        Ok(gone)
    }

    /// Records that the bio completed immediately.
    pub(crate) fn done_at_once(&mut self, now: Time, cookie: u64, done: &BioDone) -> Checked {
        let record = self.bios[slot_of(cookie)];
        self.withdraw(cookie);
        ensure!(
            record.op == Op::Flush && !self.write_cache,
            NothingCrossesAFlush,
            "{:?} was done without the device",
            record.op
        );
        let expected = BioDone { cookie, context: record.context, submitted: now };
        ensure!(*done == expected, CompletedOnce, "the queue reported {done:?} instead of {expected:?}");
        Ok(())
    }

    // ---- the device

    /// Records that request `index` was given to the device.
    pub(crate) fn dispatched(&mut self, now: Time, index: usize, seen: Seen, arena: usize) -> Checked {
        self.moment += 1;
        if self.in_device.len() <= index {
            self.in_device.resize(index + 1, None);
        }
        ensure!(self.in_device[index].is_none(), DispatchedOnce, "rq{index} was dispatched twice");
        self.in_device[index] = Some(seen);
        if seen.op == Op::Flush {
            ensure!(self.write_cache, NothingCrossesAFlush, "a flush of a device without a write cache");
            self.requests_most = self.requests_most.max(arena as u64);
            self.flush_for_barrier()?;
            return self.flushes.start(now, self.moment, index);
        }
        if let Some(expected) = self.given_back.pop() {
            ensure!(
                expected == seen.cookie,
                GivenBackFirst,
                "rq{index}, {:x}, was dispatched before {expected:x}, which was requeued earlier",
                seen.cookie
            );
        }
        let Some(&record) = self.bio(seen.cookie) else {
            ensure!(false, DispatchedOnce, "the first bio of rq{index} is {:x}, which is not in flight", seen.cookie);
            return Ok(());
        };
        ensure!(
            record.founder && record.request as usize == index,
            DispatchedOnce,
            "the first bio of rq{index} is {:x}, which is the first bio of rq{}",
            seen.cookie,
            record.request
        );
        ensure!(seen.nr_sectors > 0, WholeBios, "rq{index} is empty");
        self.barriers.pass(seen.cookie)?;
        if self.barriers.next() == Some(seen.cookie) {
            self.begin_barrier(seen.cookie)?;
        }
        let fua = record.flags.contains(Flags::FUA);
        ensure!(
            !self.write_cache || seen.fua == fua,
            NothingCrossesAFlush,
            "rq{index} needs_fua {}, its bio has {:?}",
            seen.fua,
            record.flags
        );
        let flush_after = record.flush_after;
        if record.sequence == Sequence::Before {
            ensure!(
                self.flushes.served_after(flush_after),
                NothingCrossesAFlush,
                "rq{index}, PREFLUSH, was dispatched before a flush that began after its submission had completed"
            );
            self.bios[slot_of(seen.cookie)].sequence = Sequence::Data;
        }
        Ok(())
    }

    /// Records that the device gave back request `index`, which is not a flush.
    pub(crate) fn given_back(&mut self, index: usize) -> Checked {
        let Some(seen) = self.in_device[index].take() else {
            ensure!(false, DispatchedOnce, "rq{index} was requeued, but is not in the device");
            return Ok(());
        };
        self.given_back.push(seen.cookie);
        Ok(())
    }

    /// Returns whether request `index` in the device is a flush.
    pub(crate) fn is_flush(&self, index: usize) -> bool {
        self.in_device[index].is_some_and(|seen| seen.op == Op::Flush)
    }

    /// Records that the device completed request `index`, and that the queue reported the bios
    /// `done`.
    pub(crate) fn completed(
        &mut self,
        now: Time,
        index: usize,
        result: Result<(), IoError>,
        done: &[(BioDone, Result<(), IoError>)],
    ) -> Checked {
        self.moment += 1;
        let Some(seen) = self.in_device[index].take() else {
            ensure!(false, DispatchedOnce, "rq{index} completes, but is not in the device");
            return Ok(());
        };
        for (bio, reported) in done {
            ensure!(
                *reported == result,
                CompletedOnce,
                "{bio:?} ended with {reported:?}, but the device reported \
                {result:?}"
            );
        }
        if seen.op == Op::Flush {
            return self.flush_completed(now, result, done);
        }
        let founder = self.bio(seen.cookie).copied();
        if result.is_ok()
            && let Some(record) = founder
            && record.sequence == Sequence::Data
            && record.flags.contains(Flags::FUA)
            && !self.device_fua
        {
            ensure!(
                done.is_empty(),
                NothingCrossesAFlush,
                "bio {:x}, FUA on a device without, was done before a flush",
                seen.cookie
            );
            let moment = self.moment;
            let record = &mut self.bios[slot_of(seen.cookie)];
            record.sequence = Sequence::After;
            record.flush_after = moment;
            self.flushes.wait(false);
            return Ok(());
        }
        self.data_completed(now, index, &seen, done)
    }

    /// Checks the bios of one request, in order.
    fn data_completed(
        &mut self,
        now: Time,
        index: usize,
        seen: &Seen,
        done: &[(BioDone, Result<(), IoError>)],
    ) -> Checked {
        let mut at = seen.sector;
        let mut founders = 0;
        let mut allocated = now;
        let mut founded = false;
        let (mut newest, mut limit) = (0, 0);
        for (bio, _) in done {
            let record = self.take_bio(bio)?;
            ensure!(
                record.sector == at && record.op == seen.op,
                WholeBios,
                "rq{index}, {:?} of {}+{}, holds {:?} of {}+{} where sector {at} is due",
                seen.op,
                seen.sector,
                seen.nr_sectors,
                record.op,
                record.sector,
                record.nr_sectors
            );
            at = record.sector + u64::from(record.nr_sectors);
            if record.founder {
                founders += 1;
                allocated = allocated.min(record.submitted);
            }
            founded |= record.cookie == seen.cookie;
            if record.cookie > newest {
                (newest, limit) = (record.cookie, record.max_sectors);
            }
            if done.len() > 1 {
                ensure!(
                    record.sequence == Sequence::None && !record.flags.contains(Flags::FUA),
                    NothingCrossesAFlush,
                    "rq{index} holds {} bios, one of them {:?}",
                    done.len(),
                    record.flags
                );
                ensure!(
                    record.founder || !record.cfq || !record.is_sync() || seen.sync,
                    SyncJoinsSync,
                    "rq{index} is async and holds sync bio {:x}",
                    record.cookie
                );
            }
        }
        ensure!(
            at == seen.sector + u64::from(seen.nr_sectors) && founded,
            WholeBios,
            "rq{index} was {}+{}, its bios end at {at}; the one that founded it is {}among them",
            seen.sector,
            seen.nr_sectors,
            if founded { "" } else { "not " }
        );
        if founders > 1 {
            limit = limit.max(self.insertion_limit);
        }
        ensure!(seen.nr_sectors <= limit, SizeLimit, "rq{index} has {} sectors; {limit} were allowed", seen.nr_sectors);
        self.absorbed -= founders - 1;
        self.finished(now, seen.op, seen.nr_sectors, allocated);
        Ok(())
    }

    fn finished(&mut self, now: Time, op: Op, nr_sectors: u32, allocated: Time) {
        self.sums.advance(now);
        if op.has_data() {
            self.sums.completed(op, nr_sectors, now.since(allocated));
        }
        self.requests -= 1;
        self.sums.in_flight = self.requests;
    }

    /// Removes the record of a bio that was reported complete.
    #[inline]
    fn take_bio(&mut self, done: &BioDone) -> Result<BioRecord, super::Violation> {
        let record = self.bios.get(slot_of(done.cookie)).copied().filter(|record| record.cookie == done.cookie);
        let Some(record) = record else {
            return Err(super::violation::violation(
                super::Property::CompletedOnce,
                format!("the queue reported {done:?} as complete, but this bio is not in the queue"),
            ));
        };
        ensure!(
            done.context == record.context && done.submitted == record.submitted,
            CompletedOnce,
            "{done:?} was submitted by {:?} at {}",
            record.context,
            record.submitted
        );
        self.barriers.pass(done.cookie)?;
        self.barriers.complete(done.cookie);
        self.withdraw(done.cookie);
        let used = &mut self.contexts[record.context.index()];
        used.bios -= 1;
        if !used.alive && used.bios == 0 {
            self.contexts_used -= 1;
        }
        Ok(record)
    }

    fn flush_completed(
        &mut self,
        now: Time,
        result: Result<(), IoError>,
        done: &[(BioDone, Result<(), IoError>)],
    ) -> Checked {
        let Served { started, began, waited, waited_before } = self.flushes.complete(result.is_ok());
        self.sums.flushed(now.since(began));
        let expected = if result.is_ok() { waited } else { waited + waited_before };
        ensure!(
            done.len() == expected as usize,
            NothingCrossesAFlush,
            "{} bios were done with a flush that {expected} waited for",
            done.len()
        );
        for (bio, _) in done {
            let record = self.take_bio(bio)?;
            let sequence = match record.sequence {
                Sequence::Flush | Sequence::After => true,
                Sequence::Before => result.is_err(),
                Sequence::None | Sequence::Data => false,
            };
            ensure!(
                sequence && started > record.flush_after,
                NothingCrossesAFlush,
                "bio {:x}, {:?} {:?}, was done with a flush that began at {started}; it waits since {}",
                record.cookie,
                record.op,
                record.flags,
                record.flush_after
            );
            self.finished(now, record.op, record.nr_sectors, record.submitted);
        }
        Ok(())
    }

    /// Returns whether requests wait for a flush, after a flush, or behind a barrier.
    pub(crate) fn waiting_for_flush(&self) -> bool {
        self.flushes.is_busy() || !self.barriers.is_empty()
    }

    // ---- processes

    /// Records that a process received `context`.
    pub(crate) fn started(&mut self, context: ContextId) -> Checked {
        if self.contexts.len() <= context.index() {
            self.contexts.resize(context.index() + 1, ContextUse::default());
        }
        let used = &mut self.contexts[context.index()];
        ensure!(!used.alive && used.bios == 0, BoundedMemory, "{context:?} is in use, but was created again");
        used.alive = true;
        self.contexts_used += 1;
        self.contexts_most = self.contexts_most.max(self.contexts_used);
        Ok(())
    }

    /// Records that the process of `context` exited.
    pub(crate) fn exited(&mut self, context: ContextId) {
        let used = &mut self.contexts[context.index()];
        used.alive = false;
        if used.bios == 0 {
            self.contexts_used -= 1;
        }
    }

    /// Checks that tables hold no more entries than were in use at the same time.
    pub(crate) fn check_memory(&self, contexts: usize, slots: usize) -> Checked {
        ensure!(
            contexts <= self.contexts_most + WORKERS,
            BoundedMemory,
            "{contexts} contexts in the table, never more than {} in use",
            self.contexts_most
        );
        ensure!(
            slots as u64 <= self.requests_most,
            BoundedMemory,
            "{slots} slots in the arena, never more than {} in use",
            self.requests_most
        );
        Ok(())
    }

    /// Checks that nothing is in flight any more.
    pub(crate) fn check_empty(&self) -> Checked {
        ensure!(
            self.live() == 0 && self.requests == 0 && self.absorbed == 0,
            CompletedOnce,
            "{} bios in {} requests were never completed",
            self.live(),
            self.requests
        );
        ensure!(self.barriers.is_empty(), NothingCrossesABarrier, "a barrier never began: {:?}", self.barriers);
        ensure!(!self.flushes.is_busy(), NothingCrossesAFlush, "a bio waits for a flush that never begins");
        Ok(())
    }
}
