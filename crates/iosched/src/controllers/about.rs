//! What each policy beside the elevator is for, as users are told.

/// What a policy is for and what is set of it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The first version of Linux with it.
    pub since: &'static str,
    /// For whom it is.
    pub when: &'static str,
    /// How it decides, a line each.
    pub how: &'static [&'static str],
    /// When it harms, a line each.
    pub harms: &'static [&'static str],
    /// What is written to set it.
    pub files: &'static [File],
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOf {
    /// A device's queue: an attribute.
    Queue,
    /// A cgroup.
    Cgroup,
    /// The root cgroup, for each device.
    Root,
}

/// A file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Whose it is.
    pub of: FileOf,
    /// What it takes.
    pub takes: &'static str,
    /// A value as it stands in a setting.
    pub example: &'static str,
}

const POLICIES: &[About] = &[
    About {
        name: "io.max",
        about: "upper limits in bytes and bios per second",
        since: "4.5",
        when: "Tenants who have bought a rate, and work that nobody waits for.",
        how: &[
            "Allowances are granted in slices of a tenth of a second, whole and in advance.",
            "A bio beyond them is held in its group, then in each group above; its process goes on.",
            "What has passed all groups is sent on by a worker.",
        ],
        harms: &[
            "It limits also when nobody else wants the disk.",
            "rbps alone does nothing about many small reads, riops alone nothing about large ones.",
        ],
        files: &[File {
            name: "io.max",
            of: FileOf::Cgroup,
            takes: "any of rbps=N, wbps=N, riops=N and wiops=N, N from 2 or max",
            example: "backup:wbps=50000000/wiops=100",
        }],
    },
    About {
        name: "io.prio",
        about: "the ioprio of a group's requests, instead of the one that its processes set",
        since: "5.14",
        when: "A group that mq-deadline should serve before others, or behind them.",
        how: &[
            "promote-to-rt: what is not of the real-time class gets its level 4.",
            "restrict-to-be: real time, and what was never set, becomes best effort.",
            "idle: everything is of the idle class.",
        ],
        harms: &[
            "Under other elevators than mq-deadline it does nothing: bfq goes by what processes set.",
            "It counts for the group's own processes, not for groups below.",
        ],
        files: &[File {
            name: "io.prio.class",
            of: FileOf::Cgroup,
            takes: "no-change, promote-to-rt, restrict-to-be or idle",
            example: "backup:idle",
        }],
    },
    About {
        name: "io.cost",
        about: "shares of the device by weight, in units of what each bio costs it",
        since: "5.4",
        when: "Containers and services that should share and not be capped: what one does not use others get.",
        how: &[
            "A bio costs a part for its size and one for being sequential or not, by io.cost.model.",
            "Virtual time runs at a rate (vrate); bios go as far as their group's share of it pays.",
            "A group that does little lends its share until it wants it back.",
            "Each period vrate goes down if requests miss the latencies of io.cost.qos or wait for tags,",
            "and up if somebody is short and nothing is missed.",
        ],
        harms: &[
            "Without latencies in io.cost.qos vrate rises until nobody is throttled and weights mean nothing.",
            "Writing io.cost.model or io.cost.qos stops all submitters until everything under way is complete.",
        ],
        files: &[
            File {
                name: "io.weight",
                of: FileOf::Cgroup,
                takes: "default N or N, from 1 to 10000",
                example: "db:800+backup:100",
            },
            File {
                name: "io.cost.qos",
                of: FileOf::Root,
                takes: "any of enable=0|1, ctrl=auto|user, rpct=, rlat=, wpct=, wlat=, min= and max=",
                example: "enable=1/rpct=95/rlat=5000",
            },
            File {
                name: "io.cost.model",
                of: FileOf::Root,
                takes: "any of ctrl=auto|user, model=linear, rbps=, rseqiops=, rrandiops=, wbps=, wseqiops= and wrandiops=",
                example: "rbps=500000000/rrandiops=80000",
            },
        ],
    },
    About {
        name: "io.latency",
        about: "latency targets: a group that misses its target limits the others",
        since: "4.19",
        when: "One group that matters among several that do not.",
        how: &[
            "A group with a target looks at its own bios in windows of 16 targets, 100 ms to 1 s.",
            "A bad window halves what each sibling with a laxer target, or none, may have under way;",
            "good ones give it back step by step.",
            "Who is down to one bio and still does harm has its processes rest.",
        ],
        harms: &[
            "A target that the device cannot keep cuts everybody else to one bio at a time for good.",
            "The group with the strictest target is never cut.",
        ],
        files: &[File {
            name: "io.latency",
            of: FileOf::Cgroup,
            takes: "target=N, in us, or target=max",
            example: "db:target=5000",
        }],
    },
    About {
        name: "wbt",
        about: "writeback throttling: limits buffered writes so that reads stay fast",
        since: "4.10",
        when: "Every disk with buffered writers beside readers; Linux switches it on but under bfq.",
        how: &[
            "In windows of 100 ms the fastest read is held against the target.",
            "If it took longer fewer writes of the page cache are let under way, otherwise more.",
            "Reads and direct writes pass; writes that somebody waits for (fsync) have a larger limit.",
        ],
        harms: &[
            "It does nothing about direct writers: databases beside each other.",
            "On a device with a queue of 2 to 21 commands the first step up lowers the number of writes.",
        ],
        files: &[File {
            name: "wbt_lat_usec",
            of: FileOf::Queue,
            takes: "what reads may take, us; 0: off",
            example: "75000",
        }],
    },
    About {
        name: "io.bfq",
        about: "the weights of groups under bfq",
        since: "5.0",
        when: "Groups that should share a disk that bfq serves.",
        how: &["bfq serves groups in turn, each as many sectors as its weight among those that want any."],
        harms: &["Under another elevator it does nothing; io.weight is io.cost's, not bfq's."],
        files: &[File {
            name: "io.bfq.weight",
            of: FileOf::Cgroup,
            takes: "N, from 1 to 1000",
            example: "db:800+backup:100",
        }],
    },
];

/// All policies, in the order in which a bio meets them.
#[must_use]
pub fn policies() -> &'static [About] {
    POLICIES
}

/// The files that settings may name beside the attributes of a queue.
pub(super) fn cgroup_files() -> impl Iterator<Item = &'static File> {
    POLICIES.iter().flat_map(|about| about.files).filter(|file| file.of != FileOf::Queue)
}
