//! The clock a generation counts in: nanoseconds, or in older kernels jiffies, to which all their arithmetic rounds.
//!
//! All times inside CFQ are numbers of ticks of its generation's clock.

use crate::decision::Decision;
use crate::env::Env;
use crate::time::Time;

/// A clock.
pub(super) trait Clock {
    /// Ticks from the origin to `time`, rounded down.
    fn at(env: &Env, time: Time) -> u64;

    /// The instant at which the clock comes to show `ticks`.
    fn instant(env: &Env, ticks: u64) -> Time;

    /// Asks for the timer in so many ticks, at least one, to wait for a process' next request until then.
    fn idle_for(env: &mut Env, ticks: u64);

    /// Whole ticks in so many ns.
    fn ticks(env: &Env, ns: u64) -> u64;

    /// So many ticks in ns.
    fn ns(env: &Env, ticks: u64) -> u64;

    /// What it shows now. It stands still during a call.
    #[inline]
    fn now(env: &Env) -> u64 {
        Self::at(env, env.now)
    }

    /// Ticks in a jiffy.
    #[inline]
    fn jiffy(env: &Env) -> u64 {
        Self::ticks(env, env.jiffy_ns)
    }
}

/// A tick is a nanosecond.
pub(super) enum Nanoseconds {}

impl Clock for Nanoseconds {
    #[inline]
    fn at(_: &Env, time: Time) -> u64 {
        time.as_ns()
    }

    #[inline]
    fn instant(_: &Env, ticks: u64) -> Time {
        Time::from_ns(ticks)
    }

    fn idle_for(env: &mut Env, ticks: u64) {
        env.timer = Some(env.now + ticks);
        env.note(|| Decision::IdleArm { wait_ns: ticks });
    }

    #[inline]
    fn ticks(_: &Env, ns: u64) -> u64 {
        ns
    }

    #[inline]
    fn ns(_: &Env, ticks: u64) -> u64 {
        ticks
    }
}

/// A tick is a jiffy.
pub(super) enum Jiffies {}

impl Clock for Jiffies {
    fn at(env: &Env, time: Time) -> u64 {
        time.as_ns() / env.jiffy_ns
    }

    fn instant(env: &Env, ticks: u64) -> Time {
        Time::from_ns(ticks.saturating_mul(env.jiffy_ns))
    }

    fn idle_for(env: &mut Env, ticks: u64) {
        env.idle_until(env.jiffies().saturating_add(ticks));
    }

    fn ticks(env: &Env, ns: u64) -> u64 {
        ns / env.jiffy_ns
    }

    fn ns(env: &Env, ticks: u64) -> u64 {
        ticks.saturating_mul(env.jiffy_ns)
    }
}
