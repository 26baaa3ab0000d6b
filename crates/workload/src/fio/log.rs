//! `read_iolog`: logs that jobs replay. Any trace that iosched reads can be a log, including fio's
//! own format.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosched::{Op, SECTOR_BYTES};
use iosched_trace::{TraceError, TraceReader};

use super::job::{Job, JobFile};
use super::value::{Direction, LogIo};
use crate::error::WorkloadError;

/// Reads the logs of all jobs. Each log is read only once.
pub(crate) fn load(file: &mut JobFile) -> Result<(), WorkloadError> {
    let mut read: BTreeMap<(String, bool), Arc<[LogIo]>> = BTreeMap::new();
    let name = file.name.clone();
    for job in &mut file.jobs {
        let Some(key) = job.replay.as_ref().map(|log| (log.path.clone(), log.redirect)) else { continue };
        let ios = match read.get(&key) {
            Some(ios) => Arc::clone(ios),
            None => {
                let ios: Arc<[LogIo]> =
                    ios(&key.0, key.1).map_err(|problem| error(&name, job, &key.0, problem))?.into();
                read.insert(key, Arc::clone(&ios));
                ios
            }
        };
        if let Some(log) = &mut job.replay {
            log.ios = ios;
        }
    }
    Ok(())
}

/// The reason why a log cannot be replayed.
enum Problem {
    Trace(TraceError),
    Content(&'static str),
}

fn error(file: &str, job: &Job, path: &str, problem: Problem) -> WorkloadError {
    let problem = match problem {
        Problem::Trace(part @ TraceError::Partial { .. }) => return part.into(),
        Problem::Trace(error) => error.to_string(),
        Problem::Content(problem) => problem.to_owned(),
    };
    WorkloadError::Job {
        file: file.to_owned(),
        line: job.line,
        job: job.name.clone(),
        problem: format!("read_iolog={path}: {problem}"),
        remedy: "give a block trace, or a log of one file or device, made with fio's write_iolog",
    }
}

fn ios(path: &str, redirect: bool) -> Result<Vec<LogIo>, Problem> {
    let mut reader = TraceReader::open(path).map_err(Problem::Trace)?;
    let mut ios = Vec::new();
    let mut device = None;
    let mut origin = None;
    for request in reader.by_ref() {
        let request = request.map_err(Problem::Trace)?;
        if !redirect && request.device.is_some() && *device.get_or_insert(request.device) != request.device {
            return Err(Problem::Content(
                "the log has several files or devices, but a run has only one device; set replay_redirect",
            ));
        }
        let direction = match request.op {
            Op::Read => Some(Direction::Read),
            Op::Write | Op::WriteZeroes => Some(Direction::Write),
            Op::Discard => Some(Direction::Trim),
            Op::Flush => None,
        };
        let at = *origin.get_or_insert(request.arrival);
        ios.push(LogIo {
            at_ns: request.arrival.since(at),
            direction,
            start: request.sector.saturating_mul(SECTOR_BYTES),
            bytes: u64::from(request.nr_sectors) * SECTOR_BYTES,
        });
    }
    if ios.is_empty() { Err(Problem::Content("the log has no I/O")) } else { Ok(ios) }
}
