//! The io_uring of a disk's thread.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

/// Entries of the submission queue; more are submitted in several goes.
const ENTRIES: u32 = 256;

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

/// The ring.
pub(crate) struct Ring {
    ring: IoUring,
    /// What a bell's counter is read into.
    rung: Box<u64>,
}

impl Ring {
    /// A ring for the calling thread alone.
    pub(crate) fn new() -> io::Result<Self> {
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
