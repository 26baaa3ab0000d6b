//! `cargo xtask soak`: random operations on every elevator for a given number of requests.
//!
//! A run has an elevator and a seed. Runs are independent, so they run in parallel on all cores.
//! The first violation ends the soak. The soak then finds the shortest list of operations that
//! reproduces the violation, and prints the command that repeats these operations.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use iosched_check::{
    Config, Coverage, Operation, Violation, Watch, elevator_index, elevators, operations, run, shrink,
};

/// Number of operations in a usual run.
const OPERATIONS: u64 = 100_000;
/// Number of operations in an audited run. The run checks decisions, and repeats the operations to
/// compare the results.
const AUDITED_OPERATIONS: u64 = 10_000;
/// Ratio of all seeds to audited seeds.
const AUDIT_EVERY: u64 = 4;
/// Number of operations between two comparisons of the queue's counters with its contents, in an
/// audited run.
const AUDITED_CHECK_EVERY: u32 = 16;
/// Interval of progress messages.
const PROGRESS: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of requests over all schedulers; each scheduler gets at least one run
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// First seed [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Test only this scheduler
    #[arg(long, value_name = "NAME")]
    elevator: Option<String>,
    /// Number of threads [default: one per core]
    #[arg(long)]
    jobs: Option<usize>,
}

/// A run that failed.
struct Failure {
    home: usize,
    seed: u64,
    violation: Violation,
}

/// State that the workers share.
struct Soak {
    homes: Vec<usize>,
    first_seed: u64,
    requests: u64,
    next_run: AtomicU64,
    requests_done: AtomicU64,
    stop: AtomicBool,
    /// Counts of events, for each elevator.
    coverage: Mutex<Vec<Coverage>>,
    failure: Mutex<Option<Failure>>,
}

pub(crate) fn run_soak(args: &Args) -> Result<ExitCode> {
    let homes = match &args.elevator {
        None => (0..elevators().len()).collect(),
        Some(name) => match elevator_index(name) {
            Some(home) => vec![home],
            None => bail!(
                "there is no scheduler {name:?}; available: {}",
                elevators().iter().map(|elevator| elevator.name).collect::<Vec<_>>().join(", ")
            ),
        },
    };
    let first_seed = args.seed.unwrap_or_else(seed_of_the_clock);
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into)).max(1);
    println!("soak: {} requests, seed {first_seed}, {jobs} threads", args.requests);
    let soak = Soak {
        homes,
        first_seed,
        requests: args.requests,
        next_run: AtomicU64::new(0),
        requests_done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        coverage: Mutex::new(vec![Coverage::default(); elevators().len()]),
        failure: Mutex::new(None),
    };
    // A panic is reported as a violation below, so its own message is not printed.
    std::panic::set_hook(Box::new(|_| ()));
    let began = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| soak.work())).collect();
        let mut last_report = Instant::now();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(20));
            if last_report.elapsed() >= PROGRESS {
                last_report = Instant::now();
                let (done, seconds) = (soak.requests_done.load(Ordering::Relaxed), began.elapsed().as_secs_f64());
                println!("soak: {done} requests in {seconds:.0} s");
            }
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    if let Some(failure) = soak.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        tell(&failure);
        return Ok(ExitCode::from(1));
    }
    let coverage = soak.coverage.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut all = Coverage::default();
    for (elevator, coverage) in elevators().iter().zip(&coverage).filter(|(_, coverage)| coverage.operations > 0) {
        println!("{}: {coverage}", elevator.name);
        all.add(coverage);
    }
    println!(
        "soak: {} requests from {} bios, {} operations in {seconds:.1} s, {:.2} million requests per second and core: \
         no violation; seed {first_seed}",
        all.requests,
        all.bios,
        all.operations,
        all.requests as f64 / seconds / jobs as f64 / 1e6
    );
    Ok(ExitCode::SUCCESS)
}

fn seed_of_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 60 * 1_000_000)
}

impl Soak {
    /// Makes runs until there are enough requests.
    fn work(&self) {
        loop {
            let number = self.next_run.fetch_add(1, Ordering::Relaxed);
            let each_once = number < self.homes.len() as u64;
            let enough = self.requests_done.load(Ordering::Relaxed) >= self.requests && !each_once;
            if enough || self.stop.load(Ordering::Relaxed) {
                return;
            }
            let home = self.homes[(number % self.homes.len() as u64) as usize];
            let seed = self.first_seed.wrapping_add(number / self.homes.len() as u64);
            match run_seed(home, seed) {
                Ok(coverage) => {
                    self.requests_done.fetch_add(coverage.requests, Ordering::Relaxed);
                    self.coverage.lock().unwrap_or_else(PoisonError::into_inner)[home].add(&coverage);
                }
                Err(violation) => {
                    self.stop.store(true, Ordering::Relaxed);
                    let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert(Failure { home, seed, violation });
                }
            }
        }
    }
}

/// Returns the operations of a seed, and the checks during its run.
fn plan(seed: u64) -> (impl Iterator<Item = Operation>, Watch) {
    let mix = Config::swarm(seed);
    let (count, watch) = if seed.is_multiple_of(AUDIT_EVERY) {
        (AUDITED_OPERATIONS, Watch { record: true, check_every: AUDITED_CHECK_EVERY })
    } else {
        (OPERATIONS, Watch::FAST)
    };
    (operations(seed, mix, count), watch)
}

/// Makes all runs of one seed.
fn run_seed(home: usize, seed: u64) -> Result<Coverage, Violation> {
    let config = Config::from_seed(home, seed);
    let (list, watch) = plan(seed);
    let outcome = run(&config, list, watch)?;
    if watch.record {
        let (list, _) = plan(seed);
        let again = run(&config, list, Watch::FAST)?;
        again.must_equal(&outcome)?;
    }
    Ok(outcome.coverage)
}

/// Reports a failure: the violation, the shortest list
/// of operations that reproduces it, and the command.
fn tell(failure: &Failure) {
    let &Failure { home, seed, ref violation } = failure;
    println!("soak: {}, seed {seed}: {violation}", elevators()[home].name);
    let config = Config::from_seed(home, seed);
    let (list, watch) = plan(seed);
    let list: Vec<_> = list.collect();
    let fewest = shrink(&list, |list| run(&config, list.iter().copied(), watch));
    println!("{config:?}");
    println!("{} of {} operations are enough:", fewest.len(), list.len());
    fewest.iter().for_each(|operation| println!("  {operation:?}"));
    if let Err(violation) = run(&config, fewest, watch) {
        println!("  {violation}");
    }
    println!("again: cargo soak --elevator {} --seed {seed} --requests 1 --jobs 1", elevators()[home].name);
}
