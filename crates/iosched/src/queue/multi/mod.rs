//! The request queue's ways in blk-mq: who has a tag, and how a bio goes in.

mod submit;
mod tags;

pub(super) use tags::MultiQueue;
