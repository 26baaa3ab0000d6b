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
    "refill_buffers", Flag, NO_DATA, "new data for every write";
    "scramble_buffers", Bool, NO_DATA, "change the data a little before every write";
    "buffer_compress_percentage", PERCENT, NO_DATA, "how compressible data is";
    "buffer_compress_chunk", BYTES, NO_DATA, "size of a piece of compressible data";
    "buffer_pattern", Text, NO_DATA, "pattern that is written";
    "dedupe_percentage", PERCENT, NO_DATA, "share of equal buffers";
    "dedupe_mode", Choice(&["repeat", "working_set"]), NO_DATA, "where equal buffers come from";
    "dedupe_working_set_percentage", PERCENT, NO_DATA, "share of the file from which data for buffers is read";
    "dedupe_global", Bool, NO_DATA, "jobs share equal buffers";
}

options! {
    /// Verification of written data.
    VERIFY, Data, &[];
    "verify", Text, Treatment::Honoured, "read the written data back and compare it; not supported in jobs that \
     write, unless do_verify=0";
    "do_verify", Bool, Treatment::Honoured, "read the data back and compare it after writing";
    "verify_only", Flag, Treatment::unless(&["0"], "no data was written, so nothing can be compared", "rw=read \
        reads the same blocks"), "\
        compare data that an earlier run wrote";
    "verify_interval", Number(Unit::Bytes, 0, INT_MAX), IN_VERIFY, "bytes between checksums";
    "verify_offset", Number(Unit::Bytes, 0, INT_MAX), IN_VERIFY, "position of the checksum in a block";
    "verify_pattern", Text, IN_VERIFY, "pattern that is written and compared";
    "verify_pattern_interval", BYTES, IN_VERIFY, "bytes between patterns";
    "verify_fatal", Bool, IN_VERIFY, "end at the first difference";
    "verify_dump", Bool, IN_VERIFY, "write differing blocks into files";
    "verify_async", COUNT, IN_VERIFY, "threads that compare";
    "verify_async_cpus", Text, IN_VERIFY, "CPUs they run on";
    "verify_backlog", BYTES_LARGE, IN_VERIFY, "number of writes before a comparison";
    "verify_backlog_batch", COUNT, IN_VERIFY, "number of blocks of a comparison";
    "verify_header_seed", Bool, IN_VERIFY, "compare the seed, too";
    "verify_write_sequence", Bool, IN_VERIFY, "compare the order of writes, too";
    "verify_state_save", Bool, IN_VERIFY, "save a list of written blocks for a later run";
    "verify_state_load", Bool, IN_VERIFY, "load the list of written blocks of an earlier run";
    "verifysort", Bool, Treatment::none("fio no longer uses this option"), "compare in order of offsets";
    "verifysort_nr", COUNT, Treatment::none("fio no longer uses this option"), "number of offsets \
        that are sorted";
    "experimental_verify", Bool, IN_VERIFY, "compute the offsets a second time instead of storing them";
    "trim_percentage", PERCENT, Treatment::unless(&["0"], "these trims belong to the verification, which is not \
        modelled", "rw=randtrim in \
                                                           a separate job"), "share of written blocks that are trimmed";
    "trim_verify_zero", Bool, IN_VERIFY, "trimmed blocks must read as zeros";
    "trim_backlog", BYTES_LARGE, IN_VERIFY, "number of writes before a trim";
    "trim_backlog_batch", COUNT, IN_VERIFY, "number of blocks of a trim";
}
