//! Commands in the hardware queues of a device that executes a limited number of commands.

use std::collections::VecDeque;

use crate::Command;

/// Commands that wait for the controller, in the order of each hardware queue.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    queues: Vec<VecDeque<(Command, u64)>>,
    /// Number of commands in all queues.
    commands: u32,
    /// Queue from which the controller fetches next.
    turn: usize,
}

impl Outside {
    pub(crate) fn new(hw_queues: u16) -> Self {
        Self { queues: vec![VecDeque::new(); usize::from(hw_queues)], commands: 0, turn: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, hw_queue: u16, command: Command, sequence: u64) {
        let queue = usize::from(hw_queue) % self.queues.len();
        self.queues[queue].push_back((command, sequence));
        self.commands += 1;
    }

    /// Fetches the next command: one command of each queue in turn.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Command, u64)> {
        if self.commands == 0 {
            return None;
        }
        loop {
            let queue = self.turn;
            self.turn = if queue + 1 == self.queues.len() { 0 } else { queue + 1 };
            if let Some(next) = self.queues[queue].pop_front() {
                self.commands -= 1;
                return Some(next);
            }
        }
    }
}
