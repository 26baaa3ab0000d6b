//! Contents of written data, and their verification.

use super::ValueKind::{Bool, Choice, Flag, Number, Text};
use super::{BYTES, COUNT, Category, INT_MAX, JobOption, PERCENT, Treatment, Unit, options};

const NO_DATA: Treatment = Treatment::none("modelled devices keep no data");
const IN_VERIFY: Treatment = Treatment::With("verify");
const BYTES_LARGE: super::ValueKind = Number(Unit::Count, 0, i64::MAX as u64);

options! {
    /// Contents of written data.
    DATA, Data, &[];
    "zero_buffers", Flag, NO_DATA, "write zeros";
    "refill_buffers", Flag, NO_DATA, "use new data for every write";
    "scramble_buffers", Bool, NO_DATA, "change the data a little before every write";
    "buffer_compress_percentage", PERCENT, NO_DATA, "how much the data can be compressed, in %";
    "buffer_compress_chunk", BYTES, NO_DATA, "size of a piece of compressible data";
    "buffer_pattern", Text, NO_DATA, "pattern to write";
    "dedupe_percentage", PERCENT, NO_DATA, "share of duplicate buffers, in %";
    "dedupe_mode", Choice(&["repeat", "working_set"]), NO_DATA,
        "source of duplicate buffers: the last buffer, or a working set";
    "dedupe_working_set_percentage", PERCENT, NO_DATA,
        "size of the working set for duplicate buffers, in % of the file";
    "dedupe_global", Bool, NO_DATA, "let jobs share duplicate buffers";
}

options! {
    /// Verification of written data.
    VERIFY, Data, &[];
    "verify", Text, Treatment::Honoured,
        "read the written data again and compare the data. In jobs that write, iosched supports verify only with \
         do_verify=0";
    "do_verify", Bool, Treatment::Honoured, "after all writes, read the data again and compare the data";
    "verify_only", Flag, Treatment::unless(&["0"],
        "iosched did not write the data in an earlier run, so iosched cannot compare the data",
        "use rw=read, which reads the same blocks"), "\
        compare data that an earlier run wrote";
    "verify_interval", Number(Unit::Bytes, 0, INT_MAX), IN_VERIFY, "bytes between checksums";
    "verify_offset", Number(Unit::Bytes, 0, INT_MAX), IN_VERIFY, "position of the checksum in a block";
    "verify_pattern", Text, IN_VERIFY, "pattern that is written and compared";
    "verify_pattern_interval", BYTES, IN_VERIFY, "bytes between patterns";
    "verify_fatal", Bool, IN_VERIFY, "end at the first difference";
    "verify_dump", Bool, IN_VERIFY, "if a block fails the check, save the block to files";
    "verify_async", COUNT, IN_VERIFY, "number of threads that compare data";
    "verify_async_cpus", Text, IN_VERIFY, "CPUs for the threads that compare data";
    "verify_backlog", BYTES_LARGE, IN_VERIFY, "compare the data after this number of writes";
    "verify_backlog_batch", COUNT, IN_VERIFY, "number of blocks in one comparison";
    "verify_header_seed", Bool, IN_VERIFY, "also compare the seed";
    "verify_write_sequence", Bool, IN_VERIFY, "also compare the order of writes";
    "verify_state_save", Bool, IN_VERIFY, "save a list of written blocks for a later run";
    "verify_state_load", Bool, IN_VERIFY, "load the list of written blocks of an earlier run";
    "verifysort", Bool, Treatment::none("fio no longer uses this option"), "compare blocks in the order of their \
        offsets";
    "verifysort_nr", COUNT, Treatment::none("fio no longer uses this option"), "number of offsets to sort";
    "experimental_verify", Bool, IN_VERIFY, "compute the offsets a second time instead of storing the offsets";
    "trim_percentage", PERCENT, Treatment::unless(&["0"],
        "iosched does not model verification, and these trims are a part of verification",
        "use rw=randtrim in a separate job"),
        "share of the written blocks to trim, in %";
    "trim_verify_zero", Bool, IN_VERIFY, "check that trimmed blocks read as zeros";
    "trim_backlog", BYTES_LARGE, IN_VERIFY, "trim blocks after this number of writes";
    "trim_backlog_batch", COUNT, IN_VERIFY, "number of blocks in one trim";
}
