//! `cargo xtask histories` and `cargo xtask cuts`: simulated histories of served disks, for many
//! seeds.
//!
//! A history depends only on its seed, so histories run in parallel on all cores. The first
//! violation ends the command. The command then prints how to reproduce the violation.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use iosched_live::reactor::history::{Broken, HistoryTally, Theme, Violation, history};

/// Interval of progress messages.
const PROGRESS: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of histories, or of power cuts for `cuts`
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads [default: one per core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Break the server on purpose, by the name of a fault or `all`, and count the histories until the fault is found
    #[arg(long, value_name = "NAME")]
    broken: Option<String>,
}

/// State that the workers share.
struct Run {
    theme: Theme,
    first_seed: u64,
    count: u64,
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    tally: Mutex<HistoryTally>,
    violation: Mutex<Option<Violation>>,
}

impl Run {
    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed) && self.done.load(Ordering::Relaxed) < self.count {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.theme == Theme::All && number >= self.count {
                return;
            }
            let seed = self.first_seed.wrapping_add(number);
            let lived = std::panic::catch_unwind(|| history(seed, self.theme, None));
            match lived.unwrap_or_else(|_| Err(panicked(seed))) {
                Ok(tally) => {
                    let done = if self.theme == Theme::Cuts { tally.cuts } else { 1 };
                    self.done.fetch_add(done, Ordering::Relaxed);
                    self.tally.lock().unwrap_or_else(PoisonError::into_inner).add(&tally);
                }
                Err(violation) => {
                    self.stop.store(true, Ordering::Relaxed);
                    self.violation.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
                }
            }
        }
    }
}

fn panicked(seed: u64) -> Violation {
    Violation { seed, life: 0, what: "it panicked, as is told above".to_owned() }
}

/// Puts a fault into the server. The test must find every fault.
fn find(args: &Args, theme: Theme, name: &str) -> Result<ExitCode> {
    let meant: Vec<_> = Broken::ALL.into_iter().filter(|(of, _)| name == "all" || *of == name).collect();
    let names = Broken::ALL.map(|(name, _)| name).join(", ");
    anyhow::ensure!(!meant.is_empty(), "nothing is broken so: {name:?}; write all, or one of {names}");
    let mut missed = 0;
    for (name, broken) in meant {
        let seeds = (0..args.count).map(|number| args.seed.wrapping_add(number));
        let found = (1..).zip(seeds).find_map(|(nth, seed)| Some((nth, history(seed, theme, Some(broken)).err()?)));
        match found {
            Some((nth, violation)) => println!("{name}: found in history {nth}: {violation}"),
            None => {
                println!("{name}: NOT found in {} histories", args.count);
                missed += 1;
            }
        }
    }
    Ok(if missed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

pub(crate) fn run(args: &Args, theme: Theme) -> Result<ExitCode> {
    if let Some(name) = &args.broken {
        return find(args, theme, name);
    }
    let name = if theme == Theme::Cuts { "cuts" } else { "histories" };
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into)).max(1);
    let run = Run {
        theme,
        first_seed: args.seed,
        count: args.count,
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        tally: Mutex::default(),
        violation: Mutex::default(),
    };
    let began = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| run.work())).collect();
        let mut last_line = Instant::now();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(20));
            if last_line.elapsed() >= PROGRESS {
                last_line = Instant::now();
                let (done, seconds) = (run.done.load(Ordering::Relaxed), began.elapsed().as_secs_f64());
                println!("{name}: {done} of {} in {seconds:.0} s", args.count);
            }
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let tally = run.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{name}: {} histories in {seconds:.1} s on {jobs} threads: {} power cuts, {} ends in order, {} answers, {} of \
         them errors, {} turns, digest {:016x}",
        tally.histories, tally.cuts, tally.ends, tally.answers, tally.failures, tally.turns, tally.digest
    );
    if let Some(violation) = run.violation.into_inner().unwrap_or_else(PoisonError::into_inner) {
        println!("{name}: {violation}");
        println!("again: cargo xtask {name} --count 1 --jobs 1 --seed {}", violation.seed);
        return Ok(ExitCode::from(1));
    }
    println!("{name}: nothing lost, nothing wrong; first seed {}", args.seed);
    Ok(ExitCode::SUCCESS)
}
