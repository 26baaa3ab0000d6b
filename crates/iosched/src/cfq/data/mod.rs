//! Data structures of CFQ. No file here depends on the elevator itself; the files next to this
//! folder contain the decisions.

pub(super) mod group;
pub(super) mod process;
pub(super) mod queue;
pub(super) mod service_tree;
pub(super) mod serving;
pub(super) mod turn;
pub(super) mod yields;
