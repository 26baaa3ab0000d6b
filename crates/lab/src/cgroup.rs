//! Messages about cgroups that a setting names but the workload does not have.

use iosched_workload::Workload;

use crate::nearest::did_you_mean;

/// Returns an error for `file` of `cgroup`. `known` are the cgroups of the workload.
pub(crate) fn unknown_cgroup(file: &str, cgroup: &str, known: &[String], workload: &Workload) -> String {
    if !known.is_empty() {
        let meant = did_you_mean(cgroup, known.iter().map(String::as_str));
        return format!("{file}: the workload has no cgroup {cgroup:?}; it has {}{meant}", known.join(", "));
    }
    let remedy = match workload {
        Workload::Trace(_) => format!("; --cgroup {cgroup}=PROCESS puts processes of the trace into this cgroup"),
        Workload::Jobs(_) => format!("; cgroup={cgroup} puts a job of the file into this cgroup"),
        Workload::Tasks(_) => {
            format!("; cgroup = {cgroup:?} puts a task into this cgroup, which [[cgroups]] of the file must declare")
        }
        Workload::Application(_) => {
            "; applications never have cgroups: use a trace, a fio job file or a task file".to_owned()
        }
        Workload::Several(_) => "; the cgroups are those of the units".to_owned(),
    };
    format!("{file}: there is no cgroup {cgroup:?}, because the workload has no cgroups{remedy}")
}
