//! Properties of the process that sends a request, as `/proc` shows them.

use iosched::{IoClass, IoPriority};
use iosched_trace::ioprio_of_kernel;

/// Flag in `/proc/<tid>/stat` of a worker of io_uring.
const PF_IO_WORKER: u64 = 0x10;
/// Flag in `/proc/<tid>/stat` of a thread of the kernel.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Prefixes of the names of io_uring's workers. The prefix is followed by the number of the thread
/// for which the worker works.
const IO_WORKER_NAMES: [&str; 2] = ["iou-wrk-", "iou-sqp-"];

/// A thread that sends requests. In Linux, each thread has its own I/O context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Process {
    /// Name of the thread.
    pub(super) name: String,
    /// Start time in clock ticks. The start time and the thread's number together are unique.
    pub(super) began: u64,
    /// Nice value of the thread.
    pub(super) nice: i64,
    /// Whether the thread belongs to the kernel, for example the thread of a loop device.
    pub(super) is_kernel: bool,
    /// Whether the thread is a worker of io_uring.
    is_io_worker: bool,
}

impl Process {
    /// Returns the thread `tid`, if it exists.
    pub(super) fn find(tid: u32) -> Option<Self> {
        Self::parse(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{tid}/stat")).ok()?))
    }

    /// Parses a line of `/proc/<tid>/stat` (proc(5)).
    fn parse(stat: &str) -> Option<Self> {
        // A name can contain any character, including parentheses.
        let (head, fields) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        // The first of these fields has the number 3 in the manual.
        let field = |number: usize| fields.get(number - 3);
        let flags: u64 = field(9)?.parse().ok()?;
        Some(Self {
            name: crate::sys::printable(name),
            began: field(22)?.parse().ok()?,
            nice: field(19)?.parse().ok()?,
            is_kernel: flags & PF_KTHREAD != 0,
            is_io_worker: flags & PF_IO_WORKER != 0,
        })
    }

    /// Returns the thread for which this worker of io_uring works. Both share an I/O context.
    /// Returns `None` if this thread is not such a worker.
    pub(super) fn works_for(&self, tid: u32) -> Option<u32> {
        if !self.is_io_worker {
            return None;
        }
        let owner = IO_WORKER_NAMES.iter().find_map(|name| self.name.strip_prefix(name))?.parse().ok()?;
        // A process can give itself any name, but not another thread group. A worker never works
        // for another worker.
        let is_theirs = !Self::find(owner)?.is_io_worker && thread_group(owner)? == thread_group(tid)?;
        is_theirs.then_some(owner)
    }

    /// Returns the priority of the thread. `stored` is the value in the kernel. If nobody has set
    /// this value, the priority depends on the nice value.
    pub(super) fn ioprio(&self, stored: i32) -> IoPriority {
        let ioprio = ioprio_of_kernel(stored.cast_unsigned());
        if ioprio.class() != IoClass::None {
            return ioprio;
        }
        let level = u8::try_from((self.nice + 20) / 5).ok();
        level.and_then(|level| IoPriority::checked(IoClass::None, level)).unwrap_or_default()
    }
}

fn thread_group(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_is_parsed_whatever_the_name_contains() {
        let line = |name: &str, flags: u64| {
            format!("42 ({name}) S 1 2 3 4 5 {flags} 7 8 9 10 11 12 13 14 20 -5 1 21 9876 23 24\n")
        };
        let plain = Process::parse(&line("a b) (c", 0)).unwrap();
        assert_eq!((plain.name.as_str(), plain.began, plain.nice), ("a b) (c", 9876, -5));
        assert!(!plain.is_kernel && !plain.is_io_worker);
        assert!(Process::parse(&line("kworker/0:1", 0x0420_8060)).unwrap().is_kernel);
        assert!(Process::parse(&line("iou-wrk-41", 0x10)).unwrap().is_io_worker);
        for garbage in ["", "42", "42 (x", "42 (x) S 1", "42 (x) S 1 2 3 4 5 x 7 8 9 10 11 12 13 14 20 -5 1 21 9876"] {
            assert_eq!(Process::parse(garbage), None);
        }
    }

    #[test]
    fn process_of_the_test_is_found_with_its_ioprio() {
        let pid = std::process::id();
        let process = Process::find(pid).unwrap();
        assert!(!process.is_kernel);
        assert_eq!(process.works_for(pid), None);
        assert!(iosched_system::call::ioprio_of(pid).is_some());
        assert_eq!(Process::find(u32::MAX / 2), None);
        assert_eq!(iosched_system::call::ioprio_of(i32::MAX as u32), None);
    }

    #[test]
    fn unset_ioprio_follows_from_the_nice_value() {
        let process = |nice| Process { name: String::new(), began: 0, nice, is_kernel: false, is_io_worker: false };
        for (nice, level) in [(-20, 0), (0, 4), (19, 7)] {
            assert_eq!(process(nice).ioprio(0), IoPriority::new(IoClass::None, level));
            assert_eq!(process(nice).ioprio(2 << 13 | 6), IoPriority::new(IoClass::BestEffort, 6));
        }
        // The idle class has no levels, whatever the nice value is.
        assert_eq!(process(19).ioprio(3 << 13 | 7), "idle".parse().unwrap());
    }
}
