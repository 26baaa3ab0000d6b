//! What the elevator keeps, as plain data: nothing here knows the elevator itself. What is done with it is decided in
//! the files beside this folder.

pub(super) mod budget;
pub(super) mod burst;
pub(super) mod depth;
pub(super) mod entity;
pub(super) mod group;
pub(super) mod injection;
pub(super) mod peak_rate;
pub(super) mod process;
pub(super) mod queue;
pub(super) mod raising;
pub(super) mod reported;
pub(super) mod saved;
pub(super) mod seek;
pub(super) mod service_tree;
pub(super) mod turn;
pub(super) mod weights;
