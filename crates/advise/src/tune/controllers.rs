//! The dimensions that controllers add to the search space. Their values depend on the I/O of each
//! cgroup under the baseline, and on the speed of the device at saturation.
//!
//! A controller adds one or more dimensions. By default, wbt has the default of the device, and all
//! other controllers are off. A cap is a share of the cgroup's rate under the baseline, or there is
//! no cap. io.cost uses the linear model of the profile at saturation, and one latency target for
//! reads and writes.

use std::fmt;
use std::str::FromStr;

use iosched::controllers::Wbt;
use iosched::{Setting, Span};
use iosched_disk::Profile;
use iosched_disk::io_cost::IoCostQos;
use iosched_disk::measure::saturation;
use iosched_sim::{RunResult, TaskResult};

use super::space::{Dimension, Written, ladder};

/// Caps of a cgroup and direction, as parts of the rate without a cap. The steps are finer for large
/// caps, which cost least.
const CAPS: [f64; 9] =
    [3.0 / 4.0, 1.0 / 2.0, 3.0 / 8.0, 1.0 / 4.0, 1.0 / 8.0, 1.0 / 16.0, 1.0 / 32.0, 1.0 / 64.0, 1.0 / 128.0];
/// Least value that io.max accepts.
const CAP_MIN: u64 = 2;
/// Mean I/O size at or above which a cap limits bytes per second instead of I/Os per second.
const LARGE_BYTES: u64 = 32 << 10;
/// Targets of io.latency that are worth trying, us, in factors of two from `TARGET_US`.
const TARGETS_US: Span = Span { low: 250, high: 256_000, zero: false };
const TARGET_US: u64 = 2_000;
/// Weights that are worth trying, in factors of two from `WEIGHT`.
const WEIGHTS: Span = Span { low: 10, high: 1_000, zero: false };
const WEIGHT: u64 = 100;
/// Targets of wbt that are worth trying, us, in factors of two from the device's default. 0 is off.
const WBT_US: Span = Span { low: 500, high: 128_000, zero: true };
/// Largest latency of io.cost's QoS that is tried, us.
const QOS_US_MAX: u64 = 128_000;
/// Share of the I/Os whose latency should be within the QoS latency, per cent.
const QOS_PERCENT: u32 = 95;

/// A controller that the search can add to an elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Writeback throttling.
    Wbt,
    /// Caps on bytes and I/Os per second.
    IoMax,
    /// Latency targets.
    IoLatency,
    /// Weighted shares of the device's time.
    IoCost,
}

impl Controller {
    /// All controllers, in the order in which a setting names them.
    pub const ALL: [Self; 4] = [Self::Wbt, Self::IoMax, Self::IoLatency, Self::IoCost];

    /// Returns the usual name of the controller.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wbt => "wbt",
            Self::IoMax => "io.max",
            Self::IoLatency => "io.latency",
            Self::IoCost => "io.cost",
        }
    }

    /// Returns the controller of a file or attribute of a setting.
    pub(super) fn of(file: &str) -> Option<Self> {
        match file {
            "wbt_lat_usec" => Some(Self::Wbt),
            "io.max" => Some(Self::IoMax),
            "io.latency" => Some(Self::IoLatency),
            "io.cost.qos" | "io.cost.model" | "io.weight" => Some(Self::IoCost),
            _ => None,
        }
    }

    /// Returns the controllers that a setting uses, each once.
    #[must_use]
    pub fn used_by(setting: &Setting) -> Vec<Self> {
        let mut used: Vec<Self> =
            setting.attributes().iter().filter_map(|attribute| Self::of(attribute.name())).collect();
        used.sort_unstable();
        used.dedup();
        used
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Controller {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|controller| controller.name() == text);
        known.ok_or_else(|| {
            format!("there is no controller {text:?}; available: {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// The I/O of a cgroup in the run of the baseline.
struct Doing<'r> {
    name: &'r str,
    /// Bytes read and bytes written.
    bytes: [u64; 2],
    ios: u64,
    seconds: f64,
}

/// Returns the dimensions of `controllers` for a workload on the device of `profile`. `run` is a
/// run of the workload under the baseline.
pub(super) fn dimensions(controllers: &[Controller], run: &RunResult, profile: &Profile) -> Vec<Dimension> {
    let doing = doing(run);
    let mut all = Vec::new();
    for controller in Controller::ALL.into_iter().filter(|controller| controllers.contains(controller)) {
        match controller {
            // wbt throttles only buffered writes.
            Controller::Wbt => all.extend((!run.latency.writes_async.is_empty()).then(|| wbt(profile))),
            Controller::IoMax => all.extend(doing.iter().flat_map(caps)),
            Controller::IoLatency => all.extend(doing.iter().map(target)),
            Controller::IoCost => {
                all.push(cost(profile));
                // Only the ratios of weights matter, so the weight of the last cgroup does not
                // vary.
                all.extend(doing.iter().take(doing.len().saturating_sub(1)).map(weight));
            }
        }
    }
    all
}

/// Returns whether the workload has cgroups that controllers can distinguish.
pub(super) fn has_cgroups(run: &RunResult) -> bool {
    !doing(run).is_empty()
}

/// Returns the cgroups with I/O, in the order of their tasks.
fn doing(run: &RunResult) -> Vec<Doing<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for task in run.tasks.iter().filter(|task| !task.cgroup.is_empty() && task.ios > 0) {
        if !names.contains(&task.cgroup.as_str()) {
            names.push(&task.cgroup);
        }
    }
    let demand = |name| {
        let tasks: Vec<&TaskResult> = run.tasks.iter().filter(|task| task.cgroup == name).collect();
        let from = tasks.iter().filter_map(|task| task.first_submit_ns).min().unwrap_or(0);
        let to = tasks.iter().filter_map(|task| task.last_completion_ns).max().unwrap_or(0);
        let sum = |value: fn(&TaskResult) -> u64| tasks.iter().map(|task| value(task)).sum::<u64>();
        Doing {
            name,
            bytes: [sum(|task| task.bytes_read), sum(|task| task.bytes_written)],
            ios: sum(|task| task.ios),
            seconds: (to.saturating_sub(from) as f64 / 1e9).max(1e-9),
        }
    };
    names.into_iter().map(demand).collect()
}

fn written(file: &str, cgroup: &str, words: &str) -> Written {
    Written { file: file.to_owned(), cgroup: cgroup.to_owned(), words: words.to_owned() }
}

/// Returns caps for each direction that has more than one per cent of the cgroup's bytes.
fn caps(doing: &Doing<'_>) -> impl Iterator<Item = Dimension> {
    let all: u64 = doing.bytes.iter().sum();
    let size = all / doing.ios.max(1);
    ["r", "w"].into_iter().zip(doing.bytes).filter_map(move |(direction, bytes)| {
        if bytes == 0 || bytes < all / 100 {
            return None;
        }
        let (unit, word, per_second) = if size >= LARGE_BYTES {
            ("B/s", "bps", bytes as f64 / doing.seconds)
        } else {
            ("1/s", "iops", bytes as f64 / size.max(1) as f64 / doing.seconds)
        };
        let word = format!("{direction}{word}");
        let caps = CAPS.into_iter().map(|part| rounded(per_second * part));
        let mut values: Vec<u64> = caps.filter(|&value| value >= CAP_MIN).collect();
        values.sort_unstable();
        values.dedup();
        let name = format!("io.max of {} {word}", doing.name);
        let written = vec![written("io.max", doing.name, &format!("{word}={{}}"))];
        Some(Dimension::off(name, unit, values, written))
    })
}

fn target(doing: &Doing<'_>) -> Dimension {
    let name = format!("io.latency of {} target", doing.name);
    Dimension::off(name, "us", ladder(TARGETS_US, TARGET_US), vec![written("io.latency", doing.name, "target={}")])
}

fn cost(profile: &Profile) -> Dimension {
    let found = saturation(profile);
    let (model, qos) = (found.model(), found.qos());
    let model = iosched_disk::io_cost::IoCostModel::of(model.figures().map(|figure| rounded(figure as f64)));
    let (min, max) = (IoCostQos::MIN, IoCostQos::MAX);
    let qos_words = format!("enable=1/rpct={QOS_PERCENT}/rlat={{}}/wpct={QOS_PERCENT}/wlat={{}}/min={min}/max={max}");
    let low = rounded(qos.rlat_us as f64 / 2.0).max(1);
    let values = ladder(Span { low, high: QOS_US_MAX.max(low * 16), zero: false }, rounded(qos.rlat_us as f64).max(1));
    let written = vec![
        written("io.cost.model", "", &model.to_string().replace(' ', "/")),
        written("io.cost.qos", "", &qos_words),
    ];
    Dimension::off("io.cost rlat and wlat".to_owned(), "us", values, written)
}

fn weight(doing: &Doing<'_>) -> Dimension {
    let values = ladder(WEIGHTS, WEIGHT);
    let default = values.iter().position(|&value| value == WEIGHT).unwrap_or(0);
    let written = vec![written("io.weight", doing.name, "{}")];
    Dimension { name: format!("io.weight of {}", doing.name), unit: String::new(), values, default, written }
}

fn wbt(profile: &Profile) -> Dimension {
    let own_us = Wbt::target_default_us(profile.card().rotational);
    Dimension::attribute("wbt_lat_usec", "us", ladder(WBT_US, own_us))
}

/// Rounds to two significant digits, which are enough and easy to read.
fn rounded(value: f64) -> u64 {
    let step = 10f64.powi((value.max(1.0).log10().floor() as i32 - 1).max(0));
    ((value / step).round() * step) as u64
}

#[cfg(test)]
mod tests {
    use iosched_sim::BlockLayer;

    use super::super::space::{ElevatorSpace, Space};
    use super::*;

    fn run() -> RunResult {
        let task = |cgroup: &str, bytes_read, bytes_written, ios| TaskResult {
            cgroup: cgroup.to_owned(),
            ios,
            bytes_read,
            bytes_written,
            first_submit_ns: Some(0),
            last_completion_ns: Some(2_000_000_000),
            ..TaskResult::default()
        };
        let tasks = vec![task("db", 8_192_000, 0, 1000), task("backup", 0, 1_126_400_000, 1074), task("", 4096, 0, 1)];
        let mut run = RunResult { tasks, ..RunResult::default() };
        run.latency.writes_async.record(1);
        run
    }

    fn space(controllers: &[Controller]) -> Space {
        space_on("sata-ssd", &["none"], controllers)
    }

    fn space_on(profile: &str, elevators: &[&str], controllers: &[Controller]) -> Space {
        let profile = Profile::named(profile).unwrap();
        let elevator_space = |name: &&str| ElevatorSpace { defaults: Setting::defaults(name), dimensions: Vec::new() };
        let mut space = Space { elevators: elevators.iter().map(elevator_space).collect() };
        let config = BlockLayer::default().queue_config(&profile, None);
        space.add(&dimensions(controllers, &run(), &profile), &[], &config);
        space
    }

    #[test]
    fn wbt_space_has_the_default_of_the_device_and_off() {
        let wbt = |profile: &str, elevator: &str| {
            let space = space_on(profile, &[elevator], &[Controller::Wbt]);
            let dimension = &space.elevators[0].dimensions[0];
            let mut off = space.defaults().next().unwrap();
            off.levels[0] = dimension.values.iter().position(|&value| value == 0).unwrap();
            (dimension.text(dimension.default), space.setting(&off).to_string(), dimension.values.clone())
        };
        let (default, off, values) = wbt("sata-ssd", "none");
        assert_eq!((default.as_str(), off.as_str()), ("2000", "none:wbt_lat_usec=0"));
        assert_eq!(values, [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000]);
        let (default, off, values) = wbt("sata-7200", "mq-deadline");
        assert_eq!((default.as_str(), off.as_str()), ("75000", "mq-deadline:wbt_lat_usec=0"));
        assert_eq!(values, [0, 585, 1_171, 2_343, 4_687, 9_375, 18_750, 37_500, 75_000]);
        // bfq turns wbt off by default, because bfq throttles writes itself.
        let (default, off, _) = wbt("sata-ssd", "bfq");
        assert_eq!((default.as_str(), off.as_str()), ("0", "bfq"));
        assert!(space_on("sata-ssd", &["cfq"], &[Controller::Wbt]).elevators[0].dimensions.is_empty());
    }

    #[test]
    fn io_max_space_limits_the_main_load_of_each_cgroup() {
        let space = space(&[Controller::IoMax]);
        let dimensions = &space.elevators[0].dimensions;
        let names: Vec<&str> = dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
        assert_eq!(names, ["io.max of db riops", "io.max of backup wbps"]);
        assert_eq!(dimensions[0].values[..3], [4, 8, 16]);
        assert_eq!(dimensions[0].values[6..], [190, 250, 380, Dimension::UNSET]);
        let large = [140_000_000, 210_000_000, 280_000_000, 420_000_000, Dimension::UNSET];
        assert_eq!(dimensions[1].values[5..], large);
        assert_eq!((dimensions[1].default, dimensions[1].text(9).as_str()), (9, "not set"));
    }

    #[test]
    fn controller_settings_map_to_points_and_back() {
        let space = space(&Controller::ALL);
        let default = space.defaults().next().unwrap();
        assert_eq!(space.setting(&default).to_string(), "none");
        for (number, dimension) in space.elevators[0].dimensions.iter().enumerate() {
            for level in 0..dimension.values.len() {
                let mut point = default.clone();
                point.levels[number] = level;
                let setting = space.setting(&point);
                assert_eq!(setting.to_string().parse::<Setting>().unwrap(), setting);
                assert_eq!(space.point(&setting), Some(point), "{setting}");
            }
        }
        // The values of one file are one text, ordered by cgroup.
        let point = super::super::space::Point { elevator: 0, levels: vec![1, 7, 0, 4, 3, 2, 5] };
        let setting = space.setting(&point);
        let text = setting.to_string();
        assert!(
            text.starts_with("none:wbt_lat_usec=500,io.max=db:riops=250+backup:wbps=4400000,io.latency=db:target="),
            "{text}"
        );
        assert_eq!(space.point(&setting), Some(point));
        assert_eq!(Controller::used_by(&setting), Controller::ALL);
    }

    #[test]
    fn limits_are_rounded_to_two_digits() {
        assert_eq!([0.4, 7.0, 96.4, 137_438.0, 563_999_999.0].map(rounded), [0, 7, 96, 140_000, 560_000_000]);
    }
}
