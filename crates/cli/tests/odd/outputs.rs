//! Where outputs go, and what stands there before.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[];
