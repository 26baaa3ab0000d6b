//! The five transactions: their share in the mix, the rows that they access, and their log records.
//!
//! Rows are as in the TPC-C specification (revision 5, clauses 2.4 to 2.8). The shares are near the
//! minima of the specification (5.2.3). The model leaves out rows of warehouse, district and item,
//! because they are always cached. It leaves out locks, because each session uses different
//! warehouses. On average, a transaction accesses 15.3 rows, each through the leaf of an index, and
//! changes 6.1 of these rows. If 32 % of the rows and 6 % of the leaves are not cached, a
//! transaction makes 5.8 reads, and 2.0 blocks become dirty.

use iosched_numbers::SplitMix64;

/// A part of the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Stock,
    Customer,
    OrderLine,
    Orders,
    Index,
}

impl Table {
    /// Returns the range of the table, in thousandths of the data file. The size of this range is
    /// proportional to the bytes of the table's rows at 100 MiB per warehouse. Indexes occupy about
    /// an eighth of the file.
    pub(super) const fn extent_permille(self) -> (u64, u64) {
        match self {
            Self::Stock => (0, 400),
            Self::Customer => (400, 650),
            Self::OrderLine => (650, 850),
            Self::Orders => (850, 880),
            Self::Index => (880, 1_000),
        }
    }
}

/// Number of rows of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Exactly(u32),
    /// Items of an order: 5 to 15.
    Items,
    /// The two other customers with the same name: 2 rows with a probability of 60 %, otherwise
    /// none. The transaction only reads these rows. It changes only the row of the third customer.
    OthersOfName,
}

/// Access of a transaction to rows of one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) table: Table,
    rows: Rows,
    pub(super) is_update: bool,
}

impl Access {
    const fn read(table: Table, rows: Rows) -> Self {
        Self { table, rows, is_update: false }
    }

    const fn update(table: Table, rows: Rows) -> Self {
        Self { table, rows, is_update: true }
    }

    pub(super) fn rows(&self, rng: &mut SplitMix64) -> u32 {
        match self.rows {
            Rows::Exactly(rows) => rows,
            Rows::Items => 5 + rng.below(11) as u32,
            Rows::OthersOfName => {
                if rng.below(100) < 60 {
                    2
                } else {
                    0
                }
            }
        }
    }
}

/// Type of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// A transaction of the mix.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) kind: Kind,
    /// Share in the mix, per cent.
    share: u64,
    /// Number of calls from the client, including the commit.
    pub(super) calls: u64,
    /// Size of the log records, in thirds of the log records of a New-Order. 0 means that the
    /// transaction only reads and has no commit.
    pub(super) redo_thirds: u64,
    /// Number of transactions of this kind whose added rows fill one new block. 0 means that the
    /// transaction adds no rows.
    pub(super) new_block_one_in: u64,
    pub(super) accesses: &'static [Access],
}

/// Largest number of accesses of a transaction.
pub(super) const ACCESSES_MAX: usize = 4;
const ORDERS_OF_A_DELIVERY: u32 = 10;

/// The five transactions.
pub(super) const MIX: [Transaction; 5] = [
    Transaction {
        kind: Kind::NewOrder,
        share: 45,
        calls: 5,
        redo_thirds: 3,
        new_block_one_in: 6,
        accesses: &[Access::read(Table::Customer, Rows::Exactly(1)), Access::update(Table::Stock, Rows::Items)],
    },
    Transaction {
        kind: Kind::Payment,
        share: 43,
        calls: 5,
        redo_thirds: 1,
        new_block_one_in: 60,
        accesses: &[
            Access::read(Table::Customer, Rows::OthersOfName),
            Access::update(Table::Customer, Rows::Exactly(1)),
        ],
    },
    Transaction {
        kind: Kind::OrderStatus,
        share: 4,
        calls: 3,
        redo_thirds: 0,
        new_block_one_in: 0,
        accesses: &[
            Access::read(Table::Customer, Rows::OthersOfName),
            Access::read(Table::Customer, Rows::Exactly(1)),
            Access::read(Table::Orders, Rows::Exactly(1)),
            Access::read(Table::OrderLine, Rows::Exactly(1)),
        ],
    },
    Transaction {
        kind: Kind::Delivery,
        share: 4,
        calls: 2,
        redo_thirds: 12,
        new_block_one_in: 0,
        accesses: &[
            Access::update(Table::Orders, Rows::Exactly(ORDERS_OF_A_DELIVERY)),
            Access::update(Table::OrderLine, Rows::Exactly(ORDERS_OF_A_DELIVERY)),
            Access::update(Table::Customer, Rows::Exactly(ORDERS_OF_A_DELIVERY)),
        ],
    },
    Transaction {
        kind: Kind::StockLevel,
        share: 4,
        calls: 2,
        redo_thirds: 0,
        new_block_one_in: 0,
        accesses: &[Access::read(Table::Stock, Rows::Exactly(200))],
    },
];

/// Draws the next transaction of the mix.
pub(super) fn draw(rng: &mut SplitMix64) -> &'static Transaction {
    let mut ticket = rng.below(100);
    for transaction in &MIX {
        if ticket < transaction.share {
            return transaction;
        }
        ticket -= transaction.share;
    }
    &MIX[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_transactions_follow_the_mix() {
        assert_eq!(MIX.iter().map(|transaction| transaction.share).sum::<u64>(), 100);
        let mut rng = SplitMix64::new(1);
        for transaction in &MIX {
            let drawn = (0..20_000).filter(|_| draw(&mut rng).kind == transaction.kind).count();
            assert!((drawn as f64 / 200.0 - transaction.share as f64).abs() < 1.0, "{:?}: {drawn}", transaction.kind);
        }
    }

    #[test]
    fn transactions_touch_15_and_change_6_rows_on_average() {
        let mut rng = SplitMix64::new(1);
        let (mut touched, mut changed) = (0.0, 0.0);
        for transaction in &MIX {
            for access in transaction.accesses {
                let rows: u32 = (0..10_000).map(|_| access.rows(&mut rng)).sum();
                let rows = f64::from(rows) / 10_000.0 * transaction.share as f64 / 100.0;
                touched += rows;
                changed += if access.is_update { rows } else { 0.0 };
            }
        }
        assert!((touched - 15.26).abs() < 0.1, "{touched}");
        assert!((changed - 6.13).abs() < 0.1, "{changed}");
    }
}
