//! Traces that are damaged, in part, or something else.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[];
