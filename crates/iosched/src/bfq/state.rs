//! Reports of queue states, and the effects of setting a tunable.

use super::Bfq;
use super::data::entity::Class;
use super::data::queue::QueueId;
use crate::collections::Id as _;
use crate::context::IoClass;
use crate::decision::{BfqEvent, BfqState};
use crate::env::Env;
use crate::time::MILLISECOND_NS;

/// Minimum idle time with strict guarantees, where every request is served alone, ns.
const STRICT_IDLE_NS: u64 = 8 * MILLISECOND_NS;

impl Bfq {
    fn state(&self, id: QueueId) -> BfqState {
        let (queue, entity) = (&self.queues[id], &self.entities[id.entity()]);
        BfqState {
            raise: entity.raise,
            weight: entity.weight,
            inject_limit: queue.injection.limit,
            max_budget: queue.max_budget,
            short_think_time: queue.short_think,
            io_bound: queue.io_bound,
            in_large_burst: queue.in_large_burst,
            seeky: queue.is_seeky(),
            raise_jiffies: queue.raising.length,
            class: match entity.class {
                Class::RealTime => IoClass::RealTime,
                Class::BestEffort => IoClass::BestEffort,
                Class::Idle => IoClass::Idle,
            },
        }
    }

    /// Reports the changed state of a queue, if decisions are recorded.
    #[inline]
    pub(super) fn note_state(&mut self, env: &mut Env, id: QueueId) {
        if env.log.is_on() {
            self.tell_state(env, id);
        }
    }

    fn tell_state(&mut self, env: &mut Env, id: QueueId) {
        let (queue, state) = (self.queues[id].serial, self.state(id));
        let index = id.number() as usize;
        if self.reported.states.len() <= index {
            self.reported.states.resize(index + 1, (0, BfqState::default()));
        }
        let (serial, last) = std::mem::replace(&mut self.reported.states[index], (queue, state));
        let before = (serial == queue).then_some(last);
        if before != Some(state) {
            env.note(|| BfqEvent::State { queue, before, state }.into());
        }
    }

    /// Updates the state that depends on a tunable.
    pub(super) fn follow_tunable(&mut self, env: &Env, name: &str) {
        match name {
            "max_budget" | "timeout_sync" => {
                if self.tunables.max_budget == 0 {
                    self.budgets.max = self.automatic_max_budget(env);
                } else if name == "max_budget" {
                    self.budgets.max = self.tunables.max_budget as i64;
                }
            }
            "low_latency" => {
                let off = !self.tunables.low_latency;
                if off && !std::mem::replace(&mut self.reported.low_latency_off, off) {
                    self.end_all_raising(env);
                }
                self.reported.low_latency_off = off;
            }
            "strict_guarantees" => {
                let strict = self.tunables.strict_guarantees;
                if strict && !self.reported.strict {
                    self.tunables.slice_idle_ns = self.tunables.slice_idle_ns.max(STRICT_IDLE_NS);
                }
                self.reported.strict = strict;
            }
            _ => {}
        }
    }
}
