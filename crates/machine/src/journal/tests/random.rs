//! Tests of the journal with random operations and a model of the log on the medium.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    /// Begins an operation that changes and frees blocks, and may stay open.
    Change {
        blocks: Vec<u8>,
        frees: Vec<u8>,
        more: u8,
        stays_open: bool,
    },
    /// Stops the operation that has been open for the longest time.
    Stop,
    Commit,
    Step,
    /// Frees space in the log for a waiting task, or as background work.
    Checkpoint,
    /// Periodic writeback of one block.
    WriteBack(u8),
}

fn operation() -> impl Strategy<Value = Operation> {
    let blocks = || prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        6 => (blocks(), prop::collection::vec(any::<u8>(), 0..3), 0_u8..10, any::<bool>())
            .prop_map(|(blocks, frees, more, stays_open)| Operation::Change { blocks, frees, more, stays_open }),
        2 => Just(Operation::Stop),
        2 => Just(Operation::Commit),
        6 => Just(Operation::Step),
        1 => Just(Operation::Checkpoint),
        2 => any::<u8>().prop_map(Operation::WriteBack),
    ]
}

/// State that recovery would restore after a crash now.
#[derive(Default)]
struct Model {
    /// The transaction that last wrote each block of the log.
    log: BTreeMap<Block, Tid>,
    /// The blocks of the log that each transaction wrote.
    written: BTreeMap<Tid, Vec<BlockRun>>,
    /// For each block, the last committed transaction that changed it, or `None` if it was freed.
    committed: BTreeMap<Block, Option<Tid>>,
    /// For each block, the transaction that made the contents at the block's place.
    in_place: BTreeMap<Block, Tid>,
    /// Changes of transactions that are not committed.
    changes: BTreeMap<Tid, BTreeMap<Block, bool>>,
    record: Option<Block>,
    open: Vec<Handle>,
}

impl Model {
    fn change(&mut self, journal: &mut Journal, operation: &Operation) {
        let Operation::Change { blocks, frees, more, stays_open } = operation else { return };
        let all: BTreeSet<_> = blocks.iter().chain(frees).collect();
        let mut handle = match journal.start(all.len() as u32 + u32::from(*more)) {
            Start::Started(handle) => handle,
            Start::Wait(Wait::Space) => return self.make_room(journal),
            Start::Wait(Wait::Full(tid) | Wait::Locked(tid)) => {
                assert_eq!(journal.running(), Some(tid));
                return;
            }
        };
        let changes = self.changes.entry(handle.tid()).or_default();
        for block in blocks {
            let before = changes.insert(u64::from(*block), true);
            let dirtied = journal.dirty(&mut handle, u64::from(*block));
            assert_eq!(dirtied == Dirtied::Already, before == Some(true));
        }
        for block in frees {
            changes.insert(u64::from(*block), false);
            journal.forget(&mut handle, u64::from(*block));
        }
        if *stays_open {
            self.open.push(handle);
        } else {
            journal.stop(handle, false);
        }
    }

    fn step(&mut self, journal: &mut Journal) {
        let tid = journal.committing();
        match journal.next_step() {
            None => assert_eq!(journal.committing(), None),
            Some(CommitStep::WaitHandles) => assert!(!self.open.is_empty()),
            Some(CommitStep::WriteData { .. }) => {}
            Some(CommitStep::WriteLog { runs, .. }) => {
                let tid = journal.committing().unwrap();
                for block in runs.iter().flat_map(|run| run.block..run.block + run.blocks) {
                    self.write(block, tid);
                }
                let metadata: BTreeSet<Block> = journal.committing_blocks().collect();
                let changed = self.changes[&tid].iter().filter(|(_, changed)| **changed).map(|(block, _)| *block);
                assert_eq!(metadata, changed.collect(), "the log has exactly the changed blocks");
                assert!(runs.iter().map(|run| run.blocks).sum::<u64>() >= metadata.len() as u64);
                self.written.insert(tid, runs);
            }
            Some(CommitStep::WriteCommit { block, .. }) => {
                self.write(block, journal.committing().unwrap());
                self.record = Some(block);
            }
            Some(CommitStep::Done { tid: done, dirty }) => {
                assert_eq!(Some(done), tid);
                let record = BlockRun { block: self.record.take().expect("its commit block is written"), blocks: 1 };
                self.written.entry(done).or_default().push(record);
                for (block, changed) in self.changes.remove(&done).unwrap_or_default() {
                    assert_eq!(dirty.contains(&block), changed && journal.is_writable(block));
                    self.committed.insert(block, changed.then_some(done));
                }
            }
        }
    }

    fn write(&mut self, block: Block, tid: Tid) {
        assert!((5001..6024).contains(&block), "block {block} is outside the log");
        self.log.insert(block, tid);
    }

    fn make_room(&mut self, journal: &mut Journal) {
        let mut blocks = Vec::new();
        match journal.checkpoint(7, &mut blocks) {
            Checkpoint::Tail(update) => journal.tail_updated(update),
            Checkpoint::Write => {
                assert!((1..=7).contains(&blocks.len()));
                blocks.into_iter().for_each(|block| assert!(self.write_back(journal, block)));
            }
            Checkpoint::Commit(tid) => {
                assert!(!journal.is_committed(tid));
                assert!(journal.request_commit(tid, false));
            }
            Checkpoint::Nothing => assert_eq!(journal.checkpoint_blocks(), 0),
        }
    }

    fn write_back(&mut self, journal: &mut Journal, block: Block) -> bool {
        if journal.is_writable(block)
            && let Some(Some(tid)) = self.committed.get(&block)
        {
            self.in_place.insert(block, *tid);
        }
        journal.written(block)
    }

    /// Checks the state that a crash would leave now: every committed change must be at its place,
    /// or complete in the log.
    fn check_durable(&self) {
        let mut whole = BTreeMap::new();
        for (block, tid) in self.committed.iter().filter_map(|(block, tid)| Some((*block, (*tid)?))) {
            if self.in_place.get(&block) == Some(&tid) {
                continue;
            }
            let in_log = *whole.entry(tid).or_insert_with(|| {
                let runs = self.written.get(&tid).expect("a committed transaction was written");
                runs.iter().flat_map(|run| run.block..run.block + run.blocks).all(|logged| self.log[&logged] == tid)
            });
            assert!(in_log, "{block} of {tid:?} is lost");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn committed_changes_survive_a_crash_at_any_time(
        operations in prop::collection::vec(operation(), 1..1000),
        split in 100_u64..900,
    ) {
        let config = JournalConfig::new(&FsConfig::new(crate::fs::FsKind::Ext3));
        let log = [BlockRun { block: 5000, blocks: split }, BlockRun { block: 5000 + split, blocks: 1024 - split }];
        let mut journal = Journal::new(&config, &log);
        let mut model = Model::default();
        for (number, operation) in operations.iter().enumerate() {
            match operation {
                Operation::Change { .. } => model.change(&mut journal, operation),
                Operation::Stop => if !model.open.is_empty() {
                    journal.stop(model.open.remove(0), false);
                },
                Operation::Commit => {
                    journal.begin_commit();
                }
                Operation::Step => model.step(&mut journal),
                Operation::Checkpoint => model.make_room(&mut journal),
                Operation::WriteBack(block) => {
                    model.write_back(&mut journal, u64::from(*block));
                }
            }
            model.check_durable();
            if number % 16 == 0 {
                journal.check();
            }
        }
        journal.check();
    }

    #[test]
    fn every_handle_starts_after_a_limited_wait(
        sizes in prop::collection::vec(1_u32..256, 1..300),
        spread in 1_u64..5000,
    ) {
        let config = JournalConfig::new(&FsConfig::new(crate::fs::FsKind::Ext3));
        let mut journal = Journal::new(&config, &[BlockRun { block: 10_000, blocks: 1024 }]);
        let mut next = 0;
        for size in sizes {
            let mut tries = 0;
            let mut handle = loop {
                tries += 1;
                prop_assert!(tries < 2000);
                match journal.start(size) {
                    Start::Started(handle) => break handle,
                    Start::Wait(Wait::Space) => {
                        let mut blocks = Vec::new();
                        match journal.checkpoint(64, &mut blocks) {
                            Checkpoint::Tail(update) => journal.tail_updated(update),
                            Checkpoint::Write => blocks.iter().for_each(|block| assert!(journal.written(*block))),
                            Checkpoint::Commit(tid) => {
                                prop_assert!(journal.request_commit(tid, false));
                                if journal.committing().is_none() {
                                    journal.begin_commit();
                                }
                                journal.next_step();
                            }
                            Checkpoint::Nothing => prop_assert!(false, "the log is full, and no checkpoint helps"),
                        }
                    }
                    Start::Wait(_) => {
                        journal.begin_commit();
                        journal.next_step();
                    }
                }
            };
            for _ in 0..size {
                journal.dirty(&mut handle, next % spread);
                next += 1;
            }
            journal.stop(handle, false);
            journal.check();
        }
    }
}
