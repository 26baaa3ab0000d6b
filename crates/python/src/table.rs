//! Tables for pandas, polars, DuckDB and pyarrow. They use the Arrow PyCapsule protocol.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

use crate::error::{About as _, ColumnError, IoschedError};

/// A table: named columns of the same length.
///
/// Tables support the Arrow PyCapsule protocol: `pyarrow.table(t)`, `polars.DataFrame(t)`,
/// `duckdb.sql("from t")` and `pandas.DataFrame.from_arrow(t)` read a table without a copy.
#[pyclass(frozen, module = "iosched")]
#[derive(Clone)]
pub(crate) struct Table(RecordBatch);

/// Builder of a table.
#[derive(Default)]
pub(crate) struct Columns(Vec<(&'static str, ArrayRef)>);

impl Columns {
    /// Adds a column. If the array is nullable, values can be missing.
    pub(crate) fn with(mut self, name: &'static str, values: impl arrow_array::Array + 'static) -> Self {
        self.0.push((name, Arc::new(values)));
        self
    }

    pub(crate) fn table(self) -> PyResult<Table> {
        let field = |(name, values): &(&'static str, ArrayRef)| {
            Field::new(*name, values.data_type().clone(), values.is_nullable())
        };
        let schema = Schema::new(self.0.iter().map(field).collect::<Vec<_>>());
        let columns = self.0.into_iter().map(|(_, values)| values).collect();
        let batch = RecordBatch::try_new(Arc::new(schema), columns);
        batch.map(Table).map_err(|error| IoschedError::new_err(error.to_string()))
    }
}

impl Table {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    /// Returns a reader of the rows.
    pub(crate) fn reader(&self) -> Box<dyn RecordBatchReader + Send> {
        Box::new(RecordBatchIterator::new([Ok(self.0.clone())], self.schema()))
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        let columns: Vec<_> =
            self.schema().fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        format!("<iosched.Table of {} rows: {}>", self.0.num_rows(), columns.join(", "))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let rows: ArrayRef = Arc::new(arrow_array::StructArray::from(self.0.clone()));
        let field = Arc::new(Field::new_struct("", self.schema().fields().clone(), false));
        Ok(to_array_pycapsules(py, field, &rows, requested_schema)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows: ArrayRef = Arc::new(arrow_array::StructArray::from(self.0.clone()));
        let field = Arc::new(Field::new_struct("", self.schema().fields().clone(), false));
        let reader = pyo3_arrow::ffi::ArrayIterator::new(std::iter::once(Ok(rows)), field);
        Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
    }

    /// Returns one column as a pyarrow array; needs pyarrow.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().0.column_by_name(name).is_none() {
            let known = slf.get().column_names().join(", ");
            let message = format!("there is no column {name:?}; available: {known}");
            return Err(ColumnError::new_err(message).about("name"));
        }
        slf.py().import("pyarrow")?.call_method1("table", (slf,))?.call_method1("column", (name,))
    }

    /// Returns a pandas.DataFrame; needs pandas and pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))?.call_method0("to_pandas")
    }

    /// Returns a polars.DataFrame; needs polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Vec<Packed<'py>>,))> {
        let batch = &slf.get().0;
        let columns = batch.schema_ref().fields().iter().zip(batch.columns());
        let packed = columns.map(|(field, values)| pack(slf.py(), field, values)).collect::<PyResult<_>>()?;
        Ok((slf.get_type().getattr("_again")?, (packed,)))
    }

    #[staticmethod]
    fn _again(columns: Vec<Packed<'_>>) -> PyResult<Self> {
        let columns = columns.iter().map(unpack).collect::<PyResult<Vec<_>>>()?;
        let (fields, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), values);
        batch.map(Self).map_err(|error| IoschedError::new_err(error.to_string()))
    }

    /// Returns the columns as lists, by name; needs no other package.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, values) in self.schema().fields().iter().zip(self.0.columns()) {
            columns.set_item(field.name(), crate::table::list(py, values)?)?;
        }
        Ok(columns)
    }
}

/// Returns the values of a column as a list.
fn list<'py>(py: Python<'py>, values: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
    match values.data_type() {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::UInt32 => values.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Float64 => values.as_primitive::<Float64Type>().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Boolean => values.as_boolean().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Utf8 => values.as_string::<i32>().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Dictionary(..) => {
            let words = values.as_dictionary::<arrow_array::types::UInt32Type>();
            let words = words.downcast_dict::<arrow_array::StringArray>();
            words.into_iter().flatten().collect::<Vec<_>>().into_pyobject(py)
        }
        other => Err(IoschedError::new_err(format!("a column of {other}"))),
    }
}

/// A buffer of numbers or bits.
type Bytes<'py> = Bound<'py, PyBytes>;

/// An array as bytes: the number of values, the bitmap of missing values, and the buffers.
type Part<'py> = (usize, Option<Bytes<'py>>, Vec<Bytes<'py>>);

/// A pickled column: its name, its type, whether values may be missing,
/// and its arrays. A column of words has a second array with the words.
type Packed<'py> = (String, String, bool, Vec<Part<'py>>);

/// Returns the types of columns, and their names in pickles.
fn kinds() -> [(&'static str, DataType); 6] {
    [
        ("u64", DataType::UInt64),
        ("u32", DataType::UInt32),
        ("f64", DataType::Float64),
        ("bool", DataType::Boolean),
        ("text", DataType::Utf8),
        ("words", DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))),
    ]
}

fn pack<'py>(py: Python<'py>, field: &Field, values: &ArrayRef) -> PyResult<Packed<'py>> {
    let unknown = || IoschedError::new_err(format!("column {}: {} cannot be pickled", field.name(), field.data_type()));
    let (kind, _) = kinds().into_iter().find(|(_, kind)| kind == field.data_type()).ok_or_else(unknown)?;
    let part = |data: &ArrayData| -> Part<'py> {
        let missing = data.nulls().map(|nulls| PyBytes::new(py, nulls.inner().sliced().as_slice()));
        (data.len(), missing, data.buffers().iter().map(|buffer| PyBytes::new(py, buffer.as_slice())).collect())
    };
    let data = values.to_data();
    let parts = std::iter::once(&data).chain(data.child_data()).map(part).collect();
    Ok((field.name().clone(), kind.to_owned(), field.is_nullable(), parts))
}

fn unpack((name, kind, is_nullable, parts): &Packed<'_>) -> PyResult<(Field, ArrayRef)> {
    let wrong = |problem: String| IoschedError::new_err(format!("column {name}: {problem}"));
    let (_, kind) =
        kinds().into_iter().find(|(known, _)| known == kind).ok_or_else(|| wrong(format!("type {kind}")))?;
    let build = |(length, missing, buffers): &Part<'_>, kind: &DataType, children: Vec<ArrayData>| {
        let buffer = |bytes: &Bytes<'_>| Buffer::from(bytes.as_bytes());
        ArrayData::builder(kind.clone())
            .len(*length)
            .null_bit_buffer(missing.as_ref().map(buffer))
            .buffers(buffers.iter().map(buffer).collect())
            .child_data(children)
            .align_buffers(true)
            .build()
            .map_err(|error| wrong(error.to_string()))
    };
    let data = match (parts.as_slice(), &kind) {
        ([keys, words], DataType::Dictionary(_, of)) => build(keys, &kind, vec![build(words, of, Vec::new())?])?,
        ([values], _) => build(values, &kind, Vec::new())?,
        _ => return Err(wrong(format!("{} parts", parts.len()))),
    };
    Ok((Field::new(name, kind, *is_nullable), make_array(data)))
}
