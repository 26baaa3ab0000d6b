//! Changes of a range of pages. If the range covers only a part of a run, the run is split. Then
//! the counts are updated, and changed runs are joined with equal neighbours.

use super::mapping::PageLookup;
use super::run::{Attributes, NIL, PAGES_PER_RUN, Run};
use super::{PageCache, State};

impl PageCache {
    /// Replaces the attributes of the pages of a range. `next` returns the new attributes for given
    /// old attributes. Only pages in memory change, from the lowest to the highest page. A page
    /// that moves to the other list becomes the newest page of that list.
    #[inline]
    pub(super) fn change(&mut self, mapping: u32, page: u64, pages: u64, next: impl Fn(Attributes) -> Attributes) {
        let end = page.saturating_add(pages);
        let (mut id, mut from) = match self.find(mapping, page) {
            PageLookup::In(id) => (id, page),
            PageLookup::Between(_, NIL) => return,
            PageLookup::Between(_, behind) => (behind, self.runs[behind].page),
        };
        while from < end {
            let run = &self.runs[id];
            let to = run.end().min(end);
            let attributes = next(run.attributes);
            if attributes != run.attributes {
                id = self.settle(id, from, to, attributes, attributes.active != run.attributes.active);
            }
            // A join may have added pages after `to` to the same run.
            if to == self.runs[id].end() {
                let behind = self.runs[id].behind;
                if behind == NIL {
                    break;
                }
                id = behind;
                from = self.runs[id].page;
            } else {
                from = to;
            }
        }
        self.mappings[mapping as usize].set_hint(id);
    }

    #[inline]
    pub(super) fn change_state(&mut self, mapping: u32, page: u64, pages: u64, next: impl Fn(State) -> State) {
        self.change(mapping, page, pages, |old| Attributes { state: next(old.state), ..old });
    }

    /// Sets the attributes of the pages from `from` to `to`, which belong to one run. With `renew`,
    /// the pages become the newest of their list. Returns the run that then contains these pages.
    pub(super) fn settle(&mut self, id: u32, from: u64, to: u64, attributes: Attributes, renew: bool) -> u32 {
        let Run { page, pages, mapping, attributes: old, .. } = self.runs[id];
        self.count_out(mapping, old, to - from);
        self.count_in(mapping, attributes, to - from);
        if from == page
            && to < page + u64::from(pages)
            && let Some(before) = self.taker(id, attributes, renew, to - from)
        {
            self.runs[before].pages += (to - from) as u32;
            self.runs[before].marked |= self.runs[id].marked;
            self.mappings[mapping as usize].move_start(&mut self.runs, id, to);
            return before;
        }
        if to < self.runs[id].end() {
            self.split(id, to);
        }
        let id = if from > page { self.split(id, from) } else { id };
        if renew {
            self.lists[usize::from(old.active)].unlink(&mut self.runs, id);
            self.runs[id].attributes = attributes;
            self.lists[usize::from(attributes.active)].push_newest(&mut self.runs, id);
        } else {
            self.runs[id].attributes = attributes;
        }
        if (old.state == State::Dirty) != (attributes.state == State::Dirty) {
            self.mappings[mapping as usize].dirtiness_changed(&self.runs[id]);
        }
        self.join_neighbours(id)
    }

    /// Returns the preceding run, if the first `pages` pages of run `id` can become a part of it
    /// with these attributes.
    #[inline]
    fn taker(&self, id: u32, attributes: Attributes, renew: bool, pages: u64) -> Option<u32> {
        let run = &self.runs[id];
        let before = run.before;
        if before == NIL {
            return None;
        }
        let taker = &self.runs[before];
        let adjacent =
            if renew { before == self.lists[usize::from(attributes.active)].newest } else { taker.newer == id };
        (adjacent
            && taker.end() == run.page
            && taker.attributes == attributes
            && u64::from(taker.pages) + pages <= u64::from(PAGES_PER_RUN))
        .then_some(before)
    }

    /// Splits a run at page `at`. Returns the part from `at` on. In the list, this part comes
    /// directly after the first part, towards the newest end.
    pub(super) fn split(&mut self, id: u32, at: u64) -> u32 {
        let run = self.runs[id];
        let low = (at - run.page) as u32;
        self.runs[id].pages = low;
        let high = self.runs.add(Run { page: at, pages: run.pages - low, ..run });
        self.lists[usize::from(run.attributes.active)].push_newer_than(&mut self.runs, id, high);
        self.mappings[run.mapping as usize].link(&mut self.runs, high, id, run.behind);
        high
    }

    /// Joins a run with its neighbours in the mapping if they are equal. Returns the run that then
    /// contains its pages.
    pub(super) fn join_neighbours(&mut self, id: u32) -> u32 {
        let Run { before, behind, .. } = self.runs[id];
        if behind != NIL {
            self.join(id, behind);
        }
        if before != NIL && self.join(before, id) { before } else { id }
    }

    /// Joins two runs that follow one another in their mapping. Returns whether the runs could be
    /// joined.
    fn join(&mut self, low: u32, high: u32) -> bool {
        let (a, b) = (&self.runs[low], &self.runs[high]);
        let alike = a.newer == high && a.end() == b.page && a.attributes == b.attributes;
        if !alike || a.pages + b.pages > PAGES_PER_RUN {
            return false;
        }
        let (pages, marked, active, mapping) = (b.pages, b.marked, b.attributes.active, b.mapping);
        self.lists[usize::from(active)].unlink(&mut self.runs, high);
        self.mappings[mapping as usize].unlink(&mut self.runs, high);
        self.runs.release(high);
        self.runs[low].pages += pages;
        self.runs[low].marked |= marked;
        true
    }
}
