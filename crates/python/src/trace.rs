//! Recorded I/O: from files, streams and tables of other libraries, and back.

use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatchReader, StringArray, UInt32Array, UInt64Array};
use iosched::{Flags, Op, Time};
use iosched_trace::{
    Format, Ionice, ProcessName, ReadOptions, TraceReader, TraceRequest, TraceWriter, WriteReport, flag_letters,
    ioprio_text,
};
use iosched_workload::{Entry, Trace as Inner};
use pyo3::exceptions::{PyBaseException, PyException};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::input::AnyRecordBatch;

use crate::atomic_file::write_atomically;
use crate::error::{About as _, ArgumentTypeError, TraceError, of_trace, of_workload, plain, wrong};
use crate::frame::{self, OnError, warn};
use crate::stream::Stream;
use crate::table::{Columns, Table};
use crate::values::reading;

/// A recording: the I/Os of a system in order of time, with their processes.
#[pyclass(frozen, eq, hash, from_py_object, module = "iosched")]
#[derive(Clone)]
pub(crate) struct Trace {
    pub(crate) inner: Arc<Inner>,
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        let identity = |trace: &Self| (trace.inner.name().to_owned(), trace.inner.resolution_ns());
        identity(self) == identity(other)
            && self.inner.processes() == other.inner.processes()
            && self.inner.entries().eq(other.inner.entries())
    }
}

impl Eq for Trace {}

impl Hash for Trace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.inner.name(), self.inner.len(), self.inner.span_ns()).hash(state);
    }
}

impl Trace {
    fn of(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    fn read(name: &str, stream: impl Read + Send + 'static, options: &ReadOptions) -> PyResult<Self> {
        let reader = TraceReader::from_reader(stream, name, options).map_err(|error| of_trace(&error))?;
        Ok(Self::of(Inner::read(name, reader).map_err(|error| of_workload(&error))?))
    }

    /// Gives processes their priorities.
    fn prioritised(mut self, priorities: &[Ionice]) -> PyResult<Self> {
        if !priorities.is_empty() {
            let inner =
                Arc::get_mut(&mut self.inner).unwrap_or_else(|| unreachable!("no other code has the trace yet"));
            inner.prioritise(priorities).map_err(|error| of_workload(&error)).about("ionice")?;
        }
        Ok(self)
    }

    fn requests(&self) -> impl Iterator<Item = (TraceRequest, &str)> {
        let processes = self.inner.processes();
        self.inner.entries().map(move |entry| {
            let process = &processes[entry.process as usize];
            let request = TraceRequest {
                arrival: Time::from_ns(entry.arrival_ns),
                pid: process.pid,
                device: None,
                op: entry.op(),
                flags: entry.flags(),
                sector: entry.sector(),
                nr_sectors: entry.nr_sectors,
                latency_ns: entry.latency_ns(),
                ioprio: entry.ioprio(),
            };
            (request, process.name.as_str())
        })
    }

    /// Returns a table with one row per I/O.
    fn table(&self, is_sync: fn(&Entry) -> bool) -> PyResult<Table> {
        let letters = |entry: Entry| Some(flag_letters(entry.flags()));
        let ioprio = |entry: Entry| entry.ioprio().map(ioprio_text);
        let entries = || self.inner.entries();
        let processes = self.inner.processes();
        let process = |entry: Entry| &processes[entry.process as usize];
        let number = |value: fn(&Entry) -> u64| UInt64Array::from_iter_values(entries().map(|entry| value(&entry)));
        Columns::default()
            .with("arrival_ns", number(|entry| entry.arrival_ns))
            .with("pid", UInt32Array::from_iter_values(entries().map(|entry| process(entry).pid)))
            .with("process", words(entries().map(|entry| process(entry).name.as_str())))
            .with("op", words(entries().map(|entry| op_name(entry.op()))))
            .with("sync", entries().map(|entry| Some(is_sync(&entry))).collect::<BooleanArray>())
            .with("flags", entries().map(letters).collect::<StringArray>())
            .with("ioprio", entries().map(ioprio).collect::<StringArray>())
            .with("sector", number(Entry::sector))
            .with("nr_sectors", UInt32Array::from_iter_values(entries().map(|entry| entry.nr_sectors)))
            .with("latency_ns", entries().map(|entry| entry.latency_ns()).collect::<UInt64Array>())
            .table()
    }

    fn write_to(&self, out: impl Write, format: Format) -> PyResult<WriteReport> {
        let mut writer = TraceWriter::new(out, format).map_err(|error| of_trace(&error))?;
        for (request, process) in self.requests() {
            let process = (!process.is_empty()).then(|| ProcessName::new(process.as_bytes()));
            writer.write(&request, process, None).map_err(|error| of_trace(&error))?;
        }
        writer.finish().map_err(|error| of_trace(&error))
    }
}

/// Data that recreates a trace: a function and its arguments.
type Again<'py> = (Bound<'py, PyAny>, (String, Table, u64));

/// Warns about the missing parts of an incomplete recording.
pub(crate) fn warn_of_gaps(py: Python<'_>, trace: &Inner) -> PyResult<()> {
    let name = trace.name();
    for gap in trace.completeness().gaps().iter().filter(|gap| gap.matters()) {
        let text = gap.to_string();
        let text = if text.contains(name) { text } else { format!("{name}: {text}") };
        warn(py, &text)?;
    }
    match trace.left_out() {
        0 => Ok(()),
        count => {
            warn(py, &format!("{name}: {count} I/Os were left out, because they end beyond 128 PiB or after 36 years"))
        }
    }
}

/// Returns the name of an operation, as in `iosched trace` and in tables.
pub(crate) const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::WriteZeroes => "write_zeroes",
        Op::Flush => "flush",
    }
}

/// Returns a dictionary column of texts with few different values.
pub(crate) fn words<'w>(
    words: impl Iterator<Item = &'w str>,
) -> arrow_array::DictionaryArray<arrow_array::types::UInt32Type> {
    words.collect()
}

/// Reads a trace from a path, an open file in binary mode, or a URL that fsspec opens. If no file
/// has this name, iosched reads the per-CPU files whose names begin with it. Parquet files need
/// pyarrow, and have the columns of `Trace.from_arrow`.
///
/// By default, the content decides the `format`. `columns` names the columns of a table.
/// `time_unit` (ns, us, ms or s) is the unit of times that are numbers without a unit. `partial`
/// accepts an incomplete recording. `ionice` gives processes a priority, such as ["backup=idle",
/// "db*=best-effort:2"]. The first entry that matches a process counts.
#[pyfunction]
#[pyo3(signature = (source, *, format=None, columns=None, time_unit=None, partial=false, ionice=Vec::new(), name=None))]
#[pyo3(text_signature = "(source, *, format=None, columns=None, time_unit=None, partial=False, ionice=(), name=None)")]
pub(crate) fn read_trace(
    source: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = plain)] format: Option<String>,
    #[pyo3(from_py_with = plain)] columns: Option<String>,
    #[pyo3(from_py_with = plain)] time_unit: Option<String>,
    #[pyo3(from_py_with = plain)] partial: bool,
    #[pyo3(from_py_with = plain)] ionice: Vec<String>,
    #[pyo3(from_py_with = plain)] name: Option<String>,
) -> PyResult<Trace> {
    let options = reading(format.as_deref(), columns.as_deref(), time_unit.as_deref(), partial)?;
    let priorities = priorities(&ionice)?;
    let trace = read(source, &options, name.as_deref()).about("source")?.prioritised(&priorities)?;
    warn_of_gaps(source.py(), &trace.inner)?;
    Ok(trace)
}

/// Parses priorities of processes in the syntax of `--ionice`.
pub(crate) fn priorities(ionice: &[String]) -> PyResult<Vec<Ionice>> {
    let parse = |text: &String| text.parse().map_err(|problem| wrong("ionice", format_args!("{text:?} {problem}")));
    ionice.iter().map(parse).collect()
}

fn read(source: &Bound<'_, PyAny>, options: &ReadOptions, name: Option<&str>) -> PyResult<Trace> {
    let py = source.py();
    if source.hasattr("read")? {
        let file_name: Option<String> = source.getattr("name").ok().and_then(|name| name.extract().ok());
        let name = name.map(str::to_owned).or(file_name).unwrap_or_else(|| "trace".to_owned());
        let stream = Stream::borrowed(source.clone().unbind());
        return py.detach(|| Trace::read(&name, stream, options));
    }
    let path: PathBuf = plain(source)?;
    let text = path.to_string_lossy().into_owned();
    if text.ends_with(".parquet") {
        for (argument, is_given) in [
            ("format", options.format.is_some()),
            ("columns", options.columns.is_some()),
            ("time_unit", options.time_unit.is_some()),
        ] {
            if is_given {
                return Err(wrong(
                    argument,
                    "is only for text files, because a Parquet file contains the names of its columns",
                ));
            }
        }
        let table = py.import("pyarrow.parquet")?.call_method1("read_table", (&text,))?;
        let on_error = if options.partial { OnError::Drop } else { OnError::Raise };
        return Ok(Trace::of(frame::trace(py, rows(&table)?, name.unwrap_or(&text), on_error)?));
    }
    if text.contains("://") {
        let stream = Stream::of_url(py, &text)?;
        return py.detach(|| Trace::read(name.unwrap_or(&text), stream, options));
    }
    py.detach(|| {
        let mut inner = Inner::open_with(&path, options).map_err(|error| of_workload(&error))?;
        if let Some(name) = name {
            inner.rename(name);
        }
        Ok(Trace::of(inner))
    })
}

/// Returns the rows of a table of another library.
fn rows(table: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let found = table.get_type().name()?;
    if !table.hasattr("__arrow_c_stream__")? && !table.hasattr("__arrow_c_array__")? {
        return Err(ArgumentTypeError::new_err(format!(
            "found {found}, expected a table of pandas, polars, pyarrow, DuckDB or another library with the Arrow \
             PyCapsule protocol"
        )));
    }
    let py = table.py();
    match table.extract::<AnyRecordBatch>() {
        Ok(batches) => batches.into_reader(),
        // Either the values have no rows, or the other library could not convert them. For example,
        // a column can have mixed types.
        Err(error) if error.is_instance_of::<PyException>(py) => {
            let text = texts_of(error.value(py));
            let refused = TraceError::new_err(format!("found {found} that cannot be read as an Arrow table: {text}"));
            refused.set_cause(py, Some(error));
            Err(refused)
        }
        Err(error) => Err(error),
    }
}

/// Returns the text of an error. If the error has several texts, joins them.
fn texts_of(error: &Bound<'_, PyBaseException>) -> String {
    let texts = error.getattr("args").and_then(|args| args.extract::<Vec<String>>());
    texts.ok().filter(|texts| !texts.is_empty()).map_or_else(|| error.to_string(), |texts| texts.join("; "))
}

#[pymethods]
impl Trace {
    /// Creates a trace from a table with the Arrow PyCapsule protocol (pandas, polars, DuckDB,
    /// pyarrow). docs/traces.md describes the columns: a time (time_ns, time_us, time_ms, time_s or
    /// arrival_ns), op, sector or offset_bytes, nr_sectors or length_bytes. pid, process, device,
    /// sync, flags, ioprio and latency_ns are optional. iosched ignores other columns. It warns if
    /// the name of such a column is similar to a known name. `resolution_ns` is the resolution of
    /// the times.
    ///
    /// Columns of times and latencies can also have datetimes or timedeltas; their names can then
    /// be time and latency. If the table has numbers for operations, the name of the column gives
    /// their meaning: op=1:read or op=0:write/1:read. If the table has a latency, the time can also
    /// be the time of completion (completed_us, end_ms ...). The arrival is then the completion
    /// minus latency and queue. iosched accepts floats without a fraction as whole numbers, and
    /// rounds times to ns. `ionice` is as in read_trace.
    ///
    /// A TraceError names the row and the column of a row that is not an I/O. With
    /// `on_error="drop"`, iosched leaves out such rows and warns. If the rows are not in order of
    /// time, iosched sorts them and warns. NaN, NaT and null are missing values. Only a latency, a
    /// device, flags or a process can be missing.
    #[staticmethod]
    #[pyo3(
        signature = (table, name="table".to_owned(), resolution_ns=1, *,
            on_error="raise".to_owned(), ionice=Vec::new()),
        text_signature = "(table, name='table', resolution_ns=1, *, on_error='raise', ionice=())"
    )]
    fn from_arrow(
        table: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = plain)] name: String,
        #[pyo3(from_py_with = plain)] resolution_ns: u64,
        #[pyo3(from_py_with = plain)] on_error: String,
        #[pyo3(from_py_with = plain)] ionice: Vec<String>,
    ) -> PyResult<Self> {
        let on_error = OnError::of(&on_error)?;
        if resolution_ns == 0 {
            return Err(wrong("resolution_ns", "must be at least 1 ns"));
        }
        let priorities = priorities(&ionice)?;
        let mut inner = frame::trace(table.py(), rows(table).about("table")?, &name, on_error)?;
        inner.set_resolution_ns(resolution_ns);
        Self::of(inner).prioritised(&priorities)
    }

    /// Returns a table with a row for each I/O: arrival_ns, pid, process, op, sync, flags, ioprio,
    /// sector, nr_sectors, latency_ns.
    fn to_arrow(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.table(|entry| !entry.op().is_write() || entry.flags().contains(Flags::SYNC)))
    }

    /// Writes the trace to a file. `format` or the extension of the name (.csv, .iolog, .msr ...)
    /// chooses the format. Returns the number of I/Os that the format cannot store. A warning lists
    /// other data that the format cannot store.
    #[pyo3(signature = (path, format=None))]
    fn write(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = plain)] path: PathBuf,
        #[pyo3(from_py_with = plain)] format: Option<String>,
    ) -> PyResult<u64> {
        let name = path.to_string_lossy().into_owned();
        let known = match &format {
            Some(name) => Format::from_name(name),
            None => Format::of_file_name(&name),
        };
        let known = known.ok_or_else(|| {
            let (argument, given) = format.as_ref().map_or(("path", &name), |format| ("format", format));
            let formats = Format::writable_names();
            wrong(argument, format_args!("{given}: iosched cannot write this format; available: {formats}"))
        })?;
        let report = py.detach(|| write_atomically(&path, |file| self.write_to(file, known)))?;
        let losses: Vec<String> = report.losses().map(|(count, what)| format!("{count} {what}")).collect();
        if !losses.is_empty() {
            let losses = losses.join("; ");
            warn(
                py,
                &format!(
                    "{name}: the format {known} cannot represent the whole trace. Affected I/Os: \
                     {losses}"
                ),
            )?;
        }
        Ok(report.left_out)
    }

    /// A description of the trace, in numbers.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entries_with = |op: Op| self.inner.entries().filter(move |entry| entry.op() == op);
        let bytes = |op| entries_with(op).map(|entry| u64::from(entry.nr_sectors) * 512).sum::<u64>();
        let info = PyDict::new(py);
        info.set_item("name", self.inner.name())?;
        info.set_item("requests", self.inner.len())?;
        info.set_item("reads", entries_with(Op::Read).count())?;
        info.set_item("writes", entries_with(Op::Write).count())?;
        info.set_item("bytes_read", bytes(Op::Read))?;
        info.set_item("bytes_written", bytes(Op::Write))?;
        info.set_item("span_ns", self.inner.span_ns())?;
        info.set_item("resolution_ns", self.inner.resolution_ns())?;
        info.set_item("end_bytes", self.inner.end_sector() * 512)?;
        info.set_item("devices", self.inner.devices())?;
        info.set_item("knows_completions", self.inner.knows_completions())?;
        let processes: Vec<_> = self
            .inner
            .processes()
            .iter()
            .map(|process| (process.pid, process.name.clone(), process.requests))
            .collect();
        info.set_item("processes", processes)?;
        info.set_item("missing", self.missing())?;
        info.set_item("left_out", self.inner.left_out())?;
        info.set_item("warnings", self.inner.warnings().kept().iter().map(ToString::to_string).collect::<Vec<_>>())?;
        Ok(info)
    }

    /// The parts of the recording that are missing, or may be missing.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.inner.completeness().gaps().iter().filter(|gap| gap.matters()).map(ToString::to_string).collect()
    }

    /// The name of the trace.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<iosched.Trace {}: {} I/Os of {} processes in {:.3} s>",
            self.inner.name(),
            self.inner.len(),
            self.inner.processes().len(),
            self.inner.span_ns() as f64 / 1e9
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        let trace = slf.get();
        // Use the stored flag here. A read without this flag would otherwise become sync.
        let table = slf.py().detach(|| trace.table(|entry| entry.flags().contains(Flags::SYNC)))?;
        Ok((slf.get_type().getattr("_again")?, (trace.inner.name().to_owned(), table, trace.inner.resolution_ns())))
    }

    #[staticmethod]
    #[pyo3(name = "_again")]
    fn again(py: Python<'_>, name: &str, table: &Table, resolution_ns: u64) -> PyResult<Self> {
        let mut inner = frame::trace(py, table.reader(), name, OnError::Raise)?;
        inner.set_resolution_ns(resolution_ns);
        Ok(Self::of(inner))
    }
}
