//! The io_uring of a disk's thread.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::time::Duration;
use std::{fmt, fs, io};

use io_uring::{IoUring, cqueue, opcode, squeue, types};

/// Entries of the submission queue; more are submitted in several goes.
const ENTRIES: u32 = 256;

/// Memory that the kernel may count as locked for rings, with room to spare.
const MEMLOCK_BYTES: u64 = 1 << 20;

/// How long the kernel may take to end what was submitted.
const CANCELLING_MAX: Duration = Duration::from_secs(1);

/// Who submitted an entry, and is told of its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Source {
    Backend,
    Wake,
    Accept,
    Receive,
    Send,
    Other,
}

impl Source {
    const ALL: [Self; 6] = [Self::Backend, Self::Wake, Self::Accept, Self::Receive, Self::Send, Self::Other];
}

/// A completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub(crate) source: Source,
    pub(crate) id: u32,
    /// As a system call has it: negative is an errno.
    pub(crate) result: i32,
}

/// Why the system has no io_uring for us, and what would be right.
#[derive(Debug)]
pub struct RingError {
    error: io::Error,
    advice: String,
}

impl From<io::Error> for RingError {
    /// Finds out why.
    fn from(error: io::Error) -> Self {
        let advice = match error.raw_os_error() {
            Some(libc::ENOSYS) => {
                "Linux 5.11 or later has it; in a container, its seccomp filter may hide it".to_owned()
            }
            Some(libc::EPERM | libc::EACCES) => forbidden(),
            Some(libc::ENOMEM) => out_of_memory(),
            Some(libc::EINVAL) => "Linux 5.11 or later is needed".to_owned(),
            _ => String::new(),
        };
        Self { error, advice }
    }
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.advice.is_empty() { "" } else { "; " };
        write!(f, "io_uring: {}{between}{}", self.error, self.advice)
    }
}

impl std::error::Error for RingError {}

fn forbidden() -> String {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match disabled.trim() {
        "2" => "kernel.io_uring_disabled is 2, so that nobody may use it: set it to 0 with sysctl".to_owned(),
        "1" => "kernel.io_uring_disabled is 1, so that only root and the group kernel.io_uring_group may use it: \
                set it to 0 with sysctl, or join that group"
            .to_owned(),
        _ => "something forbids it, most likely the seccomp filter of a container or a service: let it have the calls \
              io_uring_setup, io_uring_enter and io_uring_register"
            .to_owned(),
    }
}

fn out_of_memory() -> String {
    // SAFETY: all zeroes is a value of the type.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: it fills the value it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    if !known || limit.rlim_cur == libc::RLIM_INFINITY || limit.rlim_cur >= MEMLOCK_BYTES {
        return "the machine, or the cgroup that this is in, is out of memory".to_owned();
    }
    let (now, needed) = (limit.rlim_cur / 1024, MEMLOCK_BYTES / 1024);
    format!(
        "memory that may be locked (RLIMIT_MEMLOCK) is limited to {now} KiB, and up to {needed} KiB are needed: raise it with \
         ulimit -l {needed}, in /etc/security/limits.conf, or by LimitMEMLOCK={needed}K of a service"
    )
}

/// The ring.
pub(crate) struct Ring {
    ring: IoUring,
    /// What a bell's counter is read into.
    rung: Box<u64>,
}

impl Ring {
    /// Whether there can be one.
    pub(crate) fn check() -> Result<(), RingError> {
        Self::new().map(drop)
    }

    /// A ring for the calling thread alone.
    pub(crate) fn new() -> Result<Self, RingError> {
        // What the kernel has to do for completions it does when this thread waits for them; older kernels cannot.
        let quick = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .setup_cqsize(ENTRIES * 16)
            .build(ENTRIES);
        let ring = quick.or_else(|_| IoUring::builder().setup_cqsize(ENTRIES * 16).build(ENTRIES))?;
        Ok(Self { ring, rung: Box::new(0) })
    }

    /// Who submits through it next.
    pub(crate) fn submissions(&mut self, source: Source) -> Submissions<'_> {
        Submissions { ring: self, source }
    }

    /// Submits that the thread is woken, with a completion of [`Source::Wake`], when the eventfd `bell` is written to.
    pub(crate) fn listen_to(&mut self, bell: RawFd) {
        let read = opcode::Read::new(types::Fd(bell), (&raw mut *self.rung).cast(), size_of::<u64>() as u32);
        self.submissions(Source::Wake).push(read.build(), 0);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: whoever submits keeps what the entry points to until its completion: buffers belong to the live disk or to a
        // connection, and neither lets go of them before.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full: the kernel takes what is in it. Whatever it says, it is asked again.
            let _ = self.ring.submit();
        }
    }

    /// Submits what was pushed, and waits for a completion, at most as long as `timeout` if there is one.
    pub(crate) fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let waited = match timeout {
            None => submitter.submit_and_wait(1),
            Some(timeout) => {
                let timespec = types::Timespec::from(timeout);
                submitter.submit_with_args(1, &types::SubmitArgs::new().timespec(&timespec))
            }
        };
        match waited {
            Err(error)
                if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Ends everything that was submitted. Whether the kernel is done with all of it, so that what entries point to may go.
    pub(crate) fn cancel_all(&mut self) -> bool {
        let timeout = types::Timespec::from(CANCELLING_MAX);
        let cancelled = self.ring.submitter().register_sync_cancel(Some(timeout), types::CancelBuilder::any());
        // That there is nothing is as well.
        let done = cancelled.is_ok() || cancelled.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if !done {
            // The kernel may still write there.
            std::mem::forget(std::mem::take(&mut self.rung));
        }
        done
    }

    /// Whether there are completions to be taken.
    pub(crate) fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Takes every completion there is.
    pub(crate) fn completions(&mut self, into: &mut Vec<Completed>) {
        into.extend(self.ring.completion().map(|entry: cqueue::Entry| {
            let source = Source::ALL.get((entry.user_data() >> 32) as usize).copied().unwrap_or(Source::Other);
            Completed { source, id: entry.user_data() as u32, result: entry.result() }
        }));
    }
}

/// A way to submit for one source.
pub(crate) struct Submissions<'a> {
    ring: &'a mut Ring,
    source: Source,
}

impl Submissions<'_> {
    /// Submits `entry`; its completion comes with `id`. What it points to has to stay until then.
    pub(crate) fn push(&mut self, entry: squeue::Entry, id: u32) {
        self.ring.push(&entry.user_data((self.source as u64) << 32 | u64::from(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_that_there_is_no_io_uring_is_told_apart() {
        let told = |errno| RingError::from(io::Error::from_raw_os_error(errno)).to_string();
        assert!(told(libc::ENOSYS).contains("Linux 5.11") && told(libc::ENOSYS).contains("seccomp"));
        // What this machine allows decides which of them it says.
        let forbidden = told(libc::EPERM);
        assert!(forbidden.contains("io_uring_disabled") || forbidden.contains("seccomp"), "{forbidden}");
        let memory = told(libc::ENOMEM);
        assert!(memory.contains("RLIMIT_MEMLOCK") || memory.contains("out of memory"), "{memory}");
        for errno in [libc::ENOSYS, libc::EPERM, libc::ENOMEM, libc::EMFILE] {
            assert!(told(errno).starts_with("io_uring: "));
            assert_eq!(told(errno).contains("5.11"), errno == libc::ENOSYS);
        }
    }
}
