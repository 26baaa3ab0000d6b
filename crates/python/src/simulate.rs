//! A single run, with the history of each of its I/Os.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{BooleanArray, UInt32Array, UInt64Array};
use iosched::{Decision, Flags, Setting};
use iosched_lab::request::{self, replay};
use iosched_lab::{Figure, decision_json};
use iosched_sim::{Observer, Plan, RunResult, SimError, Submitted, run};
use iosched_workload::Workload as Inner;
use pyo3::prelude::*;

use crate::error::{About as _, RunError, of_request, of_simulation, plain, wrong};
use crate::policy::Policies;
use crate::question::replay_mode;
use crate::table::{Columns, Table};
use crate::trace::{op_name, words};
use crate::values::{Device, Workload, check_length};
use crate::waiting::interruptible;

/// Number of I/Os below which a run is so short that Ctrl-C is not checked. Such a run uses the
/// caller's thread.
const SHORT_IOS: u64 = 20_000;

/// A column with few different texts, some of which may be missing.
type Words = arrow_array::DictionaryArray<arrow_array::types::UInt32Type>;

/// Default scheduler.
const SCHEDULER: &str = "none";

/// Runs a workload once on a modelled device under a scheduler.
///
/// `workload`, `device` and `scheduler` take the same values as in `compare`, but no lists. The
/// defaults are the sample trace, "sata-7200" and "none". The same arguments give the same run. With
/// `requests=False`, the run is faster and has no table of requests.
#[pyfunction]
#[pyo3(signature = (
    workload=None, device=None, scheduler=None, seed=1, *, machine=None, replay=None, speed=None, run_for=None, warm_up=0.0,
    requests=true, decisions=false
))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn simulate(
    py: Python<'_>,
    workload: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    scheduler: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] seed: u64,
    #[pyo3(from_py_with = plain)] machine: Option<String>,
    #[pyo3(from_py_with = plain)] replay: Option<String>,
    #[pyo3(from_py_with = plain)] speed: Option<f64>,
    #[pyo3(from_py_with = plain)] run_for: Option<f64>,
    #[pyo3(from_py_with = plain)] warm_up: f64,
    #[pyo3(from_py_with = plain)] requests: bool,
    #[pyo3(from_py_with = plain)] decisions: bool,
) -> PyResult<Run> {
    check_length(warm_up, run_for, speed)?;
    let workload = Workload::from_any(workload).about("workload")?;
    let device = match device {
        Some(device) => Device::from_any(device).about("device")?,
        None => Device::named(request::DEVICE.as_ref())?,
    };
    let mut policies = Policies::default();
    let setting =
        scheduler.map_or_else(|| Ok(Setting::defaults(SCHEDULER)), |given| policies.setting("scheduler", given));
    let setting = setting.about("scheduler")?;
    let mode = replay.as_deref().map(replay_mode).transpose()?;
    let replayed = self::replay(mode, speed, &workload.inner).map_err(|error| of_request(&error))?;
    let machine = request::machine(machine.as_deref(), &workload.inner, std::slice::from_ref(&setting))
        .map_err(|error| of_request(&error))?;
    let limits = iosched_lab::verify::Limits { warm_up_ns: request::ns(warm_up), run_for_ns: run_for.map(request::ns) };
    let plan = Plan {
        seed,
        replay: replayed,
        machine: machine.as_ref().map(|machine| &machine.machine),
        warm_up_ns: limits.warm_up_ns,
        limit: limits.of_runs(),
        ..Plan::new(&workload.inner, &device.profile, setting)
    };
    run_watched(py, &plan, &policies, requests, decisions)
}

/// Runs a plan. If requested, keeps each I/O and each decision.
pub(crate) fn run_watched(
    py: Python<'_>,
    plan: &Plan<'_>,
    policies: &Policies,
    requests: bool,
    decisions: bool,
) -> PyResult<Run> {
    let ended = Arc::new(AtomicBool::new(false));
    let plan = Plan { interrupt: Some(&ended), ..plan.clone() };
    let mut watch = Watch { decisions: decisions.then(Vec::new), ..Watch::default() };
    let mut carry_out = || -> Result<RunResult, SimError> {
        if requests || decisions { run(&plan, &mut watch) } else { run(&plan, ()) }
    };
    let is_short = ios_at_most(plan.workload).is_some_and(|ios| ios <= SHORT_IOS);
    let result = if !policies.is_empty() {
        let stop = Arc::clone(&ended);
        policies.begin(move || stop.store(true, Ordering::Relaxed));
        // A policy needs the GIL at every request, so this thread keeps the GIL.
        let result = carry_out();
        policies.ended()?;
        result
    } else if is_short {
        py.detach(carry_out)
    } else {
        interruptible(py, carry_out, || ended.store(true, Ordering::Relaxed))?
    };
    let result = result.map_err(|error| of_simulation(&error))?;
    let requests = requests.then(|| ObservedOrTable::Watched(watch.settled()));
    Ok(Run { result, requests, decisions: watch.decisions.map(ObservedOrTable::Watched) })
}

/// Returns the number of I/Os of a workload, if it is known in advance.
fn ios_at_most(workload: &Inner) -> Option<u64> {
    match workload {
        Inner::Trace(trace) => Some(trace.entries().len() as u64),
        Inner::Tasks(set) => {
            set.tasks.iter().map(|task| task.total).try_fold(0_u64, |sum, total| Some(sum.saturating_add(total?)))
        }
        _ => None,
    }
}

/// An I/O as it entered the queue.
#[derive(Clone, Copy)]
struct Row {
    submitted_ns: u64,
    dispatched_ns: Option<u64>,
    completed_ns: Option<u64>,
    sector: u64,
    nr_sectors: u32,
    task: u32,
    op: iosched::Op,
    sync: bool,
    /// The elevator's last decision before the dispatch: 0 if there is none, or the number of the
    /// reason plus one.
    reason: u16,
    /// The bio whose request contains this I/O. During the run, it is the ordinal of the bio. At
    /// the end, it is the row of the bio.
    request: u64,
}

/// Observer of the I/Os of a run.
#[derive(Default)]
struct Watch {
    rows: Vec<Row>,
    /// Row of a bio, by its ordinal.
    places: Vec<Option<NonZeroU32>>,
    tasks: BTreeMap<u32, (u32, String)>,
    reasons: Reasons,
    decisions: Option<Vec<(u64, Decision)>>,
}

/// Names of the elevators' decisions.
#[derive(Default)]
struct Reasons {
    names: Vec<String>,
    /// Numbers of the kinds of decisions, by their hashes. Only the kind of a decision counts, not
    /// its values.
    known: Vec<(u64, u16)>,
    /// Number of the last decision.
    last: u16,
}

impl Reasons {
    fn note(&mut self, decision: &Decision) {
        let mut kind = DefaultHasher::new();
        discriminant(decision).hash(&mut kind);
        match decision {
            Decision::Cfq2616(decision) => discriminant(decision).hash(&mut kind),
            Decision::Anticipatory(decision) => discriminant(decision).hash(&mut kind),
            Decision::Bfq(decision) => discriminant(decision).hash(&mut kind),
            Decision::Kyber(decision) => discriminant(decision).hash(&mut kind),
            Decision::Adios(decision) => discriminant(decision).hash(&mut kind),
            Decision::MClock(decision) => discriminant(decision).hash(&mut kind),
            Decision::Noted { what, .. } => what.hash(&mut kind),
            _ => {}
        }
        let kind = kind.finish();
        if let Some(&(_, known)) = self.known.iter().find(|(known_kind, _)| *known_kind == kind) {
            self.last = known;
            return;
        }
        let name = decision_json(decision)["ev"].as_str().unwrap_or_default().to_owned();
        let number = self.names.iter().position(|known_name| *known_name == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        self.last = number as u16 + 1;
        self.known.push((kind, self.last));
    }

    fn name(&self, number: u16) -> Option<&str> {
        self.names.get(usize::from(number).checked_sub(1)?).map(String::as_str)
    }
}

impl Watch {
    fn place(&self, ordinal: u64) -> Option<usize> {
        let place = (*self.places.get(usize::try_from(ordinal).ok()?)?)?;
        Some(place.get() as usize - 1)
    }

    fn row(&mut self, ordinal: u64) -> Option<&mut Row> {
        let place = self.place(ordinal)?;
        self.rows.get_mut(place)
    }

    fn joins(&mut self, ordinal: u64, into: u64) {
        if let Some(row) = self.row(ordinal) {
            row.request = into;
        }
    }

    /// Returns the rows. Each I/O gets the dispatch and completion times of its request.
    fn settled(&mut self) -> Settled {
        for number in 0..self.rows.len() {
            let mut founder = self.rows[number].request;
            while let Some(further) = self.row(founder).map(|row| row.request).filter(|&further| further != founder) {
                founder = further;
            }
            let Some(&mut Row { dispatched_ns, reason, .. }) = self.row(founder) else { continue };
            let row = &mut self.rows[number];
            row.request = founder;
            if row.dispatched_ns.is_none() {
                (row.dispatched_ns, row.reason) = (dispatched_ns, reason);
            }
        }
        for number in 0..self.rows.len() {
            self.rows[number].request = self.place(self.rows[number].request).unwrap_or(number) as u64;
        }
        let (rows, tasks) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.tasks));
        Settled { rows, tasks, reasons: std::mem::take(&mut self.reasons) }
    }
}

impl Observer for Watch {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn task(&mut self, task: usize, pid: u32, name: &str) {
        self.tasks.insert(task as u32, (pid, name.to_owned()));
    }

    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        if bio.again && self.place(bio.bio).is_some() {
            return;
        }
        let ordinal = bio.bio as usize;
        if ordinal >= self.places.len() {
            self.places.resize(ordinal + 1, None);
        }
        self.places[ordinal] = NonZeroU32::new(self.rows.len() as u32 + 1);
        self.rows.push(Row {
            submitted_ns: now_ns,
            dispatched_ns: None,
            completed_ns: None,
            sector: bio.sector,
            nr_sectors: bio.nr_sectors,
            task: bio.task as u32,
            op: bio.op,
            sync: !bio.op.is_write() || bio.flags.contains(Flags::SYNC),
            reason: 0,
            request: bio.bio,
        });
    }

    fn bio_done(&mut self, now_ns: u64, bio: u64) {
        if let Some(row) = self.row(bio) {
            row.completed_ns = Some(now_ns);
        }
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match *decision {
            Decision::Merge { cookie, into, .. } | Decision::RequestMerge { cookie, into } => self.joins(cookie, into),
            Decision::Dispatch { cookie, .. } => {
                let reason = self.reasons.last;
                if let Some(row) = self.row(cookie).filter(|row| row.dispatched_ns.is_none()) {
                    (row.dispatched_ns, row.reason) = (Some(now_ns), reason);
                }
            }
            Decision::Insert { .. }
            | Decision::Wait { .. }
            | Decision::Requeue { .. }
            | Decision::Complete { .. }
            | Decision::Kick
            | Decision::Exit { .. }
            | Decision::Switch { .. } => {}
            _ => self.reasons.note(decision),
        }
        if let Some(kept) = &mut self.decisions {
            kept.push((now_ns, *decision));
        }
    }
}

/// The rows of all I/Os of a run.
struct Settled {
    rows: Vec<Row>,
    tasks: BTreeMap<u32, (u32, String)>,
    reasons: Reasons,
}

/// One run: its metrics, and tables of its requests and decisions.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Run {
    result: RunResult,
    requests: Option<ObservedOrTable<Settled>>,
    decisions: Option<ObservedOrTable<Vec<(u64, Decision)>>>,
}

/// Data of a run: the observations, or a table after unpickling.
enum ObservedOrTable<T> {
    Watched(T),
    Table(Table),
}

impl<T: Sync> ObservedOrTable<T> {
    fn table(&self, py: Python<'_>, make: impl FnOnce(&T) -> PyResult<Table> + Send) -> PyResult<Table> {
        match self {
            Self::Watched(seen) => py.detach(|| make(seen)),
            Self::Table(table) => Ok(table.clone()),
        }
    }
}

/// Data that recreates a run: a function, the result as JSON, and the tables.
type Again<'py> = (Bound<'py, PyAny>, (String, Option<Table>, Option<Table>));

impl Run {
    pub(crate) const fn result(&self) -> &RunResult {
        &self.result
    }
}

#[pymethods]
impl Run {
    /// The metrics of the whole run by their ids, as in `iosched compare`. A metric is missing if
    /// the run did not measure it.
    #[getter]
    fn metrics(&self) -> BTreeMap<&'static str, f64> {
        Figure::ALL.iter().filter_map(|&figure| Some((figure.id(), figure.of(&self.result)?))).collect()
    }

    /// The time of the last completion, in ns.
    #[getter]
    fn finished_ns(&self) -> u64 {
        self.result.finished_ns
    }

    /// The number of completed I/Os.
    #[getter]
    fn ios(&self) -> u64 {
        self.result.ios
    }

    /// Notes for the reader of the metrics.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.result.notes.iter().map(ToString::to_string).collect()
    }

    /// A table with a row for each bio, in the order of submission: submitted_ns, dispatched_ns,
    /// completed_ns, op, sync, sector, nr_sectors, pid, process, request, reason. `request` is the
    /// row of the bio whose request this bio joined, or its own row. `reason` is the last decision
    /// before the dispatch, as an event of `decisions`. It is None if the elevator records no
    /// decisions. An I/O that is too large for one request has several rows. A flush has no
    /// dispatch time, because the queue joins several flushes.
    #[getter]
    fn requests(&self, py: Python<'_>) -> PyResult<Table> {
        let Some(requests) = &self.requests else {
            return Err(wrong(
                "requests",
                "are missing, because this run did not store them; write simulate(..., requests=True)",
            ));
        };
        requests.table(py, |Settled { rows, tasks, reasons }| {
            let nobody = (0, String::new());
            let task = |row: &Row| tasks.get(&row.task).unwrap_or(&nobody);
            Columns::default()
                .with("submitted_ns", UInt64Array::from_iter_values(rows.iter().map(|row| row.submitted_ns)))
                .with("dispatched_ns", rows.iter().map(|row| row.dispatched_ns).collect::<UInt64Array>())
                .with("completed_ns", rows.iter().map(|row| row.completed_ns).collect::<UInt64Array>())
                .with("op", words(rows.iter().map(|row| op_name(row.op))))
                .with("sync", rows.iter().map(|row| Some(row.sync)).collect::<BooleanArray>())
                .with("sector", UInt64Array::from_iter_values(rows.iter().map(|row| row.sector)))
                .with("nr_sectors", UInt32Array::from_iter_values(rows.iter().map(|row| row.nr_sectors)))
                .with("pid", UInt32Array::from_iter_values(rows.iter().map(|row| task(row).0)))
                .with("process", words(rows.iter().map(|row| task(row).1.as_str())))
                .with("request", UInt64Array::from_iter_values(rows.iter().map(|row| row.request)))
                .with("reason", rows.iter().map(|row| reasons.name(row.reason)).collect::<Words>())
                .table()
        })
    }

    /// A table with a row for each decision of queue and elevator: time_ns, event, decision (as
    /// JSON).
    #[getter]
    fn decisions(&self, py: Python<'_>) -> PyResult<Table> {
        let Some(decisions) = &self.decisions else {
            return Err(wrong(
                "decisions",
                "are missing, because this run did not store them; write simulate(..., decisions=True)",
            ));
        };
        decisions.table(py, |decisions| {
            let values: Vec<_> = decisions.iter().map(|(_, decision)| decision_json(decision)).collect();
            let event = |value: &serde_json::Value| value["ev"].as_str().unwrap_or_default().to_owned();
            let events: Vec<_> = values.iter().map(event).collect();
            let texts = values.iter().map(|value| Some(value.to_string())).collect::<arrow_array::StringArray>();
            Columns::default()
                .with("time_ns", UInt64Array::from_iter_values(decisions.iter().map(|(now_ns, _)| *now_ns)))
                .with("event", words(events.iter().map(String::as_str)))
                .with("decision", texts)
                .table()
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        let (this, py) = (slf.get(), slf.py());
        let result = serde_json::to_string(&this.result).map_err(|error| RunError::new_err(error.to_string()))?;
        let requests = this.requests.as_ref().map(|_| this.requests(py)).transpose()?;
        let decisions = this.decisions.as_ref().map(|_| this.decisions(py)).transpose()?;
        Ok((slf.get_type().getattr("_again")?, (result, requests, decisions)))
    }

    #[staticmethod]
    fn _again(result: &str, requests: Option<PyRef<'_, Table>>, decisions: Option<PyRef<'_, Table>>) -> PyResult<Self> {
        let result = serde_json::from_str(result).map_err(|error| RunError::new_err(error.to_string()))?;
        let kept = |table: PyRef<'_, Table>| table.clone();
        Ok(Self {
            result,
            requests: requests.map(kept).map(ObservedOrTable::Table),
            decisions: decisions.map(kept).map(ObservedOrTable::Table),
        })
    }

    fn __repr__(&self) -> String {
        format!("<iosched.Run of {} I/Os in {:.3} s>", self.result.ios, self.result.finished_ns as f64 / 1e9)
    }
}
