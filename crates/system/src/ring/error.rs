//! Reasons why io_uring is not available, with remedies.

use std::{fmt, fs, io};

use rustix::process::{Resource, getrlimit};

/// Memory that the kernel may count as locked for rings, with a margin, bytes.
const MEMLOCK_BYTES: u64 = 1 << 20;

/// The reason why io_uring is not available, and a remedy.
#[derive(Debug)]
pub struct RingError {
    error: io::Error,
    advice: String,
}

impl From<io::Error> for RingError {
    /// Determines the reason.
    fn from(error: io::Error) -> Self {
        let advice = match error.raw_os_error() {
            Some(libc::ENOSYS) => {
                "Linux 5.11 or later has io_uring; in a container, the seccomp filter may hide it".to_owned()
            }
            Some(libc::EPERM | libc::EACCES) => forbidden(),
            Some(libc::ENOMEM) => out_of_memory(),
            Some(libc::EINVAL) => "Linux 5.11 or later is needed".to_owned(),
            _ => String::new(),
        };
        Self { error, advice }
    }
}

impl From<RingError> for io::Error {
    /// Returns the error of the system.
    fn from(error: RingError) -> Self {
        error.error
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
        "2" => "kernel.io_uring_disabled is 2, so no process may use io_uring; set it to 0 with sysctl".to_owned(),
        "1" => "kernel.io_uring_disabled is 1, so only root and the group kernel.io_uring_group may use \
         io_uring; set it to 0 with sysctl, or join that group"
            .to_owned(),
        _ => "io_uring is blocked, most likely by the seccomp filter of a container or a service; let this \
              filter allow the calls io_uring_setup, io_uring_enter and io_uring_register"
            .to_owned(),
    }
}

fn out_of_memory() -> String {
    let limit = getrlimit(Resource::Memlock).current.filter(|&bytes| bytes < MEMLOCK_BYTES);
    let Some(limit) = limit else {
        return "the machine, or the cgroup of this process, is out of memory".to_owned();
    };
    let (now, needed) = (limit / 1024, MEMLOCK_BYTES / 1024);
    format!(
        "locked memory is limited to {now} KiB (RLIMIT_MEMLOCK), but up to {needed} KiB are needed; raise the \
         limit with ulimit -l {needed}, in /etc/security/limits.conf, or with LimitMEMLOCK={needed}K of a service"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_says_why_io_uring_is_unavailable() {
        let message = |errno| RingError::from(io::Error::from_raw_os_error(errno)).to_string();
        assert!(message(libc::ENOSYS).contains("Linux 5.11") && message(libc::ENOSYS).contains("seccomp"));
        // The message names the setting of this machine that forbids io_uring.
        let forbidden = message(libc::EPERM);
        assert!(forbidden.contains("io_uring_disabled") || forbidden.contains("seccomp"), "{forbidden}");
        let memory = message(libc::ENOMEM);
        assert!(memory.contains("RLIMIT_MEMLOCK") || memory.contains("out of memory"), "{memory}");
        for errno in [libc::ENOSYS, libc::EPERM, libc::ENOMEM, libc::EMFILE] {
            assert!(message(errno).starts_with("io_uring: "));
            assert_eq!(message(errno).contains("5.11"), errno == libc::ENOSYS);
        }
    }
}
