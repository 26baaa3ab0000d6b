//! Limits on writes in flight at each step.

/// Limit on writes in flight at step 0. The limit is lower if the depth of the device's queue is
/// lower.
const DEPTH_DEFAULT: u32 = 16;

/// Limits on writes in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Limit for writes that a process waits for.
    pub(super) depth: u32,
    /// Limit for other writes while there are no reads.
    pub(super) normal: u32,
    /// Limit for other writes while there are reads.
    pub(super) background: u32,
    /// Whether a further step up would not increase the limits.
    pub(super) at_most: bool,
}

impl Limits {
    /// Returns the limits at step 0. wbt always tries one step up, even if this step cannot
    /// increase the limits.
    pub(super) fn first(queue_depth: u32, target_ns: u64) -> Self {
        Self { at_most: false, ..Self::of(queue_depth, 0, target_ns) }
    }

    /// Returns the limits at a step for a device with the given queue depth. Steps below 0 allow
    /// more writes than step 0, and steps above 0 fewer.
    pub(super) fn of(queue_depth: u32, step: i32, target_ns: u64) -> Self {
        let (depth, at_most) = depth(queue_depth, step);
        let (normal, background) = match depth {
            _ if target_ns == 0 => (0, 0),
            ..=2 => (depth, 1),
            _ => (depth.div_ceil(2), depth.div_ceil(4)),
        };
        Self { depth, normal, background, at_most }
    }
}

fn depth(queue_depth: u32, step: i32) -> (u32, bool) {
    if queue_depth == 1 {
        return if step > 0 { (1, false) } else { (2, true) };
    }
    let more = DEPTH_DEFAULT.min(queue_depth) - 1;
    let steps = step.unsigned_abs().min(31);
    match step {
        0 => (1 + more, false),
        1.. => (1 + (more >> steps), false),
        ..0 => {
            let (depth, most) = ((more << steps).wrapping_add(1), (u64::from(queue_depth) * 3 / 4) as u32);
            if depth > most { (most, true) } else { (depth, false) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_up_from_a_short_queue_lowers_the_depth() {
        assert_eq!([1, 2, 16, 21, 22, 32].map(|queue| depth(queue, 0).0), [2, 2, 16, 16, 16, 16]);
        let up = [1, 2, 16, 21, 22, 32].map(|queue| depth(queue, -1));
        assert_eq!(up, [(2, true), (1, true), (12, true), (15, true), (16, true), (24, true)]);
        assert_eq!([1, 2, 3, 4, 5, 99].map(|step| depth(64, step).0), [8, 4, 2, 1, 1, 1]);
        assert_eq!([-1, -2].map(|step| depth(64, step)), [(31, false), (48, true)]);
    }
}
