//! `empirical`: random latencies from measured distributions, without a mechanism.
//!
//! This model is for devices whose mechanism is unknown. It uses measured latencies of commands by
//! operation, size, and number of commands in flight. The latency of a command is drawn from the
//! nearest measurements. Between measured sizes and numbers, the model interpolates the logarithms
//! linearly. Beyond the largest size or number, the latency grows in proportion to it.
//!
//! The model weights each command in flight by its cost: the time that a busy device needs for the
//! command. A few large commands therefore delay a small command as much as many small commands do.
//! Earlier commands also matter: whether the command continues another command, the share of writes
//! among the last commands, and whether the device has rested. A closed loop with a constant number
//! of equal commands has the measured rate: the number of commands in flight divided by their mean
//! latency.
//!
//! Commands have no order: the command that was submitted first can complete last. Effects that
//! were not measured are missing.

mod config;

use iosched::{Op, Time};
use iosched_numbers::SplitMix64;

pub use self::config::{EmpiricalCell, EmpiricalConfig};
use crate::completions::Completions;
use crate::config::ConfigError;
use crate::credits::Credits;
use crate::ends::Ends;
use crate::rest::Rest;
use crate::{Card, Command, Device};

/// Weight of the latest command in the recent share of writes.
const RECENT: f64 = 1.0 / 32.0;

/// Measured latencies of commands of one kind.
#[derive(Clone, Debug, Default)]
struct Grid {
    /// Logarithms of the sizes in sectors, ascending.
    sizes: Vec<f64>,
    /// Logarithms of the numbers of commands in flight, ascending.
    numbers: Vec<f64>,
    /// Latencies at each share of the distribution, ns. The outer index is the cell: by size, then
    /// by number.
    ns: Vec<Vec<f64>>,
    /// Logarithms of the cost of a command for a busy device, ns, by size.
    costs: Vec<f64>,
}

impl Grid {
    fn of(cells: &[EmpiricalCell], shares: &[f64]) -> Self {
        let mut cells: Vec<&EmpiricalCell> = cells.iter().collect();
        cells.sort_by_key(|cell| (cell.sectors, cell.under_way));
        let logarithms = |value: &dyn Fn(&EmpiricalCell) -> u32| {
            let mut all: Vec<u32> = cells.iter().map(|cell| value(cell)).collect();
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(|value| f64::from(value).ln()).collect()
        };
        let numbers: Vec<f64> = logarithms(&|cell| cell.under_way);
        // The last cell of each size has the largest number of commands in flight.
        let busiest = cells.iter().skip(numbers.len().max(1) - 1).step_by(numbers.len().max(1));
        let cost = |cell: &&EmpiricalCell| (mean_ns(&cell.ns, shares) / f64::from(cell.under_way)).ln();
        Self {
            sizes: logarithms(&|cell| cell.sectors),
            costs: busiest.map(cost).collect(),
            ns: cells.iter().map(|cell| cell.ns.iter().map(|&ns| ns as f64).collect()).collect(),
            numbers,
        }
    }

    /// Returns the cost of a command of this size for a busy device, ns.
    fn cost_ns(&self, nr_sectors: u32) -> f64 {
        let (size, part, beyond) = between(&self.sizes, f64::from(nr_sectors.max(1)).ln());
        let first = self.costs[size];
        (first + part * (self.costs[(size + 1).min(self.costs.len() - 1)] - first) + beyond).exp()
    }

    const fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// Returns the logarithm of the latency in ns of a command of this size, with `under_way`
    /// commands in flight, at a position between two shares.
    fn ln_ns(&self, nr_sectors: u32, under_way: f64, place: Place) -> f64 {
        let (size, size_part, size_beyond) = between(&self.sizes, f64::from(nr_sectors.max(1)).ln());
        let (number, number_part, number_beyond) = between(&self.numbers, under_way.ln());
        let at = |size: usize, number: usize| {
            let ns = &self.ns[size.min(self.sizes.len() - 1) * self.numbers.len() + number.min(self.numbers.len() - 1)];
            place.of(ns).ln()
        };
        let along = |size: usize| {
            let first = at(size, number);
            if number_part == 0.0 { first } else { first + number_part * (at(size, number + 1) - first) }
        };
        let first = along(size);
        let inside = if size_part == 0.0 { first } else { first + size_part * (along(size + 1) - first) };
        inside + size_beyond + number_beyond
    }
}

/// Returns the mean of a distribution, given as times at shares.
fn mean_ns(ns: &[u64], shares: &[f64]) -> f64 {
    let part = |i: usize| (shares[i + 1] - shares[i]) * (ns[i] + ns[i + 1]) as f64 / 2.0;
    (0..shares.len() - 1).map(part).sum()
}

/// Returns the position of `value` among ascending values. The position has three parts: the index
/// of the value before it, the share of the distance to the next value, and the distance beyond the
/// last value.
fn between(values: &[f64], value: f64) -> (usize, f64, f64) {
    let behind = values.partition_point(|&known| known <= value);
    match (behind.checked_sub(1), values.get(behind)) {
        (None, _) => (0, 0.0, 0.0),
        (Some(last), None) => (last, 0.0, value - values[last]),
        (Some(lower), Some(next)) => (lower, (value - values[lower]) / (next - values[lower]), 0.0),
    }
}

/// A position between two shares of a distribution.
#[derive(Clone, Copy, Debug)]
struct Place {
    behind: usize,
    part: f64,
}

impl Place {
    /// Returns the place of `share`, 0 to 1.
    fn among(shares: &[f64], share: f64) -> Self {
        let behind = shares.partition_point(|&known| known <= share).clamp(1, shares.len() - 1) - 1;
        Self { behind, part: (share - shares[behind]) / (shares[behind + 1] - shares[behind]) }
    }

    /// Returns the interpolated value at this place.
    fn of(self, values: &[f64]) -> f64 {
        values[self.behind] + self.part * (values[self.behind + 1] - values[self.behind])
    }
}

/// A device with random latencies from measured distributions.
#[derive(Clone, Debug)]
pub struct Empirical {
    card: Card,
    flush_ns: u64,
    shares: Vec<f64>,
    /// Measured latencies. The first index tells whether the commands write, the second index
    /// whether they continue another command.
    grids: [[Grid; 2]; 2],
    /// Logarithms of the factors for latencies when half of the commands have the opposite
    /// direction. Index 0 has the factors of reads, index 1 those of writes.
    company: [Vec<f64>; 2],
    rest: Rest,
    credits: Credits,
    completions: Completions,
    /// Cost of each command in flight, ns (the index is the tag), and the sum of these costs.
    costs_ns: Vec<f64>,
    all_costs_ns: f64,
    submitted: u64,
    /// Ends of the last commands.
    ends: Ends,
    /// Recent share of writes.
    writes: f64,
    random: SplitMix64,
}

impl Empirical {
    /// Creates an idle device.
    ///
    /// # Errors
    /// The errors of [`EmpiricalConfig::validate`].
    pub fn new(config: &EmpiricalConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let logarithms = |factors: &[f64]| factors.iter().map(|factor| factor.ln()).collect::<Vec<_>>();
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                hw_queues: config.hw_queues,
                rotational: config.rotational,
                write_cache: config.write_cache,
                fua: config.fua,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            flush_ns: config.flush_ns,
            shares: config.shares.clone(),
            grids: [
                [Grid::of(&config.random_reads, &config.shares), Grid::of(&config.sequential_reads, &config.shares)],
                [Grid::of(&config.random_writes, &config.shares), Grid::of(&config.sequential_writes, &config.shares)],
            ],
            company: [logarithms(&config.reads_beside_writes), logarithms(&config.writes_beside_reads)],
            rest: Rest::new(config.rest.as_ref()),
            credits: Credits::new(&config.credits),
            completions: Completions::new(config.depth),
            costs_ns: Vec::new(),
            all_costs_ns: 0.0,
            submitted: 0,
            ends: Ends::new(),
            writes: 0.0,
            random: SplitMix64::new(0),
        })
    }

    /// Sets the seed of all random values. Must be called before any command.
    pub(crate) const fn set_seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
    }

    /// Returns the measured latencies of the nearest kind of command.
    fn grid(&self, is_write: bool, continues: bool) -> &Grid {
        let grids = &self.grids[usize::from(is_write)];
        let kind = if grids.iter().all(Grid::is_empty) { &self.grids[0] } else { grids };
        // Possibly only one of the two grids was measured for writes.
        if kind[usize::from(continues)].is_empty() {
            &kind[usize::from(!continues)]
        } else {
            &kind[usize::from(continues)]
        }
    }

    /// Returns the latency of a command with data, ns. Also returns the cost of the command, ns. It
    /// delays later commands while the command is in flight.
    fn data_ns(&mut self, command: &Command) -> (u64, f64) {
        let is_write = command.op != Op::Read;
        let continues = self.ends.continues(command);
        let share = self.random.unit();
        let place = Place::among(&self.shares, share);
        let grid = self.grid(is_write, continues);
        let cost_ns = grid.cost_ns(command.nr_sectors);
        // On average, a larger command is already half complete, so only half of its additional
        // cost counts. Commands of the same size count in full, as in the measurement.
        let largest_ns = self.costs_ns.iter().copied().fold(0.0, f64::max);
        let others_ns = self.all_costs_ns - 0.5 * (largest_ns - cost_ns).max(0.0);
        let mut ln_ns = grid.ln_ns(command.nr_sectors, 1.0 + others_ns.max(0.0) / cost_ns, place);
        let factors = &self.company[usize::from(is_write)];
        if !factors.is_empty() {
            let others = if is_write { 1.0 - self.writes } else { self.writes };
            ln_ns += place.of(factors) * (2.0 * others).min(1.0);
        }
        let writes = if is_write { 1.0 } else { 0.0 };
        self.writes = if self.submitted == 0 { writes } else { self.writes + (writes - self.writes) * RECENT };
        self.ends.add(command);
        ((ln_ns.exp() as u64).max(1), cost_ns)
    }
}

impl Device for Empirical {
    fn card(&self) -> &Card {
        &self.card
    }

    fn submit(&mut self, now: Time, command: Command) {
        let now_ns = now.as_ns();
        let is_first = self.completions.len() == 0;
        let random = &mut self.random;
        let awake_ns = self.rest.awake_ns(now_ns, is_first, || random.unit());
        let begins_ns = self.credits.pay(now_ns, &command).max(awake_ns);
        let (takes_ns, cost_ns) = if command.op.has_data() { self.data_ns(&command) } else { (self.flush_ns, 0.0) };
        let tag = command.tag as usize;
        if self.costs_ns.len() <= tag {
            self.costs_ns.resize(tag + 1, 0.0);
        }
        self.costs_ns[tag] = cost_ns;
        self.all_costs_ns += cost_ns;
        self.completions.push(Time::from_ns(begins_ns.saturating_add(takes_ns)), self.submitted, command.tag);
        self.submitted += 1;
    }

    fn next_event(&self) -> Option<Time> {
        self.completions.next()
    }

    fn advance(&mut self, now: Time) -> Option<u32> {
        let tag = self.completions.pop(now)?;
        self.all_costs_ns -= std::mem::take(&mut self.costs_ns[tag as usize]);
        if self.completions.len() == 0 {
            self.rest.idles(now.as_ns());
            // This removes accumulated rounding errors.
            self.all_costs_ns = 0.0;
        }
        Some(tag)
    }
}
