//! Devices, workloads and settings as Python values.

use std::hash::{Hash, Hasher};
use std::io::Cursor;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iosched::Registry;
use iosched_disk::Profile;
use iosched_lab::request::{self, RUN_SECONDS, SPEEDS, is_warm_up};
use iosched_trace::{Columns, Format, ReadOptions};
use iosched_workload::{TaskSet, Workload as Inner};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};

use crate::error::{
    About as _, ArgumentTypeError, DeviceError, of_profile, of_request, of_workload, plain, usage, wrong,
};
use crate::trace::{Trace, priorities, warn_of_gaps};

/// Converts a dict of numbers, texts, lists and dicts to TOML.
pub(crate) fn toml_of(dict: &Bound<'_, PyAny>) -> PyResult<String> {
    if !dict.is_instance_of::<PyDict>() {
        return Err(ArgumentTypeError::new_err(format!("found {}, expected a dict", dict.get_type().name()?)));
    }
    let text: String = dict.py().import("iosched._plain")?.call_method1("as_json", (dict,))?.extract()?;
    let value: toml::Value = serde_json::from_str(&text).map_err(usage)?;
    toml::to_string(&value).map_err(usage)
}

/// A modelled device. Its profile comes with iosched, or from a file, a TOML text or a dict.
#[pyclass(frozen, eq, hash, from_py_object, module = "iosched")]
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) profile: Profile,
    text: String,
    /// Name on a command line. `None` for a device without a file.
    pub(crate) named: Option<String>,
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        (self.profile.name(), &self.text) == (other.profile.name(), &other.text)
    }
}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.profile.name(), &self.text).hash(state);
    }
}

impl Device {
    pub(crate) fn of(profile: Profile, named: Option<String>) -> PyResult<Self> {
        let text = profile.to_toml().map_err(|error| DeviceError::new_err(error.to_string()))?;
        Ok(Self { profile, text, named })
    }

    /// Loads a profile by its name or file.
    pub(crate) fn named(name: &Path) -> PyResult<Self> {
        let name = name.to_string_lossy().into_owned();
        let profile = Profile::load(&name).map_err(|error| of_request(&error.into()))?;
        Self::of(profile, Some(name))
    }

    fn of_text(text: &str, name: &str) -> PyResult<Self> {
        Self::of(Profile::parse(name, text).map_err(|error| of_profile(&error))?, None)
    }

    pub(crate) fn to_toml_text(&self) -> &str {
        &self.text
    }

    /// Converts an argument to a device. It can be a device, a dict, or a name or path.
    pub(crate) fn from_any(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(device) = given.cast::<Self>() {
            return Ok(device.get().clone());
        }
        if given.is_instance_of::<PyDict>() {
            return Self::of_text(&toml_of(given)?, "device");
        }
        match given.extract::<PathBuf>() {
            Ok(name) => Self::named(&name),
            Err(_) => Err(ArgumentTypeError::new_err(format!(
                "a device must be a Device, the name of a profile, the path of a file or a dict, not {}",
                given.get_type().name()?
            ))),
        }
    }
}

#[pymethods]
impl Device {
    /// Loads a profile by its name, such as "sata-7200" or "nvme:steady", or by its file. The path
    /// of a file contains / or ends with .toml.
    #[new]
    fn new(#[pyo3(from_py_with = plain)] name: PathBuf) -> PyResult<Self> {
        Self::named(&name).about("name")
    }

    /// Creates a device from a Device, a name, a path or a dict. The default is sata-7200.
    #[staticmethod]
    #[pyo3(name = "of", signature = (given=None))]
    fn of_any(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        given.map_or_else(|| Self::named(request::DEVICE.as_ref()), Self::from_any).about("given")
    }

    /// Creates a device from a profile in TOML.
    #[staticmethod]
    #[pyo3(signature = (text, name="device".to_owned()), text_signature = "(text, name='device')")]
    fn from_toml(
        #[pyo3(from_py_with = plain)] text: String,
        #[pyo3(from_py_with = plain)] name: String,
    ) -> PyResult<Self> {
        Self::of_text(&text, &name).about("text")
    }

    /// Creates a device from a dict with the fields of a profile.
    #[staticmethod]
    #[pyo3(signature = (fields, name="device".to_owned()), text_signature = "(fields, name='device')")]
    fn from_dict(fields: &Bound<'_, PyAny>, #[pyo3(from_py_with = plain)] name: String) -> PyResult<Self> {
        toml_of(fields).and_then(|text| Self::of_text(&text, &name)).about("fields")
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.profile.name()
    }

    /// A description in one line.
    #[getter]
    fn about(&self) -> &str {
        self.profile.about()
    }

    /// The model: fixed, disk, hdd, ssd, array, server or empirical.
    #[getter]
    fn kind(&self) -> &str {
        self.profile.model().kind()
    }

    /// The size in bytes.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.profile.card().capacity_sectors * 512
    }

    /// The number of commands that the device accepts at once.
    #[getter]
    fn depth(&self) -> u32 {
        self.profile.card().depth
    }

    /// Whether the device reports to the kernel that it rotates.
    #[getter]
    fn rotational(&self) -> bool {
        self.profile.card().rotational
    }

    /// The profile as TOML.
    fn to_toml(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<iosched.Device {}: {}>", self.profile.name(), self.profile.about())
    }

    fn __str__(&self) -> &str {
        self.profile.name()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let device = slf.get();
        let make = slf.get_type().getattr(if device.named.is_some() { "_again" } else { "from_toml" })?;
        let second = device.named.clone().unwrap_or_else(|| device.profile.name().to_owned());
        Ok((make, (device.text.clone(), second)))
    }

    /// Returns the device with this text. Its name is used if it is a profile with the same text.
    #[staticmethod]
    fn _again(text: &str, named: &str) -> PyResult<Self> {
        match Self::named(named.as_ref()) {
            Ok(device) if device.text == text => Ok(device),
            _ => Self::of_text(text, named),
        }
    }
}

/// The names of the profiles of iosched.
#[pyfunction]
pub(crate) fn devices() -> Vec<&'static str> {
    Profile::names().collect()
}

/// The elevators, each with its name and purpose.
#[pyfunction]
pub(crate) fn schedulers() -> Vec<(&'static str, &'static str)> {
    Registry::linux().elevators().iter().map(|elevator| (elevator.name, elevator.about)).collect()
}

/// Returns the text of a tunable's value. A whole float becomes an integer.
pub(crate) fn value_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyFloat>() {
        Ok(float) => Ok(float.value().to_string()),
        Err(_) => Ok(value.str()?.to_string()),
    }
}

/// A scheduler with tunables and attributes of the queue: "cfq:slice_idle=0,nr_requests=512".
#[pyclass(frozen, eq, hash, from_py_object, module = "iosched")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Setting(pub(crate) iosched::Setting);

impl Hash for Setting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_string().hash(state);
    }
}

#[pymethods]
impl Setting {
    /// Creates a setting from a text, as for `--scheduler`. Values can also be keyword arguments:
    /// Setting("cfq", slice_idle=0).
    #[new]
    #[pyo3(signature = (text, **values))]
    fn new(#[pyo3(from_py_with = plain)] text: String, values: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let registry = iosched::Registry::linux();
        let parse = |written: &str, argument: &str| {
            let parsed = request::SettingTarget::Model(&registry).parse(written);
            parsed.map_err(|problem| usage(format_args!("setting {written}: {problem}")).about(argument))
        };
        let mut setting = parse(&text, "text")?;
        // The version of Linux comes after the values.
        let (values_end, version) = text.find(" @ ").map_or((text.as_str(), ""), |at| text.split_at(at));
        let mut written = values_end.to_owned();
        for (name, value) in values.into_iter().flatten() {
            let name: String = name.extract()?;
            let value = value_text(&value)?;
            // In the syntax of a setting, these characters begin another value or a version of
            // Linux.
            if value.contains([',', '@']) {
                return Err(wrong(&name, format_args!("is {value:?}, but must be one value without a comma or @")));
            }
            written.push(if written.contains(':') { ',' } else { ':' });
            written.push_str(&format!("{name}={value}"));
            setting = parse(&format!("{written}{version}"), &name)?;
        }
        Ok(Self(setting))
    }

    /// The name of the scheduler.
    #[getter]
    fn scheduler(&self) -> String {
        let text = self.0.to_string();
        text.split(':').next().unwrap_or_default().to_owned()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Setting({:?})", self.0.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// Source of a workload, for pickling.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Origin {
    Sample,
    Path { path: PathBuf, reading: Reading },
    Text { kind: &'static str, text: String, name: String },
    Trace(Trace),
}

/// Options for reading a trace, with the names of the Python arguments.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Reading {
    format: Option<String>,
    columns: Option<String>,
    time_unit: Option<String>,
    partial: bool,
    ionice: Vec<String>,
}

impl Reading {
    fn options(&self) -> PyResult<ReadOptions> {
        let Self { format, columns, time_unit, partial, ionice } = self;
        let options = reading(format.as_deref(), columns.as_deref(), time_unit.as_deref(), *partial)?;
        Ok(ReadOptions { priorities: priorities(ionice)?, ..options })
    }
}

/// A workload: a trace, fio jobs, tasks, or an application.
#[pyclass(frozen, eq, hash, from_py_object, module = "iosched")]
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) inner: Inner,
    /// Path on a command line.
    pub(crate) path: Option<PathBuf>,
    pub(crate) reading: ReadOptions,
    origin: Origin,
}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        self.origin == other.origin
    }
}

impl Hash for Workload {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.origin.hash(state);
    }
}

/// Parses the options for reading a trace.
pub(crate) fn reading(
    format: Option<&str>,
    columns: Option<&str>,
    time_unit: Option<&str>,
    partial: bool,
) -> PyResult<ReadOptions> {
    let format = format.map(|name| {
        let unknown = || wrong("format", format_args!("{name}: formats are {}", Format::names()));
        Format::from_name(name).ok_or_else(unknown)
    });
    let columns = columns.map(|text| Columns::parse(text).map_err(|error| usage(error).about("columns")));
    let time_unit = time_unit.map(|text| text.parse().map_err(|problem| wrong("time_unit", problem)));
    Ok(ReadOptions {
        format: format.transpose()?,
        columns: columns.transpose()?,
        time_unit: time_unit.transpose()?,
        partial,
        ..ReadOptions::default()
    })
}

impl Workload {
    /// Converts an argument to a workload. It can be a workload,
    /// a trace, a dict of tasks, or a path or command line.
    pub(crate) fn from_any(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(given) = given.filter(|given| !given.is_none()) else { return Self::sample() };
        if let Ok(workload) = given.cast::<Self>() {
            return Ok(workload.get().clone());
        }
        if let Ok(trace) = given.cast::<Trace>() {
            return Ok(Self::from_trace(trace.get()));
        }
        if given.is_instance_of::<PyDict>() {
            return Self::text("tasks", &toml_of(given)?, "tasks");
        }
        match given.extract::<PathBuf>() {
            Ok(path) => Self::open(given.py(), path, Reading::default()),
            Err(_) => Err(ArgumentTypeError::new_err(format!(
                "a workload must be a Workload, a Trace, the path of a file, a command line or a dict of tasks, not {}",
                given.get_type().name()?
            ))),
        }
    }

    fn open(py: Python<'_>, path: PathBuf, words: Reading) -> PyResult<Self> {
        let reading = words.options()?;
        let inner = py.detach(|| request::open_workload(Some(&path), &reading)).map_err(|error| of_request(&error))?;
        if let Inner::Trace(trace) = &inner {
            warn_of_gaps(py, trace)?;
        }
        let origin = Origin::Path { path: path.clone(), reading: words };
        Ok(Self { inner, path: Some(path), reading, origin })
    }

    /// Returns whether a command line can name the workload.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.origin, Origin::Sample | Origin::Path { .. })
    }

    fn text(kind: &'static str, text: &str, name: &str) -> PyResult<Self> {
        let inner = match kind {
            "job" => {
                let job = iosched_workload::fio::JobFile::parse(name, text.as_bytes(), &request::ProcessEnvironment);
                job.map(|file| Inner::Jobs(iosched_workload::fio::Jobs::new(file))).map_err(Into::into)
            }
            _ => TaskSet::parse(name, text).map(|set| Inner::Tasks(set.into())),
        };
        Ok(Self {
            inner: inner.map_err(|error: iosched_workload::WorkloadError| of_workload(&error))?,
            path: None,
            reading: ReadOptions::default(),
            origin: Origin::Text { kind, text: text.to_owned(), name: name.to_owned() },
        })
    }
}

#[pymethods]
impl Workload {
    /// Creates a workload from a trace of any known format, a fio job file (*.fio, *.job, *.ini), a
    /// task file (*.toml), or the command line of an application. The other arguments are for
    /// traces, as for `read_trace`.
    #[new]
    #[pyo3(signature = (path, *, format=None, columns=None, time_unit=None, partial=false, ionice=Vec::new()))]
    #[pyo3(text_signature = "(path, *, format=None, columns=None, time_unit=None, partial=False, ionice=())")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = plain)] path: PathBuf,
        #[pyo3(from_py_with = plain)] format: Option<String>,
        #[pyo3(from_py_with = plain)] columns: Option<String>,
        #[pyo3(from_py_with = plain)] time_unit: Option<String>,
        #[pyo3(from_py_with = plain)] partial: bool,
        #[pyo3(from_py_with = plain)] ionice: Vec<String>,
    ) -> PyResult<Self> {
        Self::open(py, path, Reading { format, columns, time_unit, partial, ionice }).about("path")
    }

    /// Creates a workload from a Workload, a Trace, a path, a command line or a dict of tasks. The
    /// default is the sample trace.
    #[staticmethod]
    #[pyo3(name = "of", signature = (given=None))]
    fn of_any(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::from_any(given).about("given")
    }

    /// The sample trace of iosched, a recorded run of pgbench.
    #[staticmethod]
    fn sample() -> PyResult<Self> {
        let inner = request::sample().map_err(|error| of_workload(&error))?;
        Ok(Self { inner, path: None, reading: ReadOptions::default(), origin: Origin::Sample })
    }

    /// Creates a workload from the text of a fio job file.
    #[staticmethod]
    #[pyo3(signature = (text, name="job.fio".to_owned()), text_signature = "(text, name='job.fio')")]
    fn from_job(
        #[pyo3(from_py_with = plain)] text: String,
        #[pyo3(from_py_with = plain)] name: String,
    ) -> PyResult<Self> {
        Self::text("job", &text, &name).about("text")
    }

    /// Creates a workload from the text of a task file (TOML).
    #[staticmethod]
    #[pyo3(signature = (text, name="tasks.toml".to_owned()), text_signature = "(text, name='tasks.toml')")]
    fn from_toml(
        #[pyo3(from_py_with = plain)] text: String,
        #[pyo3(from_py_with = plain)] name: String,
    ) -> PyResult<Self> {
        Self::text("tasks", &text, &name).about("text")
    }

    /// Creates a workload from a dict with the fields of a task file.
    #[staticmethod]
    #[pyo3(signature = (fields, name="tasks.toml".to_owned()), text_signature = "(fields, name='tasks.toml')")]
    fn from_dict(fields: &Bound<'_, PyAny>, #[pyo3(from_py_with = plain)] name: String) -> PyResult<Self> {
        toml_of(fields).and_then(|text| Self::text("tasks", &text, &name)).about("fields")
    }

    /// Creates a workload that replays a trace.
    #[staticmethod]
    fn from_trace(trace: &Trace) -> Self {
        let inner = Inner::Trace(Arc::clone(&trace.inner));
        Self { inner, path: None, reading: ReadOptions::default(), origin: Origin::Trace(trace.clone()) }
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The kind: trace, jobs, tasks or application.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.inner {
            Inner::Trace(_) => "trace",
            Inner::Jobs(_) => "jobs",
            Inner::Tasks(_) => "tasks",
            Inner::Application(_) => "application",
            Inner::Several(_) => "several",
        }
    }

    /// The number of tasks, jobs or recorded processes.
    #[getter]
    fn tasks(&self) -> usize {
        self.inner.task_count()
    }

    fn __repr__(&self) -> String {
        format!("<iosched.Workload {}: {} of {}>", self.inner.name(), self.kind(), self.tasks())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let py = slf.py();
        let class = slf.get_type();
        Ok(match slf.get().origin.clone() {
            Origin::Sample => (class.getattr("sample")?, pyo3::types::PyTuple::empty(py).into_any()),
            Origin::Path { path, reading: Reading { format, columns, time_unit, partial, ionice } } => {
                let given = (path, format, columns, time_unit, partial, ionice);
                (class.getattr("_again")?, given.into_pyobject(py)?.into_any())
            }
            Origin::Text { kind: "job", text, name } => {
                (class.getattr("from_job")?, (text, name).into_pyobject(py)?.into_any())
            }
            Origin::Text { text, name, .. } => {
                (class.getattr("from_toml")?, (text, name).into_pyobject(py)?.into_any())
            }
            Origin::Trace(trace) => (class.getattr("from_trace")?, (trace,).into_pyobject(py)?.into_any()),
        })
    }

    #[staticmethod]
    fn _again(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        columns: Option<String>,
        time_unit: Option<String>,
        partial: bool,
        ionice: Vec<String>,
    ) -> PyResult<Self> {
        Self::open(py, path, Reading { format, columns, time_unit, partial, ionice })
    }
}

/// Checks that a number is in its range.
pub(crate) fn within(name: &str, value: f64, range: RangeInclusive<f64>, unit: &str) -> PyResult<()> {
    let outside = || wrong(name, format_args!("{value}: must be {unit} from {} to {}", range.start(), range.end()));
    range.contains(&value).then_some(()).ok_or_else(outside)
}

/// Checks the length of runs and the speed of a replay.
pub(crate) fn check_length(warm_up: f64, run_for: Option<f64>, speed: Option<f64>) -> PyResult<()> {
    if !is_warm_up(warm_up) {
        within("warm_up", warm_up, RUN_SECONDS, "0, or seconds")?;
    }
    run_for.map_or(Ok(()), |run_for| within("run_for", run_for, RUN_SECONDS, "seconds"))?;
    speed.map_or(Ok(()), |speed| within("speed", speed, SPEEDS, "a factor"))
}

/// Returns the elements of a list, or a single argument as a list.
pub(crate) fn one_or_more<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_one = given.is_instance_of::<PyString>() || given.is_instance_of::<PyDict>();
    match given.try_iter() {
        Ok(several) if !is_one => several.collect(),
        _ => Ok(vec![given.clone()]),
    }
}

/// Returns a stream of bytes in memory.
pub(crate) fn stream(bytes: Vec<u8>) -> Cursor<Vec<u8>> {
    Cursor::new(bytes)
}
