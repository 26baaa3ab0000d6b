//! Workloads of several units that share a device in one run.

use iosched::IoPriority;

use crate::Workload;
use crate::replay::Replay;

/// Separator between the name of a part and the name of one of its tasks or cgroups.
pub const PART_SEPARATOR: char = '/';

/// Workloads that run at the same time on one device.
///
/// All parts start at time 0. The run ends at its limit, or when one part has no more work. After
/// that, the other parts would no longer compete with this part, so their results would not
/// describe all units together. Random positions of tasks follow from the seed of the run.
#[derive(Clone, Debug, Default)]
pub struct Several {
    /// Name of the whole workload.
    pub name: String,
    /// The parts. Their tasks are numbered one after another in this order.
    pub parts: Vec<Part>,
}

/// The workload of one unit.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name of the part. The cgroup of the part has this name in settings. The name is not empty
    /// and has none of the characters `/`, `:`, `+`, `,` and `=`.
    pub name: String,
    /// Path of the part's cgroup below the root, such as `system.slice/postgresql.service`. The
    /// cgroups above it also exist in the run; their names are their paths. An empty path means the
    /// root: the part has no cgroup.
    pub cgroup: String,
    /// Weight of the part's cgroup; `None`: the default of the scheduler.
    pub weight: Option<u32>,
    /// I/O priority of the tasks that do not set a priority.
    pub priority: Option<IoPriority>,
    /// Replay mode, if the workload is a trace. `None`: the replay mode of the run.
    pub replay: Option<Replay>,
    /// Sector at which the positions of the workload begin. Positions after the end of the device
    /// continue at its start.
    pub first_sector: u64,
    /// The workload. It cannot be an application or have parts itself.
    pub workload: Workload,
}

impl Part {
    /// Creates a part whose cgroup has the same name, without weight and priority.
    #[must_use]
    pub fn new(name: &str, workload: Workload) -> Self {
        Self {
            name: name.to_owned(),
            cgroup: name.to_owned(),
            weight: None,
            priority: None,
            replay: None,
            first_sector: 0,
            workload,
        }
    }
}

impl Several {
    /// Returns the range of the task numbers of each part.
    #[must_use]
    pub fn tasks(&self) -> Vec<std::ops::Range<usize>> {
        let mut first = 0;
        let range = |part: &Part| {
            let from = first;
            first += part.workload.task_count();
            from..first
        };
        self.parts.iter().map(range).collect()
    }

    /// Returns the number of tasks of all parts.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.parts.iter().map(|part| part.workload.task_count()).sum()
    }
}
