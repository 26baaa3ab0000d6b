//! Hints of what to do to devices, and settings of the kernel's disks and of live ones.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[];
