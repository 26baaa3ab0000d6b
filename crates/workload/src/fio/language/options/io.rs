//! Options of I/Os: directions, sizes, places, durability and depth.

use super::ValueKind::{
    Bool, Choice, Distribution, Flag, Number, Numbers, Pattern, Ranges, Size, Split, SyncFileRange, Text,
};
use super::{BYTES, COUNT, COUNT_1, Category, INT_MAX, JobOption, PERCENT, Treatment, Unit, options};
use Treatment::Honoured;

/// The largest number of bytes.
const BYTES_MAX: u64 = i64::MAX as u64;

const NO_PLACEMENT: Treatment = Treatment::none("the modelled devices take no hints");

options! {
    /// Directions: reads, writes, trims.
    DIRECTION, Io, &[];
    "rw" | "readwrite", Pattern, Honoured, "direction and pattern; :N skips N bytes, or keeps a \
                                            random offset for N I/Os";
    "rw_sequencer", Choice(&["sequential", "identical"]), Honoured, "offsets of the N I/Os after a random one: \
        sequential or identical";
    "rwmixread", PERCENT, Honoured, "share of reads in a mix";
    "rwmixwrite", PERCENT, Honoured, "share of writes in a mix";
    "ioengine", super::ValueKind::Engine, Honoured, "method of I/O";
    "direct", Bool, Honoured, "bypass the page cache";
    "buffered", Bool, Honoured, "use the page cache; the opposite of direct";
    "atomic", Bool, Treatment::unless(&["0"], "atomic writes are not modelled", "direct=1 does the same I/Os"), "writes are atomic";
    "write_hint", Choice(&["none", "short", "medium", "long", "extreme"]), Treatment::none("the modelled devices take no hints"), "expected \
        lifetime of data";
    "fdp", Bool, NO_PLACEMENT, "place data by its expected lifetime";
    "dataplacement", Choice(&["none", "fdp", "streams"]), NO_PLACEMENT, "how data is placed";
    "plids" | "fdp_pli", Text, NO_PLACEMENT, "places data goes to";
    "plid_select" | "fdp_pli_select", Text, NO_PLACEMENT, "which place comes next";
    "dp_scheme", Text, NO_PLACEMENT, "file that maps offsets to places";
    "kb_base", Choice(&["1024", "1000"]), Honoured, "whether k is 1024 and ki is 1000, or the other way round";
    "unit_base", Choice(&["0", "8", "1"]), Treatment::none("affects only fio's own output"), "bytes or bits in fio's output";
}

options! {
    /// Sizes of the I/Os.
    BLOCKS, Io, &[];
    "bs" | "blocksize", Numbers(Unit::Bytes, 1, INT_MAX), Honoured, "size of each I/O";
    "bsrange" | "blocksize_range", Ranges(Unit::Bytes), Honoured, "range of block sizes; each I/O gets a random size \
        from this range";
    "bssplit", Split, Honoured, "block sizes, and the share of each";
    "bs_unaligned" | "blocksize_unaligned", Flag, Honoured, "sizes are not rounded to the smallest one";
    "bs_is_seq_rand", Bool, Honoured, "use the size for reads for sequential I/Os, and the size for writes for \
        random I/Os";
    "ba" | "blockalign", Numbers(Unit::Bytes, 1, INT_MAX), Honoured, "alignment: random offsets are multiples \
     of this size";
}

options! {
    /// Size and place of the region.
    REGION, Io, &[];
    "size", Size, Honoured, "size of the region for I/O, over all files";
    "io_size" | "io_limit", Size, Honoured, "how much is read or written in one loop";
    "offset" | "fileoffset", Size, Honoured, "where the region begins";
    "offset_increment", Size, Honoured, "distance between the start offsets of the copies of the job";
    "offset_align", BYTES, Honoured, "an offset in percent is rounded up to a multiple of this size";
    "number_ios", Number(Unit::Count, 0, BYTES_MAX), Honoured, "end after this number of I/Os";
    "loops", COUNT, Honoured, "how often everything is done";
    "num_range", COUNT_1, Treatment::unless(&["1"], "a trim of several ranges is not modelled", "use a larger bs"), "ranges of one trim";
}

options! {
    /// Places of random I/Os.
    RANDOM, Io, &[];
    "randrepeat", Bool, Honoured, "the same random offsets in every run; without this option, the runs of a \
     comparison differ";
    "allrandrepeat", Bool, Honoured, "the same random numbers for everything in every run";
    "randseed", Number(Unit::Count, 0, u64::MAX), Honoured, "seed of the random numbers";
    "norandommap", Flag, Honoured, "choose blocks without remembering them; some blocks occur twice, others never";
    "softrandommap", Bool, Honoured, "work like norandommap if there is no memory for the map of blocks";
    "random_generator", Choice(&["tausworthe", "lfsr", "tausworthe64"]), Honoured, "generator of \
        random offsets";
    "random_distribution", Distribution, Honoured, "how often each block is chosen";
    "random_sequence_stride", BYTES, Treatment::With("random_distribution"), "distance from one block of a \
     sequence to the next";
    "percentage_random", Numbers(Unit::Count, 0, 100), Honoured, "share of I/Os with a random offset in a random workload";
    "sprandom", Bool, Treatment::unless(&["0"], "preconditioning of over-provisioned flash is not modelled", "rw=randwrite with loops=2"), "write \
        everything once, and a part of it twice";
    "spr_op", Text, Treatment::With("sprandom"), "over-provisioning of the device";
    "spr_num_regions", COUNT, Treatment::With("sprandom"), "regions that are written one after another";
    "spr_cs", BYTES, Treatment::With("sprandom"), "cache of the device";
}

options! {
    /// Durability of writes.
    DURABILITY, Io, &[];
    "sync", Choice(&["none", "0", "sync", "1", "dsync"]), Honoured, "each write reaches the medium before the \
     next one starts";
    "fsync", COUNT, Honoured, "number of writes between two fsyncs";
    "fdatasync", COUNT, Honoured, "number of writes between two fdatasyncs";
    "write_barrier", COUNT, Honoured, "every Nth write is a barrier";
    "sync_file_range", SyncFileRange, Honoured, "number of writes between two sync_file_ranges";
    "end_fsync", Bool, Honoured, "an fsync at the end";
    "fsync_on_close", Bool, Honoured, "an fsync when a file is closed";
}

options! {
    /// Number of I/Os in flight.
    DEPTH, Depth, &[];
    "iodepth", COUNT_1, Honoured, "number of I/Os in flight";
    "iodepth_batch" | "iodepth_batch_submit", COUNT, Honoured, "number of I/Os to submit together; 0: as many \
     as iodepth";
    "iodepth_batch_complete_min" | "iodepth_batch_complete", COUNT, Honoured, "smallest number of completions \
     to wait for; 0: do not wait";
    "iodepth_batch_complete_max", COUNT, Honoured, "largest number of completions to collect together";
    "iodepth_low", COUNT, Honoured, "when the queue was full, wait until fewer I/Os than this are in flight";
    "serialize_overlap", Bool, Treatment::unless(&["0"], "I/Os to the same blocks do not wait for each other", "leave \
        out norandommap, because the random map prevents such I/Os"), "I/Os to the same blocks wait for each other";
    "io_submit_mode", Choice(&["inline", "offload"]), Honoured, "whether other threads submit I/Os";
}
