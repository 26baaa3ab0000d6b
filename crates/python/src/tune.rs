//! Searches for the best settings for a workload, as in `iosched tune`, and their arguments.

use std::io::Write;
use std::path::PathBuf;

use arrow_array::{BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use iosched_advise::tune::{self as advise, Constraint, Phase, Progress, Selection, Space, TuneResults, Tuned, Tuning};
use iosched_lab::Direction;
use iosched_sim::BlockLayer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping};

use crate::atomic_file::write_bytes_atomically;
use crate::error::{About as _, ArgumentTypeError, RunError, of_tuning, plain, usage, wrong};
use crate::page::framed;
use crate::policy::Policies;
use crate::question::Question;
use crate::simulate::Run;
use crate::table::{Columns, Table};
use crate::trace::words;
use crate::values::{Device, Setting, one_or_more, value_text};

/// A metric to optimise: "p99(sync)", "mean(reader)", "throughput", "iops(TASK)", "finish", or a
/// metric that an application reports.
#[pyclass(frozen, eq, hash, from_py_object, module = "iosched")]
#[derive(Clone, PartialEq)]
pub(crate) struct Goal(advise::Goal);

impl std::hash::Hash for Goal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_string().hash(state);
    }
}

impl Goal {
    fn parse(text: &str) -> PyResult<Self> {
        text.parse().map(Self).map_err(|problem| usage(format_args!("goal {problem}")))
    }

    fn from_any(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        given.extract::<Self>().or_else(|_| Self::parse(&plain::<String>(given)?))
    }
}

/// Parses one or more goals, for the argument `goal`.
pub(crate) fn goals(given: &Bound<'_, PyAny>) -> PyResult<Vec<advise::Goal>> {
    one_or_more(given).and_then(|all| all.iter().map(|one| Ok(Goal::from_any(one)?.0)).collect()).about("goal")
}

#[pymethods]
impl Goal {
    /// The goal as a text for `--goal`.
    #[new]
    fn new(#[pyo3(from_py_with = plain)] text: String) -> PyResult<Self> {
        Self::parse(&text).about("text")
    }

    /// The value of the goal in a run, in its unit. Fairness has no value, because it needs several
    /// runs.
    fn of(&self, run: &Run) -> PyResult<f64> {
        let missing = || usage(format_args!("{}: {}", self.0, self.0.measure.there_is(run.result())));
        self.0.measure.of(run.result()).ok_or_else(missing)
    }

    /// The better direction for Optuna: minimize or maximize.
    fn direction(&self, run: &Run) -> PyResult<&'static str> {
        let missing = || usage(format_args!("{}: {}", self.0, self.0.measure.there_is(run.result())));
        let known = self.0.measure.resolve(run.result()).ok_or_else(missing)?;
        Ok(if known.direction == Direction::Higher { "maximize" } else { "minimize" })
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Goal({:?})", self.0.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// Parses one or more names.
pub(crate) fn names(argument: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let names = given.map_or_else(|| Ok(Vec::new()), |given| one_or_more(given)?.iter().map(plain).collect());
    names.about(argument)
}

/// Parses names with values.
fn fixed(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let Ok(given) = given.cast::<PyMapping>() else {
        let found = given.get_type().name()?;
        return Err(ArgumentTypeError::new_err(format!("found {found}, expected a dict of names and values")));
    };
    let pair = |pair: Bound<'_, PyAny>| {
        let (name, value) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        Ok((plain(&name)?, value_text(&value)?))
    };
    given.items()?.iter().map(pair).collect()
}

fn selection(
    vary: Option<&Bound<'_, PyAny>>,
    also: Option<&Bound<'_, PyAny>>,
    fix: Option<&Bound<'_, PyAny>>,
) -> PyResult<Selection> {
    let fix = fix.map_or_else(|| Ok(Vec::new()), fixed).about("fix")?;
    Ok(Selection { vary: names("vary", vary)?, also: names("also", also)?, fix, ..Selection::default() })
}

/// Returns the values that `tune` tries, for each scheduler on a device: a dict with `setting` and
/// `dimensions`. A dimension has a name, a unit, rising values and a default. `vary`, `also` and
/// `fix` have the same meaning as in `tune`.
#[pyfunction]
#[pyo3(signature = (scheduler, device=None, *, vary=None, also=None, fix=None))]
pub(crate) fn space<'py>(
    py: Python<'py>,
    scheduler: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    vary: Option<&Bound<'py, PyAny>>,
    also: Option<&Bound<'py, PyAny>>,
    fix: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let device = device
        .map_or_else(|| Device::named(iosched_lab::request::DEVICE.as_ref()), Device::from_any)
        .about("device")?;
    let mut policies = Policies::default();
    let mut settings = Vec::new();
    for given in one_or_more(scheduler).about("scheduler")? {
        let text = policies.text(&given).about("scheduler")?;
        let refused = |problem: String| wrong("scheduler", format_args!("{text}: {problem}"));
        let target = iosched_lab::request::SettingTarget::Model(policies.registry());
        settings.extend(target.parse_all(&text).map_err(refused)?);
    }
    let config = BlockLayer::default().queue_config(&device.profile, None);
    let space =
        Space::of(&settings, &selection(vary, also, fix)?, &config).map_err(|error| of_tuning(&error.into()))?;
    let elevators = space.elevators.iter().map(|elevator| {
        let dimensions = elevator.dimensions.iter().map(|dimension| {
            let dict = PyDict::new(py);
            dict.set_item("name", &dimension.name)?;
            dict.set_item("unit", &dimension.unit)?;
            dict.set_item("values", dimension.values.clone())?;
            dict.set_item("default", dimension.values[dimension.default])?;
            Ok(dict)
        });
        let dict = PyDict::new(py);
        dict.set_item("setting", elevator.defaults.to_string())?;
        dict.set_item("dimensions", dimensions.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    });
    elevators.collect()
}

/// Searches for the settings that serve a workload best on a modelled device, as `iosched tune`
/// does.
///
/// `goal` is one or several goals (see `Goal`). `subject_to` is one or several constraints, such as
/// "throughput >= 95%". At the end, the best settings and the baseline run again with new seeds.
/// The search recommends a setting only if it is certainly better in these runs.
#[pyfunction]
#[pyo3(signature = (
    workload, device, scheduler, goal, *, subject_to=None, baseline=None, budget=200, vary=None, also=None, fix=None, seed=1, machine=None,
    replay=None, speed=None, equal_within=5.0, run_for=None, warm_up=0.0, jobs=None, kernel=None
))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn tune(
    py: Python<'_>,
    workload: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    scheduler: &Bound<'_, PyAny>,
    goal: &Bound<'_, PyAny>,
    subject_to: Option<&Bound<'_, PyAny>>,
    baseline: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] budget: u32,
    vary: Option<&Bound<'_, PyAny>>,
    also: Option<&Bound<'_, PyAny>>,
    fix: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] seed: u64,
    #[pyo3(from_py_with = plain)] machine: Option<String>,
    #[pyo3(from_py_with = plain)] replay: Option<String>,
    #[pyo3(from_py_with = plain)] speed: Option<f64>,
    #[pyo3(from_py_with = plain)] equal_within: f64,
    #[pyo3(from_py_with = plain)] run_for: Option<f64>,
    #[pyo3(from_py_with = plain)] warm_up: f64,
    #[pyo3(from_py_with = plain)] jobs: Option<usize>,
    #[pyo3(from_py_with = plain)] kernel: Option<String>,
) -> PyResult<Search> {
    let mut policies = Policies::default();
    let schedulers = one_or_more(scheduler).and_then(|all| all.iter().map(|one| policies.text(one)).collect());
    let schedulers = schedulers.about("scheduler")?;
    let baseline = baseline.map(|given| policies.setting("baseline", given)).transpose()?;
    let goals = goals(goal)?;
    let constraint = |text: String| text.parse().map_err(|problem| wrong("subject_to", problem));
    let constraints: Vec<Constraint> =
        names("subject_to", subject_to)?.into_iter().map(constraint).collect::<PyResult<_>>()?;
    let question = Question {
        workload,
        device,
        schedulers,
        kernels: kernel.into_iter().collect(),
        baseline: None,
        goals: Vec::new(),
        registry: policies.registry().clone(),
        runs: 1,
        seed,
        machine,
        replay,
        speed,
        equal_within,
        run_for,
        warm_up,
        // Fairness needs runs of single tasks. The search makes such runs only if a goal requires
        // them.
        no_fairness: false,
    };
    let mut experiment = question.experiment("tune")?;
    experiment.command = format!("iosched.tune({}, …)", experiment.workload().name());
    let selection = selection(vary, also, fix)?;
    let mut tuning = Tuning::new(experiment, &selection, goals).map_err(|error| of_tuning(&error))?;
    (tuning.constraints, tuning.budget) = (constraints, budget);
    if let Some(baseline) = baseline {
        tuning.baseline = baseline;
    }
    let mut written = Vec::new();
    let tuned = policies.carry_out(py, jobs, |control| {
        advise::tune(&tuning, control, |progress| {
            if let Progress::Record(record) = progress {
                serde_json::to_writer(&mut written, record)
                    .map_err(std::io::Error::from)
                    .and_then(|()| written.write_all(b"\n"))
                    .map_err(|source| iosched_lab::LabError::Io { file: "records".to_owned(), source })?;
            }
            Ok(())
        })
    })?;
    Ok(Search { tuned: tuned.map_err(|error| of_tuning(&error))?, written })
}

/// The result of a search.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Search {
    tuned: Tuned,
    written: Vec<u8>,
}

impl Search {
    fn results(&self) -> TuneResults<'_> {
        TuneResults::of(&self.tuned.header, &self.tuned.runs)
    }

    fn page(&self) -> String {
        iosched_report::tuning_html(&self.results())
    }
}

#[pymethods]
impl Search {
    /// The recommended setting. It is the baseline if no setting is certainly better. It is None if
    /// no setting meets the constraints.
    #[getter]
    fn recommended(&self) -> Option<Setting> {
        self.results().recommended().map(|best| Setting(best.setting.clone()))
    }

    /// The baseline: iosched compared the other settings with this setting.
    #[getter]
    fn baseline(&self) -> Setting {
        Setting(self.tuned.header.baseline.clone())
    }

    /// better, allowed (the baseline breaks a constraint), nothing_better, cannot_tell, idle,
    /// nothing_allowed or unconfirmed.
    #[getter]
    fn finding(&self) -> PyResult<String> {
        let identifier =
            serde_json::to_value(self.results().finding).map_err(|error| RunError::new_err(error.to_string()))?;
        Ok(identifier.as_str().unwrap_or_default().to_owned())
    }

    /// The finding in a sentence.
    #[getter]
    fn answer(&self) -> String {
        self.results().decision().to_string()
    }

    /// The doubts. Each is a sentence.
    #[getter]
    fn doubts(&self) -> Vec<String> {
        self.results().doubts()
    }

    /// Commands that apply the recommended setting to the disk with the name $DEV, as root.
    #[getter]
    fn commands(&self) -> Vec<String> {
        self.results().recommended().map(|best| advise::commands(&best.setting)).unwrap_or_default()
    }

    /// A table with a row for each metric of each confirmed setting: scheduler, measure, unit,
    /// better, goal, mean, sd, verdict, percent, its 95 % interval (low_percent, high_percent), and
    /// whether the setting meets the constraints. The baseline is first, then the better settings,
    /// the best first.
    #[getter]
    fn standings(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let results = self.results();
            let measures = &results.header.measures;
            let rows: Vec<_> = results
                .standings
                .iter()
                .flat_map(|trial| {
                    let figures = trial.figures.iter().enumerate();
                    figures.filter_map(move |(number, figure)| Some((trial, number, figure.as_ref()?)))
                })
                .collect();
            let compared = || rows.iter().map(|row| row.2.comparison);
            Columns::default()
                .with("scheduler", words(rows.iter().map(|row| row.0.label.as_str())))
                .with("measure", words(rows.iter().map(|row| measures[row.1].name.as_str())))
                .with("unit", words(rows.iter().map(|row| measures[row.1].unit.as_str())))
                .with("better", rows.iter().map(|row| measures[row.1].direction.better()).collect::<StringArray>())
                .with("goal", rows.iter().map(|row| Some(row.1 < results.header.goals)).collect::<BooleanArray>())
                .with("mean", Float64Array::from_iter_values(rows.iter().map(|row| row.2.mean)))
                .with("sd", rows.iter().map(|row| row.2.sd).collect::<Float64Array>())
                .with("verdict", compared().map(|comparison| Some(comparison?.verdict.id())).collect::<StringArray>())
                .with("percent", compared().map(|comparison| comparison?.percent).collect::<Float64Array>())
                .with(
                    "low_percent",
                    compared().map(|comparison| Some(comparison?.interval_percent?.0)).collect::<Float64Array>(),
                )
                .with(
                    "high_percent",
                    compared().map(|comparison| Some(comparison?.interval_percent?.1)).collect::<Float64Array>(),
                )
                .with(
                    "allowed",
                    rows.iter()
                        .map(|row| Some(row.0.constraints.iter().all(|constraint| constraint.kept)))
                        .collect::<BooleanArray>(),
                )
                .table()
        })
    }

    /// A table with a row for each metric of each run, in the order of the search: scheduler, run,
    /// seed, phase (search or confirm), measure, value, unit.
    #[getter]
    fn trials(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let measures = &self.tuned.header.measures;
            let runs = self.tuned.runs.iter();
            let rows: Vec<_> = runs
                .flat_map(|run| {
                    let values = run.values.iter().zip(measures);
                    values.filter_map(move |(value, measure)| Some((run, measure, (*value)?)))
                })
                .collect();
            let phase = |phase: Phase| if phase == Phase::Search { "search" } else { "confirm" };
            Columns::default()
                .with("scheduler", words(rows.iter().map(|row| row.0.setting.as_str())))
                .with("run", UInt32Array::from_iter_values(rows.iter().map(|row| row.0.run)))
                .with("seed", UInt64Array::from_iter_values(rows.iter().map(|row| row.0.seed)))
                .with("phase", words(rows.iter().map(|row| phase(row.0.phase))))
                .with("measure", words(rows.iter().map(|row| row.1.name.as_str())))
                .with("value", Float64Array::from_iter_values(rows.iter().map(|row| row.2)))
                .with("unit", words(rows.iter().map(|row| row.1.unit.as_str())))
                .table()
        })
    }

    /// Writes the report, one HTML page without other files.
    fn report(&self, py: Python<'_>, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<()> {
        py.detach(|| write_bytes_atomically(&path, self.page().as_bytes()))
    }

    /// Writes the records, which `iosched report` reads.
    fn save(&self, py: Python<'_>, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<()> {
        py.detach(|| write_bytes_atomically(&path, &self.written))
    }

    /// The records as JSON lines.
    fn records<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.written)
    }

    fn __repr__(&self) -> String {
        let runs = self.tuned.runs.len();
        format!("<iosched.Search of {runs} runs for {}>\n{}", self.results().goal_names(), self.answer())
    }

    /// The report in a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        framed(&py.detach(|| self.page()))
    }
}
