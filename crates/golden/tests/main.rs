//! Tests with the recorded runs, in their compact form.

mod io_cost;
mod recorded_runs;
