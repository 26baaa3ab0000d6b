//! Sweeps: plans, units that run on any machine, and summaries of a
//! dataset. The Python module `iosched.sweep` distributes the units.

use std::path::{Path, PathBuf};

use arrow_array::{Float64Array, StringArray, UInt64Array};
use iosched_lab::Control;
use iosched_sweep::dataset::{self, RUNS, VERDICTS};
use iosched_sweep::{
    Estimate, Found, Gathering, Plan, Summary, SweepError, Table as Rows, Unit, Workloads, find, is_url,
};
use iosched_workload::Workload as Inner;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{About as _, IoschedError, of_io, of_lab, of_path, of_request, plain, usage};
use crate::page::framed;
use crate::stream::Stream;
use crate::table::{Columns, Table};
use crate::trace::words;
use crate::values::{Workload, toml_of};
use crate::waiting::interruptible;

/// Number of recently used workloads that are cached.
const KEPT: usize = 4;
static WORKLOADS: Workloads = Workloads::new(KEPT);

/// A workload that cannot be found, and the error.
type Refused = (String, String);

fn of_sweep(error: &SweepError) -> PyErr {
    match error {
        SweepError::Io { source, .. } => of_io(source, error),
        SweepError::Request(error) => of_request(error),
        SweepError::Lab(error) => of_lab(error),
        SweepError::Plan { .. } | SweepError::Summary(_) => usage(error),
        _ => IoschedError::new_err(error.to_string()),
    }
}

/// A plan of a sweep: workloads, devices, schedulers and seeds.
#[pyclass(frozen, module = "iosched.sweep")]
pub(crate) struct SweepPlan {
    plan: Plan,
    text: String,
}

#[pymethods]
impl SweepPlan {
    /// Creates a plan from a TOML text or a dict. Relative paths in the plan begin at `directory`.
    #[new]
    #[pyo3(
        signature = (plan, *, name="plan".to_owned(), directory=PathBuf::new()),
        text_signature = "(plan, *, name='plan', directory='')"
    )]
    fn new(
        plan: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = plain)] name: String,
        #[pyo3(from_py_with = plain)] directory: PathBuf,
    ) -> PyResult<Self> {
        let text = match plan.cast::<PyDict>() {
            Ok(fields) => toml_of(fields).about("plan")?,
            Err(_) => plain(plan).about("plan")?,
        };
        let plan = Plan::parse(&name, &text, &directory).map_err(|error| of_sweep(&error).about("plan"))?;
        Ok(Self { plan, text })
    }

    /// Reads a plan from a file.
    #[staticmethod]
    fn open(#[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<Self> {
        let text = std::fs::read_to_string(&path).map_err(|error| of_path(&error, &path))?;
        let plan = Plan::open(&path).map_err(|error| of_sweep(&error).about("path"))?;
        Ok(Self { plan, text })
    }

    /// The plan as TOML.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Returns all units of the plan in order, and the workloads that do not exist, as pairs of a
    /// workload and an error. iosched calls `remote` with each pattern that is a URL. `remote`
    /// returns a list of (URL, identifier of the content, size in bytes).
    #[pyo3(signature = (remote=None))]
    fn units(&self, py: Python<'_>, remote: Option<&Bound<'_, PyAny>>) -> PyResult<(Vec<SweepUnit>, Vec<Refused>)> {
        let found = |pattern: &str| -> Result<Vec<Found>, String> {
            if !is_url(pattern) {
                return py.detach(|| find(pattern, self.plan.directory()));
            }
            let remote = remote.ok_or("URLs need the package fsspec")?;
            let listed: PyResult<Vec<(String, String, u64)>> =
                remote.call1((pattern,)).and_then(|found| found.extract());
            let listed = listed.map_err(|error| format!("{pattern}: {}", error.value(py)))?;
            if listed.is_empty() {
                return Err(format!("{pattern}: there is no such file"));
            }
            Ok(listed.into_iter().map(|(url, identity, bytes)| Found::at_url(url, identity, bytes)).collect())
        };
        let units = self.plan.units(found);
        let refused = units.refused.into_iter().map(|refusal| (refusal.workload, refusal.problem)).collect();
        Ok((units.units.into_iter().map(SweepUnit).collect(), refused))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, String, String))> {
        let plan = slf.get();
        let directory = plan.plan.directory().display().to_string();
        Ok((slf.get_type().getattr("_again")?, (plan.text.clone(), "plan".to_owned(), directory)))
    }

    #[staticmethod]
    fn _again(text: String, name: &str, directory: &str) -> PyResult<Self> {
        let plan = Plan::parse(name, &text, Path::new(directory)).map_err(|error| of_sweep(&error))?;
        Ok(Self { plan, text })
    }
}

/// One comparison of a sweep: all settings for one workload on one device.
#[pyclass(frozen, eq, module = "iosched.sweep")]
#[derive(PartialEq)]
pub(crate) struct SweepUnit(Unit);

#[pymethods]
impl SweepUnit {
    /// The id of the unit: a hash of all its inputs.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// The workload, with the name in the plan.
    #[getter]
    fn workload(&self) -> &str {
        self.0.workload()
    }

    /// The path or URL of the workload.
    #[getter]
    fn place(&self) -> &str {
        self.0.place()
    }

    /// The device.
    #[getter]
    fn device(&self) -> &str {
        self.0.device()
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// The number of runs, without the runs of each task alone.
    #[getter]
    fn runs(&self) -> u64 {
        self.0.runs()
    }

    /// The size of the stored workload, in bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The two files for the rows of this unit in a dataset: in the table runs, and in the table
    /// verdicts.
    #[getter]
    fn paths(&self) -> (String, String) {
        (dataset::place(RUNS, &self.0), dataset::place(VERDICTS, &self.0))
    }

    /// Returns the unit as JSON, for another machine.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json().map_err(|error| of_sweep(&error))
    }

    /// Creates a unit from the JSON of `to_json`.
    #[staticmethod]
    fn from_json(#[pyo3(from_py_with = plain)] text: String) -> PyResult<Self> {
        Unit::from_json(&text).map(Self).map_err(|error| of_sweep(&error).about("text"))
    }

    /// Runs the unit, and returns the Parquet files of runs and verdicts. If the workload is not a
    /// file of this machine, `read` returns the workload or an open file. iosched does not call
    /// `read` if it still has the workload from an earlier unit.
    #[pyo3(signature = (read=None, *, jobs=1))]
    fn make<'py>(
        &self,
        py: Python<'py>,
        read: Option<Py<PyAny>>,
        #[pyo3(from_py_with = plain)] jobs: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let control = Control::new(jobs);
        let carry_out = || -> Result<_, PyErr> {
            let workload = WORKLOADS.get(&self.0, || opened(&self.0, read.as_ref())).map_err(crate::error::workload)?;
            self.0.make(workload, &control).map_err(|error| of_sweep(&error))
        };
        let stop = || (0..2).for_each(|_| control.interrupt());
        let results = interruptible(py, carry_out, stop)??;
        let results = results.ok_or_else(|| pyo3::exceptions::PyKeyboardInterrupt::new_err(()))?;
        Ok((PyBytes::new(py, &results.runs), PyBytes::new(py, &results.verdicts)))
    }

    fn __repr__(&self) -> String {
        let Self(unit) = self;
        format!("<iosched.SweepUnit {}: {} on {}, seed {}>", unit.id(), unit.workload(), unit.device(), unit.seed())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json()?,)))
    }
}

/// Returns the workload of a unit, from `read`.
fn opened(unit: &Unit, read: Option<&Py<PyAny>>) -> Result<Inner, String> {
    let Some(read) = read else { return unit.open(None).map_err(|error| error.to_string()) };
    let message = |error: PyErr| Python::attach(|py| error.value(py).to_string());
    let given = Python::attach(|py| -> PyResult<Result<Stream, Inner>> {
        let given = read.bind(py).call0()?;
        Ok(if given.hasattr("read")? {
            Ok(Stream::owned(given.unbind()))
        } else {
            Err(Workload::from_any(Some(&given))?.inner)
        })
    });
    match given.map_err(message)? {
        Ok(stream) => unit.open(Some(Box::new(stream))).map_err(|error| error.to_string()),
        Err(workload) => Ok(workload),
    }
}

/// Estimates the time and memory of units from a sample: units, runs, bytes, core_s, memory_bytes,
/// unreadable. `read` returns the workload of a unit, or None if the workload is a file of this
/// machine.
#[pyfunction]
#[pyo3(signature = (units, read=None))]
pub(crate) fn estimate<'py>(
    py: Python<'py>,
    units: Vec<PyRef<'py, SweepUnit>>,
    read: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let units: Vec<Unit> = units.iter().map(|unit| unit.0.clone()).collect();
    let estimate = py.detach(|| {
        iosched_sweep::estimate(&units, |unit| {
            let reader = read.as_ref().and_then(|read| {
                Python::attach(|py| {
                    let reader = read.bind(py).call1((SweepUnit(unit.clone()),)).ok()?;
                    (!reader.is_none()).then(|| reader.unbind())
                })
            });
            opened(unit, reader.as_ref()).map_err(SweepError::Summary)
        })
    });
    let Estimate { units, runs, bytes, core_s, memory_bytes, unreadable, .. } = estimate;
    let all = PyDict::new(py);
    all.set_item("units", units)?;
    all.set_item("runs", runs)?;
    all.set_item("bytes", bytes)?;
    all.set_item("core_s", core_s)?;
    all.set_item("memory_bytes", memory_bytes)?;
    all.set_item("unreadable", unreadable)?;
    Ok(all)
}

/// The summary of a dataset for one metric: the best setting of each volume, and the total gain.
#[pyclass(frozen, module = "iosched.sweep")]
pub(crate) struct FleetSummary(Summary);

/// Iterable of the files of a dataset, as pairs of name and content.
type Files<'py> = Bound<'py, PyAny>;

fn each(files: &Files<'_>, mut take: impl FnMut(Rows) -> Result<(), SweepError> + Send) -> PyResult<()> {
    for file in files.try_iter()? {
        let (name, content): (String, Vec<u8>) = file?.extract()?;
        let taken = files.py().detach(|| Rows::from_parquet(content, &name).and_then(&mut take));
        taken.map_err(|error| of_sweep(&error))?;
    }
    Ok(())
}

#[pymethods]
impl FleetSummary {
    /// Creates a summary from the files of the tables runs and verdicts, as pairs of name and
    /// content. `metric` is the id of a metric.
    #[new]
    fn new(
        runs: &Bound<'_, PyAny>,
        verdicts: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = plain)] metric: String,
    ) -> PyResult<Self> {
        let mut gathering = Gathering::new(&metric);
        each(runs, |rows| gathering.runs(&rows)).about("runs")?;
        each(verdicts, |rows| gathering.verdicts(&rows)).about("verdicts")?;
        Summary::of_all(gathering, &metric).map(Self).map_err(|error| of_sweep(&error).about("metric"))
    }

    /// The id of the metric.
    #[getter]
    fn metric(&self) -> &str {
        &self.0.metric
    }

    /// The result, in a few sentences.
    #[getter]
    fn answer(&self) -> String {
        self.0.answer()
    }

    /// The doubts. Each is a sentence.
    #[getter]
    fn doubts(&self) -> Vec<String> {
        self.0.doubts.clone()
    }

    /// A row for each volume: workload, device, baseline, chosen, choice (better, nothing_better or cannot_tell),
    /// maybe, percent, runs, ios.
    #[getter]
    fn volumes(&self) -> PyResult<Table> {
        let all = &self.0.volumes;
        let choice = |volume: &iosched_sweep::Volume| match volume.choice {
            iosched_sweep::Choice::Better => "better",
            iosched_sweep::Choice::NothingBetter => "nothing_better",
            iosched_sweep::Choice::CannotTell => "cannot_tell",
        };
        Columns::default()
            .with("workload", words(all.iter().map(|volume| volume.workload.as_str())))
            .with("device", words(all.iter().map(|volume| volume.device.as_str())))
            .with("baseline", words(all.iter().map(|volume| volume.baseline.as_str())))
            .with("chosen", words(all.iter().map(|volume| volume.chosen.as_str())))
            .with("choice", words(all.iter().map(choice)))
            .with("maybe", all.iter().map(|volume| volume.maybe.as_deref()).collect::<StringArray>())
            .with("percent", all.iter().map(|volume| volume.percent).collect::<Float64Array>())
            .with("runs", UInt64Array::from_iter_values(all.iter().map(|volume| volume.runs as u64)))
            .with("ios", UInt64Array::from_iter_values(all.iter().map(|volume| volume.ios)))
            .table()
    }

    /// A row for each strategy (common, per_device, per_volume): strategy, settings, percent of a
    /// typical volume with its 95 % interval (low, high), total_percent, volumes.
    #[getter]
    fn gains(&self) -> PyResult<Table> {
        let all = &self.0.gains;
        let strategy = |gain: &iosched_sweep::Gain| match gain.strategy {
            iosched_sweep::Strategy::Common => "common",
            iosched_sweep::Strategy::PerDevice => "per_device",
            iosched_sweep::Strategy::PerVolume => "per_volume",
        };
        let settings = |gain: &iosched_sweep::Gain| {
            let each = gain
                .settings
                .iter()
                .map(|(device, label)| if device.is_empty() { label.clone() } else { format!("{label} on {device}") });
            each.collect::<Vec<_>>().join(", ")
        };
        Columns::default()
            .with("strategy", words(all.iter().map(strategy)))
            .with("settings", all.iter().map(|gain| Some(settings(gain))).collect::<StringArray>())
            .with("percent", Float64Array::from_iter_values(all.iter().map(|gain| gain.percent)))
            .with("low", all.iter().map(|gain| gain.interval.map(|(low, _)| low)).collect::<Float64Array>())
            .with("high", all.iter().map(|gain| gain.interval.map(|(_, high)| high)).collect::<Float64Array>())
            .with("total_percent", all.iter().map(|gain| gain.total_percent).collect::<Float64Array>())
            .with("volumes", UInt64Array::from_iter_values(all.iter().map(|gain| gain.volumes as u64)))
            .table()
    }

    /// The best settings, each with its number of volumes. The most frequent setting is first.
    #[getter]
    fn chosen(&self) -> Vec<(&str, usize)> {
        self.0.chosen()
    }

    /// Writes the report, one HTML page without other files.
    fn report(&self, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<()> {
        crate::atomic_file::write_bytes_atomically(&path, self.0.html().as_bytes())
    }

    fn __repr__(&self) -> String {
        format!("<iosched.FleetSummary of {} volumes>\n{}", self.0.volumes.len(), self.0.answer())
    }

    /// The report in a notebook.
    fn _repr_html_(&self) -> String {
        framed(&self.0.html())
    }
}
