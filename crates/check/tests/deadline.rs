//! Tests that deadline's bound on waiting cannot be smaller: some requests wait exactly this long.

use iosched::{Bio, CgroupId, ContextId, Flags, IoPriority, Op, QueueConfig, RequestQueue, Time};
use proptest::prelude::*;

/// A queue under deadline with an endless sequence of reads.
struct Reads {
    queue: RequestQueue,
    context: ContextId,
    next: u64,
    now: Time,
}

impl Reads {
    fn new(tunables: &[(&str, u64)]) -> Self {
        let mut queue =
            RequestQueue::new(Time::ZERO, &QueueConfig::default(), iosched::Registry::linux().get("deadline").unwrap());
        queue.set_attribute(Time::ZERO, "nomerges", "2").unwrap();
        for (name, value) in tunables {
            queue.set_tunable(Time::ZERO, name, &value.to_string()).unwrap();
        }
        let context = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
        let mut reads = Self { queue, context, next: 0, now: Time::ZERO };
        (0..40).for_each(|_| reads.submit_read());
        reads
    }

    fn submit_read(&mut self) {
        self.submit(Op::Read, self.next * 8);
        self.next += 1;
    }

    fn submit(&mut self, op: Op, sector: u64) {
        let bio = Bio { op, flags: Flags::empty(), sector, nr_sectors: 8, context: self.context, cookie: sector };
        assert!(self.queue.submit(self.now, &bio).accepted());
    }

    /// Serves one request at `now` and replaces it. Returns its operation.
    fn serve(&mut self, now: Time) -> Op {
        let request = self.queue.dispatch(now).expect("there are always reads");
        let op = self.queue.request(request).op();
        self.queue.complete(now, request, Ok(()), |_, _| ());
        self.submit_read();
        op
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The write waits exactly for the rest of the current batch and for `writes_starved` further
    /// batches of reads.
    #[test]
    fn a_write_waits_for_writes_starved_batches_of_reads(batch in 0u64..20, starved in 0u64..5, served in 1u64..40) {
        let mut reads = Reads::new(&[("fifo_batch", batch), ("writes_starved", starved)]);
        let length = batch.max(1);
        for _ in 0..served {
            prop_assert_eq!(reads.serve(Time::ZERO), Op::Read);
        }
        reads.submit(Op::Write, 1 << 30);
        let mut passed_over = 0;
        while reads.serve(Time::ZERO) == Op::Read {
            passed_over += 1;
        }
        let rest = (length - served % length) % length;
        prop_assert_eq!(passed_over, rest + starved * length);
    }

    /// A read after all other reads in sector order begins the next batch once it is the oldest
    /// read and has expired.
    #[test]
    fn an_expired_read_begins_the_next_batch(batch in 1u64..20, served in 0u64..40) {
        let mut reads = Reads::new(&[("fifo_batch", batch), ("read_expire", 100)]);
        for _ in 0..served {
            reads.serve(Time::ZERO);
        }
        // The earlier reads are served in order, so afterwards this read is the oldest.
        reads.submit(Op::Read, 1 << 30);
        let before = 40;
        let served_at = |reads: &mut Reads, now| {
            let request = reads.queue.dispatch(now).expect("there are always reads");
            let sector = reads.queue.request(request).sector();
            reads.queue.complete(now, request, Ok(()), |_, _| ());
            reads.submit_read();
            sector
        };
        let late = Time::from_ns(200_000_000);
        reads.now = late;
        let passed_over = (0..).take_while(|_| served_at(&mut reads, late) != 1 << 30).count() as u64;
        // Each batch begins with the oldest request, which is also the next request in sector
        // order. Therefore 40 requests are served before the read, and then the rest of the batch
        // with the last of these 40.
        let first_after = (served + before).div_ceil(batch) * batch;
        prop_assert_eq!(passed_over, first_after - served);
    }
}
