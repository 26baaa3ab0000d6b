//! The machine's state at the start of a run. Two runs of the same programs differ from the
//! beginning.
//!
//! There are two differences. The machine's description limits each of them:
//!
//! - *Memory*: the kernel and other programs do not always use the same amount.
//! - *Processor*: the same program runs at another speed each time, because its pages, the kernel's
//!   tables and other users of the caches have other addresses. The speed is constant for the whole
//!   run, so repetitions within the run cannot average it out (Kalibera, Bulej and Tůma, "Benchmark
//!   precision and random initial state", 2005; Mytkowicz, Diwan, Hauswirth and Sweeney, "Producing
//!   wrong data without doing anything obviously wrong!", 2009).
//!
//! Other modules choose the positions of files and the times at which periodic threads begin.

use iosched_numbers::SplitMix64;
use serde::Deserialize;

use crate::description::{Cpu, Machine};

/// Number of the stream of random values that determines the differences. The stream also depends
/// on the run's seed.
const STREAM: u64 = 0x7374_6172;
/// Resolution of the factor of CPU times: a factor of 1 is this number.
const PARTS: u64 = 1_000_000;

/// Bounds of the variation between runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Largest deviation of a run's CPU times, percent, 0 to 50.
    #[serde(deserialize_with = "percent")]
    pub cpu_percent: u32,
    /// Largest deviation of the page cache's size, MiB.
    pub memory_mib: u64,
}

/// Parses a percentage from 0 to 50.
fn percent<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let percent = u32::deserialize(deserializer)?;
    match percent {
        0..=50 => Ok(percent),
        _ => Err(serde::de::Error::custom(format!("cpu_percent is {percent}, but it must be from 0 to 50"))),
    }
}

impl Machine {
    /// Returns the machine with the variation of the run with `seed`.
    #[must_use]
    pub fn found(&self, seed: u64) -> Self {
        let mut rng = SplitMix64::entity(seed, STREAM);
        let bound = u64::from(self.spread.cpu_percent) * (PARTS / 100);
        let parts = PARTS - bound + rng.below(2 * bound + 1);
        let memory_mib = self.spread.memory_mib.min(self.cache_mib.saturating_sub(1));
        let cache_mib = self.cache_mib - memory_mib + rng.below(2 * memory_mib + 1);
        Self { cache_mib, cpu: self.cpu.slowed(parts), ..self.clone() }
    }
}

impl Cpu {
    /// Returns these values with every time multiplied by the factor `parts` / [`PARTS`].
    fn slowed(&self, parts: u64) -> Self {
        let time_ns = |ns: u64| (u128::from(ns) * u128::from(parts) / u128::from(PARTS)) as u64;
        let rate = |per_s: u64| (u128::from(per_s) * u128::from(PARTS) / u128::from(parts)) as u64;
        Self {
            syscall_ns: time_ns(self.syscall_ns),
            page_ns: time_ns(self.page_ns),
            copy_bytes_per_s: rate(self.copy_bytes_per_s),
            cached_copy_bytes_per_s: rate(self.cached_copy_bytes_per_s),
            cache_bytes: self.cache_bytes,
            zero_bytes_per_s: rate(self.zero_bytes_per_s),
            metadata_ns: time_ns(self.metadata_ns),
            inode_ns: self.inode_ns.map(time_ns),
            spawn_ns: time_ns(self.spawn_ns),
            submit_ns: time_ns(self.submit_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(spread: &str) -> Result<Machine, toml::de::Error> {
        toml::from_str(&format!(
            "about = 'small'\nkernel = '2.6.30'\nhz = 1000\ncache_mib = 400\nread_ahead_kb = 128\n{spread}\n\
             [cpu]\nsyscall_ns = 300\npage_ns = 300\ncopy_bytes_per_s = 4000000000\ncached_copy_bytes_per_s = 6000000000\n\
             cache_bytes = 4194304\nzero_bytes_per_s = 6000000000\nmetadata_ns = 10000\nspawn_ns = 900000\n\
             submit_ns = 3000\n[vm]\ndirty_background_ratio = 10\ndirty_ratio = 20\ndirty_expire_ms = 30000\n\
             dirty_writeback_ms = 5000\n[file_system]\nkind = 'ext4'\n"
        ))
    }

    #[test]
    fn without_spread_every_run_has_the_same_machine() {
        let machine = machine("").unwrap();
        assert!((0..20).all(|seed| machine.found(seed) == machine));
    }

    #[test]
    fn spread_varies_the_machine_within_bounds_by_seed() {
        let machine = machine("spread = { cpu_percent = 2, memory_mib = 50 }").unwrap();
        let found: Vec<Machine> = (0..200).map(|seed| machine.found(seed)).collect();
        assert!(found.iter().all(|state| (350..=450).contains(&state.cache_mib)));
        assert!(found.iter().all(|state| (882_000..=918_000).contains(&state.cpu.spawn_ns)));
        assert!(found.iter().any(|state| state.cache_mib < 360) && found.iter().any(|state| state.cache_mib > 440));
        assert!(found.iter().any(|state| state.cpu.spawn_ns < 885_000 && state.cpu.copy_bytes_per_s > 4_060_000_000));
        assert!((0..200).all(|seed| machine.found(seed) == found[seed as usize]));
    }

    #[test]
    fn large_spread_leaves_memory_and_positive_times() {
        let machine = machine("spread = { cpu_percent = 50, memory_mib = 4000 }").unwrap();
        assert!(
            (0..200).map(|seed| machine.found(seed)).all(|state| state.cache_mib > 0 && state.cpu.spawn_ns >= 450_000)
        );
        assert!(self::machine("spread = { cpu_percent = 51, memory_mib = 0 }").is_err());
    }
}
