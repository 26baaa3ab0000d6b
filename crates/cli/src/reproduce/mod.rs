//! `iosched reproduce`: repeats published experiments.

mod measured;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_lab::reproduce::{
    CaseRun, Experiment, ExperimentResults, Family, Progress, ReproduceOptions, Reproduced, ReproductionRecord, read,
    reproduce,
};
use iosched_lab::{Control, grouped};

use crate::invocation::Invocation;
use crate::options::or_cpus;
use iosched_terminal::fail::{INTERRUPTED, all_of, usage};
use iosched_terminal::output::{self, Kind, Outputs, Records, WriteArgs};
use iosched_terminal::progress::{Meter, on_interrupt};
use iosched_terminal::show::{self, Look, report_command, reproduction};

/// Name that selects every experiment.
const ALL: &str = "all";
/// Default number of runs of each case with each setting.
const RUNS: u32 = 10;

/// Repeat published experiments in simulation and compare the results with the published results
///
/// Five public documents show how people measured and tuned CFQ. Four others measure today's schedulers and
/// controllers. iosched runs each experiment on a model of its hardware, under the scheduler of its kernel. `iosched
/// reproduce --list` prints the experiments.
///
/// A verdict compares a setting with the baseline of the experiment. The method comes from the
/// document behind the experiment "quantum". Two settings differ only if their means differ by more
/// than the standard deviations. In simulation, the means must also differ by at least 0.5 %. If a
/// document gives no standard deviations, published and simulated differences below 10 % do not
/// count. ◦ marks tests shorter than a minute, because the method excludes such tests. † marks
/// published results that were not used to make the models.
///
/// Some publications do not give every parameter of their experiment. For such a parameter, iosched
/// tries several values: all runs use one value, and iosched repeats the first run with each of the
/// other values. `--assumptions` lists the values. The column "over unknown values" shows the
/// lowest and the highest of the means with these values. If another value leads to another verdict, the
/// output shows that value and its verdict.
///
/// After Ctrl-C, iosched finishes the current runs and starts no others. A second Ctrl-C or SIGTERM
/// stops the current runs too. The output and the records (--records) contain the finished runs,
/// and list the runs that are missing. `iosched report` makes a page from the records.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Experiments to run: a group, a name, or all
    ///
    /// The group "cfq" contains the experiments quantum, fsync-yield, dd, low-latency and tpcc. The
    /// group "today" contains the experiments nvme-interference, start-up, streams and shares. The
    /// experiment "measured" prints results that others measured on SSDs, and simulated results
    /// next to them.
    #[arg(value_name = "EXPERIMENT", default_value = ALL)]
    experiments: Vec<String>,

    /// Run only the case with this name, or the cases with this text in their names
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,

    /// Runs of each case under each setting
    ///
    /// Runs differ in the initial position of the platters, in the location of files, and in the times at which
    /// periodic threads wake up. [default: 10, or 1 for the experiment "measured"]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,

    /// Only for the experiment "measured": read the measurements from this directory, in tables of
    /// the same form as the included tables
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,

    /// Only for the experiment "measured": simulate this disk model instead of the model given with the measurements
    #[arg(short, long, value_name = "PROFILE")]
    device: Option<String>,

    /// Seed of the random numbers; the same seed gives the same results
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Number of runs at the same time; affects only how long the experiments take [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Print one line of JSON per case, test and setting
    #[arg(long)]
    json: bool,

    /// Only for the experiment "measured": print the page docs/accuracy.md, which summarizes the results
    /// of each source
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Write a report (one HTML page) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Write the records to this file; iosched adds a line after each run, and `iosched report`
    /// reads this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    records: Option<PathBuf>,

    /// List the experiments with their settings and cases, and run nothing
    #[arg(long, conflicts_with_all = ["json", "report", "records"])]
    list: bool,

    /// List the values that iosched assumes and those fitted to published results, and run nothing
    #[arg(long, conflicts_with_all = ["json", "report", "records", "list"])]
    assumptions: bool,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "Examples:
  iosched reproduce fsync-yield
  iosched reproduce quantum --case \"iozone 4M\" --runs 3
  iosched reproduce measured --case kyber-grid
  iosched reproduce all --report reproduced.html --records reproduced.jsonl";

pub(crate) fn run(args: &ReproduceArgs, given: &Invocation) -> Result<ExitCode> {
    if args.experiments.iter().any(|name| name == measured::MEASURED) {
        return measured::run(args, given);
    }
    let of_measured =
        [("--data", args.data.is_some()), ("--device", args.device.is_some()), ("--markdown", args.markdown)];
    for (option, is_given) in of_measured {
        if is_given {
            return Err(usage(format!(
                "{option} is only for the experiment \"measured\": iosched reproduce \
                 measured"
            )));
        }
    }
    let experiments = chosen(args)?;
    if args.list {
        show::page(&reproduction::list(&experiments))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.assumptions {
        output::print(&reproduction::assumptions(&experiments, Look::of_standard_output()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = ReproduceOptions {
        runs: args.runs.unwrap_or(RUNS),
        seed: args.seed,
        case: args.case.clone(),
        command: command(args, given),
    };
    let mut outputs = Outputs::new(args.write).prints("the result");
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    let mut records = match &args.records {
        Some(path) => outputs.records(path, Kind::Reproduction)?,
        None => Records::none(),
    };
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let started = Instant::now();
    let finished = carry_out(&experiments, &options, &control, &mut records)?;
    let recorded = records.finish();
    let elapsed_s = started.elapsed().as_secs_f64();
    if finished.runs.is_empty() {
        eprintln!("interrupted before a run finished: there is no result");
        recorded?;
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let results = results(&experiments, &finished.runs);
    let reported = report.as_ref().map(|out| out.text(&iosched_report::experiments_html(&finished.header, &results)));
    let printed = output::print(&if args.json {
        json(&results)?
    } else {
        let mut text = reproduction::text(&finished.header, &results, elapsed_s, Look::of_standard_output());
        if let Some(stored) = records.stored_at().filter(|_| report.is_none()) {
            text.push_str(&format!("{:11}{}\n", "next:", report_command(stored)));
        }
        text
    });
    all_of([recorded].into_iter().chain(reported).chain([printed]))?;
    Ok(if finished.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn results<'a>(experiments: &'a [Experiment], runs: &'a [CaseRun]) -> Vec<ExperimentResults<'a>> {
    experiments.iter().map(|experiment| ExperimentResults::of(experiment, runs)).collect()
}

/// Returns the report page of a file of records, if the file contains reproduced experiments.
/// Nothing runs again.
pub(crate) fn page_of(records: &Path) -> Result<Option<String>> {
    let Some((reader, name)) = Kind::Reproduction.records(records)? else { return Ok(None) };
    let (header, runs) = read(reader, &name)?;
    let experiments = header.planned()?;
    Ok(Some(iosched_report::experiments_html(&header, &results(&experiments, &runs))))
}

fn chosen(args: &ReproduceArgs) -> Result<Vec<Experiment>> {
    let mut experiments = Vec::new();
    for experiment in Experiment::all()? {
        let is_meant =
            |name: &String| name == ALL || *name == experiment.name || Family::named(name) == Some(experiment.family);
        if args.experiments.iter().any(is_meant) {
            experiments.push(experiment);
        }
    }
    for name in args.experiments.iter().filter(|name| *name != ALL && Family::named(name).is_none()) {
        // If the name is unknown, this fails with a list of the experiments.
        Experiment::named(name)?;
    }
    Ok(match &args.case {
        Some(text) => Experiment::with_cases(experiments, text)?,
        None => experiments,
    })
}

/// Runs the experiments.
fn carry_out(
    experiments: &[Experiment],
    options: &ReproduceOptions,
    control: &Control,
    records: &mut Records,
) -> Result<Reproduced> {
    let bar = Meter::new("{bar:30} {pos} of {len} runs, {msg}{eta} to go");
    let mut simulated_ns = 0u64;
    let finished = reproduce(experiments, options, control, |progress| {
        match progress {
            Progress::Record(record) => {
                if let ReproductionRecord::Case(run) = record {
                    simulated_ns += run.simulated_ns;
                    bar.message(format_args!("{} s simulated, ", grouped(simulated_ns / 1_000_000_000)));
                }
                records.record(record);
            }
            Progress::Done { done, total } => {
                bar.set(done, total);
            }
        }
        Ok(())
    });
    bar.clear();
    Ok(finished?)
}

/// Returns the command line that makes the same records. The line states the choices of this
/// command.
fn command(args: &ReproduceArgs, given: &Invocation) -> String {
    let line = given.rerun().chosen("experiments", &args.experiments);
    line.chosen("runs", [args.runs.unwrap_or(RUNS)]).chosen("seed", [args.seed]).to_string()
}

fn json(results: &[ExperimentResults<'_>]) -> Result<String> {
    let mut text = String::new();
    for line in results.iter().flat_map(ExperimentResults::lines) {
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> (ReproduceArgs, Invocation) {
        let (cli, given) = crate::command::parse(["iosched", "reproduce"].iter().chain(words)).unwrap();
        match cli.command {
            Some(crate::command::Command::Reproduce(args)) => (args, given),
            other => panic!("{other:?}"),
        }
    }

    fn args(words: &[&str]) -> ReproduceArgs {
        parsed(words).0
    }

    #[test]
    fn experiments_are_chosen_by_name_or_family_in_document_order() {
        let names = |words: &[&str]| -> Vec<String> {
            chosen(&args(words)).unwrap().into_iter().map(|experiment| experiment.name).collect()
        };
        let cfq = ["quantum", "fsync-yield", "dd", "low-latency", "tpcc"];
        let today = ["nvme-interference", "start-up", "streams", "shares"];
        assert_eq!(names(&[]), [&cfq[..], &today[..]].concat());
        assert_eq!(
            (names(&["cfq"]), names(&["today"])),
            (cfq.map(str::to_owned).into(), today.map(str::to_owned).into())
        );
        assert_eq!(names(&["today", "dd"])[0], "dd");
        assert_eq!(names(&["dd", "quantum"]), ["quantum", "dd"]);
        assert_eq!(names(&["--case", "fs_mark"]), ["fsync-yield"]);
    }

    #[test]
    fn unknown_experiment_lists_the_known_ones() {
        let error = |words: &[&str]| chosen(&args(words)).unwrap_err().to_string();
        let unknown = error(&["quantums"]);
        let names = Experiment::names().chain(Family::ALL.map(|(_, name)| name)).chain([ALL]);
        names.for_each(|name| assert!(unknown.contains(name), "{name}: {unknown}"));
        assert!(error(&["dd", "--case", "iozone"]).contains("write, copy"));
    }

    #[test]
    fn command_in_records_has_the_options_that_affect_results() {
        let (args, given) = parsed(&["quantum", "--case", "iozone 4M", "-n", "3", "--json"]);
        assert_eq!(command(&args, &given), "iosched reproduce quantum --case 'iozone 4M' --runs 3 --seed 1");
    }
}
