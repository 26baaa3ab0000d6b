//! Service that a client got from other servers: the distributed tags of dmClock.

use crate::decision::Phase;
use crate::rates::Work;

/// Service of one client, in total and by its reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// All service: the *delta* of the paper.
    pub served: Work,
    /// Service in the phase of reservations: the *rho* of the paper.
    pub reserved: Work,
}

/// Record of the service that one client got from each of several servers.
///
/// A client can spread its requests over servers. With each request, it then reports the service
/// that the *other* servers completed since its previous request to the same server. The server
/// passes this report to [`RequestQueue::served_elsewhere`](crate::RequestQueue::served_elsewhere).
/// Therefore the reservation, weight and limit of the client apply to all servers together, and
/// servers need not know each other. The report leaves out the server's own service, because its
/// mclock has already charged it.
///
/// ```
/// use iosched::{Phase, Tracker, Work};
///
/// let io = Work::of_request(4096, 65_536);
/// let mut tracker = Tracker::new(2);
/// tracker.answered(0, Phase::Reservation, io);
/// tracker.answered(0, Phase::Weight, io);
/// // Server 1 learns of two requests, one of them by the reservation; server 0 knows them.
/// let carried = tracker.next_request(1);
/// assert_eq!((carried.served.ios, carried.reserved.ios), (2 * Work::IO, Work::IO));
/// assert_eq!(tracker.next_request(0).served.ios, 0);
/// assert_eq!(tracker.next_request(1).served.ios, 0, "carried once");
/// ```
#[derive(Clone, Debug)]
pub struct Tracker {
    total: Progress,
    servers: Vec<Server>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// Service that this server completed.
    completed: Progress,
    /// Service of the other servers that requests to this server have carried.
    carried: Progress,
}

impl Progress {
    fn plus(self, other: Self) -> Self {
        Self { served: self.served.plus(other.served), reserved: self.reserved.plus(other.reserved) }
    }

    fn minus(self, other: Self) -> Self {
        Self { served: self.served.minus(other.served), reserved: self.reserved.minus(other.reserved) }
    }
}

impl Tracker {
    /// Creates a record for servers with the numbers 0 to `servers` - 1.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self { total: Progress::default(), servers: vec![Server::default(); servers] }
    }

    /// Returns the service that the next request to `server` reports.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn next_request(&mut self, server: usize) -> Progress {
        let Server { completed, carried } = &mut self.servers[server];
        let elsewhere = self.total.minus(*completed);
        elsewhere.minus(std::mem::replace(carried, elsewhere))
    }

    /// Reports the answer to a request to `server`: its phase and work, as in the server's
    /// [`MClockEvent::Choice`](crate::MClockEvent::Choice).
    ///
    /// # Panics
    /// If there is no such server.
    pub fn answered(&mut self, server: usize, phase: Phase, work: Work) {
        let reserved = if phase == Phase::Reservation { work } else { Work::default() };
        let progress = Progress { served: work, reserved };
        self.total = self.total.plus(progress);
        let completed = &mut self.servers[server].completed;
        *completed = completed.plus(progress);
    }
}
