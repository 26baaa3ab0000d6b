//! A log of every request of a run: times of submission, dispatch and completion. Use it for short
//! runs that you examine closely. For long runs, use [`Timeline`](crate::Timeline).

use iosched::{Decision, Op};

use crate::observer::{Observer, Submitted, Taken};

/// Times of a request, ns since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Index of the task that submitted the first bio of the request.
    pub task: usize,
    /// Operation of the request.
    pub op: Op,
    /// First sector at dispatch.
    pub sector: u64,
    /// Length in sectors at dispatch.
    pub nr_sectors: u32,
    /// Submission time of the first bio of the request.
    pub submitted_ns: u64,
    /// Dispatch time. `None` if the log does not contain the dispatch.
    pub dispatched_ns: Option<u64>,
    /// Completion time. `None` if the log does not contain the completion.
    pub completed_ns: Option<u64>,
}

/// An interval in which the scheduler idled: the device waited for a request that the scheduler
/// expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Start of the wait, ns since the run's start.
    pub from_ns: u64,
    /// End of the wait, ns: the scheduler dispatched a request, or stopped waiting.
    pub to_ns: u64,
}

/// An observer that keeps every request submitted before a given time.
#[derive(Clone, Debug)]
pub struct ServiceLog {
    until_ns: u64,
    names: Vec<String>,
    requests: Vec<Service>,
    waits: Vec<Wait>,
    waiting_since_ns: Option<u64>,
    /// Index in `requests` of the request that a bio started, by the ordinal of the bio minus one.
    /// `usize::MAX` means that the bio started no logged request.
    by_bio: Vec<usize>,
}

impl ServiceLog {
    /// Creates a log of requests submitted before `until_ns`.
    #[must_use]
    pub fn new(until_ns: u64) -> Self {
        Self {
            until_ns,
            names: Vec::new(),
            requests: Vec::new(),
            waits: Vec::new(),
            waiting_since_ns: None,
            by_bio: Vec::new(),
        }
    }

    /// Returns the tasks' names, by number.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns all requests that were not merged into other requests, in the order of submission.
    pub fn requests(&self) -> impl Iterator<Item = &Service> {
        self.requests.iter().filter(|request| request.nr_sectors > 0)
    }

    /// Returns all waits, in order.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    fn request(&mut self, bio: u64) -> Option<&mut Service> {
        let place = *self.by_bio.get(usize::try_from(bio.checked_sub(1)?).ok()?)?;
        self.requests.get_mut(place)
    }

    fn end_wait(&mut self, now_ns: u64) {
        if let Some(from_ns) = self.waiting_since_ns.take()
            && from_ns < now_ns
        {
            self.waits.push(Wait { from_ns, to_ns: now_ns });
        }
    }
}

impl Observer for ServiceLog {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn task(&mut self, _task: usize, _pid: u32, name: &str) {
        self.names.push(name.to_owned());
    }

    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        let &Submitted { task, op, sector, nr_sectors, taken, bio, .. } = bio;
        if now_ns >= self.until_ns || taken == Taken::Full {
            return;
        }
        let place = if matches!(taken, Taken::Allocated | Taken::Held) && nr_sectors > 0 {
            self.requests.len()
        } else {
            usize::MAX
        };
        let Some(number) = bio.checked_sub(1).and_then(|number| usize::try_from(number).ok()) else { return };
        if self.by_bio.len() <= number {
            self.by_bio.resize(number + 1, usize::MAX);
        }
        self.by_bio[number] = place;
        if place != usize::MAX {
            let request =
                Service { task, op, sector, nr_sectors, submitted_ns: now_ns, dispatched_ns: None, completed_ns: None };
            self.requests.push(request);
        }
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match *decision {
            Decision::Dispatch { cookie, sector, nr_sectors, .. } => {
                self.end_wait(now_ns);
                if let Some(request) = self.request(cookie) {
                    (request.sector, request.nr_sectors) = (sector, nr_sectors);
                    request.dispatched_ns = Some(now_ns);
                }
            }
            Decision::Complete { cookie } => {
                if let Some(request) = self.request(cookie) {
                    request.completed_ns = Some(now_ns);
                }
            }
            Decision::RequestMerge { cookie, .. } => {
                if let Some(request) = self.request(cookie) {
                    // The request is now a part of another request.
                    request.nr_sectors = 0;
                }
            }
            Decision::IdleArm { .. } if now_ns < self.until_ns => {
                self.waiting_since_ns.get_or_insert(now_ns);
            }
            Decision::IdleFire => self.end_wait(now_ns),
            _ => {}
        }
    }

    fn end(&mut self, finished_ns: u64) {
        self.end_wait(finished_ns);
    }
}
