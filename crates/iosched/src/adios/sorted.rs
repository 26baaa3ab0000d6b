//! Requests in the order of deadlines, in steps of about a millisecond. Within
//! a step, they are in the order of arrival.

use crate::collections::{Id, Kind, List, NIL, RbLinks, RbNode, RbTree};
use crate::request::{Fifo, RequestId, Requests};

/// Number of low bits of a deadline that a step ignores.
const STEP_BITS: u32 = 20;

/// Marker for trees of steps.
#[derive(Debug)]
enum BySteps {}

impl Kind for BySteps {
    type Id = u32;
}

/// Requests of one step.
#[derive(Debug, Default)]
struct Step {
    start: u64,
    requests: List<Fifo>,
    links: RbLinks,
}

impl RbNode<BySteps> for Step {
    #[inline]
    fn links(&self) -> &RbLinks {
        &self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut RbLinks {
        &mut self.links
    }
}

/// Steps of both sides, and unused steps.
#[derive(Debug, Default)]
pub(super) struct Steps {
    all: Vec<Step>,
    free: Vec<u32>,
}

/// Requests by step.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    tree: RbTree<BySteps>,
    pub(super) len: usize,
}

/// Returns the distance from one step to another. Deadlines wrap.
fn distance(step: u64, from: u64) -> i64 {
    step.wrapping_sub(from) as i64
}

impl Steps {
    fn take(&mut self, start: u64) -> u32 {
        let step = Step { start, ..Step::default() };
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = step;
                number
            }
            None => {
                self.all.push(step);
                (self.all.len() - 1) as u32
            }
        }
    }
}

impl Sorted {
    /// Inserts `id` with the deadline `deadline`, after the other requests of its step. Returns the
    /// step, which the caller stores.
    #[inline]
    pub(super) fn insert(&mut self, steps: &mut Steps, requests: &mut Requests, id: RequestId, deadline: u64) -> u32 {
        let start = deadline >> STEP_BITS << STEP_BITS;
        let (mut at, mut parent, mut left) = (self.tree.root(), None, false);
        while let Some(number) = at {
            let step = &steps.all[number as usize];
            let behind = distance(start, step.start);
            if behind == 0 {
                break;
            }
            (parent, left) = (at, behind < 0);
            at = if left { self.tree.left(&steps.all, number) } else { self.tree.right(&steps.all, number) };
        }
        let number = at.unwrap_or_else(|| {
            let number = steps.take(start);
            self.tree.attach(&mut steps.all, number, parent, left);
            number
        });
        steps.all[number as usize].requests.push_back(requests.list_nodes(), id);
        self.len += 1;
        number
    }

    /// Removes `id`, which is in `step`.
    #[inline]
    pub(super) fn remove(&mut self, steps: &mut Steps, requests: &mut Requests, id: RequestId, step: u32) {
        let list = &mut steps.all[step as usize].requests;
        list.remove(requests.list_nodes(), id);
        if list.is_empty() {
            self.tree.remove(&mut steps.all, step);
            steps.free.push(step);
        }
        self.len -= 1;
    }

    /// Returns the first request of the first step.
    #[inline]
    pub(super) fn first(&self, steps: &Steps) -> Option<RequestId> {
        self.tree.first().and_then(|step| steps.all[step.number() as usize].requests.first())
    }

    /// Checks the order of steps, and that none is empty. Returns the number of requests.
    pub(super) fn check(&self, steps: &Steps, requests: &Requests) -> usize {
        self.tree.check(&steps.all, |a, b| distance(b.start, a.start) > 0);
        let mut len = 0;
        let mut at = self.tree.first();
        while let Some(step) = at {
            let list = &steps.all[step as usize].requests;
            assert!(!list.is_empty(), "a step has a request");
            len += std::iter::successors(list.first(), |&id| requests.list_links(id).next()).count();
            at = self.tree.next(&steps.all, step);
        }
        assert_eq!(len, self.len);
        len
    }
}

/// Value that stands for no step.
pub(super) const NO_STEP: u32 = NIL;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ContextId;
    use crate::request::{Bio, Flags, Op};
    use crate::time::Time;

    /// Returns the indices of `deadlines` in the order of service.
    fn order(deadlines: &[u64]) -> Vec<usize> {
        let (mut requests, mut steps, mut sorted) = (Requests::default(), Steps::default(), Sorted::default());
        let mut in_step = Vec::new();
        for &deadline in deadlines {
            let context = ContextId(0);
            let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 0, nr_sectors: 1, context, cookie: 0 };
            let id = requests.allocate(Time::ZERO, &bio);
            in_step.push(sorted.insert(&mut steps, &mut requests, id, deadline));
        }
        let mut order = Vec::new();
        while let Some(id) = sorted.first(&steps) {
            sorted.check(&steps, &requests);
            sorted.remove(&mut steps, &mut requests, id, in_step[id.index()]);
            order.push(id.index());
        }
        order
    }

    #[test]
    fn requests_in_one_deadline_step_are_served_in_arrival_order() {
        let step = 1 << STEP_BITS;
        assert_eq!(order(&[step + 9, 2 * step, step + 5, step - 1, step]), [3, 0, 2, 4, 1]);
    }

    #[test]
    fn steps_compare_by_their_signed_difference() {
        assert_eq!(order(&[5, u64::MAX, 1 << 40]), [1, 0, 2]);
    }

    #[test]
    fn empty_steps_are_reused() {
        let (mut requests, mut steps, mut sorted) = (Requests::default(), Steps::default(), Sorted::default());
        let bio =
            Bio { op: Op::Read, flags: Flags::empty(), sector: 0, nr_sectors: 1, context: ContextId(0), cookie: 0 };
        let id = requests.allocate(Time::ZERO, &bio);
        for deadline in 0..100 {
            let step = sorted.insert(&mut steps, &mut requests, id, deadline << STEP_BITS);
            sorted.remove(&mut steps, &mut requests, id, step);
        }
        assert_eq!(steps.all.len(), 1);
    }
}
