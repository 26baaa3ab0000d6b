//! The legacy request queue's ways: how many requests there may be, and how a bio goes in.

mod limits;
mod submit;

pub(super) use limits::Limits;
