//! What is concluded from figures, and what is not.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[];
