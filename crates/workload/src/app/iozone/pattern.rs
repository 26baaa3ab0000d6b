//! Which record comes when, in each of the tests.

use crate::app::permutation::Permutation;

/// Distance between the records of a strided read.
const STRIDE_RECORDS: u64 = 17;
/// The random tests' order is the same in all runs, as in the original.
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

/// The tests that `-i` names by its number, in the order they are done.
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

    /// Whether it begins with an empty file.
    pub(super) const fn makes_file(self) -> bool {
        matches!(self, Write | Fwrite)
    }

    pub(super) const fn writes(self) -> bool {
        matches!(self, Write | Rewrite | RandomWrite | RecordRewrite | Fwrite | Frewrite)
    }

    /// Whether it does again what the test before did.
    pub(super) const fn repeats(self) -> bool {
        matches!(self, Rewrite | Reread | Frewrite | Freread)
    }

    /// Whether it goes through stdio. Its buffer is as large as a record, so that each record is a system call of
    /// its own, as without.
    pub(super) const fn is_stdio(self) -> bool {
        matches!(self, Fwrite | Frewrite | Fread | Freread)
    }
}

/// Records that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first of them.
    pub(super) record: u64,
    /// How many.
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

    /// The records from place `at` on, below the number of records.
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

    /// Rounds over the file: the first one from record 0, the next from record 1 and so on. As many of them as there
    /// are records left over have one record more.
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
