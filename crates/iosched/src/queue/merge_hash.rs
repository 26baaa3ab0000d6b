//! Where back merges are looked for: queued requests by the sector behind their last.

use crate::collections::{Id, ListNodes, NIL};
use crate::request::{Hashed, RequestId, Requests, Sector};

const BUCKETS_MIN: usize = 64;

/// A chained hash of queued requests by end sector. Of requests that end at the same sector the newest is found.
#[derive(Debug)]
pub(super) struct MergeHash {
    heads: Vec<u32>,
    shift: u32,
    len: usize,
}

impl Default for MergeHash {
    fn default() -> Self {
        Self { heads: vec![NIL; BUCKETS_MIN], shift: shift_for(BUCKETS_MIN), len: 0 }
    }
}

fn shift_for(buckets: usize) -> u32 {
    u64::BITS - buckets.trailing_zeros()
}

impl MergeHash {
    #[inline]
    fn bucket(&self, end: Sector) -> usize {
        // Fibonacci hashing: the top bits of a product with 2^64 / the golden ratio.
        (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Takes in `id` under its present end.
    #[inline]
    pub(super) fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        if self.len >= self.heads.len() {
            self.grow(requests);
        }
        self.len += 1;
        let bucket = self.bucket(requests[id].end());
        self.link(requests, id, bucket);
    }

    #[inline]
    fn link(&mut self, requests: &mut Requests, id: RequestId, bucket: usize) {
        let head = self.heads[bucket];
        let request = &mut requests[id];
        request.hash.set(NIL, head);
        request.hashed = true;
        if head != NIL {
            ListNodes::<Hashed>::links_mut(requests, head).set_prev(id.number());
        }
        self.heads[bucket] = id.number();
    }

    /// Takes out `id`, which is in under `end`.
    #[inline]
    pub(super) fn remove(&mut self, requests: &mut Requests, id: RequestId, end: Sector) {
        let request = &mut requests[id];
        request.hashed = false;
        let (prev, next) = request.hash.get();
        if prev == NIL {
            let bucket = self.bucket(end);
            debug_assert_eq!(self.heads[bucket], id.number());
            self.heads[bucket] = next;
        } else {
            ListNodes::<Hashed>::links_mut(requests, prev).set_next(next);
        }
        if next != NIL {
            ListNodes::<Hashed>::links_mut(requests, next).set_prev(prev);
        }
        self.len -= 1;
    }

    /// The newest mergeable request that ends at `sector`.
    #[inline]
    pub(super) fn find(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let mut at = self.heads[self.bucket(sector)];
        while at != NIL {
            let request = &requests[RequestId::new(at)];
            if request.end() == sector && request.mergeable {
                return Some(RequestId::new(at));
            }
            at = request.hash.get().1;
        }
        None
    }

    fn grow(&mut self, requests: &mut Requests) {
        let old = std::mem::take(&mut self.heads);
        self.heads = vec![NIL; old.len() * 2];
        self.shift = shift_for(self.heads.len());
        let mut chain = Vec::new();
        for mut at in old {
            chain.clear();
            while at != NIL {
                chain.push(RequestId::new(at));
                at = requests[RequestId::new(at)].hash.get().1;
            }
            // Oldest first, so that the newest is in front again.
            for &id in chain.iter().rev() {
                let bucket = self.bucket(requests[id].end());
                self.link(requests, id, bucket);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}
