use super::*;
use crate::context::{CgroupId, IoPriority};
use crate::queue::QueueConfig;
use crate::registry::Registry;
use crate::request::{Flags, Op};

const NOW: Time = Time::from_ns(1_000_000_000_000);

fn driver(elevator: &str, rerun: Rerun) -> (Driver, ContextId) {
    let elevator = Registry::linux().get(elevator).unwrap();
    let mut queue = RequestQueue::new(NOW, &QueueConfig::default(), elevator);
    let context = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
    (Driver::new(queue, rerun), context)
}

fn read(context: ContextId, sector: u64) -> Bio {
    Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie: sector }
}

/// Returns the steps of a turn on a device with room for `room`
/// requests. A woken process submits a read.
fn turn(driver: &mut Driver, now: Time, mut room: usize) -> Vec<&'static str> {
    let mut steps = Vec::new();
    while let Some(step) = driver.turn(now, room > 0) {
        match step {
            Step::Start(_) => {
                room -= 1;
                steps.push("start");
            }
            Step::Wake(context) => {
                let sector = 1_000_000 + 100 * steps.len() as u64;
                assert!(!matches!(driver.submit(now, &read(context, sector)), Submit::Full));
                steps.push("wake");
            }
        }
    }
    steps
}

/// Fills the queue, and lets `more` processes find it full.
fn full(elevator: &str, nr_requests: u32, more: u32) -> Driver {
    let (mut driver, context) = driver(elevator, Rerun::LINUX);
    driver.set_attribute(NOW, "nr_requests", &nr_requests.to_string()).unwrap();
    let mut sector = 0;
    while !matches!(driver.submit(NOW, &read(context, sector)), Submit::Full) {
        sector += 100;
    }
    for pid in 0..more {
        let other = driver.create_context(10 + pid, IoPriority::default(), CgroupId::ROOT);
        assert!(matches!(driver.submit(NOW, &read(other, sector + 100)), Submit::Full));
    }
    driver
}

#[test]
fn single_queue_layer_dispatches_before_it_wakes_processes() {
    let mut driver = full("noop", 4, 1);
    let Some(Step::Start(first)) = driver.turn(NOW, true) else { panic!("the queue starts no request") };
    assert_eq!(driver.turn(NOW, false), None);
    driver.complete(NOW, first, Ok(()), |_, _| {});
    assert_eq!(turn(&mut driver, NOW, 1)[0], "start");
    let mut driver = full("noop", 4, 1);
    assert_eq!(turn(&mut driver, NOW, 100)[..4], ["start"; 4]);
}

#[test]
fn multi_queue_layer_wakes_processes_before_it_dispatches() {
    let mut driver = full("mq-deadline", 4, 1);
    let Some(Step::Start(first)) = driver.turn(NOW, true) else { panic!("the queue starts no request") };
    assert_eq!(driver.turn(NOW, false), None);
    driver.complete(NOW, first, Ok(()), |_, _| {});
    let steps = turn(&mut driver, NOW, 100);
    assert_eq!(steps[..2], ["wake", "start"], "{steps:?}");
}

#[test]
fn kick_starts_requests_under_none_but_not_under_noop() {
    let (mut none, context) = driver("none", Rerun::LINUX);
    assert_eq!(none.kicked(NOW, true), None);
    let _ = none.submit(NOW, &read(context, 0));
    assert!(none.kicked(NOW, true).is_some());
    assert_eq!(none.kicked(NOW, true), None);
    // Without room, the kick has no effect; the next turn finds the request.
    let _ = none.submit(NOW, &read(context, 100));
    assert_eq!(none.kicked(NOW, false), None);
    assert_eq!(turn(&mut none, NOW, 1), ["start"]);
    let (mut noop, context) = driver("noop", Rerun::LINUX);
    let _ = noop.submit(NOW, &read(context, 0));
    assert_eq!(noop.kicked(NOW, true), None);
}

#[test]
fn device_events_and_timers_precede_arrivals_at_equal_times() {
    let (mut bfq, context) = driver("bfq", Rerun::LINUX);
    assert_eq!(bfq.next_due(None, None), None);
    assert_eq!(bfq.next_due(Some(NOW), Some(NOW)), Some((NOW, Due::Device)));
    assert_eq!(bfq.next_due(Some(NOW + 1), Some(NOW)), Some((NOW, Due::Arrival)));
    // bfq idles for the reader's next request.
    let _ = bfq.submit(NOW, &read(context, 0));
    let Some(Step::Start(id)) = bfq.turn(NOW, true) else { panic!("the queue starts no request") };
    while bfq.turn(NOW, true).is_some() {}
    bfq.complete(NOW + 100, id, Ok(()), |_, _| {});
    while bfq.turn(NOW + 100, true).is_some() {}
    if let Some(at) = bfq.next_timer() {
        assert_eq!(bfq.next_due(None, Some(at)), Some((at, Due::Timer)));
    }
}

#[test]
fn idle_device_reruns_the_queue_until_a_request_starts() {
    let (mut driver, context) = driver("mq-deadline", Rerun::SERVED);
    driver.set_tunable(NOW, "read_expire", "60000").unwrap();
    // The read has another class, and its computed insertion time is a minute in the future.
    driver.set_ioprio(context, "idle".parse().unwrap());
    let _ = driver.submit(NOW, &read(context, 0));
    driver.set_tunable(NOW, "read_expire", "1").unwrap();
    let mut now = NOW;
    let mut reruns = 0;
    let mut steps = turn(&mut driver, now, 1);
    while steps.is_empty() {
        let (at, due) = driver.next_due(None, None).expect("a rerun is due");
        assert_eq!((at, due), (now + Rerun::AFTER_NS, Due::Rerun));
        (now, reruns) = (at, reruns + 1);
        driver.rerun(now);
        steps = turn(&mut driver, now, 1);
    }
    assert_eq!(steps, ["start"]);
    assert!(reruns <= 10, "{reruns}");
    assert_eq!(driver.next_rerun(), None);
}
