//! Index for back merges: queued requests by the sector after their end.

use crate::collections::{Id, NIL};
use crate::request::{ChainLinks, RequestId, Requests, Sector};

const CHAINS_MIN: usize = 64;

/// Index of queued requests that a bio may join.
#[derive(Debug, Default)]
pub(crate) struct MergeCache {
    /// All queued, mergeable requests by their ends.
    pub(crate) hash: MergeHash,
    /// Request that grew in the last merge. When this request leaves the queue or can no longer
    /// merge, the field becomes `None`. The next mergeable request that enters the queue then fills
    /// the field.
    pub(crate) last: Option<RequestId>,
}

/// Hash of queued requests by end sector. Chains link the requests, newest first. There are at
/// least twice as many chains as requests.
#[derive(Debug)]
pub(crate) struct MergeHash {
    /// First request of each chain.
    heads: Vec<u32>,
    shift: u32,
    len: usize,
}

impl Default for MergeHash {
    fn default() -> Self {
        Self::with_chains(CHAINS_MIN)
    }
}

impl MergeHash {
    fn with_chains(chains: usize) -> Self {
        Self { heads: vec![NIL; chains], shift: u64::BITS - chains.trailing_zeros(), len: 0 }
    }

    /// Returns the chain for requests that end at `end`.
    #[inline]
    fn chain(&self, end: Sector) -> usize {
        // Fibonacci hashing: the top bits of a product with 2^64 / the golden ratio.
        (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Inserts `id` under its present end.
    #[inline]
    pub(crate) fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        if self.len * 2 >= self.heads.len() {
            self.grow(requests);
        }
        self.put(requests, id);
    }

    #[inline]
    fn put(&mut self, requests: &mut Requests, id: RequestId) {
        self.len += 1;
        let request = &mut requests[id];
        let chain = self.chain(request.end());
        let next = std::mem::replace(&mut self.heads[chain], id.number());
        request.hashed = true;
        request.chain = ChainLinks { next, prev: NIL };
        if let Some(next) = RequestId::some(next) {
            requests[next].chain.prev = id.number();
        }
    }

    /// Removes `id`, which was inserted under `end`.
    #[inline]
    pub(crate) fn remove(&mut self, requests: &mut Requests, id: RequestId, end: Sector) {
        self.len -= 1;
        let request = &mut requests[id];
        debug_assert!(request.hashed, "a removed request is in the table");
        request.hashed = false;
        let ChainLinks { next, prev } = request.chain;
        match RequestId::some(prev) {
            Some(prev) => requests[prev].chain.next = next,
            None => {
                let chain = self.chain(end);
                self.heads[chain] = next;
            }
        }
        if let Some(next) = RequestId::some(next) {
            requests[next].chain.prev = prev;
        }
    }

    /// Returns the newest mergeable request that ends at `sector`.
    #[inline]
    pub(crate) fn find(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let mut at = self.heads[self.chain(sector)];
        while let Some(id) = RequestId::some(at) {
            let request = &requests[id];
            if request.end() == sector && request.mergeable {
                return Some(id);
            }
            at = request.chain.next;
        }
        None
    }

    #[cold]
    fn grow(&mut self, requests: &mut Requests) {
        let old = std::mem::replace(self, Self::with_chains(self.heads.len() * 2));
        for head in old.heads.into_iter().filter_map(RequestId::some) {
            // Oldest first, so that the newest request is first again afterwards.
            let next = |&id: &RequestId| RequestId::some(requests[id].chain.next);
            let chain: Vec<RequestId> = std::iter::successors(Some(head), next).collect();
            for id in chain.into_iter().rev() {
                self.put(requests, id);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::context::ContextId;
    use crate::request::{Bio, Flags, Op};
    use crate::time::Time;

    proptest! {
        /// Compares the hash with a plain list of the inserted requests, oldest first.
        #[test]
        fn hash_finds_the_newest_request_with_an_end_sector(operations in prop::collection::vec((any::<bool>(), 0u64..40, any::<prop::sample::Index>()), 1..400)) {
            let mut requests = Requests::default();
            let mut hash = MergeHash::default();
            let mut inside: Vec<(RequestId, Sector)> = Vec::new();
            for (insert, end, pick) in operations {
                if insert || inside.is_empty() {
                    let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: end, nr_sectors: 1, context: ContextId(0), cookie: 0 };
                    let id = requests.allocate(Time::ZERO, &bio);
                    hash.insert(&mut requests, id);
                    inside.push((id, end + 1));
                } else {
                    let (id, end) = inside.remove(pick.index(inside.len()));
                    hash.remove(&mut requests, id, end);
                    requests.release(id);
                }
                prop_assert_eq!(hash.len(), inside.len());
                for end in 0..42 {
                    let newest = inside.iter().rev().find(|(_, e)| *e == end).map(|(id, _)| *id);
                    prop_assert_eq!(hash.find(&requests, end), newest);
                }
            }
        }
    }
}
