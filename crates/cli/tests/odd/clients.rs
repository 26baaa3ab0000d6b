//! Clients of a served disk that stall, lie, flood or go away.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[];
