//! Findings of the doctor, and their identifiers.

use serde::{Serialize, Serializer};

/// Declares [`Id`]: its variants, their names, and the list of all identifiers.
macro_rules! identifiers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Identifier of a finding. Its name does not change between versions.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Id { $($(#[$doc])* $variant,)+ }

        impl Id {
            /// All identifiers of findings, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name, as people and programs see it.
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
    /// bfq is the scheduler of an NVMe disk.
    BfqOnNvme = "bfq-on-nvme",
    /// The driver accepts as many requests as can exist, so mq-deadline has none to sort.
    NothingWaits = "nothing-waits",
    /// Requests are not merged, or only partly.
    MergesOff = "merges-off",
    /// The kernel keeps no statistics for iostat.
    NoIostats = "no-iostats",
    /// The scheduler does not use the ioprio.
    IoniceIgnored = "ionice-ignored",
    /// The scheduler uses classes but not levels.
    IoniceClassesOnly = "ionice-classes-only",
    /// The scheduler uses classes and levels.
    IoniceInForce = "ionice-in-force",
    /// It is not known whether the scheduler uses the ioprio.
    IoniceUnknown = "ionice-unknown",
    /// The drive receives the class rt with each command.
    IoniceByTheDrive = "ionice-by-the-drive",
    /// Processes have set an ioprio.
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
    /// Cgroups have an io.weight, and nothing uses it.
    IoWeightIgnored = "io-weight-ignored",
    /// Cgroups have an io.weight, and iosched cannot see whether anything uses it.
    IoWeightUnknown = "io-weight-unknown",
    /// Cgroups have an io.weight, and io.cost uses it.
    IoWeightInForce = "io-weight-in-force",
    /// Cgroups have an io.bfq.weight, and the scheduler is not bfq.
    BfqWeightIgnored = "bfq-weight-ignored",
    /// systemd has written an io.bfq.weight that differs from the configured IOWeight=.
    BfqWeightScaled = "bfq-weight-scaled",
    /// Cgroups have an io.weight for one disk, and no io.bfq.weight for that disk.
    BfqDeviceWeightMissing = "bfq-device-weight-missing",
    /// Cgroups have an io.bfq.weight, and bfq uses it.
    BfqWeightInForce = "bfq-weight-in-force",
    /// io.cost is on.
    IoCostOn = "io-cost-on",
    /// io.cost is on with a model that was not measured on this disk.
    IoCostDefaultModel = "io-cost-default-model",
    /// Cgroups have an io.prio.class, and the scheduler does not use it.
    IoPrioClassIgnored = "io-prio-class-ignored",
    /// Cgroups have an io.prio.class, and the scheduler uses it.
    IoPrioClassInForce = "io-prio-class-in-force",
    /// A cgroup of version 1 has limits for the disk.
    BlkioThrottleSet = "blkio-throttle-set",
    /// The I/O controller belongs to cgroup version 1.
    CgroupV1 = "cgroup-v1",
    /// There is no I/O controller of cgroups.
    CgroupNoIo = "cgroup-no-io",
    /// The root cgroup does not enable the I/O controller for its children.
    CgroupIoNotPassedOn = "cgroup-io-not-passed-on",
    /// Only a part of the tree of cgroups is visible.
    CgroupNamespace = "cgroup-namespace",
    /// The device is a logical volume.
    LayerLvm = "layer-lvm",
    /// The device is encrypted.
    LayerCrypt = "layer-crypt",
    /// The device has several paths to one disk.
    LayerMultipath = "layer-multipath",
    /// The device is built on other disks in a way that iosched does not know.
    LayerOther = "layer-other",
    /// The device is an NVMe disk with hidden paths (multipath).
    LayerNvmePaths = "layer-nvme-paths",
    /// The device is a RAID, and kernel threads send its writes.
    RaidWritesByKernel = "raid-writes-by-kernel",
    /// The device is a RAID with a level to which [`Id::RaidWritesByKernel`] does not apply.
    LayerRaid = "layer-raid",
    /// The device is a loop device that bypasses the page cache.
    LayerLoop = "layer-loop",
    /// The device is a loop device that uses the page cache.
    LoopThroughCache = "loop-through-cache",
    /// A file system is on several disks.
    SeveralDisks = "several-disks",
    /// A file system orders I/O in its own queues.
    ZfsOwnThreads = "zfs-own-threads",
    /// The layer below the disk is not a disk of this machine.
    VirtualDisk = "virtual-disk",
    /// The machine is virtual.
    VirtualMachine = "virtual-machine",
    /// The kernel treats the disk as a rotating one, which is doubtful.
    RotationalDoubtful = "rotational-doubtful",
    /// The disk has a volatile write cache.
    WriteCacheVolatile = "write-cache-volatile",
    /// The disk has a volatile write cache, and the kernel does not flush it.
    FlushesNotSent = "flushes-not-sent",
    /// The disk supports discard, and discard is switched off.
    DiscardOff = "discard-off",
    /// The kernel splits requests that the disk would accept.
    RequestsCut = "requests-cut",
    /// Readahead is off.
    ReadAheadOff = "read-ahead-off",
    /// Readahead is large.
    ReadAheadLarge = "read-ahead-large",
    /// According to iostat or sar, requests wait for the disk.
    LoadWaits = "load-waits",
    /// According to iostat or sar, the disk has at most one request at a time.
    LoadNothingWaits = "load-nothing-waits",
    /// iostat or sar does not report how many requests waited.
    LoadUnknown = "load-unknown",
    /// Files could not be read without permission.
    NotReadable = "not-readable",
}

impl Id {
    /// Returns whether the finding is about a layer that passes I/O on to devices below.
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

/// Importance of a finding of the doctor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// A setting has no effect, or is probably not intended.
    Matters,
    /// Useful information.
    Note,
}

/// Certainty with which a finding of the doctor is true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sure {
    /// The finding follows from the files that were read.
    Certain,
    /// The finding is usually true. No file could confirm it.
    Likely,
    /// iosched cannot determine whether the finding is true.
    CannotKnow,
}

/// Result of examining a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Identifier of the finding.
    pub id: Id,
    /// Name of the disk in `/sys/block`. `None` for a finding about the whole machine.
    pub disk: Option<String>,
    /// Importance of the finding.
    pub weight: Weight,
    /// Certainty of the finding.
    pub sure: Sure,
    /// Meaning in one sentence.
    pub meaning: String,
    /// Command that would change the situation. `None` if nothing needs to be done.
    pub remedy: Option<String>,
    /// Path of the file that shows the fact.
    pub file: String,
}

impl Finding {
    /// Creates a certain note without a remedy.
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

    /// Returns the finding with the weight [`Weight::Matters`].
    pub(super) fn matters(self) -> Self {
        Self { weight: Weight::Matters, ..self }
    }

    /// Returns the finding with another certainty.
    pub(super) fn sure(self, sure: Sure) -> Self {
        Self { sure, ..self }
    }

    /// Returns the finding with a command as remedy.
    pub(super) fn remedy(self, command: impl Into<String>) -> Self {
        Self { remedy: Some(command.into()), ..self }
    }
}
