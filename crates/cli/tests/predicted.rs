//! Tests that the simulator reproduces the decisions of a served disk. The inputs of the disk's
//! driver are replayed in the simulator's engine, and all decisions must be equal. The test runs
//! for every scheduler, while clients keep the disk busy and tunables, attributes, priorities and
//! the queue depth change at random. A further run also switches schedulers every 10 ms.
//!
//! Environment variables: `IOSCHED_PREDICTED_REQUESTS` is the minimum total number of compared
//! requests (default 100,000), and `IOSCHED_SHAKE_SEED` the seed of the changes (default 1).
//! `IOSCHED_PREDICTED_ELEVATOR` selects one scheduler, or `switched` for the run that switches.

mod common;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, Shaker, directory, image, run, setting};
use iosched::{Registry, Setting};
use iosched_check::Random;
use iosched_live::Handle;
use iosched_live::control::Forest;
use iosched_live::disk::{Action, ClientId, Identity, Operation, SyncWrites};
use iosched_live::reactor::{self, Recording, ServeOptions};
use iosched_sim::{Replayed, replay_recorded};

const CAPACITY_BYTES: u64 = 32 << 20;
/// Number of operations that each client keeps in flight.
const DEPTHS: [u32; 4] = [1, 4, 16, 64];
/// Maximum number of batches of records by which the replay may lag. Then the disk waits for the
/// replay.
const BEHIND_MAX: usize = 64;
/// Maximum time for a scheduler that makes the disk wait.
const LONGEST: Duration = Duration::from_secs(40);

/// Clients that submit a new operation after each reply.
struct Load {
    handle: Handle,
    random: Mutex<Random>,
    answered: AtomicU64,
    over: AtomicBool,
    under_way: AtomicU64,
}

impl Load {
    fn ask(self: &Arc<Self>, client: ClientId, next_offset: u64) {
        let mut random = self.random.lock().unwrap();
        let length = 512 * (1 + random.below(16));
        let offset = if random.chance(50) { next_offset } else { random.below(CAPACITY_BYTES / 512) * 512 };
        let offset = offset.min(CAPACITY_BYTES - length);
        let action = match random.below(40) {
            0..20 => Action::Read,
            20..37 => Action::Write,
            37 => Action::Trim,
            38 => Action::WriteZeroes,
            _ => Action::Flush,
        };
        let fua = random.chance(3);
        drop(random);
        let (offset, length) = if action == Action::Flush { (0, 0) } else { (offset, length) };
        let data = (action == Action::Write).then(|| self.handle.buffer(length as usize));
        let fua = fua && !matches!(action, Action::Read | Action::Flush);
        let operation = Operation { fua, data, ..Operation::new(action, offset, length) };
        let load = Arc::clone(self);
        let reply = Box::new(move |result: Result<_, _>| {
            assert!(result.is_ok(), "{action:?} at {offset}: {result:?}");
            load.answered.fetch_add(1, Ordering::Relaxed);
            if load.over.load(Ordering::Relaxed) {
                load.under_way.fetch_sub(1, Ordering::SeqCst);
            } else {
                load.ask(client, offset + length);
            }
        });
        self.handle.submit(client, operation, reply);
    }
}

/// Runs a disk until `operations` operations are complete or the reader of its recording ends. The
/// scheduler is `elevator`, or all schedulers in turn.
fn record(
    elevator: Option<&'static str>,
    backend: &str,
    operations: u64,
    seed: u64,
    recording: Recording,
    listens: &dyn Fn() -> bool,
) {
    let setting = Setting::defaults(elevator.unwrap_or("noop"));
    let options =
        ServeOptions { recording: Some(recording), ..ServeOptions::new("sda", backend.parse().unwrap(), setting) };
    let served = reactor::start(&options, None).unwrap();
    drop(options);
    let under_way = AtomicU64::new(DEPTHS.iter().map(|&depth| u64::from(depth)).sum());
    let load = Arc::new(Load {
        handle: served.handle.clone(),
        random: Mutex::new(Random::new(seed)),
        answered: AtomicU64::new(0),
        over: AtomicBool::new(false),
        under_way,
    });
    for (number, depth) in (1..).zip(DEPTHS) {
        let group = (number % 2 == 0).then(|| "shared".to_owned());
        let sync = if number % 3 == 0 { SyncWrites::All } else { SyncWrites::Fua };
        let identity = Identity { group, sync, ..Identity::new(format!("c{number}"), number) };
        let client = served.handle.connect(identity).unwrap();
        for _ in 0..depth {
            load.ask(client, 0);
        }
    }
    let forest = Forest::new(vec![served.handle.clone()]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut write = |path: &str, value: &str| forest.write(&format!("sda/{path}"), value.to_owned()).is_ok();
            let mut clients =
                || forest.list("sda/clients").unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
            Shaker::new(Random::new(seed), elevator, &mut write, &mut clients).shake(&done);
        });
        let began = Instant::now();
        while load.answered.load(Ordering::Relaxed) < operations && began.elapsed() < LONGEST && listens() {
            thread::sleep(Duration::from_millis(5));
        }
        done.store(true, Ordering::SeqCst);
    });
    // Random values can make a scheduler wait for hours.
    forest.write("sda/queue/scheduler", "none".to_owned()).unwrap();
    load.over.store(true, Ordering::Relaxed);
    let ending = Instant::now();
    while load.under_way.load(Ordering::SeqCst) > 0 && listens() {
        thread::sleep(Duration::from_millis(1));
        if ending.elapsed() > PATIENCE {
            let state = served.handle.control(|disk, now| {
                let queue = disk.queue();
                let timer = disk.next_timer().map(|at| at.signed_since(now));
                format!("{} wait, {} in the device, timer in {timer:?} ns", queue.waiting(), queue.in_driver())
            });
            panic!(
                "{elevator:?} on {backend}: {} operations got no reply: {state:?}",
                load.under_way.load(Ordering::SeqCst)
            );
        }
    }
    served.handle.stop();
    assert_eq!(served.wait().flushed, Ok(()));
}

/// Records a disk, and replays the recording at the same time.
fn shaken(elevator: Option<&'static str>, backend: &str, operations: u64, seed: u64) -> Replayed {
    let (recording, records) = sync_channel(BEHIND_MAX);
    let replay = thread::spawn(move || {
        replay_recorded(records.into_iter().flatten().map(Ok::<_, Infallible>), &Registry::linux(), None)
    });
    let listens = || !replay.is_finished();
    record(elevator, backend, operations, seed, Recording::Channel(recording), &listens);
    match replay.join().unwrap() {
        Ok(replayed) => replayed,
        Err(error) => panic!("{} on {backend}: {error}", elevator.unwrap_or("all schedulers in turn")),
    }
}

#[test]
fn simulator_repeats_decisions_made_on_a_disk() {
    let (wanted, seed) = (setting("IOSCHED_PREDICTED_REQUESTS", 100_000), setting("IOSCHED_SHAKE_SEED", 1));
    let file = image(&directory("predicted"), "disk.img", CAPACITY_BYTES);
    // Backings with their shares of the load in sixteenths. The share of the file is small, because
    // flushes of a file take time.
    let backends = [(15, format!("memory:{CAPACITY_BYTES}")), (1, file.to_str().unwrap().to_owned())];
    let mut elevators: Vec<Option<&'static str>> = Registry::linux().names().into_iter().map(Some).collect();
    elevators.push(None);
    if let Ok(only) = std::env::var("IOSCHED_PREDICTED_ELEVATOR") {
        elevators.retain(|elevator| elevator.unwrap_or("switched") == only);
    }
    println!("{:>16} {:>12} {:>12} {:>12} {:>8}", "", "requests", "bios", "decisions", "s");
    let (mut requests, mut decisions, mut round) = (0, 0, 0);
    while requests < wanted {
        let of_elevator = (wanted - requests).div_ceil(elevators.len() as u64);
        for (elevator, (parts, backend)) in
            elevators.iter().flat_map(|&elevator| backends.iter().map(move |backend| (elevator, backend)))
        {
            let began = Instant::now();
            let replayed = shaken(elevator, backend, (of_elevator * parts / 16).max(1000), seed + round);
            let Replayed { bios, decisions: compared, .. } = replayed;
            let (name, took_s) = (elevator.unwrap_or("switched"), began.elapsed().as_secs_f64());
            println!("{name:>16} {:>12} {bios:>12} {compared:>12} {took_s:>8.1}", replayed.requests);
            assert!(replayed.requests > 0 && compared >= replayed.requests, "{name}: nothing was compared");
            requests += replayed.requests;
            decisions += compared;
        }
        round += 1;
    }
    println!("{requests} requests in {round} rounds, {decisions} decisions: identical in every event");
}

#[test]
fn recording_file_is_validated_and_changes_are_detected() {
    let here = directory("predicted-file");
    let file = here.join("queue.rec");
    record(Some("cfq"), &format!("memory:{CAPACITY_BYTES}"), 2_000, 1, Recording::File(file.clone()), &|| true);
    let text = std::fs::read_to_string(&file).unwrap();
    let path = file.to_str().unwrap();
    let (code, out, err) = run(&["validate", "recording", path]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("The simulator takes the same "), "{out}");
    let (code, out, _) = run(&["validate", "recording", "--json", path]);
    assert!(code == 0 && out.contains("\"identical\": true"), "{out}");

    let refused = |text: &str, code: i32, problem: &str| {
        let changed = here.join("changed.rec");
        std::fs::write(&changed, text).unwrap();
        let (found, out, err) = run(&["validate", "recording", changed.to_str().unwrap()]);
        assert!(found == code && out.is_empty() && err.contains(problem), "{found}: {err}");
    };
    // The command must refuse a different decision, a different bio, an unknown line, a truncated
    // file, and a file that is not a recording.
    refused(&text.replacen("decision Complete", "decision Requeue", 1), 1, "the recording has at");
    let submit = text.lines().find(|line| line.contains(" submit R ")).unwrap();
    refused(&text.replacen(submit, &submit.replacen(" submit R ", " submit W ", 1), 1), 1, "the simulator has");
    refused(&text.replacen(" turn", " tern", 1), 1, "there is no kind of record \"tern\"");
    refused(&text[..text.len() / 2], 1, "changed.rec: ");
    refused("timestamp,host\n", 2, "is not a recording of a disk's queue");
    let (code, _, err) = run(&["validate", "recording", "/nowhere"]);
    assert!(code != 0 && err.contains("/nowhere: No such file"), "{err}");
    // A recording must not overwrite the disk's data.
    let image = image(&here, "disk.img", 1 << 20);
    let image = image.to_str().unwrap();
    let (code, _, err) = run(&["serve", image, "--record-driver", image]);
    assert!(code != 0 && err.contains("is an input of the command"), "{err}");
}
