use super::*;
use crate::app::tests::drive;

fn phase(name: &'static str, tasks: usize) -> Phase {
    Phase {
        name,
        tasks,
        action: Action::Read,
        order: Order::Once,
        block_bytes: 4_096,
        file_bytes_max: u64::MAX,
        flags: OpenFlags::default(),
        requests: None,
        duration_ns: None,
        compute_ns: 0,
        syncs: Syncs::default(),
        has_latency: true,
    }
}

fn plan(tasks: usize, phases: Vec<Phase>) -> Plan {
    let report = |_: &[PhaseResult]| Report::default();
    Plan { program: "p", files: vec![8_192; 3], files_exist: true, tasks, phases, report, notes: Vec::new() }
}

#[test]
fn phase_starts_when_all_tasks_finished_the_previous_one() {
    let phases = vec![phase("first", 3), phase("second", 1), phase("third", 3)];
    let mut app = Phased::new(plan(3, phases), 1);
    let mut reads = Vec::new();
    drive(&mut app, |timed| {
        if matches!(timed.call, Call::Read { .. }) {
            reads.push((timed.at_ns, timed.task));
        }
        // The tasks have different speeds.
        1_000 * (timed.task as u64 + 1)
    });
    assert_eq!(reads.len(), 18);
    assert!(reads[6..12].iter().all(|&(_, task)| task == 0), "{reads:?}");
    let results: Vec<_> =
        app.results.iter().map(|result| (result.name, result.reads, result.latency.count())).collect();
    assert_eq!(results, [("first", 6, 6), ("second", 6, 6), ("third", 6, 6)]);
    let gaps = app.results.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns);
    assert!(gaps, "a phase begins after the end of the previous phase");
}

#[test]
fn rewrite_writes_each_block_after_its_read() {
    let mut app = Phased::new(plan(1, vec![Phase { action: Action::Rewrite, ..phase("rewrite", 1) }]), 1);
    let mut offsets = Vec::new();
    drive(&mut app, |timed| {
        match timed.call {
            Call::Read { offset, .. } => offsets.push(('r', offset)),
            Call::Write { offset, .. } => offsets.push(('w', offset)),
            _ => {}
        }
        1_000
    });
    let once = [('r', 0), ('w', 0), ('r', 4_096), ('w', 4_096)];
    assert_eq!(offsets, [once, once, once].concat());
}
