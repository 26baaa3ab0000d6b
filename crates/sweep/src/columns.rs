//! Tables as Parquet files. Values are text, whole numbers, numbers or truth values, and may be
//! missing.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::SweepError;

/// Named columns of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, Values)>,
}

/// Values of a column of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// UTF-8 text.
    Text(Vec<Option<String>>),
    /// Unsigned whole numbers of 64 bits.
    Whole(Vec<Option<u64>>),
    /// Floating-point numbers of 64 bits.
    Number(Vec<Option<f64>>),
    /// Truth values.
    Truth(Vec<Option<bool>>),
}

impl FromIterator<Option<String>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<String>>>(values: I) -> Self {
        Self::Text(values.into_iter().collect())
    }
}

impl FromIterator<Option<u64>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<u64>>>(values: I) -> Self {
        Self::Whole(values.into_iter().collect())
    }
}

impl FromIterator<Option<f64>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<f64>>>(values: I) -> Self {
        Self::Number(values.into_iter().collect())
    }
}

impl FromIterator<Option<bool>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<bool>>>(values: I) -> Self {
        Self::Truth(values.into_iter().collect())
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Text(all) => all.len(),
            Self::Whole(all) => all.len(),
            Self::Number(all) => all.len(),
            Self::Truth(all) => all.len(),
        }
    }

    const fn declared(&self) -> (&'static str, &'static str) {
        match self {
            Self::Text(_) => ("binary", " (UTF8)"),
            Self::Whole(_) => ("int64", " (INTEGER(64,false))"),
            Self::Number(_) => ("double", ""),
            Self::Truth(_) => ("boolean", ""),
        }
    }

    fn write(&self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Text(all) => write::<ByteArrayType, _>(column, all, |text| ByteArray::from(text.as_str())),
            Self::Whole(all) => write::<Int64Type, _>(column, all, |whole| *whole as i64),
            Self::Number(all) => write::<DoubleType, _>(column, all, |number| *number),
            Self::Truth(all) => write::<BoolType, _>(column, all, |truth| *truth),
        }
    }

    /// Returns an empty column for a physical type. `None` if columns cannot have this type.
    const fn none_of(physical: PhysicalType) -> Option<Self> {
        Some(match physical {
            PhysicalType::BYTE_ARRAY => Self::Text(Vec::new()),
            PhysicalType::INT64 => Self::Whole(Vec::new()),
            PhysicalType::DOUBLE => Self::Number(Vec::new()),
            PhysicalType::BOOLEAN => Self::Truth(Vec::new()),
            _ => return None,
        })
    }

    /// Adds all values that a row group has for a column.
    fn read(&mut self, column: ColumnReader, rows: usize) -> Result<(), ParquetError> {
        let other = || ParquetError::General("the type of a column differs from its schema".to_owned());
        match (self, column) {
            (Self::Text(all), ColumnReader::ByteArrayColumnReader(mut reader)) => {
                let text = |bytes: ByteArray| String::from_utf8_lossy(bytes.data()).into_owned();
                read(
                    all,
                    rows,
                    |values, levels| reader.read_records(rows, Some(levels), None, values).map(|read| read.0),
                    text,
                )
            }
            (Self::Whole(all), ColumnReader::Int64ColumnReader(mut reader)) => read(
                all,
                rows,
                |values, levels| reader.read_records(rows, Some(levels), None, values).map(|read| read.0),
                |whole| whole as u64,
            ),
            (Self::Number(all), ColumnReader::DoubleColumnReader(mut reader)) => read(
                all,
                rows,
                |values, levels| reader.read_records(rows, Some(levels), None, values).map(|read| read.0),
                |number| number,
            ),
            (Self::Truth(all), ColumnReader::BoolColumnReader(mut reader)) => read(
                all,
                rows,
                |values, levels| reader.read_records(rows, Some(levels), None, values).map(|read| read.0),
                |truth| truth,
            ),
            _ => Err(other()),
        }
    }
}

fn write<T: DataType, V>(
    column: &mut SerializedColumnWriter<'_>,
    values: &[Option<V>],
    value: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let present: Vec<T::T> = values.iter().flatten().map(value).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    Ok(())
}

fn read<P, V>(
    all: &mut Vec<Option<V>>,
    rows: usize,
    records: impl FnOnce(&mut Vec<P>, &mut Vec<i16>) -> Result<usize, ParquetError>,
    value: impl Fn(P) -> V,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    if records(&mut values, &mut levels)? != rows || levels.len() != rows {
        return Err(ParquetError::General("a column is shorter than the others".to_owned()));
    }
    let mut values = values.into_iter().map(value);
    all.extend(levels.into_iter().map(|level| if level == 1 { values.next() } else { None }));
    Ok(())
}

impl Table {
    /// Adds a column, which must have the same length as the other columns.
    #[must_use]
    pub fn with(mut self, name: &str, values: Values) -> Self {
        debug_assert!(self.columns.is_empty() || values.len() == self.rows(), "{name}");
        self.columns.push((name.to_owned(), values));
        self
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }

    /// Returns the columns of the table, with their names.
    #[must_use]
    pub fn columns(&self) -> &[(String, Values)] {
        &self.columns
    }

    /// Returns a column of text. `None` if the table has no column with this name and type.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&[Option<String>]> {
        match self.column(name)? {
            Values::Text(all) => Some(all),
            _ => None,
        }
    }

    /// Returns a column of whole numbers. `None` if the table has no column with this name and
    /// type.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<&[Option<u64>]> {
        match self.column(name)? {
            Values::Whole(all) => Some(all),
            _ => None,
        }
    }

    /// Returns a column of numbers. `None` if the table has no column with this name and type.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<&[Option<f64>]> {
        match self.column(name)? {
            Values::Number(all) => Some(all),
            _ => None,
        }
    }

    /// Returns a column of truth values. `None` if the table has no column with this name and type.
    #[must_use]
    pub fn truth(&self, name: &str) -> Option<&[Option<bool>]> {
        match self.column(name)? {
            Values::Truth(all) => Some(all),
            _ => None,
        }
    }

    fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, values)| values)
    }

    /// Returns the table as a Parquet file. The same table gives the same bytes.
    ///
    /// # Errors
    /// The table cannot be written. `file` is its name in the message.
    pub fn to_parquet(&self, file: &str) -> Result<Vec<u8>, SweepError> {
        self.written().map_err(|error| SweepError::Dataset { file: file.to_owned(), problem: error.to_string() })
    }

    fn written(&self) -> Result<Vec<u8>, ParquetError> {
        let columns = self.columns.iter().map(|(name, values)| {
            let (physical, logical) = values.declared();
            format!("optional {physical} {name}{logical};")
        });
        let schema = format!("message iosched {{ {} }}", columns.collect::<Vec<_>>().join(" "));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("iosched ", env!("CARGO_PKG_VERSION")).to_owned());
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(
            &mut bytes,
            Arc::new(parse_message_type(&schema)?),
            Arc::new(properties.build()),
        )?;
        let mut group = writer.next_row_group()?;
        for (_, values) in &self.columns {
            if let Some(mut column) = group.next_column()? {
                values.write(&mut column)?;
                column.close()?;
            }
        }
        group.close()?;
        writer.close()?;
        Ok(bytes)
    }

    /// Reads a table from a Parquet file. `file` is its name in messages.
    ///
    /// # Errors
    /// The file is not a Parquet file, or has columns of other types.
    pub fn from_parquet(bytes: Vec<u8>, file: &str) -> Result<Self, SweepError> {
        Self::read(bytes).map_err(|error| SweepError::Dataset { file: file.to_owned(), problem: error.to_string() })
    }

    fn read(bytes: Vec<u8>) -> Result<Self, ParquetError> {
        let reader = SerializedFileReader::new(Bytes::from(bytes))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut table = Self::default();
        for column in schema.columns() {
            let values = Values::none_of(column.physical_type());
            let values = values.filter(|_| column.max_def_level() == 1 && column.max_rep_level() == 0);
            let unknown = || {
                ParquetError::General(format!(
                    "column {} has a type that is not in any table of a \
                     dataset",
                    column.name()
                ))
            };
            table.columns.push((column.name().to_owned(), values.ok_or_else(unknown)?));
        }
        for number in 0..reader.num_row_groups() {
            let group = reader.get_row_group(number)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            for (column, (_, values)) in table.columns.iter_mut().enumerate() {
                values.read(group.get_column_reader(column)?, rows)?;
            }
        }
        Ok(table)
    }

    /// Adds the rows of `other`, a table with the same columns.
    ///
    /// # Errors
    /// The columns differ. The message names the difference.
    pub fn append(&mut self, other: Self) -> Result<(), String> {
        if self.columns.is_empty() {
            *self = other;
            return Ok(());
        }
        if self.columns.len() != other.columns.len() {
            return Err(format!(
                "the file has {} columns, but other files have {} columns",
                other.columns.len(),
                self.columns.len()
            ));
        }
        for ((name, mine), (other_name, values)) in self.columns.iter_mut().zip(other.columns) {
            match (mine, values) {
                (Values::Text(mine), Values::Text(values)) if *name == other_name => mine.extend(values),
                (Values::Whole(mine), Values::Whole(values)) if *name == other_name => mine.extend(values),
                (Values::Number(mine), Values::Number(values)) if *name == other_name => mine.extend(values),
                (Values::Truth(mine), Values::Truth(values)) if *name == other_name => mine.extend(values),
                _ => {
                    return Err(format!(
                        "the file has the column {other_name}, but other files have the column {name} in this place. \
                         The names or the types of these columns differ"
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        Table::default()
            .with("name", Values::Text(vec![Some("a".to_owned()), None, Some("ä b".to_owned())]))
            .with("seed", Values::Whole(vec![Some(u64::MAX), Some(0), None]))
            .with("value", Values::Number(vec![Some(0.1), None, Some(f64::MIN_POSITIVE)]))
            .with("sure", Values::Truth(vec![None, Some(true), Some(false)]))
    }

    #[test]
    fn tables_round_trip_through_parquet() {
        let bytes = sample().to_parquet("t").unwrap();
        assert_eq!(bytes, sample().to_parquet("t").unwrap());
        assert_eq!(Table::from_parquet(bytes, "t").unwrap(), sample());
        let empty = Table::default().with("x", Values::Text(Vec::new()));
        assert_eq!(Table::from_parquet(empty.to_parquet("t").unwrap(), "t").unwrap(), empty);
    }

    #[test]
    fn append_adds_rows_and_rejects_other_columns() {
        let mut all = Table::default();
        all.append(sample()).unwrap();
        all.append(sample()).unwrap();
        assert_eq!(all.rows(), 6);
        let other = Table::default().with("name", Values::Text(Vec::new()));
        assert!(all.append(other).unwrap_err().contains("1 columns"));
    }

    #[test]
    fn invalid_or_truncated_parquet_is_an_error() {
        let error = Table::from_parquet(b"no".to_vec(), "x.parquet").unwrap_err().to_string();
        assert!(error.starts_with("x.parquet: this is not a file of a sweep's dataset"), "{error}");
        let cut = sample().to_parquet("t").unwrap();
        assert!(Table::from_parquet(cut[..cut.len() - 9].to_vec(), "t").is_err());
    }
}
