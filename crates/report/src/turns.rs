//! Computes the turns of a scheduler's queues from the spans of a timeline, with the process of
//! each queue. Also computes the cost and the benefit of idling.

use iosched_sim::{QueueTotal, Span, SpanKind, Timeline};

/// A queue: the process for which the scheduler created it, and whether it has sync requests.
pub(crate) type Queue = (u32, bool);

/// A turn of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) queue: Queue,
}

/// A wait for the next request of the active queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// Whether the request came in time.
    pub(crate) paid: bool,
    /// Whether another queue preempted the active queue before the request came.
    pub(crate) preempted: bool,
    /// The active queue. `None` if the turn of the queue is no longer known.
    pub(crate) queue: Option<Queue>,
}

/// The time of a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preemption {
    pub(crate) at_ns: u64,
    /// Process for which the scheduler created the new queue.
    pub(crate) pid: u32,
}

/// All turns, waits and preemptions, in the order of their start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) turns: Vec<Turn>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) preemptions: Vec<Preemption>,
    /// Sums of the queues over the whole run, if the run counted them. `None` is the key of all
    /// queues that share one sum.
    counted: Vec<(Option<Queue>, Total)>,
}

/// Sums of a queue over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) turns: u64,
    pub(crate) active_ns: u64,
    pub(crate) paid_ns: u64,
    pub(crate) vain_ns: u64,
    pub(crate) preempted_ns: u64,
    /// Number of times that the queue preempted another queue.
    pub(crate) preemptions: u64,
}

impl Total {
    pub(crate) fn sum<'t>(totals: impl Iterator<Item = &'t Self>) -> Self {
        totals.fold(Self::default(), |sum, total| Self {
            turns: sum.turns + total.turns,
            active_ns: sum.active_ns + total.active_ns,
            paid_ns: sum.paid_ns + total.paid_ns,
            vain_ns: sum.vain_ns + total.vain_ns,
            preempted_ns: sum.preempted_ns + total.preempted_ns,
            preemptions: sum.preemptions + total.preemptions,
        })
    }
}

impl From<&QueueTotal> for Total {
    fn from(total: &QueueTotal) -> Self {
        Self {
            turns: total.turns,
            active_ns: total.active_ns,
            paid_ns: total.idle_paid_ns,
            vain_ns: total.idle_vain_ns,
            preempted_ns: total.idle_preempted_ns,
            preemptions: total.preemptions,
        }
    }
}

impl Turns {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let mut spans: Vec<&Span> = timeline.spans.iter().collect();
        spans.sort_by_key(|span| span.from_ns);
        let mut found = Self::default();
        for span in &spans {
            match span.kind {
                SpanKind::Active { pid, sync } => {
                    found.turns.push(Turn { from_ns: span.from_ns, to_ns: span.to_ns, queue: (pid, sync) });
                }
                SpanKind::Preempt { pid } => found.preemptions.push(Preemption { at_ns: span.from_ns, pid }),
                SpanKind::Idle { .. } => {}
            }
        }
        for span in spans {
            if let SpanKind::Idle { paid, preempted } = span.kind {
                let queue = found.turn_at(span.from_ns).map(|turn| turn.queue);
                found.waits.push(Wait { from_ns: span.from_ns, to_ns: span.to_ns, paid, preempted, queue });
            }
        }
        found.counted = timeline.totals.iter().map(|total| (total.queue, total.into())).collect();
        found
    }

    /// Returns the turn at a time: the last turn that began at or before this time, unless it has
    /// ended.
    fn turn_at(&self, at_ns: u64) -> Option<&Turn> {
        let after = self.turns.partition_point(|turn| turn.from_ns <= at_ns);
        self.turns[..after].last().filter(|turn| turn.to_ns >= at_ns)
    }

    /// Returns whether the sums cover the whole run, even if spans were dropped from the timeline.
    pub(crate) fn sums_are_whole(&self) -> bool {
        !self.counted.is_empty()
    }

    /// Returns the sum of each queue. The queues that were active longest come first. `None` is the
    /// key of all queues that share one sum.
    pub(crate) fn totals(&self) -> Vec<(Option<Queue>, Total)> {
        let mut totals = if self.sums_are_whole() { self.counted.clone() } else { self.totals_of_spans() };
        totals.sort_by_key(|(queue, total)| (std::cmp::Reverse(total.active_ns), *queue));
        totals
    }

    /// Returns the sums from spans, for timelines without totals.
    fn totals_of_spans(&self) -> Vec<(Option<Queue>, Total)> {
        let mut order: Vec<Queue> = self.turns.iter().map(|turn| turn.queue).collect();
        order.sort_unstable();
        order.dedup();
        // A preemption can be recorded even if the turn of its queue is too short to be recorded.
        let mut others: Vec<Queue> = self.preemptions.iter().map(|preemption| (preemption.pid, true)).collect();
        others.retain(|&(pid, _)| !order.iter().any(|queue| queue.0 == pid));
        order.append(&mut others);
        order.sort_unstable();
        order.dedup();
        order.into_iter().map(|queue| (Some(queue), self.total_of_spans(queue))).collect()
    }

    fn total_of_spans(&self, queue: Queue) -> Total {
        let mut total = Total::default();
        for turn in self.turns.iter().filter(|turn| turn.queue == queue) {
            total.turns += 1;
            total.active_ns += turn.to_ns - turn.from_ns;
        }
        for wait in self.waits.iter().filter(|wait| wait.queue == Some(queue)) {
            *if wait.paid { &mut total.paid_ns } else { &mut total.vain_ns } += wait.to_ns - wait.from_ns;
        }
        // A preemption names only the process of the new queue. If the process has a sync and an
        // async queue, the new queue is the sync queue.
        let has_sync = self.turns.iter().any(|turn| turn.queue == (queue.0, true));
        if queue.1 || !has_sync {
            total.preemptions = self.preemptions.iter().filter(|p| p.pid == queue.0).count() as u64;
        }
        total
    }

    /// Returns the end of the last turn or wait, ns.
    pub(crate) fn end_ns(&self) -> u64 {
        let turns = self.turns.iter().map(|turn| turn.to_ns);
        turns.chain(self.waits.iter().map(|wait| wait.to_ns)).max().unwrap_or(0)
    }

    /// Returns a window for a detailed view: the busiest second. The window is narrower if this
    /// second has more than `most` changes of turn, and wider if it has fewer than `fewest`. If the
    /// run is not much longer than the window, the window is the whole run.
    pub(crate) fn window(&self, end_ns: u64, fewest: usize, most: usize) -> (u64, u64) {
        const SECOND_NS: u64 = 1_000_000_000;
        // The lengths are 1, 2, 5, 10 and so on, from 1 ms.
        let lengths = (0..24u32).map(|i| [1, 2, 5][i as usize % 3] * 1_000_000 * 10u64.pow(i / 3));
        let lengths: Vec<u64> = lengths.collect();
        let mut number = lengths.iter().position(|&length| length == SECOND_NS).unwrap_or(0);
        let mut best = self.busiest(lengths[number]);
        while best.1 > most && number > 0 {
            number -= 1;
            best = self.busiest(lengths[number]);
        }
        while best.1 < fewest && number + 1 < lengths.len() && lengths[number] < end_ns {
            let wider = self.busiest(lengths[number + 1]);
            if wider.1 > most {
                break;
            }
            number += 1;
            best = wider;
        }
        let length = lengths[number];
        if end_ns <= length + length / 2 {
            return (0, end_ns.max(1));
        }
        let from = best.0.min(end_ns.saturating_sub(length));
        (from, from + length)
    }

    /// Returns the times at which a turn of another queue began.
    fn changes(&self) -> Vec<u64> {
        let other = |at: usize| at == 0 || self.turns[at - 1].queue != self.turns[at].queue;
        (0..self.turns.len()).filter(|&at| other(at)).map(|at| self.turns[at].from_ns).collect()
    }

    /// Returns the start of the window of `length_ns` with the most changes of turn, and the number
    /// of these changes.
    fn busiest(&self, length_ns: u64) -> (u64, usize) {
        // Consecutive turns of one queue do not count as changes, unless there are no other
        // changes.
        let changes = self.changes();
        let moments: Vec<u64> =
            if changes.len() < 2 { self.turns.iter().map(|turn| turn.from_ns).collect() } else { changes };
        let mut best = (0, 0);
        let mut end = 0;
        for (start, &from) in moments.iter().enumerate() {
            while end < moments.len() && moments[end] < from + length_ns {
                end += 1;
            }
            if end - start > best.1 {
                best = (from, end - start);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from_ns: u64, to_ns: u64, kind: SpanKind) -> Span {
        Span { from_ns, to_ns, kind }
    }

    fn example() -> Turns {
        let mut timeline = Timeline::default();
        // Spans of a timeline are in the order of their end.
        timeline.spans = vec![
            span(2, 5, SpanKind::Idle { paid: true, preempted: false }),
            span(7, 10, SpanKind::Idle { paid: false, preempted: false }),
            span(0, 10, SpanKind::Active { pid: 1, sync: true }),
            span(10, 10, SpanKind::Preempt { pid: 2 }),
            span(10, 40, SpanKind::Active { pid: 2, sync: true }),
            span(40, 45, SpanKind::Active { pid: 1, sync: false }),
        ];
        Turns::of(&timeline)
    }

    #[test]
    fn idle_time_is_counted_for_the_active_queue() {
        let totals = example().totals();
        assert_eq!(totals.iter().map(|t| t.0).collect::<Vec<_>>(), [(2, true), (1, true), (1, false)].map(Some));
        assert_eq!((totals[1].1.paid_ns, totals[1].1.vain_ns, totals[1].1.active_ns), (3, 3, 10));
        assert_eq!(totals.iter().map(|t| t.1.preemptions).collect::<Vec<_>>(), [1, 0, 0]);
    }

    #[test]
    fn window_is_the_busiest_part_of_a_long_trace() {
        assert_eq!(example().window(45, 1, 100), (0, 45));
        let busy = |i: u64| Turn {
            from_ns: 50_000_000_000 + i * 10_000_000,
            to_ns: 50_000_000_000,
            queue: (i as u32 % 2, true),
        };
        let quiet = |i: u64| Turn { from_ns: i * 1_000_000_000, to_ns: i * 1_000_000_000, queue: (i as u32 % 2, true) };
        let turns = Turns { turns: (0..50).map(quiet).chain((0..40).map(busy)).collect(), ..Turns::default() };
        let (from, to) = turns.window(60_000_000_000, 20, 100);
        assert_eq!((from, to), (50_000_000_000, 51_000_000_000));
    }
}
