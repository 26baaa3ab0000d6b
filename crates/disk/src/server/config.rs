//! Parameters of the `server` model.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, is_default, within};
use crate::credits::CreditsConfig;
use crate::distribution::{self, QuantilePoint};
use crate::rest::RestConfig;

/// Largest number of servers.
const SERVERS_MAX: u32 = 4096;
/// Largest share of missed turns. The limit ensures that a command does not wait for too long.
const MISSED_SHARE_MAX: f64 = 0.9;
const SECOND_NS: u64 = 1_000_000_000;
const RATE_MIN: u64 = 10_000;
const RATE_MAX: u64 = 1_000_000_000_000;

/// Parameters of a [`Server`](super::Server), as in a profile of this model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Number of commands that the device takes at the same time, 1 to 65,535.
    pub depth: u32,
    /// Number of hardware queues, 1 to 1,024; 1 if absent.
    #[serde(default = "one_queue")]
    pub hw_queues: u16,
    /// Number of commands that the device fetches from its hardware queues, 1 to 65,535. If absent,
    /// it is `depth`. Other commands wait in their queues. When a command ends, the device fetches
    /// another command, from each queue in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_slots: Option<u32>,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether the device reports that it is rotational. Virtual disks can report this wrongly, and
    /// schedulers depend on it.
    #[serde(default)]
    pub rotational: bool,
    /// Whether the device reports a volatile cache.
    #[serde(default)]
    pub write_cache: bool,
    /// Whether the host can use force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Number of commands that the device executes at the same time, 1 to 4,096.
    pub servers: u32,
    /// Number of servers that can execute writes at the same time, at least 1; all if absent. This
    /// cannot be combined with `batch`.
    #[serde(default)]
    pub write_servers: Option<u32>,
    /// Number of commands among which a free server chooses at random, at least 1. These are the
    /// commands that have waited longest. With 1, the default, the server takes the command that
    /// has waited longest. Larger values describe threads that wait for a lock.
    #[serde(default = "one")]
    pub choice: u32,
    /// Parameters of missed turns. If absent, no command misses its turn.
    #[serde(default)]
    pub missed_turns: Option<ServerMissedTurns>,
    /// Batches of commands that a server takes together and that complete together. If absent, each
    /// command is served separately.
    #[serde(default)]
    pub batch: Option<ServerBatch>,
    /// Size of the pieces in which commands are served, sectors, 8 to 65,536. One server can serve
    /// the pieces of a command in sequence, or several servers can share them. If absent, commands
    /// are not split.
    #[serde(default)]
    pub piece_sectors: Option<u32>,
    /// Rate of the link that all servers share, bytes per second, 10,000 to a trillion; no limit if
    /// absent.
    #[serde(default)]
    pub link_bytes_per_second: Option<u64>,
    /// Service time of a flush, ns, up to a thousand seconds. If absent, a flush takes only the
    /// transit time.
    #[serde(default)]
    pub flush_ns: u64,
    /// Times of a read.
    pub read: ServerTimes,
    /// Times of all other commands. If absent, the times of `read` apply.
    #[serde(default)]
    pub write: Option<ServerTimes>,
    /// Times of a read that continues none of the last 64 commands. If absent, the times of `read`
    /// apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_read: Option<ServerTimes>,
    /// Times of other commands that continue none of the last 64 commands. If absent, the times of
    /// `write` apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_write: Option<ServerTimes>,
    /// Stalls of the device; none if absent.
    #[serde(default)]
    pub stalls: Option<ServerStalls>,
    /// Settling of written data, which lets some reads wait; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<ServerSettling>,
    /// Cost of the first command after a rest; none if absent.
    #[serde(default)]
    pub rest: Option<RestConfig>,
    /// Buckets of credits that commands need before they wait for a server; none if empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub credits: Vec<CreditsConfig>,
}

/// Missed turns: a thread that is woken for a lock finds the lock taken, and waits again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerMissedTurns {
    /// Share of missed turns, 0 to 0.9. Misses do not affect the choice of the next command.
    pub share: f64,
    /// Number of commands that precede a command after it has missed its turn, 1 to 65,535. If
    /// fewer commands wait, all of them precede it.
    pub behind: u32,
}

/// Batches of commands. The first command wakes the thread that serves a virtual disk. The thread
/// then executes all commands that have arrived, one after another, and completes them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerBatch {
    /// Largest number of pieces that a server takes together, 1 to 65,535.
    pub commands: u32,
    /// Time that a free server waits after the first command before the server takes the batch, ns.
    /// The value is at least 1 ns and at most 1000 s. Commands that arrive in this time are part of
    /// the batch. Examples are commands that a program submits after the completion of the previous
    /// batch.
    pub gather_ns: u64,
}

/// Times of a command, ns, up to a thousand seconds each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTimes {
    /// Time for the transit to the device and back. No server is busy in this time.
    pub transit_ns: u64,
    /// Service time of each piece, in which a server is busy.
    pub service_ns: u64,
    /// Rate of one server, bytes per second, 10,000 to a trillion. The time for the data at this
    /// rate is added to the service time. If absent, no time is added.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Part of `extra` in which a server is busy, 0 to 1. The rest is transit time. In a batch,
    /// only the `extra` of the first command counts.
    #[serde(default)]
    pub extra_in_service: f64,
    /// Distribution of the additional time. Each command draws a value, with linear interpolation
    /// between the points. The first share is 0 and the last is 1. If empty, there is no additional
    /// time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<QuantilePoint>,
}

/// Times in which the device does nothing, because its thread or its host gets no processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStalls {
    /// Mean time between two stalls, ns, 1,000 to a thousand seconds. The times between stalls are
    /// uniformly distributed from 0 to twice the mean.
    pub every_ns: u64,
    /// Distribution of the length of a stall, as in [`ServerTimes::extra`], with at least the first
    /// and the last point.
    pub length: Vec<QuantilePoint>,
}

/// Settling of written data. An SSD accepts writes immediately and settles the data in its flash
/// later. While it does, a few parts of the flash are occupied for a long time, and reads of these
/// parts wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettling {
    /// Rate at which the device settles written data, bytes per second, 1 to a trillion.
    pub bytes_per_second: u64,
    /// Share of the reads that meet an occupied part while the device settles data, 0 to 1.
    pub share: f64,
    /// Longest occupation of a part, ns, up to a thousand seconds. The wait of a read that meets an
    /// occupied part is uniformly distributed from 0 to this time.
    pub longest_ns: u64,
    /// Largest time that the device needs to settle all data that is not settled yet, ns, up to a
    /// thousand seconds. Further writes do not make this time longer.
    pub behind_ns: u64,
}

const fn one_queue() -> u16 {
    1
}

const fn one() -> u32 {
    1
}

impl ServerConfig {
    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("server.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("server.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("server.hw_queues", self.hw_queues, 1..=1024)?;
        within("server.command_slots", self.command_slots.unwrap_or(1), 1..=config::DEPTH_MAX)?;
        within("server.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("server.servers", self.servers, 1..=SERVERS_MAX)?;
        within("server.write_servers", self.write_servers.unwrap_or(1), 1..=SERVERS_MAX)?;
        if self.write_servers.is_some() && self.batch.is_some() {
            let problem = "with the table server.batch, the same servers serve reads and writes";
            return Err(ConfigError::new(
                "server.write_servers",
                problem,
                "leave out this field or the table server.batch",
            ));
        }
        CreditsConfig::validate("server.credits", &self.credits)?;
        self.rest.as_ref().map_or(Ok(()), |rest| rest.validate("server.rest"))?;
        if let Some(settling) = &self.settling {
            within("server.settling.bytes_per_second", settling.bytes_per_second, 1..=RATE_MAX)?;
            within("server.settling.share", settling.share, 0.0..=1.0)?;
            within("server.settling.longest_ns", settling.longest_ns, 0..=config::LATENCY_NS_MAX)?;
            within("server.settling.behind_ns", settling.behind_ns, 0..=config::LATENCY_NS_MAX)?;
        }
        within("server.choice", self.choice, 1..=config::DEPTH_MAX)?;
        if let Some(missed) = &self.missed_turns {
            within("server.missed_turns.share", missed.share, 0.0..=MISSED_SHARE_MAX)?;
            within("server.missed_turns.behind", missed.behind, 1..=config::DEPTH_MAX)?;
        }
        if let Some(batch) = &self.batch {
            within("server.batch.commands", batch.commands, 1..=config::DEPTH_MAX)?;
            within("server.batch.gather_ns", batch.gather_ns, 1..=config::LATENCY_NS_MAX)?;
        }
        within("server.piece_sectors", self.piece_sectors.unwrap_or(8), 8..=65_536)?;
        validate_rate("server.link_bytes_per_second", self.link_bytes_per_second)?;
        within("server.flush_ns", self.flush_ns, 0..=config::LATENCY_NS_MAX)?;
        self.read.validate("server.read")?;
        let others = [("write", &self.write), ("random_read", &self.random_read), ("random_write", &self.random_write)];
        for (name, times) in others {
            times.as_ref().map_or(Ok(()), |times| times.validate(&format!("server.{name}")))?;
        }
        if let Some(stalls) = &self.stalls {
            within("server.stalls.every_ns", stalls.every_ns, 1_000..=1_000 * SECOND_NS)?;
            if stalls.length.is_empty() {
                let remedy = "give at least the shortest time (share 0) and the longest time (share 1), or leave out \
                    the table server.stalls";
                return Err(ConfigError::new("server.stalls.length", "the list is empty", remedy));
            }
            distribution::validate("server.stalls.length", &stalls.length)?;
        }
        Ok(())
    }
}

impl ServerTimes {
    fn validate(&self, table: &str) -> Result<(), ConfigError> {
        let field = |name: &str| format!("{table}.{name}");
        within(&field("transit_ns"), self.transit_ns, 0..=config::LATENCY_NS_MAX)?;
        within(&field("service_ns"), self.service_ns, 0..=config::LATENCY_NS_MAX)?;
        validate_rate(&field("bytes_per_second"), self.bytes_per_second)?;
        within(&field("extra_in_service"), self.extra_in_service, 0.0..=1.0)?;
        distribution::validate(&field("extra"), &self.extra)
    }
}

fn validate_rate(field: &str, rate: Option<u64>) -> Result<(), ConfigError> {
    within(field, rate.unwrap_or(RATE_MIN), RATE_MIN..=RATE_MAX)
}
