//! Controllers in a request queue.

use std::collections::{BTreeMap, VecDeque};

use iosched::controllers::{BioId, Controller, IoCostEvent, Passage, Served, Site, WriteError};
use iosched::{
    Bio, Cgroup, CgroupId, ContextId, ControlledEvent, Decision, Driver, Flags, IoPriority, Issued, Op, Part,
    QueueConfig, Registry, RequestId, RequestQueue, Rerun, Step, Submit, Time,
};

const MS: u64 = 1_000_000;

/// Device with a service time for each request, one after another.
struct Machine {
    now: Time,
    driver: Driver,
    depth: usize,
    service_ns: u64,
    under_way: VecDeque<(Time, RequestId)>,
    free_at: Time,
    /// Bios that found the queue full.
    waiting: BTreeMap<ContextId, (Bio, Part)>,
    /// Cookies of completed bios, in the order of completion.
    done: Vec<u64>,
    /// Cookies of bios that are not complete, with their bytes.
    open: BTreeMap<u64, (ContextId, u64)>,
    /// Completed bytes by context.
    bytes: BTreeMap<ContextId, u64>,
    cookies: u64,
}

impl Machine {
    fn new(elevator: &str, depth: u32, service_ns: u64) -> Self {
        let config = QueueConfig { depth, rotational: false, write_cache: false, ..QueueConfig::default() };
        let queue = RequestQueue::new(Time::BEGINNING, &config, Registry::linux().get(elevator).unwrap());
        Self {
            now: Time::BEGINNING,
            driver: Driver::new(queue, Rerun::LINUX),
            depth: depth as usize,
            service_ns,
            under_way: VecDeque::new(),
            free_at: Time::BEGINNING,
            waiting: BTreeMap::new(),
            done: Vec::new(),
            open: BTreeMap::new(),
            bytes: BTreeMap::new(),
            cookies: 0,
        }
    }

    fn group(&mut self, name: &str, parent: CgroupId) -> CgroupId {
        let cgroup = Cgroup { name: name.to_owned(), parent: Some(parent), weight: None, leaf_weight: None };
        self.driver.create_cgroup(cgroup).unwrap()
    }

    fn task(&mut self, cgroup: CgroupId) -> ContextId {
        let pid = self.driver.queue().env().contexts.len() as u32;
        self.driver.create_context(pid, IoPriority::default(), cgroup)
    }

    fn set(&mut self, cgroup: CgroupId, file: &str, text: &str) {
        self.driver.set_cgroup_attribute(self.now, cgroup, file, text).unwrap();
        self.turn();
    }

    /// Sends a bio. Returns `false` if its process must wait.
    fn send(&mut self, context: ContextId, op: Op, flags: Flags, sector: u64, nr_sectors: u32) -> bool {
        self.send_part(Part::Whole, context, op, flags, sector, nr_sectors)
    }

    /// Sends a part of an I/O. Returns `false` if its process must wait.
    fn send_part(
        &mut self,
        part: Part,
        context: ContextId,
        op: Op,
        flags: Flags,
        sector: u64,
        nr_sectors: u32,
    ) -> bool {
        self.cookies += 1;
        let bio = Bio { op, flags, sector, nr_sectors, context, cookie: self.cookies };
        self.open.insert(bio.cookie, (context, u64::from(nr_sectors) * 512));
        let accepted = self.submit(&bio, part);
        self.turn();
        accepted
    }

    /// Reads one I/O in `parts` parts of 512 sectors.
    fn read_in_parts(&mut self, context: ContextId, sector: u64, parts: u32) {
        for number in 0..parts {
            let part = if number == 0 { Part::First { of_sectors: parts * 512 } } else { Part::Rest };
            assert!(self.send_part(part, context, Op::Read, Flags::empty(), sector + u64::from(number) * 512, 512));
        }
    }

    fn submit(&mut self, bio: &Bio, part: Part) -> bool {
        let submit = self.driver.submit_issued(self.now, bio, &Issued { part, ..Issued::default() });
        match submit {
            Submit::Full => _ = self.waiting.insert(bio.context, (*bio, part)),
            Submit::Done(_) => _ = self.open.remove(&bio.cookie),
            Submit::Queued(_) | Submit::Merged | Submit::Held => {}
        }
        while let Some(id) = self.driver.kicked(self.now, self.under_way.len() < self.depth) {
            self.start(id);
        }
        submit.accepted()
    }

    fn start(&mut self, id: RequestId) {
        self.free_at = self.free_at.max(self.now) + self.service_ns;
        self.under_way.push_back((self.free_at, id));
    }

    fn turn(&mut self) {
        while let Some(step) = self.driver.turn(self.now, self.under_way.len() < self.depth) {
            match step {
                Step::Start(id) => self.start(id),
                Step::Wake(context) => {
                    if let Some((bio, part)) = self.waiting.remove(&context) {
                        self.submit(&bio, part);
                    }
                    // Hosts call this even if nothing is reserved.
                    self.driver.decline(context);
                }
            }
        }
    }

    /// Handles the next event before `until`. Returns `false` if there is none.
    fn step(&mut self, until: Time) -> bool {
        let device = self.under_way.front().map(|&(at, _)| at);
        let next = [device, self.driver.next_timer(), self.driver.next_rerun()].into_iter().flatten().min();
        let Some(at) = next.filter(|&at| at <= until) else { return false };
        self.now = self.now.max(at);
        if device == Some(at) {
            let Some((_, id)) = self.under_way.pop_front() else { return false };
            let (open, bytes, done) = (&mut self.open, &mut self.bytes, &mut self.done);
            self.driver.complete(self.now, id, Ok(()), |bio, _| {
                let (context, of_bio) = open.remove(&bio.cookie).expect("a bio completes once");
                *bytes.entry(context).or_default() += of_bio;
                done.push(bio.cookie);
            });
        } else if self.driver.next_timer() == Some(at) {
            if !self.driver.timer(self.now) {
                return true;
            }
        } else {
            self.driver.rerun(self.now);
        }
        self.turn();
        true
    }

    fn run(&mut self, ns: u64) {
        let until = self.now + ns;
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    fn mib(&self, context: ContextId) -> f64 {
        self.bytes.get(&context).copied().unwrap_or(0) as f64 / 1048576.0
    }
}

#[test]
fn io_max_limits_bytes_and_does_not_block_the_process() {
    let mut machine = Machine::new("none", 32, MS / 10);
    let group = machine.group("backup", CgroupId::ROOT);
    let task = machine.task(group);
    machine.set(group, "io.max", "rbps=4194304");
    for at in 0..200 {
        assert!(machine.send(task, Op::Read, Flags::empty(), at * 1024, 256), "the process does not sleep");
    }
    machine.run(1_000 * MS);
    assert!((3.8..4.6).contains(&machine.mib(task)), "{} MiB", machine.mib(task));
    machine.run(6_000 * MS);
    assert!((24.9..25.1).contains(&machine.mib(task)), "{} MiB", machine.mib(task));
    assert!(machine.open.is_empty());
    let error = machine.driver.set_cgroup_attribute(machine.now, group, "io.max", "rbps=0").unwrap_err().to_string();
    assert_eq!(
        error,
        "io.max: \"rbps=0\": a value is out of range; write any of rbps=N, wbps=N, riops=N and wiops=N, where N \
         is 2 or more, or max"
    );
}

#[test]
fn a_long_read_waits_at_io_max_for_all_its_bytes() {
    let mut machine = Machine::new("none", 8, MS);
    let group = machine.group("backup", CgroupId::ROOT);
    let task = machine.task(group);
    machine.set(group, "io.max", "rbps=1048576");
    machine.read_in_parts(task, 0, 4);
    machine.run(900 * MS);
    assert_eq!(machine.done, [], "less than a second's worth");
    machine.run(300 * MS);
    assert_eq!(machine.done, [1, 2, 3, 4]);
}

#[test]
fn the_rest_of_a_long_read_queues_as_a_separate_io() {
    let mut machine = Machine::new("none", 8, MS);
    let group = machine.group("backup", CgroupId::ROOT);
    let [long, short] = [0, 1].map(|_| machine.task(group));
    machine.set(group, "io.max", "riops=10");
    machine.read_in_parts(short, 1 << 20, 1);
    machine.read_in_parts(long, 0, 3);
    machine.read_in_parts(short, 1 << 21, 1);
    let mut after = Vec::new();
    for _ in 0..8 {
        after.push(machine.done.len());
        machine.run(100 * MS);
    }
    assert_eq!(machine.done, [1, 2, 5, 3, 4]);
    assert!(after.windows(2).all(|pair| pair[1] - pair[0] <= 2), "each part counts as an I/O: {after:?}");
}

#[test]
fn wbt_limits_buffered_writes_while_a_process_reads() {
    let depth_of = |wbt: &str| {
        let mut machine = Machine::new("none", 64, MS);
        machine.driver.set_attribute(machine.now, "wbt_lat_usec", wbt).unwrap();
        let [reader, writer] = [(); 2].map(|()| machine.task(CgroupId::ROOT));
        let (mut deepest, mut sector) = (0, 0);
        for round in 0..400u64 {
            if round.is_multiple_of(4) {
                machine.send(reader, Op::Read, Flags::empty(), 1 << 30 | round << 10, 8);
            }
            while !machine.waiting.contains_key(&writer) && machine.open.len() < 60 {
                sector += 1024;
                machine.send(writer, Op::Write, Flags::empty(), sector, 8);
            }
            machine.run(MS);
            if round > 200 {
                deepest = deepest.max(machine.driver.queue().env().requests.len());
            }
        }
        deepest
    };
    assert!(depth_of("0") > 50);
    assert!(depth_of("2000") < 20);
}

#[test]
fn when_a_wbt_waiter_exits_the_next_writer_continues() {
    let mut machine = Machine::new("none", 1, MS);
    machine.driver.set_attribute(machine.now, "wbt_lat_usec", "2000").unwrap();
    let writers = [(); 3].map(|()| machine.task(CgroupId::ROOT));
    let sent = writers.map(|writer| machine.send(writer, Op::Write, Flags::empty(), 1024 * writer.index() as u64, 8));
    assert_eq!(sent, [true, false, false]);
    let (bio, _) = machine.waiting.remove(&writers[1]).unwrap();
    machine.open.remove(&bio.cookie);
    machine.driver.exit(machine.now, writers[1]);
    // The window of wbt, whose timer wakes all waiting bios, is longer.
    machine.run(10 * MS);
    assert!(machine.open.is_empty(), "{:?} wait", machine.waiting);
}

#[test]
fn decisions_on_a_removed_cgroup_are_reported_at_once() {
    let mut machine = Machine::new("none", 1, MS);
    machine.driver.record_decisions(true);
    let group = machine.group("group", CgroupId::ROOT);
    machine.set(CgroupId::ROOT, "io.cost.qos", "enable=1");
    let task = machine.task(group);
    assert!(machine.send(task, Op::Read, Flags::empty(), 0, 8));
    machine.run(2 * MS);
    machine.driver.exit(machine.now, task);
    machine.driver.take_decisions();
    machine.driver.remove_cgroup(machine.now, group);
    let decisions: Vec<_> = machine.driver.take_decisions().collect();
    assert!(
        decisions.iter().any(|(_, decision)| matches!(decision, Decision::Controlled(ControlledEvent::IoCost(_)))),
        "{decisions:?}"
    );
}

#[test]
fn io_cost_shares_the_device_by_weight() {
    let mut machine = Machine::new("none", 32, MS / 5);
    let groups = ["db", "backup"].map(|name| machine.group(name, CgroupId::ROOT));
    let tasks = groups.map(|group| machine.task(group));
    machine.set(groups[0], "io.weight", "300");
    // The model gives the device its real speed: 5,000 bios of 4 KiB per second.
    let model = "rbps=20480000 rseqiops=5000 rrandiops=5000 wbps=20480000 wseqiops=5000 wrandiops=5000";
    machine.set(CgroupId::ROOT, "io.cost.model", model);
    machine.set(CgroupId::ROOT, "io.cost.qos", "enable=1 min=95 max=95");
    let mut sector = 0;
    for _ in 0..20_000 {
        for task in tasks {
            while !machine.waiting.contains_key(&task)
                && machine.open.values().filter(|(context, _)| *context == task).count() < 12
            {
                sector += 1 << 16;
                machine.send(task, Op::Read, Flags::empty(), sector, 8);
            }
        }
        machine.run(MS / 4);
    }
    let shares = tasks.map(|task| machine.mib(task));
    assert!((2.7..3.3).contains(&(shares[0] / shares[1])), "{shares:?}");
}

/// The bio arrives before io.cost is active, and needs a request afterwards.
#[test]
fn bios_held_by_io_max_keep_their_group_under_io_cost() {
    let mut machine = Machine::new("none", 32, MS / 10);
    machine.driver.record_decisions(true);
    let group = machine.group("backup", CgroupId::ROOT);
    let task = machine.task(group);
    machine.set(group, "io.max", "rbps=1048576");
    for at in 0..8 {
        machine.send(task, Op::Read, Flags::empty(), at * 1024, 256);
    }
    machine.set(CgroupId::ROOT, "io.cost.qos", "enable=1");
    machine.driver.move_context(machine.now, task, CgroupId::ROOT);
    machine.driver.remove_cgroup(machine.now, group);
    let mut freed = Vec::new();
    for _ in 0..20 {
        let decisions = machine.driver.take_decisions();
        let free = Decision::Controlled(ControlledEvent::IoCost(IoCostEvent::Free { group }));
        freed.extend(decisions.filter(|(_, decision)| *decision == free).map(|_| machine.open.len()));
        machine.run(100 * MS);
    }
    assert_eq!(freed, [0], "the group is freed when its last bio is complete");
}

#[test]
fn io_prio_class_makes_mq_deadline_prefer_a_group() {
    let done_by = |policy: &str| {
        let mut machine = Machine::new("mq-deadline", 1, MS);
        machine.driver.set_attribute(machine.now, "nr_requests", "64").unwrap();
        let groups = ["db", "backup"].map(|name| machine.group(name, CgroupId::ROOT));
        let tasks = groups.map(|group| machine.task(group));
        machine.set(groups[1], "io.prio.class", policy);
        let read = machine.driver.cgroup_attribute(groups[1], "io.prio.class").unwrap();
        assert_eq!(read, policy);
        for at in 0..20 {
            for task in [tasks[1], tasks[0]] {
                machine.send(task, Op::Read, Flags::empty(), at * 1024 + task.index() as u64 * 64, 8);
            }
        }
        machine.run(20 * MS + MS / 2);
        tasks.map(|task| machine.mib(task) * 256.0)
    };
    let [db, backup] = done_by("no-change");
    assert!((db - backup).abs() < 3.0, "{db} {backup}");
    let [db, backup] = done_by("idle");
    assert!(db > 18.0 && backup < 2.0, "{db} {backup}");
    let [db, backup] = done_by("promote-to-rt");
    assert!(db < 2.0 && backup > 18.0, "{db} {backup}");
}

/// Controller that allows two bios of a group in flight.
#[derive(Default)]
struct AtMostTwo {
    under_way: u32,
    waiting: VecDeque<BioId>,
}

impl AtMostTwo {
    /// Gives the place of a finished request to the next bio.
    fn leaves(&mut self, site: &mut Site) {
        match self.waiting.pop_front() {
            Some(next) => site.go_on(next),
            None => self.under_way -= 1,
        }
    }
}

impl Controller for AtMostTwo {
    fn name(&self) -> &'static str {
        "at-most-two"
    }

    fn throttle(&mut self, _: &mut Site, bio_id: BioId) -> Passage {
        if self.under_way < 2 && self.waiting.is_empty() {
            self.under_way += 1;
            return Passage::Pass;
        }
        self.waiting.push_back(bio_id);
        Passage::Wait
    }

    fn completed(&mut self, site: &mut Site, _: &Served, _: &[BioId]) {
        self.leaves(site);
    }

    fn absorbed(&mut self, site: &mut Site, _: BioId) {
        self.leaves(site);
    }

    fn files(&self) -> &'static [&'static str] {
        &[]
    }

    fn write(&mut self, _: &mut Site, _: &str, _: CgroupId, _: &str) -> Result<(), WriteError> {
        Err(WriteError::NoSuchFile)
    }

    fn read(&self, _: &str, _: CgroupId) -> String {
        String::new()
    }
}

/// Returns a machine whose queue has [`AtMostTwo`].
fn at_most_two(policy: &str, depth: u32) -> Machine {
    let config = QueueConfig { depth, ..QueueConfig::default() };
    let mut queue = RequestQueue::new(Time::BEGINNING, &config, Registry::linux().get(policy).unwrap());
    queue.add_controller(Time::BEGINNING, |_| Box::new(AtMostTwo::default()));
    let mut machine = Machine::new("none", depth, MS);
    machine.driver = Driver::new(queue, Rerun::LINUX);
    machine
}

#[test]
fn a_custom_controller_limits_bios_and_its_waits_are_counted() {
    let mut machine = at_most_two("kyber", 8);
    let tasks = [(); 4].map(|()| machine.task(CgroupId::ROOT));
    let accepted = tasks.map(|task| machine.send(task, Op::Read, Flags::empty(), 4096 * task.index() as u64, 8));
    assert_eq!(accepted, [true, true, false, false]);
    machine.run(10 * MS);
    assert!(machine.open.is_empty());
    let waits = machine.driver.queue().controller_waits();
    assert_eq!(waits.iter().map(|waits| (waits.controller, waits.bios)).collect::<Vec<_>>(), [("at-most-two", 2)]);
    assert_eq!(waits[0].wait_ns, MS + 2 * MS);
}

#[test]
fn merged_bios_do_not_change_a_controllers_request_count() {
    let mut machine = at_most_two("mq-deadline", 1);
    let tasks = [(); 6].map(|()| machine.task(CgroupId::ROOT));
    for round in 0..3 {
        // The third bio joins the request of the second. The fifth bio merges the requests of the
        // second and the fourth bio.
        let sectors = [0, 4096, 4104, 4120, 4112, 8192].map(|sector| sector + round * 65_536);
        let accepted: Vec<bool> = tasks
            .iter()
            .zip(sectors)
            .map(|(&task, sector)| machine.send(task, Op::Read, Flags::empty(), sector, 8))
            .collect();
        assert_eq!(accepted, [true, true, true, false, true, false], "round {round}");
        machine.run(20 * MS);
        assert!(machine.open.is_empty(), "round {round}");
    }
}

/// During a change of wbt's target, no bio may enter the queue. In the single-queue layer, this
/// does not apply.
#[test]
fn switch_to_single_queue_ends_waits_for_a_wbt_change() {
    let mut machine = Machine::new("none", 2, 10 * MS);
    machine.driver.set_attribute(machine.now, "wbt_lat_usec", "2000").unwrap();
    let tasks: Vec<_> = (0..4).map(|_| machine.task(CgroupId::ROOT)).collect();
    let read =
        |machine: &mut Machine, at: usize| machine.send(tasks[at], Op::Read, Flags::empty(), at as u64 * 1000, 8);
    assert!(read(&mut machine, 0) && read(&mut machine, 1));
    assert!(!read(&mut machine, 2), "the third read waits for a tag");
    machine.driver.set_attribute(machine.now, "wbt_lat_usec", "0").unwrap();
    assert!(!read(&mut machine, 3), "no bio may enter the queue");
    machine.driver.switch(machine.now, Registry::linux().get("noop").unwrap());
    // The third read gets a tag during the switch. It is in flight when the switch ends.
    machine.run(25 * MS);
    assert_eq!((machine.driver.queue().is_switching(), machine.done.len()), (false, 2));
    assert!(machine.waiting.is_empty(), "{:?}", machine.waiting);
    machine.run(100 * MS);
    assert!(machine.open.is_empty());
    machine.driver.queue().check();
}

#[test]
fn io_latency_slows_a_sibling_with_a_laxer_target() {
    let mut machine = Machine::new("none", 32, MS);
    let [strict, lax] = ["strict", "lax"].map(|name| machine.group(name, CgroupId::ROOT));
    let (reader, flood) = (machine.task(strict), machine.task(lax));
    machine.set(strict, "io.latency", "target=5000");
    machine.set(lax, "io.latency", "target=200000");
    let mut sector = 0;
    let mut pass = |machine: &mut Machine, ms: u64| {
        for _ in 0..ms {
            sector += 1024;
            if !machine.waiting.contains_key(&reader) {
                machine.send(reader, Op::Read, Flags::empty(), sector, 8);
            }
            for _ in 0..4 {
                sector += 1024;
                if !machine.waiting.contains_key(&flood) {
                    machine.send(flood, Op::Write, Flags::SYNC | Flags::IDLE, sector, 8);
                }
            }
            machine.run(MS);
        }
    };
    pass(&mut machine, 2_000);
    let before = machine.mib(flood);
    pass(&mut machine, 10_000);
    assert!(
        machine.mib(flood) - before < 0.35 * 10_000.0 * 4096.0 / 1048576.0,
        "io.latency limited the group with the laxer target"
    );
    // No group has a target any more, so everything continues.
    machine.set(strict, "io.latency", "target=max");
    machine.set(lax, "io.latency", "target=max");
    machine.run(60_000 * MS);
    assert!(machine.open.is_empty(), "{} open", machine.open.len());
}

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }
}

fn text(random: &mut Random, file: &str) -> String {
    let mut limit = |name: &str, most: u64| match random.below(4) {
        0 => format!("{name}=max"),
        _ => format!("{name}={}", 2 + random.below(most)),
    };
    match file {
        "io.max" => [("rbps", 1 << 24), ("wbps", 1 << 24), ("riops", 2000), ("wiops", 2000)]
            .map(|(name, most)| limit(name, most))
            .join(" "),
        "io.prio.class" => {
            ["no-change", "promote-to-rt", "restrict-to-be", "idle"][random.below(4) as usize].to_owned()
        }
        "io.weight" => (1 + random.below(10_000)).to_string(),
        "io.cost.qos" => {
            let min = 1 + random.below(100);
            let (enable, rpct, rlat) = (random.below(4).min(1), random.below(100), 100 + random.below(50_000));
            format!("enable={enable} rpct={rpct} rlat={rlat} min={min} max={}", min + random.below(300))
        }
        _ => limit("target", 20_000),
    }
}

fn random_run(seed: u64) {
    let mut random = Random(seed);
    let elevators = ["none", "mq-deadline", "kyber", "bfq", "cfq", "noop"];
    let first = elevators[random.below(4) as usize];
    let mut machine = Machine::new(first, 1 + random.below(32) as u32, MS / 20 + random.below(MS));
    machine.driver.record_decisions(true);
    let (mut groups, mut waits) = (vec![CgroupId::ROOT], BTreeMap::new());
    for name in ["a", "b", "c", "d"] {
        let parent = groups[random.below(groups.len() as u64) as usize];
        groups.push(machine.group(name, parent));
    }
    let mut tasks: Vec<ContextId> =
        (0..6).map(|_| machine.task(groups[random.below(groups.len() as u64) as usize])).collect();
    for _ in 0..600 {
        let group = groups[1 + random.below(groups.len() as u64 - 1) as usize];
        match random.below(60) {
            0 => {
                let files = ["io.max", "io.latency", "io.weight", "io.cost.qos", "io.prio.class"];
                let file = files[random.below(5) as usize];
                let text = text(&mut random, file);
                machine.set(if file == "io.cost.qos" { CgroupId::ROOT } else { group }, file, &text);
            }
            1 => {
                let target_us = [2_000, 0, 75_000][random.below(3) as usize];
                machine.driver.set_attribute(machine.now, "wbt_lat_usec", &format!("{target_us}")).unwrap();
                machine.turn();
            }
            2 => {
                let elevator = elevators[random.below(elevators.len() as u64) as usize];
                machine.driver.switch(machine.now, Registry::linux().get(elevator).unwrap());
                machine.turn();
            }
            3 => {
                let at = random.below(tasks.len() as u64) as usize;
                let leaves = tasks[at];
                if let Some((bio, _)) = machine.waiting.remove(&leaves) {
                    machine.open.remove(&bio.cookie);
                }
                machine.driver.exit(machine.now, leaves);
                tasks[at] = machine.task(group);
                machine.turn();
            }
            4 => machine.driver.move_context(machine.now, tasks[random.below(6) as usize], group),
            5..10 => machine.run(random.below(40 * MS)),
            _ => {
                let task = tasks[random.below(tasks.len() as u64) as usize];
                if machine.waiting.contains_key(&task) {
                    machine.run(random.below(2 * MS));
                    continue;
                }
                let (op, flags) = [
                    (Op::Read, Flags::empty()),
                    (Op::Read, Flags::PRIO),
                    (Op::Write, Flags::empty()),
                    (Op::Write, Flags::SYNC),
                    (Op::Write, Flags::SYNC | Flags::IDLE),
                    (Op::Write, Flags::SWAP),
                    (Op::Write, Flags::AHEAD),
                    (Op::Discard, Flags::empty()),
                ][random.below(8) as usize];
                let part = match random.below(6) {
                    0 => Part::First { of_sectors: 64 << random.below(8) },
                    1 | 2 => Part::Rest,
                    _ => Part::Whole,
                };
                machine.send_part(part, task, op, flags, random.below(1 << 12) * 8, 8 << random.below(4));
            }
        }
        machine.driver.queue().check();
        follow(&mut machine, &mut waits);
    }
    // Groups with a limit become unlimited, so that they continue.
    machine.driver.set_attribute(machine.now, "wbt_lat_usec", "2000").unwrap();
    for &group in &groups[1..] {
        machine.set(group, "io.max", "rbps=max wbps=max riops=max wiops=max");
    }
    machine.set(CgroupId::ROOT, "io.cost.qos", "enable=0");
    machine.turn();
    machine.run(1_000_000 * MS);
    assert!(machine.waiting.is_empty(), "seed {seed}: {} wait", machine.waiting.len());
    assert!(machine.open.is_empty(), "seed {seed}: {} open", machine.open.len());
    machine.driver.queue().check();
    follow(&mut machine, &mut waits);
    assert!(waits.values().all(|&(left, ..)| left), "seed {seed}: {waits:?} never continued");
}

/// Checks decisions against the waiting bios in `waits`. For each bio, they contain whether it was
/// abandoned, where it waits, and since when.
fn follow(machine: &mut Machine, waits: &mut BTreeMap<u64, (bool, &'static str, Time)>) {
    for (now, decision) in machine.driver.take_decisions() {
        match decision {
            Decision::Controlled(ControlledEvent::Wait { controller, cookie, .. }) => {
                assert_eq!(
                    waits.insert(cookie, (false, controller, now)),
                    None,
                    "a bio waits at one controller at a time"
                );
            }
            Decision::Controlled(ControlledEvent::GoOn { controller, cookie, waited_ns }) => {
                let since = Time::from_ns(now.as_ns() - waited_ns);
                assert_eq!(waits.remove(&cookie), Some((false, controller, since)));
            }
            _ => {}
        }
    }
    for (cookie, (left, ..)) in waits {
        *left = !machine.open.contains_key(cookie);
    }
}

#[test]
fn random_runs_complete_every_bio_and_leave_no_process_waiting() {
    for seed in 0..500 {
        random_run(seed);
    }
}
