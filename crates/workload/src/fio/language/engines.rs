//! fio's I/O engines, and whether and how the scheduler of a block device sees their I/Os.

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

const USE_LIBAIO: &str = "use ioengine=libaio with filename=/dev/..., which does similar I/O to a block device";

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

/// All engines.
pub static IO_ENGINES: &[IoEngine] = &[
    engine("sync", &[], runs(Client::Sync, "")),
    engine("psync", &[], runs(Client::Sync, "")),
    engine(
        "vsync",
        &[],
        runs(Client::Sync, "adjacent I/Os are not combined into one call; the block layer merges them"),
    ),
    engine("pvsync", &[], runs(Client::Sync, "")),
    engine("pvsync2", &[], runs(Client::Sync, "")),
    engine("libaio", &["linuxaio", "aio"], runs(Client::Async, "")),
    engine("io_uring", &[], runs(Client::Async, "")),
    engine("posixaio", &[], runs(Client::Async, "")),
    engine("solarisaio", &[], runs(Client::Async, "runs like libaio")),
    engine("windowsaio", &[], runs(Client::Async, "runs like libaio")),
    engine(
        "mmap",
        &[],
        runs(
            Client::Sync,
            "page faults are not modelled, so the job runs like psync, with one I/O of size bs for each access",
        ),
    ),
    engine("splice", &[], runs(Client::Sync, "runs like psync")),
    engine(
        "null",
        &[],
        refused("it moves no data, so no I/O reaches a device", "use ioengine=libaio, which makes real I/Os"),
    ),
    engine(
        "cpuio",
        &[],
        refused("it uses CPU time and does no I/O", "leave out the job, because CPU time is not modelled"),
    ),
    engine("exec", &[], refused("it runs another program", "")),
    engine("external", &[], refused("it loads an engine from another file", "")),
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
            "it controls the NVMe device from user space and bypasses the I/O scheduler",
            "use ioengine=io_uring on the block device",
        ),
    ),
    engine(
        "libblkio",
        &[],
        refused("it controls the device from user space and bypasses the I/O scheduler", USE_LIBAIO),
    ),
    engine("libzbc", &[], refused("zone commands to a zoned device bypass the I/O scheduler", "")),
    engine("libiscsi", &[], refused("it needs an iSCSI target, and bypasses the I/O scheduler", USE_LIBAIO)),
    engine("nbd", &[], refused("it needs an NBD server, and bypasses the I/O scheduler", USE_LIBAIO)),
    engine("mtd", &[], refused("flash behind MTD is not a block device", "")),
    engine("dev-dax", &[], refused("persistent memory in DAX mode is not a block device", "")),
    engine("libpmem", &[], refused("persistent memory in DAX mode is not a block device", "")),
    engine("pmemblk", &[], refused("persistent memory in DAX mode is not a block device", "")),
    engine("falloc", &[], refused("it allocates space in a file system and moves no data", "")),
    engine("ftruncate", &[], refused("it changes the size of files and moves no data", "")),
    engine("e4defrag", &[], refused("it only moves the extents of files in ext4", "")),
    engine("filecreate", &[], refused("it creates files, and metadata of file systems is not modelled", "")),
    engine("filestat", &[], refused("it looks up files, and metadata of file systems is not modelled", "")),
    engine("filedelete", &[], refused("it deletes files, and metadata of file systems is not modelled", "")),
    engine("dircreate", &[], refused("it creates directories, and metadata of file systems is not modelled", "")),
    engine("dirstat", &[], refused("it looks up directories, and metadata of file systems is not modelled", "")),
    engine("dirdelete", &[], refused("it deletes directories, and metadata of file systems is not modelled", "")),
    engine("net", &[], remote("it moves data over a network, and does not use a block device")),
    engine("netsplice", &[], remote("it moves data over a network, and does not use a block device")),
    engine("rdma", &[], remote("it moves data over a network, and does not use a block device")),
    engine("librpma_apm_client", &[], remote("it moves data over a network, and does not use a block device")),
    engine("librpma_apm_server", &[], remote("it moves data over a network, and does not use a block device")),
    engine("librpma_gpspm_client", &[], remote("it moves data over a network, and does not use a block device")),
    engine("librpma_gpspm_server", &[], remote("it moves data over a network, and does not use a block device")),
    engine("rbd", &[], remote("it needs a Ceph cluster, and does not use a block device")),
    engine("rados", &[], remote("it needs a Ceph cluster, and does not use a block device")),
    engine("gfapi", &[], remote("it needs a GlusterFS volume, and does not use a block device")),
    engine("gfapi_async", &[], remote("it needs a GlusterFS volume, and does not use a block device")),
    engine("libhdfs", &[], remote("it needs a Hadoop cluster, and does not use a block device")),
    engine("http", &[], remote("it needs an HTTP, S3 or Swift server, and does not use a block device")),
    engine("nfs", &[], remote("it needs an NFS server, and does not use a block device")),
    engine("dfs", &[], remote("it needs a DAOS cluster, and does not use a block device")),
    engine("ime_psync", &[], remote("it needs an IME cluster, and does not use a block device")),
    engine("ime_psyncv", &[], remote("it needs an IME cluster, and does not use a block device")),
    engine("ime_aio", &[], remote("it needs an IME cluster, and does not use a block device")),
    engine("libcufile", &[], refused("it moves data into a GPU's memory", USE_LIBAIO)),
    engine("libhipfile", &[], refused("it moves data into a GPU's memory", USE_LIBAIO)),
    engine("guasi", &[], refused("fio no longer has this engine", "use ioengine=posixaio")),
];

/// Finds an engine by its name.
#[must_use]
pub fn io_engine(name: &str) -> Option<&'static IoEngine> {
    IO_ENGINES.iter().find(|engine| engine.name == name || engine.aliases.contains(&name))
}
