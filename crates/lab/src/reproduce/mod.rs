//! Published experiments, run again in simulation. Compares the published figures with the
//! simulated figures, and the verdicts that follow from them.
//!
//! An [`Experiment`] is data: cases, settings, a machine, published figures, goals. Its runs give
//! [`CaseRun`]s. [`ExperimentResults::of`] computes all output from them: means and deviations,
//! verdicts by the method of the first document ([`judge()`]), the outcomes of the [goals](Goal),
//! and a [`Summary`].

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
