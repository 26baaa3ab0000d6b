//! Shares of a disk when two sides compete without pauses.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_lab::{Control, pool};
use iosched_sim::{Limit, Plan, RunResult};
use iosched_workload::{TaskSet, Workload};
use serde::Serialize;

use crate::request::{JudgeError, JudgeRequest, simulate};

/// Devices on which shares are measured.
pub const DEVICES: [&str; 2] = ["sata-7200", "nvme"];

/// First line of every task file. It sets an end, which the limit of a run can only make earlier.
const END: &str = "end_ns = 10_000_000_000\n";

/// Two sides that compete for a disk.
#[derive(Clone, Copy, Debug)]
pub struct Rivalry {
    /// Description of the first side and of its rival.
    pub about: &'static str,
    /// The tasks. The tasks of the first side have the name `first`.
    text: &'static str,
}

/// All rivalries, in the order of the report card.
pub const RIVALRIES: [Rivalry; 6] = [
    Rivalry {
        about: "two equal random readers",
        text: "[[tasks]]\npid = 1\nname = \"first\"\npattern = \"random\"\niodepth = 4\nrange = [0, 50_000_000]\n\
               [[tasks]]\npid = 2\npattern = \"random\"\niodepth = 4\nrange = [50_000_000, 100_000_000]\n",
    },
    Rivalry {
        about: "a reader with 1 request in flight, next to a reader with 32",
        text: "[[tasks]]\npid = 1\nname = \"first\"\npattern = \"random\"\nrange = [0, 50_000_000]\n\
               [[tasks]]\npid = 2\npattern = \"random\"\niodepth = 32\nrange = [50_000_000, 100_000_000]\n",
    },
    Rivalry {
        about: "a random reader, next to a random writer that does not wait for its writes",
        text: "[[tasks]]\npid = 1\nname = \"first\"\npattern = \"random\"\niodepth = 4\nrange = [0, 50_000_000]\n\
               [[tasks]]\npid = 2\nop = \"write\"\nsync = false\npattern = \"random\"\niodepth = 32\n\
               range = [50_000_000, 100_000_000]\n",
    },
    Rivalry {
        about: "a reader of level 0, next to a reader of level 7",
        text: "[[tasks]]\npid = 1\nname = \"first\"\nclass = \"be\"\nlevel = 0\npattern = \"random\"\n\
               iodepth = 4\nrange = [0, 50_000_000]\n\
               [[tasks]]\npid = 2\nclass = \"be\"\nlevel = 7\npattern = \"random\"\niodepth = 4\n\
               range = [50_000_000, 100_000_000]\n",
    },
    Rivalry {
        about: "a reader of the class best effort, next to a reader of the class idle",
        text: "[[tasks]]\npid = 1\nname = \"first\"\nclass = \"be\"\npattern = \"random\"\niodepth = 4\n\
               range = [0, 50_000_000]\n\
               [[tasks]]\npid = 2\nclass = \"idle\"\npattern = \"random\"\niodepth = 4\n\
               range = [50_000_000, 100_000_000]\n",
    },
    Rivalry {
        about: "a cgroup of weight 800, next to a cgroup of weight 100",
        text: "[[cgroups]]\nname = \"heavy\"\nweight = 800\n[[cgroups]]\nname = \"light\"\nweight = 100\n\
               [[tasks]]\npid = 1\nname = \"first\"\ncgroup = \"heavy\"\npattern = \"random\"\niodepth = 4\n\
               range = [0, 50_000_000]\n\
               [[tasks]]\npid = 2\ncgroup = \"light\"\npattern = \"random\"\niodepth = 4\n\
               range = [50_000_000, 100_000_000]\n",
    },
];

/// The share of the first side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Description of the first side and of its rival.
    pub rivalry: &'static str,
    /// Name of the device's profile.
    pub device: &'static str,
    /// Share of the first side in all bytes, 0 to 1.
    pub first: f64,
}

/// A run that measures a share.
struct Case {
    rivalry: &'static str,
    device: &'static str,
    workload: Workload,
    profile: Profile,
}

/// Measures all shares under a scheduler. Returns `None` if `control` was interrupted.
pub(crate) fn measure(
    request: &JudgeRequest,
    scheduler: &str,
    control: &Control,
) -> Result<Option<Vec<Share>>, JudgeError> {
    let setting = Setting::parse(scheduler, &request.registry)?;
    let mut cases = Vec::new();
    for rivalry in &RIVALRIES {
        for device in DEVICES {
            let workload = Workload::Tasks(Box::new(TaskSet::parse(rivalry.about, &format!("{END}{}", rivalry.text))?));
            cases.push(Case { rivalry: rivalry.about, device, workload, profile: Profile::named(device)? });
        }
    }
    let mut shares = Vec::new();
    let measured = |case: &Case| {
        let limit = Limit { time_ns: Some(request.run_ns(&case.profile)), ios: None };
        let plan = Plan { seed: request.seed, limit, ..Plan::new(&case.workload, &case.profile, setting.clone()) };
        let result = simulate(&plan, control)?;
        Ok(result.map(|result| Share { rivalry: case.rivalry, device: case.device, first: share_of_first(&result) }))
    };
    let all = pool::in_order(control, &cases, measured, |event| {
        if let pool::Event::Taken(share) = event {
            shares.push(share);
        }
        Ok(())
    })?;
    Ok(all.then_some(shares))
}

fn share_of_first(result: &RunResult) -> f64 {
    let bytes = |is_first: bool| -> u64 {
        let side = result.tasks.iter().filter(|task| (task.name == "first") == is_first);
        side.map(|task| task.bytes_read + task.bytes_written).sum()
    };
    let (first, second) = (bytes(true) as f64, bytes(false) as f64);
    first / (first + second).max(1.0)
}
