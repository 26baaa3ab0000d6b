//! Tests that the model detects violations.

use iosched::{Bio, BioDone, CgroupId, ContextId, Flags, IoPriority, Op, QueueConfig, RequestQueue, Time};

use super::{Conditions, Layer, Model, Seen};
use crate::violation::Property;

const NOW: Time = Time::ZERO;

fn model() -> (Model, ContextId) {
    model_of(&QueueConfig::default())
}

fn model_of(config: &QueueConfig) -> (Model, ContextId) {
    let mut queue = RequestQueue::new(NOW, config, iosched::Registry::linux().get("noop").unwrap());
    let context = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
    let mut model = Model::new(config, NOW);
    model.started(context).unwrap();
    (model, context)
}

fn announce(model: &mut Model, context: ContextId, op: Op, flags: Flags, sector: u64) -> u64 {
    let nr_sectors = if op == Op::Flush { 0 } else { 8 };
    let conditions = Conditions { max_sectors: 16, cfq: true, layer: Layer::Single, switching: false };
    model.announce(NOW, &Bio { op, flags, sector, nr_sectors, context, cookie: 0 }, conditions)
}

fn seen(cookie: u64, op: Op, sector: u64, nr_sectors: u32) -> Seen {
    Seen { cookie, sector, nr_sectors, op, sync: false, fua: false }
}

fn done(context: ContextId, cookies: &[u64]) -> Vec<(BioDone, Result<(), iosched::IoError>)> {
    cookies.iter().map(|&cookie| (BioDone { cookie, context, submitted: NOW }, Ok(()))).collect()
}

#[track_caller]
fn expect<T: std::fmt::Debug>(found: Result<T, crate::Violation>, property: Property) {
    assert_eq!(found.unwrap_err().property, property);
}

#[test]
fn a_bio_completed_twice_is_detected() {
    let (mut model, context) = model();
    let bio = announce(&mut model, context, Op::Read, Flags::empty(), 0);
    model.founded(NOW, bio, 0, 1).unwrap();
    model.dispatched(NOW, 0, seen(bio, Op::Read, 0, 8), 1).unwrap();
    model.completed(NOW, 0, Ok(()), &done(context, &[bio])).unwrap();
    model.check_empty().unwrap();
    expect(model.completed(NOW, 0, Ok(()), &done(context, &[bio])), Property::DispatchedOnce);
}

#[test]
fn a_bio_never_completed_is_detected() {
    let (mut model, context) = model();
    let bio = announce(&mut model, context, Op::Read, Flags::empty(), 0);
    model.founded(NOW, bio, 0, 1).unwrap();
    expect(model.check_empty(), Property::CompletedOnce);
    model.dispatched(NOW, 0, seen(bio, Op::Read, 0, 8), 1).unwrap();
    expect(model.completed(NOW, 0, Ok(()), &[]), Property::WholeBios);
}

#[test]
fn a_request_dispatched_twice_or_not_submitted_is_detected() {
    let (mut model, context) = model();
    let bio = announce(&mut model, context, Op::Read, Flags::empty(), 0);
    model.founded(NOW, bio, 0, 1).unwrap();
    model.dispatched(NOW, 0, seen(bio, Op::Read, 0, 8), 1).unwrap();
    expect(model.dispatched(NOW, 0, seen(bio, Op::Read, 0, 8), 1), Property::DispatchedOnce);
    expect(model.dispatched(NOW, 1, seen(bio + 1, Op::Read, 0, 8), 1), Property::DispatchedOnce);
}

#[test]
fn merges_out_of_order_with_gaps_or_sync_in_async_are_detected() {
    let merged = |sectors: [u64; 2], flags: Flags, order: [usize; 2]| {
        let (mut model, context) = model();
        let bios = [
            announce(&mut model, context, Op::Write, Flags::empty(), sectors[0]),
            announce(&mut model, context, Op::Write, flags, sectors[1]),
        ];
        model.founded(NOW, bios[0], 0, 1).unwrap();
        model.merged(NOW, bios[1], 1, false, Layer::Single).unwrap();
        model.dispatched(NOW, 0, seen(bios[0], Op::Write, 0, 16), 1).unwrap();
        model.completed(NOW, 0, Ok(()), &done(context, &order.map(|bio| bios[bio])))
    };
    merged([0, 8], Flags::empty(), [0, 1]).unwrap();
    expect(merged([0, 8], Flags::empty(), [1, 0]), Property::WholeBios);
    expect(merged([0, 16], Flags::empty(), [0, 1]), Property::WholeBios);
    expect(merged([0, 8], Flags::SYNC, [0, 1]), Property::SyncJoinsSync);
}

#[test]
fn a_flush_that_began_before_its_bio_is_detected() {
    let (mut model, context) = model();
    let early = announce(&mut model, context, Op::Flush, Flags::empty(), 0);
    model.founded(NOW, early, 0, 1).unwrap();
    model.dispatched(NOW, 1, seen(u64::MAX, Op::Flush, 0, 0), 2).unwrap();
    let late = announce(&mut model, context, Op::Flush, Flags::empty(), 0);
    model.founded(NOW, late, 2, 3).unwrap();
    expect(model.completed(NOW, 1, Ok(()), &done(context, &[late])), Property::NothingCrossesAFlush);
}

#[test]
fn a_write_without_its_flush_is_detected() {
    let (mut model, context) = model();
    let bio = announce(&mut model, context, Op::Write, Flags::PREFLUSH, 0);
    model.founded(NOW, bio, 0, 1).unwrap();
    expect(model.dispatched(NOW, 0, seen(bio, Op::Write, 0, 8), 1), Property::NothingCrossesAFlush);

    let bio = announce(&mut model, context, Op::Write, Flags::FUA, 0);
    model.founded(NOW, bio, 1, 2).unwrap();
    model.dispatched(NOW, 1, Seen { fua: true, ..seen(bio, Op::Write, 0, 8) }, 2).unwrap();
    expect(model.completed(NOW, 1, Ok(()), &done(context, &[bio])), Property::NothingCrossesAFlush);
}

#[test]
fn requests_that_cross_a_barrier_are_detected() {
    // Without a volatile cache, a barrier is only one write. The bios before and after the barrier
    // are also one write each.
    let queue = QueueConfig { barriers: true, write_cache: false, ..QueueConfig::default() };
    let submitted = || {
        let (mut model, context) = model_of(&queue);
        let bios = [Flags::empty(), Flags::PREFLUSH, Flags::empty()]
            .map(|flags| announce(&mut model, context, Op::Write, flags, 0));
        for (index, &bio) in bios.iter().enumerate() {
            model.founded(NOW, bio, index, index + 1).unwrap();
        }
        (model, bios, done(context, &bios))
    };
    let issue = |model: &mut Model, bios: [u64; 3], index: usize| {
        model.dispatched(NOW, index, seen(bios[index], Op::Write, 0, 8), 3)
    };

    let (mut model, bios, done) = submitted();
    for index in 0..3 {
        issue(&mut model, bios, index).unwrap();
        model.completed(NOW, index, Ok(()), &done[index..=index]).unwrap();
    }
    model.check_empty().unwrap();

    let (mut model, bios, _) = submitted();
    issue(&mut model, bios, 0).unwrap();
    expect(issue(&mut model, bios, 1), Property::NothingCrossesABarrier);
    expect(issue(&mut model, bios, 2), Property::NothingCrossesABarrier);

    let (mut model, bios, done) = submitted();
    issue(&mut model, bios, 0).unwrap();
    model.completed(NOW, 0, Ok(()), &done[..1]).unwrap();
    issue(&mut model, bios, 1).unwrap();
    expect(issue(&mut model, bios, 2), Property::NothingCrossesABarrier);
}

#[test]
fn a_barrier_flush_before_earlier_requests_is_detected() {
    let (mut model, context) = model_of(&QueueConfig { barriers: true, ..QueueConfig::default() });
    let before = announce(&mut model, context, Op::Write, Flags::empty(), 0);
    model.founded(NOW, before, 0, 1).unwrap();
    let barrier = announce(&mut model, context, Op::Flush, Flags::empty(), 0);
    model.founded(NOW, barrier, 1, 2).unwrap();
    expect(model.dispatched(NOW, 2, seen(u64::MAX, Op::Flush, 0, 0), 3), Property::NothingCrossesABarrier);
}

#[test]
fn statistics_that_miss_a_request_are_detected() {
    let (mut model, context) = model();
    let mut queue = RequestQueue::new(NOW, &QueueConfig::default(), iosched::Registry::linux().get("noop").unwrap());
    model.sums.check(queue.stat(NOW)).unwrap();
    let bio = announce(&mut model, context, Op::Read, Flags::empty(), 0);
    model.founded(NOW, bio, 0, 1).unwrap();
    expect(model.sums.check(queue.stat(NOW)), Property::Statistics);
}

#[test]
fn a_context_reused_while_in_use_is_detected() {
    let (mut model, context) = model();
    expect(model.started(context), Property::BoundedMemory);
}
