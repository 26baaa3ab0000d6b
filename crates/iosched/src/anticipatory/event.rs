//! What the anticipatory elevator says of itself: its state, whenever a step changed it.

use super::Anticipatory;
use crate::decision::Decision;
use crate::elevator::Env;

/// Whether it waits for a process' next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Anticipation {
    /// It does not.
    #[default]
    Off,
    /// It will, once the request of that process which is under way completes.
    WaitRequest,
    /// It does, until the timer fires.
    WaitNext,
    /// It has waited, and serves somebody else now.
    Finished,
}

/// One part of its state, as a step left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnticipatoryEvent {
    /// Whether it waits.
    Anticipation(Anticipation),
    /// The batch that is served.
    Batch {
        /// Whether it is one of sync requests.
        sync: bool,
        /// Whether it waits for what is left of the batch before in the device.
        changing: bool,
        /// Whether none of its requests has completed yet (sync batches only).
        new: bool,
    },
    /// Async requests a batch may have from now on.
    WriteQuota {
        /// How many.
        requests: u64,
    },
    /// How processes that were waited for have ended.
    ExitStatistics {
        /// How likely a process exits after its first request, of 256.
        probability: u64,
        /// How likely one that exits has no other take over where it was, of 256.
        no_cooperator: u64,
    },
    /// How long a new process thinks before its second request.
    NewThinkTime {
        /// The mean in jiffies.
        jiffies: u64,
    },
}

/// The state that was last told.
pub(super) type Told = Option<[AnticipatoryEvent; 5]>;

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

    /// Tells what the step that ends here has changed.
    #[inline]
    pub(super) fn tell(&mut self, env: &mut Env) {
        if env.log.is_on() {
            self.tell_changes(env);
        }
    }

    fn tell_changes(&mut self, env: &mut Env) {
        let state = self.state();
        for (number, &part) in state.iter().enumerate() {
            if self.told.is_none_or(|told| told[number] != part) {
                env.note(|| Decision::Anticipatory(part));
            }
        }
        self.told = Some(state);
    }
}
