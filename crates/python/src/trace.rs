//! Recorded I/O: from files, streams and tables of other libraries, and back.

use std::hash::{Hash, Hasher};
use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch, RecordBatchReader, StringArray, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use iosched::{Flags, Op, Time};
use iosched_trace::{Format, ProcessName, ReadOptions, TraceReader, TraceRequest, TraceWriter};
use iosched_workload::Trace as Inner;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::input::AnyRecordBatch;

use crate::error::{TraceError, of_trace, of_workload, usage};
use crate::stream::Stream;
use crate::table::{Columns, Table};
use crate::values::reading;
use crate::whole::whole;

/// A recording: the I/Os that a system submitted, in order of time, and by which processes.
#[pyclass(frozen, eq, hash, from_py_object, module = "iosched")]
#[derive(Clone)]
pub(crate) struct Trace {
    pub(crate) inner: Arc<Inner>,
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        let of = |trace: &Self| (trace.inner.name().to_owned(), trace.inner.resolution_ns());
        of(self) == of(other)
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
    fn read(name: &str, stream: impl Read + Send + 'static, options: &ReadOptions) -> PyResult<Self> {
        let reader = TraceReader::from_reader(stream, name, options).map_err(|error| of_trace(&error))?;
        let inner = Inner::read(name, reader).map_err(|error| of_workload(&error))?;
        Ok(Self { inner: Arc::new(inner) })
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

    fn write_to(&self, out: impl Write, format: Format) -> PyResult<u64> {
        let mut writer = TraceWriter::new(out, format).map_err(|error| of_trace(&error))?;
        for (request, process) in self.requests() {
            let process = (!process.is_empty()).then(|| ProcessName::new(process.as_bytes()));
            writer.write(&request, process, None).map_err(|error| of_trace(&error))?;
        }
        Ok(writer.finish().map_err(|error| of_trace(&error))?.left_out)
    }
}

/// What makes a trace again: a function and its arguments.
type Again<'py> = (Bound<'py, PyAny>, (String, Bound<'py, PyBytes>, u64));

/// As `iosched trace` and its tables call it.
pub(crate) const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::WriteZeroes => "write_zeroes",
        Op::Flush => "flush",
    }
}

/// Columns of texts that are few: what they are, as a dictionary.
pub(crate) fn words<'w>(
    words: impl Iterator<Item = &'w str>,
) -> arrow_array::DictionaryArray<arrow_array::types::UInt32Type> {
    words.collect()
}

/// Reads a trace: a path, an open file in binary mode, or a URL that fsspec opens. Of a name without a file, the
/// per-CPU files that begin with it. Parquet files need pyarrow.
///
/// `format` is told by the content unless given; `columns` names those of a table; `partial` takes what is there of a
/// recording that is not whole.
#[pyfunction]
#[pyo3(signature = (source, *, format=None, columns=None, partial=false, name=None))]
pub(crate) fn read_trace(
    source: &Bound<'_, PyAny>,
    format: Option<&str>,
    columns: Option<&str>,
    partial: bool,
    name: Option<&str>,
) -> PyResult<Trace> {
    let py = source.py();
    let options = reading(format, columns, partial)?;
    if source.hasattr("read")? {
        let own: Option<String> = source.getattr("name").ok().and_then(|name| name.extract().ok());
        let name = name.map(str::to_owned).or(own).unwrap_or_else(|| "trace".to_owned());
        let stream = Stream::borrowed(source.clone().unbind());
        return py.detach(|| Trace::read(&name, stream, &options));
    }
    let path: PathBuf = source.extract()?;
    let text = path.to_string_lossy().into_owned();
    if text.ends_with(".parquet") {
        let table = py.import("pyarrow.parquet")?.call_method1("read_table", (&text,))?;
        return Trace::from_arrow(table.extract()?, name.unwrap_or(&text), 1);
    }
    if text.contains("://") {
        let stream = Stream::of_url(py, &text)?;
        return py.detach(|| Trace::read(name.unwrap_or(&text), stream, &options));
    }
    py.detach(|| {
        let mut inner = Inner::open_with(&path, &options).map_err(|error| of_workload(&error))?;
        if let Some(name) = name {
            inner.rename(name);
        }
        Ok(Trace { inner: Arc::new(inner) })
    })
}

#[pymethods]
impl Trace {
    /// A trace of any table that speaks the Arrow PyCapsule protocol (pandas, polars, DuckDB, pyarrow). Its columns are
    /// those of docs/traces.md: a time (time_ns, time_us, time_ms, time_s or arrival_ns), op, sector or offset_bytes,
    /// nr_sectors or length_bytes; perhaps pid, process, device, sync, flags, latency_ns. Rows are in order of time.
    /// `resolution_ns` is how exact their times are.
    #[staticmethod]
    #[pyo3(signature = (table, name="table", resolution_ns=1))]
    fn from_arrow(table: AnyRecordBatch, name: &str, resolution_ns: u64) -> PyResult<Self> {
        let reader = table.into_reader()?;
        let mut text = heading(&reader)?;
        for batch in reader {
            let batch = batch.map_err(|error| TraceError::new_err(format!("{name}: {error}")))?;
            lines(&batch, name, &mut text)?;
        }
        Self::again(name, text, resolution_ns)
    }

    /// A table with a row for each I/O: arrival_ns, pid, process, op, sync, sector, nr_sectors, latency_ns.
    fn to_arrow(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let entries = || self.inner.entries();
            let processes = self.inner.processes();
            let of = |entry: iosched_workload::Entry| &processes[entry.process as usize];
            let number = |value: fn(&iosched_workload::Entry) -> u64| {
                UInt64Array::from_iter_values(entries().map(|own| value(&own)))
            };
            let is_sync =
                |entry: iosched_workload::Entry| !entry.op().is_write() || entry.flags().contains(Flags::SYNC);
            Columns::default()
                .with("arrival_ns", number(|entry| entry.arrival_ns))
                .with("pid", UInt32Array::from_iter_values(entries().map(|entry| of(entry).pid)))
                .with("process", words(entries().map(|entry| of(entry).name.as_str())))
                .with("op", words(entries().map(|entry| op_name(entry.op()))))
                .with("sync", entries().map(|entry| Some(is_sync(entry))).collect::<BooleanArray>())
                .with("sector", number(iosched_workload::Entry::sector))
                .with("nr_sectors", UInt32Array::from_iter_values(entries().map(|entry| entry.nr_sectors)))
                .with("latency_ns", entries().map(|entry| entry.latency_ns()).collect::<UInt64Array>())
                .table()
        })
    }

    /// Writes it to a file, in the format named or that the file's name ends in (.csv, .iolog, .msr ...); how many I/Os
    /// the format has no place for.
    #[pyo3(signature = (path, format=None))]
    fn write(&self, py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<u64> {
        let name = path.to_string_lossy().into_owned();
        let known = match format {
            Some(name) => Format::from_name(name),
            None => Format::of_file_name(&name),
        };
        let known = known.ok_or_else(|| {
            usage(format_args!("{name}: no format: those that can be written are {}", Format::writable_names()))
        })?;
        py.detach(|| whole(&path, |file| self.write_to(file, known)))
    }

    /// What it is, in numbers.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let of = |op: Op| self.inner.entries().filter(move |entry| entry.op() == op);
        let bytes = |op| of(op).map(|entry| u64::from(entry.nr_sectors) * 512).sum::<u64>();
        let info = PyDict::new(py);
        info.set_item("name", self.inner.name())?;
        info.set_item("requests", self.inner.len())?;
        info.set_item("reads", of(Op::Read).count())?;
        info.set_item("writes", of(Op::Write).count())?;
        info.set_item("bytes_read", bytes(Op::Read))?;
        info.set_item("bytes_written", bytes(Op::Write))?;
        info.set_item("span_ns", self.inner.span_ns())?;
        info.set_item("resolution_ns", self.inner.resolution_ns())?;
        info.set_item("end_bytes", self.inner.end_sector() * 512)?;
        info.set_item("devices", self.inner.devices())?;
        info.set_item("knows_completions", self.inner.knows_completions())?;
        let processes: Vec<_> =
            self.inner.processes().iter().map(|own| (own.pid, own.name.clone(), own.requests)).collect();
        info.set_item("processes", processes)?;
        info.set_item("missing", self.missing())?;
        info.set_item("warnings", self.inner.warnings().kept().iter().map(ToString::to_string).collect::<Vec<_>>())?;
        Ok(info)
    }

    /// What is not, or may not be, in it of the whole recording.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.inner.completeness().gaps().iter().filter(|gap| gap.matters()).map(ToString::to_string).collect()
    }

    /// Its name.
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
        let own = slf.get();
        let mut text = Vec::new();
        own.write_to(&mut text, Format::Csv)?;
        let bytes = PyBytes::new(slf.py(), &text);
        Ok((slf.get_type().getattr("_again")?, (own.inner.name().to_owned(), bytes, own.inner.resolution_ns())))
    }

    #[staticmethod]
    #[pyo3(name = "_again")]
    fn again_of(name: &str, text: Vec<u8>, resolution_ns: u64) -> PyResult<Self> {
        Self::again(name, text, resolution_ns)
    }
}

impl Trace {
    /// Of our own columns, with times that are so exact.
    fn again(name: &str, text: Vec<u8>, resolution_ns: u64) -> PyResult<Self> {
        let options = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
        let mut trace = Self::read(name, Cursor::new(text), &options)?;
        if let Some(inner) = Arc::get_mut(&mut trace.inner) {
            inner.set_resolution_ns(resolution_ns);
        }
        Ok(trace)
    }
}

/// The first line of a table that others have made.
fn heading(reader: &dyn RecordBatchReader) -> PyResult<Vec<u8>> {
    let schema = reader.schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let has = |wanted: &[&str]| wanted.iter().any(|name| names.contains(name));
    for (wanted, what) in [
        (&["arrival_ns", "time_ns", "time_us", "time_ms", "time_s"][..], "a time"),
        (&["op"], "op"),
        (&["sector", "offset_bytes"], "a start"),
        (&["nr_sectors", "length_bytes", "size_bytes"], "a length"),
    ] {
        if !has(wanted) {
            let found = names.join(", ");
            return Err(TraceError::new_err(format!(
                "the table has no column for {what}: {}; it has {found}",
                wanted.join(" or ")
            )));
        }
    }
    Ok(format!("{}\n", names.join(",")).into_bytes())
}

/// Rows as lines of text, which the reader of tables reads.
fn lines(batch: &RecordBatch, name: &str, text: &mut Vec<u8>) -> PyResult<()> {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields()).map(|(values, field)| {
        let wrong = |error| TraceError::new_err(format!("{name}: column {}: {error}", field.name()));
        // True and false are 1 and 0 there.
        let values = if values.data_type() == &DataType::Boolean {
            arrow_cast::cast(values, &DataType::UInt8).map_err(wrong)?
        } else {
            Arc::clone(values)
        };
        let values = arrow_cast::cast(&values, &DataType::Utf8).map_err(wrong)?;
        Ok(values.as_string::<i32>().clone())
    });
    let columns: Vec<StringArray> = columns.collect::<PyResult<_>>()?;
    for row in 0..batch.num_rows() {
        for (number, values) in columns.iter().enumerate() {
            if number > 0 {
                text.push(b',');
            }
            if !arrow_array::Array::is_null(values, row) {
                let value = values.value(row);
                // A line stays a line.
                let value = value.replace(char::is_control, "?");
                if value.contains([',', '"']) {
                    let value = value.replace('"', "\"\"");
                    text.extend(format!("\"{value}\"").bytes());
                } else {
                    text.extend(value.bytes());
                }
            }
        }
        text.push(b'\n');
    }
    Ok(())
}
