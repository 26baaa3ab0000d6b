//! Flush, force-unit-access (FUA), and the barriers of old kernels.
//!
//! A flush guarantees that all writes that completed before its submission are on stable storage.
//! The flush does not wait for other writes. On a device with a volatile cache, this guarantee
//! needs a device flush that begins after the submission. Flushes that wait at the same time share
//! one device flush. A write with the flag PREFLUSH first waits for a device flush. A FUA write on
//! a device without FUA is followed by a device flush. From Linux 6.5 on, the data of both kinds of
//! writes goes through the elevator: at the head if the data follows a device flush, otherwise as
//! usual. Up to 6.4, and in the single-queue layer, this data bypasses the elevator. A device flush
//! always bypasses the elevator.
//!
//! Up to Linux 2.6.36, flushes and bios with the flag PREFLUSH were *barriers*
//! (`Documentation/block/barrier.txt` of those versions, ordering by draining). The flush and the
//! data of a barrier are issued when all earlier requests, plugged or queued, are complete. Later
//! requests wait until the whole barrier is complete. Elevators expire their active queue for a
//! barrier, so they do not idle after a journal commit. A barrier that arrives during a switch of
//! elevators waits for the new elevator, and the switch waits for active barriers. On a device
//! without a volatile cache, data with the flag PREFLUSH is still a barrier. A flush has no effect
//! on such a device: here, it completes immediately, whereas in those kernels it waits until the
//! queue is drained.

use std::collections::VecDeque;

use super::{IoError, RequestQueue, Submit};
use crate::context::ContextId;
use crate::issued::Part;
use crate::request::{Bio, BioDone, Flags, Op, Request, RequestId, RequestStage};

/// Requests that need a flush of the device's cache.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Requests that wait for the next device flush.
    pending: Vec<RequestId>,
    /// Requests that wait for the active device flush.
    running: Vec<RequestId>,
    /// Active device flush.
    device: Option<RequestId>,
    /// Requests in the lists above whose data is written: they complete after the flush.
    written: Vec<RequestId>,
    /// Incomplete barriers, in order. A barrier is on the dispatch list after all earlier requests.
    /// The first barrier leaves the list when it begins.
    barriers: VecDeque<RequestId>,
    /// Whether the first barrier has begun: all earlier requests are complete.
    barrier_begun: bool,
}

/// Next action while a barrier is active or waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Send the first request of the dispatch list.
    Pass,
    /// Send the barrier's flush.
    Flush,
    /// Wait for a completion.
    Wait,
}

impl Flushes {
    /// Returns the active device flush.
    pub(super) fn device_flush(&self) -> Option<RequestId> {
        self.device
    }

    /// Returns whether a barrier is active or waits. Nothing leaves the elevator then.
    #[inline]
    pub(super) fn has_barrier(&self) -> bool {
        !self.barriers.is_empty()
    }

    /// Returns whether no flush and no barrier waits.
    #[inline]
    pub(super) fn has_none_waiting(&self) -> bool {
        self.pending.is_empty() && self.barriers.is_empty()
    }

    /// Returns whether a barrier has begun. No other request is in the device then.
    pub(super) fn barrier_begun(&self) -> bool {
        self.barrier_begun
    }

    /// Returns whether no flush is due or active and no barrier waits.
    pub(super) fn is_idle(&self) -> bool {
        self.device.is_none() && self.has_none_waiting()
    }
}

impl RequestQueue {
    /// Submits a bio that is a flush or has PREFLUSH or FUA.
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
        // Before a switch began, the bio may have been submitted as plain data, and may have waited
        // at a controller.
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

    /// Returns whether a flush that is submitted now is a barrier. During a switch, the new
    /// elevator decides, because the flush waits for the new elevator.
    fn makes_barriers(&self) -> bool {
        self.barriers && (!self.is_multi_queue() || self.next.is_some())
    }

    /// Returns whether the operation needs steps that the elevator does not see.
    pub(super) fn is_sequence(&self, op: Op, flags: Flags) -> bool {
        op == Op::Flush || flags.contains(Flags::PREFLUSH) || flags.contains(Flags::FUA) && !self.device_fua
    }

    /// Starts the flush sequence of an allocated request.
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
            self.release_data(id, false);
        }
    }

    /// Inserts the data of a flush sequence, or sends it directly to the device. `at_head`: the
    /// data comes after a device flush.
    fn release_data(&mut self, id: RequestId, at_head: bool) {
        if self.queues_flush_data
            && self.next.is_none()
            && let Some(rules) = self.allocation.rules()
        {
            return self.insert_flush_data(&rules, id, at_head);
        }
        self.env.requests[id].stage = RequestStage::Released;
        self.env.dispatch_list.push_back(&mut self.env.requests, id);
    }

    /// Sends the data of a request after the device flush before it. The data of a barrier goes
    /// before the requests that wait for the barrier.
    fn release_flushed_data(&mut self, id: RequestId) {
        if self.flushes.barriers.front() == Some(&id) {
            self.env.requests[id].stage = RequestStage::Released;
            self.env.dispatch_list.return_barrier(&mut self.env.requests, id);
        } else {
            self.release_data(id, true);
        }
    }

    /// Returns the next action for the first barrier.
    pub(super) fn barrier_turn(&mut self) -> Turn {
        let first = self.env.dispatch_list.first();
        let at_head = first.is_some() && first == self.flushes.barriers.front().copied();
        if self.flushes.barrier_begun {
            // The data of the barrier is sent after its flush, or after the device has returned it.
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

    /// Returns the device flush to send now, if one is due.
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

    /// Completes a request that is not in the elevator: a device flush, or the data of a flush
    /// sequence.
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
        let contexts = served.iter().map(|&id| self.env.requests[id].context);
        let exited: Vec<ContextId> = contexts.filter(|&context| self.env.contexts.get(context).exited).collect();
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
        for context in exited {
            self.exit_elevator(context);
        }
    }

    /// Returns whether the elevator will get data of `context` after a flush.
    pub(super) fn has_data_after_flush(&self, context: ContextId) -> bool {
        let Flushes { pending, running, written, .. } = &self.flushes;
        self.queues_flush_data
            && pending.iter().chain(running).any(|id| {
                let request = &self.env.requests[*id];
                request.context == context && request.op != Op::Flush && !written.contains(id)
            })
    }
}
