//! Search in simulation for the values of an elevator's tunables that are best for a workload on a
//! device.
//!
//! [`Tuning`] defines the search. [`tune`] makes the runs and passes each record to its caller.
//! [`TuneResults::of`] computes the recommendation and its certainty from the records alone. The
//! next run depends only on earlier runs. The same plan and seed therefore give the same records
//! with any number of threads.

mod adapter;
mod controllers;
mod decision;
mod history;
mod judge;
mod plan;
mod record;
mod results;
mod run;
mod search;
mod shares;
mod space;
mod words;

pub use controllers::Controller;
pub use iosched_lab::goal::{
    Bound, BoundUnit, Constraint, Goal, GoalError, GoalOrConstraint, Kind, Measure, MeasureRecord, Statistic, Whose,
};
pub(crate) use judge::Verdicts;
pub use plan::{BUDGET_MIN, TuneError, Tuned, Tuning, tune};
pub use record::{ConstraintRecord, Phase, TuneHeader, TuneRecord, TuneRun, read};
pub use results::{Finding, PutBack, Standing, StandingConstraint, StandingFigure, TuneResults};
pub use run::Progress;
pub use shares::Share;
pub use space::{Dimension, ElevatorSpace, Point, Selection, Space, SpaceError, Written};
pub use words::{commands, commands_explained, commands_of, lasting};
