//! Reading and writing files of records: JSON lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::LabError;
use crate::record::{Header, RECORDS_FORMAT, Record, Records};

/// Writer of records. It writes each record as one line with a single call. If writing is
/// interrupted, the file is a readable prefix.
#[derive(Debug)]
pub struct RecordWriter<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> RecordWriter<W> {
    /// Creates a writer to `out`. `out` should not buffer.
    pub const fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Writes a record: a [`Record`], or a record of another kind of file.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn write(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.out.flush()
    }
}

/// Reader of the records of an experiment from a file.
#[derive(Clone, Copy, Debug)]
pub struct RecordReader;

impl RecordReader {
    /// Reads the records in the file `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not a file of records, has a later format, or has a damaged line
    /// before its last line.
    pub fn open(path: &Path) -> Result<Records, LabError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| LabError::Io { file: name.clone(), source })?;
        Self::read(BufReader::new(file), &name)
    }

    /// Reads records from `reader`. `file` is its name in messages. An incomplete last line is left
    /// out, with a warning in [`Records::warnings`].
    ///
    /// # Errors
    /// The errors of [`RecordReader::open`].
    pub fn read(mut reader: impl BufRead, file: &str) -> Result<Records, LabError> {
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| -> Result<bool, LabError> {
            line.clear();
            let read = reader.read_until(b'\n', line);
            read.map(|bytes| bytes > 0).map_err(|source| LabError::Io { file: file.to_owned(), source })
        };
        next(&mut line)?;
        let mut records = Records::new(header(&line, file)?);
        let mut number = 1;
        while next(&mut line)? {
            number += 1;
            match serde_json::from_slice(&line) {
                Ok(record) => {
                    if !records.add(record) {
                        let problem = "the header does not list the device or the setting of this record, or \
                             the record appears twice"
                            .to_owned();
                        return Err(LabError::BadRecord { file: file.to_owned(), line: number, problem });
                    }
                }
                Err(error) if error.is_eof() && line.last() != Some(&b'\n') => {
                    records.warnings.push(format!(
                        "{file}: line {number} is incomplete, because writing was interrupted there; iosched \
                         left this line out"
                    ));
                }
                Err(error) => {
                    let problem = format!("the line is not a record: {error}");
                    return Err(LabError::BadRecord { file: file.to_owned(), line: number, problem });
                }
            }
        }
        Ok(records)
    }
}

/// A line of a file that consists of a plan and its runs.
#[derive(Debug)]
pub enum Line<P, R> {
    /// The plan.
    Plan(P),
    /// A run.
    Run(R),
}

/// Reads a file that consists of a plan and its runs. `of` tells plans from runs. `file` is the
/// name in messages. An incomplete last line is left out.
///
/// # Errors
/// The file cannot be read, or is not a plan followed by its runs.
pub fn read_lines<T: DeserializeOwned, P, R>(
    mut reader: impl BufRead,
    file: &str,
    of: impl Fn(T) -> Line<P, R>,
) -> Result<(P, Vec<R>), LabError> {
    let (mut plan, mut runs, mut text) = (None, Vec::new(), Vec::new());
    for line in 1.. {
        text.clear();
        let read = reader.read_until(b'\n', &mut text);
        if read.map_err(|source| LabError::Io { file: file.to_owned(), source })? == 0 {
            break;
        }
        let wrong = |problem: String| LabError::BadRecord { file: file.to_owned(), line, problem };
        match (serde_json::from_slice(&text).map(&of), &plan) {
            (Ok(Line::Plan(planned)), None) => plan = Some(planned),
            (Ok(Line::Run(run)), Some(_)) => runs.push(run),
            (Ok(_), _) => {
                return Err(wrong("the first line must be the header, and all other lines must be runs".to_owned()));
            }
            (Err(error), Some(_)) if error.is_eof() && !text.ends_with(b"\n") => break,
            (Err(error), _) => return Err(wrong(error.to_string())),
        }
    }
    let plan = plan.ok_or_else(|| LabError::Data { file: file.to_owned(), problem: "the file is empty".to_owned() })?;
    Ok((plan, runs))
}

fn header(line: &[u8], file: &str) -> Result<Header, LabError> {
    let not_records = |problem: String| LabError::NotRecords { file: file.to_owned(), problem };
    if line.is_empty() {
        return Err(not_records("the file is empty".to_owned()));
    }
    let mut value: Value = serde_json::from_slice(line).map_err(|error| not_records(error.to_string()))?;
    let format = value.get("format").and_then(Value::as_u64).unwrap_or(0);
    if value.get("record").and_then(Value::as_str) == Some("header") && format > RECORDS_FORMAT.into() {
        let version = value.get("version").and_then(Value::as_str).unwrap_or("?").to_owned();
        return Err(LabError::LaterFormat {
            file: file.to_owned(),
            format: u32::try_from(format).unwrap_or(u32::MAX),
            version,
        });
    }
    if format == 1 {
        of_format_1(&mut value);
    }
    match serde_json::from_value(value) {
        Ok(Record::Header(header)) => match inconsistency(&header) {
            None => Ok(*header),
            Some(problem) => Err(not_records(problem.to_owned())),
        },
        Ok(_) => Err(not_records("the first line is not the header".to_owned())),
        Err(error) => Err(not_records(error.to_string())),
    }
}

/// Returns an error if a header has the right format but describes an impossible plan.
fn inconsistency(header: &Header) -> Option<&'static str> {
    if header.devices.is_empty() {
        return Some("the plan has no device");
    }
    if header.baseline >= header.settings.len() {
        return Some("the baseline is not one of the settings");
    }
    let is_complete = header.devices.iter().all(|device| device.values.len() == header.settings.len());
    (!is_complete).then_some("a device lacks values for some settings")
}

/// Converts a header of format 1 to format 2. In format 1, there is one device, and its values in
/// effect are stored with the settings.
fn of_format_1(header: &mut Value) {
    let settings = header.get_mut("settings").and_then(Value::as_array_mut);
    let values: Vec<Value> = settings
        .into_iter()
        .flatten()
        .filter_map(|setting| setting.as_object_mut().and_then(|setting| setting.remove("values")))
        .collect();
    let Some(header) = header.as_object_mut() else { return };
    if let Some(Value::Object(mut device)) = header.remove("device") {
        device.insert("values".to_owned(), values.into());
        header.insert("devices".to_owned(), Value::Array(vec![device.into()]));
    }
}
