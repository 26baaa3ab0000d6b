//! What the elevator keeps, as plain data: nothing here knows the elevator itself. What is done with it is decided in
//! the files beside this folder.

pub(super) mod group;
pub(super) mod process;
pub(super) mod queue;
pub(super) mod service_tree;
pub(super) mod serving;
pub(super) mod turn;
pub(super) mod yields;
