//! Processes as clients: finds the client and the ioprio of each request, and notices when
//! processes end.
//!
//! A thread becomes a client with its first request, because each thread has its own I/O context in
//! Linux. A worker of io_uring counts as the thread for which it works. The kernel's own threads,
//! such as the thread of a loop device, count as one client. The ioprio is read with every request,
//! but passed on only if it has changed. A priority that a user writes to the control tree
//! therefore stays until the next `ionice`. After a thread has ended, its client is disconnected
//! within [`SWEEP_SECONDS`].

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use iosched::IoPriority;

use super::process::Process;
use crate::disk::{ClientId, Identity};
use crate::{Errno, Handle};

/// Interval between checks for ended threads, seconds. The check disconnects their clients.
const SWEEP_SECONDS: u64 = 1;
/// Maximum number of known threads. Further threads share a client.
const THREADS_MAX: usize = 2048;
/// Number that represents all threads of the kernel. It is the process number of `kthreadd`.
const KERNEL: u32 = 2;
/// Number that represents unknown processes: processes of other namespaces, and threads above
/// [`THREADS_MAX`].
const OTHERS: u32 = 0;

/// A thread that has sent a request.
#[derive(Clone, Copy, Debug)]
struct Known {
    client: ClientId,
    /// The ioprio as the kernel encodes it.
    ioprio: Option<i32>,
    /// Start time of the thread. It is `None` for numbers that represent several threads and never
    /// end.
    began: Option<u64>,
    /// Number of the thread that gave the client its name.
    owner: u32,
}

/// Clients of one disk.
pub(super) struct Clients {
    handle: Handle,
    known: Mutex<HashMap<u32, Known>>,
    read_only: bool,
}

impl Clients {
    pub(super) fn new(handle: Handle, read_only: bool) -> Self {
        Self { handle, known: Mutex::default(), read_only }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the client for a request of the thread `tid`.
    pub(super) fn of(&self, tid: u32) -> Result<ClientId, Errno> {
        let ioprio = iosched_system::call::ioprio_of(tid);
        {
            let mut known = self.known();
            if let Some(found) = known.get_mut(&tid) {
                let client = found.client;
                // If the thread has ended, it keeps its last priority.
                if ioprio.is_none() || ioprio == found.ioprio {
                    return Ok(client);
                }
                found.ioprio = ioprio;
            } else {
                drop(known);
                return self.meet(tid, ioprio);
            }
        }
        self.hand_on(tid, ioprio)
    }

    /// Passes the changed ioprio of a known thread to the disk.
    fn hand_on(&self, tid: u32, ioprio: Option<i32>) -> Result<ClientId, Errno> {
        let process = Process::find(tid);
        let Some(found) = self.known().get(&tid).copied() else {
            return self.meet(tid, ioprio);
        };
        if let (Some(process), Some(stored_ioprio)) = (process, ioprio) {
            let ioprio = process.ioprio(stored_ioprio);
            let change = move |disk: &mut crate::LiveDisk, _| disk.set_client_ioprio(found.client, ioprio);
            self.handle.control(change).map_err(|_| Errno::ESHUTDOWN)?;
        }
        Ok(found.client)
    }

    /// Handles the first request of a thread.
    fn meet(&self, tid: u32, ioprio: Option<i32>) -> Result<ClientId, Errno> {
        if tid == OTHERS || self.known().len() >= THREADS_MAX {
            return self.shared(OTHERS, "others");
        }
        let Some(process) = Process::find(tid) else {
            return self.shared(OTHERS, "others");
        };
        let owner = if process.is_kernel { Some(KERNEL) } else { process.works_for(tid) };
        let client = match owner {
            Some(KERNEL) => self.shared(KERNEL, "kernel")?,
            Some(owner) => self.of(owner)?,
            None => self.connect(tid, &process.name, process.ioprio(ioprio.unwrap_or(0)))?,
        };
        let owner = owner.unwrap_or(tid);
        Ok(self.insert(tid, Known { client, ioprio, began: Some(process.began), owner }))
    }

    /// Returns a client that several threads share. This client is never disconnected.
    fn shared(&self, tid: u32, name: &str) -> Result<ClientId, Errno> {
        if let Some(found) = self.known().get(&tid) {
            return Ok(found.client);
        }
        let client = self.connect(tid, name, IoPriority::default())?;
        Ok(self.insert(tid, Known { client, ioprio: None, began: None, owner: tid }))
    }

    fn connect(&self, pid: u32, name: &str, ioprio: IoPriority) -> Result<ClientId, Errno> {
        let identity = Identity { ioprio, read_only: self.read_only, ..Identity::new(name, pid) };
        self.handle.connect(identity).map_err(|_| Errno::ESHUTDOWN)
    }

    /// Adds a thread. If two requests of a thread arrive at the same time, the first entry stays.
    fn insert(&self, tid: u32, new: Known) -> ClientId {
        let present = *self.known().entry(tid).or_insert(new);
        if present.client != new.client && new.owner == tid {
            self.handle.disconnect(new.client);
        }
        present.client
    }

    /// Disconnects the clients of threads that have ended.
    fn sweep(&self) {
        let known: Vec<_> = self.known().iter().map(|(&tid, &known)| (tid, known)).collect();
        // The lock is not held while the system is queried.
        let is_gone = |&(tid, known): &(u32, Known)| {
            known.began.is_some_and(|began| Process::find(tid).is_none_or(|process| process.began != began))
        };
        let gone: Vec<_> = known.into_iter().filter(is_gone).collect();
        let mut left = Vec::new();
        {
            let mut known = self.known();
            for &(tid, was) in &gone {
                if known.get(&tid).is_some_and(|now| now.began == was.began) {
                    known.remove(&tid);
                    if was.owner == tid {
                        known.retain(|_, other| other.client != was.client);
                        left.push(was.client);
                    }
                }
            }
        }
        left.into_iter().for_each(|client| self.handle.disconnect(client));
    }

    /// Disconnects all clients.
    fn leave(&self) {
        let all: Vec<_> = self.known().drain().filter(|(tid, known)| *tid == known.owner).collect();
        all.into_iter().for_each(|(_, known)| self.handle.disconnect(known.client));
    }
}

/// A thread that calls [`Clients::sweep`] until this value is dropped. Dropping it disconnects all
/// clients.
pub(super) struct Sweeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
    clients: Arc<Clients>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    pub(super) fn spawn(clients: Arc<Clients>) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (stopped, swept) = (Arc::clone(&stop), Arc::clone(&clients));
        let thread = std::thread::Builder::new().name("sweeper".to_owned()).spawn(move || {
            let (stop, changed) = &*stopped;
            let mut stop = stop.lock().unwrap_or_else(PoisonError::into_inner);
            while !*stop {
                let pause = Duration::from_secs(SWEEP_SECONDS);
                let (now, waited) = changed.wait_timeout(stop, pause).unwrap_or_else(PoisonError::into_inner);
                stop = now;
                if waited.timed_out() {
                    swept.sweep();
                }
            }
        })?;
        Ok(Self { stop, clients, thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        let (stop, changed) = &*self.stop;
        *stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.clients.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::backend::Spec;
    use crate::reactor::{ServeOptions, Served, start};

    fn served() -> Served {
        let options = ServeOptions::new("disk", Spec::Memory(1 << 20), iosched::Setting::defaults("cfq"));
        start(&ServeOptions { budget_bytes: 1 << 20, ..options }, None).unwrap()
    }

    fn names(handle: &Handle) -> Vec<String> {
        let mut names = handle.control(|disk, _| disk.clients().map(|c| c.identity.name.clone()).collect::<Vec<_>>());
        names.as_mut().unwrap().sort();
        names.unwrap()
    }

    #[test]
    fn process_is_one_client_until_it_exits() {
        let served = served();
        let clients = Clients::new(served.handle.clone(), false);
        let mut child = Command::new("sleep").arg("100").stdin(Stdio::null()).spawn().unwrap();
        let (us, it) = (clients.of(std::process::id()).unwrap(), clients.of(child.id()).unwrap());
        assert_ne!(us, it);
        assert_eq!(clients.of(child.id()), Ok(it));
        clients.sweep();
        assert_eq!(names(&served.handle).len(), 2, "no process has exited");
        assert!(names(&served.handle).contains(&"sleep".to_owned()));
        child.kill().unwrap();
        child.wait().unwrap();
        clients.sweep();
        assert_eq!(names(&served.handle).len(), 1);
        assert_eq!(clients.of(std::process::id()), Ok(us));
        clients.leave();
        assert_eq!(names(&served.handle), [""; 0]);
        served.handle.stop();
        served.wait().flushed.unwrap();
        assert_eq!(clients.of(std::process::id()), Err(Errno::ESHUTDOWN));
    }

    #[test]
    fn written_ioprio_lasts_until_the_process_changes_it() {
        let served = served();
        let handle = &served.handle;
        let clients = Clients::new(handle.clone(), false);
        let mut child = Command::new("sleep").arg("100").stdin(Stdio::null()).spawn().unwrap();
        let client = clients.of(child.id()).unwrap();
        let ioprio = || {
            clients.of(child.id()).unwrap();
            handle.control(move |disk, _| disk.client(client).unwrap().identity.ioprio.to_string()).unwrap()
        };
        let idle = IoPriority::new(iosched::IoClass::Idle, 0);
        handle.control(move |disk, _| disk.set_client_ioprio(client, idle)).unwrap();
        assert_eq!(ioprio(), "idle");
        let ionice = Command::new("ionice").args(["-c2", "-n6", "-p", &child.id().to_string()]).status();
        match ionice {
            Ok(status) if status.success() => assert_eq!(ioprio(), "be/6"),
            _ => println!("skipped: ionice is not installed"),
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(
            clients.of(child.id()),
            Ok(client),
            "requests of a process that has just exited belong to its client"
        );
    }

    #[test]
    fn unknown_processes_share_one_client() {
        let served = served();
        let clients = Clients::new(served.handle.clone(), false);
        let others = clients.of(0).unwrap();
        assert_eq!(clients.of(u32::MAX / 2), Ok(others));
        clients.sweep();
        assert_eq!(names(&served.handle), ["others"]);
    }
}
