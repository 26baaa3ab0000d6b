//! Descriptions of the controllers, for users.

/// Description of a controller: its purpose and its files.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name of the controller.
    pub name: &'static str,
    /// Effect of the controller, in one line.
    pub about: &'static str,
    /// First version of Linux with the controller; empty if no kernel has it.
    pub since: &'static str,
    /// When to use the controller.
    pub when: &'static str,
    /// How the controller decides, one idea per line.
    pub how: &'static [&'static str],
    /// Harmful effects of the controller, one case per line.
    pub harms: &'static [&'static str],
    /// Files that configure the controller.
    pub files: &'static [File],
}

/// Owner of a controller's file: a queue, a cgroup or the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOf {
    /// Queue of a device: the file is an attribute.
    Queue,
    /// Cgroup.
    Cgroup,
    /// Root cgroup, with a value for each device.
    Root,
}

/// File through which a controller is set or read.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Name of the file.
    pub name: &'static str,
    /// Owner of the file.
    pub of: FileOf,
    /// Description of the accepted texts.
    pub takes: &'static str,
    /// Example of a value in a setting.
    pub example: &'static str,
}

const POLICIES: &[About] = &[
    About {
        name: "io.max",
        about: "limits a group to a number of bytes and bios per second",
        since: "4.5",
        when: "Tenants that pay for a rate, and background work.",
        how: &[
            "At the start of each slice of 0.1 s, a group gets its whole allowance for the slice.",
            "A bio beyond the allowance waits in its group, then in each parent group. The process of the bio does \
             not wait.",
            "When the limits of all groups allow a bio, a kernel worker submits this bio.",
        ],
        harms: &[
            "io.max limits a group even if no other group uses the disk.",
            "rbps alone does not limit the number of small reads, and riops alone does not limit the size of reads.",
        ],
        files: &[File {
            name: "io.max",
            of: FileOf::Cgroup,
            takes: "any of rbps=N, wbps=N, riops=N and wiops=N, where N is 2 or more, or max",
            example: "backup:wbps=50000000/wiops=100",
        }],
    },
    About {
        name: "io.prio",
        about: "sets the ioprio class of a group's requests, instead of the class of its processes",
        since: "5.14",
        when: "A group whose requests mq-deadline should serve before or after the requests of other groups.",
        how: &[
            "promote-to-rt: requests of other classes get the real-time class, level 4.",
            "restrict-to-be: requests of the real-time class, or without a class, get the class best effort.",
            "idle: all requests get the idle class.",
        ],
        harms: &[
            "io.prio.class has an effect only under mq-deadline. bfq uses the ioprio of the processes.",
            "io.prio.class applies to the processes of the group, not to groups below this group.",
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
        about: "shares the device by weight; the share counts the cost of each bio, not only its size",
        since: "5.4",
        when: "Containers and services that should share the device without a fixed limit. If a group does not use \
            its share, the other groups get this share.",
        how: &[
            "The cost of a bio depends on the size of the bio, and on whether the bio is sequential (io.cost.model).",
            "Virtual time runs at a rate (vrate). A group can send bios until it has used up its share of virtual \
             time.",
            "A group with little I/O lends its share to others until it needs the share again.",
            "In each period, vrate falls if requests miss the latency targets of io.cost.qos, or if requests wait for \
             tags.",
            "vrate rises if a group needs more I/O and requests meet the latency targets.",
        ],
        harms: &[
            "Without latency targets in io.cost.qos, vrate rises until io.cost throttles no group. Then weights \
             have no effect.",
            "A write to io.cost.model or io.cost.qos stops all I/O until the requests in flight \
             are complete.",
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
        about: "limits other groups if a group misses its latency target",
        since: "4.19",
        when: "One important group that shares a disk with unimportant groups.",
        how: &[
            "For a group with a target, io.latency checks the latency of the bios in windows. A window lasts 16 times \
             the target, but at least 100 ms and at most 1 s.",
            "After a window that misses the target, each sibling with a longer target or no target may have only half \
             as many bios in flight.",
            "After each window that meets the target, the siblings may have a few more bios in flight.",
            "If a sibling may have only one bio in flight and still slows the protected group, the processes of this \
             sibling must pause.",
        ],
        harms: &[
            "If the device can never meet a target, all other groups stay limited to one bio at a time.",
            "io.latency never limits the group with the strictest target.",
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
        about: "writeback throttling: limits buffered writes in flight, so that reads stay fast",
        since: "4.10",
        when: "Every disk on which some processes read and other processes make buffered writes. Linux switches wbt \
               on by default, except under bfq.",
        how: &[
            "wbt measures reads in windows of 100 ms, and compares the fastest read of a window with the target.",
            "If even the fastest read took longer than the target, wbt allows fewer buffered writes in flight. \
             Otherwise wbt allows more buffered writes.",
            "Reads and direct writes have no limit. Writes for which a process waits (fsync) have \
             a higher limit.",
        ],
        harms: &[
            "wbt does not limit direct writes, such as those of databases.",
            "On a device with a queue of 2 to 21 commands, the first step up of wbt allows fewer writes instead of \
             more.",
        ],
        files: &[File {
            name: "wbt_lat_usec",
            of: FileOf::Queue,
            takes: "target latency of reads in us; 0: off",
            example: "75000",
        }],
    },
    About {
        name: "io.bfq",
        about: "shares the disk between groups by weight, under bfq only",
        since: "5.0",
        when: "Groups that should share a disk whose scheduler is bfq.",
        how: &["bfq serves groups in turn. Each active group gets sectors in proportion to its weight."],
        harms: &["io.bfq has no effect under other schedulers. bfq does not use io.weight, which belongs to io.cost."],
        files: &[File {
            name: "io.bfq.weight",
            of: FileOf::Cgroup,
            takes: "N, from 1 to 1000",
            example: "db:800+backup:100",
        }],
    },
    About {
        name: "io.mclock",
        about: "gives a group a reservation, a weight and a limit, under mclock only",
        since: "",
        when: "Groups of a simulation, or clients of a served disk, to which you promised a rate.",
        how: &[
            "mclock first serves the groups whose reservation is due.",
            "mclock divides the other I/O by weight. A group that has reached its limit waits.",
        ],
        harms: &["io.mclock has no effect under other schedulers, and no kernel has this file."],
        files: &[File {
            name: "io.mclock",
            of: FileOf::Cgroup,
            takes: "any of reservation=RATE, weight=N (1 to 1000) and limit=RATE. A RATE is a number of I/Os per \
                 second, or a number of bytes per second with a unit, such as 50MB. reservation=0 means no \
                 reservation, and limit=max means no limit",
            example: "db:reservation=500/weight=200/limit=50MB",
        }],
    },
];

/// Returns all controllers, in the order in which a bio meets them.
#[must_use]
pub fn policies() -> &'static [About] {
    POLICIES
}

/// Returns the files that settings may contain besides the attributes of a queue.
pub(super) fn cgroup_files() -> impl Iterator<Item = &'static File> {
    POLICIES.iter().flat_map(|about| about.files).filter(|file| file.of != FileOf::Queue)
}
