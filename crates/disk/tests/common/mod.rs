//! A host that keeps a device busy and records the results.
#![allow(dead_code, reason = "each test file uses its part")]

use iosched::{Op, Time};
use iosched_disk::{Command, Device};

/// A command and its times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) command: Command,
    pub(crate) submitted_ns: u64,
    pub(crate) done_ns: u64,
}

impl Outcome {
    pub(crate) fn latency_ns(&self) -> u64 {
        self.done_ns - self.submitted_ns
    }
}

/// Runs a closed loop with up to `depth` outstanding commands. The device gets as many of these
/// commands as it accepts. `next` returns a think time, ns, and the command that follows it. The
/// tag of the command is ignored. Returns the outcomes in the order of completion.
///
/// Fails if a command does not complete exactly once, or if the next event of the device is in the
/// past.
pub(crate) fn closed_loop(
    device: &mut impl Device,
    depth: u32,
    mut next: impl FnMut() -> Option<(u64, Command)>,
) -> Vec<Outcome> {
    let depth = depth.min(device.card().depth) as usize;
    let mut outstanding: Vec<Option<(Command, u64)>> = vec![None; depth];
    let mut arrivals: Vec<(u64, usize, Command)> = Vec::new();
    let mut outcomes = Vec::new();
    let mut now_ns = 0;
    for slot in 0..depth {
        if let Some((think_ns, command)) = next() {
            arrivals.push((think_ns, slot, command));
        }
    }
    loop {
        arrivals.sort_by_key(|&(at_ns, slot, _)| (at_ns, slot));
        let event = device.next_event().map(Time::as_ns);
        let arrival = arrivals.first().map(|&(at_ns, ..)| at_ns);
        let Some(at_ns) = event.into_iter().chain(arrival).min() else { break };
        assert!(at_ns >= now_ns, "next_event at {at_ns}, before {now_ns}");
        now_ns = at_ns;
        let now = Time::from_ns(now_ns);
        while let Some(tag) = device.advance(now) {
            let slot = tag as usize;
            let (command, submitted_ns) = outstanding[slot].take().expect("each command completes once");
            outcomes.push(Outcome { command, submitted_ns, done_ns: now_ns });
            if let Some((think_ns, command)) = next() {
                arrivals.push((now_ns + think_ns, slot, command));
            }
        }
        assert!(device.next_event().is_none_or(|event| event > now), "advance left something due at {now}");
        arrivals.sort_by_key(|&(at_ns, slot, _)| (at_ns, slot));
        while arrivals.first().is_some_and(|&(at_ns, ..)| at_ns <= now_ns) {
            let (_, slot, command) = arrivals.remove(0);
            outstanding[slot] = Some((command, now_ns));
            device.submit(now, Command { tag: slot as u32, ..command });
        }
    }
    assert!(outstanding.iter().all(Option::is_none), "a command never completed");
    outcomes
}

/// Returns a command without think time.
pub(crate) fn at_once(op: Op, sector: u64, nr_sectors: u32) -> (u64, Command) {
    (0, Command { tag: 0, op, sector, nr_sectors, fua: false })
}
