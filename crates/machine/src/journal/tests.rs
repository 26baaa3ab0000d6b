//! Tests of the journal.

mod random;

use super::*;

fn journal(blocks: u64) -> Journal {
    let config = JournalConfig::new(&FsConfig::new(crate::fs::FsKind::Ext4));
    Journal::new(&config, &[BlockRun { block: 1000, blocks }])
}

fn started(journal: &mut Journal, credits: u32) -> Handle {
    match journal.start(credits) {
        Start::Started(handle) => handle,
        Start::Wait(wait) => panic!("the handle must wait: {wait:?}"),
    }
}

/// Changes blocks in one operation.
fn change(journal: &mut Journal, blocks: impl IntoIterator<Item = Block>) -> Tid {
    let mut handle = started(journal, 20);
    for block in blocks {
        journal.dirty(&mut handle, block);
    }
    journal.stop(handle, false)
}

/// Commits the running transaction with all steps. Returns the blocks that become dirty.
fn commit(journal: &mut Journal) -> Vec<Block> {
    journal.begin_commit().expect("a transaction is running");
    loop {
        if let Some(CommitStep::Done { dirty, .. }) = journal.next_step() {
            return dirty;
        }
    }
}

#[test]
fn commit_writes_data_then_log_then_commit_block() {
    let mut journal = journal(1024);
    let mut handle = started(&mut journal, 10);
    journal.dirty(&mut handle, 5);
    journal.dirty(&mut handle, 7);
    journal.order(&mut handle, Ino(3));
    let tid = journal.begin_commit().unwrap();
    assert_eq!(journal.next_step(), Some(CommitStep::WaitHandles));
    assert_eq!(journal.start(1), Start::Wait(Wait::Locked(tid)));
    journal.stop(handle, true);
    assert_eq!(journal.next_step(), Some(CommitStep::WriteData { files: vec![Ino(3)] }));
    assert_eq!(change(&mut journal, [9]), Tid(tid.0 + 1));
    let runs = vec![BlockRun { block: 1001, blocks: 3 }];
    assert_eq!(journal.next_step(), Some(CommitStep::WriteLog { runs, sync: true }));
    assert_eq!(journal.next_step(), Some(CommitStep::WriteCommit { block: 1004, barrier: true, sync: true }));
    assert!(!journal.is_committed(tid));
    assert_eq!(journal.next_step(), Some(CommitStep::Done { tid, dirty: vec![5, 7] }));
    assert!(journal.is_committed(tid));
    journal.check();
}

#[test]
fn commit_does_not_write_data_of_removed_files() {
    let mut journal = journal(1000);
    let mut handle = started(&mut journal, 1);
    for ino in [5, 6, 7].map(Ino) {
        journal.order(&mut handle, ino);
    }
    journal.dirty(&mut handle, 1);
    journal.stop(handle, false);
    journal.forget_order(Ino(6));
    journal.begin_commit();
    journal.forget_order(Ino(7));
    assert_eq!(journal.next_step(), Some(CommitStep::WriteData { files: vec![Ino(5)] }));
}

#[test]
fn a_block_changed_during_its_commit_is_copied() {
    let mut journal = journal(1024);
    change(&mut journal, [5, 7]);
    journal.begin_commit().unwrap();
    assert!(matches!(journal.next_step(), Some(CommitStep::WriteLog { .. })));
    assert!(journal.is_on_the_way_to_the_log(5));
    let mut handle = started(&mut journal, 2);
    assert_eq!(journal.dirty(&mut handle, 5), Dirtied::Copied);
    assert_eq!(journal.dirty(&mut handle, 5), Dirtied::Already);
    assert_eq!(journal.dirty(&mut handle, 6), Dirtied::Joined);
    assert!(!journal.is_on_the_way_to_the_log(5));
    let second = journal.stop(handle, false);
    journal.next_step();
    assert_eq!(journal.next_step(), Some(CommitStep::Done { tid: Tid(1), dirty: vec![7] }));
    assert!(!journal.is_writable(5) && journal.is_writable(7));
    assert!(!journal.written(5), "it was changed again");
    assert!(journal.written(7));
    let mut blocks = Vec::new();
    assert_eq!(journal.checkpoint(64, &mut blocks), Checkpoint::Commit(second));
    assert_eq!(commit(&mut journal), [5, 6]);
    assert!(
        matches!(journal.checkpoint(64, &mut blocks), Checkpoint::Tail(_)),
        "the first transaction was written again by the second"
    );
    journal.check();
}

#[test]
fn freed_block_leaves_the_checkpoint_after_commit() {
    let mut journal = journal(1024);
    change(&mut journal, [5]);
    assert_eq!(commit(&mut journal), [5]);
    let mut handle = started(&mut journal, 2);
    journal.forget(&mut handle, 5);
    let tid = journal.stop(handle, false);
    assert!(!journal.is_writable(5));
    let mut blocks = Vec::new();
    assert_eq!(journal.checkpoint(64, &mut blocks), Checkpoint::Commit(tid));
    assert!(commit(&mut journal).is_empty());
    assert_eq!(journal.checkpoint_blocks(), 0);
    journal.check();
}
