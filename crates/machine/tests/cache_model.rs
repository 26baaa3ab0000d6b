//! Comparison of the page cache with a simple model: separate pages instead of runs, and two lists
//! of pages.
#![expect(clippy::disallowed_methods, reason = "the environment sets the number of test cases")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iosched_machine::cache::{Balance, Cached, Mapping, NoRoom, PageCache, State};
use proptest::prelude::*;

type Key = (u32, u64);

#[derive(Clone, Copy, Debug)]
struct Page {
    state: State,
    active: bool,
    referenced: bool,
}

/// Model of the documented behaviour, page by page. Each list is in order from the oldest to the
/// newest page.
#[derive(Debug, Default)]
struct Model {
    pages_max: usize,
    balance: Balance,
    /// Remainder of the proportional balance, less than one active page. It is not yet divided by
    /// the number of inactive pages.
    scans: usize,
    pages: BTreeMap<Key, Page>,
    inactive: VecDeque<Key>,
    active: VecDeque<Key>,
    marks: BTreeSet<Key>,
}

impl Model {
    fn state(&self, key: Key) -> Option<State> {
        self.pages.get(&key).map(|page| page.state)
    }

    fn count(&self, of: impl Fn(&Key, &Page) -> bool) -> u64 {
        self.pages.iter().filter(|(key, page)| of(key, page)).count() as u64
    }

    fn clean(&self) -> usize {
        self.count(|_, page| page.state == State::Clean) as usize
    }

    fn deactivate(&mut self) {
        if let Some(key) = self.active.pop_front() {
            self.pages.get_mut(&key).unwrap().active = false;
            self.inactive.push_back(key);
        }
    }

    fn drop_page(&mut self, key: Key) {
        let page = self.pages.remove(&key).unwrap();
        let list = if page.active { &mut self.active } else { &mut self.inactive };
        list.retain(|other| *other != key);
        self.marks.remove(&key);
    }

    fn insert(&mut self, mapping: u32, from: u64, pages: u64, state: State) -> Result<(), NoRoom> {
        let needed = (self.pages.len() + pages as usize).saturating_sub(self.pages_max);
        let clean = self.clean();
        if needed > clean {
            return Err(NoRoom { missing_pages: (needed - clean) as u64 });
        }
        if needed > 0 {
            let mut left = needed.max(32).min(clean);
            match self.balance {
                Balance::Halves => {
                    while self.active.len() > self.inactive.len() {
                        self.deactivate();
                    }
                }
                Balance::Proportional => {
                    let inactive = self.inactive.len().max(1);
                    self.scans += left * self.active.len();
                    (0..self.scans / inactive).for_each(|_| self.deactivate());
                    self.scans %= inactive;
                }
            }
            while left > 0 {
                while !self.inactive.iter().any(|key| self.pages[key].state == State::Clean) {
                    for _ in 0..32 {
                        self.deactivate();
                    }
                }
                let key = self.inactive.pop_front().unwrap();
                if self.pages[&key].state == State::Clean {
                    self.drop_page(key);
                    left -= 1;
                } else {
                    self.inactive.push_back(key);
                }
            }
        }
        for page in from..from + pages {
            self.pages.insert((mapping, page), Page { state, active: false, referenced: false });
            self.inactive.push_back((mapping, page));
        }
        Ok(())
    }

    fn access(&mut self, mapping: u32, from: u64, pages: u64) {
        for key in (from..from + pages).map(|page| (mapping, page)) {
            let Some(page) = self.pages.get_mut(&key) else { continue };
            if !page.referenced {
                page.referenced = true;
            } else if !page.active {
                (page.active, page.referenced) = (true, false);
                self.inactive.retain(|other| *other != key);
                self.active.push_back(key);
            }
        }
    }

    fn change(&mut self, mapping: u32, from: u64, pages: u64, next: impl Fn(State) -> State) {
        for (_, page) in self.pages.range_mut((mapping, from)..(mapping, from + pages)) {
            page.state = next(page.state);
        }
    }

    fn drop_if(&mut self, mapping: u32, from: u64, until: u64, goes: impl Fn(State) -> bool) -> Vec<State> {
        let keys: Vec<_> = self
            .pages
            .range((mapping, from)..(mapping, until))
            .filter(|(_, page)| goes(page.state))
            .map(|(key, page)| (*key, page.state))
            .collect();
        keys.iter().for_each(|(key, _)| self.drop_page(*key));
        keys.into_iter().map(|(_, state)| state).collect()
    }

    fn next_dirty(&self, mapping: u32, from: u64) -> Option<(u64, u64)> {
        let dirty = |page: &u64| self.state((mapping, *page)) == Some(State::Dirty);
        let last = self.pages.range((mapping, 0)..(mapping, u64::MAX)).next_back()?.0.1;
        let first = (from..=last).find(dirty)?;
        Some((first, (first..).take_while(dirty).count() as u64))
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(State),
    Access,
    SetDirty,
    StartWriteback,
    EndWriteback,
    ReadDone,
    /// Reads or writes through the cache: inserts the absent pages, then uses all pages.
    Write,
    Stream,
    Mark,
    TakeMark,
    Truncate,
    Invalidate,
    /// Writes all dirty pages.
    Sync,
}

/// An operation on `pages` pages from `page` on.
#[derive(Clone, Debug)]
struct Call {
    operation: Operation,
    mapping: u32,
    page: u64,
    pages: u64,
}

fn calls(mappings: u32, last_page: u64, longest: u64, number: usize) -> impl Strategy<Value = Vec<Call>> {
    let operation = prop_oneof![
        3 => prop_oneof![Just(State::Reading), Just(State::Clean), Just(State::Dirty), Just(State::Writeback)]
            .prop_map(Operation::Insert),
        6 => Just(Operation::Access),
        3 => Just(Operation::SetDirty),
        3 => Just(Operation::StartWriteback),
        3 => Just(Operation::EndWriteback),
        2 => Just(Operation::ReadDone),
        6 => Just(Operation::Write),
        6 => Just(Operation::Stream),
        2 => Just(Operation::Mark),
        1 => Just(Operation::TakeMark),
        1 => Just(Operation::Truncate),
        1 => Just(Operation::Invalidate),
        1 => Just(Operation::Sync),
    ];
    let call = (operation, 0..mappings, 0..last_page, 1..=longest).prop_map(|(operation, mapping, page, pages)| Call {
        operation,
        mapping,
        page,
        pages,
    });
    prop::collection::vec(call, 1..number)
}

fn balances() -> impl Strategy<Value = Balance> {
    prop_oneof![Just(Balance::Halves), Just(Balance::Proportional)]
}

/// The cache and the model.
struct Pair {
    cache: PageCache,
    model: Model,
}

impl Pair {
    fn new(pages_max: u64, balance: Balance) -> Self {
        Self {
            cache: PageCache::with_balance(pages_max, balance),
            model: Model { pages_max: pages_max as usize, balance, ..Model::default() },
        }
    }

    /// Inserts the absent pages of a range, one gap after the other.
    fn fill(&mut self, mapping: u32, from: u64, until: u64, state: State, accessed: bool) {
        let mut page = from;
        while page < until {
            match self.cache.get(Mapping(mapping), page) {
                Cached::Absent { until: present } => {
                    let pages = present.min(until) - page;
                    let inserted = if accessed {
                        self.cache.insert_accessed(Mapping(mapping), page, pages, state)
                    } else {
                        self.cache.insert(Mapping(mapping), page, pages, state)
                    };
                    assert_eq!(inserted, self.model.insert(mapping, page, pages, state));
                    if accessed && inserted.is_ok() {
                        self.model.access(mapping, page, pages);
                    }
                    page += pages;
                }
                Cached::Run { until, .. } => page = until,
            }
        }
    }

    fn set_dirty(&mut self, mapping: u32, page: u64, pages: u64) {
        let clean = |model: &Model| model.count(|_, page| page.state.is_dirty());
        let before = clean(&self.model);
        self.model.change(mapping, page, pages, |state| match state {
            State::Writeback | State::Redirtied => State::Redirtied,
            _ => State::Dirty,
        });
        let newly = self.cache.set_dirty(Mapping(mapping), page, pages);
        assert_eq!(newly, clean(&self.model) - before, "pages newly dirtied");
    }

    fn access(&mut self, mapping: u32, page: u64, pages: u64) {
        self.cache.access(Mapping(mapping), page, pages);
        self.model.access(mapping, page, pages);
    }

    fn start_writeback(&mut self, mapping: u32, page: u64, pages: u64) {
        self.cache.start_writeback(Mapping(mapping), page, pages);
        self.model.change(mapping, page, pages, |state| match state {
            State::Dirty => State::Writeback,
            state => state,
        });
    }

    fn end_writeback(&mut self, mapping: u32, page: u64, pages: u64) {
        self.cache.end_writeback(Mapping(mapping), page, pages);
        self.model.change(mapping, page, pages, |state| match state {
            State::Writeback => State::Clean,
            State::Redirtied => State::Dirty,
            state => state,
        });
    }

    fn read_done(&mut self, mapping: u32, page: u64, pages: u64) {
        self.cache.read_done(Mapping(mapping), page, pages);
        self.model.change(mapping, page, pages, |state| if state == State::Reading { State::Clean } else { state });
    }

    fn call(&mut self, call: &Call) {
        let Call { mapping, page, pages, .. } = *call;
        let until = page + pages;
        match call.operation {
            Operation::Insert(state) => self.fill(mapping, page, until, state, false),
            Operation::Access => self.access(mapping, page, pages),
            Operation::SetDirty => self.set_dirty(mapping, page, pages),
            Operation::StartWriteback => self.start_writeback(mapping, page, pages),
            Operation::EndWriteback => self.end_writeback(mapping, page, pages),
            Operation::ReadDone => self.read_done(mapping, page, pages),
            Operation::Write => {
                self.fill(mapping, page, until, State::Clean, true);
                self.set_dirty(mapping, page, pages);
                self.access(mapping, page, pages);
            }
            Operation::Stream => {
                self.fill(mapping, page, until, State::Reading, false);
                self.read_done(mapping, page, pages);
                for page in page..until {
                    self.access(mapping, page, 1);
                }
            }
            Operation::Mark => {
                self.cache.mark(Mapping(mapping), page);
                if self.model.state((mapping, page)).is_some() {
                    self.model.marks.insert((mapping, page));
                }
            }
            Operation::TakeMark => {
                let next = self.cache.next_mark(Mapping(mapping), page, until);
                let expected = self.model.marks.range((mapping, page)..(mapping, until)).next().map(|mark| mark.1);
                assert_eq!(next, expected, "the next mark");
                let page = next.unwrap_or(page);
                let taken = self.cache.take_mark(Mapping(mapping), page);
                assert_eq!(taken, self.model.marks.remove(&(mapping, page)), "a mark is taken once");
            }
            Operation::Truncate => {
                let dropped = self.model.drop_if(mapping, page, u64::MAX, |_| true);
                let dirty = dropped.iter().filter(|state| state.is_dirty()).count();
                assert_eq!(self.cache.truncate(Mapping(mapping), page), dirty as u64, "dirty pages truncated");
            }
            Operation::Invalidate => {
                let dropped = self.model.drop_if(mapping, page, until, |state| state == State::Clean);
                assert_eq!(self.cache.invalidate(Mapping(mapping), page, pages), dropped.len() as u64);
            }
            Operation::Sync => {
                let mut from = 0;
                while let Some((page, pages)) = self.cache.next_dirty(Mapping(mapping), from) {
                    assert_eq!(self.model.next_dirty(mapping, from), Some((page, pages)));
                    let limited = self.cache.next_dirty_up_to(Mapping(mapping), from, call.pages);
                    assert_eq!(limited, Some((page, pages.min(call.pages))), "next_dirty_up_to respects its limit");
                    self.start_writeback(mapping, page, pages);
                    from = page + pages;
                }
                assert_eq!(self.model.next_dirty(mapping, from), None, "no dirty page is forgotten");
                self.end_writeback(mapping, 0, from);
            }
        }
    }

    /// Checks that all visible state is equal.
    fn compare(&self, mappings: u32) {
        let (cache, model) = (&self.cache, &self.model);
        cache.check();
        assert!(cache.pages() <= cache.pages_max());
        assert_eq!(cache.pages(), model.pages.len() as u64, "pages");
        assert_eq!(cache.nr_active(), model.active.len() as u64, "active pages");
        assert_eq!(cache.nr_dirty(), model.count(|_, page| page.state.is_dirty()), "dirty pages");
        assert_eq!(cache.nr_writeback(), model.count(|_, page| page.state.is_writeback()), "pages under writeback");
        assert_eq!(cache.nr_reading(), model.count(|_, page| page.state == State::Reading), "pages being read");
        assert_eq!(cache.reclaimable(), model.clean() as u64, "clean pages");
        for mapping in 0..mappings {
            let of = |of: &dyn Fn(State) -> bool| model.count(|key, page| key.0 == mapping && of(page.state));
            assert_eq!(cache.pages_of(Mapping(mapping)), of(&|_| true));
            assert_eq!(cache.dirty_pages(Mapping(mapping)), of(&State::is_dirty));
            assert_eq!(cache.nr_writeback_of(Mapping(mapping)), of(&State::is_writeback));
            assert_eq!(cache.next_dirty(Mapping(mapping), 0), model.next_dirty(mapping, 0));
            let mut seen = Vec::new();
            let mut page = 0;
            while page < u64::MAX {
                match cache.get(Mapping(mapping), page) {
                    Cached::Absent { until } => page = until,
                    Cached::Run { state, until } => {
                        seen.extend((page..until).map(|page| (page, state)));
                        page = until;
                    }
                }
            }
            let expected: Vec<_> =
                model.pages.range((mapping, 0)..(mapping + 1, 0)).map(|(key, page)| (key.1, page.state)).collect();
            assert_eq!(seen, expected, "pages of mapping {mapping}");
            let mut marks = Vec::new();
            let mut from = 0;
            while let Some(mark) = cache.next_mark(Mapping(mapping), from, u64::MAX) {
                marks.push(mark);
                from = mark + 1;
            }
            let expected: Vec<_> = model.marks.range((mapping, 0)..(mapping + 1, 0)).map(|mark| mark.1).collect();
            assert_eq!(marks, expected, "marks of mapping {mapping}");
        }
    }

    /// Checks the order of reclaim by filling another mapping page by page.
    fn drain(&mut self, mappings: u32) {
        let mut page = 0;
        while self.cache.insert(Mapping(mappings), page, 1, State::Dirty).is_ok() {
            self.model.insert(mappings, page, 1, State::Dirty).unwrap();
            page += 1;
            if self.cache.reclaimable().is_multiple_of(32) {
                self.compare(mappings + 1);
            }
        }
        assert!(self.model.insert(mappings, page, 1, State::Dirty).is_err());
    }
}

/// Returns `all` cases in CI or if the environment requests long tests. Otherwise returns a quarter
/// of them.
fn cases(all: u32) -> ProptestConfig {
    let is_long = ["CI", "IOSCHED_LONG_TESTS"].iter().any(|name| std::env::var_os(name).is_some());
    ProptestConfig { cases: if is_long { all } else { all.div_ceil(4) }, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn runs_behave_like_single_pages(pages_max in 33u64..400, balance in balances(), calls in calls(3, 150, 40, 120)) {
        let mut pair = Pair::new(pages_max, balance);
        for call in &calls {
            pair.call(call);
            pair.compare(3);
        }
        pair.drain(3);
    }
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn scattered_runs_behave_like_single_pages(balance in balances(), calls in calls(2, 4000, 2, 900)) {
        let mut pair = Pair::new(700, balance);
        for call in &calls {
            pair.call(call);
            pair.cache.check();
        }
        pair.compare(2);
        pair.drain(2);
    }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn long_runs_behave_like_single_pages(balance in balances(), calls in calls(2, 4000, 3000, 40)) {
        let mut pair = Pair::new(6000, balance);
        for call in &calls {
            // The model is too slow for many single pages.
            if matches!(call.operation, Operation::Stream) { continue }
            pair.call(call);
            pair.cache.check();
        }
        pair.compare(2);
    }
}
