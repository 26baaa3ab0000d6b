//! Data structures of BFQ. No file here depends on the elevator itself; the files next to this
//! folder contain the decisions.

pub(super) mod depth;
pub(super) mod entity;
pub(super) mod group;
pub(super) mod injection;
pub(super) mod process;
pub(super) mod queue;
pub(super) mod raising;
pub(super) mod reported;
pub(super) mod seek;
pub(super) mod service_tree;
pub(super) mod turn;
