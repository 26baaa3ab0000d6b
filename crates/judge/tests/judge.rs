//! Tests of whole judgements.

use std::collections::VecDeque;

use iosched::{Elevator, Env, Registered, Registry, RequestId};
use iosched_judge::comparisons::{Cell, LINUX};
use iosched_judge::cost::Counter;
use iosched_judge::{DEVICES, JudgeError, JudgeRequest, Judgement, Part, WORKLOADS, judge};
use iosched_lab::{Control, Verdict};

/// An elevator that serves the newest request first, so that old requests starve.
#[derive(Default)]
struct NewestFirst {
    queued: VecDeque<RequestId>,
}

impl Elevator for NewestFirst {
    fn insert(&mut self, _: &mut Env, id: RequestId) {
        self.queued.push_back(id);
    }

    fn dispatch(&mut self, _: &mut Env) -> Option<RequestId> {
        self.queued.pop_back()
    }

    fn absorb(&mut self, _: &mut Env, _: RequestId, absorbed: RequestId) {
        self.queued.retain(|&id| id != absorbed);
    }
}

/// An elevator that forgets one of every thousand requests, and never dispatches it.
#[derive(Default)]
struct Forgetful {
    queued: VecDeque<RequestId>,
    inserted: u64,
}

impl Elevator for Forgetful {
    fn insert(&mut self, _: &mut Env, id: RequestId) {
        self.inserted += 1;
        if !self.inserted.is_multiple_of(1_000) {
            self.queued.push_back(id);
        }
    }

    fn dispatch(&mut self, _: &mut Env) -> Option<RequestId> {
        self.queued.pop_front()
    }

    fn absorb(&mut self, _: &mut Env, _: RequestId, absorbed: RequestId) {
        self.queued.retain(|&id| id != absorbed);
    }
}

fn registry() -> Registry {
    let mut registry = Registry::linux();
    registry.add(Registered::new("newest", &|_| Box::new(NewestFirst::default()))).unwrap();
    registry.add(Registered::new("forgetful", &|_| Box::new(Forgetful::default()))).unwrap();
    registry
}

/// A small judgement without comparisons, which take longest.
fn judged(schedulers: &[&str]) -> Judgement {
    let mut request = JudgeRequest::new(registry(), schedulers);
    (request.tries, request.operations, request.compare) = (4, 30_000, false);
    all_parts(&request)
}

/// Makes a judgement, and checks that the request has the right number of parts.
fn all_parts(request: &JudgeRequest) -> Judgement {
    let mut parts = 0;
    let judgement = judge(request, &Control::new(2), |_| parts += 1).unwrap();
    if !judgement.is_broken() {
        assert_eq!(parts, request.parts());
    }
    judgement
}

#[test]
fn a_scheduler_that_loses_requests_breaks_a_rule() {
    let judgement = judged(&["forgetful", "noop"]);
    let violations: Vec<_> = judgement.cards.iter().map(|card| card.rules.clone().unwrap().violation).collect();
    assert!(judgement.is_broken() && violations[0].is_some() && violations[1].is_none(), "{violations:?}");
}

#[test]
fn the_search_finds_unbounded_waits() {
    let judgement = judged(&["newest", "mq-deadline"]);
    let grows = |card: usize| judgement.cards[card].waits.iter().filter(|wait| wait.grows).count();
    assert!(grows(0) > 0, "{:?}", judgement.cards[0].waits);
    assert_eq!(grows(1), 0, "{:?}", judgement.cards[1].waits);
}

#[test]
fn bfq_shares_by_weight_but_scheduler_none_does_not() {
    let judgement = judged(&["bfq", "none"]);
    let share = |card: usize| {
        let shares = &judgement.cards[card].shares;
        shares.iter().find(|share| share.rivalry.contains("weight") && share.device == "sata-7200").unwrap().first
    };
    assert!(share(0) > 0.75 && (0.4..0.6).contains(&share(1)), "{} {}", share(0), share(1));
}

#[test]
fn cards_are_the_same_with_1_and_3_jobs() {
    let text = |jobs| {
        let mut request = JudgeRequest::new(registry(), &["kyber"]);
        (request.tries, request.operations, request.compare) = (3, 20_000, false);
        judge(&request, &Control::new(jobs), |_| ()).unwrap().markdown()
    };
    assert_eq!(text(1), text(3));
}

#[test]
fn unknown_schedulers_and_single_runs_are_refused() {
    let refused = |schedulers: &[&str], runs| {
        let mut request = JudgeRequest::new(registry(), schedulers);
        request.runs = runs;
        judge(&request, &Control::new(1), |_| ()).unwrap_err()
    };
    assert!(matches!(refused(&[], 5), JudgeError::Nothing));
    assert!(matches!(refused(&["bfq"], 1), JudgeError::Runs(1)));
    assert!(refused(&["fifo"], 5).to_string().starts_with("there is no scheduler \"fifo\"; available: noop"));
}

#[test]
fn an_interrupted_judgement_is_marked_incomplete() {
    let control = Control::new(1);
    let request = JudgeRequest::new(registry(), &["none"]);
    let judgement = judge(&request, &control, |part| {
        if matches!(part, Part::Comparison { number: 1, .. }) {
            control.interrupt();
        }
    });
    let judgement = judgement.unwrap();
    assert!(!judgement.complete && judgement.compared.is_empty());
}

#[test]
fn a_failed_instruction_count_keeps_the_other_parts() {
    let mut request = JudgeRequest::new(registry(), &["newest"]);
    (request.tries, request.operations, request.compare) = (1, 1_000, false);
    request.counter = Some(Counter { program: vec!["/nonexistent/program".into()] });
    let judgement = all_parts(&request);
    let card = &judgement.cards[0];
    assert!(judgement.complete && card.cost.is_empty() && !card.shares.is_empty() && !card.waits.is_empty());
    assert!(card.cost_failure.as_ref().is_some_and(|failure| failure.contains("valgrind")), "{card:?}");
    assert!(judgement.markdown().contains("\nInstructions: the count failed. valgrind"));
}

#[test]
fn a_card_has_every_workload_on_every_device() {
    let mut request = JudgeRequest::new(registry(), &["newest"]);
    (request.runs, request.tries, request.operations, request.time_percent) = (2, 1, 1_000, 5);
    let judgement = all_parts(&request);
    assert_eq!(judgement.compared.len(), WORKLOADS.len() * DEVICES.len());
    for compared in &judgement.compared {
        let baseline = compared.cell(compared.baseline).unwrap();
        assert_eq!((baseline.verdict, compared.cells.len()), (None, 5), "{compared:?}");
        assert!(compared.cells.iter().all(|cell| cell.mean > 0.0), "{compared:?}");
        for cell in &compared.cells {
            let others: Vec<_> = LINUX.into_iter().filter(|linux| *linux != cell.scheduler).collect();
            let with: Vec<_> = cell.differences.iter().map(|difference| difference.with).collect();
            assert_eq!(with, others, "{compared:?}");
            let with_default = cell.compared_with(compared.baseline);
            assert_eq!(cell.verdict, with_default.map(|difference| difference.verdict));
            for difference in &cell.differences {
                let other = compared.cell(difference.with).unwrap().mean;
                let percent = (cell.mean / other - 1.0) * 100.0;
                assert!((difference.percent.unwrap() - percent).abs() < 0.01, "{percent}: {compared:?}");
            }
        }
    }
    // The same decisions give exactly the same values, so the verdict must not be *cannot tell*,
    // whatever the error of the model.
    let hidden = |cell: &Cell| cell.verdict == Some(Verdict::CannotTell) && cell.percent == Some(0.0);
    assert!(!judgement.compared.iter().flat_map(|compared| &compared.cells).any(hidden));
    let worse = judgement
        .compared
        .iter()
        .filter(|compared| compared.cell("newest").is_some_and(|cell| cell.verdict == Some(Verdict::Worse)));
    assert!(worse.count() > 5);
}

#[test]
fn the_how_to_page_has_the_program_of_the_example() {
    let page = include_str!("../../../docs/elevator-howto.md");
    let example = include_str!("../examples/judge_sedf.rs");
    let (_, rest) = page.split_once("```rs\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    let in_example = |line: &str| line.replace("std::process::", "").replace("(SEDF)", "(sedf::SEDF)");
    assert!(example.contains(&in_example(program)), "{}", in_example(program));
}

/// Schedulers on the page of report cards.
const OF_PAGE: [&str; 6] = ["adios", "bfq", "kyber", "mq-deadline", "cfq", "mclock"];

#[test]
fn the_report_card_page_has_all_parts_of_each_card() {
    let page = include_str!("../../../docs/report-cards.md");
    let heads: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(heads, OF_PAGE);
    for scheduler in OF_PAGE {
        let (_, card) = page.split_once(&format!("\n## {scheduler}\n")).unwrap();
        let card = card.split("\n## ").next().unwrap();
        let has = |line: &str| assert!(card.contains(line), "{scheduler}: {line}");
        has("\n\nRules: no rule was broken in ");
        for base in ["none", "mq-deadline", "kyber", "bfq"].into_iter().filter(|base| *base != scheduler) {
            let (_, table) = card.split_once(&format!("\n| compared with {base} | metric |")).unwrap();
            let table = table.split("\n\n").next().unwrap();
            assert!(DEVICES.iter().all(|device| table.lines().next().unwrap().contains(device)), "{scheduler}");
            for workload in WORKLOADS {
                assert!(table.contains(&format!("\n| {} | {} | ", workload.name, workload.goal)), "{scheduler}");
            }
        }
        has("\n| share of the first process or cgroup |");
        has("\n| device | victim | longest wait found |");
        has("\n| load | instructions per request:");
    }
}
