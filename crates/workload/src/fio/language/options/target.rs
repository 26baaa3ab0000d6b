//! Files and devices, replay, and zoned devices.

use super::ValueKind::{Bool, Choice, Choices, FileService, Float, Floats, Number, Range, Size, Text};
use super::{BYTES, COUNT, COUNT_1, Category, INT_MAX, JobOption, Treatment, Unit, options};
use Treatment::Honoured;

const LAID_OUT: Treatment = Treatment::none("files are laid out before the run, without I/O");
const UNCACHED: Treatment = Treatment::none("nothing of a file is in the page cache when a run begins");
const NO_FILE_SYSTEM: Treatment = Treatment::none("the time that deleting takes is not modelled");
const NOT_A_DEVICE: Treatment = Treatment::none("iosched writes only to a modelled device");
const IN_ZONES: Treatment = Treatment::With("zonemode");

options! {
    /// Files and devices.
    FILES, Target, &[];
    "filename", Text, Honoured, "files or devices, separated by a colon; write \\: for a colon in a name";
    "directory", Text, Honoured, "directory of the files, or several directories, separated by a colon";
    "filename_format", Text, Honoured, "pattern for names of a job's files: $jobname, $jobnum, $filenum";
    "unique_filename", Bool, Treatment::none("there are no clients over a network"), "names hold the client's address";
    "opendir", Text, Treatment::unless(&[], "iosched does not search a directory for files", "name the files \
     with filename, and give their size with filesize"), "use all files below this directory";
    "lockfile", Choice(&["none", "exclusive", "readwrite"]), Treatment::unless(&["none"], "locks between jobs are not modelled", ""), "lock a file for each I/O";
    "nrfiles" | "nr_files", COUNT_1, Honoured, "files of each job";
    "openfiles", COUNT, Honoured, "files open at a time";
    "file_service_type", FileService, Honoured, "choice of the file for the next I/O";
    "filetype", Choice(&["file", "block", "char"]), Treatment::none("the name of a file decides its kind"), "kind of file";
    "filesize", Range(Unit::Bytes), Honoured, "size of each file";
    "create_serialize", Bool, LAID_OUT, "create files one after another";
    "create_fsync", Bool, LAID_OUT, "flush a file that was created";
    "create_on_open", Bool, LAID_OUT, "create files when they are opened";
    "create_only", Bool, Treatment::unless(&["0"], "files are laid out without I/O, so there is nothing to measure", "leave it out"), "create the files and end";
    "allow_file_create", Bool, LAID_OUT, "files may be created";
    "allow_mounted_write", Bool, NOT_A_DEVICE, "mounted devices may be written to";
    "pre_read", Bool, UNCACHED, "before the run, read the files into the page cache";
    "unlink", Bool, NO_FILE_SYSTEM, "delete files at the end";
    "unlink_each_loop", Bool, NO_FILE_SYSTEM, "delete files after each loop";
    "fallocate", Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]), Honoured, "how to allocate \
     space for files that are only written; none: the files have no blocks at first";
    "fadvise_hint", Choice(&["0", "1", "random", "sequential", "noreuse"]), Honoured, "give the page cache \
     hints about the order of I/Os";
    "invalidate", Bool, UNCACHED, "drop the page cache first";
    "overwrite", Bool, Honoured, "lay files out before writing to them";
    "file_append", Bool, Treatment::unless(&["0"], "files have a fixed extent", "use offset to start later in the \
        file"), "append: start at the end of the files";
    "fill_device" | "fill_fs", Bool, Honoured, "write until the device is full";
    "ioscheduler", Text, Treatment::none("--scheduler chooses the schedulers"), "switch the device to this scheduler";
}

options! {
    /// Recordings of I/Os.
    REPLAY, Replay, &[];
    "read_iolog", Text, Honoured, "replay this log; the path is relative to the current directory";
    "read_iolog_chunked", Bool, Treatment::none("the replay is the same with and without this option"), "read the log piece by piece";
    "write_iolog", Text, Treatment::none("no log is written; `iosched compare --decisions` lists the \
     decisions"), "write I/Os into a log";
    "replay_no_stall", Bool, Honoured, "replay as fast as possible";
    "replay_redirect", Text, Honoured, "replay onto this device";
    "replay_time_scale", Number(Unit::Count, 1, INT_MAX), Honoured, "speed of the replay, %";
    "replay_align", BYTES, Honoured, "round the offsets of the log down to a multiple of this size";
    "replay_scale", COUNT_1, Honoured, "divide offsets of the log";
    "replay_skip", Choices(&["read", "write", "trim", "sync", "flush"]), Honoured, "skip I/Os of this kind in \
     the log";
    "merge_blktrace_file", Text, Treatment::unless(&[], "logs are not merged", "merge them with blkparse first"), "merge several logs into this file";
    "merge_blktrace_scalars", Floats(0.0, f64::MAX), Treatment::With("merge_blktrace_file"), "speed of each merged log, %";
    "merge_blktrace_iters", Floats(0.0, f64::MAX), Treatment::With("merge_blktrace_file"), "how often each merged log is repeated";
    "exec_prerun", Text, Treatment::none("no programs are run"), "run this program first";
    "exec_postrun", Text, Treatment::none("no programs are run"), "run this program at the end";
}

options! {
    /// Zoned devices.
    ZONES, Zones, &[];
    "zonemode", Choice(&["none", "strided", "zbd"]), Treatment::unless(&["none"], "zones of a device are not \
     modelled", "write several jobs with a separate offset and size each"), "how zones are used";
    "zonesize", Size, IN_ZONES, "bytes of I/O to a zone";
    "zonecapacity", Size, IN_ZONES, "usable bytes of a zone";
    "zonerange", Size, IN_ZONES, "bytes of a zone";
    "zoneskip", Size, IN_ZONES, "bytes between zones";
    "read_beyond_wp", Bool, IN_ZONES, "allow reads of blocks that were never written";
    "max_open_zones", Number(Unit::Count, 0, INT_MAX), IN_ZONES, "largest number of zones that are written at \
     the same time";
    "job_max_open_zones", Number(Unit::Count, 0, INT_MAX), IN_ZONES, "largest number of zones that a job writes \
     at the same time";
    "ignore_zone_limits", Bool, IN_ZONES, "ignore the device's limit of open zones";
    "zone_reset_threshold", Float(0.0, 1.0), IN_ZONES, "share of written blocks above which zones are reset";
    "zone_reset_frequency", Float(0.0, 1.0), IN_ZONES, "how often a zone is reset";
    "recover_zbd_write_error", Bool, IN_ZONES, "continue after an error of a zone";
}
