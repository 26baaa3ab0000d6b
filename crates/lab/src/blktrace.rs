//! Export of a simulated run as a block trace, for blkparse, btt and other readers of blktrace's
//! format.
//!
//! The trace contains the events of the kernel's queue: bios (`Q`), allocation (`G`) or the wait
//! for it (`S`), plugs (`P`, `U`), insertion (`I`), merges (`M`, `F`), dispatch (`D`) and
//! completion (`C`). Decisions of CFQ are messages. They name queues as CFQ does (`cfq4711S`), but
//! use iosched's own texts. An I/O that is too long for the queue appears as the parts that the
//! queue received. All events are on CPU 0 of device 8,0. A dispatch has the pid of the process
//! whose bio created the request. A completion has pid 0.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use iosched::{AnticipatoryEvent, Cfq2616Event, Decision, Flags, IoPriority, MergeSide, Op, QueueName, Time};
use iosched_sim::{Change, Completed, Dispatched, Observer, Submitted, Taken, run};
use iosched_trace::{Action, BlkEvent, EventWriter, Payload, ProcessName, TraceError};

use crate::decisions::{class_name, workload};
use crate::error::LabError;
use crate::experiment::Experiment;

/// Device 8,0 in the kernel's numbering for traces: the first disk.
const DEVICE: u32 = 8 << 20;
/// Upper bound of the ordinals of bios. The cookies of the queue's own flushes are larger.
const BIOS_MAX: u64 = 1 << 35;

/// Repeats run 0 of a setting on a device and writes it as a block trace of one CPU, in blktrace's
/// binary format. The plan determines a run completely, so the repeated run is equal to the
/// recorded run. blkparse looks for a trace under the name `BASE.blktrace.0`.
///
/// # Errors
/// The run fails, or writing fails.
///
/// # Panics
/// There is no device or setting with that index.
pub fn write_blktrace(
    experiment: &Experiment,
    device: usize,
    setting: usize,
    out: &mut impl Write,
) -> Result<(), LabError> {
    let plan = experiment.plan(device, setting, 0);
    let seed = plan.seed;
    let mut tracer = Tracer::new(EventWriter::new(out), plan.scheduler.name());
    run(&plan, &mut tracer).map_err(|source| LabError::Run {
        name: experiment.name(device, setting),
        run: 0,
        seed,
        source: Box::new(source),
    })?;
    let written = tracer.written.and_then(|()| tracer.out.finish());
    written.map(|_| ()).map_err(|error| LabError::Trace(Box::new(error)))
}

/// State of a task.
#[derive(Debug, Default)]
struct Task {
    pid: u32,
    plugged: bool,
    /// First bios of the requests on the task's plug.
    held: Vec<u64>,
    /// Number of requests that have left the plug since the last unplugging began.
    let_go: u64,
    /// Number of flushes in flight.
    flushes: u64,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Live {
    task: usize,
    op: Op,
    flags: Flags,
    sector: u64,
    nr_sectors: u32,
}

struct Tracer<W: Write> {
    out: EventWriter<W>,
    /// Result of writing. After the first error, nothing more is written.
    written: Result<(), TraceError>,
    tasks: Vec<Task>,
    /// Requests in flight, by first bio.
    live: BTreeMap<u64, Live>,
    /// First bio of the request that was dispatched last.
    dispatched: u64,
    /// Name of the scheduler in messages; `cfq` for every variant of CFQ.
    elevator: String,
}

impl<W: Write> Tracer<W> {
    fn new(out: EventWriter<W>, scheduler: &str) -> Self {
        let elevator = scheduler.split('-').next().filter(|&family| family == "cfq").unwrap_or(scheduler).to_owned();
        Self { out, written: Ok(()), tasks: Vec::new(), live: BTreeMap::new(), dispatched: 0, elevator }
    }

    fn write(&mut self, event: &BlkEvent) {
        if self.written.is_ok() {
            self.written = self.out.write(event);
        }
    }

    fn pid(&self, task: usize) -> u32 {
        self.tasks.get(task).map_or(0, |task| task.pid)
    }

    fn event(&mut self, action: Action, now_ns: u64, pid: u32, io: &Live) {
        let nr_sectors = if io.op == Op::Flush { 0 } else { io.nr_sectors };
        let sector = if io.op == Op::Flush { 0 } else { io.sector };
        let event = BlkEvent::new(action, Time::from_ns(now_ns), DEVICE, pid);
        self.write(&event.with_extent(io.op, io.flags, sector, nr_sectors));
    }

    fn without_extent(&mut self, action: Action, now_ns: u64, pid: u32, payload: Payload) {
        self.write(&BlkEvent { payload, ..BlkEvent::new(action, Time::from_ns(now_ns), DEVICE, pid) });
    }

    /// Writes the insertion of a request. The last request of a plug also ends the unplugging.
    fn insert(&mut self, now_ns: u64, bio: u64) {
        let Some(io) = self.live.get(&bio).copied() else { return };
        self.event(Action::Insert, now_ns, self.pid(io.task), &io);
        let Some(task) = self.tasks.get_mut(io.task) else { return };
        let Some(at) = task.held.iter().position(|&held| held == bio) else { return };
        task.held.swap_remove(at);
        task.let_go += 1;
        if task.held.is_empty() {
            let (pid, count) = (task.pid, std::mem::take(&mut task.let_go));
            self.without_extent(Action::Unplug, now_ns, pid, Payload::Count(count));
        }
    }

    /// Extends a request by a merged bio.
    fn grow(&mut self, into: u64, nr_sectors: u32, front: Option<u64>) {
        if let Some(io) = self.live.get_mut(&into) {
            io.nr_sectors += nr_sectors;
            io.sector = front.unwrap_or(io.sector);
        }
    }
}

/// Returns whether the bio may use the kernel's path for flushes, which bypasses plug and
/// scheduler.
fn flushes(bio: &Submitted) -> bool {
    bio.op == Op::Flush || bio.flags.intersects(Flags::PREFLUSH | Flags::FUA)
}

impl<W: Write> Observer for Tracer<W> {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn task(&mut self, _number: usize, pid: u32, name: &str) {
        self.tasks.push(Task { pid, ..Task::default() });
        // blkparse needs a name for every process.
        let name = if name.is_empty() { &format!("task-{pid}") } else { name };
        if self.written.is_ok() {
            self.written = self.out.name_process(Time::ZERO, pid, ProcessName::new(name.as_bytes()));
        }
    }

    fn ioprio(&mut self, task: usize, ioprio: IoPriority) {
        self.change(0, &Change::IoPriority { task, ioprio });
    }

    fn change(&mut self, now_ns: u64, change: &Change) {
        if let (Change::IoPriority { task, ioprio }, true) = (*change, self.written.is_ok()) {
            self.written = self.out.set_ioprio(Time::from_ns(now_ns), self.pid(task), ioprio);
        }
    }

    fn plug(&mut self, _now_ns: u64, task: usize, open: bool) {
        self.tasks[task].plugged = open;
    }

    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        let &Submitted { task, op, flags, sector, nr_sectors, again, taken, .. } = bio;
        if taken == Taken::Done {
            return;
        }
        let (pid, io) = (self.pid(task), Live { task, op, flags, sector, nr_sectors });
        if !again {
            self.event(Action::Queue, now_ns, pid, &io);
            self.tasks[task].flushes += u64::from(op == Op::Flush);
        }
        match taken {
            Taken::Full if !again => self.event(Action::SleepRequest, now_ns, pid, &io),
            Taken::Allocated => {
                self.event(Action::GetRequest, now_ns, pid, &io);
                // In the device, a flush has no separate request.
                if op != Op::Flush {
                    self.live.insert(bio.bio, io);
                }
                let state = &mut self.tasks[task];
                if state.plugged && !flushes(bio) {
                    state.held.push(bio.bio);
                    if state.held.len() == 1 {
                        self.without_extent(Action::Plug, now_ns, pid, Payload::None);
                    }
                }
            }
            Taken::Held => {
                self.live.insert(bio.bio, io);
            }
            _ => {}
        }
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match *decision {
            Decision::Insert { cookie, .. } => self.insert(now_ns, cookie),
            Decision::Merge { pid, sector, nr_sectors, op, into, side, .. } => {
                let Some(founder) = self.live.get(&into).copied() else { return };
                let io = Live { op, sector, nr_sectors, ..founder };
                let (action, front) = match side {
                    MergeSide::Back => (Action::BackMerge, None),
                    MergeSide::Front => (Action::FrontMerge, Some(sector)),
                };
                self.event(action, now_ns, pid, &io);
                self.grow(into, nr_sectors, front);
            }
            Decision::RequestMerge { cookie, into } => {
                if let Some(gone) = self.live.remove(&cookie) {
                    self.grow(into, gone.nr_sectors, None);
                }
            }
            Decision::Dispatch { cookie, .. } => self.dispatched = cookie,
            Decision::Complete { cookie } => {
                if let Some(io) = self.live.remove(&cookie) {
                    self.event(Action::Complete, now_ns, 0, &io);
                }
            }
            _ => {
                if let Some(message) = message(&self.elevator, decision) {
                    self.without_extent(Action::NoteMessage, now_ns, 0, Payload::Message(message.into()));
                }
            }
        }
    }

    fn dispatched(&mut self, now_ns: u64, request: &Dispatched, _waiting: usize, _in_device: u32) {
        let &Dispatched { task, op, sector, nr_sectors } = request;
        let pid = self.pid(task);
        let bio = self.dispatched;
        if bio > BIOS_MAX {
            // This flush belongs to the queue and to no bio. Its completion has the same cookie.
            self.live.insert(bio, Live { task, op, flags: Flags::empty(), sector, nr_sectors });
        }
        if let Some(io) = self.live.get(&bio).copied() {
            debug_assert_eq!((io.op, io.sector, io.nr_sectors), (op, sector, nr_sectors));
            self.event(Action::Issue, now_ns, pid, &io);
        }
    }

    fn completed(&mut self, now_ns: u64, io: &Completed) {
        let Some(task) = self.tasks.get_mut(io.task).filter(|task| io.op == Op::Flush && task.flushes > 0) else {
            return;
        };
        // A flush of a task completes with the device's flush, and has no separate completion
        // event.
        task.flushes -= 1;
        let flush = Live { task: io.task, op: Op::Flush, flags: Flags::SYNC, sector: 0, nr_sectors: 0 };
        self.event(Action::Complete, now_ns, 0, &flush);
    }
}

/// Returns the message for a decision of the scheduler; `None` if the decision has its own event or
/// no message.
fn message(elevator: &str, decision: &Decision) -> Option<String> {
    let name = |queue: &QueueName| format!("cfq{}{}", queue.pid, if queue.sync { 'S' } else { 'A' });
    let mut text = format!("{elevator} ");
    let text_of = |queue: &QueueName, what: &str| Some(format!("{} {what}", name(queue)));
    match decision {
        Decision::Active { queue, class, workload: kind, cgroup } => {
            let (class, kind) = (class_name(*class), workload(*kind));
            return text_of(queue, &format!("active class={class} kind={kind} cgroup={}", cgroup.index()));
        }
        Decision::Expire { queue, timed_out } => {
            return text_of(queue, if *timed_out { "expired, gets the rest of its slice later" } else { "expired" });
        }
        Decision::Preempt { queue } => return text_of(queue, "preempts"),
        Decision::Slice { queue, slice_ns } => return text_of(queue, &format!("slice_ns={slice_ns}")),
        Decision::IdleWindow { queue, worth } => {
            return text_of(queue, if *worth { "worth idling for" } else { "not worth idling for" });
        }
        Decision::WaitBusy { queue } => {
            return text_of(
                queue,
                "this queue is the last one of its group, so CFQ waits \
                 once more",
            );
        }
        Decision::CooperatorMerge { queue, into_pid } => return text_of(queue, &format!("joins cfq{into_pid}S")),
        Decision::CooperatorSplit { queue } => return text_of(queue, "splits"),
        Decision::HwTag { value } => write!(text, "hw_tag={value}"),
        Decision::IdleArm { wait_ns } => write!(text, "idles: wait_ns={wait_ns}"),
        Decision::IdleCancel => write!(text, "stops idling"),
        Decision::IdleFire => write!(text, "idled in vain"),
        Decision::WorkloadSlice { slice_ns } => write!(text, "slice of the workload type: slice_ns={slice_ns}"),
        Decision::Served { cgroup, vtime } => write!(text, "served cgroup={} vtime={vtime}", cgroup.index()),
        Decision::Yield { pid, to_pid } => write!(text, "pid {pid} yields to {to_pid}"),
        Decision::Cfq2616(Cfq2616Event::GraceArm { wait_ns }) => write!(text, "idle class waits: wait_ns={wait_ns}"),
        Decision::Cfq2616(Cfq2616Event::GraceCancel) => write!(text, "idle class waits on"),
        Decision::Cfq2616(Cfq2616Event::GraceFire) => write!(text, "idle class has waited"),
        Decision::Anticipatory(AnticipatoryEvent::Batch { sync, changing, new }) => {
            let kind = if *sync { "sync" } else { "async" };
            write!(text, "batch {kind} changing={} new={}", u8::from(*changing), u8::from(*new))
        }
        Decision::Anticipatory(AnticipatoryEvent::WriteQuota { requests }) => write!(text, "write quota {requests}"),
        _ => return None,
    }
    .ok()?;
    Some(text)
}
