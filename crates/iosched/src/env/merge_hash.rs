//! Where back merges are looked for: queued requests by the sector behind their last.

use crate::collections::{Id, NIL};
use crate::request::{RequestId, Requests, Sector};

const SLOTS_MIN: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Slot {
    end: Sector,
    request: u32,
}

/// What finds a queued request that a bio may join.
#[derive(Debug, Default)]
pub(crate) struct MergeCache {
    /// All queued, mergeable requests by their ends.
    pub(crate) hash: MergeHash,
    /// The one merged last, or else the first queued since.
    pub(crate) last: Option<RequestId>,
}

const EMPTY: Slot = Slot { end: 0, request: NIL };

/// A hash of queued requests by end sector, with linear probing; at most a quarter full. Of requests with the same end,
/// the newest is met first.
#[derive(Debug)]
pub(crate) struct MergeHash {
    slots: Vec<Slot>,
    shift: u32,
    len: usize,
}

#[inline]
fn home(end: Sector, shift: u32) -> usize {
    // Fibonacci hashing: the top bits of a product with 2^64 / the golden ratio.
    (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
}

impl Default for MergeHash {
    fn default() -> Self {
        Self::with_slots(SLOTS_MIN)
    }
}

impl MergeHash {
    fn with_slots(slots: usize) -> Self {
        Self { slots: vec![EMPTY; slots], shift: u64::BITS - slots.trailing_zeros(), len: 0 }
    }

    #[inline]
    fn home(&self, end: Sector) -> usize {
        home(end, self.shift)
    }

    /// Takes in `id` under its present end.
    #[inline]
    pub(crate) fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        if self.len * 4 >= self.slots.len() {
            self.grow();
        }
        let request = &mut requests[id];
        request.hashed = true;
        self.put(Slot { end: request.end(), request: id.number() });
    }

    #[inline]
    fn put(&mut self, mut slot: Slot) {
        self.len += 1;
        let mut at = self.home(slot.end);
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        loop {
            let here = &mut slots[at & mask];
            if here.request == NIL {
                *here = slot;
                return;
            }
            // Ahead of its elders, which move on.
            if here.end == slot.end {
                std::mem::swap(here, &mut slot);
            }
            at += 1;
        }
    }

    /// Takes out `id`, which is in under `end`.
    #[inline]
    pub(crate) fn remove(&mut self, requests: &mut Requests, id: RequestId, end: Sector) {
        requests[id].hashed = false;
        self.len -= 1;
        let mut hole = self.home(end);
        let shift = self.shift;
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        while slots[hole & mask].request != id.number() {
            debug_assert_ne!(slots[hole & mask].request, NIL, "a hashed request is found");
            hole += 1;
        }
        // What was displaced moves back, so that probing can stop at the first empty slot.
        let mut at = hole;
        loop {
            at += 1;
            let moved = slots[at & mask];
            if moved.request == NIL {
                break;
            }
            let displaced = at.wrapping_sub(home(moved.end, shift)) & mask;
            if displaced >= at - hole {
                slots[hole & mask] = moved;
                hole = at;
            }
        }
        slots[hole & mask] = EMPTY;
    }

    /// The newest mergeable request that ends at `sector`.
    #[inline]
    pub(crate) fn find(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let mut at = self.home(sector);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        loop {
            let slot = slots[at & mask];
            if slot.request == NIL {
                return None;
            }
            if slot.end == sector && requests[RequestId::new(slot.request)].mergeable {
                return Some(RequestId::new(slot.request));
            }
            at += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old = std::mem::replace(self, Self::with_slots(self.slots.len() * 2));
        // A run of displaced slots may wrap around the end: begin behind an empty one, so that runs are whole. Within a
        // run the newest of an end comes first, so the run is put in from its far end.
        let count = old.slots.len();
        let start = old.slots.iter().position(|slot| slot.request == NIL).unwrap_or(0);
        for slot in (0..count).rev().map(|i| old.slots[(start + i) % count]).filter(|slot| slot.request != NIL) {
            self.put(slot);
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
        /// Against a plain list of what is in, oldest first.
        #[test]
        fn finds_the_newest_of_an_end(operations in prop::collection::vec((any::<bool>(), 0u64..40, any::<prop::sample::Index>()), 1..400)) {
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
