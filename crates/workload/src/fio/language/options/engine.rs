//! Options that only some I/O engines have.

use super::ValueKind::{Bool, Choice, Flag, Number, Numbers, PrioritySplit, Text};
use super::{BYTES, COUNT, Category, INT_MAX, JobOption, PERCENT, Treatment, Unit, options};
use Treatment::{Honoured, OfEngine};

const NO_CPU: Treatment = Treatment::none("iosched does not model CPU time");
const NO_CACHE: Treatment = Treatment::none("iosched keeps used data in the page cache until the cache is full");
/// Any number, including negative numbers.
const SIGNED: super::ValueKind = Number(Unit::Count, i32::MIN as i64, INT_MAX);
const PORT: super::ValueKind = Number(Unit::Count, 1, 65535);

options! {
    /// Priorities of single I/Os.
    CMDPRIO, Engine, &["libaio", "io_uring", "io_uring_cmd"];
    "cmdprio_percentage", Numbers(Unit::Count, 0, 100), Honoured,
        "share of I/Os that get the priority of cmdprio_class and cmdprio, in %";
    "cmdprio_class", Numbers(Unit::Count, 1, 3), Honoured, "class of these I/Os";
    "cmdprio", Numbers(Unit::Count, 0, 7), Honoured, "level of these I/Os";
    "cmdprio_hint", Numbers(Unit::Count, 0, 1023), Treatment::none("modelled devices ignore hints"),
        "hint of these I/Os";
    "cmdprio_bssplit", PrioritySplit, Honoured, "for each block size: share, class and level of the I/Os that get a \
         priority";
}

options! {
    /// Options of libaio.
    LIBAIO, Engine, &["libaio"];
    "userspace_reap", Flag, NO_CPU, "collect completions without a system call";
}

options! {
    /// Options of both kinds of `io_uring`.
    IO_URING, Engine, &["io_uring", "io_uring_cmd"];
    "fixedbufs", Flag, NO_CPU, "register buffers";
    "registerfiles", Flag, NO_CPU, "register files";
    "sqthread_poll", Flag, NO_CPU, "a kernel thread submits the I/Os";
    "sqthread_poll_cpu", COUNT, NO_CPU, "CPU of this thread";
    "nonvectored", SIGNED, NO_CPU, "use calls without vectors";
    "force_async", COUNT, NO_CPU, "a kernel thread submits every Nth I/O";
}

options! {
    /// Options of passthrough commands.
    URING_ONLY, Engine, &["io_uring", "io_uring_cmd"];
    "cmd_type", Choice(&["nvme", "bsg"]), Treatment::none("has an effect only with ioengine=io_uring_cmd"),
        "kind of passthrough commands";
    "write_mode", Text, Treatment::none("has an effect only with ioengine=io_uring_cmd"), "kind of write commands";
    "verify_mode", Text, Treatment::none("has an effect only with ioengine=io_uring_cmd"), "kind of verify commands";
    "deac", Bool, Treatment::none("has an effect only with ioengine=io_uring_cmd"), "deallocate \
        blocks that are written with zeros";
}

options! {
    /// Options of pvsync2.
    PVSYNC2, Engine, &["pvsync2"];
    "hipri_percentage", PERCENT, NO_CPU, "share of I/Os that wait for their completion by polling";
}

options! {
    /// Option for I/Os that fail instead of waiting.
    NOWAIT, Engine, &["pvsync2", "libaio", "io_uring", "io_uring_cmd"];
    "nowait", Bool, Treatment::unless(&["0"], "in iosched, an I/O always waits for a free request",
        "leave out the option"),
        "let an I/O fail instead of waiting";
}

options! {
    /// I/Os that leave nothing in the page cache.
    UNCACHED, Engine, &["pvsync2", "io_uring", "io_uring_cmd"];
    "uncached", SIGNED, NO_CACHE, "leave nothing in the page cache";
}

options! {
    /// Options of polling.
    HIPRI, Engine, &["pvsync2", "io_uring", "io_uring_cmd", "sg", "xnvme", "libblkio"];
    "hipri", Flag, NO_CPU, "poll for completions";
}

options! {
    /// Options of mmap.
    MMAP, Engine, &["mmap"];
    "thp", SIGNED, NO_CPU, "use huge pages";
}

options! {
    /// Options of cpuio.
    CPUIO, Engine, &["cpuio"];
    "cpuload", COUNT, OfEngine, "CPU load, in %";
    "cpuchunks", COUNT, OfEngine, "length of a burst, in us";
    "cpumode", Text, OfEngine, "kind of computation";
    "exit_on_io_done" | "exit_io_done", Bool, OfEngine, "end when the jobs that do I/O end";
}

options! {
    /// Options of net and netsplice.
    NETWORK, Engine, &["net", "netsplice"];
    "hostname", Text, OfEngine, "the other host";
    "port", PORT, OfEngine, "port of the other host";
    "protocol" | "proto", Choice(&["tcp", "tcpv6", "udp", "udpv6", "unix", "vsock"]), OfEngine, "protocol";
    "nodelay", Bool, OfEngine, "send data immediately";
    "listen", Flag, OfEngine, "wait for the other host";
    "pingpong", Flag, OfEngine, "answer each I/O";
    "interface", Text, OfEngine, "network interface";
    "ttl", COUNT, OfEngine, "largest number of hops of a packet";
    "window_size", BYTES, OfEngine, "size of the socket's window";
    "mss", BYTES, OfEngine, "largest segment";
}

options! {
    /// Options of rdma.
    RDMA, Engine, &["rdma"];
    "hostname", Text, OfEngine, "the other host";
    "bindname", Text, OfEngine, "address of this host";
    "port", PORT, OfEngine, "port of the other host";
    "verb" | "proto", Choice(&["write", "read", "send", "recv"]), OfEngine, "RDMA verb";
}

options! {
    /// Options of Ceph.
    CEPH, Engine, &["rbd", "rados"];
    "clustername", Text, OfEngine, "cluster";
    "pool", Text, OfEngine, "pool";
    "clientname", Text, OfEngine, "client";
    "busy_poll", Bool, OfEngine, "poll for completions";
}

options! {
    /// Options of rados.
    RADOS, Engine, &["rados"];
    "conf", Text, OfEngine, "configuration";
    "touch_objects", Bool, OfEngine, "create objects first";
}

options! {
    /// Options of rbd.
    RBD, Engine, &["rbd"];
    "rbdname", Text, OfEngine, "image";
    "rbd_encryption_format", Text, OfEngine, "encryption";
    "rbd_encryption_passphrase_file", Text, OfEngine, "file with the passphrase";
}

options! {
    /// Options of GlusterFS.
    GLUSTER, Engine, &["gfapi", "gfapi_async"];
    "volume", Text, OfEngine, "volume";
    "brick", Text, OfEngine, "server";
    "single-instance", Bool, OfEngine, "one connection for all threads";
}

options! {
    /// Options of sg.
    SG, Engine, &["sg"];
    "sg_write_mode", Text, OfEngine, "kind of write commands";
    "stream_id", COUNT, OfEngine, "stream of writes";
}

options! {
    /// Forced unit access by command.
    FUA, Engine, &["sg", "io_uring_cmd"];
    "readfua", Bool, OfEngine, "read from the medium";
    "writefua", Bool, OfEngine, "write to the medium";
}

options! {
    /// Options that several passthrough engines share.
    PASSTHROUGH, Engine, &["xnvme"];
    "sqthread_poll", Flag, OfEngine, "a kernel thread submits the I/Os";
}

options! {
    /// Protection information.
    PROTECTION, Engine, &["io_uring_cmd", "io_uring", "xnvme"];
    "md_per_io_size", BYTES, Treatment::none("modelled devices keep no metadata"), "size of a buffer for metadata";
    "pi_act", Bool, Treatment::none("modelled devices keep no metadata"), "the device makes protection information";
    "pi_chk", Text, Treatment::none("modelled devices keep no metadata"), "parts of the \
        protection information to check";
    "apptag", COUNT, Treatment::none("modelled devices keep no metadata"), "application tag";
    "apptag_mask", COUNT, Treatment::none("modelled devices keep no metadata"), "mask of the application tag";
}

options! {
    /// Options of xnvme.
    XNVME, Engine, &["xnvme"];
    "xnvme_async", Text, OfEngine, "asynchronous commands";
    "xnvme_sync", Text, OfEngine, "synchronous commands";
    "xnvme_admin", Text, OfEngine, "administrative commands";
    "xnvme_mem", Text, OfEngine, "memory";
    "xnvme_be", Text, OfEngine, "backend";
    "xnvme_dev_nsid", COUNT, OfEngine, "namespace";
    "xnvme_dev_subnqn", Text, OfEngine, "subsystem";
    "xnvme_iovec", COUNT, OfEngine, "use calls with vectors";
}

options! {
    /// Options of libblkio.
    LIBBLKIO, Engine, &["libblkio"];
    "libblkio_driver", Text, OfEngine, "driver";
    "libblkio_path", Text, OfEngine, "device";
    "libblkio_pre_connect_props", Text, OfEngine, "properties to set before connecting";
    "libblkio_pre_start_props", Text, OfEngine, "properties to set before starting";
    "libblkio_num_entries", COUNT, OfEngine, "number of entries of a queue";
    "libblkio_queue_size", COUNT, OfEngine, "size of a queue";
    "libblkio_vectored", Flag, OfEngine, "use calls with vectors";
    "libblkio_write_zeroes_on_trim", Flag, OfEngine, "write zeros for trims";
    "libblkio_wait_mode", Text, OfEngine, "method of waiting for completions";
    "libblkio_force_enable_completion_eventfd", Flag, OfEngine, "report completions through an eventfd";
}

options! {
    /// Options of http.
    HTTP, Engine, &["http"];
    "https", Text, OfEngine, "use encryption";
    "http_host", Text, OfEngine, "server";
    "http_user", Text, OfEngine, "user";
    "http_pass", Text, OfEngine, "password";
    "http_mode", Text, OfEngine, "WebDAV, Swift or S3";
    "http_verbose", COUNT, OfEngine, "print more messages";
    "http_s3_key", Text, OfEngine, "S3 secret";
    "http_s3_keyid", Text, OfEngine, "S3 key";
    "http_s3_security_token", Text, OfEngine, "S3 token";
    "http_s3_region", Text, OfEngine, "S3 region";
    "http_s3_sse_customer_key", Text, OfEngine, "S3 encryption";
    "http_s3_sse_customer_algorithm", Text, OfEngine, "S3 encryption's algorithm";
    "http_s3_storage_class", Text, OfEngine, "S3 class";
    "http_swift_auth_token", Text, OfEngine, "Swift token";
    "http_object_mode", Text, OfEngine, "use whole objects, or blocks of objects";
}

options! {
    /// Options of libhdfs.
    HDFS, Engine, &["libhdfs"];
    "namenode", Text, OfEngine, "name node";
    "hostname", Text, OfEngine, "name node";
    "port", PORT, OfEngine, "port of the name node";
    "hdfsdirectory", Text, OfEngine, "directory";
    "chunk_size" | "chunck_size", BYTES, OfEngine, "size of the pieces of a file";
    "single_instance", Bool, OfEngine, "one connection for all threads";
    "hdfs_use_direct", Bool, OfEngine, "read local data directly";
}

options! {
    /// Options of dfs.
    DAOS, Engine, &["dfs"];
    "pool", Text, OfEngine, "pool";
    "cont", Text, OfEngine, "container";
    "chunk_size", BYTES, OfEngine, "size of the pieces of a file";
    "object_class", Text, OfEngine, "class of objects";
    "svcl", Text, OfEngine, "service ranks";
}

options! {
    /// Options of engines that transfer data to the memory of a GPU.
    GPU, Engine, &["libcufile", "libhipfile", "rdma"];
    "gpu_dev_ids", Text, OfEngine, "GPUs";
    "gpu_dev_id", Text, OfEngine, "GPU";
    "cuda_io", Text, OfEngine, "method of data transfer";
    "rocm_io", Text, OfEngine, "method of data transfer";
}

options! {
    /// Options of librpma.
    RPMA, Engine, &["librpma_apm_client", "librpma_apm_server", "librpma_gpspm_client", "librpma_gpspm_server"];
    "serverip", Text, OfEngine, "the other host";
    "port", Text, OfEngine, "port of the other host";
    "direct_write_to_pmem", Bool, OfEngine, "write directly to memory, and bypass the CPU's cache";
    "busy_wait_polling", Bool, OfEngine, "poll for completions";
}

options! {
    /// Options of e4defrag.
    E4DEFRAG, Engine, &["e4defrag"];
    "donorname", Text, OfEngine, "file with which the engine exchanges blocks";
    "inplace", COUNT, OfEngine, "when blocks are allocated";
}

options! {
    /// Options of mtd.
    MTD, Engine, &["mtd"];
    "skip_bad", Bool, OfEngine, "leave out bad blocks";
}

options! {
    /// Options of nbd.
    NBD, Engine, &["nbd"];
    "uri", Text, OfEngine, "server";
}

options! {
    /// Options of nfs.
    NFS, Engine, &["nfs"];
    "nfs_url", Text, OfEngine, "server and export";
}

options! {
    /// Options of exec.
    EXEC, Engine, &["exec"];
    "program", Text, OfEngine, "program to run";
    "arguments", Text, OfEngine, "arguments of the program";
    "grace_time", COUNT, OfEngine, "seconds before fio kills the program";
    "std_redirect", Bool, OfEngine, "write the output of the program to files";
}

options! {
    /// Options of filestat and dirstat.
    STAT, Engine, &["filestat", "dirstat"];
    "stat_type", Text, OfEngine, "system call";
}

options! {
    /// Options of libiscsi.
    ISCSI, Engine, &["libiscsi"];
    "initiator", Text, OfEngine, "name of the initiator";
}
