//! Runs fio jobs with one thread per job. The crew decides when each job starts and stops.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use iosched_workload::fio::{Action, Client, Crew, Direction, Job, Jobs, Layout, OpenSync, Order, Process, SyncKind};
use iosched_workload::outcome::{Note, TaskResult};
use rustix::fs::OFlags;

use super::cgroup::Cgroups;
use super::ground::{self, Access, Ground, Need};
use super::message::{self, Inbox, Message};
use super::port::{Io, IoOp, Port};
use super::recorder::Recorder;
use super::worker::{self, Next, Part, Played, Shared};
use super::{ExecuteError, ExecuteOptions, Gathered, Run};
use crate::target::Target;

/// Tag of a flush. An I/O has the number of its slot as tag.
const FLUSH: u64 = u64::MAX;

/// Returns two values: where the jobs' files are on a target, and which files must be created.
pub(super) fn need(jobs: &Jobs, target: &Target) -> Result<(Layout, Need), ExecuteError> {
    let bytes = if jobs.use_device() { ground::disk_bytes(target, u64::MAX)? } else { ground::file_bytes(target)? };
    let layout = jobs.layout(bytes)?;
    let mut files = BTreeMap::<u64, u64>::new();
    for (number, _) in jobs.iter() {
        for region in &layout.jobs[number].regions {
            let end = files.entry(region.file_start).or_default();
            *end = (*end).max(region.offset + region.length);
        }
    }
    let need = match jobs.use_device() && target.keeps_disk() {
        true => Need::Disk { reach_bytes: u64::MAX },
        false => Need::Files(files.into_iter().collect()),
    };
    Ok((layout, need))
}

/// Jobs and their files.
#[derive(Debug)]
pub(super) struct PreparedJobs<'t> {
    jobs: &'t Jobs,
    layout: Layout,
    pub(super) ground: Ground<'t>,
}

impl<'t> PreparedJobs<'t> {
    pub(super) fn new(jobs: &'t Jobs, target: &'t Target) -> Result<Self, ExecuteError> {
        let (layout, need) = need(jobs, target)?;
        Ok(Self { jobs, layout, ground: Ground::new(target, need)? })
    }

    pub(super) fn run(&self, run: &Run<'_>, options: &ExecuteOptions<'_>) -> Result<Gathered, ExecuteError> {
        let shared = run.shared(self.jobs.count())?;
        let crew = Hands { crew: Mutex::new(Crew::new(self.jobs, options.seed)), inboxes: &shared.inboxes };
        crew.carry_out(|_| {});
        let mut cgroups = Cgroups::of_jobs(self.jobs, run.cgroups)?;
        cgroups.add_buffered(self.jobs.iter().any(|(_, job)| job.cgroup.is_some() && !job.direct && writes(job)));
        let ramps = self.jobs.iter().all(|(_, job)| job.ramp_time_ns > 0);
        let names = self.jobs.names();
        let mut makers = Vec::with_capacity(self.jobs.count());
        for (place, (number, job)) in self.jobs.iter().enumerate() {
            let (name, shared, crew, cgroups) = (&names[number], &shared, &crew, &cgroups);
            makers.push(move || {
                if let Some(member) = &job.cgroup {
                    worker::join_cgroup(cgroups, &member.name)?;
                }
                self.part(run, shared, crew, (place, number), (job, name), options.seed)
            });
        }
        let played = worker::play(&shared, cgroups.are_of_processes(), makers, || run.begin(ramps))?;
        let mut gathered = Self::gather(&shared, played, ramps);
        gathered.result.notes.append(&mut cgroups.notes);
        if self.jobs.iter().any(|(_, job)| job.sync_file_range_ios > 0 && !job.direct) {
            let what = "sync_file_range of buffered jobs".to_owned();
            gathered.result.notes.push(Note::NotCarriedOut {
                what,
                why: "on a real device, iosched does not make this system call".to_owned(),
            });
        }
        Ok(run.ended(gathered, &shared))
    }

    /// Creates the part of a job. This function runs on the job's thread.
    fn part<'a>(
        &'a self,
        run: &Run<'_>,
        shared: &'a Shared<'a>,
        crew: &'a Hands<'a>,
        (place, number): (usize, usize),
        (job, name): (&'a Job, &str),
        seed: u64,
    ) -> Result<(JobPart<'a>, Port<'a>), ExecuteError> {
        worker::take_ioprio(job.ioprio)?;
        let regions = &self.layout.jobs[number].regions;
        let access = Access { write: writes(job), direct: job.direct, buffered: !job.direct, flags: open_flags(job) };
        let mut opened = Vec::with_capacity(regions.len());
        let mut numbers = BTreeMap::new();
        let mut files = Vec::with_capacity(regions.len());
        for region in regions {
            let piece = self.ground.piece_of(region.file_start);
            let number = match numbers.entry(piece) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    opened.push(self.ground.open(piece, access)?);
                    *new.insert(opened.len() - 1)
                }
            };
            files.push((number, self.ground.pieces[piece].start));
        }
        let asynchronous = job.client == Client::Async;
        let depth = if asynchronous { job.io_depth.max(1) as usize } else { 1 };
        let bell = shared.inboxes[place].bell();
        let engine = run.engine(asynchronous, depth, longest_io(job), bell)?;
        let task = TaskResult {
            pid: number as u32 + 1,
            name: name.to_owned(),
            ioprio: job.ioprio.to_string(),
            cgroup: job.cgroup.as_ref().map_or_else(String::new, |cgroup| cgroup.name.trim_matches('/').to_owned()),
            ..TaskResult::default()
        };
        let recorder = Recorder::new(vec![task], shared.counted_from_ns, &shared.watch);
        let part = JobPart {
            process: Process::new(job, &self.layout.jobs[number], self.jobs.seed(number, seed)),
            place,
            crew,
            shared,
            files,
            state: State::Called(None),
            unsynced: Vec::new(),
            is_unsynced: vec![false; opened.len()],
            batch: Vec::with_capacity(depth),
        };
        Ok((part, Port::new(opened, engine, bell, recorder, run.first_write(number))))
    }

    fn gather(shared: &Shared<'_>, played: Vec<Played<JobPart<'_>>>, ramps: bool) -> Gathered {
        let mut gathered = Gathered::default();
        // Jobs that never started have no ramp time.
        let ramped = played.iter().map(|played| played.part.process.counted_ns()).filter(|&ns| ns > 0 || !ramps);
        gathered.result.counted_from_ns = ramped.min().unwrap_or(0);
        let end_ns = shared.now_ns();
        for Played { part, recorder, counts } in played {
            let JobPart { mut process, state, .. } = part;
            if process.has_failed() {
                gathered.result.notes.push(Note::JobFailed { job: process.job.name.clone() });
            }
            if state != State::Ended {
                process.end(end_ns);
            }
            gathered.result.jobs.push(process.into_result());
            gathered.add(recorder, &counts);
        }
        gathered.result.leave_syncs_out();
        gathered
    }
}

/// Returns the longest I/O of a job, bytes.
pub(super) fn longest_io(job: &Job) -> u64 {
    let logged = job.replay.iter().flat_map(|log| log.ios.iter().map(|io| io.bytes)).max().unwrap_or(0);
    let longest = job.mode.directions().iter().map(|&direction| job.block_size.of(direction).max_bytes()).max();
    longest.unwrap_or(0).max(logged)
}

/// Returns whether a job changes data.
pub(super) fn writes(job: &Job) -> bool {
    match &job.replay {
        Some(log) => {
            log.ios.iter().any(|io| log.replays(io) && matches!(io.direction, Some(Direction::Write | Direction::Trim)))
        }
        None => job.mode.directions().iter().any(|&direction| direction != Direction::Read),
    }
}

fn open_flags(job: &Job) -> OFlags {
    match job.open_sync {
        OpenSync::None => OFlags::empty(),
        OpenSync::Sync => OFlags::SYNC,
        OpenSync::Dsync => OFlags::DSYNC,
    }
}

/// The crew, and the inboxes of the jobs. The crew sends its orders to these inboxes.
struct Hands<'a> {
    crew: Mutex<Crew<'a>>,
    inboxes: &'a [Inbox],
}

impl Hands<'_> {
    /// Calls `ask` with the crew, and sends the crew's orders to the jobs.
    fn carry_out<T>(&self, ask: impl FnOnce(&mut Crew<'_>) -> T) -> T {
        // The lock is held until all orders are sent. The jobs therefore receive the orders in the
        // order of the crew.
        let mut crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(&mut crew);
        while let Some((place, order)) = crew.take_order() {
            message::post(
                &self.inboxes[place],
                match order {
                    Order::Start { at_ns } => Message::Start { at_ns },
                    Order::Stop => Message::Stop,
                    Order::Skip => Message::Skip,
                },
            );
        }
        answer
    }
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not started. The value is the start time in ns, if it is known.
    Called(Option<u64>),
    Running,
    Asleep(u64),
    /// Waiting for completions.
    Waiting,
    /// Waiting for this number of files to be synced.
    Syncing(usize),
    Ended,
}

/// A job at work.
struct JobPart<'a> {
    process: Process<'a>,
    /// Index among the jobs that run.
    place: usize,
    crew: &'a Hands<'a>,
    shared: &'a Shared<'a>,
    /// For each region of the job: the index of its file in the port, and the start of the region
    /// in the workload's addresses, bytes.
    files: Vec<(usize, u64)>,
    state: State,
    /// Files that were written since their last sync.
    unsynced: Vec<usize>,
    /// Whether each file is in `unsynced`.
    is_unsynced: Vec<bool>,
    /// Slots that are being submitted.
    batch: Vec<u32>,
}

impl JobPart<'_> {
    fn begin(&mut self, port: &mut Port<'_>, now_ns: u64) {
        if !self.crew.carry_out(|crew| crew.starts(self.place)) {
            self.state = State::Ended;
            return;
        }
        let counted_ns = self.process.begin(now_ns).max(self.shared.counted_from_ns);
        self.process.count_from(self.shared.counted_from_ns);
        if self.process.counted_ns() > 0 || self.shared.counted_from_ns > 0 {
            port.recorder.counted_from_ns = counted_ns;
        }
        self.state = State::Running;
    }

    /// Submits the queued I/Os of the job. Returns the time at which the submission ended, ns.
    fn submit(&mut self, port: &mut Port<'_>, now_ns: u64) -> u64 {
        let job = self.process.job;
        self.process.submitting(now_ns);
        while let Some((number, slot)) = self.process.next_queued() {
            let region = slot.io.file as usize;
            let (file, start) = self.files[region];
            let op = match slot.io.direction {
                Direction::Read => IoOp::Read,
                Direction::Write => IoOp::Write { stable: slot.io.barrier || job.open_sync != OpenSync::None },
                Direction::Trim => IoOp::Discard,
            };
            if op != IoOp::Read && !std::mem::replace(&mut self.is_unsynced[file], true) {
                self.unsynced.push(file);
            }
            let io = Io {
                op,
                file,
                offset: slot.io.start - start,
                bytes: slot.io.bytes,
                buffered: !job.direct,
                ioprio: slot.io.priority.map_or(0, iosched_trace::ioprio_for_kernel),
                task: 0,
                tag: number.into(),
            };
            self.process.taken(number, now_ns);
            port.submit(&io, now_ns);
            self.batch.push(number);
        }
        if port.hand_over() {
            let taken_ns = self.shared.now_ns();
            self.batch.drain(..).for_each(|number| self.process.taken(number, taken_ns));
            return taken_ns;
        }
        self.batch.clear();
        now_ns
    }

    /// Submits syncs of the files that were written.
    fn flush(&mut self, port: &mut Port<'_>, now_ns: u64) {
        let op = IoOp::Sync { data_only: self.process.sync_kind() == SyncKind::Fdatasync };
        if self.unsynced.is_empty() {
            self.unsynced.push(0);
        }
        for &file in &self.unsynced {
            port.submit(&Io { op, file, offset: 0, bytes: 0, buffered: false, ioprio: 0, task: 0, tag: FLUSH }, now_ns);
        }
        self.state = State::Syncing(self.unsynced.len());
        self.unsynced.drain(..).for_each(|file| self.is_unsynced[file] = false);
    }

    fn end(&mut self, now_ns: u64) {
        self.state = State::Ended;
        self.process.end(now_ns);
        self.crew.carry_out(|crew| crew.ended(self.place, now_ns));
    }
}

impl Part for JobPart<'_> {
    fn receive(&mut self, message: Message, now_ns: u64) {
        match (message, self.state) {
            (Message::Start { at_ns }, State::Called(None)) => self.state = State::Called(Some(at_ns)),
            (Message::Skip, State::Called(_)) => {
                self.process.end(now_ns);
                self.state = State::Ended;
            }
            (Message::Stop, _) => {
                self.stop(now_ns);
            }
            _ => {}
        }
    }

    fn go(&mut self, port: &mut Port<'_>, now_ns: u64) -> Next {
        let mut now_ns = now_ns;
        loop {
            match self.state {
                State::Called(None) | State::Waiting | State::Syncing(_) => return Next::Wait { until_ns: u64::MAX },
                State::Called(Some(at_ns)) | State::Asleep(at_ns) if at_ns > now_ns => {
                    return Next::Wait { until_ns: at_ns };
                }
                State::Called(Some(_)) => self.begin(port, now_ns),
                State::Asleep(due_ns) => {
                    port.recorder.was_due(due_ns, now_ns);
                    self.process.wake(now_ns);
                    self.state = State::Running;
                }
                State::Ended => return Next::Done,
                State::Running => match self.process.step(now_ns) {
                    Action::Submit => now_ns = self.submit(port, now_ns),
                    Action::Flush => self.flush(port, now_ns),
                    Action::Sleep(at_ns) => self.state = State::Asleep(at_ns),
                    Action::Wait => self.state = State::Waiting,
                    Action::End => self.end(now_ns),
                },
            }
        }
    }

    fn completed(&mut self, tag: u64, now_ns: u64) {
        if tag == FLUSH {
            match self.state {
                State::Syncing(2..) => {}
                _ => {
                    self.process.flush_done(now_ns);
                    self.state = State::Running;
                    return;
                }
            }
            if let State::Syncing(left) = &mut self.state {
                *left -= 1;
            }
        } else if self.process.io_done(tag as u32) && self.state == State::Waiting {
            self.process.wake(now_ns);
            self.state = State::Running;
        }
    }

    fn stop(&mut self, now_ns: u64) -> bool {
        match self.state {
            State::Called(_) => {
                self.process.end(now_ns);
                self.state = State::Ended;
                return true;
            }
            State::Ended => return false,
            State::Waiting | State::Asleep(_) => {
                self.process.wake(now_ns);
                self.state = State::Running;
            }
            State::Running | State::Syncing(_) => {}
        }
        self.process.stop();
        true
    }
}
