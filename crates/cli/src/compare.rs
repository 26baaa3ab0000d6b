//! `iosched compare`: the main job.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosched_disk::Profile;
use iosched_lab::{
    Control, Experiment, Finished, LabError, MachineProfile, Progress, RecordReader, RecordWriter, Records, execute,
};
use iosched_sim::{Replay, SchedulerSetting};
use iosched_workload::Workload;

use crate::args::{CompareArgs, OutputFormat, ReplayMode};
use crate::fail::{INTERRUPTED, usage};
use crate::output::say;
use crate::show::{self, Page};
use crate::{blktrace, output, sample};

/// The device if none is named.
pub(crate) const DEVICE_DEFAULT: &str = "sata-7200";
/// The file of records if none is named.
pub(crate) const RECORDS_DEFAULT: &str = "last.jsonl";
/// The schedulers if none is named, and their baseline.
const SCHEDULERS_DEFAULT: [&str; 3] = ["noop", "deadline", "cfq"];
const BASELINE_DEFAULT: &str = "deadline";
/// The machine that applications run on if none is named.
const MACHINE_DEFAULT: &str = "server-2010";

pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let experiment = experiment(args)?;
    args.blktrace.as_deref().map_or(Ok(()), blktrace::prepare)?;
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let started = Instant::now();
    let mut records = open_records(&args.records)?;
    let bar = progress_bar("{bar:30} {pos} of {len} runs, {eta} to go");
    let finished = execute(&experiment, &control, |progress| {
        match progress {
            Progress::Record(record) => {
                if let Some(writer) = &mut records {
                    let written = writer.write(record);
                    written.map_err(|source| LabError::Io { file: args.records.display().to_string(), source })?;
                }
            }
            Progress::Done { done, of } => {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            }
        }
        Ok(())
    });
    bar.finish_and_clear();
    let Finished { records: gathered, interrupted } = finished?;
    let elapsed_s = started.elapsed().as_secs_f64();
    if let Some(directory) = &args.blktrace
        && !interrupted
    {
        blktrace::write(&experiment, directory)?;
    }
    if let Some(path) = &args.decisions
        && !interrupted
    {
        write_decisions(&experiment, path)?;
    }
    if gathered.rounds().is_empty() {
        let kept =
            if records.is_some() { format!("; what was run is in {}", args.records.display()) } else { String::new() };
        eprintln!("interrupted before every setting was run once: there is nothing to compare{kept}");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if let Some(page) = &args.report {
        write_page(page, &html(&gathered, &args.records))?;
    }
    let page =
        Page::of(&gathered, Some(elapsed_s), records.is_some().then(|| next(&args.records, args.report.as_deref())));
    output::print(&match args.output_format() {
        OutputFormat::Text => show::text(&page, &show::Look::of_standard_output()),
        OutputFormat::Json => show::json(&page)?,
        OutputFormat::Csv => show::csv(&page),
        OutputFormat::Markdown => show::markdown(&page),
        OutputFormat::FioJson => iosched_lab::fio_json(&gathered)?,
    })?;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// What to do next.
fn next(records: &Path, reported: Option<&Path>) -> String {
    match reported {
        Some(page) => format!("look at {}", page.display()),
        None => {
            let [from, to] =
                [records.to_owned(), records.with_extension("html")].map(|path| quoted(&path.to_string_lossy()));
            format!("iosched report {from} -o {to}")
        }
    }
}

/// `iosched report`: everything again from records.
pub(crate) fn report(path: &Path, page: Option<&Path>) -> Result<()> {
    let with_html = path.with_extension("html");
    let page = page.unwrap_or(&with_html);
    if page == path {
        return Err(usage(format_args!("{}: the page would replace the records; say where with -o", path.display())));
    }
    let records = RecordReader::open(path)?;
    for warning in &records.warnings {
        eprintln!("warning: {warning}");
    }
    let html = html(&records, path);
    if page == Path::new("-") { output::print(&html) } else { write_page(page, &html) }
}

fn html(records: &Records, path: &Path) -> String {
    iosched_lab::report::html(records, Some(&path.display().to_string()))
}

fn write_page(page: &Path, html: &str) -> Result<()> {
    output::whole_file(page, |out| Ok(out.write_all(html.as_bytes())?))
}

/// Everything is checked before anything runs.
fn experiment(args: &CompareArgs) -> Result<Experiment> {
    let profiles = args.devices.iter().map(|device| Profile::load(device)).collect::<Result<Vec<_>, _>>()?;
    let mut settings: Vec<_> = args.schedulers.iter().flat_map(|named| named.0.iter().cloned()).collect();
    let mut baseline = args.baseline.as_ref().map(ToString::to_string);
    if settings.is_empty() {
        settings = SCHEDULERS_DEFAULT.into_iter().map(SchedulerSetting::defaults).collect();
        baseline.get_or_insert_with(|| BASELINE_DEFAULT.to_owned());
    }
    let workload = match &args.workload {
        Some(path) => Workload::open_with(path, &crate::job::ProcessEnvironment)?,
        None => sample::open()?,
    };
    check_replay(args, &workload)?;
    let machine = match (&workload, &args.machine) {
        (Workload::Application(_), name) => Some(MachineProfile::load(name.as_deref().unwrap_or(MACHINE_DEFAULT))?),
        (_, Some(_)) => return Err(usage("--machine is for applications; other workloads go to the device itself")),
        (_, None) => None,
    };
    let mut profiles = profiles.into_iter();
    let first = profiles.next().ok_or_else(|| usage("there is nothing to run on: name at least one device"))?;
    if args.output_format() == OutputFormat::FioJson && !matches!(workload, Workload::Jobs(_)) {
        return Err(usage("--output-format fio-json tells of fio jobs: give a job file (*.fio) with --workload"));
    }
    let mut experiment = Experiment::new(workload, first, settings)?;
    profiles.try_for_each(|profile| experiment.add_device(profile))?;
    machine.into_iter().try_for_each(|machine| experiment.set_machine(machine))?;
    for (number, device) in args.devices.iter().enumerate().filter(|(_, device)| is_file(device)) {
        if let Ok(text) = std::fs::read_to_string(device) {
            experiment.keep_profile_text(number, text);
        }
    }
    if let Some(baseline) = baseline {
        experiment.set_baseline(&baseline)?;
    }
    experiment.runs = args.runs;
    experiment.seed = args.seed;
    experiment.replay = replay(args, experiment.workload());
    experiment.command = command(args, &experiment);
    Ok(experiment)
}

fn is_file(device: &str) -> bool {
    device.contains('/') || device.ends_with(".toml")
}

fn check_replay(args: &CompareArgs, workload: &Workload) -> Result<()> {
    if !matches!(workload, Workload::Trace(_)) && (args.replay.is_some() || args.speed.is_some()) {
        return Err(usage("--replay and --speed are for traces; other workloads say themselves when tasks submit"));
    }
    if args.replay == Some(ReplayMode::Closed) && args.speed.is_some() {
        return Err(usage(
            "--speed needs --replay open: in closed replay, processes go as fast as the device lets them",
        ));
    }
    Ok(())
}

/// What was asked for; else open with a speed, or where the recording does not tell which I/O waited for which.
fn replay(args: &CompareArgs, workload: &Workload) -> Replay {
    let blind = matches!(workload, Workload::Trace(trace) if !trace.knows_completions());
    let open = args.replay.map_or(args.speed.is_some() || blind, |mode| mode == ReplayMode::Open);
    if open { Replay::Open { speed: args.speed.unwrap_or(1.0) } } else { Replay::Closed }
}

/// So many runs at a time, or one per CPU.
pub(crate) fn or_cpus(jobs: Option<u16>) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    jobs.map_or_else(cpus, usize::from)
}

/// The command line that makes the same records, every choice spelled out.
fn command(args: &CompareArgs, experiment: &Experiment) -> String {
    let mut words = vec!["iosched".to_owned(), "compare".to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), quoted(&value)]);
    if let Some(path) = &args.workload {
        option("--workload", path.display().to_string());
    }
    if let Some(machine) = experiment.header().machine {
        option("--machine", machine.name);
    }
    for device in &args.devices {
        option("--device", device.clone());
    }
    for setting in experiment.settings() {
        option("--scheduler", setting.label.clone());
    }
    option("--baseline", experiment.header().settings[experiment.header().baseline].label.clone());
    option("--runs", args.runs.to_string());
    option("--seed", args.seed.to_string());
    match experiment.replay {
        _ if !matches!(experiment.workload(), Workload::Trace(_)) => {}
        Replay::Closed => option("--replay", "closed".to_owned()),
        Replay::Open { speed } => {
            option("--replay", "open".to_owned());
            option("--speed", speed.to_string());
        }
    }
    words.join(" ")
}

/// As a POSIX shell wants it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(crate) fn on_interrupt(control: &Arc<Control>) -> Result<()> {
    let control = Arc::clone(control);
    ctrlc::set_handler(move || {
        control.interrupt();
        say!("\nending after the current runs; Ctrl-C again ends those, too");
    })?;
    Ok(())
}

/// The file of records; `None` if the default one cannot be made, which only costs a warning.
fn open_records(path: &Path) -> Result<Option<RecordWriter<std::fs::File>>> {
    let is_default = path == Path::new(RECORDS_DEFAULT);
    if is_default && is_something_else(path) {
        eprintln!(
            "warning: {RECORDS_DEFAULT} is no file of records and was left alone; keep records with --records FILE"
        );
        return Ok(None);
    }
    match RecordWriter::create(path) {
        Ok(writer) => Ok(Some(writer)),
        Err(error) if is_default => {
            eprintln!("warning: {error}; records are not kept; say where with --records FILE");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is there that we did not write.
fn is_something_else(path: &Path) -> bool {
    use std::io::Read;
    const BEGINNING: &[u8] = br#"{"record":"header""#;
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut head = Vec::new();
    file.take(BEGINNING.len() as u64).read_to_end(&mut head).is_ok() && !head.is_empty() && head != BEGINNING
}

/// On a terminal only.
pub(crate) fn progress_bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn write_decisions(experiment: &Experiment, path: &Path) -> Result<()> {
    output::whole_file(path, |out| {
        iosched_lab::write_decisions(experiment, out)?;
        out.flush()?;
        Ok(())
    })
}
