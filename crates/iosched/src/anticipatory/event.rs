//! Events of the anticipatory elevator: its state, whenever a step changed it.

use super::Anticipatory;
use crate::decision::{AnticipatoryEvent, Decision};
use crate::env::Env;

/// State of the last report.
pub(super) type ReportedEvents = Option<[AnticipatoryEvent; 5]>;

impl Anticipatory {
    fn state(&self) -> [AnticipatoryEvent; 5] {
        let (batch, newcomers) = (&self.batch, &self.newcomers);
        [
            AnticipatoryEvent::Anticipation(self.anticipation),
            AnticipatoryEvent::Batch { sync: batch.sync, changing: batch.changing, new: batch.new },
            AnticipatoryEvent::WriteQuota { requests: batch.quota },
            AnticipatoryEvent::ExitStatistics {
                probability: newcomers.exit_probability,
                no_cooperator: newcomers.exit_without_cooperator,
            },
            AnticipatoryEvent::NewThinkTime { jiffies: newcomers.think_mean() },
        ]
    }

    /// Reports the changes of the step that ends here.
    #[inline]
    pub(super) fn tell(&mut self, env: &mut Env) {
        if env.log.is_on() {
            self.tell_changes(env);
        }
    }

    fn tell_changes(&mut self, env: &mut Env) {
        let state = self.state();
        for (number, &part) in state.iter().enumerate() {
            if self.reported.is_none_or(|reported| reported[number] != part) {
                env.note(|| Decision::Anticipatory(part));
            }
        }
        self.reported = Some(state);
    }
}
