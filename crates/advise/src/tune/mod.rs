//! Which values of an elevator's tunables serve a workload best on a device, by searching in simulation.
//!
//! [`Tuning`] says what is searched and for what; [`tune`] makes the runs and hands on records as they are made;
//! [`TuneResults::of`] computes from records alone what is recommended, and how sure that is. What to run next is a
//! function of what was run: the same plan and seed give the same records, whatever the number of threads.

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
    Bound, BoundUnit, Constraint, Goal, GoalError, Kind, Measure, MeasureRecord, Statistic, Whose, Wish,
};
pub(crate) use judge::Verdicts;
pub use plan::{BUDGET_MIN, TuneError, Tuned, Tuning, tune};
pub use record::{ConstraintRecord, Phase, TuneHeader, TuneRecord, TuneRun, read};
pub use results::{Finding, PutBack, Standing, StandingConstraint, StandingFigure, TuneResults};
pub use run::Progress;
pub use shares::Share;
pub use space::{Dimension, ElevatorSpace, Point, Selection, Space, SpaceError, Written};
pub use words::{commands, commands_explained, lasting};
