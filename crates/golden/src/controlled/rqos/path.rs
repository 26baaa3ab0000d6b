//! The path of a bio: threads, io.max, the entry of the queue, hooks, and tags.

use std::collections::VecDeque;

use iosched::Op;
use iosched::controllers::{BioId, Passage, Wbt};

use super::changes::KernelStep;
use super::lines;
use super::player::{Event, Player};

/// Next step of a thread.
#[derive(Clone, Copy)]
pub(super) enum Step {
    // ---- a bio
    /// A new bio reaches io.max.
    Submit(BioId),
    /// io.max's worker releases the bio.
    Release(BioId),
    /// The bio reaches the entry of the queue.
    Enter(BioId),
    EnterAgain(BioId),
    /// The bio reaches the hook of io.latency.
    Latency(BioId),
    LatencyAgain(BioId),
    /// The bio reaches the hook of wbt.
    Wbt(BioId),
    WbtAgain(BioId),
    Tag(BioId),
    /// The bio becomes a request.
    InsertAgain(BioId),
    // ---- a task
    /// The task's system call ends.
    Return,
    Awake,
    // ---- the kernel, and the thread that writes to files
    Kernel(KernelStep),
}

/// One thread of control.
#[derive(Default)]
pub(super) struct Thread {
    /// Steps that the thread still has to do.
    pub(super) work: VecDeque<Step>,
    /// Bios of later system calls.
    pub(super) backlog: VecDeque<Vec<BioId>>,
    /// Whether the thread waits until another event wakes it.
    pub(super) blocked: bool,
    /// Whether the thread is in the list of threads that can continue.
    pub(super) queued: bool,
    /// Whether the thread must rest at the end of its system call.
    marked: bool,
}

impl Thread {
    /// Number of threads that do not belong to tasks: io.max's worker, the thread that switches
    /// io.latency, and the thread that writes to files.
    pub(super) const KERNEL: usize = 3;
}

impl Player {
    pub(super) fn worker(&self) -> usize {
        self.pids.len()
    }

    pub(super) fn switcher(&self) -> usize {
        self.pids.len() + 1
    }

    pub(super) fn writer(&self) -> usize {
        self.pids.len() + 2
    }

    /// Continues `thread`.
    pub(super) fn wake(&mut self, thread: usize) {
        self.threads[thread].blocked = false;
        if !std::mem::replace(&mut self.threads[thread].queued, true) {
            self.runnable.push_back(thread);
        }
    }

    /// Continues `thread`, which has steps to do, unless it waits.
    pub(super) fn wake_idle(&mut self, thread: usize) {
        if !self.threads[thread].blocked {
            self.wake(thread);
        }
    }

    /// Continues the threads whose bios no longer wait.
    pub(super) fn wake_ready(&mut self) {
        let ready: Vec<BioId> = self.site.take_going_on().collect();
        for id in ready {
            self.wake(self.states[id.index()].sleeper);
        }
    }

    pub(super) fn run(&mut self, thread: usize) {
        loop {
            let Some(step) = self.threads[thread].work.pop_front() else {
                if thread == self.worker() && std::mem::take(&mut self.worker_called) {
                    let released = self.max.as_mut().map(|max| max.released()).unwrap_or_default();
                    self.threads[thread].work.extend(released.into_iter().map(Step::Release));
                } else if let Some(batch) = self.threads[thread].backlog.pop_front() {
                    let work = &mut self.threads[thread].work;
                    work.extend(batch.into_iter().map(Step::Submit));
                    work.push_back(Step::Return);
                } else {
                    return;
                }
                continue;
            };
            self.step(thread, step);
            if self.threads[thread].blocked {
                return;
            }
        }
    }

    pub(super) fn next(&mut self, thread: usize, step: Step) {
        self.threads[thread].work.push_front(step);
    }

    /// Makes `thread` wait, and do `step` when it is woken.
    pub(super) fn block(&mut self, thread: usize, step: Step) {
        self.threads[thread].blocked = true;
        self.next(thread, step);
    }

    fn step(&mut self, thread: usize, step: Step) {
        match step {
            Step::Submit(id) => {
                let group = self.site.groups.living(self.groups[self.states[id.index()].task]);
                self.site.count_for(id, group);
                if self.passes_max(id) {
                    self.next(thread, Step::Enter(id));
                }
            }
            Step::Release(id) => {
                self.say_of("release", id);
                self.site.bios[id].started = self.site.now;
                self.next(thread, Step::Enter(id));
            }
            Step::Enter(id) => self.enter(thread, id),
            Step::EnterAgain(id) => {
                self.say_of("wake", id);
                self.enter(thread, id);
            }
            Step::Latency(id) => {
                let latency = self.latency.as_mut();
                let passage = latency.map_or(Passage::Pass, |latency| latency.throttle(&mut self.site, id));
                self.after_latency(thread, id, passage);
            }
            Step::LatencyAgain(id) => {
                self.say_of("wake", id);
                let latency = self.latency.as_mut();
                let passage = latency.map_or(Passage::Pass, |latency| latency.resumed(&mut self.site, id));
                self.after_latency(thread, id, passage);
            }
            Step::Wbt(id) => self.throttle(thread, id),
            Step::WbtAgain(id) => {
                self.say_of("wake", id);
                self.with_wbt(|wbt, site| wbt.resumed(site));
                self.show_latency();
                self.next(thread, Step::Tag(id));
            }
            Step::Tag(id) => match &mut self.tags_free {
                Some(0) => {
                    let line = self.line("wait").number("id", self.states[id.index()].id).text("on", "tag");
                    self.say(line);
                    self.tag_waiters.push_back(id);
                    self.states[id.index()].sleeper = thread;
                    self.block(thread, Step::InsertAgain(id));
                }
                free => {
                    *free = free.map(|free| free - 1);
                    self.insert(id);
                }
            },
            Step::InsertAgain(id) => {
                self.say_of("wake", id);
                self.insert(id);
            }
            Step::Return => self.end_call(thread),
            Step::Awake => {
                let line = self.line("awake").number("pid", self.pids[thread]);
                self.say(line);
                self.show_latency();
            }
            Step::Kernel(step) => self.change(thread, step),
        }
    }

    /// Returns whether io.max lets a bio, or the rest of a bio, pass.
    fn passes_max(&mut self, id: BioId) -> bool {
        if let Some(max) = &mut self.max
            && max.enter(&mut self.site, id) == Passage::Wait
        {
            self.flush();
            return false;
        }
        self.flush();
        self.site.bios[id].started = self.site.now;
        true
    }

    /// Lets a bio enter the queue, or makes it wait until bios may enter again. Splits a long bio.
    fn enter(&mut self, thread: usize, id: BioId) {
        if self.gates > 0 {
            let line = self.line("wait").number("id", self.states[id.index()].id).text("on", "freeze");
            self.say(line);
            self.at_gate.push(thread);
            return self.block(thread, Step::EnterAgain(id));
        }
        self.inside += 1;
        let state = self.site.bios[id];
        if state.nr_sectors <= self.max_sectors || state.op == Op::Discard {
            return self.next(thread, Step::Latency(id));
        }
        let mut piece = state;
        piece.nr_sectors = self.max_sectors;
        piece.started = self.site.now;
        let task = self.states[id.index()].task;
        let part = self.begin(&piece, task, false, Some(id));
        let line = self.line("split").number("id", self.states[id.index()].id);
        let line = line.number("part", self.states[part.index()].id).number("nr", self.max_sectors);
        self.say(line);
        let state = &mut self.states[id.index()];
        state.pending += 1;
        state.split = true;
        let rest = &mut self.site.bios[id];
        rest.nr_sectors -= self.max_sectors;
        rest.sector += u64::from(self.max_sectors);
        if self.passes_max(id) {
            self.next(thread, Step::Enter(id));
        }
        self.next(thread, Step::Latency(part));
    }

    fn after_latency(&mut self, thread: usize, id: BioId, passage: Passage) {
        let rests = self.site.take_rest(self.site.bios[id].context);
        let is_task = self.actors.get(thread).is_some_and(|actor| !actor.kernel);
        self.threads[thread].marked |= rests && is_task;
        self.wake_ready();
        if passage == Passage::Pass {
            return self.next(thread, Step::Wbt(id));
        }
        self.show_latency();
        let group = self.site.bios[id].waits_in();
        let inflight = self.latency.as_ref().map_or(0, |latency| latency.inflight(group));
        let line = self.line("wait").number("id", self.states[id.index()].id).text("on", "lat");
        self.say(line.text("cg", self.names.group(group)).number("inflight", inflight));
        self.states[id.index()].sleeper = thread;
        self.block(thread, Step::LatencyAgain(id));
    }

    fn throttle(&mut self, thread: usize, id: BioId) {
        let wbt = self.wbt.as_mut();
        if wbt.map_or(Passage::Pass, |wbt| wbt.throttle(&mut self.site, id)) == Passage::Pass {
            self.show_latency();
            return self.next(thread, Step::Tag(id));
        }
        self.show_latency();
        let class = Wbt::class(&self.site.bios[id]);
        let inflight = self.wbt.as_ref().map_or(0, |wbt| wbt.inflight(class));
        let line = self.line("wait").number("id", self.states[id.index()].id).text("on", "wbt");
        self.say(line.text("q", lines::class(class)).number("inflight", inflight));
        self.states[id.index()].sleeper = thread;
        self.block(thread, Step::WbtAgain(id));
    }

    fn insert(&mut self, id: BioId) {
        self.with_wbt(|wbt, site| wbt.issued(site, id));
        self.say_of("insert", id);
        self.inserted.push_back(id);
    }

    /// Ends a system call. The task then rests if io.latency requires a rest.
    fn end_call(&mut self, thread: usize) {
        if std::mem::take(&mut self.threads[thread].marked)
            && let Some(latency) = &mut self.latency
        {
            let ns = latency.rest_ns(&self.site, self.groups[thread]);
            if ns > 0 {
                let line = self.line("sleep").number("pid", self.pids[thread]).number("ns", ns);
                self.say(line);
                self.schedule(self.now_ns + ns, Event::Awake(thread));
                return self.block(thread, Step::Awake);
            }
        }
        self.show_latency();
    }
}
