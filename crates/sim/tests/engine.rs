//! Properties of the engine, with small workloads on a device of fixed latency.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iosched::{Decision, Flags, Op, Time};
use iosched_disk::Profile;
use iosched_sim::{BlockLayer, Decisions, Limit, Note, Plan, Replay, RunResult, SimError, Timeline, check, run};
use iosched_trace::TraceRequest;
use iosched_workload::{TaskSet, Trace, Workload};
use proptest::prelude::*;

/// Returns a device of queue depth `depth` that serves one command at a time. A command takes 1,000
/// ns, and 10 ns for each sector.
fn fixed(depth: u32) -> Profile {
    let text = format!("kind = \"fixed\"\n[fixed]\ndepth = {depth}\nparallel = 1\nlat_ns = 1000\nns_per_sector = 10\n");
    Profile::parse("fixed", &text).unwrap()
}

fn tasks(text: &str) -> Workload {
    Workload::Tasks(TaskSet::parse("tasks.toml", text).unwrap().into())
}

fn plan<'a>(workload: &'a Workload, profile: &'a Profile, setting: &str) -> Plan<'a> {
    Plan::new(workload, profile, setting.parse().unwrap())
}

/// Returns a submission of the process `pid` with its arrival time, sector and latency.
fn request(arrival_ns: u64, pid: u32, sector: u64, latency_ns: Option<u64>) -> TraceRequest {
    let (op, flags, nr_sectors) = (Op::Read, Flags::SYNC, 8);
    TraceRequest {
        arrival: Time::from_ns(arrival_ns),
        pid,
        device: None,
        op,
        flags,
        sector,
        nr_sectors,
        latency_ns,
        ioprio: None,
    }
}

fn trace(requests: &[TraceRequest]) -> Workload {
    Workload::Trace(Arc::new(Trace::collect("t", 1, requests.iter().copied().map(Ok)).unwrap()))
}

/// Returns the events of a run with their times: inserts `+`, dispatches `>` and completions `-`.
fn story(plan: &Plan<'_>) -> String {
    let mut text = Vec::new();
    let watch = Decisions(|now_ns: u64, decision: &Decision| match decision {
        Decision::Insert { cookie, .. } => text.push(format!("{now_ns}+{cookie}")),
        Decision::Merge { cookie, .. } => text.push(format!("{now_ns}m{cookie}")),
        Decision::Dispatch { cookie, .. } => text.push(format!("{now_ns}>{cookie}")),
        Decision::Complete { cookie } => text.push(format!("{now_ns}-{cookie}")),
        _ => {}
    });
    run(plan, watch).unwrap();
    text.join(" ")
}

#[test]
fn completions_precede_other_events_at_equal_times() {
    // The first I/O completes at 1080. The other I/Os arrive at exactly this time, each in a
    // separate event.
    let workload =
        tasks("arrivals = [[0,1,\"read\",true,0,8], [1080,2,\"read\",true,100,8], [1080,3,\"read\",true,200,8]]");
    let profile = fixed(1);
    let events = story(&plan(&workload, &profile, "noop"));
    assert_eq!(events, "0+1 0>1 1080-1 1080+2 1080>2 1080+3 2160-2 2160>3 3240-3");
}

#[test]
fn events_scheduled_before_the_run_precede_others() {
    // Task 1 continues without think time after the completion at 1080. The arrival at 1080 was
    // scheduled before the run, so it comes first.
    let text = "arrivals = [[1080,2,\"read\",true,100,8]]\n[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 2\n";
    let (workload, profile) = (tasks(text), fixed(1));
    let events = story(&plan(&workload, &profile, "noop"));
    assert_eq!(events, "0+1 0>1 1080-1 1080+2 1080>2 1080+3 2160-2 2160>3 3240-3");
}

#[test]
fn next_batch_starts_when_as_many_ios_complete() {
    let text =
        "[[tasks]]\npid = 1\npattern = \"stride\"\nstride = 100\ntotal = 4\niodepth = 2\nbatch = 2\nthink_ns = 5\n";
    let (workload, profile) = (tasks(text), fixed(1));
    let events = story(&plan(&workload, &profile, "noop"));
    assert_eq!(events, "0+1 0+2 0>1 1080-1 1080>2 2160-2 2165+3 2165+4 2165>3 3245-3 3245>4 4325-4");
}

#[test]
fn relaying_tasks_alternate_with_think_time() {
    // The writer makes one I/O, then the journal makes two I/Os, then the writer makes its next
    // I/O. The run ends when the writer has made three I/Os.
    let text = "[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 3\nthink_ns = 5\nrelay = 2\nrelay_n = 2\n\
                [[tasks]]\npid = 2\npattern = \"seq\"\nstart_sector = 900\ntotal = 9\niodepth = 0\nthink_ns = 7\nrelay = 1\n";
    let (workload, profile) = (tasks(text), fixed(1));
    let events = story(&plan(&workload, &profile, "noop:nomerges=2"));
    assert_eq!(
        events,
        "0+1 0>1 1080-1 1085+2 1085+3 1085>2 2165-2 2165>3 3245-3 3252+4 3252>4 4332-4 4337+5 4337+6 4337>5 5417-5 \
         5417>6 6497-6 6504+7 6504>7 7584-7 7589+8 7589+9 7589>8 8669-8 8669>9 9749-9"
    );
}

#[test]
fn each_completion_wakes_one_io_of_the_woken_task() {
    let text = "[[tasks]]\npid = 1\npattern = \"stride\"\nstride = 100\ntotal = 2\niodepth = 2\nthink_ns = 5\nwakes = 2\n\
                [[tasks]]\npid = 2\npattern = \"seq\"\nstart_sector = 900\ntotal = 1\niodepth = 0\nwakes = 1\n";
    let (workload, profile) = (tasks(text), fixed(1));
    let events = story(&plan(&workload, &profile, "noop"));
    assert_eq!(events, "0+1 0+2 0>1 1080-1 1080>2 1085+3 2160-2 2160>3 3240-3", "two wakings, but one I/O is left");
}

#[test]
fn plug_sorts_a_batch_and_can_be_disabled() {
    let text = "[[tasks]]\npid = 1\npattern = \"stride\"\nstart_sector = 100\nstride = -50\ntotal = 2\niodepth = 2\n";
    let (workload, profile) = (tasks(text), fixed(1));
    let mut plan = plan(&workload, &profile, "noop");
    assert!(story(&plan).starts_with("0+2 0+1 0>2"));
    plan.block_layer = BlockLayer { plug: false, ..BlockLayer::default() };
    assert!(story(&plan).starts_with("0+1 0>1 0+2"));
}

#[test]
fn split_io_completes_with_its_last_part() {
    let text = "[[tasks]]\npid = 1\npattern = \"seq\"\nnr_sectors = 20\ntotal = 2\n";
    let (workload, profile) = (tasks(text), fixed(8));
    let plan = plan(&workload, &profile, "noop:max_sectors_kb=4,nomerges=2");
    assert!(story(&plan).starts_with("0+1 0>1 0+2 0>2 0+3 0>3 1080-1 2160-2 3200-3 3200+4"));
    let result = run(&plan, ()).unwrap();
    assert_eq!((result.ios, result.requests_dispatched, result.bytes_read), (2, 6, 2 * 20 * 512));
    assert_eq!(result.latency.reads.max_ns(), 3200);
    assert_eq!(result.notes, [Note::Split { ios: 2, parts: 6, max_sectors_kb: 4 }]);
}

#[test]
fn task_waits_for_a_full_queue_and_completes_all_ios() {
    let text = "[[tasks]]\npid = 1\npattern = \"stride\"\nstride = 100\ntotal = 500\niodepth = 60\n\
        [[tasks]]\npid = 2\npattern = \"random\"\ntotal = 500\niodepth = 60\n";
    let (workload, profile) = (tasks(text), fixed(2));
    for scheduler in ["noop", "deadline", "cfq"] {
        let mut waiting_max = 0;
        let setting = format!("{scheduler}:nr_requests=4");
        let mut timeline = Timeline::default();
        let result = run(&plan(&workload, &profile, &setting), &mut timeline).unwrap();
        timeline.bins.iter().for_each(|bin| waiting_max = waiting_max.max(bin.waiting_max));
        assert_eq!(result.tasks.iter().map(|task| task.ios).collect::<Vec<_>>(), [500, 500]);
        assert!(result.notes.iter().any(|note| matches!(note, Note::WaitedForAllocation { .. })), "{:?}", result.notes);
        // Batching lets at most 1.5 times nr_requests through.
        assert!(waiting_max <= 6, "{scheduler}: {waiting_max}");
    }
}

#[test]
fn task_exit_during_a_wait_does_not_block_other_tasks() {
    let text = "[[tasks]]\npid = 1\npattern = \"random\"\ntotal = 900\niodepth = 300\nexit_ns = 20_000\nnr_sectors = 700\n\
        [[tasks]]\npid = 2\npattern = \"random\"\ntotal = 100\nstart_ns = 10_000\n";
    let (workload, profile) = (tasks(text), fixed(2));
    for scheduler in ["noop", "deadline", "cfq"] {
        let setting = format!("{scheduler}:nr_requests=8,max_sectors_kb=64");
        let result = run(&plan(&workload, &profile, &setting), ()).unwrap();
        assert_eq!(result.tasks[1].ios, 100, "{scheduler}");
        assert!(result.tasks[0].ios < 20, "{scheduler}: {}", result.tasks[0].ios);
    }
}

#[test]
fn closed_loop_keeps_think_time_and_stops_at_end_ns() {
    let text = "end_ns = 5_000\n[[tasks]]\npid = 1\npattern = \"seq\"\nthink_ns = 500\n";
    let (workload, profile) = (tasks(text), fixed(4));
    assert_eq!(
        story(&plan(&workload, &profile, "noop")),
        "0+1 0>1 1080-1 1580+2 1580>2 2660-2 3160+3 3160>3 4240-3 4740+4 4740>4 5820-4"
    );
}

#[test]
fn limits_stop_submission_with_a_note() {
    let (workload, profile) = (tasks("[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 1000\niodepth = 4\n"), fixed(4));
    let base = plan(&workload, &profile, "noop");
    let by_ios = run(&Plan { limit: Limit { ios: Some(10), time_ns: None }, ..base.clone() }, ()).unwrap();
    assert_eq!(by_ios.ios, 10);
    assert!(matches!(by_ios.notes[..], [Note::Limited { ios: 10, .. }]), "{:?}", by_ios.notes);
    let by_time = run(&Plan { limit: Limit { ios: None, time_ns: Some(20_000) }, ..base }, ()).unwrap();
    assert!(by_time.finished_ns < 30_000 && by_time.ios < 100);
}

#[test]
fn ios_and_time_of_the_warm_up_do_not_count() {
    // An I/O every 1,080 ns, one after the other.
    let (workload, profile) = (tasks("[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 1000\n"), fixed(1));
    let whole = run(&plan(&workload, &profile, "noop"), ()).unwrap();
    let warm_up_ns = 500 * 1_080 + 40;
    let rest = run(&Plan { warm_up_ns, ..plan(&workload, &profile, "noop") }, ()).unwrap();
    assert_eq!((rest.finished_ns, rest.counted_from_ns), (whole.finished_ns, warm_up_ns));
    assert_eq!((rest.ios, rest.requests_dispatched, rest.queue.reads.ios), (500, 499, 500));
    assert_eq!(rest.device_busy_ns, rest.counted_ns());
    assert_eq!((rest.utilisation(), whole.utilisation()), (Some(1.0), Some(1.0)));
    let none = run(&Plan { warm_up_ns: u64::MAX, ..plan(&workload, &profile, "noop") }, ()).unwrap();
    assert_eq!((none.ios, none.counted_ns(), none.utilisation()), (0, 0, None));
}

#[test]
fn an_interrupt_ends_the_run() {
    let (workload, profile) = (tasks("[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 1_000_000\n"), fixed(1));
    let flag = AtomicBool::new(true);
    let plan = Plan { interrupt: Some(&flag), ..plan(&workload, &profile, "noop") };
    assert!(matches!(run(&plan, ()), Err(SimError::Interrupted { events: 65_536, .. })));
}

#[test]
fn check_rejects_plans_with_values_out_of_range() {
    let (workload, profile) = (tasks("[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 1\n"), fixed(1));
    let base = plan(&workload, &profile, "noop");
    let wrong = |plan: Plan<'_>| check(&plan).unwrap_err().to_string();
    let speed = Plan { replay: Replay::Open { speed: 0.0 }, ..base.clone() };
    assert_eq!(wrong(speed), "speed: 0 is out of range; it must be from 0.000001 to 1,000,000");
    assert!(
        wrong(Plan { block_layer: BlockLayer { hz: 0, ..BlockLayer::default() }, ..base.clone() }).starts_with("hz: 0")
    );
    let setting = "noop:max_sectors_kb=65536".parse().unwrap();
    assert!(wrong(Plan { scheduler: setting, ..base }).contains("max_sectors_kb: 65536 is out of range"));
}

#[test]
fn open_replay_keeps_recorded_times_divided_by_speed() {
    let requests = [request(500, 1, 0, None), request(4_500, 2, 800, None), request(10_500, 1, 1600, None)];
    let (workload, profile) = (trace(&requests), fixed(1));
    let mut plan = plan(&workload, &profile, "noop");
    assert_eq!(story(&plan), "0+1 0>1 1080-1 4000+2 4000>2 5080-2 10000+3 10000>3 11080-3");
    plan.replay = Replay::Open { speed: 2.0 };
    assert_eq!(story(&plan), "0+1 0>1 1080-1 2000+2 2000>2 3080-2 5000+3 5000>3 6080-3");
}

#[test]
fn closed_replay_keeps_think_time_after_completions() {
    // In the recording, I/O 1 completes at 100. I/O 2 is sent at 150, after a think time of 50. I/O
    // 3 is sent 20 later, while I/O 2 is in flight.
    let requests = [
        request(0, 1, 0, Some(100)),
        request(150, 1, 800, Some(500)),
        request(170, 1, 1600, Some(10)),
        request(400, 1, 2400, Some(10)),
        request(5_000, 2, 3200, None),
    ];
    let (workload, profile) = (trace(&requests), fixed(1));
    let plan = Plan { replay: Replay::Closed, ..plan(&workload, &profile, "noop") };
    // In the recording, I/O 3 comes 70 after the completion of I/O 1. I/O 4 comes after the
    // completions of I/Os 1 and 3, and 220 after the completion of I/O 3 at 180. In this run, I/O 2
    // completes second. Process 2 arrives at its recorded time.
    let events = story(&plan);
    assert_eq!(
        events,
        "0+1 0>1 1080-1 1130+2 1130>2 1150+3 2210-2 2210>3 2430+4 3290-3 3290>4 4370-4 5000+5 5000>5 6080-5"
    );
    let result = run(&plan, ()).unwrap();
    assert_eq!(result.notes, [Note::CompletionsUnknown { ios: 1 }]);
}

#[test]
fn open_replay_counts_latency_from_the_arrival() {
    let requests: Vec<_> =
        (0..2_000).map(|i| request(i * 10, (i % 3) as u32, (i * 7919) % 100_000 * 8, None)).collect();
    let (workload, profile) = (trace(&requests), fixed(1));
    let result = run(&plan(&workload, &profile, "noop:nomerges=2"), ()).unwrap();
    assert_eq!(result.ios, 2_000);
    // An I/O takes 1080 ns, but one I/O arrives every 10 ns. The last I/O waits for almost the
    // whole run.
    assert_eq!(result.finished_ns, 2_000 * 1_080);
    assert!(result.latency.reads.max_ns() > 2_000_000);
    assert!(matches!(result.notes[..], [Note::WaitedForAllocation { ios: 1_000.., .. }]), "{:?}", result.notes);
}

#[test]
fn trace_from_a_larger_disk_is_fitted_with_a_note() {
    let text = "kind = \"fixed\"\n[fixed]\ndepth = 1\nparallel = 1\nlat_ns = 1000\nns_per_sector = 10\ncapacity_sectors = 100000\n";
    let profile = Profile::parse("small", text).unwrap();
    let workload = trace(&[request(0, 1, 0, None), request(10, 1, 2_000_000, None)]);
    let result = run(&plan(&workload, &profile, "noop"), ()).unwrap();
    assert!(matches!(
        result.notes[..],
        [Note::GapsShrunk { recorded_sectors: 2_000_008, capacity_sectors: 100_000, .. }]
    ));
    let workload = tasks("[[tasks]]\npid = 1\npattern = \"seq\"\nstart_sector = 99_990\ntotal = 3\n");
    let result = run(&plan(&workload, &profile, "noop"), ()).unwrap();
    assert_eq!(result.notes, [Note::PastEnd { ios: 2, capacity_sectors: 100_000 }]);
}

#[test]
fn arrivals_keep_their_order_within_the_resolution() {
    let requests: Vec<_> = (0..50).map(|i| request(i / 3 * 1_000, i as u32, i * 800, None)).collect();
    let trace = Trace::collect("t", 1_000, requests.iter().copied().map(Ok)).unwrap();
    let (workload, profile) = (Workload::Trace(Arc::new(trace)), fixed(64));
    let submitted = |seed| {
        let plan = Plan { seed, ..plan(&workload, &profile, "noop") };
        let tasks = run(&plan, ()).unwrap().tasks;
        tasks.iter().map(|task| task.first_submit_ns.unwrap()).collect::<Vec<_>>()
    };
    let (one, other) = (submitted(1), submitted(2));
    assert!(one != other && one == submitted(1));
    assert!(one.is_sorted());
    assert!(one.iter().zip(0u64..).all(|(&at_ns, i)| at_ns - i / 3 * 1_000 < 1_000));
}

#[test]
fn only_runs_one_process_of_a_workload() {
    let requests: Vec<_> = (0..60).map(|i| request(i * 1_000, (i % 3) as u32, i * 8_000, None)).collect();
    let (workload, profile) = (trace(&requests), fixed(4));
    let alone = workload.only(1).unwrap();
    let result = run(&plan(&alone, &profile, "noop"), ()).unwrap();
    assert_eq!((result.tasks.len(), result.tasks[0].pid, result.ios), (1, 1, 20));
    assert_eq!(result.tasks[0].first_submit_ns, Some(1_000));
    assert!(workload.only(3).is_none());
    let text = "arrivals = [[5,2,\"read\",true,0,8]]\n[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 3\n";
    let alone = tasks(text).only(1).unwrap();
    assert_eq!(run(&plan(&alone, &profile, "noop"), ()).unwrap().ios, 1);
}

#[test]
fn discard_is_not_split_at_max_sectors() {
    let discard = TraceRequest { op: Op::Discard, nr_sectors: 1 << 20, ..request(0, 1, 0, None) };
    let (workload, profile) = (trace(&[discard]), fixed(1));
    assert_eq!(run(&plan(&workload, &profile, "noop"), ()).unwrap().requests_dispatched, 1);
}

#[test]
fn timeline_sums_match_the_result_and_bins_are_limited() {
    let text = "[[tasks]]\npid = 1\npattern = \"random\"\ntotal = 3000\nthink_ns = 900_000\n\
        [[tasks]]\npid = 2\npattern = \"seq\"\ntotal = 3000\nop = \"write\"\nthink_ns = [0, 1_000_000]\n";
    let (workload, profile) = (tasks(text), fixed(4));
    let mut timeline = Timeline::default();
    let result = run(&plan(&workload, &profile, "cfq:slice_idle=1"), &mut timeline).unwrap();
    let bins = &timeline.bins;
    assert!(bins.len() <= 1024 && bins.len() > 256 && timeline.head.len() == bins.len());
    assert_eq!(bins.iter().map(|bin| bin.bytes_read).sum::<u64>(), result.bytes_read);
    assert_eq!(bins.iter().map(|bin| bin.bytes_written).sum::<u64>(), result.bytes_written);
    assert_eq!(bins.iter().map(|bin| bin.dispatched).sum::<u64>(), result.requests_dispatched);
    let io = &timeline.io;
    assert!(io.bins.len() <= 512 && io.bins.iter().map(|bin| bin.ios).sum::<u64>() == result.ios);
    let under_way: u64 = io.bins.iter().map(|bin| bin.under_way_ns).sum();
    assert_eq!(under_way, result.latency.all().sum_ns());
    assert_eq!(io.sizes.iter().map(|class| class.reads.count() + class.writes.count()).sum::<u64>(), result.ios);
    for (task, bins) in result.tasks.iter().zip(&timeline.tasks) {
        assert_eq!(bins.bytes.iter().sum::<u64>(), task.bytes_read + task.bytes_written);
    }
    assert!(timeline.spans.len() < 8192 && timeline.spans.iter().all(|span| span.from_ns <= span.to_ns));
    let text = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::to_string(&serde_json::from_str::<Timeline>(&text).unwrap()).unwrap(), text);
}

fn bytes(result: &RunResult) -> String {
    serde_json::to_string(result).unwrap()
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    let workload = tasks("[[tasks]]\npid = 1\npattern = \"random\"\ntotal = 300\niodepth = 8\n");
    let profile = Profile::named("sata-7200").unwrap();
    let with_seed = |seed| bytes(&run(&Plan { seed, ..plan(&workload, &profile, "cfq") }, ()).unwrap());
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
    let result: RunResult = serde_json::from_str(&with_seed(1)).unwrap();
    assert_eq!(bytes(&result), with_seed(1));
}

#[test]
fn observers_do_not_change_the_result() {
    let workload = tasks(
        "[[tasks]]\npid = 1\npattern = \"random\"\ntotal = 300\n[[tasks]]\npid = 2\npattern = \"seq\"\ntotal = 300\n",
    );
    let profile = fixed(4);
    let plan = plan(&workload, &profile, "cfq");
    assert_eq!(run(&plan, ()).unwrap(), run(&plan, (Timeline::default(), Timeline::default())).unwrap());
}

/// Returns the submissions of a run with their latencies, as a trace of the run would contain them.
fn recording(plan: &Plan<'_>) -> Vec<TraceRequest> {
    let mut requests: Vec<TraceRequest> = Vec::new();
    let watch = Decisions(|now_ns: u64, decision: &Decision| match *decision {
        Decision::Insert { pid, sector, nr_sectors, .. } => {
            requests.push(TraceRequest { nr_sectors, ..request(now_ns, pid, sector, None) });
        }
        Decision::Complete { cookie } => {
            let request = &mut requests[cookie as usize - 1];
            request.latency_ns = Some(now_ns - request.arrival.as_ns());
        }
        _ => {}
    });
    run(plan, watch).unwrap();
    requests
}

prop_compose! {
    fn any_request()(gap_ns in 0u64..200_000, pid in 0u32..4, op in 0usize..8, sector in 0u64..40_000,
                     nr_sectors in 1u32..600, flags in 0u8..64, latency_ns in proptest::option::of(0u64..500_000))
                    -> (u64, TraceRequest) {
        let op = [Op::Read, Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush][op];
        let flags = Flags::from_bits_truncate(flags);
        // Only writes have FUA and PREFLUSH.
        let flags = if op == Op::Write { flags } else { flags - Flags::FUA - Flags::PREFLUSH };
        let (sector, nr_sectors) = if op == Op::Flush { (0, 0) } else { (sector, nr_sectors) };
        (gap_ns, TraceRequest { arrival: Time::ZERO, pid, device: None, op, flags, sector, nr_sectors, latency_ns, ioprio: None })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn replay_completes_every_io_once_under_any_scheduler(
        items in proptest::collection::vec(any_request(), 1..300),
        scheduler in proptest::sample::select(vec!["noop", "deadline", "cfq", "cfq:slice_idle=0,quantum=1"]),
        nr_requests in proptest::sample::select(vec![4u32, 16, 128]),
        hdd in any::<bool>(),
        closed in any::<bool>(),
    ) {
        let mut at_ns = 0;
        let requests: Vec<TraceRequest> = items.iter().map(|(gap_ns, request)| {
            at_ns += gap_ns;
            TraceRequest { arrival: Time::from_ns(at_ns), ..*request }
        }).collect();
        let workload = trace(&requests);
        let profile = if hdd { Profile::named("sata-7200").unwrap() } else { fixed(4) };
        let mut plan = plan(&workload, &profile, scheduler);
        plan.scheduler.set("nr_requests", &nr_requests.to_string()).unwrap();
        plan.scheduler.set("max_sectors_kb", "128").unwrap();
        plan.replay = if closed { Replay::Closed } else { Replay::default() };
        let result = run(&plan, ()).unwrap();
        prop_assert_eq!(result.ios, requests.len() as u64);
        let sum = |op| requests.iter().filter(|r| r.op == op).map(|r| u64::from(r.nr_sectors) * 512).sum::<u64>();
        prop_assert_eq!(result.bytes_read, sum(Op::Read));
        prop_assert_eq!(result.bytes_written, sum(Op::Write));
        prop_assert_eq!(result.latency.all().count(), result.ios);
        prop_assert!(result.device_busy_ns <= result.finished_ns);
    }

    #[test]
    fn closed_replay_of_a_closed_loop_reproduces_it(
        shapes in proptest::collection::vec((1u64..40, 0u64..60_000), 1..6),
        scheduler in proptest::sample::select(vec!["noop", "deadline", "cfq"]),
    ) {
        let mut text = String::new();
        for (pid, (total, think_ns)) in shapes.iter().enumerate() {
            let longest_ns = think_ns * 2 + 1;
            text += &format!("[[tasks]]\npid = {pid}\npattern = \"random\"\ntotal = {total}\n\
                start_ns = {}\nthink_ns = [{think_ns}, {longest_ns}]\n", pid * 777);
        }
        let (workload, profile) = (tasks(&text), fixed(4));
        let mut original = plan(&workload, &profile, &format!("{scheduler}:nomerges=2"));
        original.block_layer.plug = false;
        let recorded = recording(&original);
        let replayed = trace(&recorded);
        let again = Plan { workload: &replayed, replay: Replay::Closed, ..original };
        prop_assert_eq!(recording(&again), recorded);
    }

    #[test]
    fn every_task_completes_all_its_ios(
        shapes in proptest::collection::vec((0usize..4, 1u32..20, 1u32..20, 1u64..60, any::<bool>(), 0u64..30_000), 1..8),
        scheduler in proptest::sample::select(vec!["noop", "deadline", "cfq"]),
        nr_requests in proptest::sample::select(vec![4u32, 128]),
        plug in any::<bool>(),
    ) {
        let mut text = String::new();
        for (pid, (pattern, iodepth, batch, total, write, think_ns)) in shapes.iter().enumerate() {
            let pattern = ["seq", "random", "stride", "back"][*pattern];
            let op = if *write { "write" } else { "read" };
            text += &format!("[[tasks]]\npid = {pid}\npattern = \"{pattern}\"\nstride = -16\nstart_sector = 1000000\n\
                iodepth = {iodepth}\nbatch = {batch}\ntotal = {total}\nop = \"{op}\"\nthink_ns = {think_ns}\n\
                exit = {}\nsync = {}\n", pid % 2 == 0, pid % 3 == 0);
        }
        let (workload, profile) = (tasks(&text), fixed(3));
        let mut plan = plan(&workload, &profile, scheduler);
        plan.scheduler.set("nr_requests", &nr_requests.to_string()).unwrap();
        plan.block_layer.plug = plug;
        let result = run(&plan, ()).unwrap();
        for (task, shape) in result.tasks.iter().zip(&shapes) {
            prop_assert_eq!(task.ios, shape.3);
        }
    }
}

#[test]
fn replay_uses_the_ioprio_of_each_request() {
    let with = |request, text: &str| TraceRequest { ioprio: text.parse().ok(), ..request };
    // The other requests arrive while the device serves the first one.
    let requests = [
        with(request(0, 1, 0, Some(100)), "none"),
        with(request(10, 2, 100, Some(100)), "idle"),
        with(request(20, 3, 200, Some(100)), "none"),
        with(request(10_000, 1, 0, Some(100)), "none"),
        with(request(10_010, 2, 100, Some(100)), "be/4"),
        with(request(10_020, 3, 200, Some(100)), "none"),
    ];
    let profile = fixed(1);
    let order = |requests: &[TraceRequest], replay| {
        let workload = trace(requests);
        let events = story(&Plan { replay, ..plan(&workload, &profile, "mq-deadline") });
        let dispatched = events.split(' ').filter_map(|word| word.split_once('>').map(|(_, bio)| bio.to_owned()));
        dispatched.collect::<Vec<_>>().join(" ")
    };
    for replay in [Replay::Open { speed: 1.0 }, Replay::Closed] {
        assert_eq!(order(&requests, replay), "1 3 2 4 5 6", "{replay:?}");
        let without = requests.map(|request| TraceRequest { ioprio: None, ..request });
        assert_eq!(order(&without, replay), "1 2 3 4 5 6", "{replay:?}");
    }
}
