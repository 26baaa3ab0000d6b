//! Runs applications with one thread per task. Each thread makes the real system calls in a
//! directory. Names are relative to the descriptor of that directory.
//!
//! A task's I/Os are its reads and writes. Their latency is the duration of the system call. Syncs
//! count in the class `others`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use iosched::IoPriority;
use iosched_system::{Buffer, How};
use iosched_workload::app::{Application, Call, Existing, Node, OpenFlags, Source, Spec, Step};
use iosched_workload::outcome::{IoKind, Note, SyncCalls, SyncKind, TaskResult};
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};

use super::ground::{Ground, Need, forget_cached, write_filler};
use super::memory::{self, WriteData};
use super::message::{self, Message};
use super::port::{Engine, Port};
use super::recorder::Recorder;
use super::ring::{Command, Ring};
use super::worker::{self, Next, Part, Played, Shared};
use super::{ExecuteError, ExecuteOptions, Gathered, IO_BYTES_MAX, Run};
use crate::target::Target;
use iosched_system::open_directory::OpenDirectory;

/// Longest name in a directory, bytes.
const NAME_BYTES_MAX: usize = 255;
/// Length of the last part of a computation, ns of CPU time. In this part, the task checks the
/// clock continuously.
const COMPUTE_NS: u64 = 20_000;
/// Smallest size of buffers, bytes.
const BUFFER_BYTES: u64 = 64 << 10;

/// An application and its directory.
#[derive(Debug)]
pub(super) struct PreparedApplication<'t> {
    spec: &'t Spec,
    pub(super) ground: Ground<'t>,
    runs: AtomicU32,
}

impl<'t> PreparedApplication<'t> {
    pub(super) fn new(spec: &'t Spec, target: &'t Target) -> Result<Self, ExecuteError> {
        if !target.is_directory() {
            return Err(ExecuteError::NeedsDirectory { workload: spec.name().to_owned(), path: target.to_string() });
        }
        Ok(Self { spec, ground: Ground::new(target, Need::Files(Vec::new()))?, runs: AtomicU32::new(0) })
    }

    pub(super) fn run(&self, run: &Run<'_>, options: &ExecuteOptions<'_>) -> Result<Gathered, ExecuteError> {
        let application = self.spec.start(options.seed, u64::MAX);
        if !application.laid_out().is_empty() {
            return Err(ExecuteError::UsesDevice { workload: self.spec.name().to_owned() });
        }
        let directory = self.ground.subdirectory(&self.runs.fetch_add(1, Ordering::Relaxed).to_string())?;
        let mut tree = Tree::new(Arc::clone(&directory), self.spec.disks())?;
        for existing in application.existing() {
            tree.make(existing, run)?;
        }
        let tasks: Vec<String> = application.tasks().iter().map(|task| task.name.clone()).collect();
        let shared = run.shared(tasks.len())?;
        let stage = Mutex::new(SharedApplication { application, tree });
        let mut makers = Vec::with_capacity(tasks.len());
        for (number, name) in tasks.iter().enumerate() {
            let (shared, stage, ioprio) = (&shared, &stage, self.spec.priority());
            makers.push(move || Self::part(shared, stage, number, (name, ioprio)));
        }
        let played = worker::play(&shared, false, makers, || run.begin(false));
        let removed = directory.empty(None).and_then(|()| directory.remove());
        let mut gathered = Gathered::default();
        for Played { part, recorder, counts } in played? {
            gathered.result.finished_ns = gathered.result.finished_ns.max(part.ended_ns);
            gathered.result.sync_calls.merge(&part.sync_calls);
            gathered.add(recorder, &counts);
        }
        removed.map_err(|error| ExecuteError::file(directory.path(), error))?;
        let stage = stage.into_inner().unwrap_or_else(PoisonError::into_inner);
        gathered.result.app = Some(stage.application.report());
        if self.spec.disks() > 1 {
            let what = format!("{} disks", self.spec.disks());
            let why = "the files of all disks are in directories of one file system".to_owned();
            gathered.result.notes.push(Note::NotCarriedOut { what, why });
        }
        Ok(run.ended(gathered, &shared))
    }

    fn part<'a>(
        shared: &'a Shared<'a>,
        stage: &'a Mutex<SharedApplication>,
        number: usize,
        (name, ioprio): (&str, IoPriority),
    ) -> Result<(AppPart<'a>, Port<'a>), ExecuteError> {
        worker::take_ioprio(ioprio)?;
        let task = TaskResult {
            pid: number as u32 + 1,
            name: name.to_owned(),
            ioprio: ioprio.to_string(),
            ..TaskResult::default()
        };
        // The task makes its system calls itself, so the port needs no memory.
        let engine = Engine::Calls { read: memory::room(0), written: Arc::new(WriteData::none()) };
        let recorder = Recorder::new(vec![task], shared.counted_from_ns, &shared.watch);
        let port = Port::new(Vec::new(), engine, shared.inboxes[number].bell(), recorder, 0);
        let directory = Arc::clone(&stage.lock().unwrap_or_else(PoisonError::into_inner).tree.directory);
        let part = AppPart {
            shared,
            stage,
            directory,
            number,
            name: name.to_owned(),
            state: State::Running,
            open: BTreeMap::new(),
            buffers: Buffers::new(BUFFER_BYTES, number as u64),
            zero: None,
            ring: None,
            written: 0,
            sync_calls: SyncCalls::default(),
            ended_ns: 0,
        };
        Ok((part, port))
    }
}

/// State that all tasks of an application share.
struct SharedApplication {
    application: Box<dyn Application>,
    tree: Tree,
}

/// Paths of an application's files and directories.
struct Tree {
    directory: Arc<OpenDirectory>,
    /// Paths relative to the directory.
    paths: BTreeMap<Node, PathBuf>,
}

impl Tree {
    /// Creates an empty root directory for each disk in `directory`.
    fn new(directory: Arc<OpenDirectory>, disks: u32) -> Result<Self, ExecuteError> {
        let mut paths = BTreeMap::new();
        for disk in 0..disks {
            let path = PathBuf::from(disk.to_string());
            let created = directory.make_directory(&path);
            created.map_err(|error| ExecuteError::file(&directory.path().join(&path), error))?;
            paths.insert(Node::root(disk), path);
        }
        Ok(Self { directory, paths })
    }

    /// Returns the path of a node. If the node has no path, creates one.
    fn name(&mut self, node: Node, parent: Node, name_bytes: u8) -> Option<PathBuf> {
        if let Some(known) = self.paths.get(&node) {
            return Some(known.clone());
        }
        // Numbers make the names distinct. Leading zeros extend a name to the wanted length.
        let length = usize::from(name_bytes).min(NAME_BYTES_MAX);
        let path = self.paths.get(&parent)?.join(format!("{:0>length$x}", node.0));
        self.paths.insert(node, path.clone());
        Some(path)
    }

    /// Creates a file or directory that exists before the application starts. File data is on the
    /// medium and not in the page cache.
    fn make(&mut self, existing: &Existing, run: &Run<'_>) -> Result<(), ExecuteError> {
        let &Existing { node, parent, name_bytes, bytes } = existing;
        let Some(path) = self.name(node, parent, name_bytes) else { return Ok(()) };
        let full_path = self.directory.path().join(&path);
        let failed = |error| ExecuteError::file(&full_path, error);
        let Some(bytes) = bytes else { return self.directory.make_directory(&path).map_err(failed) };
        let mut file = self.directory.make_file(&path, OFlags::WRONLY | OFlags::EXCL).map_err(failed)?;
        write_filler(&mut file, &full_path, bytes, run.interrupt)?;
        forget_cached(&file);
        Ok(())
    }
}

/// A file that a task has open.
struct Open {
    file: File,
    path: PathBuf,
    /// Whether a process waits for the writes: the file is opened for direct I/O, `O_SYNC` or
    /// `O_DSYNC`.
    waits: bool,
}

/// Memory for a task's reads, and data for its writes.
struct Buffers {
    bytes: u64,
    seed: u64,
    read: Buffer,
    write: Arc<WriteData>,
}

impl Buffers {
    fn new(bytes: u64, seed: u64) -> Self {
        let length = bytes as usize;
        Self { bytes, seed, read: memory::room(length), write: Arc::new(WriteData::new(length, seed)) }
    }

    /// Enlarges the buffers for I/Os of `bytes` bytes, if they are too small.
    fn hold(&mut self, bytes: u64) {
        if bytes > self.bytes {
            *self = Self::new(bytes, self.seed);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Asleep(u64),
    /// Waiting until another task wakes this task.
    Waiting,
    Ended,
}

/// Name, file and error of a failed call.
type CallError = (&'static str, PathBuf, io::Error);

/// A task of an application.
struct AppPart<'a> {
    shared: &'a Shared<'a>,
    stage: &'a Mutex<SharedApplication>,
    directory: Arc<OpenDirectory>,
    number: usize,
    name: String,
    state: State,
    open: BTreeMap<Node, Open>,
    buffers: Buffers,
    /// `/dev/zero`, opened at the first use.
    zero: Option<File>,
    /// Ring for writes that are submitted together, and their largest length in bytes.
    ring: Option<(Ring, u64)>,
    written: u64,
    sync_calls: SyncCalls,
    ended_ns: u64,
}

impl AppPart<'_> {
    /// Returns the next step of the application. If the step is a call, also returns the path for
    /// the call and the offsets of a batch of writes.
    fn next_step(&self, now_ns: u64) -> (Step, Option<PathBuf>, Vec<u64>) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let SharedApplication { application, tree } = &mut *stage;
        let step = application.step(self.number, now_ns);
        while let Some(woken) = application.take_woken() {
            message::post(&self.shared.inboxes[woken], Message::GoOn);
        }
        let Step::Call(call) = step else { return (step, None, Vec::new()) };
        let path = match call {
            Call::MakeDirectory { parent, node, name_bytes } | Call::Open { parent, node, name_bytes, .. } => {
                tree.name(node, parent, name_bytes)
            }
            Call::RemoveDirectory { node } | Call::Unlink { node } => tree.paths.remove(&node),
            _ => None,
        };
        let batch = if matches!(call, Call::WriteScattered { .. }) { application.batch(self.number) } else { &[] };
        (step, path, batch.to_vec())
    }

    /// Executes the application's steps until the task waits, sleeps or ends.
    fn steps(&mut self, port: &mut Port<'_>) -> Result<(), CallError> {
        let mut now_ns = self.shared.now_ns();
        while self.state == State::Running && !self.shared.is_ending(now_ns) {
            let (step, path, batch) = self.next_step(now_ns);
            match step {
                Step::Call(call) => self.call(port, call, path, &batch)?,
                Step::Compute { ns } => compute(ns, || self.shared.is_ending(self.shared.now_ns())),
                Step::Sleep { until_ns } => self.state = State::Asleep(until_ns),
                Step::Wait => self.state = State::Waiting,
                Step::Exit => {
                    self.state = State::Ended;
                    self.ended_ns = now_ns;
                }
            }
            now_ns = self.shared.now_ns();
        }
        Ok(())
    }

    fn call(&mut self, port: &mut Port<'_>, call: Call, path: Option<PathBuf>, batch: &[u64]) -> Result<(), CallError> {
        let name = path.unwrap_or_default();
        let path = self.directory.path().join(&name);
        let on_path = |call, done: io::Result<()>| done.map_err(|error| (call, path.clone(), error));
        match call {
            Call::Spawn => {
                let program = Path::new("true");
                let ran = Program::new(program).status();
                ran.map(drop).map_err(|error| ("spawn", program.to_owned(), error))
            }
            Call::MakeDirectory { .. } => on_path("mkdir", self.directory.make_directory(&name)),
            Call::RemoveDirectory { .. } => on_path("rmdir", self.directory.remove_directory(&name)),
            Call::Unlink { .. } => on_path("unlink", self.directory.remove_file(&name)),
            Call::Open { node, flags, .. } => {
                let file = open(&self.directory, &name, flags).map_err(|error| ("open", path.clone(), error))?;
                self.open.insert(node, Open { file, path, waits: flags.direct || flags.sync });
                Ok(())
            }
            Call::Close { node } => {
                self.open.remove(&node);
                Ok(())
            }
            Call::Read { node, offset, bytes, calls } => self.read(port, node, (offset, bytes, calls)),
            Call::Write { node, offset, bytes, calls, source } => {
                self.write(port, node, (offset, bytes, calls), source)
            }
            Call::WriteScattered { node, bytes } => self.write_scattered(port, node, bytes, batch),
            Call::Fsync { node } => self.sync(port, node, SyncKind::Fsync),
            Call::Fdatasync { node } => self.sync(port, node, SyncKind::Fdatasync),
            // Only fio jobs make these calls, and `jobs.rs` runs them.
            Call::Submit { .. } => Err(("io_submit", path, io::ErrorKind::Unsupported.into())),
            Call::Discard { .. } => Err(("discard", path, io::ErrorKind::Unsupported.into())),
            Call::Sync => {
                rustix::fs::sync();
                Ok(())
            }
        }
    }

    fn read(
        &mut self,
        port: &mut Port<'_>,
        node: Node,
        (offset, bytes, calls): (u64, u64, u64),
    ) -> Result<(), CallError> {
        let Some(Open { file, path, .. }) = self.open.get(&node) else { return Err(not_open("read")) };
        check_length("read", path, bytes)?;
        self.buffers.hold(bytes);
        let mut submitted_ns = self.shared.now_ns();
        for number in 0..calls {
            if self.shared.is_ending(submitted_ns) {
                break;
            }
            port.recorder.submitted(0, submitted_ns);
            let room = &mut self.buffers.read[..bytes as usize];
            let moved = file.read_at(room, offset + number * bytes);
            let moved = moved.map_err(|error| ("read", path.clone(), error))?;
            let now_ns = self.shared.now_ns();
            port.recorder.completed(0, IoKind::Read, moved as u64, (submitted_ns, now_ns));
            submitted_ns = now_ns;
        }
        Ok(())
    }

    fn write(
        &mut self,
        port: &mut Port<'_>,
        node: Node,
        (offset, bytes, calls): (u64, u64, u64),
        source: Source,
    ) -> Result<(), CallError> {
        let Some(Open { file, path, waits }) = self.open.get(&node) else { return Err(not_open("write")) };
        check_length("write", path, bytes)?;
        self.buffers.hold(bytes);
        if source == Source::Zero && self.zero.is_none() {
            let zero = Path::new("/dev/zero");
            self.zero = Some(File::open(zero).map_err(|error| ("open", zero.to_owned(), error))?);
        }
        let failed = |error| ("write", path.clone(), error);
        let kind = if *waits { IoKind::WriteSync } else { IoKind::WriteAsync };
        let length = bytes as usize;
        for number in 0..calls {
            if self.shared.is_ending(self.shared.now_ns()) {
                break;
            }
            let data = match (source, &mut self.zero) {
                (Source::Zero, Some(zero)) => {
                    zero.read_exact(&mut self.buffers.read[..length]).map_err(failed)?;
                    &self.buffers.read[..length]
                }
                _ => self.buffers.write.of(self.written, length),
            };
            let submitted_ns = self.shared.now_ns();
            port.recorder.submitted(0, submitted_ns);
            file.write_all_at(data, offset + number * bytes).map_err(failed)?;
            self.written += 1;
            port.recorder.completed(0, kind, bytes, (submitted_ns, self.shared.now_ns()));
        }
        Ok(())
    }

    /// Submits a batch of writes together and waits for all of them.
    fn write_scattered(&mut self, port: &mut Port<'_>, node: Node, bytes: u64, batch: &[u64]) -> Result<(), CallError> {
        let Some(Open { file, path, .. }) = self.open.get(&node) else { return Err(not_open("io_submit")) };
        check_length("io_submit", path, bytes)?;
        let failed = |error| ("io_submit", path.clone(), error);
        if self.ring.as_ref().is_none_or(|(_, longest)| *longest < bytes) {
            self.buffers.hold(bytes);
            // The bell does not wake a task that waits for this ring. The task checks the bell when
            // it no longer waits for I/O.
            let ring = Ring::new(batch.len(), 0, Arc::clone(&self.buffers.write), None).map_err(failed)?;
            self.ring = Some((ring, bytes));
        }
        let Some((ring, _)) = &mut self.ring else { return Ok(()) };
        let submitted_ns = self.shared.now_ns();
        for (&offset, slot) in batch.iter().zip(0..) {
            self.written += 1;
            let write = Command::Write { number: self.written, stable: false };
            port.recorder.submitted(0, submitted_ns);
            ring.push(file.as_fd(), write, (offset, bytes as usize), slot, How::default());
        }
        ring.submit().map_err(failed)?;
        let (mut left, mut failure) = (batch.len(), None);
        while left > 0 {
            ring.wait(None).map_err(failed)?;
            let now_ns = self.shared.now_ns();
            while let Some((_, result)) = ring.take() {
                left -= 1;
                if result < 0 {
                    failure.get_or_insert(io::Error::from_raw_os_error(-result));
                }
                port.recorder.completed(0, IoKind::WriteSync, bytes, (submitted_ns, now_ns));
            }
        }
        failure.map_or(Ok(()), |error| Err(failed(error)))
    }

    fn sync(&mut self, port: &mut Port<'_>, node: Node, kind: SyncKind) -> Result<(), CallError> {
        let Some(Open { file, path, .. }) = self.open.get(&node) else { return Err(not_open("fsync")) };
        let submitted_ns = self.shared.now_ns();
        port.recorder.submitted(0, submitted_ns);
        let done = if kind == SyncKind::Fdatasync { file.sync_data() } else { file.sync_all() };
        done.map_err(|error| (kind.name(), path.clone(), error))?;
        let now_ns = self.shared.now_ns();
        port.recorder.completed(0, IoKind::Other, 0, (submitted_ns, now_ns));
        if now_ns >= self.shared.counted_from_ns {
            self.sync_calls.record(kind, now_ns - submitted_ns);
        }
        Ok(())
    }
}

fn open(directory: &OpenDirectory, name: &Path, flags: OpenFlags) -> io::Result<File> {
    let mut given = OFlags::RDWR;
    given.set(OFlags::DIRECT, flags.direct);
    given.set(if flags.data_only { OFlags::DSYNC } else { OFlags::SYNC }, flags.sync);
    given.set(OFlags::TRUNC, flags.truncate);
    if flags.create { directory.make_file(name, given) } else { directory.open_file(name, given) }
}

fn not_open(call: &'static str) -> CallError {
    (call, PathBuf::new(), io::Error::from(io::ErrorKind::NotFound))
}

fn check_length(call: &'static str, path: &Path, bytes: u64) -> Result<(), CallError> {
    let too_long = || io::Error::other(format!("{bytes} bytes in one I/O; the maximum is {IO_BYTES_MAX}"));
    if bytes > IO_BYTES_MAX { Err((call, path.to_owned(), too_long())) } else { Ok(()) }
}

/// Uses the CPU for `ns` of CPU time.
fn compute(ns: u64, is_ending: impl Fn() -> bool) {
    let used_ns = || {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    };
    let end_ns = used_ns() + ns;
    while used_ns() + COMPUTE_NS < end_ns && !is_ending() {
        (0..1000).for_each(|number| {
            std::hint::black_box(number);
        });
    }
    while used_ns() < end_ns && !is_ending() {}
}

impl Part for AppPart<'_> {
    fn receive(&mut self, message: Message, _now_ns: u64) {
        if message == Message::GoOn && self.state == State::Waiting {
            self.state = State::Running;
        }
    }

    fn go(&mut self, port: &mut Port<'_>, now_ns: u64) -> Next {
        if let State::Asleep(due_ns) = self.state
            && due_ns <= now_ns
        {
            port.recorder.was_due(due_ns, now_ns);
            self.state = State::Running;
        }
        if let Err((op, path, error)) = self.steps(port) {
            let task = self.name.clone();
            self.shared.fail(ExecuteError::Call { task, call: op, path, error });
        }
        match self.state {
            State::Ended => Next::Done,
            State::Asleep(until_ns) => Next::Wait { until_ns },
            State::Waiting => Next::Wait { until_ns: u64::MAX },
            State::Running => Next::Wait { until_ns: now_ns },
        }
    }

    fn completed(&mut self, _tag: u64, _now_ns: u64) {}

    fn stop(&mut self, now_ns: u64) -> bool {
        let cut = self.state != State::Ended;
        self.state = State::Ended;
        self.ended_ns = now_ns;
        cut
    }
}
