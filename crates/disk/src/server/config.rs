//! Parameters of the `server` model.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, is_default, within};
use crate::credits::CreditsConfig;
use crate::distribution::{self, QuantilePoint};
use crate::rest::RestConfig;

/// Most servers.
const SERVERS_MAX: u32 = 4096;
/// Most turns that are missed: somebody is served soon.
const MISSED_SHARE_MAX: f64 = 0.9;
const SECOND_NS: u64 = 1_000_000_000;
const RATE_MIN: u64 = 10_000;
const RATE_MAX: u64 = 1_000_000_000_000;

/// Parameters of [`Server`](super::Server).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Commands it takes at once, 1 to 65,535.
    pub depth: u32,
    /// Hardware queues it takes them from, 1 to 1,024; 1 if absent.
    #[serde(default = "one_queue")]
    pub hw_queues: u16,
    /// Largest command in KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether it says of itself that seeking costs. Virtual disks do whether it is so or not, and elevators heed it.
    #[serde(default)]
    pub rotational: bool,
    /// Whether it says that it has a volatile cache.
    #[serde(default)]
    pub write_cache: bool,
    /// Whether the host may ask for force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Commands it works on at once, 1 to 4,096.
    pub servers: u32,
    /// How many of them work on writes at once, at least 1; all, if absent. Not together with `batch`.
    #[serde(default)]
    pub write_servers: Option<u32>,
    /// A free server takes any of so many commands that have waited longest, at least 1; 1, as if absent: the one that
    /// has. Threads that wait for one lock are served like that.
    #[serde(default = "one")]
    pub choice: u32,
    /// Whether turns are missed; never if absent.
    #[serde(default)]
    pub missed_turns: Option<ServerMissedTurns>,
    /// Whether servers take several commands at once, which come back together; each for itself if absent.
    #[serde(default)]
    pub batch: Option<ServerBatch>,
    /// Commands are served in pieces of so many sectors, 8 to 65,536, one after the other or by several servers; whole
    /// if absent.
    #[serde(default)]
    pub piece_sectors: Option<u32>,
    /// Rate of the link that all servers share, in bytes per second, 10,000 to a trillion; without limit if absent.
    #[serde(default)]
    pub link_bytes_per_second: Option<u64>,
    /// What a flush takes of a server, in ns, up to a thousand seconds; nothing but its way there and back if absent.
    #[serde(default)]
    pub flush_ns: u64,
    /// What a read takes.
    pub read: ServerTimes,
    /// What everything else takes; as a read if absent.
    #[serde(default)]
    pub write: Option<ServerTimes>,
    /// What a read takes that begins where none of the last 64 commands ended; as any read if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_read: Option<ServerTimes>,
    /// Likewise everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_write: Option<ServerTimes>,
    /// When it does nothing for a while; never if absent.
    #[serde(default)]
    pub stalls: Option<ServerStalls>,
    /// What a rest costs; nothing if absent.
    #[serde(default)]
    pub rest: Option<RestConfig>,
    /// What commands are paid for with before they wait for a server; nothing if there are none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub credits: Vec<CreditsConfig>,
}

/// How turns are missed: a thread that is woken for a lock finds it taken and waits anew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerMissedTurns {
    /// Share of turns that are missed, 0 to 0.9. Whose turn it is is decided as if there were no misses.
    pub share: f64,
    /// Who misses it stands behind so many commands, as far as there are as many, 1 to 65,535.
    pub behind: u32,
}

/// How commands are taken together: who works for a virtual disk is woken by the first, takes all that is there by then
/// one after the other, and tells of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerBatch {
    /// Most pieces that a server takes at once, 1 to 65,535.
    pub commands: u32,
    /// Time from the first that waits, while a server is free, until they are taken, in ns, 1 to a thousand seconds.
    /// What comes meanwhile is taken with it, and so is what a program sends on the return of those before.
    pub gather_ns: u64,
}

/// What a command takes, in ns, up to a thousand seconds each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTimes {
    /// Its way there and back, which keeps no server busy.
    pub transit_ns: u64,
    /// Each of its pieces keeps a server busy.
    pub service_ns: u64,
    /// And that much longer for its data: rate of one server, in bytes per second, 10,000 to a trillion; no longer if
    /// absent.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// How much of `extra` keeps a server busy, 0 to 1; the rest belongs to the way. Of commands that are taken
    /// together, that of the first holds for all.
    #[serde(default)]
    pub extra_in_service: f64,
    /// What a command takes beyond that, by share of all commands: drawn for each anew, on straight lines between these
    /// points. The first has share 0, the last 1; nothing if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<QuantilePoint>,
}

/// Times in which nothing goes on: whoever works for the device, or the host itself, is not given a processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStalls {
    /// Time between two of them, on average, in ns, 1,000 to a thousand seconds; evenly distributed up to twice that.
    pub every_ns: u64,
    /// How long they are, as [`ServerTimes::extra`]; at least the first point and the last.
    pub length: Vec<QuantilePoint>,
}

const fn one_queue() -> u16 {
    1
}

const fn one() -> u32 {
    1
}

impl ServerConfig {
    /// Checks every parameter.
    ///
    /// # Errors
    /// Names the first that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("server.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("server.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("server.hw_queues", self.hw_queues, 1..=1024)?;
        within("server.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("server.servers", self.servers, 1..=SERVERS_MAX)?;
        within("server.write_servers", self.write_servers.unwrap_or(1), 1..=SERVERS_MAX)?;
        if self.write_servers.is_some() && self.batch.is_some() {
            let problem = "servers take several commands at once, be they reads or writes";
            return Err(ConfigError::new("server.write_servers", problem, "leave it away, or the table server.batch"));
        }
        CreditsConfig::validate("server.credits", &self.credits)?;
        self.rest.as_ref().map_or(Ok(()), |rest| rest.validate("server.rest"))?;
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
                let remedy =
                    "it has the shortest (share 0) and the longest (share 1), or there is no table server.stalls";
                return Err(ConfigError::new("server.stalls.length", "it is empty", remedy));
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
