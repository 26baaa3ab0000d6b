//! The recorded runs, in their short form.

mod io_cost;
mod recorded_runs;
