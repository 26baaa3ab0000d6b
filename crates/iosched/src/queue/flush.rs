//! Flush, force-unit-access, and the barriers of old.
//!
//! A flush promises that what had completed before it was submitted is on stable storage; it waits for nothing else.
//! On a device with a volatile cache that takes a device flush, begun after the submission; flushes that wait
//! together share one. A write flagged PREFLUSH waits for such a flush first and then passes the elevator by; a FUA
//! write on a device that cannot do it itself is followed by one.
//!
//! Up to Linux 2.6.36 flushes and what is flagged PREFLUSH were *barriers* (`Documentation/block/barrier.txt` of those
//! versions, ordering by draining): everything submitted before, collected or queued, is complete before the barrier's
//! own flush and data are issued, and nothing submitted after it is issued before all of the barrier is done. Elevators
//! expire their active queue for that, which is why a journal's commit did not leave them idling. A barrier that
//! arrives while elevators are switched waits for the new one, and the switch for those under way. On a device without
//! a volatile cache data flagged PREFLUSH is a barrier all the same; a flush, which has nothing to do there, is done at
//! once, while those kernels had it wait for the queue to drain.

use std::collections::VecDeque;

use super::{IoError, RequestQueue, Submit};
use crate::issued::Part;
use crate::request::{Bio, BioDone, Flags, Op, Request, RequestId, RequestStage};

/// Requests that need the device's cache flushed.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Wait for the next device flush.
    pending: Vec<RequestId>,
    /// Wait for the one under way.
    running: Vec<RequestId>,
    /// The device flush under way.
    device: Option<RequestId>,
    /// Of those above, the ones whose data is written: done after the flush.
    written: Vec<RequestId>,
    /// Barriers that are not done, in order. On the dispatch list, each behind everything before it, but for the first
    /// once it has begun.
    barriers: VecDeque<RequestId>,
    /// The first barrier has begun: everything before it is complete.
    barrier_begun: bool,
}

/// What comes next where a barrier is under way or waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// What is first on the dispatch list.
    Pass,
    /// The barrier's flush.
    Flush,
    /// Nothing until something completes.
    Wait,
}

impl Flushes {
    /// The device flush under way.
    pub(super) fn device_flush(&self) -> Option<RequestId> {
        self.device
    }

    /// Whether a barrier is under way or waits for its turn: then nothing leaves the elevator.
    #[inline]
    pub(super) fn has_barrier(&self) -> bool {
        !self.barriers.is_empty()
    }

    /// Whether no flush and no barrier waits for its turn.
    #[inline]
    pub(super) fn has_none_waiting(&self) -> bool {
        self.pending.is_empty() && self.barriers.is_empty()
    }

    /// Whether a barrier has begun: then it has the device for itself.
    pub(super) fn barrier_begun(&self) -> bool {
        self.barrier_begun
    }

    /// Whether no flush is due or under way and no barrier waits.
    pub(super) fn is_idle(&self) -> bool {
        self.device.is_none() && self.has_none_waiting()
    }
}

impl RequestQueue {
    /// A bio that is a flush or carries PREFLUSH or FUA.
    pub(super) fn submit_flush(&mut self, bio: &Bio, part: Part) -> Submit {
        let mut bio = *bio;
        if !self.write_cache {
            if bio.op == Op::Flush {
                return Submit::Done(BioDone { cookie: bio.cookie, context: bio.context, submitted: self.env.now });
            }
            bio.flags.remove(Flags::FUA);
            bio.flags.set(Flags::PREFLUSH, bio.flags.contains(Flags::PREFLUSH) && self.makes_barriers());
        }
        if !self.is_sequence(bio.op, bio.flags) {
            return self.submit_data(&bio, part);
        }
        // It may have waited as a bio with data only, before elevators were being switched.
        self.leave_controlled(bio.context);
        let Some(id) = self.allocate(&bio) else {
            return Submit::Full;
        };
        if self.barriers && self.next.is_some() {
            self.held.push_back(self.env.requests.list_nodes(), id);
        } else {
            self.start_sequence(id);
        }
        Submit::Queued(id)
    }

    /// Whether a flush that is submitted now is a barrier. The elevator that takes over decides for what waits for it.
    fn makes_barriers(&self) -> bool {
        self.barriers && (!self.is_multi_queue() || self.next.is_some())
    }

    /// Whether there is more to be done than to move data, which the elevator does not see.
    pub(super) fn is_sequence(&self, op: Op, flags: Flags) -> bool {
        op == Op::Flush || flags.contains(Flags::PREFLUSH) || flags.contains(Flags::FUA) && !self.device_fua
    }

    /// What was allocated for a flush sequence begins its way.
    pub(super) fn start_sequence(&mut self, id: RequestId) {
        let Request { op, flags, .. } = self.env.requests[id];
        let preflush = op == Op::Flush || flags.contains(Flags::PREFLUSH);
        if preflush && self.barriers && !self.is_multi_queue() {
            self.drain_plugs();
            self.drain(self.env.now);
            self.flushes.barriers.push_back(id);
            self.env.requests[id].stage = RequestStage::Released;
            self.env.dispatch_list.push_barrier(&mut self.env.requests, id);
        } else if preflush && self.write_cache {
            self.flushes.pending.push(id);
        } else {
            self.release_data(id);
        }
    }

    /// The data of a flush sequence goes straight to the device.
    fn release_data(&mut self, id: RequestId) {
        self.env.requests[id].stage = RequestStage::Released;
        self.env.dispatch_list.push_back(&mut self.env.requests, id);
    }

    /// The same, once the flush before the data is done; a barrier goes before what waits behind it.
    fn release_flushed_data(&mut self, id: RequestId) {
        if self.flushes.barriers.front() == Some(&id) {
            self.env.requests[id].stage = RequestStage::Released;
            self.env.dispatch_list.return_barrier(&mut self.env.requests, id);
        } else {
            self.release_data(id);
        }
    }

    /// What the first barrier has the device do or wait for. `Pass`: what is first on the dispatch list goes.
    pub(super) fn barrier_turn(&mut self) -> Turn {
        let first = self.env.dispatch_list.first();
        let at_head = first.is_some() && first == self.flushes.barriers.front().copied();
        if self.flushes.barrier_begun {
            // Its data, after its flush or given back by the device.
            return if at_head { Turn::Pass } else { Turn::Wait };
        }
        let Some(id) = first.filter(|_| at_head) else {
            return Turn::Pass;
        };
        if self.in_driver > 0 || !self.flushes.pending.is_empty() {
            return Turn::Wait;
        }
        self.flushes.barrier_begun = true;
        if !self.write_cache {
            return Turn::Pass;
        }
        self.env.dispatch_list.pop(&mut self.env.requests);
        self.env.requests[id].stage = RequestStage::Held;
        self.flushes.pending.push(id);
        Turn::Flush
    }

    /// Ends a flush sequence.
    fn finish_sequence(
        &mut self,
        id: RequestId,
        result: Result<(), IoError>,
        done: &mut impl FnMut(BioDone, Result<(), IoError>),
    ) {
        if self.flushes.barriers.front() == Some(&id) {
            self.flushes.barriers.pop_front();
            self.flushes.barrier_begun = false;
        }
        self.finish(id, result, done);
    }

    /// The device flush to send now, if one is due.
    #[inline]
    pub(super) fn start_flush(&mut self) -> Option<RequestId> {
        if self.flushes.pending.is_empty() || self.flushes.device.is_some() {
            return None;
        }
        let context = self.env.requests[self.flushes.pending[0]].context;
        let flush = Bio { op: Op::Flush, flags: Flags::empty(), sector: 0, nr_sectors: 0, context, cookie: u64::MAX };
        let id = self.env.requests.allocate(self.env.now, &flush);
        self.flushes.device = Some(id);
        std::mem::swap(&mut self.flushes.pending, &mut self.flushes.running);
        Some(id)
    }

    /// A request that is none of the elevator's is done: a device flush, or the data of a flush sequence.
    pub(super) fn complete_flush(
        &mut self,
        id: RequestId,
        result: Result<(), IoError>,
        done: &mut impl FnMut(BioDone, Result<(), IoError>),
    ) {
        if self.flushes.device != Some(id) {
            let needs_flush = self.env.requests[id].flags.contains(Flags::FUA) && !self.device_fua;
            if needs_flush && result.is_ok() {
                self.env.requests[id].stage = RequestStage::Held;
                self.flushes.written.push(id);
                self.flushes.pending.push(id);
            } else {
                self.finish_sequence(id, result, done);
            }
            return;
        }
        self.flushes.device = None;
        let allocated = self.env.requests[id].allocated;
        if self.attributes.iostats {
            self.stat.completed(Op::Flush, 0, self.env.now.since(allocated));
        }
        self.env.requests.release(id);
        let mut served = std::mem::take(&mut self.flushes.running);
        for id in served.drain(..) {
            let written = self.flushes.written.iter().position(|&w| w == id);
            if let Some(position) = written {
                self.flushes.written.swap_remove(position);
            }
            if self.env.requests[id].op == Op::Flush || written.is_some() || result.is_err() {
                self.finish_sequence(id, result, done);
            } else {
                self.release_flushed_data(id);
            }
        }
        self.flushes.running = served;
    }
}
