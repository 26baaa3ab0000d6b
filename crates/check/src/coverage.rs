//! Counts of events. If an event never happens, a check of this event proves nothing.

use std::fmt;

use iosched::{ControlledEvent, Decision, MClockEvent};

macro_rules! coverage {
    ($($(#[$doc:meta])* $name:ident: $shown:literal),* $(,)?) => {
        /// Counts of the events that random operations caused.
        #[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
        pub struct Coverage {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Coverage {
            /// Returns all counts with their names.
            #[must_use]
            pub fn counts(&self) -> Vec<(&'static str, u64)> {
                vec![$(($shown, self.$name)),*]
            }

            /// Adds the counts of another run.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

coverage! {
    /// Operations done.
    operations: "operations",
    /// Bios accepted.
    bios: "bios",
    /// Bios that joined a request.
    merges: "bios merged",
    /// Requests that another request absorbed.
    absorbed: "requests merged",
    /// Requests given to the device.
    requests: "requests",
    /// Requests that the device gave back without completing them.
    requeues: "requeued requests",
    /// Device flushes among the requests.
    flushes: "flushes",
    /// Barriers.
    barriers: "barriers",
    /// Barriers that waited while elevators were switched.
    barriers_held: "barriers during switches",
    /// Requests that failed.
    errors: "errors",
    /// Bios that were refused because all requests were allocated.
    full: "full",
    /// Bios that waited at wbt. Counted only if decisions are recorded.
    throttled: "waits in wbt",
    /// Tasks that waited and were woken.
    woken: "woken",
    /// Plugs that were full.
    full_plugs: "full plugs",
    /// Runs of the queue that the elevator requested.
    kicks: "kicks",
    /// Times at which the elevator let an idle device wait.
    idle: "idle waits",
    /// Timers that fired.
    timers: "timers",
    /// Processes that exited.
    exits: "exits",
    /// Processes that exited while they waited for room.
    exits_waiting: "exits while waiting",
    /// Switches of elevators.
    switches: "switches",
    /// Switches that began before an earlier switch had ended.
    switches_twice: "switches during switches",
    /// Refused writes to tunables and attributes.
    refused: "refusals",
    /// Tasks that moved to another cgroup.
    moves: "moves",
    /// Cgroups removed.
    removals: "cgroups removed",
    /// Times at which all I/O in flight was completed.
    drains: "drains",
    /// Preemptions. Counted only if decisions are recorded.
    preemptions: "preemptions",
    /// Merges of cooperators. Counted only if decisions are recorded.
    cooperator_merges: "cooperator merges",
    /// Splits of cooperators. Counted only if decisions are recorded.
    cooperator_splits: "cooperator splits",
    /// Turns that a queue yielded. Counted only if decisions are recorded.
    yields: "yields",
    /// Requests of deadline that were past their deadline. Counted only if decisions are recorded.
    expired: "requests past their deadline",
    /// Times at which mclock stopped because all groups were limited. Counted only if decisions are
    /// recorded.
    limited: "waits for limits",
    /// Waits at the end of a group's last slice. Counted only if decisions are recorded.
    wait_busy: "wait-busy",
}

impl Coverage {
    pub(crate) fn count(&mut self, decision: &Decision) {
        match decision {
            Decision::Preempt { .. } => self.preemptions += 1,
            Decision::CooperatorMerge { .. } => self.cooperator_merges += 1,
            Decision::CooperatorSplit { .. } => self.cooperator_splits += 1,
            Decision::Yield { .. } => self.yields += 1,
            Decision::WaitBusy { .. } => self.wait_busy += 1,
            Decision::MClock(MClockEvent::Limited { .. }) => self.limited += 1,
            Decision::Controlled(ControlledEvent::Wait { .. }) => self.throttled += 1,
            _ => {}
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<_> = self.counts().iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&shown.join(", "))
    }
}
