//! Reads traces from tables in memory. A table is not a recording that may be damaged, so a row
//! that is not an I/O is an error.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::CString;
use std::fmt;
use std::io::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use iosched_lab::request::nearest;
use iosched_trace::{Column, Columns, Names, TableRow, TraceRequest};
use iosched_workload::Trace;
use pyo3::prelude::*;

use crate::error::{About as _, IoschedWarning, TraceError, of_workload, wrong};

/// Handling of rows that are not I/Os.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    /// Raise an error that names the row.
    Raise,
    /// Leave out the row, and warn.
    Drop,
}

impl OnError {
    pub(crate) fn of(text: &str) -> PyResult<Self> {
        match text {
            "raise" => Ok(Self::Raise),
            "drop" => Ok(Self::Drop),
            _ => Err(wrong("on_error", format_args!("{text:?} is not valid; write \"raise\" or \"drop\""))),
        }
    }
}

/// Issues a warning that points to the caller's line.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text.replace('\0', "?"))?;
    PyErr::warn(py, &py.get_type::<IoschedWarning>(), &text, 1)
}

/// Reason why a row is not an I/O.
struct Fault {
    row: usize,
    /// Name of the column. `None` if the values of several columns contradict each other.
    column: Option<String>,
    found: String,
    expected: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": found {}, expected {}", self.found, self.expected)
    }
}

/// Reads a trace from the rows of a table.
pub(crate) fn trace(
    py: Python<'_>,
    table: Box<dyn RecordBatchReader + Send>,
    name: &str,
    on_error: OnError,
) -> PyResult<Trace> {
    let meanings = meanings(py, &table.schema(), name)?;
    let mut rows = Rows::new(name, meanings);
    for batch in table {
        let batch = batch.map_err(|error| TraceError::new_err(format!("{name}: {error}")))?;
        py.detach(|| rows.add(&batch, on_error))?;
    }
    py.detach(|| rows.order(on_error))?;
    rows.warn(py)?;
    let trace = Trace::collect(name, 1, rows.requests.iter().map(|(request, _)| Ok(*request)));
    let mut trace = trace.map_err(|error| of_workload(&error)).about("table")?;
    trace.name_processes(|pid| rows.processes.get(&pid).cloned());
    Ok(trace)
}

/// Returns the meanings of a table's columns. A column `time`
/// or `latency` is allowed if its type contains a unit.
fn meanings(py: Python<'_>, schema: &SchemaRef, name: &str) -> PyResult<Columns> {
    let mut names = Vec::new();
    let has_arrivals = schema
        .fields()
        .iter()
        .any(|field| field.name() == "time" || matches!(Column::of_name(field.name()), Some(Column::Arrival(_))));
    for field in schema.fields() {
        let field_name = field.name().as_str();
        let meant = match field_name {
            "time" | "latency" | "queue" if has_unit(field.data_type()) => format!("{field_name}_ns"),
            "completed" | "end" if has_unit(field.data_type()) && !has_arrivals => format!("{field_name}_ns"),
            "time" | "latency" => {
                let unit = format!(
                    "has type {}, which has no unit; rename the column to {field_name}_ns, _us, _ms or _s",
                    field.data_type()
                );
                return Err(TraceError::new_err(format!("{name}: column {field_name} {unit}"))).about("table");
            }
            _ => field_name.to_owned(),
        };
        names.push(meant);
    }
    let columns = Columns::of_names(names.iter().map(String::as_str))
        .map_err(|error| TraceError::new_err(format!("{name}: {error}")))
        .about("table")?;
    let known = ["pid", "process", "device", "sync", "flags", "latency_ns", "latency_us", "latency_ms", "latency_s"];
    for (field_name, _) in columns.iter().filter(|(_, column)| *column == Column::Unknown) {
        let lower = field_name.to_lowercase();
        let near = known.contains(&lower.as_str()).then_some(lower.as_str()).or_else(|| nearest(&lower, known));
        if let Some(near) = near.filter(|near| !names.iter().any(|name| name == near)) {
            warn(py, &format!("{name}: column {field_name:?} is unknown and was ignored; did you mean {near}?"))?;
        }
    }
    Ok(columns)
}

fn has_unit(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(..) | DataType::Duration(_))
}

/// The rows that are I/Os, and counts of the problems of other rows.
struct Rows<'n> {
    name: &'n str,
    columns: Columns,
    names: Names,
    processes: BTreeMap<u32, String>,
    /// Processes with different names, each with two of these names.
    renamed: BTreeMap<u32, [String; 2]>,
    /// The requests with the numbers of their rows.
    requests: Vec<(TraceRequest, usize)>,
    /// Number of rows so far.
    count: usize,
    dropped: usize,
    first_dropped: Option<Fault>,
    unordered: usize,
    first_unordered: usize,
}

impl<'n> Rows<'n> {
    fn new(name: &'n str, columns: Columns) -> Self {
        Self {
            name,
            columns,
            names: Names::default(),
            processes: BTreeMap::new(),
            renamed: BTreeMap::new(),
            requests: Vec::new(),
            count: 0,
            dropped: 0,
            first_dropped: None,
            unordered: 0,
            first_unordered: 0,
        }
    }

    fn add(&mut self, batch: &RecordBatch, on_error: OnError) -> PyResult<()> {
        let named = self.columns.iter().zip(batch.columns()).zip(batch.schema_ref().fields());
        let columns =
            named.filter(|(((_, column), _), _)| *column != Column::Unknown).map(|(((_, column), values), field)| {
                let refused =
                    |problem: String| TraceError::new_err(format!("{}: column {}: {problem}", self.name, field.name()));
                let cells = Cells::of(values, column).map_err(|error| refused(error.to_string()))?;
                let cells = cells.ok_or_else(|| {
                    refused(format!("found values of type {}, expected {}", values.data_type(), column.takes()))
                })?;
                Ok(Prepared { name: field.name().clone(), column: cells.column(column), values: values.clone(), cells })
            });
        let columns: Vec<Prepared> = columns.collect::<PyResult<_>>().about("table")?;
        let mut text = Vec::new();
        for at in 0..batch.num_rows() {
            match self.row(&columns, at, &mut text) {
                Ok(request) => self.requests.push((request, self.count)),
                Err(fault) => self.refuse(fault, on_error)?,
            }
            self.count += 1;
        }
        Ok(())
    }

    fn row(&mut self, columns: &[Prepared], at: usize, text: &mut Vec<u8>) -> Result<TraceRequest, Fault> {
        let row = self.count;
        let fault = |prepared: &Prepared, expected: String| Fault {
            row,
            column: Some(prepared.name.clone()),
            found: prepared.found(at),
            expected,
        };
        let mut parsed = TableRow::default();
        for prepared in columns {
            text.clear();
            prepared.cells.write(at, prepared.column, text);
            let value = self.columns.value(prepared.column, text.as_slice().into());
            if value.and_then(|value| parsed.take(prepared.column, &value, &mut self.names)).is_none() {
                let words = self.columns.op_takes().filter(|_| prepared.column == Column::Op);
                return Err(fault(prepared, words.unwrap_or_else(|| prepared.column.takes())));
            }
        }
        let request = parsed.request(&mut self.names).map_err(|expected| {
            let values: Vec<String> =
                columns.iter().map(|column| format!("{} {}", column.name, column.found(at))).collect();
            Fault { row, column: None, found: values.join(", "), expected: expected.to_owned() }
        })?;
        let length = columns.iter().find(|column| matches!(column.column, Column::Sectors | Column::LengthBytes));
        if let Some(length) = length.filter(|_| request.op.has_data() && request.nr_sectors == 0) {
            return Err(fault(length, "a length above 0; only a flush has length 0".to_owned()));
        }
        if !parsed.process().is_empty() {
            self.note_name(request.pid, &String::from_utf8_lossy(parsed.process()));
        }
        Ok(request)
    }

    /// Stores the name of a process. The last name of a process counts.
    fn note_name(&mut self, pid: u32, name: &str) {
        match self.processes.entry(pid) {
            Entry::Vacant(entry) => _ = entry.insert(name.to_owned()),
            Entry::Occupied(entry) if entry.get() == name => {}
            Entry::Occupied(mut entry) => {
                let earlier = entry.insert(name.to_owned());
                self.renamed.entry(pid).or_insert([earlier, name.to_owned()]);
            }
        }
    }

    fn refuse(&mut self, fault: Fault, on_error: OnError) -> PyResult<()> {
        if on_error == OnError::Raise {
            let remedy = "Correct the table, or drop such rows with on_error=\"drop\". The first row is row 0.";
            return Err(TraceError::new_err(format!("{}: {fault}. {remedy}", self.name))).about("table");
        }
        self.dropped += 1;
        self.first_dropped.get_or_insert(fault);
        Ok(())
    }

    /// Sorts the rows by time, and makes the checks that need all rows.
    fn order(&mut self, on_error: OnError) -> PyResult<()> {
        let mut latest = None;
        for (request, row) in &self.requests {
            if latest.is_some_and(|latest| request.arrival < latest) {
                self.unordered += 1;
                if self.unordered == 1 {
                    self.first_unordered = *row;
                }
            }
            latest = latest.max(Some(request.arrival));
        }
        if self.unordered > 0 {
            self.requests.sort_by_key(|(request, _)| request.arrival);
        }
        let Some(origin) = self.requests.first().map(|(first, _)| first.arrival.as_ns()) else { return Ok(()) };
        let mut faults = Vec::new();
        self.requests.retain(|(request, row)| match Trace::lacks(request, origin) {
            None => true,
            Some(expected) => {
                let TraceRequest { sector, nr_sectors, arrival, .. } = request;
                let after_s = (arrival.as_ns() - origin) as f64 / 1e9;
                let found = format!("{nr_sectors} sectors at sector {sector}, {after_s} s after the first row");
                faults.push(Fault { row: *row, column: None, found, expected: expected.to_owned() });
                false
            }
        });
        faults.into_iter().try_for_each(|fault| self.refuse(fault, on_error))
    }

    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let Self { name, count, dropped, unordered, .. } = self;
        if let Some(first) = &self.first_dropped {
            if dropped == count {
                let text = format!("{name}: none of the {count} rows is an I/O; the first row: {first}");
                return Err(TraceError::new_err(text)).about("table");
            }
            warn(py, &format!("{name}: {dropped} of the {count} rows were dropped; the first of them: {first}"))?;
        }
        if let Some((pid, [first, second])) = self.renamed.first_key_value() {
            let (processes, renamed) = (self.processes.len(), self.renamed.len());
            warn(
                py,
                &format!(
                    "{name}: {renamed} of the {processes} processes have several names, and iosched uses the \
                     last name; the first such process is pid {pid} ({first:?}, {second:?})"
                ),
            )?;
        }
        // If rows are in the order of completion, their arrivals may be out of order.
        if *unordered > 0 && !self.columns.has_completions() {
            let first = self.first_unordered;
            warn(
                py,
                &format!(
                    "{name}: the rows are not in order of time: {unordered} of {count} rows have an earlier time than \
                     a row above (the first such row is row {first}); iosched sorted all rows by time"
                ),
            )?;
        }
        Ok(())
    }
}

/// A column of a batch.
struct Prepared {
    name: String,
    column: Column,
    values: ArrayRef,
    cells: Cells,
}

impl Prepared {
    fn found(&self, at: usize) -> String {
        if self.cells.is_missing(at) {
            return "nothing".to_owned();
        }
        match &self.cells {
            Cells::Text(values) => format!("{:?}", String::from_utf8_lossy(values.as_binary::<i64>().value(at))),
            _ => array_value_to_string(&self.values, at).unwrap_or_else(|error| error.to_string()),
        }
    }
}

/// The values of a column, converted to one of a few types.
enum Cells {
    /// Text as bytes.
    Text(ArrayRef),
    /// Decimals as text, because a float would round them.
    Decimal(ArrayRef),
    Bool(ArrayRef),
    Signed(ArrayRef),
    Unsigned(ArrayRef),
    Float(ArrayRef),
    /// Moments or durations, with the size of their unit, ns.
    Time {
        values: ArrayRef,
        unit_ns: i64,
        is_moment: bool,
    },
    Missing,
}

impl Cells {
    /// Converts the values of a column. `None` if the column cannot have values of this type.
    fn of(values: &ArrayRef, column: Column) -> Result<Option<Self>, ArrowError> {
        let as_type = |kind: &DataType| cast(values, kind);
        let is_time = matches!(column, Column::Arrival(_) | Column::Completion(_));
        Ok(Some(match values.data_type() {
            DataType::Dictionary(_, of) => return Self::of(&as_type(of)?, column),
            DataType::RunEndEncoded(_, of) => return Self::of(&as_type(of.data_type())?, column),
            DataType::Null => Self::Missing,
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Text(as_type(&DataType::LargeBinary)?),
            DataType::Boolean if matches!(column, Column::Sync | Column::Op) => Self::Bool(values.clone()),
            kind if kind.is_signed_integer() => Self::Signed(as_type(&DataType::Int64)?),
            kind if kind.is_unsigned_integer() => Self::Unsigned(as_type(&DataType::UInt64)?),
            kind if kind.is_floating() => Self::Float(as_type(&DataType::Float64)?),
            kind if kind.is_decimal() => Self::Decimal(as_type(&DataType::LargeUtf8)?),
            DataType::Timestamp(unit, _) if is_time => {
                Self::Time { values: as_type(&DataType::Int64)?, unit_ns: ns_of(*unit), is_moment: true }
            }
            DataType::Duration(unit) if is_time || matches!(column, Column::Latency(_) | Column::Queued(_)) => {
                Self::Time { values: as_type(&DataType::Int64)?, unit_ns: ns_of(*unit), is_moment: is_time }
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the column, with the unit in which [`write`](Self::write) writes its values. Values
    /// whose type has a unit are written in ns.
    const fn column(&self, column: Column) -> Column {
        match (self, column) {
            (Self::Time { .. }, Column::Arrival(_)) => Column::Arrival(1),
            (Self::Time { .. }, Column::Completion(_)) => Column::Completion(1),
            (Self::Time { .. }, Column::Latency(_)) => Column::Latency(1),
            (Self::Time { .. }, Column::Queued(_)) => Column::Queued(1),
            _ => column,
        }
    }

    fn is_missing(&self, at: usize) -> bool {
        match self {
            Self::Missing => true,
            // pandas and numpy represent missing values as NaN.
            Self::Float(values) => values.is_null(at) || values.as_primitive::<Float64Type>().value(at).is_nan(),
            Self::Text(values)
            | Self::Decimal(values)
            | Self::Bool(values)
            | Self::Signed(values)
            | Self::Unsigned(values)
            | Self::Time { values, .. } => values.is_null(at),
        }
    }

    /// Writes a value in the syntax of the column. Writes nothing for a missing value.
    fn write(&self, at: usize, column: Column, text: &mut Vec<u8>) {
        if self.is_missing(at) {
            return;
        }
        let written = match self {
            Self::Missing => Ok(()),
            Self::Text(values) => {
                text.extend_from_slice(values.as_binary::<i64>().value(at));
                Ok(())
            }
            Self::Decimal(values) => {
                text.extend_from_slice(plain_decimal(values.as_string::<i64>().value(at)).as_bytes());
                Ok(())
            }
            Self::Bool(values) => write!(text, "{}", u8::from(values.as_boolean().value(at))),
            Self::Signed(values) => write!(text, "{}", values.as_primitive::<Int64Type>().value(at)),
            Self::Unsigned(values) => write!(text, "{}", values.as_primitive::<UInt64Type>().value(at)),
            Self::Float(values) => {
                // Adding 0.0 removes the sign of a negative zero.
                let value = values.as_primitive::<Float64Type>().value(at) + 0.0;
                match column {
                    Column::Arrival(unit_ns)
                    | Column::Completion(unit_ns)
                    | Column::Latency(unit_ns)
                    | Column::Queued(unit_ns) => {
                        write!(text, "{value:.*}", unit_ns.ilog10() as usize)
                    }
                    _ => write!(text, "{value}"),
                }
            }
            Self::Time { values, unit_ns, is_moment } => {
                match values.as_primitive::<Int64Type>().value(at).checked_mul(*unit_ns) {
                    // Moments before and after 1970 are both valid, because only their order and
                    // their differences matter.
                    Some(ns) if *is_moment => write!(text, "{}", ns.cast_unsigned() ^ (1 << 63)),
                    Some(ns) => write!(text, "{ns}"),
                    None => write!(text, "a time that does not fit into 64 bits (in ns)"),
                }
            }
        };
        written.unwrap_or_else(|_| unreachable!("a write to memory cannot fail"));
    }
}

/// Returns a decimal without zeros at the end of its fraction.
fn plain_decimal(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

const fn ns_of(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
