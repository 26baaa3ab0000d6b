//! Latency model of one operation: a base for 4 KiB, and a slope for each further KiB.
//!
//! Samples are counted in histogram cells by their ratio to the expected latency. Each operation
//! has its own cells. An update moves the samples to one store that all operations share, and
//! computes base and slope from that store. An operation may therefore learn from samples of other
//! operations.

/// Size of the largest small request, bytes. Latencies of small requests determine the base.
pub(super) const SMALL_BYTES: u32 = 4096;
/// Number of cells of each kind.
const CELLS: usize = 64;
/// Number of samples with which an update does not wait for the interval.
const ENOUGH: u64 = 1024;
/// Interval between updates with fewer samples, ms.
const INTERVAL_MS: u64 = 1_500;
/// Bytes in a KiB.
const KIB: u64 = 1024;
const GIB: u64 = 1 << 30;

/// Rules by which old samples lose weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shrinking {
    /// Number of small samples, in thousands, above which they lose weight.
    pub(super) kilo_requests: u64,
    /// Total size of large samples above which they lose weight, GiB.
    pub(super) gib: u64,
    /// Samples lose the part 1/2^`shift` of their weight.
    pub(super) shift: u32,
}

/// Samples of about the same latency.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    weight: u64,
    latency_ns: u64,
    /// Only for large requests.
    bytes: u64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.weight = self.weight.wrapping_add(other.weight);
        self.latency_ns = self.latency_ns.wrapping_add(other.latency_ns);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }

    /// Returns the part of the sums that corresponds to `weight`.
    fn part(self, weight: u64) -> Self {
        let share = |sum: u64| sum.wrapping_mul(weight) / self.weight;
        Self { weight, latency_ns: share(self.latency_ns), bytes: share(self.bytes) }
    }
}

/// Samples of small requests, or of large requests.
#[derive(Clone, Debug)]
struct Cells([Cell; CELLS]);

impl Default for Cells {
    fn default() -> Self {
        Self([Cell::default(); CELLS])
    }
}

impl Cells {
    fn weight(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, cell| sum.wrapping_add(cell.weight))
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Moves the contents of `fresh` into these cells.
    fn take(&mut self, fresh: &mut Self) {
        for (cell, fresh) in self.0.iter_mut().zip(&mut fresh.0) {
            cell.add(std::mem::take(fresh));
        }
    }

    /// Returns the sum of the lowest `percent` of the samples. `all` is their total weight.
    fn lowest(&self, all: u64, percent: u64) -> Cell {
        let wanted = all.wrapping_mul(percent) / 100;
        let mut sum = Cell::default();
        for &cell in &self.0 {
            if sum.weight.wrapping_add(cell.weight) >= wanted {
                if cell.weight > 0 {
                    sum.add(cell.part(wanted.wrapping_sub(sum.weight)));
                }
                break;
            }
            sum.add(cell);
        }
        sum
    }
}

/// Samples of small and of large requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    small: Cells,
    large: Cells,
}

impl Samples {
    /// Returns the weights of small and large samples.
    pub(super) fn weights(&self) -> (u64, u64) {
        (self.small.weight(), self.large.weight())
    }

    pub(super) fn clear(&mut self) {
        self.small.clear();
        self.large.clear();
    }
}

/// Returns the cell of a latency for the expected latency `expected_ns`. From 5 times the expected
/// latency on, the cells begin again at 55. Therefore the cells from 55 on hold two ranges of
/// latencies, as in the original.
fn cell(latency_ns: u64, expected_ns: u64) -> usize {
    // As in the original, only the lower 32 bits are used as the divisor.
    let divisor = (expected_ns & u64::from(u32::MAX)).max(1);
    let times = |factor: u64| latency_ns.wrapping_mul(factor) / divisor;
    let cell = if latency_ns < expected_ns.wrapping_mul(2) {
        times(20)
    } else if latency_ns < expected_ns.wrapping_mul(5) {
        times(10) + 20
    } else {
        times(3) + 40
    };
    (cell as u32 as usize).min(CELLS - 1)
}

/// Learned latencies of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// Latency of a small request, ns; 0: not known.
    pub(super) base_ns: u64,
    /// Latency of each further KiB, ns; 0: not known.
    pub(super) slope_ns: u64,
    pub(super) small_sum: u64,
    pub(super) small_count: u64,
    pub(super) large_sum: u64,
    pub(super) large_bytes: u64,
}

/// Latency model of one operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) known: Known,
    /// Jiffy of the last update.
    updated: u64,
    fresh: Samples,
}

impl Model {
    pub(super) fn new(jiffy: u64) -> Self {
        Self { updated: jiffy, ..Self::default() }
    }

    /// Returns the predicted latency of a request of `bytes` bytes, ns.
    #[inline]
    pub(super) fn predict(&self, bytes: u32) -> u64 {
        let Known { base_ns, slope_ns, .. } = self.known;
        match bytes.checked_sub(SMALL_BYTES) {
            None | Some(0) => base_ns,
            Some(more) => base_ns.wrapping_add(slope_ns.wrapping_mul(u64::from(more).div_ceil(KIB))),
        }
    }

    /// Adds a sample of a request of `bytes` bytes with the predicted latency `predicted_ns`.
    /// Returns the cell of the sample, or `None` if the sample is not usable.
    pub(super) fn sample(&mut self, latency_ns: u64, weight: u64, bytes: u32, predicted_ns: u64) -> Option<usize> {
        let base_ns = self.known.base_ns;
        let latencies_ns = latency_ns.wrapping_mul(weight);
        let (cells, at, bytes) = if bytes <= SMALL_BYTES {
            (&mut self.fresh.small, cell(latency_ns, base_ns.max(1)), 0)
        } else if base_ns == 0 || predicted_ns == 0 {
            return None;
        } else {
            let bytes = u64::from(bytes).wrapping_mul(weight) & u64::from(u32::MAX);
            (&mut self.fresh.large, cell(latency_ns, predicted_ns), bytes)
        };
        cells.0[at].add(Cell { weight, latency_ns: latencies_ns, bytes });
        Some(at)
    }

    /// Moves the samples to `shared`, and learns from `shared` if an update is due.
    pub(super) fn update(&mut self, shared: &mut Samples, jiffy: u64, hz: u32, shrinking: Shrinking) {
        shared.small.take(&mut self.fresh.small);
        shared.large.take(&mut self.fresh.large);
        let Known { base_ns, slope_ns, .. } = self.known;
        let (small, large) = shared.weights();
        let interval = (INTERVAL_MS * u64::from(hz)).div_ceil(1000);
        let due = base_ns == 0 || self.updated.wrapping_add(interval) <= jiffy;
        let (mut small_learnt, mut large_learnt) = (false, false);
        if small > 0 && (due || small >= ENOUGH) {
            small_learnt = self.learn_small(&shared.small, small, shrinking);
            shared.small.clear();
        }
        if large > 0 && (due || large >= ENOUGH || slope_ns == 0) {
            large_learnt = self.learn_large(&shared.large, large, shrinking);
            shared.large.clear();
        }
        let known = &mut self.known;
        let quotient = |sum: u64, count: u64| sum.checked_div(count & u64::from(u32::MAX));
        if small_learnt && let Some(base_ns) = quotient(known.small_sum, known.small_count) {
            known.base_ns = base_ns;
        }
        if large_learnt && let Some(slope_ns) = quotient(known.large_sum, known.large_bytes.div_ceil(KIB)) {
            known.slope_ns = slope_ns;
        }
        if small_learnt || large_learnt || due {
            self.updated = jiffy;
        }
    }

    /// Adds the samples of small requests, except the slowest. Returns `false` if there are none.
    fn learn_small(&mut self, cells: &Cells, weight: u64, shrinking: Shrinking) -> bool {
        let known = &mut self.known;
        let lowest = cells.lowest(weight, percent(known.base_ns));
        let less = known.small_count >> shrinking.shift;
        if known.small_count >= shrinking.kilo_requests * 1000 && less > 0 {
            known.small_sum -= known.small_sum >> shrinking.shift;
            known.small_count -= less;
        }
        known.small_sum = known.small_sum.wrapping_add(lowest.latency_ns);
        known.small_count = known.small_count.wrapping_add(lowest.weight);
        lowest.weight > 0
    }

    /// Adds the samples of large requests, except the slowest. Returns `false` if there are none.
    fn learn_large(&mut self, cells: &Cells, weight: u64, shrinking: Shrinking) -> bool {
        let known = &mut self.known;
        let lowest = cells.lowest(weight, percent(known.slope_ns));
        if lowest.weight == 0 {
            return false;
        }
        let less = known.large_bytes >> shrinking.shift;
        if known.large_bytes >= shrinking.gib * GIB && less > 0 {
            known.large_sum -= known.large_sum >> shrinking.shift;
            known.large_bytes -= less;
        }
        // The base is subtracted once for all samples together, as in the original.
        let above =
            if lowest.latency_ns > known.base_ns { lowest.latency_ns - known.base_ns } else { lowest.latency_ns };
        known.large_sum = known.large_sum.wrapping_add(above);
        known.large_bytes = known.large_bytes.wrapping_add(lowest.bytes);
        true
    }

    /// Replaces the model by these values. Each value counts as one sample.
    pub(super) fn load(&mut self, base_ns: u64, slope_ns: u64, jiffy: u64) {
        let known =
            Known { base_ns, slope_ns, small_sum: base_ns, small_count: 1, large_sum: slope_ns, large_bytes: KIB };
        *self = Self { known, ..Self::new(jiffy) };
    }
}

/// Returns the percentage of samples that count. While the latency is not known, all samples count.
fn percent(known_ns: u64) -> u64 {
    if known_ns == 0 { 100 } else { 99 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHRINKING: Shrinking = Shrinking { kilo_requests: 5000, gib: 50, shift: 2 };
    const HZ: u32 = 1000;

    fn update(model: &mut Model, shared: &mut Samples, jiffy: u64) {
        model.update(shared, jiffy, HZ, SHRINKING);
    }

    #[test]
    fn prediction_adds_the_slope_per_started_kib_above_4_kib() {
        let mut model = Model::default();
        model.load(1000, 10, 0);
        assert_eq!(
            [0, 512, 4096, 4097, 5120, 5121].map(|bytes| model.predict(bytes)),
            [1000, 1000, 1000, 1010, 1010, 1020]
        );
    }

    #[test]
    fn cells_start_again_at_55_from_5_times_the_expected_latency() {
        let of = |latency_ns| cell(latency_ns, 100);
        assert_eq!(
            [0, 4, 5, 199, 200, 429, 430, 499, 500, 767, u64::MAX / 100].map(of),
            [0, 0, 1, 39, 40, 62, 63, 63, 55, 63, 63]
        );
    }

    #[test]
    fn cell_divides_by_the_low_32_bits_of_the_expectation() {
        assert_eq!(cell(1, (1 << 32) + 5), 4);
        assert_eq!(cell(1, 1 << 32), 20, "a divisor of 0 counts as 1");
    }

    #[test]
    fn adios_drops_the_slowest_hundredth_of_later_samples() {
        let (mut model, mut shared) = (Model::new(0), Samples::default());
        model.sample(300, 1, 4096, 0);
        update(&mut model, &mut shared, 0);
        assert_eq!((model.known.base_ns, model.known.small_count), (300, 1));
        for latency_ns in [300; 99].into_iter().chain([90_000]) {
            model.sample(latency_ns, 1, 4096, 300);
        }
        update(&mut model, &mut shared, 1500);
        assert_eq!((model.known.base_ns, model.known.small_count), (300, 100));
        assert_eq!(shared.weights(), (0, 0), "samples that do not count are dropped, too");
    }

    #[test]
    fn lone_sample_is_lost() {
        let (mut model, mut shared) = (Model::default(), Samples::default());
        model.load(300, 0, 0);
        model.sample(900, 1, 512, 300);
        update(&mut model, &mut shared, 1500);
        assert_eq!((model.known.base_ns, model.known.small_count, shared.weights()), (300, 1, (0, 0)));
        model.sample(900, 1, 512, 300);
        update(&mut model, &mut shared, 1501);
        assert_eq!(shared.weights(), (1, 0), "the lost sample counted as an update, so no update is due");
    }

    #[test]
    fn read_samples_not_yet_learnt_go_to_the_model_of_writes() {
        let (mut reads, mut writes, mut shared) = (Model::default(), Model::new(0), Samples::default());
        reads.load(300, 0, 0);
        for _ in 0..10 {
            reads.sample(300, 1, 4096, 300);
        }
        update(&mut reads, &mut shared, 1499);
        assert_eq!(shared.weights(), (10, 0), "no update is due, and there are too few samples");
        update(&mut writes, &mut shared, 1499);
        assert_eq!((writes.known.base_ns, writes.known.small_count), (300, 10));
    }

    #[test]
    fn large_sample_needs_a_base_and_a_prediction() {
        let mut model = Model::new(0);
        assert_eq!(model.sample(500, 1, 8192, 400), None);
        model.load(100, 0, 0);
        assert_eq!(model.sample(500, 1, 8192, 0), None);
        assert_eq!(model.sample(500, 1, 8192, 400), Some(25));
    }

    #[test]
    fn base_is_subtracted_once_from_the_sum_of_large_latencies() {
        let (mut model, mut shared) = (Model::default(), Samples::default());
        model.load(100, 0, 0);
        for _ in 0..2 {
            model.sample(500, 1, 8192, 100);
        }
        update(&mut model, &mut shared, 1);
        assert_eq!((model.known.large_sum, model.known.large_bytes), (900, 1024 + 16_384));
        assert_eq!(model.known.slope_ns, 900 / 17);
    }

    #[test]
    fn old_samples_lose_weight_from_the_threshold_on() {
        let (mut model, mut shared) = (Model::default(), Samples::default());
        model.load(100, 0, 0);
        (model.known.small_sum, model.known.small_count) = (100_000, 1000);
        for _ in 0..100 {
            model.sample(100, 1, 512, 100);
        }
        model.update(&mut shared, 1500, HZ, Shrinking { kilo_requests: 1, gib: 1, shift: 1 });
        assert_eq!((model.known.small_sum, model.known.small_count), (50_000 + 9_900, 500 + 99));
    }

    #[test]
    fn loading_base_0_counts_as_a_sample_of_0() {
        let (mut model, mut shared) = (Model::default(), Samples::default());
        model.load(0, 0, 0);
        model.sample(400, 1, 4096, 0);
        update(&mut model, &mut shared, 0);
        assert_eq!(model.known.base_ns, 200);
    }
}
