//! tpcc: a database that runs the transactions of TPC-C. Options: [`options`]; transactions:
//! [`transaction`].
//!
//! - Sessions run one transaction after another. If a row, or a leaf of an index, is not in the
//!   cache of the database, the session reads it with one direct read of 4 KiB. Probabilities
//!   determine which rows are cached and which rows a transaction changes.
//! - The log writer writes the contents of the log buffer, 0.5 to 128 KiB, in one synchronous
//!   write. A commit waits until its log records are on the disk. All commits that arrive during a
//!   write share the next write.
//! - The database writer writes the oldest dirty blocks in batches. It submits a batch at once and
//!   waits for all its writes. It starts when enough blocks are dirty. When the log writer changes
//!   from one log file to the other, the database writer writes all dirty blocks (a checkpoint).
//!   The log writer waits if the previous checkpoint is not finished.
//! - Sessions wait for a free buffer when too many blocks are dirty.
//!
//! The report has the values that Oracle's statistics call user calls, physical reads and writes.
//! It also has the share of `log file sync` in the wait time of the sessions.

mod measure;
mod options;
mod store;
#[cfg(test)]
mod tests;
mod transaction;

pub(super) use options::{ABOUT, TpccOptions};

use std::collections::VecDeque;

use measure::{Event, Measure};
use store::{DirtyBlocks, Log};
use transaction::{ACCESSES_MAX, Kind, MIX, Table, Transaction, draw};

use crate::app::{Advice, AppTask, Application, Call, Existing, Node, OpenFlags, Report, Source, Step};
use iosched_numbers::SplitMix64;

/// Bytes of a block.
const BLOCK_BYTES: u64 = 4096;
/// Bytes of a warehouse, with indexes.
const WAREHOUSE_BYTES: u64 = 100 << 20;
const NAME_BYTES: u8 = 12;
const DATA: Node = Node::new(0);
const LOGS: [Node; 2] = [Node::new(1), Node::new(2)];
/// I/O bypasses the page cache. A write is complete when the data, and the metadata that is needed
/// to read the data, are on the medium (`O_DSYNC`).
const FLAGS: OpenFlags =
    OpenFlags { create: false, truncate: false, direct: true, sync: true, data_only: true, advice: Advice::Normal };

/// Next action of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TpccStage {
    Open,
    Begin,
    /// Continue with the rows.
    Rows,
    /// Access the row after the leaf of the index.
    Row,
    /// Read a block of this table that is not cached.
    Miss(Table),
    /// Wait for a buffer; start of the wait, ns.
    Buffer(Table, u64),
    /// Read a block; start of the read, ns.
    Reading(Table, u64),
    Commit,
    /// Wait for the log; start of the wait, ns, and position in the log.
    LogSync(u64, u64),
    End,
    Close,
    Exit,
}

/// State of a session.
#[derive(Debug)]
struct Session {
    rng: SplitMix64,
    stage: TpccStage,
    transaction: &'static Transaction,
    /// Number of the current access, and the remaining rows of each access.
    access: usize,
    rows: [u32; ACCESSES_MAX],
    /// Number of rows of all accesses of the transaction. `call_part` is the progress towards the
    /// next call, in units of 1/`rows_total` of a call.
    rows_total: u64,
    call_part: u64,
    is_update: bool,
    table: Table,
    /// CPU time of server and client that the session has not used yet, ns.
    compute_ns: u64,
    /// Offsets of the blocks that the transaction changed.
    changed: Vec<u64>,
}

/// Next action of the database writer or of the log writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Open(usize),
    Look,
    /// Start of the write, ns.
    Writing(u64),
    Close(usize),
    Exit,
}

/// A running database.
#[derive(Debug)]
pub(super) struct Tpcc {
    options: TpccOptions,
    tasks: Vec<AppTask>,
    existing: [Existing; 3],
    data_blocks: u64,
    sessions: Vec<Session>,
    sessions_left: usize,
    log: Log,
    blocks: DirtyBlocks,
    batch: Vec<u64>,
    database_writer: Writer,
    log_writer: Writer,
    measure: Measure,
    /// Whether each task waits.
    waits: Vec<bool>,
    woken: VecDeque<usize>,
    /// Sessions that wait for the log, in the order of the log positions that they need.
    /// `for_buffer` has the sessions that wait for a buffer.
    for_log: VecDeque<(u64, usize)>,
    for_buffer: VecDeque<usize>,
}

impl Tpcc {
    pub(super) fn new(options: &TpccOptions, seed: u64) -> Self {
        let data_bytes = options.warehouses * WAREHOUSE_BYTES;
        let data_blocks = data_bytes / BLOCK_BYTES;
        let session = |number: usize| Session {
            rng: SplitMix64::entity(seed, number as u64),
            stage: TpccStage::Open,
            transaction: &MIX[0],
            access: 0,
            rows: [0; ACCESSES_MAX],
            rows_total: 0,
            call_part: 0,
            is_update: false,
            table: Table::Stock,
            compute_ns: 0,
            changed: Vec::with_capacity(32),
        };
        let name = |task: usize| match task.checked_sub(options.sessions) {
            None => format!("session {task}"),
            Some(0) => "database writer".to_owned(),
            Some(_) => "log writer".to_owned(),
        };
        let file =
            |node, disk, bytes| Existing { node, parent: Node::root(disk), name_bytes: NAME_BYTES, bytes: Some(bytes) };
        let log = LOGS.map(|node| file(node, 1, options.log_bytes));
        let mut database = Self {
            options: options.clone(),
            tasks: (0..options.task_count()).map(|task| AppTask { name: name(task) }).collect(),
            existing: [file(DATA, 0, data_bytes), log[0], log[1]],
            data_blocks,
            sessions: (0..options.sessions).map(session).collect(),
            sessions_left: options.sessions,
            log: Log::default(),
            blocks: DirtyBlocks::default(),
            batch: Vec::with_capacity(options.batch),
            database_writer: Writer::Open(0),
            log_writer: Writer::Open(0),
            measure: Measure::new(options.warmup_s, options.seconds),
            waits: vec![false; options.task_count()],
            woken: VecDeque::new(),
            for_log: VecDeque::new(),
            for_buffer: VecDeque::new(),
        };
        database.start_dirty(seed);
        database
    }

    /// Makes as many blocks dirty as are dirty in a steady state.
    fn start_dirty(&mut self, seed: u64) {
        let mut rng = SplitMix64::entity(seed, self.options.sessions as u64);
        for _ in 1..self.options.dirty_blocks {
            let offset = block(&mut rng, Table::Stock, self.data_blocks);
            self.blocks.add(offset, 0);
        }
    }

    const fn database_writer_task(&self) -> usize {
        self.options.sessions
    }

    const fn log_writer_task(&self) -> usize {
        self.options.sessions + 1
    }

    fn wake(&mut self, task: usize) {
        if std::mem::take(&mut self.waits[task]) {
            self.woken.push_back(task);
        }
    }

    fn wait(&mut self, task: usize) -> Step {
        self.waits[task] = true;
        Step::Wait
    }

    fn open(node: Node, disk: u32) -> Step {
        Step::Call(Call::Open { parent: Node::root(disk), node, name_bytes: NAME_BYTES, flags: FLAGS })
    }

    fn session(&mut self, task: usize, now_ns: u64) -> Option<Step> {
        let session = &mut self.sessions[task];
        match session.stage {
            TpccStage::Open => {
                session.stage = TpccStage::Begin;
                return Some(Self::open(DATA, 0));
            }
            TpccStage::Begin if self.measure.is_over(now_ns) => session.stage = TpccStage::Close,
            TpccStage::Begin => session.begin(self.options.call_ns()),
            TpccStage::Rows => session.next_leaf(&self.options),
            TpccStage::Row => session.row(&self.options, self.data_blocks),
            TpccStage::Miss(table) => {
                session.stage = TpccStage::Buffer(table, now_ns);
                return session.compute();
            }
            TpccStage::Buffer(table, since_ns) => return self.read(task, table, (since_ns, now_ns)),
            TpccStage::Reading(table, since_ns) => {
                session.stage = if table == Table::Index { TpccStage::Row } else { TpccStage::Rows };
                self.measure.waited(Event::Read, since_ns);
            }
            TpccStage::Commit => return self.commit(task, now_ns),
            TpccStage::LogSync(since_ns, position) => {
                if !self.log.has(position) {
                    return Some(self.wait(task));
                }
                session.stage = TpccStage::End;
                self.measure.waited(Event::LogSync, since_ns);
            }
            TpccStage::End => {
                session.stage = TpccStage::Begin;
                self.measure.transaction(session.transaction.calls, session.transaction.kind == Kind::NewOrder);
            }
            TpccStage::Close => {
                session.stage = TpccStage::Exit;
                return Some(Step::Call(Call::Close { node: DATA }));
            }
            TpccStage::Exit => {
                self.sessions_left -= 1;
                if self.sessions_left == 0 {
                    self.wake(self.database_writer_task());
                    self.wake(self.log_writer_task());
                }
                return Some(Step::Exit);
            }
        }
        None
    }

    /// Reads a block that is not cached, if a buffer is free. `times` are the start of the wait and
    /// the present time, ns.
    fn read(&mut self, task: usize, table: Table, times: (u64, u64)) -> Option<Step> {
        let (since_ns, now_ns) = times;
        if self.blocks.len() >= self.options.dirty_blocks_max {
            self.for_buffer.push_back(task);
            return Some(self.wait(task));
        }
        let session = &mut self.sessions[task];
        if now_ns > since_ns {
            self.measure.waited(Event::FreeBuffer, since_ns);
        }
        session.stage = TpccStage::Reading(table, now_ns);
        let offset = block(&mut session.rng, table, self.data_blocks);
        if session.is_update && table != Table::Index {
            session.changed.push(offset);
        }
        Some(Step::Call(Call::Read { node: DATA, offset, bytes: BLOCK_BYTES, calls: 1 }))
    }

    /// Commits after all rows are done. Changed blocks become dirty. They can be written after the
    /// log records are on the disk.
    fn commit(&mut self, task: usize, now_ns: u64) -> Option<Step> {
        let session = &mut self.sessions[task];
        if let Some(step) = session.compute() {
            return Some(step);
        }
        let redo_bytes = session.transaction.redo_thirds * self.options.redo_bytes / 3;
        if redo_bytes == 0 {
            session.stage = TpccStage::End;
            return None;
        }
        let position = self.log.append(redo_bytes);
        session.stage = TpccStage::LogSync(now_ns, position);
        for offset in session.changed.drain(..) {
            self.blocks.add(offset, position);
        }
        self.for_log.push_back((position, task));
        self.wake(self.log_writer_task());
        Some(self.wait(task))
    }

    fn log_writer(&mut self, now_ns: u64) -> Option<Step> {
        match self.log_writer {
            Writer::Open(file) => {
                self.log_writer = if file == 0 { Writer::Open(1) } else { Writer::Look };
                Some(Self::open(LOGS[file], 1))
            }
            Writer::Look if !self.log.is_pending() => {
                if self.sessions_left > 0 {
                    return Some(self.wait(self.log_writer_task()));
                }
                self.log_writer = Writer::Close(0);
                None
            }
            Writer::Look => {
                if self.log.is_full(self.options.log_bytes) {
                    if self.blocks.is_checkpoint() {
                        return Some(self.wait(self.log_writer_task()));
                    }
                    self.log.change_file();
                    self.blocks.start_checkpoint(&self.log);
                    self.wake(self.database_writer_task());
                }
                let write = self.log.begin();
                self.log_writer = Writer::Writing(now_ns);
                let (node, offset, bytes) = (LOGS[write.file], write.offset, write.bytes);
                Some(Step::Call(Call::Write { node, offset, bytes, calls: 1, source: Source::Buffer }))
            }
            Writer::Writing(since_ns) => {
                self.measure.waited(Event::LogWrite, since_ns);
                self.log.end();
                while let Some(&(position, task)) = self.for_log.front()
                    && self.log.has(position)
                {
                    self.for_log.pop_front();
                    self.wake(task);
                }
                self.wake(self.database_writer_task());
                self.log_writer = Writer::Look;
                None
            }
            Writer::Close(file) => {
                self.log_writer = if file == 0 { Writer::Close(1) } else { Writer::Exit };
                Some(Step::Call(Call::Close { node: LOGS[file] }))
            }
            Writer::Exit => Some(Step::Exit),
        }
    }

    fn database_writer(&mut self, now_ns: u64) -> Option<Step> {
        match self.database_writer {
            Writer::Open(_) => {
                self.database_writer = Writer::Look;
                Some(Self::open(DATA, 0))
            }
            Writer::Look if self.sessions_left == 0 => {
                self.database_writer = Writer::Close(0);
                None
            }
            Writer::Look => {
                self.batch.clear();
                if self.blocks.is_checkpoint() || self.blocks.len() >= self.options.dirty_blocks {
                    self.blocks.take(self.options.batch, &self.log, &mut self.batch);
                }
                if self.batch.is_empty() {
                    return Some(self.wait(self.database_writer_task()));
                }
                self.database_writer = Writer::Writing(now_ns);
                Some(Step::Call(Call::WriteScattered { node: DATA, bytes: BLOCK_BYTES }))
            }
            Writer::Writing(since_ns) => {
                self.measure.waited(Event::BatchWrite, since_ns);
                self.measure.wrote(self.batch.len());
                self.blocks.written();
                while self.blocks.len() < self.options.dirty_blocks_max
                    && let Some(task) = self.for_buffer.pop_front()
                {
                    self.wake(task);
                }
                self.wake(self.log_writer_task());
                self.database_writer = Writer::Look;
                None
            }
            Writer::Close(_) => {
                self.database_writer = Writer::Exit;
                Some(Step::Call(Call::Close { node: DATA }))
            }
            Writer::Exit => Some(Step::Exit),
        }
    }
}

/// Draws a block of a table and returns its offset.
fn block(rng: &mut SplitMix64, table: Table, data_blocks: u64) -> u64 {
    let (from, until) = table.extent_permille();
    let [from, until] = [from, until].map(|permille| data_blocks * permille / 1_000);
    (from + rng.below(until - from)) * BLOCK_BYTES
}

impl Session {
    fn begin(&mut self, call_ns: u64) {
        self.transaction = draw(&mut self.rng);
        for (rows, access) in self.rows.iter_mut().zip(self.transaction.accesses) {
            *rows = access.rows(&mut self.rng);
        }
        self.rows_total = self.rows.iter().map(|&rows| u64::from(rows)).sum();
        (self.access, self.call_part) = (0, 0);
        self.compute_ns += call_ns;
        self.stage = TpccStage::Rows;
    }

    /// Moves to the next row, starting with the leaf of the index that leads to this row.
    fn next_leaf(&mut self, options: &TpccOptions) {
        let accesses = self.transaction.accesses;
        while accesses.get(self.access).is_some() && self.rows[self.access] == 0 {
            self.access += 1;
        }
        let Some(access) = accesses.get(self.access) else {
            self.compute_ns += options.call_ns();
            self.stage = TpccStage::Commit;
            return;
        };
        (self.table, self.is_update) = (access.table, access.is_update);
        self.rows[self.access] -= 1;
        // The last call commits. The rows are divided evenly between the other calls.
        self.call_part += self.transaction.calls - 1;
        if self.call_part > self.rows_total {
            self.call_part -= self.rows_total;
            self.compute_ns += options.call_ns();
        }
        self.compute_ns += options.touch_ns;
        let is_miss = self.rng.below(100) < options.index_miss_pct;
        self.stage = if is_miss { TpccStage::Miss(Table::Index) } else { TpccStage::Row };
    }

    fn row(&mut self, options: &TpccOptions, data_blocks: u64) {
        self.compute_ns += options.touch_ns;
        let is_miss = self.rng.below(100) < options.miss_pct;
        self.stage = if is_miss { TpccStage::Miss(self.table) } else { TpccStage::Rows };
        let is_last = self.rows.iter().all(|&rows| rows == 0);
        let one_in = self.transaction.new_block_one_in;
        if is_last && one_in > 0 && self.rng.below(one_in) == 0 {
            self.changed.push(block(&mut self.rng, Table::OrderLine, data_blocks));
        }
    }

    /// Returns a step that uses the CPU time that is due, if there is any.
    fn compute(&mut self) -> Option<Step> {
        let ns = std::mem::take(&mut self.compute_ns);
        (ns > 0).then_some(Step::Compute { ns })
    }
}

impl Application for Tpcc {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &self.existing
    }

    fn step(&mut self, task: usize, now_ns: u64) -> Step {
        self.measure.see(now_ns);
        loop {
            let step = match task.checked_sub(self.options.sessions) {
                None => self.session(task, now_ns),
                Some(0) => self.database_writer(now_ns),
                Some(_) => self.log_writer(now_ns),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn take_woken(&mut self) -> Option<usize> {
        self.woken.pop_front()
    }

    fn batch(&self, task: usize) -> &[u64] {
        if task == self.database_writer_task() { &self.batch } else { &[] }
    }

    fn progress(&self) -> f64 {
        self.measure.progress()
    }

    fn report(&self) -> Report {
        self.measure.report()
    }
}
