//! Report cards of schedulers, as in `iosched judge`.

use arrow_array::{BooleanArray, Float64Array, StringArray, UInt64Array};
use iosched_judge::{JudgeError, JudgeRequest, Judgement as Inner};
use iosched_lab::Verdict;
use pyo3::prelude::*;

use crate::error::{About as _, of_lab, plain, usage, wrong};
use crate::policy::Policies;
use crate::table::{Columns, Table};
use crate::trace::words;
use crate::values::one_or_more;

/// Judges schedulers, as `iosched judge` does without the cost. The parts are comparisons with the
/// schedulers of Linux, shares, longest waits and rules.
///
/// `scheduler` is one or several names or elevator classes. `comparisons=False` leaves out the comparisons, which take
/// longest. `tries` is the number of workloads in each of four rounds of the search for long waits.
#[pyfunction]
#[pyo3(signature = (scheduler, *, runs=5, seed=1, tries=16, operations=200_000, comparisons=true, jobs=None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn judge(
    py: Python<'_>,
    scheduler: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = plain)] runs: u32,
    #[pyo3(from_py_with = plain)] seed: u64,
    #[pyo3(from_py_with = plain)] tries: u32,
    #[pyo3(from_py_with = plain)] operations: u64,
    #[pyo3(from_py_with = plain)] comparisons: bool,
    #[pyo3(from_py_with = plain)] jobs: Option<usize>,
) -> PyResult<Judgement> {
    let mut policies = Policies::default();
    let given = one_or_more(scheduler).about("scheduler")?;
    let names = given.iter().map(|one| policies.text(one)).collect::<PyResult<Vec<_>>>().about("scheduler")?;
    if tries == 0 {
        return Err(wrong("tries", "0 tries find nothing; give at least 1"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut request = JudgeRequest::new(policies.registry().clone(), &names);
    (request.runs, request.seed, request.tries) = (runs, seed, tries);
    (request.operations, request.compare) = (operations, comparisons);
    let judged = policies.carry_out(py, jobs, |control| iosched_judge::judge(&request, control, |_| ()))?;
    judged.map(Judgement).map_err(|error| match error {
        JudgeError::Unknown(_) | JudgeError::Setting(_) | JudgeError::Nothing => usage(error).about("scheduler"),
        JudgeError::Runs(_) => usage(error).about("runs"),
        JudgeError::Lab(error) => of_lab(&error),
        error => usage(error),
    })
}

/// Report cards of schedulers.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Judgement(Inner);

#[pymethods]
impl Judgement {
    /// A row for each workload, device and scheduler: the metric that matters, and the verdict
    /// compared with the default of Linux.
    #[getter]
    fn comparisons(&self) -> PyResult<Table> {
        let compared = self.0.compared.iter();
        let rows: Vec<_> =
            compared.flat_map(|comparison| comparison.cells.iter().map(move |cell| (comparison, cell))).collect();
        Columns::default()
            .with("workload", words(rows.iter().map(|(comparison, _)| comparison.workload)))
            .with("metric", words(rows.iter().map(|(comparison, _)| comparison.goal)))
            .with("device", words(rows.iter().map(|(comparison, _)| comparison.device)))
            .with("baseline", words(rows.iter().map(|(comparison, _)| comparison.baseline)))
            .with("scheduler", words(rows.iter().map(|(_, cell)| cell.scheduler.as_str())))
            .with("mean", Float64Array::from_iter_values(rows.iter().map(|(_, cell)| cell.mean)))
            .with("percent", rows.iter().map(|(_, cell)| cell.percent).collect::<Float64Array>())
            .with("verdict", rows.iter().map(|(_, cell)| cell.verdict.map(Verdict::id)).collect::<StringArray>())
            .table()
    }

    /// A row for each workload, device, scheduler, and scheduler of Linux for comparison (`with`).
    #[getter]
    fn differences(&self) -> PyResult<Table> {
        let cells =
            self.0.compared.iter().flat_map(|comparison| comparison.cells.iter().map(move |cell| (comparison, cell)));
        let rows = cells.flat_map(|(comparison, cell)| {
            cell.differences.iter().map(move |difference| (comparison, cell, difference))
        });
        let rows: Vec<_> = rows.collect();
        Columns::default()
            .with("workload", words(rows.iter().map(|(comparison, ..)| comparison.workload)))
            .with("metric", words(rows.iter().map(|(comparison, ..)| comparison.goal)))
            .with("device", words(rows.iter().map(|(comparison, ..)| comparison.device)))
            .with("scheduler", words(rows.iter().map(|(_, cell, _)| cell.scheduler.as_str())))
            .with("with", words(rows.iter().map(|(.., difference)| difference.with)))
            .with("percent", rows.iter().map(|(.., difference)| difference.percent).collect::<Float64Array>())
            .with("verdict", words(rows.iter().map(|(.., difference)| difference.verdict.id())))
            .table()
    }

    /// A row for each scheduler, pair of sides and device: the share of the first side, 0 to 1.
    #[getter]
    fn shares(&self) -> PyResult<Table> {
        let cards = self.0.cards.iter();
        let rows: Vec<_> = cards.flat_map(|card| card.shares.iter().map(move |share| (card, share))).collect();
        Columns::default()
            .with("scheduler", words(rows.iter().map(|(card, _)| card.scheduler)))
            .with("sides", words(rows.iter().map(|(_, share)| share.rivalry)))
            .with("device", words(rows.iter().map(|(_, share)| share.device)))
            .with("first", Float64Array::from_iter_values(rows.iter().map(|(_, share)| share.first)))
            .table()
    }

    /// A row for each scheduler, device and operation: the longest wait that the search found, and its adversaries.
    #[getter]
    fn waits(&self) -> PyResult<Table> {
        let cards = self.0.cards.iter();
        let rows: Vec<_> = cards.flat_map(|card| card.waits.iter().map(move |wait| (card, wait))).collect();
        Columns::default()
            .with("scheduler", words(rows.iter().map(|(card, _)| card.scheduler)))
            .with("device", words(rows.iter().map(|(_, wait)| wait.device)))
            .with("op", words(rows.iter().map(|(_, wait)| wait.op)))
            .with("wait_ns", UInt64Array::from_iter_values(rows.iter().map(|(_, wait)| wait.wait_ns)))
            .with("grows", rows.iter().map(|(_, wait)| Some(wait.grows)).collect::<BooleanArray>())
            .with("adversaries", words(rows.iter().map(|(_, wait)| wait.adversaries.as_str())))
            .table()
    }

    /// A row for each scheduler: random operations, requests, and the first broken rule.
    #[getter]
    fn rules(&self) -> PyResult<Table> {
        let cards = self.0.cards.iter();
        let rows: Vec<_> = cards.filter_map(|card| Some((card, card.rules.as_ref()?))).collect();
        Columns::default()
            .with("scheduler", words(rows.iter().map(|(card, _)| card.scheduler)))
            .with("operations", UInt64Array::from_iter_values(rows.iter().map(|(_, kept)| kept.operations)))
            .with("requests", UInt64Array::from_iter_values(rows.iter().map(|(_, kept)| kept.requests)))
            .with("violation", rows.iter().map(|(_, kept)| kept.violation.as_deref()).collect::<StringArray>())
            .table()
    }

    /// The report cards as Markdown.
    fn markdown(&self) -> String {
        self.0.markdown()
    }

    fn _repr_markdown_(&self) -> String {
        self.0.markdown()
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.0.cards.iter().map(|card| card.scheduler).collect();
        format!("<iosched.Judgement of {}>", names.join(", "))
    }
}
