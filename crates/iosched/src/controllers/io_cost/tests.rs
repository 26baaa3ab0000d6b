//! Tests of single rules.

use super::clock::{MICROSECOND, SECOND};
use super::*;
use crate::context::ContextId;
use crate::controllers::bio_state::{BioId, BioState, Passage};
use crate::controllers::write_error::WriteError;
use crate::controllers::{Admission, Served, Target, WeightReason};
use crate::request::{Bio, Flags, Op, Sector};
use crate::time::{MICROSECOND_NS, MILLISECOND_NS};

/// Each read of 4 KiB costs a thousandth of a second, at any sector; periods last 50 ms.
const MODEL: &str = "rbps=4096000 rseqiops=1000 rrandiops=1000 wbps=4096000 wseqiops=1000 wrandiops=1000";
/// Cost of a read of 4 KiB.
const READ: u64 = SECOND.div_ceil(1_000);

/// Controller with a host that does nothing on its own.
struct Bench {
    site: Site,
    cost: IoCost,
    bios: u64,
}

impl Bench {
    /// Creates a controller that is on, at 100 %, and children of the root with these weights.
    fn new<const N: usize>(weights: [u32; N]) -> (Self, [CgroupId; N]) {
        let mut site = Site::new(Time::BEGINNING, 1_000);
        site.log.record(true);
        let cost = IoCost::new(&mut site, false, 32);
        let mut bench = Self { site, cost, bios: 0 };
        bench.write(IoCostFile::Model, CgroupId::ROOT, MODEL).unwrap();
        bench.write(IoCostFile::Qos, CgroupId::ROOT, "enable=1 min=100 max=100").unwrap();
        let groups = weights.map(|weight| bench.group(CgroupId::ROOT, weight));
        (bench, groups)
    }

    fn group(&mut self, parent: CgroupId, weight: u32) -> CgroupId {
        let group = self.site.groups.create(parent);
        self.write(IoCostFile::Weight, group, &weight.to_string()).unwrap();
        group
    }

    fn write(&mut self, file: IoCostFile, group: CgroupId, text: &str) -> Result<(), WriteError> {
        self.cost.write(&mut self.site, file, group, text)
    }

    fn new_bio(&mut self, group: CgroupId, op: Op, flags: Flags, sector: Sector, nr_sectors: u32) -> BioId {
        self.bios += 1;
        let bio = Bio { op, flags, sector, nr_sectors, context: ContextId(0), cookie: self.bios };
        self.site.begin(BioState::new(self.site.now, &bio, group))
    }

    fn submit(&mut self, group: CgroupId, flags: Flags, nr_sectors: u32) -> (BioId, Passage) {
        let bio_id = self.new_bio(group, Op::Read, flags, 8, nr_sectors);
        (bio_id, self.cost.throttle(&mut self.site, bio_id))
    }

    /// Submits a read of 4 KiB.
    fn read(&mut self, group: CgroupId) -> Passage {
        self.submit(group, Flags::empty(), 8).1
    }

    /// Returns the number of reads of 4 KiB that pass until one waits.
    fn reads_until_one_waits(&mut self, group: CgroupId) -> u32 {
        (0..).take_while(|_| self.read(group) == Passage::Pass).last().map_or(0, |last| last + 1)
    }

    fn pass_us(&mut self, us: u64) {
        self.site.now = self.site.now + us * MICROSECOND_NS;
    }

    /// Ends the period without firing timers of groups.
    fn end_period(&mut self) {
        let jiffy = self.site.wheel.next().expect("a period timer is armed");
        self.site.now = Time::from_ns(jiffy * self.site.jiffy_ns);
        while let Some(timer) = self.site.wheel.fire(jiffy) {
            self.cost.fire(&mut self.site, timer);
        }
    }

    fn complete(&mut self, bio_id: BioId) {
        let (now, bio) = (self.site.now, self.site.bios[bio_id]);
        let served =
            Served { founder: bio_id, op: bio.op, nr_sectors: bio.nr_sectors.into(), requested: now, got: now };
        self.cost.completed(&self.site, &served, &[bio_id]);
        if let Some(group) = self.site.end(bio_id) {
            self.cost.group_left(&mut self.site, group);
        }
    }

    /// Returns the decisions since the last call.
    fn events(&mut self) -> Vec<IoCostEvent> {
        let events = self.site.log.take().filter_map(|(_, event)| match event {
            ControllerEvent::IoCost(event) => Some(event),
            _ => None,
        });
        events.collect()
    }

    fn last_admission(&mut self) -> (Admission, u64, u64) {
        let events = self.events();
        let admission = events.iter().rev().find_map(|event| match *event {
            IoCostEvent::Admit { how, absolute, cost, .. } => Some((how, absolute, cost)),
            _ => None,
        });
        admission.expect("a bio passed")
    }
}

#[test]
fn bios_without_cost_pass_and_change_nothing() {
    let (mut bench, [group]) = Bench::new([100]);
    for (group, op) in [(CgroupId::ROOT, Op::Read), (group, Op::Discard), (group, Op::WriteZeroes), (group, Op::Flush)]
    {
        let bio_id = bench.new_bio(group, op, Flags::empty(), 800, 8);
        assert_eq!(bench.cost.throttle(&mut bench.site, bio_id), Passage::Pass);
        assert_eq!(bench.last_admission(), (Admission::Free, 0, 0));
    }
    bench.write(IoCostFile::Qos, CgroupId::ROOT, "enable=0").unwrap();
    assert_eq!(bench.read(group), Passage::Pass);
    assert_eq!(bench.last_admission(), (Admission::Free, 0, 0));
    assert_eq!((bench.cost.tree[group].cursor, bench.cost.tree[group].active), (0, false));
}

#[test]
fn a_new_group_begins_with_half_a_period_of_budget() {
    let (mut bench, [light, heavy]) = Bench::new([100, 300]);
    assert_eq!(bench.read(heavy), Passage::Pass);
    // In 25 ms, the device serves 25 reads. The group has a quarter of the device, so 6 reads pass.
    assert_eq!(bench.reads_until_one_waits(light), 6);
    assert_eq!(bench.cost.tree[light].shares.full, 65_536 / 4);
    let cost = bench.last_admission().2;
    assert_eq!(cost, 4 * READ);
}

#[test]
fn waiting_bios_continue_1_to_2_percent_of_a_period_late() {
    let (mut bench, [group]) = Bench::new([100]);
    assert_eq!(bench.reads_until_one_waits(group), 24);
    let missing_ns = 1_000 * MICROSECOND_NS - (25_000 - 24_000) * MICROSECOND_NS;
    let (earliest, slack) = (bench.site.now + missing_ns, 500 * MICROSECOND_NS);
    let arm = bench.events().into_iter().find_map(|event| match event {
        IoCostEvent::Arm { soft, hard, .. } => Some((soft, hard)),
        _ => None,
    });
    let (soft, hard) = arm.expect("the group's timer is armed");
    assert!(soft >= earliest + slack && soft <= earliest + slack + 2 * MICROSECOND_NS, "{soft} {earliest}");
    assert_eq!(hard, soft + slack);
    assert_eq!(bench.cost.next_timer(), Some(hard));
    bench.site.now = hard;
    bench.cost.timer(&mut bench.site);
    assert_eq!(bench.site.take_going_on().count(), 1);
    assert_eq!(bench.last_admission().0, Admission::Woken);
    assert_eq!(bench.cost.next_timer(), None);
}

#[test]
fn a_waiting_bio_blocks_its_group_except_prio_and_swap() {
    let (mut bench, [group]) = Bench::new([100]);
    assert_eq!(
        bench.submit(group, Flags::empty(), 8 * 100).1,
        Passage::Wait,
        "the bio costs more than the initial budget"
    );
    assert_eq!(bench.read(group), Passage::Wait, "the read waits although the budget covers it");
    for flags in [Flags::PRIO, Flags::SWAP] {
        assert_eq!(bench.submit(group, flags, 8).1, Passage::Pass);
        assert_eq!(bench.last_admission(), (Admission::Debt, READ, 0));
    }
    let state = &bench.cost.tree[group];
    assert_eq!((state.debt, state.current_weight, state.full_weight), (2 * READ, 1, 100 * 65_536));
    assert!(!bench.site.take_rest(ContextId(0)), "a small debt delays no process");
}

#[test]
fn debt_delays_processes_and_is_forgiven_when_idle() {
    let (mut bench, [group]) = Bench::new([100]);
    assert_eq!(bench.submit(group, Flags::SWAP, 8 * 2_000).1, Passage::Pass);
    assert!(bench.site.take_rest(ContextId(0)));
    let state = &bench.cost.tree[group];
    // The debt is 2 s, and the budget is half a period: the excess is 39.5 periods.
    assert_eq!(state.delay_us, 250 + 249_750 * (3_950 - 500) / 24_500);
    assert_eq!(state.decayed_delay_us(bench.cost.clock.at(bench.site.now).us + 1_000_000), state.delay_us / 2);
    assert_eq!(bench.cost.rest_ns(&bench.site, group), state.delay_us * 1_000);
    let forgiven = |bench: &mut Bench| {
        bench.events().into_iter().find_map(|event| match event {
            IoCostEvent::Forgive { used_percent, debt, .. } => Some((used_percent, debt)),
            _ => None,
        })
    };
    bench.end_period();
    bench.end_period();
    assert_eq!(forgiven(&mut bench), None, "the device was in use for more than half of 100 ms");
    bench.end_period();
    bench.end_period();
    let (used_percent, [before, after]) = forgiven(&mut bench).expect("io.cost forgives a debt");
    assert!(used_percent == 0 && after <= before / 2, "{before} {after}");
}

#[test]
fn parents_and_children_of_active_groups_are_not_charged() {
    let (mut bench, [outer]) = Bench::new([100]);
    let inner = bench.group(outer, 100);
    assert_eq!(bench.read(inner), Passage::Pass);
    assert_eq!(bench.last_admission().0, Admission::Now);
    assert_eq!(bench.read(outer), Passage::Pass);
    assert_eq!(bench.last_admission().0, Admission::Free);
    let (mut bench, [outer]) = Bench::new([100]);
    let inner = bench.group(outer, 100);
    assert_eq!(bench.read(outer), Passage::Pass);
    assert_eq!(bench.read(inner), Passage::Pass);
    assert_eq!(bench.last_admission().0, Admission::Free);
}

#[test]
fn merges_are_charged_or_added_to_debt_without_waiting() {
    let (mut bench, [group]) = Bench::new([100]);
    let (first, _) = bench.submit(group, Flags::empty(), 8);
    let merge = |bench: &mut Bench, sector: Sector, target: Target| {
        let bio_id = bench.new_bio(group, Op::Read, Flags::empty(), sector, 8);
        bench.cost.merged(&mut bench.site, bio_id, &target);
        match bench.events()[..] {
            [.., IoCostEvent::Merge { how, cost, .. }] => (bio_id, how, cost),
            _ => panic!("the last event is not a merge"),
        }
    };
    let (_, how, cost) = merge(&mut bench, 16, Target { sector: 8, end: 16, first });
    assert_eq!((how, cost), (Admission::Now, READ), "a merge costs pages only, without a base cost");
    assert_eq!(bench.cost.tree[group].cursor, 24);
    let (front, how, _) = merge(&mut bench, 0, Target { sector: 8, end: 24, first });
    assert_eq!((how, bench.cost.tree[group].cursor), (Admission::Now, 24), "a front merge does not move the cursor");
    bench.site.bios[front].io_cost = 0;
    let (_, how, cost) = merge(&mut bench, 24, Target { sector: 0, end: 24, first: front });
    assert_eq!((how, cost), (Admission::Debt, 0));
}

#[test]
fn donor_takes_back_weight_in_steps_of_25_percent_in_u32() {
    for (weight, step) in [(100, 25 * 65_536), (2_621, 655 * 65_536 + 16_384), (2_622, 9_176)] {
        let (mut bench, [group, other]) = Bench::new([weight, weight]);
        assert_eq!([bench.read(group), bench.read(other)], [Passage::Pass; 2]);
        let full = weight * 65_536;
        bench.cost.tree.set(group, full, 1, None);
        bench.cost.tree.commit();
        let at = bench.cost.clock.at(bench.site.now);
        let state = &mut bench.cost.tree[group];
        state.saved_budget = i64::MAX;
        state.spent += state.budget(at.now) - 1_000 * MICROSECOND as i64;
        bench.events();
        // The budget of 1 ms does not cover a page after one step, so the group takes more steps.
        let _admitted = bench.submit(group, Flags::empty(), 8);
        let adjusted = bench.events().into_iter().find_map(|event| match event {
            IoCostEvent::Weight { why: WeightReason::Adjust { .. }, to, .. } => Some(to),
            _ => None,
        });
        let adjusted = adjusted.expect("the donor takes weight back");
        assert!(adjusted == full || (adjusted - 1) % step == 0, "{weight}: {adjusted} in steps of {step}");
    }
}

#[test]
fn a_group_short_of_budget_doubles_vrate_in_41_periods() {
    let (mut bench, [group]) = Bench::new([100]);
    bench.write(IoCostFile::Qos, CgroupId::ROOT, "min=1 max=10000").unwrap();
    assert_eq!(bench.submit(group, Flags::empty(), 8 * 10_000_000).1, Passage::Wait);
    let mut reached = Vec::new();
    for period in 1..=73 {
        bench.end_period();
        let base = bench.cost.clock.base;
        if base >= [2, 100][reached.len()] * MICROSECOND {
            reached.push(period);
        }
    }
    assert_eq!(reached, [41, 73]);
    assert!(bench.cost.read(IoCostFile::Stat, CgroupId::ROOT).starts_with("cost.vrate=10000.00 "));
}

#[test]
fn missed_latency_targets_lower_vrate_to_the_minimum() {
    let (mut bench, [group]) = Bench::new([100]);
    bench.write(IoCostFile::Qos, CgroupId::ROOT, "rpct=90 rlat=25000 min=99 max=200").unwrap();
    for period in 0..6 {
        let bio_id = bench.submit(group, Flags::empty(), 8).0;
        bench.pass_us(26_500);
        let requested = bench.site.now - 26_500 * MICROSECOND_NS;
        let served = Served { founder: bio_id, op: Op::Read, nr_sectors: 8, requested, got: requested };
        bench.cost.completed(&bench.site, &served, &[bio_id]);
        bench.end_period();
        assert_eq!(bench.cost.periods.busy, period + 1);
    }
    assert_eq!(bench.cost.clock.base, bench.cost.settings.bounds[0]);
    assert_eq!(bench.cost.read(IoCostFile::Stat, CgroupId::ROOT)[..16], *"cost.vrate=99.00");
}

#[test]
fn latency_targets_exclude_the_transfer_time() {
    let (mut bench, [group]) = Bench::new([100]);
    let founder = bench.new_bio(group, Op::Read, Flags::empty(), 0, 15);
    bench.write(IoCostFile::Qos, CgroupId::ROOT, "rpct=90 rlat=100").unwrap();
    let page_ns = READ / clock::NANOSECOND;
    for (latency_ns, missed) in [(page_ns + 100_000, 0), (page_ns + 100_001, 1_000_000), (page_ns / 2, 0)] {
        let requested = bench.site.now;
        bench.site.now = requested + latency_ns;
        let served = Served { founder, op: Op::Read, nr_sectors: 15, requested, got: requested };
        bench.cost.completed(&bench.site, &served, &[]);
        let strain = bench.cost.load.take(1_000);
        assert!(format!("{strain:?}").contains(&format!("missed_ppm: [{missed}, 0]")), "{latency_ns}: {strain:?}");
    }
}

#[test]
fn the_last_idle_group_is_deactivated_and_stops_periods() {
    let (mut bench, [group]) = Bench::new([100]);
    let bio_id = bench.submit(group, Flags::empty(), 8).0;
    bench.end_period();
    bench.end_period();
    assert!(bench.cost.tree[group].active, "a bio is in flight");
    bench.complete(bio_id);
    bench.end_period();
    assert!(!bench.cost.tree[group].active && !bench.cost.periods.running);
    assert_eq!(bench.site.wheel.next(), None);
    assert!(bench.events().iter().any(|event| matches!(event, IoCostEvent::Idle { .. })));
}

#[test]
fn freeing_a_group_ends_its_delay_and_frees_its_share() {
    let (mut bench, [group, other]) = Bench::new([100, 100]);
    assert_eq!(bench.read(other), Passage::Pass);
    let bio_id = bench.submit(group, Flags::SWAP, 8 * 5_000).0;
    assert_eq!(bench.site.remove_group(group), None);
    bench.events();
    assert!(bench.cost.rest_ns(&bench.site, group) > 0, "the bio in flight keeps the group");
    bench.complete(bio_id);
    let events = bench.events();
    assert_eq!(events, [IoCostEvent::Free { group }, IoCostEvent::Delay { group, ns: 0 }]);
    assert!(bench.cost.is_freed(group));
    assert_eq!(bench.cost.rest_ns(&bench.site, group), 0);
    assert_eq!(bench.cost.tree.shares(other).full, 65_536);
    bench.cost.tree.check();
}

#[test]
fn a_group_lends_unused_share_to_a_group_short_of_budget() {
    let (mut bench, [light, heavy]) = Bench::new([100, 100]);
    for _ in 0..3 {
        let bio_id = bench.submit(light, Flags::empty(), 8).0;
        bench.complete(bio_id);
        while bench.read(heavy) == Passage::Pass {}
        bench.end_period();
    }
    let lent = bench.events().into_iter().any(|event| {
        matches!(event, IoCostEvent::Weight { group, why: WeightReason::Transfer { .. }, .. } if group == light)
    });
    assert!(lent);
    assert!(bench.cost.tree.shares(light).current < 65_536 / 4);
    assert!(bench.cost.tree.shares(heavy).current > 3 * (65_536 / 4));
    assert!(bench.cost.clock.rate > bench.cost.clock.base, "a higher rate compensates for discarded budget");
}

#[test]
fn invalid_writes_change_nothing_and_valid_ones_apply_at_once() {
    let (mut bench, [group]) = Bench::new([100]);
    let before = bench.cost.read(IoCostFile::Qos, CgroupId::ROOT);
    assert_eq!(bench.write(IoCostFile::Qos, CgroupId::ROOT, "enable=0 min=150 max=120"), Err(WriteError::Invalid));
    assert_eq!(bench.cost.read(IoCostFile::Qos, CgroupId::ROOT), before);
    for (file, group) in [
        (IoCostFile::Qos, group),
        (IoCostFile::Model, group),
        (IoCostFile::Weight, CgroupId::ROOT),
        (IoCostFile::Stat, group),
    ] {
        assert_eq!(bench.write(file, group, "100"), Err(WriteError::Invalid));
    }
    bench.write(IoCostFile::Model, CgroupId::ROOT, "ctrl=auto").unwrap();
    let expected = "ctrl=auto model=linear rbps=488636629 rseqiops=8932 rrandiops=8518 wbps=427891549 wseqiops=28755 \
                    wrandiops=21940";
    assert_eq!(bench.cost.read(IoCostFile::Model, CgroupId::ROOT), expected);
    bench.write(IoCostFile::Weight, group, "8:0 300").unwrap();
    bench.write(IoCostFile::Weight, group, "default 50").unwrap();
    assert_eq!(bench.cost.tree[group].weight, 300 * 65_536);
    bench.write(IoCostFile::Weight, group, "8:0 default").unwrap();
    assert_eq!(bench.cost.tree[group].weight, 50 * 65_536);
}

#[test]
fn devices_without_a_model_get_the_default_of_their_type() {
    let model = |rotational, depth| {
        let mut site = Site::new(Time::BEGINNING, 1_000);
        let mut cost = IoCost::new(&mut site, rotational, depth);
        assert_eq!(cost.read(IoCostFile::Model, CgroupId::ROOT), "", "the file is empty before the first write");
        cost.write(&mut site, IoCostFile::Qos, CgroupId::ROOT, "enable=1").unwrap();
        (cost.period_us(), cost.settings.model.value.0[0].random_iops)
    };
    assert_eq!(model(true, 1), (500_000, 370));
    assert_eq!(model(false, 1), (50_000, 6_946));
    assert_eq!(model(false, 2), (50_000, 8_518));
}

#[test]
fn flash_at_5_times_its_speed_for_10_s_uses_the_fast_table() {
    let (mut bench, []) = Bench::new([]);
    bench.write(IoCostFile::Model, CgroupId::ROOT, "ctrl=auto").unwrap();
    bench.write(IoCostFile::Qos, CgroupId::ROOT, "ctrl=auto").unwrap();
    let IoCost { settings, clock, .. } = &mut bench.cost;
    (clock.base, clock.rate) = (5 * MICROSECOND, 6 * MICROSECOND);
    let later = |seconds: u64| Time::BEGINNING + seconds * 1_000 * MILLISECOND_NS;
    for seconds in [0, 5, 9] {
        settings.refresh(later(seconds), clock, false);
        assert_eq!(clock.period_us, 50_000);
    }
    clock.base -= MICROSECOND;
    settings.refresh(later(9), clock, false);
    clock.base += MICROSECOND;
    settings.refresh(later(10), clock, false);
    settings.refresh(later(19), clock, false);
    assert_eq!((clock.period_us, clock.base), (50_000, 5 * MICROSECOND), "the rate was lower in between");
    settings.refresh(later(20), clock, false);
    assert_eq!((clock.period_us, clock.base, clock.rate), (10_000, MICROSECOND, MICROSECOND));
    clock.base = MICROSECOND / 10;
    settings.qos.by_user = true;
    settings.refresh(later(30), clock, false);
    settings.refresh(later(50), clock, false);
    assert_eq!(clock.period_us, 10_000, "io.cost does not change parameters of the user");
}

#[test]
fn the_longer_latency_target_sets_the_period() {
    let (mut bench, []) = Bench::new([]);
    let mut period_us = |text: &str| {
        bench.write(IoCostFile::Qos, CgroupId::ROOT, text).unwrap();
        bench.cost.period_us()
    };
    assert_eq!(period_us("rpct=0 rlat=20000 wpct=50 wlat=20000"), 2 * 20_000);
    assert_eq!(period_us("rpct=50 wpct=0"), 10 * 20_000);
    assert_eq!(period_us("wlat=20001"), 2 * 20_001);
    assert_eq!(period_us("rpct=99 rlat=20002"), 2 * 20_002);
    assert_eq!(period_us("rlat=1 wlat=1"), 1_000);
    assert_eq!(period_us("wlat=600000"), 1_000_000);
    assert_eq!(period_us("wlat=0x80000001"), 1_000, "twice the latency overflows 32 bits");
}

#[test]
fn remaining_idle_time_counts_for_the_next_debt_halving() {
    let (mut bench, [group]) = Bench::new([100]);
    assert_eq!(bench.submit(group, Flags::SWAP, 8 * 2_000).1, Passage::Pass);
    let mut forgive = |after_us: u64, used_us: u64| {
        bench.cost.forgiveness.restart(bench.cost.clock.at(bench.site.now).us);
        bench.cost.forgiveness.rest_us = 60_000;
        let debt = bench.cost.tree[group].debt;
        let mut at = bench.cost.clock.at(bench.site.now);
        at.us += after_us;
        bench.cost.forgive(&mut bench.site, &[group], &at, true, used_us);
        (debt > bench.cost.tree[group].debt, bench.cost.forgiveness.rest_us)
    };
    assert_eq!(forgive(99_999, 0), (false, 60_000));
    assert_eq!(forgive(101_000, 60_000), (false, 0));
    assert_eq!(forgive(150_000, 0), (true, 10_000), "210 ms of idle time halve the debt twice");
}

/// Returns the jiffy at which a period of `length` jiffies ends. The period begins in `jiffy`.
/// `from_inside` tells whether the period begins when another period ends.
fn fires(jiffy: u64, length: u64, from_inside: bool) -> u64 {
    let expiry = jiffy + length;
    let distance = expiry - jiffy - u64::from(from_inside);
    let shift = match distance {
        0..63 => 0,
        63..504 => 3,
        504..4_032 => 6,
        _ => 9,
    };
    ((expiry >> shift) + 1) << shift
}

#[test]
fn period_ends_are_rounded_to_the_timer_wheel() {
    let check = |hz: u32, latency_us: u32| {
        let (mut bench, []) = Bench::new([]);
        bench.site = Site::new(Time::BEGINNING + 3 * MILLISECOND_NS, hz);
        bench.cost = IoCost::new(&mut bench.site, false, 32);
        let group = bench.site.groups.create(CgroupId::ROOT);
        bench.write(IoCostFile::Qos, CgroupId::ROOT, &format!("enable=1 rlat={latency_us} wlat=1")).unwrap();
        let length = bench.cost.period_us().div_ceil(bench.site.jiffy_ns / MICROSECOND_NS);
        assert_eq!(bench.read(group), Passage::Pass);
        let mut expected = fires(bench.site.jiffies(), length, false);
        for _ in 0..20 {
            assert_eq!(bench.site.wheel.next(), Some(expected), "{hz} Hz, {latency_us} us");
            bench.end_period();
            expected = fires(expected, length, true);
        }
    };
    for latency_us in [500, 5_000, 25_000, 31_000, 31_500, 32_000, 250_000, 251_500, 252_000, 500_000] {
        check(1_000, latency_us);
    }
    for latency_us in [25_000, 126_000, 250_000] {
        check(250, latency_us);
    }
}
