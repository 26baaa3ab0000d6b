//! Statistics: use and waits of each group, including its descendants.

/// Time span that is counted while it lasts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    since_us: Option<u64>,
}

impl Span {
    /// Starts the span at `us`, unless it has started.
    fn begin(&mut self, us: u64) {
        self.since_us.get_or_insert(us);
    }

    /// Returns the length of the span up to `us`, since its start or since the last call. Returns 0
    /// if the span has not started.
    fn so_far(&mut self, us: u64) -> u64 {
        self.since_us.as_mut().map_or(0, |since_us| us.saturating_sub(std::mem::replace(since_us, us)))
    }
}

/// State of a group whose duration is counted, µs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lasting {
    /// A bio waits.
    Wait,
    /// The group has a debt.
    Debt,
    /// Processes of the group are delayed.
    Delay,
}

/// All counted states.
const LASTING: [Lasting; 3] = [Lasting::Wait, Lasting::Debt, Lasting::Delay];

/// Totals of a group and its descendants, µs: use of the whole device,
/// then the states in the order of [`Lasting`].
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    counted: [u64; 4],
    /// Totals that are shown, and included in the parent's totals.
    shown: [u64; 4],
    spans: [Span; 3],
}

impl Totals {
    /// Records whether a state lasts from `us` on.
    pub(super) fn note(&mut self, what: Lasting, lasts: bool, us: u64) {
        if lasts {
            self.spans[what as usize].begin(us);
        } else {
            self.count(what, us);
            self.spans[what as usize] = Span::default();
        }
    }

    fn count(&mut self, what: Lasting, us: u64) {
        let so_far = self.spans[what as usize].so_far(us);
        self.counted[1 + what as usize] += so_far;
    }

    /// Counts the lasting states up to `us`.
    pub(super) fn count_lasting(&mut self, us: u64) {
        for what in LASTING {
            self.count(what, us);
        }
    }

    /// Adds the group's own use, in µs of the whole device.
    pub(super) fn add_usage(&mut self, used_us: u64) {
        self.add([used_us, 0, 0, 0]);
    }

    /// Adds the new totals of a child group.
    pub(super) fn add(&mut self, new: [u64; 4]) {
        for (total, new) in self.counted.iter_mut().zip(new) {
            *total = total.wrapping_add(new);
        }
    }

    /// Shows the counted totals. Returns the increase.
    pub(super) fn show(&mut self) -> [u64; 4] {
        let new = std::array::from_fn(|i| self.counted[i].wrapping_sub(self.shown[i]));
        self.shown = self.counted;
        new
    }

    /// Returns the text in `io.stat` as in Linux 6.12.
    pub(super) fn text(&self) -> String {
        let [usage, wait, debt, delay] = self.shown;
        format!("cost.usage={usage} cost.wait={wait} cost.indebt={debt} cost.indelay={delay}")
    }
}
