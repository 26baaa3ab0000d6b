//! Clock of a generation: nanoseconds, or in older kernels jiffies. All
//! arithmetic of a generation rounds to its unit.
//!
//! All times inside CFQ are ticks of the generation's clock.

use crate::decision::Decision;
use crate::env::Env;
use crate::time::Time;

/// Clock of a generation.
pub(super) trait Clock {
    /// Returns the ticks from the origin to `time`, rounded down.
    fn at(env: &Env, time: Time) -> u64;

    /// Returns the time at which the clock reaches `ticks`.
    fn instant(env: &Env, ticks: u64) -> Time;

    /// Sets the timer to `ticks` from now, at least one, to idle for a process' next request.
    fn idle_for(env: &mut Env, ticks: u64);

    /// Returns the number of whole ticks in `ns`.
    fn ticks(env: &Env, ns: u64) -> u64;

    /// Converts ticks to ns.
    fn ns(env: &Env, ticks: u64) -> u64;

    /// Returns the present time in ticks. The time does not change during a call.
    #[inline]
    fn now(env: &Env) -> u64 {
        Self::at(env, env.now)
    }

    /// Returns the number of ticks per jiffy.
    #[inline]
    fn jiffy(env: &Env) -> u64 {
        Self::ticks(env, env.jiffy_ns)
    }
}

/// Clock with a tick of one nanosecond.
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

/// Clock with a tick of one jiffy.
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
