//! Tests that replay recordings of a driver in the engine: the decisions are equal, and the replay
//! detects every change of a recording.

use std::collections::VecDeque;
use std::convert::Infallible;

use iosched::recording::{DecisionText, Record, RecordError, What};
use iosched::{
    Bio, CgroupId, ContextId, Driver, Due, Flags, IoError, IoPriority, Op, QueueConfig, Registry, RequestId,
    RequestQueue, Rerun, Step, Submit, Time,
};
use iosched_sim::{RecordedError, Replayed, replay_recorded};

const DEPTH: usize = 2;
const SERVICE_NS: u64 = 150_000;

/// A host of a driver, like a served disk. It has two readers in closed loops, and a device that
/// takes two requests at once.
struct Host {
    driver: Driver,
    now: Time,
    device: VecDeque<(Time, RequestId)>,
    submitted: u64,
    hungry: Vec<ContextId>,
}

impl Host {
    fn recorded(elevator: &str, reads: u64) -> Vec<Record> {
        let (now, config) = (Time::BEGINNING, QueueConfig { depth: DEPTH as u32, ..QueueConfig::default() });
        let queue = RequestQueue::new(now, &config, Registry::linux().get(elevator).unwrap());
        let mut driver = Driver::new(queue, Rerun::SERVED);
        driver.record(now, config, DEPTH as u32);
        driver.record_decisions(true);
        let readers = [1, 2].map(|pid| driver.create_context(pid, IoPriority::default(), CgroupId::ROOT));
        // One reader finds the queue full.
        driver.set_attribute(now, "nr_requests", "4").unwrap();
        let mut host = Self { driver, now, device: VecDeque::new(), submitted: 0, hungry: readers.repeat(8) };
        let mut records = Vec::new();
        while host.submitted < reads || host.driver.queue().waiting() > 0 || !host.device.is_empty() {
            host.event(reads);
            host.turn();
            records.extend(taken(&mut host.driver));
        }
        records
    }

    fn event(&mut self, reads: u64) {
        let device = self.device.front().map(|&(at, _)| at);
        let arrival = (!self.hungry.is_empty() && self.submitted < reads).then_some(self.now);
        let (at, due) = self.driver.next_due(device, arrival).expect("something is due");
        self.now = self.now.max(at);
        match due {
            Due::Device => {
                let (_, id) = self.device.pop_front().unwrap();
                let reader = self.driver.queue().request(id).context();
                let result = if id.index() == 3 { Err(IoError(5)) } else { Ok(()) };
                let mut bios = 0;
                self.driver.complete(self.now, id, result, |_, _| bios += 1);
                self.hungry.extend(vec![reader; bios]);
            }
            Due::Timer => _ = self.driver.timer(self.now),
            Due::Arrival => {
                for reader in std::mem::take(&mut self.hungry) {
                    if self.submitted < reads {
                        self.ask(reader);
                    }
                }
                if self.submitted == reads / 2 {
                    self.driver.switch(self.now, Registry::linux().get("mq-deadline").unwrap());
                }
            }
            Due::Rerun => self.driver.rerun(self.now),
        }
    }

    fn ask(&mut self, context: ContextId) {
        let sector = (self.submitted * 7919 + self.submitted / 3 * 8) % 100_000;
        let cookie = self.submitted + 1;
        let bio = Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie };
        // A bio is identified by its ordinal. A bio that finds the queue full also uses up an
        // ordinal.
        self.submitted += 1;
        if !matches!(self.driver.submit(self.now, &bio), Submit::Full) {
            while let Some(id) = self.driver.kicked(self.now, self.device.len() < DEPTH) {
                self.start(id);
            }
        }
    }

    fn turn(&mut self) {
        while let Some(step) = self.driver.turn(self.now, self.device.len() < DEPTH) {
            match step {
                Step::Start(id) => self.start(id),
                Step::Wake(context) => self.ask(context),
            }
        }
    }

    fn start(&mut self, id: RequestId) {
        let at = self.device.back().map_or(self.now, |&(at, _)| at.max(self.now)) + SERVICE_NS;
        self.device.push_back((at, id));
    }
}

/// Returns the records and decisions of a driver.
fn taken(driver: &mut Driver) -> Vec<Record> {
    let mut records = driver.take_records();
    records.extend(driver.take_decisions().map(|(at, decision)| {
        let what = What::Decision(decision.rebased(Time::BEGINNING, |cookie| cookie));
        Record { at, what }
    }));
    records
}

fn replay(records: Vec<Record>) -> Result<Replayed, RecordedError<Infallible>> {
    replay_recorded(records.into_iter().map(Ok), &Registry::linux(), None)
}

#[test]
fn replay_of_a_recording_makes_the_same_decisions() {
    for elevator in Registry::linux().names() {
        let records = Host::recorded(elevator, 400);
        let replayed = replay(records.clone()).unwrap_or_else(|error| panic!("{elevator}: {error}"));
        let bios = records.iter().filter(|record| matches!(record.what, What::Submit(..))).count();
        assert_eq!((replayed.records, replayed.bios), (records.len() as u64, bios as u64), "{elevator}");
        assert!(replayed.decisions > 800, "{elevator}: {replayed:?}");
    }
}

#[test]
fn replay_has_timers_that_expire_after_all_requests() {
    let (mut now, config) = (Time::BEGINNING, QueueConfig { depth: DEPTH as u32, ..QueueConfig::default() });
    let queue = RequestQueue::new(now, &config, Registry::linux().get("mq-deadline").unwrap());
    let mut driver = Driver::new(queue, Rerun::SERVED);
    driver.record(now, config, DEPTH as u32);
    driver.record_decisions(true);
    let context = driver.create_context(1, IoPriority::default(), CgroupId::ROOT);
    driver.set_attribute(now, "wbt_lat_usec", "2000").unwrap();
    let bio = Bio { op: Op::Write, flags: Flags::empty(), sector: 0, nr_sectors: 8, context, cookie: 1 };
    let mut under_way = VecDeque::new();
    assert!(matches!(driver.submit(now, &bio), Submit::Queued(_)));
    let mut timers = 0;
    while timers < 2 {
        while let Some(step) = driver.turn(now, true) {
            let Step::Start(id) = step else { panic!("no process waits for a request") };
            under_way.push_back((now + SERVICE_NS, id));
        }
        let device = under_way.front().map(|&(at, _)| at);
        let (at, due) = driver.next_due(device, None).expect("wbt's window ends after all requests");
        now = now.max(at);
        match due {
            Due::Device => {
                let (_, id) = under_way.pop_front().unwrap();
                driver.complete(now, id, Ok(()), |_, _| {});
            }
            Due::Timer => {
                timers += 1;
                driver.timer(now);
            }
            due => panic!("{due:?}"),
        }
    }
    let records = taken(&mut driver);
    let heard = records.iter().filter(|record| record.what == What::Timer).count();
    let replayed = replay(records.clone()).unwrap();
    assert_eq!((replayed.records, heard), (records.len() as u64, 2));
}

#[test]
fn recording_round_trips_through_text() {
    for elevator in Registry::linux().names() {
        let records = Host::recorded(elevator, 200);
        let text: Vec<String> = records.iter().map(ToString::to_string).collect();
        let read: Result<Vec<_>, RecordError> = text.iter().map(|line| Record::parse(line)).collect();
        let read = read.unwrap();
        assert_eq!(read.iter().map(ToString::to_string).collect::<Vec<_>>(), text);
        let replayed =
            replay_recorded(read.into_iter().map(Ok::<Record<DecisionText>, Infallible>), &Registry::linux(), None);
        assert_eq!(replayed.unwrap(), replay(records).unwrap(), "{elevator}");
    }
}

/// Removes the first record of this kind from a recording, and returns the error of the replay.
fn without(kind: fn(&What) -> bool) -> String {
    let mut records = Host::recorded("cfq", 400);
    let found = records.iter().position(|record| kind(&record.what)).expect("the recording has such a record");
    records.remove(found);
    replay(records).expect_err("a record is missing").to_string()
}

#[test]
fn missing_record_is_an_error() {
    assert!(without(|what| matches!(what, What::Queue { .. })).contains("must begin with the creation of the queue"));
    let nothing = without(|what| matches!(what, What::Complete { .. }));
    assert!(nothing.contains("the recording has"), "{nothing}");
    for kind in [
        |what: &What| matches!(what, What::Turn),
        |what: &What| matches!(what, What::Submit(..)),
        |what: &What| matches!(what, What::Attribute { .. }),
        |what: &What| matches!(what, What::Switch(_)),
        |what: &What| matches!(what, What::Decision(_)),
    ] {
        without(kind);
    }
    let nobody = without(|what| matches!(what, What::Context { .. }));
    assert!(nobody.contains("there is no process"), "{nobody}");
}

#[test]
fn impossible_events_of_a_recording_are_reported() {
    let records = Host::recorded("cfq", 20);
    let with = |place: usize, at: Time, what: What| {
        let mut records = records.clone();
        records.insert(place, Record { at, what });
        replay(records).unwrap_err().to_string()
    };
    let mut beginning = records.clone();
    let What::Queue { config, .. } = &mut beginning[0].what else { panic!("the first record must create the queue") };
    (config.hz, config.depth) = (0, 0);
    assert!(replay(beginning).unwrap_err().to_string().contains("a queue with 0 jiffies per second"));
    let (at, late) = (records[1].at, Time::from_ns(u64::MAX));
    assert!(with(1, at, What::Depth(0)).contains("the depth of the device is 0"));
    assert!(with(1, late, What::Depth(1)).contains("the time is too large for a recording"));
    assert!(with(1, at, What::Switch("nop".to_owned())).contains("there is no scheduler \"nop\""));
    assert!(with(1, at, What::Requeue(7)).contains("does not have request 7"));
    let turn = records.iter().position(|record| record.what == What::Turn).unwrap();
    let completed = with(turn + 1, records[turn].at, What::Complete { request: 7, result: Ok(()) });
    assert!(completed.contains("the completion of request 7"), "{completed}");
    assert!(with(1, at, What::Remove(another_cgroup())).contains("there is no cgroup"));
}

/// Returns the id of a cgroup that the recording does not have.
fn another_cgroup() -> CgroupId {
    let mut queue = RequestQueue::new(Time::BEGINNING, &QueueConfig::default(), Registry::linux().get("cfq").unwrap());
    let cgroup = iosched::Cgroup { name: "a".to_owned(), parent: None, weight: None, leaf_weight: None };
    queue.create_cgroup(cgroup).unwrap()
}

#[test]
fn moved_turn_of_a_completion_is_an_error() {
    let mut records = Host::recorded("deadline", 400);
    let complete = records.iter().position(|record| matches!(record.what, What::Complete { .. })).unwrap();
    assert_eq!(records[complete + 1].what, What::Turn);
    let late = records.remove(complete + 1);
    let next = complete + 1 + records[complete + 1..].iter().position(|r| matches!(r.what, What::Submit(..))).unwrap();
    records.insert(next + 1, late);
    let error = replay(records).unwrap_err().to_string();
    assert!(error.contains("the simulator has a turn"), "{error}");
}

#[test]
fn errors_of_invalid_lines_name_the_problem() {
    for (line, problem) in [
        ("", "\"\" is not a time in ns; a record consists of a time, a kind and fields"),
        ("x turn", "\"x\" is not a time in ns"),
        ("1 tern", "there is no kind of record \"tern\"; available: queue, depth"),
        ("1 complete", "complete: the field request is missing"),
        ("1 submit Q 0 0 8 0 1 -", "submit: \"Q\" is not a valid operation (R, W, D, Z or F)"),
        ("1 submit R 0 0 8 0 1 be/9", "submit: \"be/9\" is not a valid ioprio"),
        ("1 turn turn", "turn: unexpected trailing text \"turn\""),
    ] {
        let error = Record::parse(line).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{line}: {error}");
    }
}
