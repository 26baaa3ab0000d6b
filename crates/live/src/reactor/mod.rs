//! The only thread of a disk. It waits for the ring, for messages of other threads and for timers,
//! and runs the served disk.

mod handle;
#[cfg(any(test, feature = "histories"))]
pub mod history;
pub mod nbd;
mod patience;
mod record;
mod start;
#[cfg_attr(not(feature = "vhost"), path = "../front/absent/vhost_guests.rs")]
pub(crate) mod vhost;

use std::sync::Arc;
use std::time::Duration;

use iosched::{IoPriority, Op, Time};
use iosched_system::Segment;
use slab::Slab;

use crate::backend::{Backend, Completion};
use crate::disk::{Action, ClientId, Done, Failed, Identity, LiveDisk, Operation};
use crate::ring::{Completed, Source, Submissions, System};
use crate::{Errno, Messages};
pub use handle::{ConnectError, Handle, Reply, Stopped};
use handle::{Inbox, Message};
use patience::Patience;
use record::Recorders;
pub use record::{RECORDING_MARK, RecordError, Recorded, Recording};
pub use start::{Ended, Opened, ServeOptions, Served, StartError, open, start};

/// Maximum time for clients to receive their last answers, ns.
const SENDING_NS_MAX: u64 = iosched::SECOND_NS;

/// Stage of the end of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    No,
    /// The disk takes no new operations and completes its pending operations.
    Draining,
    /// The last flush is in flight.
    Flushing,
    /// The last flush is complete.
    Flushed,
    /// The last answers are being sent.
    Sending,
    Ended,
}

/// Event loop of a disk, on the system `S`.
pub(crate) struct Reactor<S> {
    ring: S,
    disk: LiveDisk,
    backend: Box<dyn Backend>,
    inbox: Arc<Inbox>,
    nbd: Option<nbd::Server>,
    vhost: vhost::Server,
    recorders: Recorders,
    notes: Messages,
    patience: Patience,
    /// Number of completions at the start of the current turn of the loop.
    came: usize,
    replies: Slab<Reply>,
    ending: Ending,
    /// Client of the reactor itself, for the last flush.
    flusher: Option<ClientId>,
    result: Result<(), Errno>,
    /// Time at which the reactor stops waiting for clients to take their last answers.
    gives_up: Option<Time>,
    messages: Vec<Message>,
    completed: Vec<Completed>,
    segments: Vec<Segment>,
    done: Vec<Completion>,
    answers: Vec<Done>,
}

impl<S: System> Reactor<S> {
    fn new(
        ring: S,
        disk: LiveDisk,
        backend: Box<dyn Backend>,
        inbox: Arc<Inbox>,
        nbd: Option<nbd::Server>,
        recorders: Recorders,
        notes: Messages,
    ) -> Self {
        Self {
            ring,
            disk,
            backend,
            inbox,
            nbd,
            vhost: vhost::Server::new(notes.clone()),
            recorders,
            notes,
            patience: Patience::default(),
            came: 0,
            replies: Slab::new(),
            ending: Ending::No,
            flusher: None,
            result: Ok(()),
            gives_up: None,
            messages: Vec::new(),
            completed: Vec::new(),
            segments: Vec::new(),
            done: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Runs until the disk has ended or the system fails.
    fn run(&mut self) {
        self.begin();
        while self.ending != Ending::Ended {
            self.turn();
            if self.ending != Ending::Ended {
                self.wait();
            }
        }
        self.refuse_the_rest();
    }

    fn begin(&mut self) {
        self.ring.listen_to(Arc::clone(self.inbox.bell()));
        if let Some(nbd) = &self.nbd {
            nbd.listen(&mut self.ring);
        }
    }

    /// Processes everything that has arrived or is due.
    fn turn(&mut self) {
        let now = self.ring.now();
        self.came = self.ring.completions(&mut self.completed);
        // Completions are processed first, so that the device gets its next commands before new
        // commands arrive.
        self.take_ended(now);
        // There is at most one timer and one rerun. Further due events run in the next turn.
        for _ in 0..2 {
            if !self.disk.timer(now) {
                break;
            }
            self.start(now);
        }
        self.take_messages(now);
        self.take_arrived(now);
        self.vhost.time(now, &mut self.ring);
        self.vhost.serve(now, &mut self.disk);
        if let Some(nbd) = &mut self.nbd
            && nbd.next_time().is_some_and(|at| at <= now)
        {
            nbd.time(now, &mut self.disk, &mut self.ring);
            nbd.tell_extents(now, &mut self.disk, &*self.backend);
        }
        loop {
            self.run_queue(now);
            if !self.answer(now) {
                break;
            }
        }
        self.go_on_with_end(now);
        if let Some(nbd) = &mut self.nbd {
            nbd.go_on(&mut self.ring);
        }
        self.vhost.tell();
        self.recorders.take(&mut self.disk);
    }

    /// Closes the inbox after the disk has ended. Refuses the messages that are still in the inbox.
    fn refuse_the_rest(&mut self) {
        for message in self.inbox.close() {
            if let Message::Submit(_, _, reply) = message {
                reply(Err(Errno::ESHUTDOWN));
            }
        }
        self.recorders.take(&mut self.disk);
    }

    /// Returns the results of the disk.
    fn end(self) -> Ended {
        let gone = self.backend.gone();
        let Self { ring, result, recorders, .. } = self;
        // Dropping the ring ends calls in flight.
        drop(ring);
        let (recorded, driver_recorded) = recorders.finish();
        Ended { flushed: result, recorded, driver_recorded, gone }
    }

    fn wait(&mut self) {
        let nbd = self.nbd.as_ref().and_then(nbd::Server::next_time);
        let times = [self.disk.next_timer(), self.backend.next_event(), nbd, self.vhost.next_time(), self.gives_up];
        let now = self.ring.now();
        let next = times.into_iter().flatten().min();
        if next.is_some_and(|at| at <= now) || !self.inbox.may_sleep() {
            // An event is already due, so the thread does not wait. But it must still pass pushed
            // calls to the kernel.
            self.submit(Some(Duration::ZERO));
            return;
        }
        self.sleep(now, next);
        self.inbox.awake();
    }

    /// Waits for an event, at most until `next`. If recent events came quickly, polls first,
    /// because a sleeping thread wakes slowly.
    fn sleep(&mut self, began: Time, next: Option<Time>) {
        let gives_up = (began + self.patience.ns(self.came)).min(next.unwrap_or(Time::MAX));
        let mut now = began;
        while now < gives_up {
            let looked = self.ring.look();
            self.ends_by(looked);
            now = self.ring.now();
            if self.ring.has_completions() || self.vhost.has_arrived() || self.ending == Ending::Ended {
                return;
            }
        }
        if self.vhost.arm() {
            self.submit(Some(Duration::ZERO));
            return;
        }
        self.submit(next.map(|at| Duration::from_nanos(at.since(now.min(at)))));
        self.patience.slept(self.ring.now().since(began));
    }

    fn submit(&mut self, timeout: Option<Duration>) {
        let submitted = self.ring.submit_and_wait(timeout);
        self.ends_by(submitted);
    }

    /// Ends the disk if the system has failed.
    fn ends_by(&mut self, result: std::io::Result<()>) {
        if let Err(error) = result {
            // The disk cannot continue without the ring. The back end has all acknowledged data, as
            // promised.
            self.notes.say(&format!("{}: the server stops, because of an error: {error}", self.disk.name()));
            self.result = Err(Errno::EIO);
            self.ending = Ending::Ended;
        }
    }

    fn take_messages(&mut self, now: Time) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Submit(_, _, reply) if self.ending != Ending::No => reply(Err(Errno::ESHUTDOWN)),
                Message::Submit(client, operation, reply) => {
                    let cookie = self.replies.insert(reply) as u64;
                    self.disk.submit(now, client, Operation { cookie, ..operation });
                }
                Message::Control(act) => act(&mut self.disk, now),
                #[cfg(feature = "vhost")]
                Message::Vhost(act) => {
                    let (disk, ring) = (&mut self.disk, &mut self.ring);
                    act(&mut self.vhost, &mut vhost::Hands { now, disk, ring });
                }
                Message::Exports(exports, done) => {
                    if let Some(nbd) = &mut self.nbd {
                        nbd.set_exports(now, exports, &mut self.disk);
                    }
                    // This fails only if the caller has ended.
                    let _ = done.send(());
                }
                Message::Stop if self.ending == Ending::No => {
                    self.ending = Ending::Draining;
                    if let Some(nbd) = &mut self.nbd {
                        nbd.end(&mut self.ring);
                    }
                    self.vhost.end();
                }
                Message::Stop => {}
            }
        }
        self.messages = messages;
    }

    fn take_ended(&mut self, now: Time) {
        let ring = &mut Submissions { ring: &mut self.ring, source: Source::Backend };
        for Completed { tag: (source, id), result, memory } in &mut self.completed {
            if *source == Source::Backend {
                self.backend.completed(now, *id, *result, std::mem::take(memory), ring, &mut self.done);
            }
        }
        self.backend.advance(now, ring, &mut self.done);
        self.take_done(now);
    }

    fn take_arrived(&mut self, now: Time) {
        let mut completed = std::mem::take(&mut self.completed);
        for completed in completed.drain(..) {
            match (completed.tag.0, &mut self.nbd) {
                (Source::Accept, Some(nbd)) => nbd.accepted(now, completed, &mut self.disk, &mut self.ring),
                (Source::Receive, Some(nbd)) => nbd.received(now, completed, &mut self.disk),
                (Source::Send, Some(nbd)) => nbd.sent(now, completed, &mut self.disk, &mut self.ring),
                #[cfg(feature = "vhost")]
                (Source::Kick, _) => self.vhost.kicked(now, &completed, &mut self.ring),
                _ => {}
            }
        }
        self.completed = completed;
    }

    /// Passes commands to the back end, and its completions to the served disk, until there are no
    /// more of them.
    fn run_queue(&mut self, now: Time) {
        self.start(now);
        self.take_done(now);
        while self.disk.arrive(now) {
            self.start(now);
            self.take_done(now);
        }
    }

    /// Passes completions of the back end to the served disk. Each completion has its own turn, as
    /// in the simulator.
    fn take_done(&mut self, now: Time) {
        while !self.done.is_empty() {
            let mut done = std::mem::take(&mut self.done);
            for (id, result) in done.drain(..) {
                if let Some(failed) = self.disk.complete(now, id, result) {
                    self.tell(&failed);
                }
                self.start(now);
                self.answer_guests();
            }
            // Commands that completed immediately are processed next. The vector is reused, because
            // it has allocated memory.
            if self.done.is_empty() {
                self.done = done;
            }
        }
    }

    /// Passes commands to the back end in the turn of an event.
    fn start(&mut self, now: Time) {
        while let Some(command) = self.disk.next_command(now, &mut self.segments) {
            let ring = &mut Submissions { ring: &mut self.ring, source: Source::Backend };
            self.backend.start(now, &command, &mut self.segments, ring, &mut self.done);
            // The back end does not need the segments that it left in the vector.
            self.segments.clear();
        }
    }

    /// Reports a failed command to the administrator.
    fn tell(&self, failed: &Failed) {
        let Failed { op, sector, nr_sectors, errno } = *failed;
        let (kind, does) = match op {
            Op::Read => ("reads that failed", "a read"),
            Op::Write => ("writes that failed", "a write"),
            Op::Flush => ("flushes that failed", "a flush"),
            Op::Discard => ("trims that failed", "a trim"),
            Op::WriteZeroes => ("zeroes that failed", "writing zeroes"),
        };
        let place = if op == Op::Flush { String::new() } else { format!(" of {nr_sectors} sectors at {sector}") };
        self.notes.note(kind, &format!("{}: {does}{place} failed: {errno}", self.disk.name()));
    }

    /// Answers guests at once, so that a sleeping guest wakes up while other work continues.
    /// Answers to other clients wait for [`Self::answer`], which sends several answers together.
    fn answer_guests(&mut self) {
        if !self.vhost.has_guests() {
            return;
        }
        for done in self.disk.take_done() {
            if done.cookie & vhost::COOKIES != 0 {
                self.vhost.answer(done);
            } else {
                self.answers.push(done);
            }
        }
    }

    /// Answers clients. Returns whether there were answers.
    fn answer(&mut self, now: Time) -> bool {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.disk.take_done());
        let any = !answers.is_empty() || self.vhost.has_answered();
        for done in answers.drain(..) {
            if Some(done.client) == self.flusher {
                self.result = done.result.map(drop);
                self.ending = Ending::Flushed;
            } else if done.cookie & nbd::COOKIES != 0 {
                if let Some(nbd) = &mut self.nbd {
                    nbd.answer(now, done, &mut self.disk);
                }
            } else if done.cookie & vhost::COOKIES != 0 {
                self.vhost.answer(done);
            } else if let Some(reply) = self.replies.try_remove(done.cookie as usize) {
                reply(done.result);
            }
        }
        self.answers = answers;
        if any {
            // There may now be room for requests that waited for room.
            self.vhost.go_on(now, &mut self.disk);
        }
        any
    }

    /// Continues the end of the disk: a flush after all operations, then the last answers.
    fn go_on_with_end(&mut self, now: Time) {
        if self.ending == Ending::Draining && self.disk.is_idle() {
            self.flush_last(now);
        }
        if self.ending == Ending::Flushed {
            self.ending = Ending::Sending;
            self.gives_up = Some(now + SENDING_NS_MAX);
            if let Some(nbd) = &mut self.nbd {
                nbd.finish(now, &mut self.disk);
            }
        }
        let quiet = self.nbd.as_ref().is_none_or(nbd::Server::is_quiet);
        if self.ending == Ending::Sending && (quiet || self.gives_up.is_some_and(|at| at <= now)) {
            self.ending = Ending::Ended;
        }
    }

    fn flush_last(&mut self, now: Time) {
        let (name, ioprio) = ("iosched".to_owned(), IoPriority::default());
        let Ok(flusher) = self.disk.connect(now, Identity { ioprio, ..Identity::new(name, 0) }) else {
            self.result = Err(Errno::EIO);
            self.ending = Ending::Flushed;
            return;
        };
        self.flusher = Some(flusher);
        self.ending = Ending::Flushing;
        let flush = Operation::new(Action::Flush, 0, 0);
        self.disk.submit(now, flusher, flush);
        self.run_queue(now);
        self.answer(now);
    }
}
