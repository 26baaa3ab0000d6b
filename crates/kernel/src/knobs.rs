//! Requested parameters that have no effect, because the present scheduler ignores them or the
//! workload never reaches the limit. iosched shows them to users who changed a parameter and see no
//! difference.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::attribute::{Declaration, declaration};
use iosched::Setting;

/// Properties of a workload's I/O on which the effect of parameters depends.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Demand {
    /// Number of processes that do I/O. `None` if not known.
    pub processes: Option<u32>,
    /// Largest number of I/Os in flight over all processes. `None` if not known.
    pub outstanding_max: Option<u32>,
    /// Whether the workload reads.
    pub reads: bool,
    /// Whether the workload writes.
    pub writes: bool,
    /// Whether some reads use the page cache.
    pub buffered_reads: bool,
    /// Whether some writes use the page cache and reach the device by writeback.
    pub buffered_writes: bool,
    /// Whether the workload flushes, for example by fsync.
    pub flushes: bool,
    /// Whether its processes have different ioprio classes.
    pub classes: bool,
    /// Whether its processes have different ioprio levels.
    pub levels: bool,
    /// Whether its cgroups have different weights.
    pub weights: bool,
}

/// Properties of the device on which the effect of parameters depends.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Supply {
    /// Scheduler of the run.
    pub scheduler: String,
    /// Number of requests that the driver always accepts at once, even if all come to one hardware
    /// queue.
    pub driver_depth: Option<u32>,
}

/// A parameter without effect. Its `Display` is a sentence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inert {
    /// Name of the parameter: an attribute or tunable as in the setting, or `ioprio class`, `ioprio
    /// level` or `weight` of the workload.
    pub knob: String,
    /// Reason why it has no effect.
    pub reason: Reason,
}

/// Reason why a parameter has no effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// The scheduler ignores the parameter.
    Ignored {
        /// Name of the scheduler.
        scheduler: String,
        /// Schedulers that use the parameter.
        by_others: String,
    },
    /// The driver accepts all requests at once, so no request waits in the scheduler, where the
    /// parameter has its effect.
    NothingWaits {
        /// Largest number of I/Os in flight.
        outstanding_max: u32,
        /// Number of requests that the driver accepts.
        driver_depth: u32,
    },
    /// The number of I/Os in flight never exceeds the limit.
    NeverReached {
        /// Largest number of I/Os in flight.
        outstanding_max: u32,
        /// The limit.
        limit: u64,
    },
    /// The workload has no I/O of the kind that the parameter controls.
    Without {
        /// The missing kind of I/O.
        what: String,
    },
    /// The parameter decides between processes, and the workload has only one process.
    Alone,
    /// The parameter already has this value.
    Default {
        /// The value.
        value: String,
    },
    /// io.cost is off. Without it, io.weight has no effect.
    CostOff {
        /// Whether the scheduler is bfq, which uses io.bfq.weight.
        is_bfq: bool,
    },
    /// With the scheduler none, Linux allows at most this number of requests: the queue depth of
    /// the disk.
    AboveDepth {
        /// The queue depth.
        depth: u32,
    },
}

impl fmt::Display for Inert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does nothing: ", self.knob)?;
        match &self.reason {
            Reason::Ignored { scheduler, by_others } => {
                write!(f, "{scheduler} ignores this parameter, but {by_others} would use it")
            }
            Reason::NothingWaits { outstanding_max, driver_depth } => write!(
                f,
                "at most {outstanding_max} I/Os are in flight, and the driver accepts {driver_depth} I/Os, so no I/O \
                 waits in the scheduler"
            ),
            Reason::NeverReached { outstanding_max, limit } => {
                write!(f, "the limit is {limit}, but the workload never has more than {outstanding_max} I/Os in flight")
            }
            Reason::Without { what } => write!(f, "the workload has no {what}"),
            Reason::Alone => {
                f.write_str("this parameter decides between processes, but the workload has only one process")
            }
            Reason::Default { value } => write!(f, "the present value is already {value}"),
            Reason::CostOff { is_bfq: true } => f.write_str(
                "io.cost is off, and bfq uses io.bfq.weight; set io.bfq.weight instead, or add io.cost.qos=enable=1",
            ),
            Reason::CostOff { is_bfq: false } => f.write_str("io.cost is off; add io.cost.qos=enable=1"),
            Reason::AboveDepth { depth } => {
                write!(f, "with none, Linux allows at most {depth} requests, the queue depth of this disk")
            }
        }
    }
}

/// Returns the parameters of `setting` and of the workload that have no effect. Omits parameters
/// that this module does not know.
#[must_use]
pub fn inert(setting: &Setting, supply: &Supply, demand: &Demand) -> Vec<Inert> {
    let of_workload = of_workload(&supply.scheduler, demand);
    let of_setting = setting.assignments().filter_map(|assignment| {
        let reason = of_value(assignment.name(), &assignment.text(), supply, demand)?;
        Some(Inert { knob: assignment.name().to_owned(), reason })
    });
    of_workload.into_iter().chain(of_setting).collect()
}

/// Returns whether a scheduler dispatches a request as soon as the driver accepts it, if all
/// requests have the same ioprio class. bfq does not, because it idles and serves processes in
/// turn. kyber does not, because it has its own limits.
#[must_use]
pub fn hands_on_at_once(scheduler: &str) -> bool {
    ["none", "mq-deadline"].contains(&scheduler)
}

/// Schedulers that serve ioprio classes differently. Sources: Documentation/block/ioprio.rst of
/// Linux 6.12; the documentation of mq-deadline (since 5.14); cfq up to 4.20.
const LOOK_AT_CLASSES: &[&str] = &["mq-deadline", "bfq", "cfq"];
/// Schedulers that use ioprio levels and weights of cgroups.
const LOOK_AT_WEIGHTS: &[&str] = &["bfq", "cfq"];

/// Returns whether a scheduler uses the ioprio class of processes.
#[must_use]
pub fn looks_at_classes(scheduler: &str) -> bool {
    scheduler.starts_with("cfq-") || LOOK_AT_CLASSES.contains(&scheduler)
}

/// Returns whether a scheduler uses the ioprio level of processes.
#[must_use]
pub fn looks_at_levels(scheduler: &str) -> bool {
    scheduler.starts_with("cfq-") || LOOK_AT_WEIGHTS.contains(&scheduler)
}

fn of_workload(scheduler: &str, demand: &Demand) -> Vec<Inert> {
    let ignored = |has_priorities: bool, knob: &str, looks: &[&str], by_others: &str| {
        let reason = Reason::Ignored { scheduler: scheduler.to_owned(), by_others: by_others.to_owned() };
        (has_priorities && !looks.contains(&scheduler)).then(|| Inert { knob: knob.to_owned(), reason })
    };
    let found = [
        ignored(demand.classes, "ioprio class", LOOK_AT_CLASSES, "mq-deadline and bfq"),
        ignored(demand.levels, "ioprio level", LOOK_AT_WEIGHTS, "bfq"),
        ignored(demand.weights, "weight", LOOK_AT_WEIGHTS, "bfq"),
    ];
    found.into_iter().flatten().collect()
}

fn of_value(name: &str, value: &str, supply: &Supply, demand: &Demand) -> Option<Reason> {
    let scheduler = supply.scheduler.as_str();
    let tunable = name.strip_prefix("iosched/").unwrap_or(name);
    let declared = declaration(&format!("iosched/{tunable}"), scheduler);
    if let Some(Declaration::Number(spec)) = declared {
        // The default of async_depth depends on nr_requests, so it can differ from the declared
        // default.
        let is_fixed = tunable != "async_depth";
        if is_fixed && spec.parse(value).ok() == Some(spec.default) {
            return Some(Reason::Default { value: value.to_owned() });
        }
        return of_tunable(scheduler, tunable, value, supply, demand);
    }
    of_attribute(name, value, scheduler, demand)
}

fn without(has: bool, what: &str) -> Option<Reason> {
    (!has).then(|| Reason::Without { what: what.to_owned() })
}

fn never_reached(limit: u64, demand: &Demand) -> Option<Reason> {
    let outstanding_max = demand.outstanding_max.filter(|&most| u64::from(most) <= limit)?;
    Some(Reason::NeverReached { outstanding_max, limit })
}

fn of_tunable(scheduler: &str, tunable: &str, value: &str, supply: &Supply, demand: &Demand) -> Option<Reason> {
    let of_demand = match tunable {
        "read_expire" | "read_lat_nsec" => without(demand.reads, "reads"),
        "write_expire" | "writes_starved" | "write_lat_nsec" => without(demand.writes, "writes"),
        "fifo_expire_async" => without(demand.buffered_writes, "buffered writes"),
        "prio_aging_expire" => without(demand.classes, "different classes of ioprio"),
        "async_depth" => {
            let limit = value.parse().ok().and_then(|limit| never_reached(limit, demand));
            without(demand.writes, "writes").or(limit)
        }
        // Writeback counts as one more process.
        "slice_idle" | "slice_idle_us" | "low_latency" | "max_budget" | "timeout_sync" => {
            (demand.processes == Some(1) && !demand.buffered_writes).then_some(Reason::Alone)
        }
        _ => None,
    };
    of_demand.or_else(|| nothing_waits(scheduler, tunable, supply, demand))
}

/// Returns a reason if mq-deadline sorts no requests. mq-deadline can sort and merge requests only
/// while they wait. Requests of the highest class wait only while the driver accepts no more
/// requests. Returns `None` for other schedulers, because bfq and kyber delay requests themselves.
fn nothing_waits(scheduler: &str, tunable: &str, supply: &Supply, demand: &Demand) -> Option<Reason> {
    let sorts = scheduler == "mq-deadline" && !demand.classes;
    let is_about_order =
        ["read_expire", "write_expire", "fifo_batch", "writes_starved", "front_merges"].contains(&tunable);
    let (outstanding_max, driver_depth) = (demand.outstanding_max?, supply.driver_depth?);
    (sorts && is_about_order && outstanding_max <= driver_depth)
        .then_some(Reason::NothingWaits { outstanding_max, driver_depth })
}

fn of_attribute(name: &str, value: &str, scheduler: &str, demand: &Demand) -> Option<Reason> {
    match name {
        "nr_requests" => {
            // bfq limits some queues to 3/16 of the requests, and kyber limits writes to 3/4.
            let all: u64 = value.parse().ok()?;
            let (share, of) = match scheduler {
                "bfq" => (3, 16),
                "kyber" => (3, 4),
                _ => (1, 1),
            };
            never_reached(
                if demand.writes || scheduler == "bfq" { all.saturating_mul(share) / of } else { all },
                demand,
            )
        }
        "read_ahead_kb" => without(demand.buffered_reads, "buffered reads"),
        "wbt_lat_usec" => without(demand.buffered_writes, "buffered writes"),
        "write_cache" => without(demand.flushes, "flushes"),
        "io_poll" => without(false, "polled I/O"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(setting: &str, depth: u32, demand: Demand) -> Vec<String> {
        let setting = Setting::parse_of_kernel(setting).unwrap();
        let supply = Supply { scheduler: setting.name().to_owned(), driver_depth: Some(depth) };
        inert(&setting, &supply, &demand).iter().map(Inert::to_string).collect()
    }

    const READERS: Demand = Demand {
        processes: Some(2),
        outstanding_max: Some(16),
        reads: true,
        writes: false,
        buffered_reads: false,
        buffered_writes: false,
        flushes: false,
        classes: false,
        levels: false,
        weights: false,
    };

    #[test]
    fn ioprio_does_nothing_under_none_and_kyber() {
        let classes = Demand { classes: true, ..READERS };
        for (scheduler, does_nothing) in [("none", true), ("kyber", true), ("mq-deadline", false), ("bfq", false)] {
            assert_eq!(!reasons(scheduler, 128, classes).is_empty(), does_nothing, "{scheduler}");
        }
        assert_eq!(
            reasons("none", 128, classes),
            ["ioprio class does nothing: none ignores this parameter, but mq-deadline and bfq would use it"]
        );
        let levels = Demand { levels: true, weights: true, ..READERS };
        assert_eq!(reasons("mq-deadline", 128, levels).len(), 2);
        assert!(reasons("bfq", 128, levels).is_empty());
    }

    #[test]
    fn ordering_tunables_do_nothing_without_waiting_requests() {
        let setting = "mq-deadline:fifo_batch=1,iosched/read_expire=50";
        assert_eq!(
            reasons(setting, 128, READERS)[0],
            "fifo_batch does nothing: at most 16 I/Os are in flight, and the driver accepts 128 I/Os, so no I/O \
             waits in the scheduler"
        );
        assert_eq!(reasons(setting, 128, READERS).len(), 2);
        assert!(reasons(setting, 8, READERS).is_empty());
        assert!(reasons(setting, 128, Demand { classes: true, ..READERS }).is_empty(), "lower classes are held back");
        assert!(
            reasons(setting, 128, Demand { outstanding_max: None, ..READERS }).is_empty(),
            "an unknown parameter has no verdict"
        );
        assert!(reasons("bfq:slice_idle=0", 128, READERS).is_empty(), "bfq holds back by itself");
    }

    #[test]
    fn a_limit_that_is_never_reached_does_nothing() {
        assert_eq!(
            reasons("none:nr_requests=64", 128, READERS),
            ["nr_requests does nothing: the limit is 64, but the workload never has more than 16 I/Os in flight"]
        );
        assert!(reasons("none:nr_requests=8", 128, READERS).is_empty());
        assert!(reasons("bfq:nr_requests=64", 128, READERS).is_empty(), "a queue may have 12 of them");
        let writers = Demand { writes: true, ..READERS };
        assert!(reasons("kyber:nr_requests=20", 128, writers).is_empty());
        assert_eq!(reasons("kyber:nr_requests=20", 128, READERS).len(), 1);
        assert_eq!(reasons("mq-deadline:async_depth=32", 4, writers).len(), 1);
        assert!(reasons("mq-deadline:async_depth=8", 4, writers).is_empty());
    }

    #[test]
    fn tunables_for_absent_operations_do_nothing() {
        for (setting, what) in [
            ("mq-deadline:write_expire=1", "writes"),
            ("mq-deadline:writes_starved=9", "writes"),
            ("mq-deadline:prio_aging_expire=1", "different classes of ioprio"),
            ("kyber:write_lat_nsec=1", "writes"),
            ("bfq:fifo_expire_async=1", "buffered writes"),
            ("none:wbt_lat_usec=0", "buffered writes"),
            ("none:read_ahead_kb=0", "buffered reads"),
            ("none:write_cache=write through", "flushes"),
            ("none:io_poll=1", "polled I/O"),
        ] {
            let expected = format!("does nothing: the workload has no {what}");
            assert!(
                reasons(setting, 4, READERS)[0].ends_with(&expected),
                "{setting}: {:?}",
                reasons(setting, 4, READERS)
            );
        }
        assert_eq!(reasons("bfq:low_latency=0", 4, Demand { processes: Some(1), ..READERS }).len(), 1);
        assert!(reasons("bfq:strict_guarantees=1", 4, Demand { processes: Some(1), ..READERS }).is_empty());
    }

    #[test]
    fn default_value_does_nothing_and_unknown_tunable_is_skipped() {
        assert_eq!(
            reasons("bfq:slice_idle=8", 4, READERS),
            ["slice_idle does nothing: the present value is already 8"]
        );
        assert!(reasons("bfq:brand_new=8,nr_requests=x", 4, READERS).is_empty());
    }
}
