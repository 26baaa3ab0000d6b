//! The request queue's ways in blk-mq: who has a tag, how a bio goes in, and past which controllers.

mod controlled;
mod pass;
mod submit;
mod tags;

pub(super) use controlled::Controlled;
pub(super) use tags::MultiQueue;
