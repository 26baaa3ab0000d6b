//! Anticipation: whether to wait for the next request of the last served process, instead of a seek
//! to another process' request.
//!
//! Waiting is worthwhile if that process will soon send a request near its last request. The
//! decision uses the history of the process. For a new process, the decision uses the history of
//! other processes after their first request.

use super::{Anticipatory, SYNC};
use crate::decision::Anticipation;
use crate::env::Env;
use crate::request::RequestId;

/// Distance, in sectors, within which a request counts as close, at the time of the awaited
/// process' last completion. The distance doubles with each later jiffy.
const CLOSE_SECTORS: u64 = 8192;
/// Time after which every request is close, ms.
const CLOSE_MS: u64 = 20;
/// Half of the probability scale.
const HALF: u64 = 128;
/// Scale of the product of two probabilities.
const ONE_OF_PRODUCT: u64 = 256 * 256;

impl Anticipatory {
    /// Returns whether the elevator waits, or will wait.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.anticipation, Anticipation::WaitRequest | Anticipation::WaitNext)
    }

    /// Returns whether to wait instead of serving `next`.
    pub(super) fn may_wait(&mut self, env: &Env, next: Option<RequestId>) -> bool {
        self.awaited.is_some() && self.anticipation != Anticipation::Finished && !self.can_break(env, next)
    }

    /// Waits from now on, or when the request of the awaited process completes.
    pub(super) fn wait(&mut self, env: &mut Env) {
        if self.anticipation != Anticipation::Off {
            return;
        }
        if self.awaited_is_done {
            self.start_timer(env);
        } else {
            self.anticipation = Anticipation::WaitRequest;
        }
    }

    /// Starts the timer: the awaited process has no request in flight.
    fn start_timer(&mut self, env: &mut Env) {
        env.idle_until(self.awaited_since + self.tunables.antic_expire);
        self.anticipation = Anticipation::WaitNext;
    }

    /// Ends the wait for a reason other than the timer.
    pub(super) fn stop_waiting(&mut self, env: &mut Env, then: Anticipation) {
        if self.anticipation == Anticipation::WaitNext {
            env.cancel_idle();
        }
        self.anticipation = then;
    }

    /// Handles the completion of a request of the awaited process.
    pub(super) fn awaited_completed(&mut self, env: &mut Env) {
        self.awaited_since = env.jiffies();
        self.awaited_is_done = true;
        if self.anticipation == Anticipation::WaitRequest {
            self.start_timer(env);
        }
    }

    /// Handles the timer: the process sent no request in time.
    pub(super) fn waited_in_vain(&mut self) {
        self.anticipation = Anticipation::Finished;
        let Some(process) = self.awaited.map(|id| &self.processes[id]) else { return };
        if !process.has_thought() {
            self.newcomers.lost();
        }
        if process.exited {
            self.newcomers.lost_without_cooperator();
        }
    }

    /// Returns whether waiting is not worthwhile, or whether `request` is as good as the awaited
    /// request. Each call updates the statistics.
    pub(super) fn can_break(&mut self, env: &Env, request: Option<RequestId>) -> bool {
        let Some(awaited) = self.awaited else { return true };
        if request.is_some_and(|id| self.processes.of(env, id) == awaited) {
            return true;
        }
        if self.awaited_is_done && env.jiffies().abs_diff(self.awaited_since) >= self.tunables.antic_expire {
            return true;
        }
        let process = &self.processes[awaited];
        if process.queued > 0 || process.released > 0 {
            return true;
        }
        let (exited, has_thought) = (process.exited, process.has_thought());
        if let Some(id) = request.filter(|&id| env.requests[id].is_sync() && self.is_close(env, id)) {
            if exited {
                if !has_thought {
                    self.newcomers.lost();
                }
                self.newcomers.found_cooperator();
            }
            self.account(env, awaited, id);
            return true;
        }
        if exited {
            if !has_thought {
                self.newcomers.lost();
            }
            if self.newcomers.exit_without_cooperator > HALF {
                return true;
            }
        }
        if has_thought {
            return self.processes[awaited].think_mean() > self.tunables.antic_expire;
        }
        let newcomers = &self.newcomers;
        newcomers.think_mean() > self.tunables.antic_expire
            || newcomers.exit_probability * newcomers.exit_without_cooperator > ONE_OF_PRODUCT / 2
    }

    /// Returns whether `id` is so near the position of the batch that the awaited process' next
    /// request need not be nearer.
    fn is_close(&self, env: &Env, id: RequestId) -> bool {
        let waits = self.anticipation != Anticipation::Off && self.awaited_is_done;
        let delay = if waits { env.jiffies() - self.awaited_since } else { 0 };
        let window_sectors = if delay == 0 {
            CLOSE_SECTORS
        } else if delay <= CLOSE_MS * u64::from(env.hz) / 1000 && delay <= self.tunables.antic_expire {
            let doublings = u32::try_from(delay).unwrap_or(u32::MAX);
            CLOSE_SECTORS.saturating_mul(1u64.checked_shl(doublings).unwrap_or(u64::MAX))
        } else {
            return true;
        };
        let sector = env.requests[id].sector;
        let position = self.directions[usize::from(self.batch.sync)].position;
        if position <= sector.saturating_add(window_sectors / 2) && sector <= position.saturating_add(window_sectors) {
            return true;
        }
        let Some(awaited) = self.awaited else { return false };
        sector.abs_diff(position) < self.newcomers.seek_mean_of(&self.processes[awaited])
    }

    /// Stops waiting if the new request `id` is good enough.
    pub(super) fn meet(&mut self, env: &mut Env, id: RequestId) {
        if self.is_waiting() && self.can_break(env, Some(id)) {
            self.stop_waiting(env, Anticipation::Finished);
        }
    }

    /// Counts a new sync request for `process`.
    pub(super) fn account(&mut self, env: &Env, process: super::ProcessId, id: RequestId) {
        let request = &env.requests[id];
        debug_assert!(request.is_sync());
        let process = &mut self.processes[process];
        self.newcomers.account(process, env.jiffies(), env.hz, request.sector, request.end());
        self.tunables.est_time = self.newcomers.think_mean();
    }

    /// Returns whether the next sync request should wait for an expected one.
    pub(super) fn holds_back(&mut self, env: &mut Env) -> bool {
        let next = self.directions[SYNC].next;
        let holds = self.may_wait(env, next);
        if holds {
            self.wait(env);
        }
        holds
    }
}
