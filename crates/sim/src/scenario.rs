//! Runs recorded scenarios in the engine, under the conditions of the recording.

use iosched::{Driver, QueueConfig, Registry, RequestQueue, Rerun, Setting, SettingError, TagLayout, UnknownElevator};
use iosched_disk::{AnyDevice, ConfigError, Device, Disk, DiskConfig, Fixed, FixedConfig};
use iosched_workload::{Scenario, TagMap, TunableChange};
use serde::Deserialize;

use crate::engine::{Machine, TunableWrite, run_tasks};
use crate::observer::Observer;
use crate::plan::{Limit, SimError};
use iosched_workload::outcome::RunResult;

/// Reason why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The device is not valid.
    #[error("{name}: device: {source}")]
    Device {
        /// Name of the scenario.
        name: String,
        /// Error of the device's description.
        source: serde_json::Error,
    },
    /// A parameter of the device is not valid.
    #[error("{name}: {source}")]
    Config {
        /// Name of the scenario.
        name: String,
        /// Error of the parameter.
        source: ConfigError,
    },
    /// The scheduler or a tunable is not valid, or the run failed.
    #[error("{name}: {source}")]
    Sim {
        /// Name of the scenario.
        name: String,
        /// Error of the engine.
        source: Box<SimError>,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum DeviceConfig {
    Fixed(FixedConfig),
    Disk(DiskConfig),
}

/// Runs a scenario under the conditions of its recording. There is no volatile cache. There are no
/// plugs and no limit on requests, unless the scenario sets them.
///
/// # Errors
/// If the scenario names a device, a scheduler or a tunable that does not exist.
pub fn run_scenario(scenario: &Scenario, mut observer: impl Observer) -> Result<RunResult, ScenarioError> {
    run_watched(scenario, &mut observer)
}

/// Runs a scenario. It is not generic, so that the engine is compiled in this crate.
fn run_watched(scenario: &Scenario, observer: &mut dyn Observer) -> Result<RunResult, ScenarioError> {
    let name = || scenario.name.clone();
    let device = match serde_json::from_value(scenario.device.clone())
        .map_err(|source| ScenarioError::Device { name: name(), source })?
    {
        DeviceConfig::Fixed(config) => Fixed::new(&config).map(AnyDevice::Fixed),
        DeviceConfig::Disk(config) => Disk::new(&config).map(AnyDevice::Disk),
    };
    let device = device.map_err(|source| ScenarioError::Config { name: name(), source })?;
    let failed = |source: SimError| ScenarioError::Sim { name: name(), source: Box::new(source) };
    let queue = queue(scenario, &device).map_err(failed)?;
    let tunables = tunable_writes(scenario).map_err(|source| failed(source.into()))?;
    let (rerun, reruns_among_tasks) = rerun(scenario).map_err(|source| failed(SettingError::from(source).into()))?;
    let machine = Machine {
        driver: Driver::new(queue, rerun),
        device,
        plug_from: if scenario.plug { 2 } else { u32::MAX },
        seed: 0,
        warm_up_ns: 0,
        limit: Limit::default(),
        reruns_among_tasks,
        takes_whole: true,
        interrupt: None,
    };
    run_tasks(machine, &scenario.task_set(), &tunables, observer).map_err(failed)
}

/// Returns the rule by which the recording reran the queue without an event. Also returns whether
/// the rerun is scheduled among the events of the tasks.
fn rerun(scenario: &Scenario) -> Result<(Rerun, bool), UnknownElevator> {
    Ok(match (scenario.rerun_ns, Registry::linux().get(&scenario.sched)?.name) {
        (Some(after_ns), _) => (Rerun::Barren { after_ns }, false),
        (None, "mq-deadline" | "kyber") => (Rerun::LINUX, true),
        (None, _) => (Rerun::Never, false),
    })
}

/// Returns the writes and reads of tunables during the scenario. Every value is
/// checked, except in recordings that contain refused values.
fn tunable_writes(scenario: &Scenario) -> Result<Vec<TunableWrite>, SettingError> {
    let mut all = Setting::defaults(&scenario.sched);
    let write = |change: &TunableChange| {
        let (t_ns, name, value) = (change.t_ns, change.name.clone(), change.text());
        if let Some(value) = value.as_deref().filter(|_| scenario.sched != "adios") {
            all.set(&name, value)?;
        }
        Ok(TunableWrite { t_ns, name, value })
    };
    scenario.tunable_changes.iter().map(write).collect()
}

fn queue(scenario: &Scenario, device: &AnyDevice) -> Result<RequestQueue, SimError> {
    let max_sectors_kb = scenario.max_sectors / 2;
    // The tag layout matters only if the recording has tags.
    let tag_layout = match (scenario.sched.as_str(), scenario.tag_map) {
        ("bfq", _) | (_, TagMap::Linux) => TagLayout::Spread,
        (_, TagMap::Single) => TagLayout::Compact,
    };
    let config = QueueConfig {
        hz: scenario.hz,
        rotational: scenario.is_rotational(),
        groups: scenario.group_iosched,
        write_cache: false,
        fua: false,
        // This limit applies only to merges. Submitted bios may be longer.
        max_hw_sectors_kb: u32::MAX / 2,
        depth: device.card().depth,
        tag_layout,
        ..QueueConfig::default()
    };
    let mut attributes = vec![
        ("nr_requests".to_owned(), u32::MAX.to_string()),
        ("max_sectors_kb".to_owned(), max_sectors_kb.to_string()),
    ];
    if let Some(tags) = scenario.tags {
        // This second write reduces the number of tags. The tags keep the layout for the value of
        // the first write (above), so the first write must not limit requests.
        attributes.push(("nr_requests".to_owned(), tags.to_string()));
    }
    if scenario.nomerge {
        attributes.push(("nomerges".to_owned(), "2".to_owned()));
    }
    let mut setting = Setting::defaults(&scenario.sched);
    for (name, value) in scenario.tunables().iter().chain(&attributes) {
        // A scheduler can replace an invalid value by the nearest valid one.
        setting.set_of_kernel(name, value);
    }
    Ok(setting.build(crate::engine::ORIGIN, &config)?)
}
