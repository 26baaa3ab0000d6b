//! Comparisons of settings, as in `iosched compare`.

use std::fs;
use std::path::PathBuf;

use arrow_array::{BooleanArray, Float64Array, StringArray, UInt32Array};
use iosched_lab::request;
use iosched_lab::{
    EQUAL_WITHIN_PERCENT, Experiment, Figure, Finished, LabError, Overview, Progress, RecordReader, RecordWriter,
    Records, Results, execute,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::atomic_file::write_bytes_atomically;
use crate::error::{About as _, of_lab, of_path, plain, usage, wrong};
use crate::page::framed;
use crate::policy::Policies;
use crate::question::Question;
use crate::simulate::{Run, run_watched};
use crate::table::{Columns, Table};
use crate::trace::words;
use crate::tune::{goals, names};
use crate::values::{one_or_more, stream};

// The Python signature repeats these defaults as literals.
const _: () = assert!(request::RUNS == 10 && EQUAL_WITHIN_PERCENT == 5.0);

/// Compares schedulers on the same workload, devices and seeds, as `iosched compare` does in
/// simulation.
///
/// `workload` is a Workload, a Trace, a path, a command line or a dict of tasks. The default is the
/// sample trace of iosched. `device` is one or a list of Devices, names, files or dicts.
/// `scheduler` is one or a list of Settings, Elevators or texts, such as "cfq:slice_idle=0..8/2",
/// "all" or "today". `goal` is one or several metrics that matter, as for `tune`. `kernel` is one
/// or several versions of Linux, such as "6.1" or "debian-12"; iosched compares several versions
/// with each other.
#[pyfunction]
#[pyo3(signature = (
    workload=None, device=None, scheduler=None, *, baseline=None, goal=None, runs=10, seed=1, machine=None, replay=None, speed=None,
    equal_within=5.0, run_for=None, warm_up=0.0, no_fairness=false, jobs=None, kernel=None
))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn compare(
    py: Python<'_>,
    workload: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    scheduler: Option<&Bound<'_, PyAny>>,
    baseline: Option<&Bound<'_, PyAny>>,
    goal: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] runs: u32,
    #[pyo3(from_py_with = plain)] seed: u64,
    #[pyo3(from_py_with = plain)] machine: Option<String>,
    #[pyo3(from_py_with = plain)] replay: Option<String>,
    #[pyo3(from_py_with = plain)] speed: Option<f64>,
    #[pyo3(from_py_with = plain)] equal_within: f64,
    #[pyo3(from_py_with = plain)] run_for: Option<f64>,
    #[pyo3(from_py_with = plain)] warm_up: f64,
    #[pyo3(from_py_with = plain)] no_fairness: bool,
    #[pyo3(from_py_with = plain)] jobs: Option<usize>,
    kernel: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let mut policies = Policies::default();
    let schedulers = match scheduler {
        None => Vec::new(),
        Some(given) => {
            one_or_more(given).and_then(|all| all.iter().map(|one| policies.text(one)).collect()).about("scheduler")?
        }
    };
    let baseline = baseline.map(|given| policies.text(given)).transpose().about("baseline")?;
    let question = Question {
        workload,
        device,
        schedulers,
        kernels: names("kernel", kernel)?,
        baseline,
        goals: goal.map_or_else(|| Ok(Vec::new()), goals)?,
        registry: policies.registry().clone(),
        runs,
        seed,
        machine,
        replay,
        speed,
        equal_within,
        run_for,
        warm_up,
        no_fairness,
    };
    let experiment = question.experiment("compare")?;
    let mut written = Vec::new();
    let finished = policies.carry_out(py, jobs, |control| {
        let mut writer = RecordWriter::new(&mut written);
        execute(&experiment, control, |progress| match progress {
            Progress::Record(record) => {
                writer.write(record).map_err(|source| LabError::Io { file: "records".to_owned(), source })
            }
            Progress::Done { .. } | Progress::Discarded { .. } | Progress::Left { .. } => Ok(()),
        })
    })?;
    let Finished { records, .. } = finished.map_err(|error| of_lab(&error))?;
    Ok(Comparison { records, written, experiment: Some((experiment, policies)) })
}

/// The result of a comparison: the answer, doubts, verdicts, and the metrics of every run.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Comparison {
    records: Records,
    /// The records as lines, in their order.
    written: Vec<u8>,
    /// The experiment and its policies. `None` if the records were read from a file.
    experiment: Option<(Experiment, Policies)>,
}

impl Comparison {
    fn read(bytes: Vec<u8>, name: &str) -> PyResult<Self> {
        let records = RecordReader::read(stream(bytes.clone()), name).map_err(|error| of_lab(&error))?;
        Ok(Self { records, written: bytes, experiment: None })
    }

    /// Returns the results of each device, with its name.
    fn results(&self) -> impl Iterator<Item = (&str, Results)> {
        let all = self.records.devices();
        all.map(|on| (on.device().name.as_str(), Results::of(on)))
    }

    fn label(&self, setting: usize) -> &str {
        &self.records.header.settings[setting].label
    }
}

#[pymethods]
impl Comparison {
    /// A table with a row for each metric of each run: device, scheduler, run, seed, metric, value,
    /// unit.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let runs = self.records.runs.iter();
            let rows: Vec<_> = runs
                .flat_map(|run| {
                    let all = Figure::ALL.iter();
                    all.filter_map(move |&figure| Some((run, figure, figure.of(&run.result)?)))
                })
                .collect();
            let device = |run: &iosched_lab::RunRecord| self.records.header.devices[run.device].name.as_str();
            Columns::default()
                .with("device", words(rows.iter().map(|(run, ..)| device(run))))
                .with("scheduler", words(rows.iter().map(|(run, ..)| self.label(run.setting))))
                .with("run", UInt32Array::from_iter_values(rows.iter().map(|(run, ..)| run.run)))
                .with("seed", arrow_array::UInt64Array::from_iter_values(rows.iter().map(|(run, ..)| run.seed)))
                .with("metric", words(rows.iter().map(|(_, figure, _)| figure.id())))
                .with("value", Float64Array::from_iter_values(rows.iter().map(|row| row.2)))
                .with("unit", words(rows.iter().map(|(_, figure, _)| figure.unit())))
                .table()
        })
    }

    /// A table with a row for each metric of each setting on each device. mean and sd are over
    /// complete rounds. verdict is better, worse, more, less, equal or cannot_tell. difference,
    /// percent and the interval from low to high are relative to the baseline. With 95 %
    /// confidence, all intervals contain the true differences. p is the probability that chance
    /// alone makes such a difference. runs_needed is the number of runs that a clear verdict needs.
    #[getter]
    fn verdicts(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let all: Vec<_> = self.results().collect();
            let mut rows = Vec::new();
            for (device, results) in &all {
                for figure in &results.figures {
                    let settings = figure.settings.iter().enumerate();
                    rows.extend(
                        settings.filter_map(|(number, setting)| Some((*device, figure, number, setting.as_ref()?))),
                    );
                }
            }
            let compared = || rows.iter().map(|(.., row)| row.comparison.as_ref());
            let number = |value_of: fn(&iosched_lab::Comparison) -> Option<f64>| {
                compared().map(|row| row.and_then(value_of)).collect::<Float64Array>()
            };
            Columns::default()
                .with("device", words(rows.iter().map(|row| row.0)))
                .with("scheduler", words(rows.iter().map(|row| self.label(row.2))))
                .with("metric", words(rows.iter().map(|row| row.1.figure.id())))
                .with("unit", words(rows.iter().map(|row| row.1.figure.unit())))
                .with("better", rows.iter().map(|row| row.1.figure.direction().better()).collect::<StringArray>())
                .with("mean", Float64Array::from_iter_values(rows.iter().map(|row| row.3.mean)))
                .with("sd", rows.iter().map(|row| row.3.sd).collect::<Float64Array>())
                .with("verdict", compared().map(|row| row.map(|row| row.verdict.id())).collect::<StringArray>())
                .with("difference", number(|row| Some(row.difference)))
                .with("low", number(|row| row.interval.map(|(low, _)| low)))
                .with("high", number(|row| row.interval.map(|(_, high)| high)))
                .with("percent", number(|row| row.percent))
                .with("p", number(|row| row.p))
                .with("runs_needed", compared().map(|row| row.and_then(|row| row.runs_needed)).collect::<UInt32Array>())
                .with(
                    "baseline",
                    rows.iter().map(|row| Some(row.2 == self.records.header.baseline)).collect::<BooleanArray>(),
                )
                .table()
        })
    }

    /// The setting to use and the reasons, in sentences. With several devices, the first line is
    /// about all devices.
    #[getter]
    fn answer(&self) -> String {
        let results: Vec<_> = self.results().map(|(_, results)| results).collect();
        match results.as_slice() {
            [one] => one.decision.to_string(),
            all => {
                let overview = Overview::of(&self.records, all);
                let lines: Vec<String> = overview.sentences.into_iter().chain(overview.judged).collect();
                lines.join("\n")
            }
        }
    }

    /// The doubts. Each is a sentence.
    #[getter]
    fn doubts(&self) -> Vec<String> {
        let mut sentences: Vec<String> = Vec::new();
        for (_, results) in self.results() {
            for doubt in results.doubts.iter().map(ToString::to_string) {
                if !sentences.contains(&doubt) {
                    sentences.push(doubt);
                }
            }
        }
        sentences
    }

    /// The names of the devices.
    #[getter]
    fn devices(&self) -> Vec<&str> {
        self.records.header.devices.iter().map(|device| device.name.as_str()).collect()
    }

    /// The compared settings, as texts.
    #[getter]
    fn schedulers(&self) -> Vec<&str> {
        self.records.header.settings.iter().map(|setting| setting.label.as_str()).collect()
    }

    /// The baseline: iosched compares the other settings with this setting.
    #[getter]
    fn baseline(&self) -> &str {
        self.label(self.records.header.baseline)
    }

    /// The command line that writes the same records.
    #[getter]
    fn command(&self) -> &str {
        &self.records.header.command
    }

    /// Repeats one of the runs, and returns this run as `simulate` does. A comparison that was read
    /// from a file cannot repeat its runs, because the file does not contain the workload.
    #[pyo3(signature = (scheduler, *, device=0, run=0))]
    fn run(
        &self,
        py: Python<'_>,
        scheduler: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = plain)] device: usize,
        #[pyo3(from_py_with = plain)] run: u32,
    ) -> PyResult<Run> {
        let (experiment, policies) = self.experiment.as_ref().ok_or_else(|| {
            usage(
                "these records were read from a file, so they cannot run again; only results of compare(...) can \
                 run again",
            )
        })?;
        let text = policies.known(scheduler).about("scheduler")?;
        let known = || self.schedulers().join(", ");
        let number = self.schedulers().iter().position(|label| *label == text);
        let number = number.ok_or_else(|| {
            wrong(
                "scheduler",
                format_args!(
                    "{text}: this setting was not compared; available: \
                     {}",
                    known()
                ),
            )
        })?;
        if device >= experiment.profiles().len() || run >= experiment.runs {
            let (devices, runs) = (experiment.profiles().len(), experiment.runs);
            let about = if device >= devices { "device" } else { "run" };
            let message = format_args!(
                "there is no device {device} with run {run}; there are {devices} devices and {runs} runs, \
                 counted from 0"
            );
            return Err(usage(message).about(about));
        }
        run_watched(py, &experiment.plan(device, number, run), policies, true, false)
    }

    /// Writes the report, one HTML page without other files.
    fn report(&self, py: Python<'_>, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<()> {
        py.detach(|| write_bytes_atomically(&path, iosched_report::html(&self.records, None).as_bytes()))
    }

    /// Writes the records, which `iosched report` and `load` read.
    fn save(&self, py: Python<'_>, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<()> {
        py.detach(|| write_bytes_atomically(&path, &self.written))
    }

    /// Reads records that `save` or `iosched compare --records` wrote.
    #[staticmethod]
    fn load(py: Python<'_>, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let bytes = fs::read(&path).map_err(|error| of_path(&error, &path))?;
            Self::read(bytes, &path.display().to_string())
        })
    }

    /// The records as JSON lines.
    fn records<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.written)
    }

    fn __repr__(&self) -> String {
        let Records { header, .. } = &self.records;
        let rounds = self.records.rounds().len();
        format!(
            "<iosched.Comparison of {} on {}: {} runs each>\n{}",
            self.schedulers().join(", "),
            self.devices().join(", "),
            rounds.min(header.runs as usize),
            self.answer()
        )
    }

    /// The report in a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        framed(&py.detach(|| iosched_report::html(&self.records, None)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = PyBytes::new(slf.py(), &slf.get().written);
        Ok((slf.get_type().getattr("_again")?, (bytes,)))
    }

    #[staticmethod]
    fn _again(bytes: Vec<u8>) -> PyResult<Self> {
        Self::read(bytes, "records")
    }
}
