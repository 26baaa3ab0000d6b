//! `iosched judge`: report cards of schedulers.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;
use iosched::Registry;
use iosched_judge::cost::{Counter, has_valgrind, run_counted};
use iosched_judge::{JudgeError, JudgeRequest, Part, judge};
use iosched_lab::Control;

use iosched_terminal::fail::{INTERRUPTED, usage};
use iosched_terminal::output;
use iosched_terminal::progress::{Meter, on_interrupt};

use crate::options::or_cpus;

/// Option with which this command starts itself under valgrind.
const COUNTED: &str = "--counted";

/// Print report cards of schedulers: comparisons, shares, longest waits, rules, cost
///
/// A report card has five parts. The comparisons run 12 workloads on 6 modelled devices, and
/// compare the judged scheduler with four other schedulers: none, mq-deadline, kyber and bfq. The
/// shares show how the scheduler divides a disk between two processes or cgroups. A search finds
/// the longest wait of a process while other processes of the same priority run. Random operations
/// check the rules that every scheduler must keep. valgrind counts the instructions per request, if
/// it is installed.
///
/// All five parts together take several minutes for each scheduler. To judge your own scheduler,
/// see docs/elevator-howto.md. It shows a program of ten lines that prints the same report card.
///
/// The exit status is 1 if a scheduler broke a rule. After Ctrl-C, the report cards contain the
/// finished parts.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JudgeArgs {
    /// Schedulers to judge
    #[arg(value_name = "SCHEDULER", required_unless_present = "counted")]
    schedulers: Vec<String>,

    /// Runs of each comparison
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    runs: u32,

    /// Random operations for each scheduler
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = crate::options::whole(1..=u64::MAX))]
    operations: u64,

    /// Number of workloads to try in each of the four rounds of the search for long waits
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,

    /// Leave out the comparisons, which take longest
    #[arg(long)]
    no_comparisons: bool,

    /// Leave out the cost (instructions per request); only the cost needs valgrind
    #[arg(long)]
    no_cost: bool,

    /// Seed of the random numbers; the same seed gives the same report cards
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Number of runs at the same time; affects only how long the judgement takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Print the report cards as JSON, not as Markdown
    #[arg(long)]
    json: bool,

    /// Run one load and nothing else, for valgrind to count: column, scheduler, load and number of requests
    #[arg(long, hide = true, num_args = 4)]
    counted: Option<Vec<String>>,
}

const EXAMPLES: &str = "Examples:
  iosched judge adios bfq > cards.md
  iosched judge kyber --no-comparisons";

pub(crate) fn run(args: &JudgeArgs) -> Result<ExitCode> {
    let registry = Registry::linux();
    if let Some(words) = &args.counted {
        run_counted(&registry, words).map_err(usage)?;
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&str> = args.schedulers.iter().map(String::as_str).collect();
    let mut request = JudgeRequest::new(registry, &names);
    (request.runs, request.seed, request.tries) = (args.runs, args.seed, args.tries);
    (request.operations, request.compare) = (args.operations, !args.no_comparisons);
    if !args.no_cost && has_valgrind() {
        request.counter = Some(Counter::of_this_program(&["judge", COUNTED])?);
    } else if !args.no_cost {
        output::say!("valgrind is not installed, so iosched does not count instructions");
    }
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let meter = Meter::new("{bar:30} {pos} of {len} parts, {eta} to go: {msg}");
    let (mut done, parts) = (0, request.parts());
    let judgement = judge(&request, &control, |part: Part<'_>| {
        meter.message(part.words());
        meter.set(done, parts);
        done += 1;
    });
    meter.clear();
    let judgement = judgement.map_err(|error| match error {
        JudgeError::Unknown(_) | JudgeError::Setting(_) => usage(error),
        error => anyhow!(error),
    })?;
    let text = if args.json { format!("{}\n", serde_json::to_string(&judgement)?) } else { judgement.markdown() };
    output::print(&text)?;
    Ok(match (judgement.complete, judgement.is_broken()) {
        (false, _) => ExitCode::from(INTERRUPTED),
        (true, is_broken) => ExitCode::from(u8::from(is_broken)),
    })
}
