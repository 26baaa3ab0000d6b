//! Checks whether `iosched tune` finds the best setting of a full grid with a tenth of the grid's
//! runs.
//!
//! For each case, every combination of the values of a few tunables runs several times. The
//! combination with the best mean is the best of the grid. A search over the same values may make a
//! tenth of these runs. Finally, the recommendation of the search and the best of the grid run
//! again with new seeds, and are compared.

use std::path::Path;

use anyhow::{Context, Result};
use iosched::Setting;
use iosched_advise::tune::{Goal, Measure, Point, Selection, Space, TuneResults, Tuning, tune};
use iosched_disk::Profile;
use iosched_lab::{Control, Direction, Experiment};
use iosched_sim::{Plan, Replay, run};
use iosched_workload::Workload;

use crate::parallel::on_all_processors;

/// Arguments of `cargo xtask tune`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure only cases with this text in their names
    #[arg(long, value_name = "SUBSTRING")]
    name: Option<String>,
    /// Searches per case, each with its own seed
    #[arg(long, default_value_t = 5)]
    searches: u64,
}

/// Largest ratio of a search's result to the best of the grid at which the result counts as near.
const NEAR: f64 = 1.05;
/// Ratio of the grid's runs to a search's runs.
const TENTH: usize = 10;
/// Number of runs of each point of the grid.
const GRID_RUNS: u32 = 5;
/// Number of runs of a setting in the final comparison.
const TRUTH_RUNS: u32 = 20;
/// Seeds of the grid and of the final comparison. Searches do not use these seeds.
const GRID_SEED: u64 = 1_000_001;
const TRUTH_SEED: u64 = 2_000_001;

struct Case {
    name: &'static str,
    workload: &'static str,
    device: &'static str,
    scheduler: &'static str,
    /// The tunables of the grid.
    vary: &'static str,
    goal: &'static str,
}

const PGBENCH: &str = "crates/trace/samples/pgbench.blktrace";
const SQLITE: &str = "crates/trace/samples/sqlite-insert.blktrace";
const SHARED: &str = "xtask/src/tune/shared.toml";
const MIXED: &str = "xtask/src/tune/mixed.fio";

const CASES: &[Case] = &[
    Case {
        name: "cfq, pgbench, p99",
        workload: PGBENCH,
        device: "sata-7200",
        scheduler: "cfq",
        vary: "slice_idle,quantum,slice_sync",
        goal: "p99(sync)",
    },
    Case {
        name: "cfq, pgbench, finish",
        workload: PGBENCH,
        device: "sata-7200",
        scheduler: "cfq",
        vary: "slice_idle,quantum,slice_async_rq,low_latency",
        goal: "finish",
    },
    Case {
        name: "deadline, pgbench, p99.9",
        workload: PGBENCH,
        device: "sata-7200",
        scheduler: "deadline",
        vary: "read_expire,writes_starved,fifo_batch",
        goal: "p99.9(sync)",
    },
    Case {
        name: "cfq, shared disk, a reader's mean",
        workload: SHARED,
        device: "sata-7200",
        scheduler: "cfq",
        vary: "slice_idle,quantum,slice_async,low_latency",
        goal: "mean(lookup)",
    },
    Case {
        name: "cfq, shared disk, throughput",
        workload: SHARED,
        device: "sata-7200",
        scheduler: "cfq",
        vary: "slice_idle,slice_sync,low_latency,target_latency",
        goal: "throughput",
    },
    Case {
        name: "bfq, shared disk, p99",
        workload: SHARED,
        device: "sata-7200",
        scheduler: "bfq",
        vary: "slice_idle,timeout_sync,low_latency,max_budget",
        goal: "p99(sync)",
    },
    Case {
        name: "mq-deadline, jobs on an SSD, p99",
        workload: MIXED,
        device: "sata-ssd",
        scheduler: "mq-deadline",
        vary: "read_expire,writes_starved,async_depth",
        goal: "p99(reads)",
    },
    Case {
        name: "bfq, jobs on an SSD, IOPS",
        workload: MIXED,
        device: "sata-ssd",
        scheduler: "bfq",
        vary: "slice_idle,low_latency,max_budget,timeout_sync",
        goal: "iops(database)",
    },
    Case {
        name: "kyber, jobs on an SSD, p99",
        workload: MIXED,
        device: "sata-ssd",
        scheduler: "kyber",
        vary: "read_lat_nsec,write_lat_nsec",
        goal: "p99(reads)",
    },
    Case {
        name: "deadline, sqlite, mean",
        workload: SQLITE,
        device: "sata-7200",
        scheduler: "deadline",
        vary: "writes_starved,fifo_batch,write_expire",
        goal: "mean(sync)",
    },
];

/// Prints for each case how close the results of searches are to the best of the grid.
pub(crate) fn measure(args: &Args) -> Result<()> {
    println!("{:34} {:>6} {:>6} {:>9} {:>9} {:>9}  ours / grid's best", "", "grid", "ours", "default", "grid", "ours");
    let (mut near, mut all) = (0, 0);
    for case in CASES.iter().filter(|case| args.name.as_ref().is_none_or(|name| case.name.contains(name.as_str()))) {
        let ratios = case.measure(args.searches).with_context(|| case.name)?;
        near += ratios.iter().filter(|ratio| **ratio <= NEAR).count();
        all += ratios.len();
    }
    println!("{near} of {all} searches come within {:.0} % of the grid's best", (NEAR - 1.0) * 100.0);
    Ok(())
}

impl Case {
    /// Measures a case and prints a line. Returns, for each search, the factor by which its result
    /// is worse than the best of the grid.
    fn measure(&self, searches: u64) -> Result<Vec<f64>> {
        let goal: Goal = self.goal.parse()?;
        let tuning = self.tuning(1)?;
        let points = all_points(&tuning.space);
        let settings: Vec<Setting> = points.iter().map(|point| tuning.space.setting(point)).collect();
        let measure = &goal.measure;
        let direction = measure_direction(&tuning, measure)?;
        let grid = means(&tuning.experiment, GRID_SEED, &settings, GRID_RUNS, measure)?;
        let worse = |value: f64, than: f64| if direction == Direction::Higher { than / value } else { value / than };
        let best = (0..grid.len()).min_by(|&a, &b| worse(grid[a], grid[b]).total_cmp(&1.0)).context("an empty grid")?;
        let runs = settings.len() * GRID_RUNS as usize;
        let budget = runs / TENTH;
        let mut found = Vec::new();
        let mut used = 0;
        for seed in 1..=searches {
            let mut tuning = self.tuning(seed)?;
            tuning.budget = u32::try_from(budget)?;
            let tuned = tune(&tuning, &Control::new(cpus()), |_| Ok(()))?;
            used = used.max(tuned.runs.len());
            let results = TuneResults::of(&tuned.header, &tuned.runs);
            found.push(results.recommended().context("nothing is recommended")?.setting.clone());
        }
        let mut compared = vec![tuning.baseline.clone(), settings[best].clone()];
        compared.extend(found.iter().cloned());
        let truth = means(&tuning.experiment, TRUTH_SEED, &compared, TRUTH_RUNS, measure)?;
        let mut ratios: Vec<f64> = truth[2..].iter().map(|value| worse(*value, truth[1])).collect();
        let mut ours = truth[2..].to_vec();
        ours.sort_by(f64::total_cmp);
        println!(
            "{:34} {runs:>6} {used:>6} {:>9.2} {:>9.2} {:>9.2}  {}",
            self.name,
            truth[0],
            truth[1],
            ours[ours.len() / 2],
            ratios.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(" ")
        );
        if std::env::var_os("IOSCHED_TUNE_SETTINGS").is_some() {
            println!("    grid {}", settings[best]);
            found.iter().for_each(|setting| println!("    ours {setting}"));
        }
        ratios.sort_by(f64::total_cmp);
        Ok(ratios)
    }

    fn tuning(&self, seed: u64) -> Result<Tuning> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workload = Workload::open(root.join(self.workload))?;
        let scheduler = Setting::defaults(self.scheduler);
        let mut experiment = Experiment::new(workload, Profile::load(self.device)?, vec![scheduler])?;
        experiment.seed = seed;
        experiment.replay = Replay::Closed;
        let vary = self.vary.split(',').map(str::to_owned).collect();
        Ok(Tuning::new(experiment, &Selection { vary, ..Selection::default() }, vec![self.goal.parse()?])?)
    }
}

fn measure_direction(tuning: &Tuning, measure: &Measure) -> Result<Direction> {
    let result = run(&tuning.experiment.plan(0, 0, 0), ())?;
    Ok(measure.resolve(&result).context("the workload has no such figure")?.direction)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Returns every combination of values.
fn all_points(space: &Space) -> Vec<Point> {
    let mut points: Vec<Point> = space.defaults().collect();
    for number in 0..space.elevators[0].dimensions.len() {
        let levels = space.elevators[0].dimensions[number].values.len();
        points = points
            .iter()
            .flat_map(|point| {
                (0..levels).map(move |level| {
                    let mut point = point.clone();
                    point.levels[number] = level;
                    point
                })
            })
            .collect();
    }
    points
}

/// Returns the mean of a measure for each setting. The mean is over `runs` runs, whose seeds follow
/// from `seed`.
fn means(experiment: &Experiment, seed: u64, settings: &[Setting], runs: u32, measure: &Measure) -> Result<Vec<f64>> {
    let mut experiment = experiment.clone();
    experiment.seed = seed;
    let mean = |setting: &Setting| -> Result<f64> {
        let mut sum = 0.0;
        for number in 0..runs {
            let plan = Plan { scheduler: setting.clone(), ..experiment.plan(0, 0, number) };
            sum += measure.of(&run(&plan, ())?).context("a run without the figure")?;
        }
        Ok(sum / f64::from(runs))
    };
    on_all_processors(settings, mean).into_iter().collect()
}
