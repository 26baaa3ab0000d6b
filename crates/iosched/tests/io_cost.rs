//! io.cost with random bios, settings and groups: no bio is
//! lost, and no written text makes it panic.

use iosched::controllers::{BioId, BioState, IoCost, IoCostFile, Passage, Served, Site, Target};
use iosched::{Bio, CgroupId, ContextId, Flags, Op, Sector, Time};
use proptest::prelude::*;

/// Number of timers after which a bio that still waits counts as lost.
const TIMERS_MAX: u32 = 200_000;

/// Action on the controller.
#[derive(Clone, Debug)]
enum Step {
    Submit { group: usize, op: Op, flags: Flags, sector: Sector, nr_sectors: u32 },
    Merge { front: bool, nr_sectors: u32 },
    Complete { which: usize },
    Wait { us: u64 },
    Weight { group: usize, weight: u32 },
    Create { parent: usize },
    Remove { group: usize },
    Write { file: IoCostFile, text: String },
}

/// Request of the device.
struct Request {
    bios: Vec<BioId>,
    op: Op,
    sector: Sector,
    nr_sectors: u32,
    group: usize,
    requested: Time,
}

struct Group {
    id: CgroupId,
    parent: usize,
    removed: bool,
}

/// Host with a device that takes any number of requests at the same time.
struct Host {
    site: Site,
    cost: IoCost,
    groups: Vec<Group>,
    waiting: Vec<BioId>,
    under_way: Vec<Request>,
}

impl Host {
    fn new(rotational: bool, depth: u32) -> Self {
        let now = Time::BEGINNING;
        let mut site = Site::new(now, 1000);
        site.log.record(true);
        let cost = IoCost::new(&mut site, rotational, depth);
        let root = Group { id: CgroupId::ROOT, parent: 0, removed: false };
        let mut host = Self { site, cost, groups: vec![root], waiting: Vec::new(), under_way: Vec::new() };
        for _ in 0..3 {
            host.step(&Step::Create { parent: 0 });
        }
        host.step(&Step::Write { file: IoCostFile::Qos, text: "enable=1".to_owned() });
        host
    }

    /// Returns an existing group for any number.
    fn group(&self, number: usize) -> usize {
        let mut group = number % self.groups.len();
        while self.groups[group].removed {
            group = self.groups[group].parent;
        }
        group
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Submit { group, op, flags, sector, nr_sectors } => self.submit(group, op, flags, sector, nr_sectors),
            Step::Merge { front, nr_sectors } => self.merge(front, nr_sectors),
            Step::Complete { which } => {
                if !self.under_way.is_empty() {
                    self.complete(which % self.under_way.len());
                }
            }
            Step::Wait { us } => self.pass(self.site.now + us.saturating_mul(1_000)),
            Step::Weight { group, weight } => {
                let group = self.groups[self.group(group)].id;
                let _ = self.cost.write(&mut self.site, IoCostFile::Weight, group, &weight.to_string());
            }
            Step::Create { parent } => {
                let parent = self.group(parent);
                let id = self.site.groups.create(self.groups[parent].id);
                self.groups.push(Group { id, parent, removed: false });
            }
            Step::Remove { group } => {
                let group = self.group(group);
                let has_children = self.groups.iter().any(|other| !other.removed && other.parent == group);
                if group > 0 && !has_children {
                    self.groups[group].removed = true;
                    if let Some(left) = self.site.remove_group(self.groups[group].id) {
                        self.cost.group_left(&mut self.site, left);
                    }
                }
            }
            Step::Write { file, ref text } => {
                if self.drain(2_000) {
                    let _ = self.cost.write(&mut self.site, file, CgroupId::ROOT, text);
                }
            }
        }
        self.take_going_on();
    }

    fn submit(&mut self, group: usize, op: Op, flags: Flags, sector: Sector, nr_sectors: u32) {
        let bio_id = self.begin(group, op, flags, sector, nr_sectors);
        match self.cost.throttle(&mut self.site, bio_id) {
            Passage::Pass => self.start(bio_id),
            Passage::Wait => self.waiting.push(bio_id),
        }
    }

    fn begin(&mut self, group: usize, op: Op, flags: Flags, sector: Sector, nr_sectors: u32) -> BioId {
        let group = self.group(group);
        let bio = Bio { op, flags, sector, nr_sectors, context: ContextId::numbered(0), cookie: group as u64 };
        self.site.begin(BioState::new(self.site.now, &bio, self.groups[group].id))
    }

    fn start(&mut self, bio_id: BioId) {
        let BioState { op, sector, nr_sectors, cookie, .. } = self.site.bios[bio_id];
        let (group, requested) = (cookie as usize, self.site.now);
        self.under_way.push(Request { bios: vec![bio_id], op, sector, nr_sectors, group, requested });
    }

    /// Merges a bio into the newest request, if possible.
    fn merge(&mut self, front: bool, nr_sectors: u32) {
        let Some(request) = self.under_way.last() else { return };
        let (op, group, first) = (request.op, request.group, request.bios[0]);
        let end = request.sector.checked_add(request.nr_sectors.into());
        let sector = if front { request.sector.checked_sub(nr_sectors.into()) } else { end };
        let (Some(end), Some(sector), Some(sum)) = (end, sector, request.nr_sectors.checked_add(nr_sectors)) else {
            return;
        };
        if self.groups[group].removed {
            return;
        }
        let target = Target { sector: request.sector, end, first };
        let bio_id = self.begin(group, op, Flags::empty(), sector, nr_sectors);
        self.cost.merged(&mut self.site, bio_id, &target);
        let request = self.under_way.last_mut().unwrap();
        request.nr_sectors = sum;
        if front {
            request.bios.insert(0, bio_id);
            request.sector = sector;
        } else {
            request.bios.push(bio_id);
        }
    }

    fn complete(&mut self, which: usize) {
        let Request { bios, op, nr_sectors, requested, .. } = self.under_way.swap_remove(which);
        let served = Served { founder: bios[0], op, nr_sectors: nr_sectors.into(), requested, got: requested };
        self.cost.completed(&self.site, &served, &bios);
        for bio_id in bios {
            if let Some(left) = self.site.end(bio_id) {
                self.cost.group_left(&mut self.site, left);
            }
        }
    }

    fn take_going_on(&mut self) {
        let going_on: Vec<BioId> = self.site.take_going_on().collect();
        for bio_id in going_on {
            let at =
                self.waiting.iter().position(|&waiting| waiting == bio_id).expect("a bio that continues was waiting");
            self.waiting.swap_remove(at);
            self.start(bio_id);
        }
    }

    fn next(&self) -> Option<Time> {
        let period = self.site.wheel.next().map(|jiffy| Time::from_ns(jiffy.saturating_mul(self.site.jiffy_ns)));
        [self.cost.next_timer(), period].into_iter().flatten().min()
    }

    /// Fires the next timers.
    fn fire(&mut self, at: Time) {
        self.site.now = self.site.now.max(at);
        self.cost.timer(&mut self.site);
        while let Some(timer) = self.site.wheel.fire(self.site.jiffies()) {
            self.cost.fire(&mut self.site, timer);
        }
        self.take_going_on();
        self.site.log.take();
        assert!(self.cost.next_timer().is_none_or(|next| next > self.site.now || next == Time::MAX));
    }

    /// Lets time pass, for at most a thousand timers.
    fn pass(&mut self, until: Time) {
        for _ in 0..1_000 {
            let Some(next) = self.next().filter(|&next| next <= until) else { break };
            self.fire(next);
        }
        self.site.now = self.site.now.max(until);
    }

    /// Completes everything. Returns whether that succeeded.
    fn drain(&mut self, timers_max: u32) -> bool {
        for _ in 0..timers_max {
            while !self.under_way.is_empty() {
                self.complete(0);
            }
            if self.waiting.is_empty() {
                assert!(self.site.bios.is_empty());
                assert!(self.groups.iter().all(|group| group.removed == self.cost.is_freed(group.id)));
                return true;
            }
            let next = self.next().expect("a bio waits, so a timer is armed");
            self.fire(next);
        }
        false
    }

    /// Completes everything at the end of a run.
    fn finish(&mut self) {
        assert!(self.drain(TIMERS_MAX), "bios are lost: {} still wait", self.waiting.len());
        for _ in 0..TIMERS_MAX {
            let Some(next) = self.next() else { return };
            self.fire(next);
        }
        panic!("periods continue although no bio is in flight");
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![4 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Discard), 1 => Just(Op::Flush)]
}

fn flags() -> impl Strategy<Value = Flags> {
    prop_oneof![6 => Just(Flags::empty()), 1 => Just(Flags::PRIO), 1 => Just(Flags::SWAP)]
}

/// Returns steps with bios of up to `nr_sectors` sectors,
/// pauses of up to `us` µs, and the given writes.
fn steps(
    nr_sectors: u32,
    us: u64,
    text: impl Strategy<Value = (IoCostFile, String)>,
) -> impl Strategy<Value = Vec<Step>> {
    let group = 0..12_usize;
    let submit = (group.clone(), op(), flags(), any::<u64>(), 1..=nr_sectors).prop_map(
        |(group, op, flags, sector, nr_sectors)| Step::Submit { group, op, flags, sector: sector >> 20, nr_sectors },
    );
    let weight = prop_oneof![Just(1), Just(10_000), Just(0), 1..=10_000_u32];
    let step = prop_oneof![
        12 => submit,
        3 => (any::<bool>(), 1..=nr_sectors).prop_map(|(front, nr_sectors)| Step::Merge { front, nr_sectors }),
        8 => any::<usize>().prop_map(|which| Step::Complete { which }),
        6 => (0..=us).prop_map(|us| Step::Wait { us }),
        2 => (group.clone(), weight).prop_map(|(group, weight)| Step::Weight { group, weight }),
        1 => group.clone().prop_map(|parent| Step::Create { parent }),
        1 => group.prop_map(|group| Step::Remove { group }),
        1 => text.prop_map(|(file, text)| Step::Write { file, text }),
    ];
    prop::collection::vec(step, 1..300)
}

/// Returns realistic settings.
fn realistic() -> impl Strategy<Value = (IoCostFile, String)> {
    let speeds = (10_000_000..4_000_000_000_u64, 300..100_000_u32, 300..100_000_u32);
    let model = (speeds.clone(), speeds).prop_map(|(read, write)| {
        let (rbps, rseq, rrand) = read;
        let (wbps, wseq, wrand) = write;
        let text =
            format!("rbps={rbps} rseqiops={rseq} rrandiops={rrand} wbps={wbps} wseqiops={wseq} wrandiops={wrand}");
        (IoCostFile::Model, text)
    });
    let qos = (0..=100_u32, 0..300_000_u32, 0..=100_u32, 0..300_000_u32, 10..150_u32, 50..10_000_u32).prop_map(
        |(rpct, rlat, wpct, wlat, min, max)| {
            let text = format!("rpct={rpct} rlat={rlat} wpct={wpct} wlat={wlat} min={min} max={max}");
            (IoCostFile::Qos, text)
        },
    );
    let switch = prop_oneof![Just("enable=0"), Just("enable=1"), Just("enable=1 ctrl=auto")];
    prop_oneof![3 => model, 3 => qos, 2 => switch.prop_map(|text| (IoCostFile::Qos, text.to_owned()))]
}

/// Returns unrealistic settings.
fn unrealistic() -> impl Strategy<Value = (IoCostFile, String)> {
    let name = prop::sample::select(vec![
        "enable",
        "ctrl",
        "rpct",
        "rlat",
        "wpct",
        "wlat",
        "min",
        "max",
        "model",
        "rbps",
        "rseqiops",
        "rrandiops",
        "wbps",
        "wseqiops",
        "wrandiops",
        "",
    ]);
    let value = prop_oneof![
        Just("0".to_owned()),
        Just("1".to_owned()),
        Just("auto".to_owned()),
        Just("linear".to_owned()),
        Just("99.999".to_owned()),
        Just(u64::MAX.to_string()),
        any::<u64>().prop_map(|value| value.to_string()),
        any::<u32>().prop_map(|value| value.to_string()),
        "[0-9.x+-]{0,6}",
    ];
    let word = (name, value).prop_map(|(name, value)| format!("{name}={value}"));
    let text = prop::collection::vec(word, 0..3).prop_map(|words| words.join(" "));
    (prop::sample::select(vec![IoCostFile::Qos, IoCostFile::Model]), text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_bio_eventually_passes_under_realistic_settings(
        rotational in any::<bool>(),
        depth in 1..3_u32,
        steps in steps(256, 100_000, realistic()),
    ) {
        let mut host = Host::new(rotational, depth);
        for step in &steps {
            host.step(step);
        }
        host.finish();
    }

    #[test]
    fn io_cost_does_not_panic_on_unrealistic_settings(
        rotational in any::<bool>(),
        depth in 0..3_u32,
        steps in steps(u32::MAX, u64::MAX >> 24, unrealistic()),
    ) {
        let mut host = Host::new(rotational, depth);
        for step in &steps {
            host.step(step);
        }
        host.drain(1_000);
        for group in host.site.groups.all() {
            for file in [IoCostFile::Qos, IoCostFile::Model, IoCostFile::Weight, IoCostFile::Stat] {
                let _text = host.cost.read(file, group);
            }
        }
    }
}
