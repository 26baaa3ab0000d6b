//! Small things that made somebody stop.

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[Odd {
    name: "a setting that does not exist is told with those that do",
    check: |place| {
        place.iosched(&["compare", "--scheduler", "cfq:slice_idel=0"]).refused(2, &["slice_idel", "slice_idle"]);
    },
}];
