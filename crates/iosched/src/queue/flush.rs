//! Flush and force-unit-access.
//!
//! A flush promises that what had completed before it was submitted is on stable storage; it waits for nothing else.
//! On a device with a volatile cache that takes a device flush, begun after the submission; flushes that wait
//! together share one. A write flagged PREFLUSH waits for such a flush first and then passes the elevator by; a FUA
//! write on a device that cannot do it itself is followed by one.
//!
//! Up to Linux 2.6.36 such a write was a barrier: everything that the elevator had went to the device before it. Elevators expire
//! their active queue for that, which is why a journal's commit did not leave them idling.

use super::{IoError, RequestQueue, Submit};
use crate::request::{Bio, BioDone, Flags, Op, RequestId, Stage};

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
}

impl Flushes {
    /// The device flush under way.
    pub(super) fn device_flush(&self) -> Option<RequestId> {
        self.device
    }
}

impl RequestQueue {
    /// A bio that is a flush or carries PREFLUSH or FUA.
    pub(super) fn submit_flush(&mut self, bio: &Bio) -> Submit {
        let mut bio = *bio;
        let barrier = self.barriers && self.multi.is_none() && bio.op.has_data() && bio.flags.contains(Flags::PREFLUSH);
        if !self.write_cache {
            bio.flags.remove(Flags::PREFLUSH | Flags::FUA);
            if bio.op == Op::Flush {
                return Submit::Done(BioDone { cookie: bio.cookie, context: bio.context, submitted: self.env.now });
            }
        }
        let preflush = bio.op == Op::Flush || bio.flags.contains(Flags::PREFLUSH);
        let postflush = bio.flags.contains(Flags::FUA) && !self.device_fua;
        if !preflush && !postflush && !barrier {
            return self.submit_data(&bio);
        }
        let Some(id) = self.allocate(&bio) else {
            return Submit::Full;
        };
        if barrier {
            self.drain();
        }
        if preflush {
            self.flushes.pending.push(id);
        } else {
            self.release_data(id);
        }
        Submit::Queued(id)
    }

    /// The data of a flush sequence goes straight to the device.
    fn release_data(&mut self, id: RequestId) {
        self.env.requests[id].stage = Stage::Released;
        self.env.dispatch_list.push_back(&mut self.env.requests, id);
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
                self.env.requests[id].stage = Stage::Held;
                self.flushes.written.push(id);
                self.flushes.pending.push(id);
            } else {
                self.finish(id, result, done);
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
                self.finish(id, result, done);
            } else {
                self.release_data(id);
            }
        }
        self.flushes.running = served;
    }
}
