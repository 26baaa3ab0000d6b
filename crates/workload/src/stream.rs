//! Workloads without a file name, such as standard input. Their content determines their kind.

use std::io::{Cursor, Read};

use iosched_trace::{ReadOptions, TraceReader};

use crate::{TaskSet, Trace, Workload, WorkloadError, fio};

/// Largest size of a text file that a person wrote, bytes. A longer stream is a trace.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Kind of a stream's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// A task file.
    Tasks,
    /// A fio job file.
    Jobs,
    /// A trace, or unknown content.
    Trace,
}

/// Detects the kind of a text from its first significant line. Empty lines, comments, and the
/// values of a task file that apply to the whole set are not significant. `[[tasks]]` begins a
/// task, and `[name]` begins a job. No trace format has lines that begin in one of these ways.
fn content(text: &str) -> Content {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    for line in lines {
        if line.starts_with("[[") {
            return Content::Tasks;
        }
        if line.starts_with('[') && line.ends_with(']') {
            return Content::Jobs;
        }
        if !line.contains('=') {
            return Content::Trace;
        }
    }
    Content::Trace
}

impl Workload {
    /// Reads a workload that has no file name: a task file, a fio job file, or a trace in any
    /// format that [`iosched_trace`] knows. If `reading` names a format or columns, the workload is
    /// a trace. `name` is the name of the workload in errors and results.
    ///
    /// # Errors
    /// The stream cannot be read, or its content has none of these formats.
    pub fn read(
        name: &str,
        mut stream: impl Read + Send + 'static,
        environment: &dyn fio::Environment,
        reading: &ReadOptions,
    ) -> Result<Self, WorkloadError> {
        let mut head = Vec::new();
        let failed = |source| WorkloadError::Io { file: name.to_owned(), source };
        stream.by_ref().take(TEXT_BYTES_MAX).read_to_end(&mut head).map_err(failed)?;
        let is_trace = reading.format.is_some() || reading.columns.is_some();
        let text = std::str::from_utf8(&head).ok().filter(|_| !is_trace && (head.len() as u64) < TEXT_BYTES_MAX);
        match text.map_or(Content::Trace, content) {
            Content::Tasks => {
                let mut set = TaskSet::parse(name, text.unwrap_or_default())?;
                if set.name.is_empty() {
                    name.clone_into(&mut set.name);
                }
                Ok(Self::Tasks(set.into()))
            }
            Content::Jobs => {
                let mut file = fio::JobFile::parse(name, &head, environment)?;
                fio::load_logs(&mut file)?;
                Ok(Self::Jobs(fio::Jobs::new(file)))
            }
            Content::Trace => {
                let reader = TraceReader::from_reader(Cursor::new(head).chain(stream), name, reading)?;
                Trace::read(name, reader).map(|trace| Self::Trace(trace.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Result<Workload, WorkloadError> {
        Workload::read("standard input", text.as_bytes(), &fio::NoVariables, &ReadOptions::default())
    }

    #[test]
    fn stream_kind_follows_from_its_content() {
        let tasks = "# two\nname = \"set\"\n[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 3\n";
        assert!(matches!(read(tasks).unwrap(), Workload::Tasks(set) if set.tasks.len() == 1));
        let jobs = "; reads\n[global]\nrw=randread\n[one]\nsize=1m\nfilename=/dev/sdx\n";
        assert!(matches!(read(jobs).unwrap(), Workload::Jobs(_)));
        let trace = "arrival_ns,pid,op,sync,sector,nr_sectors\n0,1,R,1,0,8\n";
        assert!(matches!(read(trace).unwrap(), Workload::Trace(trace) if trace.processes().len() == 1));
    }

    #[test]
    fn stream_errors_name_the_stream_and_the_problem() {
        let error = read("[[tasks]]\npid = \"x\"\n").unwrap_err().to_string();
        assert!(error.contains("standard input") && error.contains("pid"), "{error}");
        let error = read("[job]\nno_such_option=1\n").unwrap_err().to_string();
        assert!(error.contains("standard input") && error.contains("no_such_option"), "{error}");
        assert!(read("words\n").unwrap_err().to_string().contains("not a trace in a known format"));
    }
}
