//! Events of this elevator that other CFQs do not have.

use super::Cfq2616;
use crate::decision::{ActiveQueue, Cfq2616Event, Decision};
use crate::env::Env;

/// Last report, and the number of reported queues.
#[derive(Debug, Default)]
pub(super) struct ReportedQueues {
    active: Option<Option<ActiveQueue>>,
    queues: u32,
}

impl Cfq2616 {
    /// Reports the active queue again, because recording begins.
    pub(super) fn tell_anew(&mut self, env: &mut Env) {
        self.reported.active = None;
        self.tell(env);
    }

    /// Reports the active queue, if the step that ends here has changed it.
    #[inline]
    pub(super) fn tell(&mut self, env: &mut Env) {
        if env.log.is_on() {
            self.tell_active(env);
        }
    }

    fn tell_active(&mut self, env: &mut Env) {
        let queue = self.active.map(|id| {
            let queue = &mut self.queues[id];
            let number = *queue.number.get_or_insert_with(|| {
                self.reported.queues += 1;
                self.reported.queues - 1
            });
            ActiveQueue { number, pid: queue.sync.then_some(queue.pid) }
        });
        if self.reported.active != Some(queue) {
            self.reported.active = Some(queue);
            env.note(|| Decision::Cfq2616(Cfq2616Event::Active { queue }));
        }
    }
}
