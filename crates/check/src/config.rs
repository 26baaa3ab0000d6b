//! The start of a run: queue, device and tasks.

use iosched::{KernelVersion, QueueConfig, Registered, Registry, TagLayout, Time};

use crate::operation::Mix;
use crate::random::Random;

/// Values of all tunables of an elevator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// The defaults.
    Default,
    /// The defaults, with every switch on.
    SwitchedOn,
    /// The smallest values.
    Smallest,
    /// The largest values, including `nr_requests`. These runs soon reach the largest valid time.
    Largest,
}

/// Configuration of a run. The elevator and the seed determine all of it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The elevators that the run switches between.
    pub registry: Registry,
    /// Index in the registry of the elevator with which the run begins, and to which it often
    /// returns.
    pub home: usize,
    /// Queue and device.
    pub queue: QueueConfig,
    /// Number of requests that the device accepts at the same time.
    pub depth: u32,
    /// Whether the device completes requests in any order.
    pub out_of_order: bool,
    /// Number of tasks at the beginning.
    pub tasks: u32,
    /// Largest number of tasks at the same time.
    pub tasks_max: u32,
    /// `nr_requests`. `None` means the default.
    pub nr_requests: Option<u32>,
    /// First values of the home elevator's tunables.
    pub preset: Preset,
    /// First sector of the part of the device that is used.
    pub first_sector: u64,
    /// Number of sectors in that part.
    pub nr_sectors: u64,
    /// Start time.
    pub origin: Time,
}

/// Returns all elevators of the registry.
#[must_use]
pub fn elevators() -> Vec<Registered> {
    Registry::linux().elevators().to_vec()
}

/// Returns the index of the elevator called `name`.
#[must_use]
pub fn elevator_index(name: &str) -> Option<usize> {
    elevators().iter().position(|elevator| elevator.name == name)
}

impl Config {
    /// Returns the configuration of `seed` for an elevator of Linux.
    #[must_use]
    pub fn from_seed(home: usize, seed: u64) -> Self {
        Self::of(Registry::linux(), home, seed)
    }

    /// Returns the elevator with which a run begins.
    #[must_use]
    pub fn first(&self) -> Registered {
        self.registry.elevators()[self.home]
    }

    /// Returns the configuration of `seed` for the elevator with index `home` in `registry`.
    #[must_use]
    pub fn of(registry: Registry, home: usize, seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x636F_6E66_6967);
        let depth = random.pick(&[1, 1, 2, 4, 8, 31, 32, 128]);
        let queue = QueueConfig {
            hz: random.pick(&[100, 250, 300, 1000, 1000, 1024]),
            rotational: random.below(4) > 0,
            groups: random.below(3) == 0,
            command_queueing: random.pick(&[None, None, Some(false), Some(true)]),
            write_cache: random.below(4) > 0,
            fua: random.below(3) == 0,
            barriers: random.below(4) == 0,
            max_hw_sectors_kb: random.pick(&[4, 16, 128, 512, 512, 1280]),
            depth,
            hw_queues: random.pick(&[1, 1, 1, 2, 5]),
            tag_layout: random.pick(&[TagLayout::Spread, TagLayout::Compact]),
            run_at_insertion: random.below(3) == 0,
            // This value has its own random stream, so that older seeds keep their meaning.
            throttles_writeback: Random::new(seed ^ 0x0077_6274).below(2) == 0,
            kernel: kernel_of(seed),
            driver_has_budget: Random::new(seed ^ 0x6275_6467).below(2) == 0,
            ..QueueConfig::default()
        };
        let tasks = random.pick(&[1, 2, 4, 8, 20]);
        Self {
            registry,
            home,
            queue,
            depth,
            out_of_order: random.below(4) > 0,
            tasks,
            tasks_max: tasks + random.pick(&[0, 2, 12]),
            nr_requests: random.pick(&[None, None, Some(4), Some(5), Some(16), Some(33)]),
            preset: match random.below(40) {
                0 => Preset::Smallest,
                1 => Preset::Largest,
                2..=14 => Preset::SwitchedOn,
                _ => Preset::Default,
            },
            first_sector: random.pick(&[0, 0, 1 << 40]),
            nr_sectors: random.pick(&[64, 1 << 12, 1 << 20, 1 << 24]),
            origin: Time::from_ns(random.pick(&[1_000_000_000_000, 1_000_000_000_000, 0, 1 << 60])),
        }
    }

    /// Returns the mix of operations of `seed` for a long run.
    #[must_use]
    pub fn swarm(seed: u64) -> Mix {
        Mix::swarm(&mut Random::new(seed ^ 0x73_7761_726D))
    }
}

/// Returns the version of Linux of a seed. Half of the seeds have the default version. These seeds
/// had the same runs before this function existed.
fn kernel_of(seed: u64) -> KernelVersion {
    const OTHERS: [&str; 8] = ["4.18", "5.10", "5.14", "6.1.20", "6.2", "6.12.0", "6.14", "7.0"];
    let mut random = Random::new(seed ^ 0x6b65_726e);
    let other = random.pick(&OTHERS);
    if random.below(2) == 0 { KernelVersion::default() } else { other.parse().unwrap_or_default() }
}
