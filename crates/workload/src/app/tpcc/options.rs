//! tpcc's operands, and the sources of their defaults.
//!
//! The published experiment used blocks of 4 KiB, and separate disks for data and log. Its rates
//! without CFQ are 53.34 transactions, 310 reads, 109 writes and 249 calls per second. A
//! transaction therefore has 5.8 reads, 2.0 written blocks and 4.7 calls. With the defaults of
//! `miss_pct` and `index_miss_pct`, the mix has these numbers of reads and writes (see the
//! calculation in `transaction`). These defaults are assumed: the number of sessions, the sizes of
//! batches, of dirty memory and of the log, and the CPU times.

use crate::WorkloadError;
use crate::app::About;
use crate::app::command_line::{Given, Line};
use crate::app::option::option;

/// Name and options of the database model.
pub(in crate::app) const ABOUT: About = About {
    name: "tpcc",
    about: "the sessions of a database, which run the transactions of TPC-C; the data is on the first disk, the log on the second",
    options: &[
        option(
            "sessions",
            "N",
            "number of sessions; each runs one transaction after the other without think time; default 64",
        ),
        option("warehouses", "N", "size of the data in units of 100 MiB; default 64"),
        option("seconds", "N", "measured time in seconds; default 120"),
        option("warmup", "N", "warm-up in seconds; default 20"),
        option("miss_pct", "N", "percentage of rows that are not in the cache of the database; default 32"),
        option(
            "index_miss_pct",
            "N",
            "percentage of index leaves that are not in the cache of the database; default 6",
        ),
        option("dbwr_batch", "BLOCKS", "largest number of blocks that the database writer writes together; default 64"),
        option("dirty_blocks", "BLOCKS", "number of dirty blocks at which the database writer starts; default 1000"),
        option(
            "dirty_blocks_max",
            "BLOCKS",
            "number of dirty blocks at which sessions wait for a buffer; default 2000",
        ),
        option(
            "redo_kb",
            "KIB",
            "size of the log of a New-Order transaction, in KiB; default 6. A Payment writes a third of this \
             size, a Delivery four times this size",
        ),
        option(
            "log_mb",
            "MIB",
            "size of each of the two log files, in MiB; a checkpoint occurs when the log changes to the other file; \
             default 32",
        ),
        option("call_us", "US", "CPU time of a call from the client, in us; default 400"),
        option(
            "client_us",
            "US",
            "time between the answer to a call and the next call, in us; this is the time of the network and the \
             client program; default 500",
        ),
        option("touch_us", "US", "CPU time to find a row or an index leaf in the cache, in us; default 10"),
    ],
};

const SECONDS_MAX: u64 = 1_000_000;

/// Parsed options of tpcc.
#[derive(Clone, Debug)]
pub(in crate::app) struct TpccOptions {
    pub(super) sessions: usize,
    pub(super) warehouses: u64,
    pub(super) seconds: u64,
    pub(super) warmup_s: u64,
    pub(super) miss_pct: u64,
    pub(super) index_miss_pct: u64,
    pub(super) batch: usize,
    pub(super) dirty_blocks: usize,
    pub(super) dirty_blocks_max: usize,
    pub(super) redo_bytes: u64,
    pub(super) log_bytes: u64,
    /// Times of the server, and of client and network, per call, ns.
    server_ns: u64,
    client_ns: u64,
    pub(super) touch_ns: u64,
}

impl TpccOptions {
    /// Returns the space that the data file and the two log files take, bytes.
    pub(in crate::app) const fn file_bytes(&self) -> u64 {
        (self.warehouses * super::WAREHOUSE_BYTES).saturating_add(super::LOGS.len() as u64 * self.log_bytes)
    }

    /// Returns the number of sessions plus two: the database writer and the log writer.
    pub(in crate::app) const fn task_count(&self) -> usize {
        self.sessions + 2
    }

    /// Returns the time of a call, without the time for its rows, ns.
    pub(super) const fn call_ns(&self) -> u64 {
        self.server_ns + self.client_ns
    }

    pub(in crate::app) fn parse(line: &Line<'_>) -> Result<Self, WorkloadError> {
        let given = line.operands(line.arguments(), ABOUT.options, &[])?;
        let number = |name: &'static str, default: &'static str, least: u64, most: u64| {
            let value = given.iter().find(|given| given.name == name).map_or(default, |given| given.value);
            line.number(Given { name, value }, least, most)
        };
        let options = Self {
            sessions: number("sessions", "64", 1, 10_000)? as usize,
            warehouses: number("warehouses", "64", 1, 100_000)?,
            seconds: number("seconds", "120", 1, SECONDS_MAX)?,
            warmup_s: number("warmup", "20", 0, SECONDS_MAX)?,
            miss_pct: number("miss_pct", "32", 0, 100)?,
            index_miss_pct: number("index_miss_pct", "6", 0, 100)?,
            batch: number("dbwr_batch", "64", 1, 1_024)? as usize,
            dirty_blocks: number("dirty_blocks", "1000", 1, 10_000_000)? as usize,
            dirty_blocks_max: number("dirty_blocks_max", "2000", 1, 10_000_000)? as usize,
            redo_bytes: number("redo_kb", "6", 1, 1_024)? << 10,
            log_bytes: number("log_mb", "32", 1, 1 << 20)? << 20,
            server_ns: number("call_us", "400", 0, 1_000_000)? * 1_000,
            client_ns: number("client_us", "500", 0, 1_000_000)? * 1_000,
            touch_ns: number("touch_us", "10", 0, 1_000_000)? * 1_000,
        };
        let least = options.dirty_blocks + options.batch;
        if options.dirty_blocks_max < least {
            let problem = format!(
                "the value is too small, because the database writer starts only at {} dirty blocks",
                options.dirty_blocks
            );
            return Err(line.error("dirty_blocks_max", problem, format!("write at least {least}")));
        }
        if options.call_ns() == 0 && options.touch_ns == 0 && options.miss_pct + options.index_miss_pct == 0 {
            return Err(line.error(
                "call_us",
                "a transaction would take no time, and the run would never end",
                "write at least 1",
            ));
        }
        Ok(options)
    }
}
