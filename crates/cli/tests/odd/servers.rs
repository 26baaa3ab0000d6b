//! How a served or mounted disk starts, speaks and ends.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[];
