//! Order of the records in each test.

use crate::app::permutation::Permutation;

/// Distance between consecutive records of a strided read, records.
const STRIDE_RECORDS: u64 = 17;
/// Seed of the order of the random tests. As in the original, the order is the same in all runs.
const ORDER_SEED: u64 = 0x1020_3040;

/// A test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Test {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
    BackwardsRead,
    RecordRewrite,
    StridedRead,
    Fwrite,
    Frewrite,
    Fread,
    Freread,
}

use Test::{
    BackwardsRead, Fread, Freread, Frewrite, Fwrite, RandomRead, RandomWrite, Read, RecordRewrite, Reread, Rewrite,
    StridedRead, Write,
};

/// Tests that each number of `-i` selects, in the order in which they run.
pub(super) const GROUPS: &[&[Test]] = &[
    &[Write, Rewrite],
    &[Read, Reread],
    &[RandomRead, RandomWrite],
    &[BackwardsRead],
    &[RecordRewrite],
    &[StridedRead],
    &[Fwrite, Frewrite],
    &[Fread, Freread],
];

impl Test {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Write => "write",
            Rewrite => "rewrite",
            Read => "read",
            Reread => "reread",
            RandomRead => "random_read",
            RandomWrite => "random_write",
            BackwardsRead => "backwards_read",
            RecordRewrite => "record_rewrite",
            StridedRead => "strided_read",
            Fwrite => "fwrite",
            Frewrite => "frewrite",
            Fread => "fread",
            Freread => "freread",
        }
    }

    /// Returns whether the test begins with an empty file.
    pub(super) const fn makes_file(self) -> bool {
        matches!(self, Write | Fwrite)
    }

    pub(super) const fn writes(self) -> bool {
        matches!(self, Write | Rewrite | RandomWrite | RecordRewrite | Fwrite | Frewrite)
    }

    /// Returns whether the test repeats the previous test.
    pub(super) const fn repeats(self) -> bool {
        matches!(self, Rewrite | Reread | Frewrite | Freread)
    }

    /// Returns whether the test uses stdio. The buffer of stdio is as large as a record. Therefore
    /// each record is a separate system call, as without stdio.
    pub(super) const fn is_stdio(self) -> bool {
        matches!(self, Fwrite | Frewrite | Fread | Freread)
    }
}

/// Consecutive records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First record.
    pub(super) record: u64,
    /// Number of records.
    pub(super) count: u64,
}

/// The order of a test's records.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    test: Test,
    records: u64,
    order: Permutation,
}

impl Pattern {
    pub(super) fn new(test: Test, records: u64) -> Self {
        Self { test, records, order: Permutation::new(records, ORDER_SEED) }
    }

    /// Returns the records from position `at` on. `at` must be below the number of records.
    pub(super) fn run(&self, at: u64) -> Run {
        let record = match self.test {
            Write | Rewrite | Read | Reread | Fwrite | Frewrite | Fread | Freread => {
                return Run { record: at, count: self.records - at };
            }
            RandomRead | RandomWrite => self.order.at(at),
            BackwardsRead => self.records - 1 - at,
            RecordRewrite => 0,
            StridedRead => self.strided(at),
        };
        Run { record, count: 1 }
    }

    /// Returns the record at position `at` of a strided read. The reads pass over the file several
    /// times: the first pass starts at record 0, the second pass at record 1, and so on. If the
    /// number of records is not a multiple of the stride, the first passes have one record more
    /// than the other passes.
    const fn strided(&self, at: u64) -> u64 {
        let (short, longer) = (self.records / STRIDE_RECORDS, self.records % STRIDE_RECORDS);
        let in_longer = longer * (short + 1);
        if at < in_longer {
            return at / (short + 1) + at % (short + 1) * STRIDE_RECORDS;
        }
        let at = at - in_longer;
        longer + at / short + at % short * STRIDE_RECORDS
    }
}
