//! Frequencies of the blocks of a file: `random_distribution`, as in fio 3.33.
//!
//! The methods of Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD
//! 1994, draw from Zipf's law and Pareto's (self-similar) law. fio uses the same methods.
//! Multiplication with a fixed odd number (Knuth's multiplicative hashing) scatters the ranks over
//! the file. The origin is random or `centre`.
//!
//! Measurements of fio showed the meaning of `normal`. It is the mean of twelve uniform numbers
//! over the file, plus a uniform number from an interval. The standard deviation of the mean is
//! always a twelfth of the file. The width of the interval is the given percentage of the file, at
//! most half of the file. The result is also scattered.

use super::value::{Direction, Distribution, Zone, ZoneSize};
use iosched_numbers::SplitMix64;

/// Multiplier of Knuth's multiplicative hashing: 2^64 times one minus the inverse of the golden
/// ratio, made odd.
const SCATTER: u64 = 0x61C8_8646_80B5_83EB;
/// Number of uniform values whose mean `normal` uses.
const NORMAL_TERMS: u64 = 12;
/// Number of terms of a zeta sum that are added one by one. The Euler-Maclaurin formula gives the
/// other terms.
const ZETA_TERMS: u64 = 1000;

/// A distribution over the blocks of one file, for one direction.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// Number of blocks, at least 1.
    blocks: u64,
    /// Block of rank 0.
    origin: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Even,
    Zipf(Zipf),
    Pareto {
        /// Exponent that is applied to a uniform number from 0 to 1.
        power: f64,
    },
    Normal {
        /// Width of the interval, blocks.
        width: u64,
    },
    /// For each zone: cumulative share of I/Os in per cent, first block, number of blocks.
    Zones(Vec<(u32, u64, u64)>),
}

impl Spread {
    /// Creates the distribution over `blocks` of `block_bytes` each. `rng` draws the origin of a
    /// scattered distribution.
    pub(super) fn new(
        distribution: &Distribution,
        direction: Direction,
        blocks: u64,
        block_bytes: u64,
        rng: &mut SplitMix64,
    ) -> Self {
        let blocks = blocks.max(1);
        let mut origin = |centre: Option<f64>| match centre {
            Some(centre) => ((blocks as f64 * centre) as u64).min(blocks - 1),
            None => rng.below(blocks),
        };
        let (origin, law) = match distribution {
            Distribution::Random => (0, Law::Even),
            Distribution::Zipf { theta, centre } => (origin(*centre), Law::Zipf(Zipf::new(blocks, *theta))),
            Distribution::Pareto { h, centre } => (origin(*centre), Law::Pareto { power: h.ln() / (1.0 - h).ln() }),
            Distribution::Normal { deviation_percent, centre } => {
                let width = ((blocks as f64 * deviation_percent / 100.0).ceil() as u64).min(blocks / 2);
                (centre.map_or(0, |centre| origin(Some(centre))), Law::Normal { width })
            }
            Distribution::Zoned(zones) => (0, zoned(zones.of(direction), blocks, block_bytes)),
        };
        Self { blocks, origin, law }
    }

    /// Draws a block.
    pub(super) fn draw(&self, rng: &mut SplitMix64) -> u64 {
        let rank = match &self.law {
            Law::Even => return rng.below(self.blocks),
            Law::Zones(zones) => {
                let share = rng.below(100) as u32;
                let &(_, first, blocks) = zones.iter().find(|zone| share < zone.0).unwrap_or(&zones[zones.len() - 1]);
                return first + rng.below(blocks);
            }
            Law::Zipf(zipf) => zipf.rank(rng.unit()),
            Law::Pareto { power } => ((self.blocks - 1) as f64 * rng.unit().powf(*power)) as u64,
            Law::Normal { width } => {
                let mean = (0..NORMAL_TERMS).map(|_| rng.below(self.blocks)).sum::<u64>() / NORMAL_TERMS;
                let aside = rng.below(*width) as i64 - (width / 2) as i64;
                mean.saturating_add_signed(aside).min(self.blocks - 1)
            }
        };
        let scattered = u128::from(rank.wrapping_mul(SCATTER)) + u128::from(self.origin);
        (scattered % u128::from(self.blocks)) as u64
    }
}

/// Creates zones over `blocks`. Without zones, all blocks are equally likely. Zones are cut at the
/// end of the file.
fn zoned(zones: &[Zone], blocks: u64, block_bytes: u64) -> Law {
    let (mut percent, mut bytes, mut share) = (0u32, 0u64, 0u32);
    let mut first = 0;
    let mut all = Vec::with_capacity(zones.len());
    for zone in zones {
        let end = match zone.size {
            ZoneSize::Percent(more) => {
                percent = percent.saturating_add(more);
                (u128::from(blocks) * u128::from(percent) / 100) as u64
            }
            ZoneSize::Bytes(more) => {
                bytes = bytes.saturating_add(more);
                bytes / block_bytes.max(1)
            }
        };
        share = share.saturating_add(zone.access_percent);
        let first_now = first.min(blocks - 1);
        all.push((share, first_now, end.clamp(first_now + 1, blocks.max(first_now + 1)) - first_now));
        first = end.min(blocks);
    }
    if all.is_empty() { Law::Even } else { Law::Zones(all) }
}

/// Zipf's law over ranks from 0. Rank i has a share proportional to (i + 1)^-theta.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    ranks: f64,
    zeta: f64,
    /// Share of the first two ranks together, times `zeta`.
    first_two: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Creates the law over `ranks`, at least 1. `theta` must not be 1.
    pub(super) fn new(ranks: u64, theta: f64) -> Self {
        let zeta = zeta(ranks, theta);
        let first_two = 1.0 + 0.5f64.powf(theta);
        let n = ranks as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - first_two / zeta);
        Self { ranks: n, zeta, first_two, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// Returns the rank for a uniform number from 0 to 1.
    pub(super) fn rank(&self, u: f64) -> u64 {
        let share = u * self.zeta;
        if share < 1.0 || self.ranks < 2.0 {
            return 0;
        }
        if share < self.first_two || self.ranks < 3.0 {
            return 1;
        }
        let rank = self.ranks * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.ranks as u64 - 1)
    }
}

/// Returns the sum of i^-theta for i from 1 to n.
fn zeta(n: u64, theta: f64) -> f64 {
    let one_by_one = n.min(ZETA_TERMS);
    let sum: f64 = (1..=one_by_one).map(|i| (i as f64).powf(-theta)).sum();
    if n == one_by_one {
        return sum;
    }
    let (a, b) = (one_by_one as f64, n as f64);
    let integral = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (b.powf(-theta) - a.powf(-theta)) / 2.0;
    let slopes = -theta * (b.powf(-theta - 1.0) - a.powf(-theta - 1.0)) / 12.0;
    sum + integral + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::PerDirection;

    const DRAWS: usize = 200_000;

    /// Returns the number of draws of each block.
    fn counts(distribution: &Distribution, blocks: u64) -> Vec<u64> {
        let mut rng = SplitMix64::new(42);
        let spread = Spread::new(distribution, Direction::Read, blocks, 4096, &mut rng);
        let mut counts = vec![0u64; blocks as usize];
        for _ in 0..DRAWS {
            counts[spread.draw(&mut rng) as usize] += 1;
        }
        counts
    }

    fn share(counts: &[u64]) -> f64 {
        counts.iter().sum::<u64>() as f64 / DRAWS as f64
    }

    #[test]
    fn zeta_of_many_terms_equals_the_exact_sum() {
        for theta in [0.2, 0.8, 1.2, 3.0] {
            let exact: f64 = (1..=100_000u64).map(|i| (i as f64).powf(-theta)).sum();
            assert!((zeta(100_000, theta) / exact - 1.0).abs() < 1e-12, "{theta}");
        }
    }

    #[test]
    fn zipf_shares_follow_zipfs_law() {
        let mut counts = counts(&Distribution::Zipf { theta: 1.2, centre: None }, 1 << 14);
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        let zeta = zeta(1 << 14, 1.2);
        for rank in [1u64, 2, 3, 10, 100] {
            let expected = super::zeta(rank, 1.2) / zeta;
            let found = share(&counts[..rank as usize]);
            assert!((found / expected - 1.0).abs() < 0.05, "first {rank}: {found} of {expected}");
        }
    }

    #[test]
    fn pareto_gives_a_fifth_of_the_blocks_four_fifths_of_the_ios() {
        let counts = counts(&Distribution::Pareto { h: 0.2, centre: Some(0.0) }, 1 << 14);
        // With a power of two, the scattering maps no two ranks to the same block.
        let by_rank: Vec<u64> =
            (0..(1 << 14) / 5u64).map(|i| counts[(i.wrapping_mul(SCATTER) % (1 << 14)) as usize]).collect();
        assert!((share(&by_rank) - 0.8).abs() < 0.01);
    }

    #[test]
    fn centre_is_the_most_frequent_block() {
        for distribution in
            [Distribution::Zipf { theta: 0.9, centre: Some(0.25) }, Distribution::Pareto { h: 0.3, centre: Some(0.25) }]
        {
            let counts = counts(&distribution, 1000);
            assert_eq!(counts.iter().enumerate().max_by_key(|(_, count)| **count).unwrap().0, 250);
        }
    }

    #[test]
    fn zones_get_their_shares_of_all_ios() {
        let zone = |access_percent, percent| Zone { access_percent, size: ZoneSize::Percent(percent) };
        let zones = vec![zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)];
        let counts = counts(&Distribution::Zoned(PerDirection::all(zones)), 1000);
        for (range, expected) in [(0..100, 0.60), (100..300, 0.30), (300..600, 0.08), (600..1000, 0.02)] {
            assert!((share(&counts[range]) - expected).abs() < 0.005);
        }
    }

    #[test]
    fn zones_in_bytes_end_at_the_end_of_the_file() {
        let zone = |access_percent, bytes| Zone { access_percent, size: ZoneSize::Bytes(bytes) };
        let zones = vec![zone(50, 4096 * 10), zone(40, 4096 * 1000), zone(10, 4096)];
        let counts = counts(&Distribution::Zoned(PerDirection::all(zones)), 100);
        assert!((share(&counts[..10]) - 0.5).abs() < 0.005);
    }

    #[test]
    fn distributions_stay_within_small_files() {
        let laws = [
            Distribution::Zipf { theta: 1.3, centre: None },
            Distribution::Pareto { h: 0.1, centre: Some(1.0) },
            Distribution::Normal { deviation_percent: 20.0, centre: None },
            Distribution::Random,
        ];
        for blocks in 1..5 {
            for law in &laws {
                assert_eq!(share(&counts(law, blocks)), 1.0, "{law:?}");
            }
        }
    }
}
