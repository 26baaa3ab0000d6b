//! Plans: workloads, devices, settings and seeds, each combined with each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iosched::{KernelVersion, UnknownKernel};
use iosched_disk::Profile;
use iosched_lab::request::{self, RUN_SECONDS, RequestError, SPEEDS, is_warm_up};
use iosched_trace::{Columns, Format, Ionice, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::axis::{OneOrMore, Seeds};
use crate::error::SweepError;
use crate::found::Found;
use crate::unit::{Question, Unit};

/// Fields of a plan, or of a cross in a plan.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Axes {
    /// Crosses of a plan. A cross takes missing fields from the plan. It cannot contain crosses.
    cross: Vec<Axes>,
    workloads: Option<OneOrMore<Named>>,
    devices: Option<OneOrMore<String>>,
    schedulers: Option<OneOrMore<String>>,
    baseline: Option<String>,
    runs: Option<u32>,
    seeds: Option<Seeds>,
    machine: Option<String>,
    replay: Option<String>,
    speed: Option<f64>,
    equal_within_percent: Option<f64>,
    run_for_s: Option<f64>,
    warm_up_s: Option<f64>,
    no_fairness: Option<bool>,
    kernels: Option<OneOrMore<String>>,
}

/// Workloads: a path, a pattern or a URL, with optional settings for reading; or a command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a workload is a path, a pattern, a URL, or a table with the field path or command")]
enum Named {
    Path(String),
    Read(Read),
    Command(Command),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    path: String,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    columns: Option<String>,
    #[serde(default)]
    time_unit: Option<TimeUnit>,
    #[serde(default)]
    partial: bool,
    #[serde(default)]
    ionice: Vec<Ionice>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    command: String,
}

/// A plan: workloads, devices, settings and seeds. All names in it are valid.
#[derive(Clone, Debug)]
pub struct Plan {
    crosses: Vec<Cross>,
    directory: PathBuf,
}

/// A cross with a value for every field.
#[derive(Clone, Debug)]
struct Cross {
    workloads: Vec<Named>,
    devices: Vec<Device>,
    seeds: Vec<u64>,
    question: Question,
}

#[derive(Clone, Debug)]
struct Device {
    name: String,
    profile: Arc<str>,
}

/// All units of a plan, in order.
#[derive(Clone, Debug, Default)]
pub struct Units {
    /// Units that can be run.
    pub units: Vec<Unit>,
    /// Workloads that do not exist or cannot be read.
    pub refused: Vec<Failed>,
}

/// A unit or workload that failed, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failed {
    /// The workload, as the plan names it.
    pub workload: String,
    /// Device of the unit. `None` if the workload cannot be read.
    pub device: Option<String>,
    /// Id of the unit. `None` if the workload cannot be read.
    pub id: Option<String>,
    /// Reason.
    pub problem: String,
}

impl Failed {
    /// Creates the entry of a workload without units.
    fn refused(workload: &str, problem: String) -> Self {
        Self { workload: workload.to_owned(), device: None, id: None, problem }
    }
}

/// Returns whether a pattern is a URL. This crate does not open URLs.
#[must_use]
pub fn is_url(pattern: &str) -> bool {
    pattern.contains("://")
}

/// Largest number of settings in a unit, including the settings of scans.
const SETTINGS_MAX: usize = 256;
const RUNS_MAX: u32 = 10_000;

impl Plan {
    /// Parses a plan from TOML. `name` is its name in messages. Paths are relative to `directory`.
    ///
    /// # Errors
    /// The plan is not valid. The message says what is valid.
    pub fn parse(name: &str, text: &str, directory: &Path) -> Result<Self, SweepError> {
        let wrong = |problem: String| SweepError::Plan { file: name.to_owned(), problem };
        check_fields(text).map_err(wrong)?;
        let mut plan_axes: Axes = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let crosses = std::mem::take(&mut plan_axes.cross);
        let crosses = if crosses.is_empty() { vec![Axes::default()] } else { crosses };
        let crosses = crosses.into_iter().map(|cross| cross.or(&plan_axes).checked(directory).map_err(wrong));
        Ok(Self { crosses: crosses.collect::<Result<_, _>>()?, directory: directory.to_owned() })
    }

    /// Reads the plan in a file.
    ///
    /// # Errors
    /// The errors of [`Self::parse`], or the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let name = path.display().to_string();
        if path.is_dir() {
            let problem = "this is a directory; give the file of the plan".to_owned();
            return Err(SweepError::Plan { file: name, problem });
        }
        let text = std::fs::read_to_string(path).map_err(SweepError::io(&*name))?;
        Self::parse(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Returns the directory that paths are relative to.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the units of the plan. `find` returns the workloads of a path, pattern or URL. If it
    /// returns an error, [`Units::refused`] lists the workload.
    pub fn units(&self, mut find: impl FnMut(&str) -> Result<Vec<Found>, String>) -> Units {
        let mut all = Units::default();
        let mut found: BTreeMap<String, Result<Vec<Found>, String>> = BTreeMap::new();
        let mut known = BTreeSet::new();
        for cross in &self.crosses {
            for named in &cross.workloads {
                let mut question = cross.question.clone();
                let workloads = match named {
                    Named::Command(command) => Ok(vec![Found::command(&command.command)]),
                    Named::Path(path) => found.entry(path.clone()).or_insert_with(|| find(path)).clone(),
                    Named::Read(trace) => {
                        question.read_as(trace.format.as_deref(), trace.columns.as_deref(), trace.partial);
                        question.time_unit = trace.time_unit;
                        question.ionice.clone_from(&trace.ionice);
                        found.entry(trace.path.clone()).or_insert_with(|| find(&trace.path)).clone()
                    }
                };
                let question = Arc::new(question);
                match workloads {
                    Err(problem) => all.refused.push(Failed::refused(named.pattern(), problem)),
                    Ok(workloads) => {
                        for workload in workloads {
                            if let Some(problem) = workload.problem {
                                all.refused.push(Failed::refused(&workload.name, problem));
                                continue;
                            }
                            cross.add(&workload, &question, &mut known, &mut all.units);
                        }
                    }
                }
            }
        }
        all.refused.dedup();
        all
    }
}

impl Cross {
    fn add(&self, workload: &Found, question: &Arc<Question>, known: &mut BTreeSet<String>, units: &mut Vec<Unit>) {
        for device in &self.devices {
            for &seed in &self.seeds {
                let unit = Unit::new(workload, &device.name, &device.profile, seed, question);
                if known.insert(unit.id().to_owned()) {
                    units.push(unit);
                }
            }
        }
    }
}

impl Named {
    fn pattern(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Read(trace) => &trace.path,
            Self::Command(command) => &command.command,
        }
    }

    fn check(&self) -> Result<(), String> {
        let Self::Read(trace) = self else { return Ok(()) };
        if let Some(name) = trace.format.as_deref().filter(|name| Format::from_name(name).is_none()) {
            return Err(format!("{}: there is no format {name}; available: {}", trace.path, Format::names()));
        }
        if let Some(columns) = &trace.columns {
            Columns::parse(columns).map_err(|problem| format!("{}: columns {columns}: {problem}", trace.path))?;
        }
        Ok(())
    }
}

impl Axes {
    /// Fills missing fields from `other`.
    fn or(self, other: &Self) -> Self {
        let other = other.clone();
        Self {
            cross: Vec::new(),
            workloads: self.workloads.or(other.workloads),
            devices: self.devices.or(other.devices),
            schedulers: self.schedulers.or(other.schedulers),
            baseline: self.baseline.or(other.baseline),
            runs: self.runs.or(other.runs),
            seeds: self.seeds.or(other.seeds),
            machine: self.machine.or(other.machine),
            replay: self.replay.or(other.replay),
            speed: self.speed.or(other.speed),
            equal_within_percent: self.equal_within_percent.or(other.equal_within_percent),
            run_for_s: self.run_for_s.or(other.run_for_s),
            warm_up_s: self.warm_up_s.or(other.warm_up_s),
            no_fairness: self.no_fairness.or(other.no_fairness),
            kernels: self.kernels.or(other.kernels),
        }
    }

    fn checked(self, directory: &Path) -> Result<Cross, String> {
        let workloads = self.workloads.unwrap_or_default().to_vec();
        if workloads.is_empty() {
            return Err("the plan has no workloads; write workloads = [\"traces/*.csv\"]".to_owned());
        }
        workloads.iter().try_for_each(Named::check)?;
        let devices = self.devices.unwrap_or_default().to_vec();
        if devices.is_empty() {
            return Err("the plan has no devices; write devices = [\"sata-7200\"] (iosched device list)".to_owned());
        }
        let devices = devices.iter().map(|name| Device::load(name, directory)).collect::<Result<_, _>>()?;
        let registry = iosched::Registry::linux();
        let target = request::SettingTarget::Model(&registry);
        let mut settings = Vec::new();
        for text in self.schedulers.unwrap_or_default().to_vec() {
            settings.extend(target.parse_all(&text).map_err(|problem| format!("schedulers {text}: {problem}"))?);
        }
        let kernels = self.kernels.unwrap_or_default().to_vec();
        let kernels =
            kernels.iter().map(|text| text.parse().map_err(|problem: UnknownKernel| format!("kernels: {problem}")));
        let kernels = kernels.collect::<Result<Vec<KernelVersion>, _>>()?;
        let settings = request::under_each(&kernels, settings);
        let mut labels: Vec<String> = settings.iter().map(ToString::to_string).collect();
        if labels.len() < 2 {
            return Err(
                "the plan has fewer than two settings; write schedulers = [\"mq-deadline\", \"bfq\"]".to_owned()
            );
        }
        if labels.len() > SETTINGS_MAX {
            return Err(format!(
                "the plan has {} settings; a comparison can have at most {SETTINGS_MAX}",
                labels.len()
            ));
        }
        let count = labels.len();
        if labels.iter().collect::<BTreeSet<_>>().len() < count {
            return Err("the plan gives a setting twice; give each setting once".to_owned());
        }
        let baseline = match self.baseline {
            None => labels[0].clone(),
            Some(text) => {
                let setting = target.parse(&text).map_err(|problem| format!("baseline {text}: {problem}"))?;
                request::under_each(&kernels[..kernels.len().min(1)], vec![setting])[0].to_string()
            }
        };
        if !labels.contains(&baseline) {
            labels.insert(0, baseline.clone());
        }
        let runs = self.runs.unwrap_or(request::RUNS);
        if !(1..=RUNS_MAX).contains(&runs) {
            return Err(format!("runs is {runs}, but it must be from 1 to {RUNS_MAX}"));
        }
        if let Some(machine) = &self.machine {
            iosched_lab::MachineProfile::load(machine).map_err(|error| error.to_string())?;
        }
        if let Some(replay) = self.replay.as_deref().filter(|mode| !["open", "closed"].contains(mode)) {
            return Err(format!("replay is {replay:?}, but it must be \"closed\" or \"open\""));
        }
        let within = |name: &str, value: Option<f64>, range: RangeInclusive<f64>| match value {
            Some(value) if !range.contains(&value) => {
                Err(format!("{name} is {value}, but it must be from {} to {}", range.start(), range.end()))
            }
            _ => Ok(()),
        };
        within("speed", self.speed, SPEEDS)?;
        within("equal_within_percent", self.equal_within_percent, 0.01..=100.0)?;
        within("run_for_s", self.run_for_s, RUN_SECONDS)?;
        within("warm_up_s", self.warm_up_s.filter(|seconds| !is_warm_up(*seconds)), RUN_SECONDS)?;
        let seeds = self.seeds.map_or_else(|| Ok(vec![1]), |seeds| seeds.values())?;
        if seeds.is_empty() {
            return Err("seeds: this list is empty; name at least one seed".to_owned());
        }
        Ok(Cross {
            workloads,
            devices,
            seeds,
            question: Question {
                schedulers: labels,
                baseline,
                runs,
                machine: self.machine,
                replay: self.replay,
                speed: self.speed,
                equal_within_percent: self.equal_within_percent,
                run_for_s: self.run_for_s,
                warm_up_s: self.warm_up_s,
                no_fairness: self.no_fairness.unwrap_or(false),
                ..Question::default()
            },
        })
    }
}

impl Device {
    fn load(name: &str, directory: &Path) -> Result<Self, String> {
        let path =
            if iosched_disk::is_path(name) { directory.join(name).display().to_string() } else { name.to_owned() };
        let profile = Profile::load(&path).map_err(|error| RequestError::from(error).to_string())?;
        let text = profile.to_toml().map_err(|error| error.to_string())?;
        Ok(Self { name: profile.name().to_owned(), profile: text.into() })
    }
}

/// Checks that all fields are known. The error suggests a similar field.
fn check_fields(text: &str) -> Result<(), String> {
    const FIELDS: [&str; 14] = [
        "workloads",
        "devices",
        "schedulers",
        "baseline",
        "runs",
        "seeds",
        "machine",
        "replay",
        "speed",
        "equal_within_percent",
        "run_for_s",
        "warm_up_s",
        "no_fairness",
        "kernels",
    ];
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let check = |table: &toml::Table, more: &str| {
        let unknown = table.keys().find(|name| !FIELDS.contains(&name.as_str()) && *name != more);
        unknown.map_or(Ok(()), |name| {
            let meant = request::did_you_mean(name, FIELDS.iter().copied());
            Err(format!("a plan has no field {name}{meant}; available: {}", FIELDS.join(", ")))
        })
    };
    check(&table, "cross")?;
    let crosses = table.get("cross").and_then(toml::Value::as_array);
    crosses.into_iter().flatten().filter_map(toml::Value::as_table).try_for_each(|cross| check(cross, ""))
}
