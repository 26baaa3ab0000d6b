//! A unit of work: one comparison, named by its inputs.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use iosched_disk::Profile;
use iosched_lab::request::{self, ComparisonRequest, ReplayMode, RequestError};
use iosched_lab::{Comparison, Control, Experiment, Finished, Records, Results, execute};
use iosched_trace::{Columns, Format, Ionice, ReadOptions, TimeUnit};
use iosched_workload::Workload;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::columns::{Table, Values};
use crate::error::SweepError;
use crate::found::Found;

/// Version of the rows. It must change when the same unit gives other rows.
const FORMAT: u32 = 1;

/// Properties of the comparison that are the same for all workloads and devices of a cross.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) schedulers: Vec<String>,
    pub(crate) baseline: String,
    pub(crate) runs: u32,
    pub(crate) machine: Option<String>,
    pub(crate) replay: Option<String>,
    pub(crate) speed: Option<f64>,
    pub(crate) equal_within_percent: Option<f64>,
    pub(crate) run_for_s: Option<f64>,
    pub(crate) warm_up_s: Option<f64>,
    /// Omitted if false, so that such units have the same ids as in earlier versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_fairness: bool,
    pub(crate) format: Option<String>,
    pub(crate) columns: Option<String>,
    pub(crate) partial: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_unit: Option<TimeUnit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ionice: Vec<Ionice>,
}

impl Question {
    /// Sets the options for reading a workload.
    pub(crate) fn read_as(&mut self, format: Option<&str>, columns: Option<&str>, partial: bool) {
        self.format = format.map(str::to_owned);
        self.columns = columns.map(str::to_owned);
        self.partial = partial;
    }

    fn reading(&self) -> ReadOptions {
        ReadOptions {
            format: self.format.as_deref().and_then(Format::from_name),
            columns: self.columns.as_deref().and_then(|text| Columns::parse(text).ok()),
            time_unit: self.time_unit,
            partial: self.partial,
            priorities: self.ionice.clone(),
            ..ReadOptions::default()
        }
    }
}

/// One comparison of all settings for one workload on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    id: String,
    workload: String,
    /// Identity of the workload's content.
    identity: String,
    place: String,
    command: bool,
    bytes: u64,
    device: String,
    /// Text of the profile. Like `question`, it is shared by all units of a cross.
    profile: Arc<str>,
    seed: u64,
    question: Arc<Question>,
}

/// The results of a unit: files of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTables {
    /// A row for each metric of each run, as Parquet.
    pub runs: Vec<u8>,
    /// A row for each metric of each setting, as Parquet.
    pub verdicts: Vec<u8>,
}

impl Unit {
    pub(crate) fn new(workload: &Found, device: &str, profile: &Arc<str>, seed: u64, question: &Arc<Question>) -> Self {
        let mut unit = Self {
            id: String::new(),
            workload: workload.name.clone(),
            identity: workload.identity.clone(),
            place: workload.place.clone(),
            command: workload.command,
            bytes: workload.bytes,
            device: device.to_owned(),
            profile: Arc::clone(profile),
            seed,
            question: Arc::clone(question),
        };
        // The path of the workload does not change the result, so it is not a part of the id.
        let inputs = Self { place: String::new(), bytes: 0, ..unit.clone() };
        let version = env!("CARGO_PKG_VERSION");
        let text = serde_json::to_string(&(FORMAT, version, inputs)).unwrap_or_default();
        unit.id = format!("{:032x}", XxHash3_128::oneshot(text.as_bytes()));
        unit
    }

    /// Returns the id: a hash of all inputs, including the workload's content and the version of
    /// iosched.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the workload, as in the plan.
    #[must_use]
    pub fn workload(&self) -> &str {
        &self.workload
    }

    /// Returns the place of the workload: a path, a URL, or the command line.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns the seed of the unit. The seeds of its runs follow from it.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the size of the stored workload, bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of runs, without the runs of single tasks.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.question.schedulers.len() as u64 * u64::from(self.question.runs)
    }

    /// Returns the unit with another number of runs, for a trial. The id stays the same.
    pub(crate) fn with_runs(&self, runs: u32) -> Self {
        let mut unit = self.clone();
        Arc::make_mut(&mut unit.question).runs = runs;
        unit
    }

    /// Returns the unit as JSON, for another machine.
    ///
    /// # Errors
    /// Never for a unit of a plan.
    pub fn to_json(&self) -> Result<String, SweepError> {
        let wrong = |error: serde_json::Error| SweepError::Plan { file: self.id.clone(), problem: error.to_string() };
        serde_json::to_string(self).map_err(wrong)
    }

    /// Parses a unit from JSON.
    ///
    /// # Errors
    /// The text is not a unit.
    pub fn from_json(text: &str) -> Result<Self, SweepError> {
        let wrong =
            |error: serde_json::Error| SweepError::Plan { file: "a unit".to_owned(), problem: error.to_string() };
        serde_json::from_str(text).map_err(wrong)
    }

    /// Returns a key of the workload on one machine. Units with the same key read the same file
    /// with the same options.
    #[must_use]
    pub fn workload_key(&self) -> String {
        let Question { format, columns, time_unit, partial, ionice, .. } = &*self.question;
        format!("{:?}", (&self.place, &self.identity, format, columns, time_unit, partial, ionice))
    }

    /// Opens the workload. `content` is needed if the workload is not a local file. It can be, for
    /// example, an object at a URL.
    ///
    /// # Errors
    /// The workload cannot be read, or is not valid.
    pub fn open(&self, content: Option<Box<dyn Read + Send>>) -> Result<Workload, SweepError> {
        let reading = self.question.reading();
        Ok(match content {
            Some(content) => request::read_workload(&self.workload, content, &reading)?,
            None => request::open_workload(Some(Path::new(&self.place)), &reading)?,
        })
    }

    fn request(&self) -> ComparisonRequest {
        let question = &self.question;
        let mode = |text: &str| if text == "open" { ReplayMode::Open } else { ReplayMode::Closed };
        let usual = ComparisonRequest::default();
        ComparisonRequest {
            workload: Some(self.place.clone().into()),
            reading: question.reading(),
            devices: vec![self.device.clone()],
            machine: question.machine.clone(),
            schedulers: question.schedulers.clone(),
            baseline: Some(question.baseline.clone()),
            runs: question.runs,
            seed: self.seed,
            replay: question.replay.as_deref().map(mode),
            speed: question.speed,
            equal_within_percent: question.equal_within_percent.unwrap_or(usual.equal_within_percent),
            warm_up_s: question.warm_up_s.unwrap_or(0.0),
            run_for_s: question.run_for_s,
            no_fairness: question.no_fairness,
            ..usual
        }
    }

    pub(crate) fn experiment(&self, workload: Workload) -> Result<Experiment, SweepError> {
        let profile = Profile::parse(&self.device, &self.profile).map_err(RequestError::from)?;
        let mut request = self.request();
        // A plan can have applications and other workloads. Only applications use the machine
        // model.
        if !matches!(workload, Workload::Application(_)) {
            request.machine = None;
        }
        if !matches!(workload, Workload::Trace(_)) {
            (request.replay, request.speed) = (None, None);
        }
        Ok(request.experiment_of(workload, vec![profile])?)
    }

    /// Runs the unit. Returns `None` if `control` ended it.
    ///
    /// # Errors
    /// The workload does not fit the device, a setting is not possible on the device, or a run
    /// fails.
    pub fn make(&self, workload: Workload, control: &Control) -> Result<Option<UnitTables>, SweepError> {
        let experiment = self.experiment(workload)?;
        let Finished { records, interrupted } = execute(&experiment, control, |_| Ok(()))?;
        if interrupted {
            return Ok(None);
        }
        let Some(on) = records.devices().next() else { return Ok(None) };
        let results = Results::of(on);
        let file = || format!("unit {} of {}", self.id, self.workload);
        Ok(Some(UnitTables {
            runs: self.run_rows(&experiment, &records, &results).to_parquet(&file())?,
            verdicts: self.verdict_rows(&records, &results).to_parquet(&file())?,
        }))
    }

    /// Returns the first columns of every table.
    fn of_unit(&self, rows: usize) -> Table {
        let text = |value: &str| Values::Text(vec![Some(value.to_owned()); rows]);
        Table::default()
            .with("id", text(&self.id))
            .with("workload", text(&self.workload))
            .with("device", text(&self.device))
            .with("seed", Values::Whole(vec![Some(self.seed); rows]))
    }

    fn run_rows(&self, experiment: &Experiment, records: &Records, results: &Results) -> Table {
        let mut rows = Vec::new();
        for figure in &results.figures {
            for (number, setting) in figure.settings.iter().enumerate() {
                let values = setting.iter().flat_map(|setting| setting.values.iter().enumerate());
                rows.extend(values.map(|(run, &value)| (figure.figure, number, run as u32, value)));
            }
        }
        let label = |number: usize| records.header.settings[number].label.clone();
        self.of_unit(rows.len())
            .with("scheduler", rows.iter().map(|row| Some(label(row.1))).collect())
            .with("run", rows.iter().map(|row| Some(u64::from(row.2))).collect())
            .with("run_seed", rows.iter().map(|row| Some(experiment.run_seed(row.2))).collect())
            .with("metric", rows.iter().map(|row| Some(row.0.id().to_owned())).collect())
            .with("value", rows.iter().map(|row| Some(row.3)).collect())
            .with("unit", rows.iter().map(|row| Some(row.0.unit().to_owned())).collect())
    }

    fn verdict_rows(&self, records: &Records, results: &Results) -> Table {
        let mut rows = Vec::new();
        for figure in &results.figures {
            let settings = figure.settings.iter().enumerate();
            rows.extend(settings.filter_map(|(number, setting)| Some((figure.figure, number, setting.as_ref()?))));
        }
        let label = |number: usize| records.header.settings[number].label.clone();
        let number = |value_of: fn(&Comparison) -> Option<f64>| -> Values {
            rows.iter().map(|row| row.2.comparison.as_ref().and_then(value_of)).collect()
        };
        let compared = |row: &(iosched_lab::Figure, usize, &iosched_lab::SettingFigure)| row.2.comparison;
        let mut doubts: Vec<String> = results.doubts.iter().map(ToString::to_string).collect();
        doubts.dedup();
        let doubts = doubts.join("\n");
        let answer = results.decision.to_string();
        // The number of I/Os of a run under the baseline is the weight of the volume.
        let of_baseline = records.runs.iter().filter(|run| run.setting == records.header.baseline);
        let (ios, runs) = of_baseline.fold((0, 0), |(ios, runs), run| (ios + run.result.ios, runs + 1));
        let count = rows.len();
        self.of_unit(count)
            .with("scheduler", rows.iter().map(|row| Some(label(row.1))).collect())
            .with("metric", rows.iter().map(|row| Some(row.0.id().to_owned())).collect())
            .with("unit", rows.iter().map(|row| Some(row.0.unit().to_owned())).collect())
            .with("better", rows.iter().map(|row| row.0.direction().better().map(str::to_owned)).collect())
            .with("mean", rows.iter().map(|row| Some(row.2.mean)).collect())
            .with("sd", rows.iter().map(|row| row.2.sd).collect())
            .with("baseline", rows.iter().map(|row| Some(row.1 == records.header.baseline)).collect())
            .with("verdict", rows.iter().map(|row| Some(compared(row)?.verdict.id().to_owned())).collect())
            .with("difference", number(|comparison| Some(comparison.difference)))
            .with("low", number(|comparison| comparison.interval.map(|(low, _)| low)))
            .with("high", number(|comparison| comparison.interval.map(|(_, high)| high)))
            .with("percent", number(|comparison| comparison.percent))
            .with("p", number(|comparison| comparison.p))
            .with("runs_needed", rows.iter().map(|row| Some(u64::from(compared(row)?.runs_needed?))).collect())
            .with("ios", Values::Whole(vec![Some(ios / runs.max(1)); count]))
            .with("answer", Values::Text(vec![Some(answer); count]))
            .with("doubts", Values::Text(vec![Some(doubts); count]))
    }
}
