//! Messages about cgroups that a setting names but the workload does not have.

use iosched_workload::Workload;

use crate::nearest::did_you_mean;

/// Returns an error for `file` of `cgroup`. `known` are the cgroups of the workload.
pub(crate) fn unknown_cgroup(file: &str, cgroup: &str, known: &[String], workload: &Workload) -> String {
    if !known.is_empty() {
        let meant = did_you_mean(cgroup, known.iter().map(String::as_str));
        return format!("{file}: the workload has no cgroup {cgroup:?}; available: {}{meant}", known.join(", "));
    }
    let remedy = match workload {
        Workload::Trace(_) => {
            format!("; to put processes of the trace into this cgroup, add --cgroup {cgroup}=PROCESS")
        }
        Workload::Jobs(_) => format!("; to put a job into this cgroup, add cgroup={cgroup} to the job"),
        Workload::Tasks(_) => {
            format!(
                "; to put a task into this cgroup, add cgroup = {cgroup:?} to the task, and declare \
                 the cgroup with [[cgroups]]"
            )
        }
        Workload::Application(_) => {
            "; applications never have cgroups: use a trace, a fio job file or a task file".to_owned()
        }
        Workload::Several(_) => "; a workload of several units has only the cgroups of its units".to_owned(),
    };
    format!("{file}: there is no cgroup {cgroup:?}, because the workload has no cgroups{remedy}")
}
