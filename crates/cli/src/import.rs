//! `iosched import`: makes profiles from files of other programs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use iosched_advise::calibrate::find_read_ahead;
use iosched_disk::Profile;
use iosched_disk::disksim::{Description, Sources, service_times};
use iosched_disk::io_cost::{self, Family, IoCostQos, Latencies, Spread};
use iosched_lab::request::quoted;

use iosched_terminal::fail::{of_file, usage};
use iosched_terminal::output::{Kind, Outputs, WriteArgs, say};

/// Largest file that is read, bytes.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Make a profile from DiskSim's description of a disk
    Disksim(DisksimArgs),
    /// Make a profile from the io.cost settings of a device
    ///
    /// The file has lines of io.cost.model and io.cost.qos, an entry of systemd's hwdb, the output
    /// of `iosched device io-cost`, or a result of resctl-bench. Such settings contain only maximum
    /// rates. The profile contains these rates, and a comment that nobody measured the latencies.
    #[command(name = "io-cost")]
    IoCost(IoCostArgs),
    /// Make a profile from a result of resctl-bench, with latencies
    ///
    /// The profile contains the maximum rates of the io.cost model in the result. The result also
    /// has a job iocost-qos. This job measured latencies of reads during writes, at about 20
    /// different rates of io.cost. iosched fits two values to these latencies: the latency of a single read, and the
    /// time that reads wait for writes. `iosched device show --assumptions` lists the fitted
    /// parameters.
    #[command(name = "resctl-bench")]
    ResctlBench(ResctlBenchArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ResctlBenchArgs {
    /// Result of resctl-bench, such as result.json.gz; the file can be compressed
    #[arg(value_name = "RESULT", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Model name of the disk to import, if the file has several disks
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// Queue depth of the device: the number of commands that it accepts at once
    #[arg(long, value_name = "N", default_value_t = 1023, value_parser = clap::value_parser!(u16).range(1..))]
    depth: u16,
    /// Profile to write; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    write: WriteArgs,
}

#[derive(Args, Debug)]
pub(crate) struct IoCostArgs {
    /// File with the settings: lines as in the kernel's files, or a *.hwdb or *.json file; the file can be compressed
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Device to import, if the file describes several devices: its number, its model name, or its
    /// place in the JSON
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// Size of the device, in GB
    #[arg(long, value_name = "GB", default_value_t = 1000, value_parser = crate::options::whole(1..=500_000))]
    size: u64,
    /// Queue depth of the device: the number of commands that it accepts at once
    #[arg(long, value_name = "N", default_value_t = 1023, value_parser = clap::value_parser!(u16).range(1..))]
    depth: u16,
    /// Profile to write; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    write: WriteArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DisksimArgs {
    /// File with geometry and mechanics, such as cheetah9LP.model
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    model: PathBuf,
    /// File with seek times, such as cheetah9LP.seek
    #[arg(value_name = "SEEK", value_hint = ValueHint::FilePath)]
    seek: PathBuf,
    /// File with bus, cache and overheads, such as cheetah9LP.diskspecs
    #[arg(value_name = "SPECS", value_hint = ValueHint::FilePath)]
    specs: PathBuf,
    /// Trace of the disk; it shows which reads start read-ahead, which the description of the disk does not say
    ///
    /// The format is that of `iosched validate disk --trace`. iosched chooses the value of
    /// read_ahead_after with the first half of the trace, and checks this value with the second
    /// half. The trace changes no other parameter.
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// Profile to write; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "-")]
    output: PathBuf,
    /// One line about the disk, for `iosched device show` [default: its size and speed]
    #[arg(long, value_name = "TEXT")]
    about: Option<String>,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn import(command: &ImportCommand) -> Result<()> {
    match command {
        ImportCommand::Disksim(args) => disksim(args),
        ImportCommand::IoCost(args) => of_io_cost(args),
        ImportCommand::ResctlBench(args) => resctl_bench(args),
    }
}

fn of_io_cost(args: &IoCostArgs) -> Result<()> {
    let out = Outputs::new(args.write).reads_all([&args.file]).output("--output", &args.output, Kind::Profile)?;
    let file = args.file.display().to_string();
    let text = read(&args.file)?;
    let all = io_cost::read(&text).map_err(|error| match Profile::parse(&file, &text) {
        Ok(_) => usage(format!(
            "{file}: this file is already a profile; show this profile with iosched device show {}",
            quoted(&as_path(&args.file))
        )),
        Err(_) => usage(format!("{file}: {error}")),
    })?;
    let found = choose(&file, &all, args.of.as_deref(), |found| &found.name)?;
    let name = if found.name.is_empty() { &file } else { &found.name };
    let about = format!("{name}: {} GB, depth {}, rates of io.cost.model, without latencies", args.size, args.depth);
    let percent = Family::ALL.first().map_or(0.0, Family::usual_spread_percent);
    let size = (args.size * 1_000_000_000 / 512, u32::from(args.depth));
    let spread = Spread { runs: 1, percent };
    let profile = iosched_disk::Profile::of_rates((&file, &about, "io.cost.model"), &found.model, size, spread, None)?;
    let preface = format!(
        "# A model of {name}, made from its io.cost.model by iosched {}. The model has these maximum rates. \
         Latencies were not measured.\n# {}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        found.model.line(),
        found.qos.map_or_else(String::new, |qos| format!("# {}\n", qos.line()))
    );
    out.text(&(preface + &profile.to_toml()?))?;
    if !out.is_standard_output() {
        say!("{}: {}", args.output.display(), profile.about());
    }
    Ok(())
}

/// Returns the device called `wanted`. Without a name, returns the only device of the file.
fn choose<'a, T>(file: &str, all: &'a [T], wanted: Option<&str>, name: impl Fn(&T) -> &str) -> Result<&'a T> {
    let names = || all.iter().map(&name).collect::<Vec<_>>().join(", ");
    match (wanted, all) {
        (None, [only]) => Ok(only),
        (None, _) => {
            Err(usage(format!("{file}: the file describes {} devices; choose one with --of: {}", all.len(), names())))
        }
        (Some(wanted), _) => {
            let found = all.iter().find(|device| name(device).eq_ignore_ascii_case(wanted));
            found
                .ok_or_else(|| usage(format!("{file}: the file has no device {wanted:?}; its devices are {}", names())))
        }
    }
}

fn resctl_bench(args: &ResctlBenchArgs) -> Result<()> {
    /// Size of the disk if the result does not contain the size, bytes.
    const SIZE_DEFAULT: u64 = 1_000_000_000_000;
    let out = Outputs::new(args.write).reads_all([&args.file]).output("--output", &args.output, Kind::Profile)?;
    let file = args.file.display().to_string();
    let all = io_cost::results(&read(&args.file)?).map_err(|error| usage(format!("{file}: {error}")))?;
    let found = choose(&file, &all, args.of.as_deref(), |found| &found.name)?;
    let name = if found.name.is_empty() { &file } else { &found.name };
    let latencies = Latencies::of(&found.rows);
    let of_latencies = latencies.map_or_else(
        || "without latencies".to_owned(),
        |latencies| format!("latencies of reads during writes ({} rates of io.cost)", latencies.rows),
    );
    let bytes = found.size_bytes.unwrap_or(SIZE_DEFAULT);
    let about =
        format!("{name}: {:.0} GB, depth {}, rates of io.cost.model, {of_latencies}", bytes as f64 / 1e9, args.depth);
    let percent = Family::ALL.first().map_or(0.0, Family::usual_spread_percent);
    let size = (bytes / 512, u32::from(args.depth));
    let named = (file.as_str(), about.as_str(), "resctl-bench");
    let profile = Profile::of_rates(named, &found.model, size, Spread { runs: 1, percent }, latencies)?;
    let mut preface = format!(
        "# A model of {name}, made from a result of resctl-bench by iosched {}.\n# {}\n",
        env!("CARGO_PKG_VERSION"),
        found.model.line()
    );
    let qos = found.qos.as_ref().map(IoCostQos::line);
    let conditions = [("firmware", &found.firmware), ("kernel", &found.kernel), ("scheduler", &found.scheduler)];
    let conditions = conditions.into_iter().filter_map(|(what, text)| Some(format!("{what} {}", text.as_ref()?)));
    preface.extend(qos.into_iter().chain(conditions).map(|line| format!("# {line}\n")));
    out.text(&(preface + "\n" + &profile.to_toml()?))?;
    if latencies.is_none() {
        say!("warning: {file}: the result has no job iocost-qos with latencies, so the profile has only rates");
    }
    if !out.is_standard_output() {
        say!("{}: {}", args.output.display(), profile.about());
    }
    Ok(())
}

fn disksim(args: &DisksimArgs) -> Result<()> {
    let mut outputs = Outputs::new(args.write).reads_all([&args.model, &args.seek, &args.specs]).reads_all(&args.trace);
    let out = outputs.output("--output", &args.output, Kind::Profile)?;
    let (model, seek, specs) = (read(&args.model)?, read(&args.seek)?, read(&args.specs)?);
    let names = [&args.model, &args.seek, &args.specs].map(|path| path.display().to_string());
    let sources = Sources { model: (&names[0], &model), seek: (&names[1], &seek), specs: (&names[2], &specs) };
    let mut description = Description::read(&sources).map_err(usage)?;
    if let Some(trace) = &args.trace {
        let shown = trace.display().to_string();
        let services = service_times(&shown, &read(trace)?, description.config.capacity_sectors).map_err(usage)?;
        let found = find_read_ahead(&description.config, &shown, &services).map_err(usage)?;
        description.config.read_cache.read_ahead_after = found.after;
        let sentence = format!(
            "read_ahead_after = \"{}\" is the better value on the first half of {}. On this half, the root mean \
             square error of the model is {:.3} ms with this value, and {:.3} ms with the other value. On the second \
             half, the error with the better value is {:.3} ms.",
            found.after,
            trace.file_name().map_or(shown, |name| name.to_string_lossy().into_owned()),
            found.rms_ms,
            found.other_rms_ms,
            found.held_out_rms_ms
        );
        say!("{sentence}");
        description.found.push(sentence);
    }
    let text = description.to_toml(args.about.as_deref());
    let profile = Profile::parse(&names[0], &text)?;
    for remark in &description.remarks {
        say!("warning: {remark}");
    }
    out.text(&text)?;
    if !out.is_standard_output() {
        say!("{}: {}, {}", args.output.display(), description.name, profile.about());
    }
    Ok(())
}

/// Returns the path of a profile. The path has a slash, so that it is not the name of a profile of
/// iosched.
fn as_path(file: &Path) -> String {
    if file.components().count() > 1 { file.display().to_string() } else { format!("./{}", file.display()) }
}

/// Reads a text, compressed or not. A missing file or a file without text is a usage error.
pub(crate) fn read(path: &Path) -> Result<String> {
    iosched_trace::read_text(path, BYTES_MAX)
        .map_err(|error| of_file(format!("{}: cannot be read: {error}", path.display()), &error))
}
