//! The native part of the Python package `iosched`. It offers the
//! simulator and the lab with Python values, tables and exceptions.
//!
//! | file | content |
//! |---|---|
//! | `values.rs` | `Device`, `Workload` and `Setting`: the arguments of other functions |
//! | `trace.rs` | `Trace`: recorded I/O, from files and tables, and back |
//! | `frame.rs` | traces from tables in memory, row by row |
//! | `compare.rs` | `compare` and `Comparison`: comparisons of settings, as in `iosched compare` |
//! | `judge.rs` | `judge` and `Judgement`: report cards, as in `iosched judge` |
//! | `policy.rs` | elevators written in Python |
//! | `plan.rs` | plans for several units |
//! | `device.rs` | real disks: `doctor`, `validate`, `advise` on a device |
//! | `question.rs` | the common arguments of `compare` and `tune` |
//! | `simulate.rs` | `simulate` and `Run`: one run, I/O by I/O |
//! | `table.rs` | `Table`: columns with the Arrow PyCapsule protocol |
//! | `tune.rs` | `tune`, `Goal`, and the space of a search |
//! | `sweep.rs` | plans, units and summaries of sweeps |
//! | `stream.rs` | Python file objects as streams |
//! | `page.rs` | pages in a notebook |
//! | `error.rs` | errors of the libraries as classes of `iosched.errors`, and plain arguments |
//! | `waiting.rs` | work without the GIL that Ctrl-C interrupts |
//! | `atomic_file.rs` | files that are written completely or not at all |
//!
//! The crates that the command uses also do all computations here. This crate adds no other logic.
#![forbid(unsafe_code)]

mod atomic_file;
mod compare;
mod device;
mod error;
mod frame;
mod judge;
mod page;
mod plan;
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

use pyo3::prelude::*;

/// What `python/src/iosched/__init__.py` offers.
#[pymodule(gil_used = true)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::device::{Advice, Validation, advise_on, doctor, validate};
    #[pymodule_export]
    use crate::judge::{Judgement, judge};
    #[pymodule_export]
    use crate::plan::plan;
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
