//! Timers with the resolution of the kernel's timer wheel: a timer with a longer delay may fire
//! later.
//!
//! A timer for jiffy E fires at the start of a later jiffy, its *bucket*. Buckets of a level are 8
//! times as wide as those of the level below. A level has 63 buckets.

/// Number of levels. A timer beyond the last level has the resolution of the last level.
const LEVELS: u32 = 8;
/// Number of buckets of a level.
const REACH: u64 = 63;

/// Id of a timer of a [`Wheel`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TimerId(u32);

impl TimerId {
    /// Returns a small number, dense from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Timer that is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Armed {
    /// Requested jiffy.
    jiffy: u64,
    bucket: u64,
    level: u32,
    /// Number in the order of setting.
    entered: u64,
}

/// Timers with times in jiffies.
#[derive(Clone, Debug, Default)]
pub struct Wheel {
    /// Jiffy up to which buckets were collected.
    clock: u64,
    timers: Vec<Option<Armed>>,
    entered: u64,
    /// Timers of the due bucket, in reverse order of firing, each with its state at collection.
    collected: Vec<(TimerId, Armed)>,
}

impl Wheel {
    /// Creates a wheel at `jiffy`.
    #[must_use]
    pub fn new(jiffy: u64) -> Self {
        Self { clock: jiffy, ..Self::default() }
    }

    /// Creates a timer that is not set.
    pub fn create(&mut self) -> TimerId {
        self.timers.push(None);
        TimerId((self.timers.len() - 1) as u32)
    }

    /// Returns whether `timer` is set.
    #[must_use]
    pub fn is_pending(&self, timer: TimerId) -> bool {
        self.timers[timer.index()].is_some()
    }

    /// Sets `timer` to `jiffy`, and replaces its old time. Returns the jiffy at the start of which
    /// the timer fires.
    pub fn arm(&mut self, now: u64, timer: TimerId, jiffy: u64) -> u64 {
        let before = self.timers[timer.index()];
        if let Some(armed) = before.filter(|armed| armed.jiffy == jiffy) {
            return armed.bucket;
        }
        if now > self.clock {
            self.clock = self.next().map_or(now, |earliest| earliest.min(now));
        }
        let (bucket, level) = self.place(jiffy);
        let entered = match before {
            Some(armed) if (armed.bucket, armed.level) == (bucket, level) => armed.entered,
            _ => {
                self.entered += 1;
                self.entered
            }
        };
        self.timers[timer.index()] = Some(Armed { jiffy, bucket, level, entered });
        bucket
    }

    /// Returns the bucket and level of a timer that is set for `jiffy` now.
    fn place(&self, jiffy: u64) -> (u64, u32) {
        let Some(distance) = jiffy.checked_sub(self.clock) else { return (self.clock, 0) };
        let level = (0..LEVELS).find(|level| distance < REACH << (3 * level)).unwrap_or(LEVELS);
        let width = 3 * level;
        (((jiffy >> width) + 1) << width, level)
    }

    /// Cancels `timer`.
    pub fn cancel(&mut self, timer: TimerId) {
        self.timers[timer.index()] = None;
    }

    /// Returns the jiffy at which the next timer fires.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.timers.iter().flatten().map(|armed| armed.bucket).min()
    }

    /// Returns the next timer that fires in jiffy `now`, if any. The timer is no longer set.
    pub fn fire(&mut self, now: u64) -> Option<TimerId> {
        loop {
            while let Some((timer, as_collected)) = self.collected.pop() {
                let armed = &mut self.timers[timer.index()];
                // A timer that was set again since its collection fires later.
                if *armed == Some(as_collected) {
                    *armed = None;
                    return Some(timer);
                }
            }
            let bucket = self.next().filter(|&bucket| bucket <= now)?;
            let due = self.timers.iter().zip(0..).filter_map(|(armed, timer)| Some((TimerId(timer), (*armed)?)));
            self.collected.extend(due.filter(|(_, armed)| armed.bucket == bucket));
            // `pop` takes timers from the end of the list.
            self.collected.sort_unstable_by_key(|(_, armed)| (armed.level, armed.entered));
            self.clock = bucket + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_timers_fire_later_than_their_jiffy() {
        let mut wheel = Wheel::new(1_000_000);
        let timer = wheel.create();
        let mut fires = |distance: u64| {
            wheel.cancel(timer);
            wheel.arm(1_000_000, timer, 1_000_000 + distance) - 1_000_000
        };
        assert_eq!([0, 1, 62].map(&mut fires), [1, 2, 63]);
        assert_eq!([63, 64, 71, 72, 503].map(&mut fires), [64, 72, 72, 80, 504]);
        assert_eq!([504, 511, 512].map(&mut fires), [512, 512, 576]);
    }

    #[test]
    fn coarse_timers_of_a_bucket_fire_first() {
        let mut wheel = Wheel::new(0);
        let [near, far, last] = [(); 3].map(|()| wheel.create());
        wheel.arm(0, far, 64);
        assert_eq!(wheel.next(), Some(72));
        wheel.arm(70, near, 71);
        wheel.arm(70, last, 71);
        assert_eq!(wheel.fire(71), None);
        assert_eq!([(); 4].map(|()| wheel.fire(72)), [Some(far), Some(last), Some(near), None]);
        assert!(!wheel.is_pending(far));
    }

    #[test]
    fn a_due_timer_that_is_set_again_does_not_fire() {
        let mut wheel = Wheel::new(0);
        let [first, second] = [(); 2].map(|()| wheel.create());
        wheel.arm(0, first, 9);
        wheel.arm(0, second, 9);
        assert_eq!(wheel.fire(10), Some(second));
        wheel.arm(10, first, 20);
        assert_eq!(wheel.fire(10), None);
        assert_eq!(wheel.next(), Some(21));
    }
}
