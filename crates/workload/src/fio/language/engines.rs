//! fio's I/O engines, and how the scheduler of a block device sees their I/Os, if it sees them.

use crate::fio::value::Client;

/// An I/O engine of fio.
#[derive(Debug)]
pub struct IoEngine {
    /// Name of the engine.
    pub name: &'static str,
    /// Other names of the engine.
    pub aliases: &'static [&'static str],
    /// Support of the engine by iosched.
    pub behaviour: EngineBehaviour,
}

/// Support of an engine by iosched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineBehaviour {
    /// Jobs with this engine run.
    Runs {
        /// Use of `iodepth` by the engine.
        client: Client,
        /// Difference from fio; empty if there is none.
        note: &'static str,
    },
    /// Jobs with this engine are rejected.
    Refused {
        /// Reason.
        why: &'static str,
        /// Engine to use instead; empty if there is none.
        instead: &'static str,
    },
}

impl IoEngine {
    /// Returns whether jobs with this engine run.
    #[must_use]
    pub const fn is_supported(&self) -> bool {
        matches!(self.behaviour, EngineBehaviour::Runs { .. })
    }
}

/// Returns fio's default on Linux: `psync`.
pub(super) fn default() -> &'static IoEngine {
    &PSYNC
}

static PSYNC: IoEngine = engine("psync", &[], runs(Client::Sync, ""));

const USE_LIBAIO: &str = "use ioengine=libaio with filename=/dev/...; libaio does similar I/O on a block device";

const fn engine(name: &'static str, aliases: &'static [&'static str], behaviour: EngineBehaviour) -> IoEngine {
    IoEngine { name, aliases, behaviour }
}

const fn runs(client: Client, note: &'static str) -> EngineBehaviour {
    EngineBehaviour::Runs { client, note }
}

const fn refused(why: &'static str, instead: &'static str) -> EngineBehaviour {
    EngineBehaviour::Refused { why, instead }
}

const fn remote(why: &'static str) -> EngineBehaviour {
    EngineBehaviour::Refused { why, instead: "" }
}

/// All I/O engines of fio, with their support by iosched.
pub static IO_ENGINES: &[IoEngine] = &[
    engine("sync", &[], runs(Client::Sync, "")),
    engine("psync", &[], runs(Client::Sync, "")),
    engine(
        "vsync",
        &[],
        runs(Client::Sync, "iosched does not combine adjacent I/Os into one call; the block layer merges these I/Os"),
    ),
    engine("pvsync", &[], runs(Client::Sync, "")),
    engine("pvsync2", &[], runs(Client::Sync, "")),
    engine("libaio", &["linuxaio", "aio"], runs(Client::Async, "")),
    engine("io_uring", &[], runs(Client::Async, "")),
    engine("posixaio", &[], runs(Client::Async, "")),
    engine("solarisaio", &[], runs(Client::Async, "iosched runs the job like libaio")),
    engine("windowsaio", &[], runs(Client::Async, "iosched runs the job like libaio")),
    engine(
        "mmap",
        &[],
        runs(
            Client::Sync,
            "iosched does not model page faults. iosched runs the job like psync, with one I/O of size bs for each \
             access",
        ),
    ),
    engine("splice", &[], runs(Client::Sync, "iosched runs the job like psync")),
    engine(
        "null",
        &[],
        refused("the engine moves no data, so no I/O reaches a device", "use ioengine=libaio, which makes real I/Os"),
    ),
    engine(
        "cpuio",
        &[],
        refused("the engine uses CPU time and does no I/O", "leave out the job; iosched does not model CPU time"),
    ),
    engine("exec", &[], refused("the engine runs another program", "")),
    engine("external", &[], refused("iosched cannot load engines from other files", "")),
    engine("sg", &[], refused("SCSI commands bypass the I/O scheduler", USE_LIBAIO)),
    engine(
        "io_uring_cmd",
        &[],
        refused("passthrough commands bypass the I/O scheduler", "use ioengine=io_uring on the block device"),
    ),
    engine(
        "xnvme",
        &[],
        refused(
            "the engine controls the NVMe device from user space and bypasses the I/O scheduler",
            "use ioengine=io_uring on the block device",
        ),
    ),
    engine(
        "libblkio",
        &[],
        refused("the engine controls the device from user space and bypasses the I/O scheduler", USE_LIBAIO),
    ),
    engine("libzbc", &[], refused("zone commands to a zoned device bypass the I/O scheduler", "")),
    engine("libiscsi", &[], refused("the engine needs an iSCSI target, and bypasses the I/O scheduler", USE_LIBAIO)),
    engine("nbd", &[], refused("the engine needs an NBD server, and bypasses the I/O scheduler", USE_LIBAIO)),
    engine("mtd", &[], refused("flash behind MTD is not a block device", "")),
    engine("dev-dax", &[], refused("persistent memory in DAX mode is not a block device", "")),
    engine("libpmem", &[], refused("persistent memory in DAX mode is not a block device", "")),
    engine("pmemblk", &[], refused("persistent memory in DAX mode is not a block device", "")),
    engine("falloc", &[], refused("the engine allocates space in a file system and moves no data", "")),
    engine("ftruncate", &[], refused("the engine changes the size of files and moves no data", "")),
    engine("e4defrag", &[], refused("the engine only moves the extents of files in ext4", "")),
    engine(
        "filecreate",
        &[],
        refused("the engine creates files, and iosched does not model metadata of file systems", ""),
    ),
    engine(
        "filestat",
        &[],
        refused("the engine looks up files, and iosched does not model metadata of file systems", ""),
    ),
    engine(
        "filedelete",
        &[],
        refused("the engine deletes files, and iosched does not model metadata of file systems", ""),
    ),
    engine(
        "dircreate",
        &[],
        refused(
            "the engine creates directories, and iosched does not model metadata of file \
        systems",
            "",
        ),
    ),
    engine(
        "dirstat",
        &[],
        refused(
            "the engine looks up directories, and iosched does not model metadata of file \
        systems",
            "",
        ),
    ),
    engine(
        "dirdelete",
        &[],
        refused(
            "the engine deletes directories, and iosched does not model metadata of file \
        systems",
            "",
        ),
    ),
    engine("net", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("netsplice", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("rdma", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("librpma_apm_client", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("librpma_apm_server", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("librpma_gpspm_client", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("librpma_gpspm_server", &[], remote("the engine moves data over a network, and uses no block device")),
    engine("rbd", &[], remote("the engine needs a Ceph cluster, and uses no block device")),
    engine("rados", &[], remote("the engine needs a Ceph cluster, and uses no block device")),
    engine("gfapi", &[], remote("the engine needs a GlusterFS volume, and uses no block device")),
    engine("gfapi_async", &[], remote("the engine needs a GlusterFS volume, and uses no block device")),
    engine("libhdfs", &[], remote("the engine needs a Hadoop cluster, and uses no block device")),
    engine("http", &[], remote("the engine needs an HTTP, S3 or Swift server, and uses no block device")),
    engine("nfs", &[], remote("the engine needs an NFS server, and uses no block device")),
    engine("dfs", &[], remote("the engine needs a DAOS cluster, and uses no block device")),
    engine("ime_psync", &[], remote("the engine needs an IME cluster, and uses no block device")),
    engine("ime_psyncv", &[], remote("the engine needs an IME cluster, and uses no block device")),
    engine("ime_aio", &[], remote("the engine needs an IME cluster, and uses no block device")),
    engine("libcufile", &[], refused("the engine moves data into the memory of a GPU", USE_LIBAIO)),
    engine("libhipfile", &[], refused("the engine moves data into the memory of a GPU", USE_LIBAIO)),
    engine("guasi", &[], refused("fio no longer has this engine", "use ioengine=posixaio")),
];

/// Finds an engine by its name.
#[must_use]
pub fn io_engine(name: &str) -> Option<&'static IoEngine> {
    IO_ENGINES.iter().find(|engine| engine.name == name || engine.aliases.contains(&name))
}
