//! Legacy request queue: the limits on requests, and the path of a bio.

mod limits;
mod submit;

pub(super) use limits::Limits;
