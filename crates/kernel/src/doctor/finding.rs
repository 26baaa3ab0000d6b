//! What a finding says, and which there are.

use serde::{Serialize, Serializer};

/// Declares [`Id`] once: its variants, their names and the list of all.
macro_rules! identifiers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// What was found, by a name that stays the same from version to version.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Id { $($(#[$doc])* $variant,)+ }

        impl Id {
            /// All there are.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name, as people and programs see it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

identifiers! {
    /// A rotating disk has no scheduler.
    NoneOnRotating = "none-on-rotating",
    /// bfq on an NVMe disk.
    BfqOnNvme = "bfq-on-nvme",
    /// The driver takes as many requests as there can be, so mq-deadline has none to sort.
    NothingWaits = "nothing-waits",
    /// Requests are not merged.
    MergesOff = "merges-off",
    /// The kernel counts nothing for iostat.
    NoIostats = "no-iostats",
    /// The scheduler looks at no ioprio.
    IoniceIgnored = "ionice-ignored",
    /// The scheduler looks at classes, not at levels.
    IoniceClassesOnly = "ionice-classes-only",
    /// The scheduler looks at classes and levels.
    IoniceInForce = "ionice-in-force",
    /// Whether the scheduler looks at ioprio is not known.
    IoniceUnknown = "ionice-unknown",
    /// The drive itself is told which commands are of the class rt.
    IoniceByTheDrive = "ionice-by-the-drive",
    /// Processes have an ioprio set.
    IoprioSeen = "ioprio-seen",
    /// Writeback throttling is on.
    WbtOn = "wbt-on",
    /// Writeback throttling is off.
    WbtOff = "wbt-off",
    /// Writeback throttling has a target, and bfq is the scheduler.
    WbtUnderBfq = "wbt-under-bfq",
    /// A cgroup has limits for the disk.
    IoMaxSet = "io-max-set",
    /// A cgroup has a latency target for the disk.
    IoLatencySet = "io-latency-set",
    /// A cgroup has a latency target for a disk without a request queue.
    IoLatencyWithoutQueue = "io-latency-without-queue",
    /// cgroups have an io.weight, and nothing looks at it.
    IoWeightIgnored = "io-weight-ignored",
    /// cgroups have an io.weight, and whether anything looks at it cannot be seen from here.
    IoWeightUnknown = "io-weight-unknown",
    /// cgroups have an io.weight, and io.cost looks at it.
    IoWeightInForce = "io-weight-in-force",
    /// cgroups have an io.bfq.weight, and the scheduler is not bfq.
    BfqWeightIgnored = "bfq-weight-ignored",
    /// systemd has written another io.bfq.weight than the IOWeight= that was asked for.
    BfqWeightScaled = "bfq-weight-scaled",
    /// cgroups have an io.weight for one disk, and no io.bfq.weight for it.
    BfqDeviceWeightMissing = "bfq-device-weight-missing",
    /// cgroups have an io.bfq.weight, and bfq looks at it.
    BfqWeightInForce = "bfq-weight-in-force",
    /// io.cost is on.
    IoCostOn = "io-cost-on",
    /// io.cost is on with a model that is not of this disk.
    IoCostDefaultModel = "io-cost-default-model",
    /// cgroups have an io.prio.class, and the scheduler looks at none.
    IoPrioClassIgnored = "io-prio-class-ignored",
    /// cgroups have an io.prio.class, and the scheduler looks at it.
    IoPrioClassInForce = "io-prio-class-in-force",
    /// A cgroup of version 1 has limits for the disk.
    BlkioThrottleSet = "blkio-throttle-set",
    /// The I/O controller is that of cgroup version 1.
    CgroupV1 = "cgroup-v1",
    /// No I/O controller of cgroups is there.
    CgroupNoIo = "cgroup-no-io",
    /// The root cgroup does not pass its I/O controller on.
    CgroupIoNotPassedOn = "cgroup-io-not-passed-on",
    /// Only a part of the tree of cgroups can be seen.
    CgroupNamespace = "cgroup-namespace",
    /// A logical volume.
    LayerLvm = "layer-lvm",
    /// An encrypted device.
    LayerCrypt = "layer-crypt",
    /// Several paths to one disk.
    LayerMultipath = "layer-multipath",
    /// Something else that is made of other disks.
    LayerOther = "layer-other",
    /// An NVMe disk that is reached by paths.
    LayerNvmePaths = "layer-nvme-paths",
    /// A RAID whose writes are the kernel's own.
    RaidWritesByKernel = "raid-writes-by-kernel",
    /// Another RAID.
    LayerRaid = "layer-raid",
    /// A loop device that goes past the page cache.
    LayerLoop = "layer-loop",
    /// A loop device that goes through the page cache.
    LoopThroughCache = "loop-through-cache",
    /// A file system over several disks.
    SeveralDisks = "several-disks",
    /// A file system that schedules by itself.
    ZfsOwnThreads = "zfs-own-threads",
    /// What is below the disk is not a disk of this machine.
    VirtualDisk = "virtual-disk",
    /// The machine is virtual.
    VirtualMachine = "virtual-machine",
    /// The kernel takes the disk for a rotating one, which is doubtful.
    RotationalDoubtful = "rotational-doubtful",
    /// The disk has a volatile write cache.
    WriteCacheVolatile = "write-cache-volatile",
    /// The disk has a volatile write cache, and it is not flushed.
    FlushesNotSent = "flushes-not-sent",
    /// The disk could discard, and it is switched off.
    DiscardOff = "discard-off",
    /// Requests are smaller than the disk takes them.
    RequestsCut = "requests-cut",
    /// Nothing is read ahead.
    ReadAheadOff = "read-ahead-off",
    /// Much is read ahead.
    ReadAheadLarge = "read-ahead-large",
    /// By iostat or sar, requests wait for the disk.
    LoadWaits = "load-waits",
    /// By iostat or sar, the disk has at most one request at a time.
    LoadNothingWaits = "load-nothing-waits",
    /// iostat or sar do not say how many requests waited.
    LoadUnknown = "load-unknown",
    /// Files could not be read without rights.
    NotReadable = "not-readable",
}

impl Id {
    /// Whether it is about a layer that passes I/O on to what is below.
    #[must_use]
    pub const fn is_of_layer(self) -> bool {
        matches!(
            self,
            Self::LayerLvm
                | Self::LayerCrypt
                | Self::LayerMultipath
                | Self::LayerOther
                | Self::LayerNvmePaths
                | Self::RaidWritesByKernel
                | Self::LayerRaid
                | Self::LayerLoop
                | Self::LoopThroughCache
        )
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Something that was set does nothing, or is probably not meant so.
    Matters,
    /// Good to know.
    Note,
}

/// How sure a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sure {
    /// It follows from what was read.
    Certain,
    /// It is so as a rule; what would settle it is in no file.
    Likely,
    /// It cannot be told from here.
    CannotKnow,
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub id: Id,
    /// The disk, by its name in `/sys/block`; `None` of what is of the whole machine.
    pub disk: Option<String>,
    /// How much it matters.
    pub weight: Weight,
    /// How sure it is.
    pub sure: Sure,
    /// What it means, in one sentence.
    pub meaning: String,
    /// One command that would change it; `None` if there is nothing to do.
    pub remedy: Option<String>,
    /// The file that it was read from.
    pub file: String,
}

impl Finding {
    /// A note that is certain, with nothing to do.
    pub(super) fn note(id: Id, disk: Option<&str>, file: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self {
            id,
            disk: disk.map(str::to_owned),
            weight: Weight::Note,
            sure: Sure::Certain,
            meaning: meaning.into(),
            remedy: None,
            file: file.into(),
        }
    }

    /// The same, and it matters.
    pub(super) fn matters(self) -> Self {
        Self { weight: Weight::Matters, ..self }
    }

    /// The same, so sure.
    pub(super) fn sure(self, sure: Sure) -> Self {
        Self { sure, ..self }
    }

    /// The same, with a command.
    pub(super) fn remedy(self, command: impl Into<String>) -> Self {
        Self { remedy: Some(command.into()), ..self }
    }
}
