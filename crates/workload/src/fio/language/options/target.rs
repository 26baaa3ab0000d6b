//! Files and devices, replay, and zoned devices.

use super::ValueKind::{Bool, Choice, Choices, FileService, Float, Floats, Number, Range, Size, Text};
use super::{BYTES, COUNT, COUNT_1, Category, INT_MAX, JobOption, Treatment, Unit, options};
use Treatment::Honoured;

const LAID_OUT: Treatment = Treatment::none("iosched prepares all files before the run, without I/O");
const UNCACHED: Treatment = Treatment::none("when a run begins, no file is in the page cache");
const NO_FILE_SYSTEM: Treatment = Treatment::none("iosched does not model the time of deletions");
const NOT_A_DEVICE: Treatment = Treatment::none("iosched writes only to a modelled device");
const IN_ZONES: Treatment = Treatment::With("zonemode");

options! {
    /// Files and devices.
    FILES, Target, &[];
    "filename", Text, Honoured, "files or devices, separated by colons; write \\: for a colon in a name";
    "directory", Text, Honoured, "directory of the files, or several directories, separated by colons";
    "filename_format", Text, Honoured, "pattern for names of a job's files: $jobname, $jobnum, $filenum";
    "unique_filename", Bool, Treatment::none("iosched does not run fio clients on other machines"),
        "add the client's address to the names of files";
    "opendir", Text, Treatment::unless(&[], "iosched does not search a directory for files", "name the files \
     with filename, and give their size with filesize"), "use all files below this directory";
    "lockfile", Choice(&["none", "exclusive", "readwrite"]), Treatment::unless(&["none"], "iosched does not model \
        locks between jobs", ""), "lock a file for each I/O";
    "nrfiles" | "nr_files", COUNT_1, Honoured, "number of files of each job";
    "openfiles", COUNT, Honoured, "number of files that are open at the same time";
    "file_service_type", FileService, Honoured, "how to choose the file of the next I/O";
    "filetype", Choice(&["file", "block", "char"]),
        Treatment::none("iosched derives the kind of a file from the file name"), "kind of file";
    "filesize", Range(Unit::Bytes), Honoured, "size of each file";
    "create_serialize", Bool, LAID_OUT, "create files one after another";
    "create_fsync", Bool, LAID_OUT, "call fsync after a file is created";
    "create_on_open", Bool, LAID_OUT, "create files when they are opened";
    "create_only", Bool, Treatment::unless(&["0"],
        "iosched prepares files without I/O, so iosched cannot measure the preparation", "leave out the option"),
        "only create the files";
    "allow_file_create", Bool, LAID_OUT, "allow the job to create files";
    "allow_mounted_write", Bool, NOT_A_DEVICE, "allow writes to mounted devices";
    "pre_read", Bool, UNCACHED, "before the run, read the files into the page cache";
    "unlink", Bool, NO_FILE_SYSTEM, "delete files at the end";
    "unlink_each_loop", Bool, NO_FILE_SYSTEM, "delete files after each loop";
    "fallocate", Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]), Honoured,
        "how to allocate space for files that the job only writes. With the value none, the files have no blocks at \
         first";
    "fadvise_hint", Choice(&["0", "1", "random", "sequential", "noreuse"]), Honoured,
        "tell the page cache which order of I/Os to expect";
    "invalidate", Bool, UNCACHED, "drop the files from the page cache before the run";
    "overwrite", Bool, Honoured, "fill the files with data before the run";
    "file_append", Bool, Treatment::unless(&["0"], "files have a fixed size",
        "set offset to start later in the file"), "start at the end of the files";
    "fill_device" | "fill_fs", Bool, Honoured, "write until the device is full";
    "ioscheduler", Text, Treatment::none("--scheduler chooses the schedulers"), "switch the device to this scheduler";
}

options! {
    /// Recordings of I/Os.
    REPLAY, Replay, &[];
    "read_iolog", Text, Honoured, "replay this log; the path is relative to the current directory";
    "read_iolog_chunked", Bool, Treatment::none("the option does not change the replay"), "read the log piece by piece";
    "write_iolog", Text, Treatment::none("iosched writes no log; `iosched compare --decisions` lists the decisions"),
        "write I/Os into a log";
    "replay_no_stall", Bool, Honoured, "replay as fast as possible";
    "replay_redirect", Text, Honoured, "replay the I/Os on this device";
    "replay_time_scale", Number(Unit::Count, 1, INT_MAX), Honoured, "speed of the replay, in %";
    "replay_align", BYTES, Honoured, "round the offsets of the log down to a multiple of this size";
    "replay_scale", COUNT_1, Honoured, "divide the offsets of the log by this number";
    "replay_skip", Choices(&["read", "write", "trim", "sync", "flush"]), Honoured,
        "skip these kinds of I/O in the log";
    "merge_blktrace_file", Text, Treatment::unless(&[], "iosched does not merge logs",
        "merge the logs with blkparse before the run"), "merge several logs into this file";
    "merge_blktrace_scalars", Floats(0.0, f64::MAX), Treatment::With("merge_blktrace_file"),
        "speed of each merged log, in %";
    "merge_blktrace_iters", Floats(0.0, f64::MAX), Treatment::With("merge_blktrace_file"),
        "number of repetitions of each merged log";
    "exec_prerun", Text, Treatment::none("iosched runs no programs"), "run this program first";
    "exec_postrun", Text, Treatment::none("iosched runs no programs"), "run this program at the end";
}

options! {
    /// Zoned devices.
    ZONES, Zones, &[];
    "zonemode", Choice(&["none", "strided", "zbd"]), Treatment::unless(&["none"], "iosched does not model zones of a \
     device", "write several jobs, each with its own offset and size"), "how zones are used";
    "zonesize", Size, IN_ZONES, "bytes of I/O in each zone";
    "zonecapacity", Size, IN_ZONES, "usable bytes of a zone";
    "zonerange", Size, IN_ZONES, "size of a zone";
    "zoneskip", Size, IN_ZONES, "bytes between two zones";
    "read_beyond_wp", Bool, IN_ZONES, "allow reads of blocks that were never written";
    "max_open_zones", Number(Unit::Count, 0, INT_MAX), IN_ZONES, "largest number of zones that are written at \
     the same time";
    "job_max_open_zones", Number(Unit::Count, 0, INT_MAX), IN_ZONES, "largest number of zones that a job writes \
     at the same time";
    "ignore_zone_limits", Bool, IN_ZONES, "ignore the device's limit of open zones";
    "zone_reset_threshold", Float(0.0, 1.0), IN_ZONES,
        "reset zones when more than this share of the blocks is written";
    "zone_reset_frequency", Float(0.0, 1.0), IN_ZONES, "how often a zone is reset";
    "recover_zbd_write_error", Bool, IN_ZONES, "continue after a write error in a zone";
}
