//! Threads of a run. They start together, and each thread executes its part to the end. Then the
//! results of all threads are collected.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use iosched::IoPriority;
use iosched_system::call;

use super::ExecuteError;
use super::cgroup::Cgroups;
use super::message::{Inbox, Message};
use super::port::{Counts, Failed, LOOK_ROUND, Port};
use super::recorder::{Recorder, Watch};

/// Next state of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The part waits for completions and messages, at most until this time in ns. `u64::MAX` means
    /// no limit.
    Wait { until_ns: u64 },
    /// The part is done.
    Done,
}

/// Work of one thread.
pub(super) trait Part: Send {
    /// Receives a message of another thread.
    fn receive(&mut self, message: Message, now_ns: u64);

    /// Submits the I/Os that are due, until the part must wait.
    fn go(&mut self, port: &mut Port<'_>, now_ns: u64) -> Next;

    /// Reports the completion of the I/O with this tag. The part submits nothing during the call.
    fn completed(&mut self, tag: u64, now_ns: u64);

    /// Ends the part early. The part submits no more I/O, and is done once no I/O is in flight.
    /// Returns whether the part had more work.
    fn stop(&mut self, now_ns: u64) -> bool;
}

/// Results of a thread.
pub(super) struct Played<P> {
    pub(super) part: P,
    pub(super) recorder: Recorder,
    pub(super) counts: Counts,
}

/// State that all threads of a run share.
pub(super) struct Shared<'a> {
    pub(super) interrupt: Option<&'a AtomicBool>,
    /// Time after which no part submits I/O, ns.
    pub(super) end_ns: u64,
    /// Time from which completions count, ns.
    pub(super) counted_from_ns: u64,
    /// Statistics of the device since `counted_from_ns`.
    pub(super) watch: Arc<Watch>,
    pub(super) inboxes: Vec<Inbox>,
    started: OnceLock<Instant>,
    stopping: AtomicBool,
    /// Time at which the first part was ended early, ns.
    limited_ns: OnceLock<u64>,
    /// Number of parts that have work, plus the number of calls between tasks that have not yet
    /// arrived. When this number is 0, all parts that wait for other parts are done.
    busy: AtomicUsize,
    failure: Mutex<Option<ExecuteError>>,
}

impl<'a> Shared<'a> {
    /// Creates the shared state of `threads` threads.
    pub(super) fn new(
        threads: usize,
        interrupt: Option<&'a AtomicBool>,
        counted_from_ns: u64,
        end_ns: u64,
        watch: &Arc<Watch>,
    ) -> Result<Self, ExecuteError> {
        let inboxes: io::Result<Vec<Inbox>> = (0..threads).map(|_| Inbox::new()).collect();
        Ok(Self {
            interrupt,
            end_ns,
            counted_from_ns,
            watch: Arc::clone(watch),
            inboxes: inboxes.map_err(|error| ExecuteError::System { what: "eventfd", error })?,
            started: OnceLock::new(),
            stopping: AtomicBool::new(false),
            limited_ns: OnceLock::new(),
            busy: AtomicUsize::new(threads),
            failure: Mutex::default(),
        })
    }

    /// Returns the time since the start, ns.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        self.started.get().map_or(0, |started| started.elapsed().as_nanos() as u64)
    }

    /// Returns whether the run must end before the workload ends.
    #[inline]
    pub(super) fn is_ending(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns
            || self.stopping.load(Ordering::Relaxed)
            || self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Records that a part was ended early.
    pub(super) fn limit(&self, now_ns: u64) {
        let _ = self.limited_ns.set(now_ns);
    }

    /// Returns the time at which the first part was ended early, ns. Returns `None` if all parts
    /// completed their work.
    pub(super) fn limited_ns(&self) -> Option<u64> {
        self.limited_ns.get().copied()
    }

    /// Fails the run and stops all threads.
    pub(super) fn fail(&self, error: ExecuteError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stopping.store(true, Ordering::Relaxed);
        self.inboxes.iter().for_each(Inbox::wake);
    }

    /// Counts one more part as busy.
    pub(super) fn becomes_busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one part fewer as busy. Wakes all threads if no part is busy any more.
    pub(super) fn becomes_idle(&self) {
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.inboxes.iter().for_each(Inbox::wake);
        }
    }

    /// Returns whether no part is busy.
    pub(super) fn is_quiet(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }
}

/// Runs a thread for each part. `makers` create the parts on these threads, before the clock
/// starts. When all threads are ready, `begin` is called. If `apart` is true, each thread is a
/// process that shares this process's memory.
///
/// # Errors
/// The first error of a thread or of `begin`, or the run was interrupted.
pub(super) fn play<'a, P, M>(
    shared: &'a Shared<'a>,
    apart: bool,
    makers: Vec<M>,
    begin: impl FnOnce() -> Result<(), ExecuteError>,
) -> Result<Vec<Played<P>>, ExecuteError>
where
    P: Part,
    M: FnOnce() -> Result<(P, Port<'a>), ExecuteError> + Send,
{
    let threads = makers.len();
    let (ready, start) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let played = thread::scope(|scope| {
        let mut handles = VecDeque::with_capacity(threads);
        for (number, make) in makers.into_iter().enumerate() {
            let (ready, start) = (&ready, &start);
            handles.push_back(scope.spawn(move || {
                let waits = AtomicUsize::new(0);
                let wait = |barrier: &Barrier| {
                    waits.fetch_add(1, Ordering::Relaxed);
                    barrier.wait();
                };
                let play = || {
                    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                    let part = make();
                    wait(ready);
                    wait(start);
                    match part {
                        Ok((part, port)) => Some(work(shared, &shared.inboxes[number], part, port)),
                        Err(error) => {
                            shared.fail(error);
                            shared.becomes_idle();
                            None
                        }
                    }
                };
                let played = if apart { iosched_system::apart::run(play) } else { Ok(play()) };
                played.unwrap_or_else(|error| {
                    // The missing thread does not reach its barriers. This call passes the
                    // remaining barriers for it, so that the other threads do not wait forever.
                    [ready, start].into_iter().skip(waits.load(Ordering::Relaxed)).for_each(|barrier| {
                        barrier.wait();
                    });
                    shared.fail(ExecuteError::System { what: "clone", error });
                    shared.becomes_idle();
                    None
                })
            }));
        }
        ready.wait();
        if let Err(error) = begin() {
            shared.fail(error);
        }
        let _ = shared.started.set(Instant::now());
        start.wait();
        let join = |handle: thread::ScopedJoinHandle<'_, Option<Played<P>>>| match handle.join() {
            Ok(played) => played,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        handles.into_iter().filter_map(join).collect()
    });
    if let Some(error) = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    if shared.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        return Err(ExecuteError::Interrupted { at_ns: shared.now_ns() });
    }
    Ok(played)
}

/// Runs one thread until its part is done.
fn work<P: Part>(shared: &Shared<'_>, inbox: &Inbox, mut part: P, mut port: Port<'_>) -> Played<P> {
    let mut stopped = false;
    let mut messages = Vec::new();
    let mut now_ns = shared.now_ns();
    loop {
        if !stopped && shared.is_ending(now_ns) {
            stopped = true;
            if part.stop(now_ns) {
                shared.limit(now_ns);
            }
        }
        inbox.take(&mut messages);
        messages.drain(..).for_each(|message| part.receive(message, now_ns));
        let Next::Wait { until_ns } = part.go(&mut port, now_ns) else { break };
        let timeout = match until_ns {
            u64::MAX => None,
            until_ns => Some(Duration::from_nanos(until_ns.saturating_sub(shared.now_ns())).min(LOOK_ROUND)),
        };
        let timeout = if inbox.may_sleep() { timeout } else { Some(Duration::ZERO) };
        let waited = port.wait(timeout);
        inbox.awake();
        if let Err(error) = waited {
            shared.fail(ExecuteError::System { what: "io_uring_enter", error });
            break;
        }
        now_ns = shared.now_ns();
        while let Some(tag) = port.take(now_ns) {
            part.completed(tag, now_ns);
        }
        if let Some(Failed { io, error }) = port.failed.take() {
            let task = port.recorder.tasks[io.task].name.clone();
            let path = port.path(io.file).to_owned();
            shared.fail(ExecuteError::Io { task, op: io.op.name(), path, offset: io.offset, bytes: io.bytes, error });
        }
    }
    let (recorder, counts) = port.into_counts();
    Played { part, recorder, counts }
}

/// Sets the ioprio of the calling thread.
pub(super) fn take_ioprio(ioprio: IoPriority) -> Result<(), ExecuteError> {
    call::set_ioprio(iosched_trace::ioprio_for_kernel(ioprio))
        .map_err(|error| ExecuteError::IoPriority { ioprio, error })
}

/// Moves the calling thread to a cgroup of the workload.
pub(super) fn join_cgroup(cgroups: &Cgroups, name: &str) -> Result<(), ExecuteError> {
    cgroups.join(name).map_err(|error| ExecuteError::Cgroup { cgroup: name.to_owned(), error })
}
