//! Request queue of blk-mq: tags, the path of a bio, and the controllers on it.

mod controlled;
mod pass;
mod submit;
mod tags;

pub(super) use controlled::Controlled;
pub(super) use tags::MultiQueue;
