//! The published experiments, run again: published figures and ours side by side, and whether they say the same.
//!
//! An [`Experiment`] is data: cases, settings, a machine, published figures, goals. Its runs give [`CaseRun`]s, of
//! which [`ExperimentResults::of`] computes everything that is told to people: means and deviations, verdicts by the
//! method of the first document ([`judge()`]), how well the [goals](Goal) are met, and a [`Summary`].

mod assumptions;
mod catalogue;
mod goal;
mod judge;
mod published;
mod record;
mod results;
mod run;

pub use assumptions::{Fitted, Unknown, UnknownValue};
pub use catalogue::{Case, Experiment, Family, Variant};
pub use goal::{FigureKey, Goal, GoalOutcome, Measure, Other};
pub use judge::{Judgement, Known, NOISE_SHARE, RELEVANT_SHARE, direction_of, judge};
pub use published::{Origin, PublishedFigure, PublishedSeries};
pub use record::{CaseRun, FigureRecord, ReproductionHeader, ReproductionRecord, SeriesRecord, read};
pub use results::{Assumed, Cell, ExperimentResults, Line, Row, Simulated, Summary, WITHIN_SHARE};
pub(crate) use run::fio_jobs;
pub use run::{Progress, ReproduceOptions, Reproduced, reproduce};
