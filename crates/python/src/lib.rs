//! The native part of the Python package `iosched`: the simulator and the lab, with values, tables and exceptions as
//! Python has them.
//!
//! | file | what it has |
//! |---|---|
//! | `values.rs` | `Device`, `Workload` and `Setting`: what is asked about |
//! | `trace.rs` | `Trace`: recorded I/O, from files and tables and back |
//! | `frame.rs` | traces of tables in memory, row by row |
//! | `compare.rs` | `compare` and `Comparison`: settings beside each other, as `iosched compare` has them |
//! | `policy.rs` | elevators written in Python |
//! | `question.rs` | what `compare` and `tune` are asked in common |
//! | `simulate.rs` | `simulate` and `Run`: one run, I/O by I/O |
//! | `table.rs` | `Table`: columns that speak the Arrow PyCapsule protocol |
//! | `tune.rs` | `tune`, `Goal`, and what may be set |
//! | `sweep.rs` | plans, units and summaries of sweeps |
//! | `page.rs` | pages in a notebook |
//! | `error.rs` | errors of the libraries as classes of `iosched.errors`, and plain arguments |
//! | `waiting.rs` | work without the GIL that Ctrl-C ends |
//! | `whole.rs` | files that are written whole or not at all |
//!
//! What is computed here is computed by the crates that the command uses; nothing is decided twice.
#![forbid(unsafe_code)]

mod compare;
mod error;
mod frame;
mod page;
mod policy;
mod question;
mod simulate;
mod stream;
mod sweep;
mod table;
mod trace;
mod tune;
mod values;
mod waiting;
mod whole;

use pyo3::prelude::*;

/// What `python/src/iosched/__init__.py` offers.
#[pymodule(gil_used = true)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::policy::Request;
    #[pymodule_export]
    use crate::simulate::{Run, simulate};
    #[pymodule_export]
    use crate::sweep::{FleetSummary, SweepPlan, SweepUnit, estimate};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trace::{Trace, read_trace};
    #[pymodule_export]
    use crate::tune::{Goal, Search, space, tune};
    #[pymodule_export]
    use crate::values::{Device, Setting, Workload, devices, schedulers};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
