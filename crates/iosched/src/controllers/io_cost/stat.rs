//! Statistics: what each group used and waited for, itself and with the groups in it.

/// A time that is counted while it lasts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    since_us: Option<u64>,
}

impl Span {
    /// It begins at `us`, unless it lasts already.
    fn begin(&mut self, us: u64) {
        self.since_us.get_or_insert(us);
    }

    /// Its length since it began or was last asked, at `us`; 0 if it does not last.
    fn so_far(&mut self, us: u64) -> u64 {
        self.since_us.as_mut().map_or(0, |since_us| us.saturating_sub(std::mem::replace(since_us, us)))
    }
}

/// What is counted of a group, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lasting {
    /// A bio waits.
    Wait,
    /// It owes.
    Debt,
    /// Its processes rest.
    Delay,
}

/// The times that are counted while they last.
const LASTING: [Lasting; 3] = [Lasting::Wait, Lasting::Debt, Lasting::Delay];

/// Totals of a group and of those in it, in microseconds: usage of the whole device, then as [`Lasting`].
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    counted: [u64; 4],
    /// What is shown, and known to the parent.
    shown: [u64; 4],
    spans: [Span; 3],
}

impl Totals {
    /// Notes whether something lasts from `us` on.
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

    /// What lasts at `us` counts up to then.
    pub(super) fn count_lasting(&mut self, us: u64) {
        for what in LASTING {
            self.count(what, us);
        }
    }

    /// The group itself used so many microseconds of the whole device.
    pub(super) fn add_usage(&mut self, used_us: u64) {
        self.add([used_us, 0, 0, 0]);
    }

    /// What a group in it shows is new.
    pub(super) fn add(&mut self, new: [u64; 4]) {
        for (total, new) in self.counted.iter_mut().zip(new) {
            *total = total.wrapping_add(new);
        }
    }

    /// Shows what was counted; returns what is new.
    pub(super) fn show(&mut self) -> [u64; 4] {
        let new = std::array::from_fn(|i| self.counted[i].wrapping_sub(self.shown[i]));
        self.shown = self.counted;
        new
    }

    /// As `io.stat` of Linux 6.12 writes it.
    pub(super) fn text(&self) -> String {
        let [usage, wait, debt, delay] = self.shown;
        format!("cost.usage={usage} cost.wait={wait} cost.indebt={debt} cost.indelay={delay}")
    }
}
