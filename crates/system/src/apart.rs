//! Work in a separate process. The process shares memory, open files and the working directory with
//! the caller's process.
//!
//! The kernel accounts some resources by process, such as the I/O of cgroups of version 2. A
//! separate process gets a separate account. All threads of the caller's process still share their
//! data with the separate process.

use std::ffi::c_void;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::thread;

use rustix::process::getpid;

/// Size of the process's stack, bytes: the same as a thread's. Unused pages take no memory.
const STACK_BYTES: usize = 8 << 20;
/// Size of the guard area below the stack, bytes. A stack overflow then ends the process, instead
/// of damaging other memory.
const GUARD_BYTES: usize = 64 << 10;

/// Runs `work` in a separate process, and waits for its end. The calling thread stops meanwhile. To
/// the code in `work`, the process looks like the calling thread, with the local data of this
/// thread. The process receives no signals. If the calling thread ends, the process ends. A panic
/// in `work` continues in the caller.
///
/// # Errors
/// If the process cannot be created, or was killed. In the second case, the earlier effects of
/// `work` remain.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let stack = Stack::new()?;
    let mut job = Job { work: Some(work), result: None, parent: getpid().as_raw_nonzero().get() };
    let quiet = Quiet::begin()?;
    // Signal handlers are not shared, so that a signal to the program does not affect the process.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FS | libc::CLONE_FILES;
    // SAFETY: the entry fits the job, and the stack has the given size and no other user. With
    // CLONE_VFORK, this thread does not run before the process has ended. No other code can
    // therefore use the job, which outlives the process. The same holds for this thread's local
    // storage, which the process reaches through its register. Locks and atomics work between the
    // process and other threads as they work between threads. They need only memory, which both
    // processes share, and futexes, which work on memory.
    let pid = unsafe { libc::clone(entry_of(&job), stack.top(), flags, (&raw mut job).cast()) };
    let began = if pid < 0 { Err(io::Error::last_os_error()) } else { wait(pid) };
    drop(quiet);
    let status = began?;
    match job.result {
        Some(Ok(result)) => Ok(result),
        Some(Err(panic)) => resume_unwind(panic),
        None => Err(io::Error::other(format!("signal {} ended a process of this program", libc::WTERMSIG(status)))),
    }
}

/// Input and output of the process.
struct Job<F, T> {
    work: Option<F>,
    result: Option<thread::Result<T>>,
    parent: i32,
}

type Entry = extern "C" fn(*mut c_void) -> libc::c_int;

fn entry_of<F: FnOnce() -> T, T>(_: &Job<F, T>) -> Entry {
    entry::<F, T>
}

extern "C" fn entry<F: FnOnce() -> T, T>(job: *mut c_void) -> libc::c_int {
    // SAFETY: this is the job of the thread that created this process. The thread is stopped.
    let job = unsafe { &mut *job.cast::<Job<F, T>>() };
    // SAFETY: the calls take numbers only.
    let is_orphan = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid() != job.parent
    };
    if let Some(work) = job.work.take().filter(|_| !is_orphan) {
        job.result = Some(catch_unwind(AssertUnwindSafe(work)));
    }
    0
}

/// Waits until a process ends. Returns its status.
fn wait(pid: libc::pid_t) -> io::Result<libc::c_int> {
    let mut status = 0;
    loop {
        // SAFETY: the status is a number that this function owns.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Memory for the stack of the process, with a guard area.
struct Stack {
    base: *mut c_void,
}

impl Stack {
    fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the call only creates new memory, which has no other owner.
        let base = unsafe { libc::mmap(ptr::null_mut(), GUARD_BYTES + STACK_BYTES, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { base };
        // SAFETY: the range is the beginning of the new memory, which has no other user.
        match unsafe { libc::mprotect(base, GUARD_BYTES, libc::PROT_NONE) } {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the highest address of the stack, because a stack grows down.
    fn top(&self) -> *mut c_void {
        self.base.wrapping_byte_add(GUARD_BYTES + STACK_BYTES)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the stack was mapped with this size, and the process that ran on it has ended.
        unsafe { libc::munmap(self.base, GUARD_BYTES + STACK_BYTES) };
    }
}

/// Blocks all signals of the calling thread until this value is dropped.
struct Quiet {
    before: libc::sigset_t,
}

impl Quiet {
    fn begin() -> io::Result<Self> {
        // SAFETY: sets of signals are numbers, and all zeroes is a valid set.
        let (mut all, mut before) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: this function owns both sets.
        let result = unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before)
        };
        if result == 0 { Ok(Self { before }) } else { Err(io::Error::from_raw_os_error(result)) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: the system returned this set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::{Barrier, Mutex, mpsc};

    use super::*;

    fn pid() -> i32 {
        getpid().as_raw_nonzero().get()
    }

    #[test]
    fn work_runs_in_another_process_with_shared_memory() {
        let mut written = Vec::new();
        let caller = pid();
        let (there, length) = run(|| {
            written.extend(0..100_000);
            (pid(), written.len())
        })
        .unwrap();
        assert_ne!(there, caller);
        assert_eq!((length, written[99_999]), (100_000, 99_999));
    }

    #[test]
    fn thread_local_values_belong_to_the_calling_thread() {
        thread_local! { static COUNT: Cell<u32> = const { Cell::new(0) } }
        COUNT.set(1);
        run(|| COUNT.set(COUNT.get() + 1)).unwrap();
        assert_eq!(COUNT.get(), 2);
        let other = thread::spawn(|| run(|| COUNT.get()).unwrap()).join().unwrap();
        assert_eq!(other, 0);
    }

    #[test]
    fn processes_run_in_parallel_and_share_locks() {
        let (barrier, sum) = (Barrier::new(4), Mutex::new(0_u64));
        let (send, received) = mpsc::channel();
        thread::scope(|scope| {
            for number in 0..4 {
                let (barrier, sum, send) = (&barrier, &sum, send.clone());
                scope.spawn(move || {
                    run(move || {
                        barrier.wait();
                        for _ in 0..10_000 {
                            *sum.lock().unwrap() += 1;
                        }
                        send.send((number, pid())).unwrap();
                    })
                });
            }
        });
        drop(send);
        let mut pids: Vec<_> = received.iter().map(|(_, pid)| pid).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!((pids.len(), *sum.lock().unwrap()), (4, 40_000));
    }

    #[test]
    fn panic_reaches_the_caller_and_kill_is_an_error() {
        let panic = catch_unwind(|| {
            run(|| {
                if pid() > 0 {
                    panic!("as it must")
                }
            })
        })
        .unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as it must"));
        let killed = run(|| {
            let _ = rustix::process::kill_process(getpid(), rustix::process::Signal::KILL);
        });
        assert_eq!(killed.unwrap_err().to_string(), "signal 9 ended a process of this program");
        assert_eq!(run(|| 7).unwrap(), 7);
    }

    #[test]
    fn files_opened_in_the_process_belong_to_the_caller() {
        use std::io::{Read, Seek, Write};
        let mut file = run(tempfile::tempfile).unwrap().unwrap();
        run(|| file.write_all(b"there")).unwrap().unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "there");
    }
}
