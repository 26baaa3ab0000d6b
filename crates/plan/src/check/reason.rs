//! Says why a goal is missed: a limit, the scheduler, other units, or the device.

use super::Observed;
use super::goal::idle;
use super::unit::Unit;
use crate::goal::{Bound, Goal, Metric, Operation};
use crate::plan::Plan;
use crate::target::Target;

/// Share of a limit at which the limit counts as reached.
const REACHED: f64 = 0.9;
/// Share of the time in use at which a device counts as always busy.
const BUSY: f64 = 0.95;

/// Returns why the unit with the index `number` misses its goal.
pub(super) fn of(goal: &Goal, number: usize, plan: &Plan, units: &[Unit], observed: &Observed) -> String {
    let unit = &units[number];
    let mut parts = Vec::new();
    if !observed.deviations.is_empty() {
        let count = observed.deviations.len();
        parts.push(match count {
            1 => "1 value on the system differs from the plan".to_owned(),
            _ => format!("{count} values on the system differ from the plan"),
        });
    }
    if matches!(goal, Goal::Limit(..) | Goal::Bound(Metric::Throughput | Metric::Iops, Bound::AtMost(_))) {
        parts.push("no setting on the system enforces the limit of the unit".to_owned());
        return parts.join("; ");
    }
    let limit = limit(number, plan, unit, observed);
    let asks_for_rate = matches!(goal, Goal::Bound(Metric::Throughput | Metric::Iops, _));
    match limit {
        Some(limit) => parts.push(limit),
        None if asks_for_rate && unit.in_flight < 0.5 => {
            parts.push(idle(unit));
            return parts.join("; ");
        }
        None => {}
    }
    if let Goal::Bound(Metric::Latency(_, Operation::Write | Operation::Fsync), _) = goal
        && let Some(target) = observed.wbt_lat_usec.filter(|target| *target > 0)
    {
        parts.push(format!("writeback throttling is on (wbt_lat_usec={target}) and may delay writes"));
    }
    if let Some(share) = unit.waited_share {
        let place = if share >= 0.5 { "in the scheduler" } else { "in the device" };
        let part = if share >= 0.5 { share } else { 1.0 - share };
        parts.push(format!("requests spent {:.0} % of their latency {place}", part * 100.0));
    }
    parts.extend(served_meanwhile(number, plan, units, observed));
    parts.extend(load(observed, plan));
    if parts.is_empty() { "iosched did not observe a cause".to_owned() } else { parts.join("; ") }
}

/// Returns the limit of io.max that the unit reaches: its own limit, or the limit of a parent
/// cgroup.
fn limit(number: usize, plan: &Plan, unit: &Unit, observed: &Observed) -> Option<String> {
    let Target::Cgroup(path) = &plan.units[number].target else { return None };
    let seconds = observed.sample.seconds;
    let (read_bytes, write_bytes, reads, writes) = unit.io.map_or_else(
        || (unit.bytes as f64, unit.bytes as f64, unit.ios as f64, unit.ios as f64),
        |io| (io.read_bytes as f64, io.write_bytes as f64, io.reads as f64, io.writes as f64),
    );
    for (name, value) in &observed.controls {
        let Some(group) = name.strip_prefix("cgroup/").and_then(|name| name.strip_suffix("/io.max")) else { continue };
        if group != path && !path.starts_with(&format!("{group}/")) {
            continue;
        }
        for (key, limit) in value.split_whitespace().filter_map(|word| word.split_once('=')) {
            let Ok(limit) = limit.parse::<f64>() else { continue };
            let rate = match key {
                "rbps" => read_bytes,
                "wbps" => write_bytes,
                "riops" => reads,
                "wiops" => writes,
                _ => continue,
            } / seconds;
            if rate >= limit * REACHED {
                return Some(format!(
                    "io.max of {group} limits the unit ({key}={limit}; the measured rate of the unit is {rate:.0} per \
                     second)"
                ));
            }
        }
    }
    None
}

/// Names the unit or cgroup that got most of the device's bytes.
fn served_meanwhile(number: usize, plan: &Plan, units: &[Unit], observed: &Observed) -> Option<String> {
    let disk = &observed.sample.disks.first()?.stat?;
    let all = disk.reads.bytes + disk.writes.bytes;
    if all == 0 {
        return None;
    }
    let percent = |bytes: u64| bytes as f64 / all as f64 * 100.0;
    let others = (0..units.len()).filter(|other| *other != number);
    let most = others.max_by_key(|other| units[*other].all_bytes()).filter(|other| units[*other].all_bytes() > 0);
    let known: u64 = units.iter().map(Unit::all_bytes).sum();
    let outside = percent(all.saturating_sub(known));
    let most = most.map(|other| (plan.units[other].name.as_str(), percent(units[other].all_bytes())));
    match most {
        Some((name, share)) if share >= outside => {
            Some(format!("meanwhile, {name} got {share:.0} % of the device's bytes"))
        }
        _ if outside >= 10.0 => {
            Some(format!("meanwhile, processes outside of the plan got {outside:.0} % of the device's bytes"))
        }
        _ => None,
    }
}

/// Says how busy the device was.
fn load(observed: &Observed, plan: &Plan) -> Option<String> {
    let disk = observed.sample.disks.first()?;
    let busy = disk.busy(observed.sample.seconds)?;
    let depth = disk.depth_while_busy()?;
    let device = plan.device.as_deref().unwrap_or(&disk.name);
    if busy < BUSY {
        return Some(format!("{device} was not saturated: the device was busy for {:.0} % of the time", busy * 100.0));
    }
    Some(format!("{device} was busy all the time, with {depth:.1} requests in flight"))
}
