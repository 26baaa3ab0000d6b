//! Merging: a bio joins a queued request, or two queued requests become one.
//!
//! A hash contains every queued request by its end, and one pointer names the request merged last.
//! For a bio, the queue tries three requests in this order: the request merged last, the newest
//! request that ends where the bio begins, and the request that the elevator finds after the bio.

use super::{RequestQueue, Submit};
use crate::decision::Decision;
use crate::layer::MultiQueueRules;
use crate::request::{Bio, Flags, MergeSide, Request, RequestId, RequestStage};

impl RequestQueue {
    /// Merges `bio` into a queued request, if one fits.
    #[inline]
    pub(super) fn merge(&mut self, bio: &Bio) -> bool {
        if self.attributes.nomerges == 2 || bio.flags.contains(Flags::FUA) {
            return false;
        }
        let Some((into, side)) = self.plugged_candidate(bio).or_else(|| self.candidate(bio, None)) else {
            return false;
        };
        self.join_unless_too_large(bio, into, side)
    }

    /// Merges `bio` into `into`, if [`takes`](Self::takes) allows it.
    #[inline]
    pub(super) fn join_unless_too_large(&mut self, bio: &Bio, into: RequestId, side: MergeSide) -> bool {
        let takes = self.takes(into, bio);
        if takes {
            self.join(bio, into, side);
        }
        takes
    }

    /// Returns whether `into` has room for `bio`. If not, no bio can join `into` any more.
    #[inline]
    pub(super) fn takes(&mut self, into: RequestId, bio: &Bio) -> bool {
        if self.too_large(into, bio.nr_sectors) {
            self.env.requests[into].mergeable = false;
            if self.env.merging.last == Some(into) {
                self.env.merging.last = None;
            }
            return false;
        }
        true
    }

    fn too_large(&self, into: RequestId, more_sectors: u32) -> bool {
        self.env.requests[into].nr_sectors.saturating_add(more_sectors) > self.attributes.max_sectors
    }

    /// Returns the request on the process' plug that `bio` extends. The elevator's permission is
    /// not needed, because both belong to one process.
    fn plugged_candidate(&self, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        if !self.plugs.is_open(bio.context) {
            return None;
        }
        self.plugs.newest_first(bio.context).find_map(|id| {
            let request = &self.env.requests[id];
            let side =
                request.adjacent(bio).filter(|_| compatible(request, bio) && request.is_sync() == bio.is_sync())?;
            Some((id, side))
        })
    }

    /// Returns the queued request that `bio` may join, and the side. `rules` is `Some` in the
    /// multi-queue layer. The multi-queue layer checks the elevator's permission before adjacency,
    /// because this check has side effects in bfq. The single-queue layer checks adjacency first:
    /// its elevators give permission without side effects, and the check of permission costs more.
    #[inline(always)]
    pub(super) fn candidate(&mut self, bio: &Bio, rules: Option<&MultiQueueRules>) -> Option<(RequestId, MergeSide)> {
        if let Some(last) = self.env.merging.last {
            let side = self.env.requests[last].adjacent(bio);
            if (rules.is_some() || side.is_some())
                && self.may_join(bio, last, rules)
                && let Some(side) = side
            {
                return Some((last, side));
            }
        }
        if self.attributes.nomerges == 1 {
            return None;
        }
        if let Some(behind) = self.env.merging.hash.find(&self.env.requests, bio.sector)
            && self.may_join(bio, behind, rules)
        {
            return Some((behind, MergeSide::Back));
        }
        let front = self.elevator.find_front(&mut self.env, bio)?;
        debug_assert_eq!(
            self.env.requests[front].sector,
            bio.end(),
            "the request of a front merge begins where the bio ends"
        );
        self.may_join(bio, front, rules).then_some((front, MergeSide::Front))
    }

    #[inline]
    fn may_join(&mut self, bio: &Bio, into: RequestId, rules: Option<&MultiQueueRules>) -> bool {
        let compatible = match rules {
            Some(rules) => rules.may_join(&self.env, bio, into),
            None => compatible(&self.env.requests[into], bio),
        };
        compatible && self.elevator.may_merge(&mut self.env, bio, into)
    }

    pub(super) fn join(&mut self, bio: &Bio, into: RequestId, side: MergeSide) {
        self.env.contexts.get_mut(bio.context).bios += 1;
        if self.env.log.is_on() {
            let Bio { op, sector, nr_sectors, context, cookie, .. } = *bio;
            let (pid, sync) = (self.env.pid(context), self.seen_as_sync(op, bio.flags));
            let into = self.env.requests.cookie(into);
            self.env.note(|| Decision::Merge { cookie, pid, sector, nr_sectors, op, sync, into, side });
        }
        if self.attributes.iostats {
            self.stat.merged(bio.op);
        }
        let now = self.env.now;
        let end = self.env.requests[into].end();
        match side {
            MergeSide::Back => self.env.requests.append_bio(now, into, bio),
            MergeSide::Front => self.env.requests.prepend_bio(now, into, bio),
        }
        if self.env.requests[into].stage != RequestStage::Queued {
            // The request is on a plug, so only the plug knows it.
            return;
        }
        let met = match side {
            MergeSide::Back => {
                // The hash must contain the new end before the search for a neighbour.
                if self.env.requests[into].hashed {
                    self.env.merging.hash.remove(&mut self.env.requests, into, end);
                    self.env.merging.hash.insert(&mut self.env.requests, into);
                }
                let neighbour = self.elevator.latter(&self.env, into);
                neighbour.filter(|&n| self.meets(into, n)).map(|n| (into, n))
            }
            MergeSide::Front => {
                let neighbour = self.elevator.former(&self.env, into);
                neighbour.filter(|&n| self.meets(n, into)).map(|n| (n, into))
            }
        };
        match met {
            Some((survivor, absorbed)) => self.merge_requests(survivor, absorbed),
            None => {
                self.env.merging.last = Some(into);
                match side {
                    MergeSide::Front => self.elevator.merged_front(&mut self.env, into),
                    MergeSide::Back => self.elevator.merged_back(&mut self.env, into),
                }
            }
        }
    }

    /// Returns whether `second` begins where `first` ends, and the two may merge.
    pub(super) fn meets(&self, first: RequestId, second: RequestId) -> bool {
        let (a, b) = (&self.env.requests[first], &self.env.requests[second]);
        a.end() == b.sector
            && a.op == b.op
            && a.mergeable
            && b.mergeable
            && self.allocation.multi().is_none_or(|multi| multi.rules.same_ioprio(a.ioprio, b.ioprio))
            && !self.too_large(first, b.nr_sectors)
    }

    /// Merges `absorbed`, which is queued or new, into `survivor`.
    pub(super) fn merge_requests(&mut self, survivor: RequestId, absorbed: RequestId) {
        let (cookie, into) = (self.env.requests.cookie(absorbed), self.env.requests.cookie(survivor));
        self.env.note(|| Decision::RequestMerge { cookie, into });
        let [survivor_end, absorbed_end] = [survivor, absorbed].map(|id| self.env.requests[id].end());
        let op = self.env.requests[absorbed].op;
        let queued = self.env.requests[absorbed].stage == RequestStage::Queued;
        self.env.merging.hash.remove(&mut self.env.requests, survivor, survivor_end);
        if queued {
            self.env.merging.hash.remove(&mut self.env.requests, absorbed, absorbed_end);
        }
        if self.controlled.is_some() {
            self.absorb_controlled(survivor, absorbed);
        }
        self.env.requests.append_request(survivor, absorbed);
        if queued {
            self.env.queued -= 1;
            self.elevator.absorb(&mut self.env, survivor, absorbed);
        } else {
            self.elevator.absorb_new(&mut self.env, survivor, absorbed);
        }
        self.env.merging.hash.insert(&mut self.env.requests, survivor);
        self.env.merging.last = Some(survivor);
        if self.attributes.iostats {
            self.stat.advance(self.env.now);
            self.stat.merged(op);
        }
        self.free(absorbed, false);
    }
}

#[inline]
fn compatible(request: &Request, bio: &Bio) -> bool {
    request.mergeable && request.op == bio.op
}

impl Submit {
    /// Returns whether the queue accepted the bio.
    #[must_use]
    pub fn accepted(self) -> bool {
        self != Self::Full
    }
}
