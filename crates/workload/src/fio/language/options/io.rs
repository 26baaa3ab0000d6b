//! Options of I/Os: directions, sizes, places, durability and depth.

use super::ValueKind::{
    Bool, Choice, Distribution, Flag, Number, Numbers, Pattern, Ranges, Size, Split, SyncFileRange, Text,
};
use super::{BYTES, COUNT, COUNT_1, Category, INT_MAX, JobOption, PERCENT, Treatment, Unit, options};
use Treatment::Honoured;

/// The largest number of bytes.
const BYTES_MAX: u64 = i64::MAX as u64;

const NO_PLACEMENT: Treatment = Treatment::none("modelled devices ignore hints");

options! {
    /// Directions: reads, writes, trims.
    DIRECTION, Io, &[];
    "rw" | "readwrite", Pattern, Honoured,
        "direction and pattern. With :N, a sequential pattern skips N bytes after each I/O. A random pattern chooses \
         a new offset only after N I/Os";
    "rw_sequencer", Choice(&["sequential", "identical"]), Honoured,
        "position of the N I/Os of rw=PATTERN:N. sequential: one after another from the random offset; identical: all \
         at the random offset";
    "rwmixread", PERCENT, Honoured, "share of reads in a mix, in %";
    "rwmixwrite", PERCENT, Honoured, "share of writes in a mix, in %";
    "ioengine", super::ValueKind::Engine, Honoured, "how the job does its I/O";
    "direct", Bool, Honoured, "bypass the page cache";
    "buffered", Bool, Honoured, "use the page cache; the opposite of direct";
    "atomic", Bool, Treatment::unless(&["0"], "iosched does not model atomic writes",
        "use direct=1, which does the same I/Os"),
        "make writes atomic";
    "write_hint", Choice(&["none", "short", "medium", "long", "extreme"]),
        Treatment::none("modelled devices ignore hints"), "expected \
        lifetime of data";
    "fdp", Bool, NO_PLACEMENT, "place data by its expected lifetime";
    "dataplacement", Choice(&["none", "fdp", "streams"]), NO_PLACEMENT, "how data is placed";
    "plids" | "fdp_pli", Text, NO_PLACEMENT, "placement identifiers for the data";
    "plid_select" | "fdp_pli_select", Text, NO_PLACEMENT, "how to choose the next placement identifier";
    "dp_scheme", Text, NO_PLACEMENT, "file that maps offsets to placement identifiers";
    "kb_base", Choice(&["1024", "1000"]), Honoured, "1024: k is 1024 and ki is 1000; 1000: k is 1000 and ki is 1024";
    "unit_base", Choice(&["0", "8", "1"]), Treatment::none("changes only fio's own output"),
        "whether fio's output uses bytes or bits";
}

options! {
    /// Sizes of the I/Os.
    BLOCKS, Io, &[];
    "bs" | "blocksize", Numbers(Unit::Bytes, 1, INT_MAX), Honoured, "size of each I/O";
    "bsrange" | "blocksize_range", Ranges(Unit::Bytes), Honoured, "range of block sizes; each I/O gets a random size \
        from this range";
    "bssplit", Split, Honoured, "block sizes, and the share of each size";
    "bs_unaligned" | "blocksize_unaligned", Flag, Honoured, "do not round sizes to multiples of the smallest size";
    "bs_is_seq_rand", Bool, Honoured,
        "use the first size for sequential I/Os and the second size for random I/Os, instead of one size for reads \
         and one size for writes";
    "ba" | "blockalign", Numbers(Unit::Bytes, 1, INT_MAX), Honoured, "alignment: random offsets are multiples \
     of this size";
}

options! {
    /// Size and place of the region.
    REGION, Io, &[];
    "size", Size, Honoured, "size of the region for I/O, in all files together";
    "io_size" | "io_limit", Size, Honoured, "bytes to read or write in one loop";
    "offset" | "fileoffset", Size, Honoured, "where the region begins";
    "offset_increment", Size, Honoured, "distance between the start offsets of the copies of the job";
    "offset_align", BYTES, Honoured, "round up an offset in % to a multiple of this size";
    "number_ios", Number(Unit::Count, 0, BYTES_MAX), Honoured, "end the job after this number of I/Os";
    "loops", COUNT, Honoured, "how many times to do the whole job";
    "num_range", COUNT_1, Treatment::unless(&["1"], "iosched does not model a trim of several ranges",
        "use a larger bs"),
        "number of ranges in one trim";
}

options! {
    /// Places of random I/Os.
    RANDOM, Io, &[];
    "randrepeat", Bool, Honoured,
        "use the same random offsets in every run. Without this option, the runs of a comparison have different \
        offsets";
    "allrandrepeat", Bool, Honoured, "use the same random numbers for everything in every run";
    "randseed", Number(Unit::Count, 0, u64::MAX), Honoured, "seed of the random numbers";
    "norandommap", Flag, Honoured,
        "do not remember the used blocks. The job then uses some blocks twice, and other blocks never";
    "softrandommap", Bool, Honoured, "if there is no memory for the map of used blocks, continue as with norandommap";
    "random_generator", Choice(&["tausworthe", "lfsr", "tausworthe64"]), Honoured, "generator of \
        random offsets";
    "random_distribution", Distribution, Honoured, "how often the job chooses each block";
    "random_sequence_stride", BYTES, Treatment::With("random_distribution"), "distance from one block of a \
     sequence to the next";
    "percentage_random", Numbers(Unit::Count, 0, 100), Honoured,
        "in a random workload, the share of I/Os that have a random offset, in %";
    "sprandom", Bool, Treatment::unless(&["0"],
        "iosched does not model the preconditioning of over-provisioned flash", "use rw=randwrite with loops=2"),
        "write the whole device once, and a part of it twice";
    "spr_op", Text, Treatment::With("sprandom"), "over-provisioning of the device";
    "spr_num_regions", COUNT, Treatment::With("sprandom"), "number of regions; the job writes one region after another";
    "spr_cs", BYTES, Treatment::With("sprandom"), "size of the device's cache";
}

options! {
    /// Durability of writes.
    DURABILITY, Io, &[];
    "sync", Choice(&["none", "0", "sync", "1", "dsync"]), Honoured,
        "start the next write only when the last write is on the medium";
    "fsync", COUNT, Honoured, "number of writes between two fsyncs";
    "fdatasync", COUNT, Honoured, "number of writes between two fdatasyncs";
    "write_barrier", COUNT, Honoured, "every Nth write is a barrier";
    "sync_file_range", SyncFileRange, Honoured, "number of writes between two sync_file_ranges";
    "end_fsync", Bool, Honoured, "call fsync at the end";
    "fsync_on_close", Bool, Honoured, "call fsync when a file is closed";
}

options! {
    /// Number of I/Os in flight.
    DEPTH, Depth, &[];
    "iodepth", COUNT_1, Honoured, "number of I/Os in flight";
    "iodepth_batch" | "iodepth_batch_submit", COUNT, Honoured,
        "number of I/Os to submit together; 0: the same number as iodepth";
    "iodepth_batch_complete_min" | "iodepth_batch_complete", COUNT, Honoured, "smallest number of completions \
     to wait for; 0: do not wait";
    "iodepth_batch_complete_max", COUNT, Honoured, "largest number of completions to collect together";
    "iodepth_low", COUNT, Honoured, "after the queue was full, wait until fewer I/Os than this number are in flight";
    "serialize_overlap", Bool, Treatment::unless(&["0"],
        "in iosched, no I/O waits for another I/O to the same blocks", "leave out norandommap; the random map then \
             prevents several I/Os to the same blocks"),
        "let an I/O wait for an earlier I/O to the same blocks";
    "io_submit_mode", Choice(&["inline", "offload"]), Honoured, "whether separate threads submit the I/Os";
}
