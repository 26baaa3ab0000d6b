//! The space that is searched: elevators, the dimensions of each elevator, and the values worth
//! trying. The declarations of the tunables determine the space.
//!
//! The values of a tunable are its default and values that are larger or smaller by powers of two.
//! If these values are too many, powers of four are used. 0 is tried if the tunable declares a
//! meaning for 0. Smaller steps are not needed, because small changes of a tunable have little
//! effect.

use std::collections::BTreeSet;

use iosched::{QueueConfig, RequestQueue, Setting, SettingError, Span, Spec, Time};
use serde::{Deserialize, Serialize};

use super::controllers::Controller;

/// Largest number of values in factors of two. If there are more values, the factor is four.
const VALUES_MAX: usize = 11;

/// Text of the value of a controller that is not set.
pub(super) const NOT_SET: &str = "not set";

/// The space that is searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// The parts of the space, one for each elevator.
    pub elevators: Vec<ElevatorSpace>,
}

/// The part of the space that belongs to one elevator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElevatorSpace {
    /// The elevator with its fixed values. All others are at their defaults.
    pub defaults: Setting,
    /// The tunables and attributes that vary.
    pub dimensions: Vec<Dimension>,
}

/// A tunable, attribute or controller value that varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// Name of the dimension.
    pub name: String,
    /// Unit of the values as declared, empty for plain numbers.
    pub unit: String,
    /// Values to try, in ascending order.
    pub values: Vec<u64>,
    /// Index in `values` of the value that is in effect if the dimension is not set.
    pub default: usize,
    /// The texts in a controller's files. Empty for a
    /// tunable or an attribute, which is set by its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<Written>,
}

/// A text in a file of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Name of the file.
    pub file: String,
    /// Name of the cgroup. Empty for a file of the device.
    pub cgroup: String,
    /// Words in the form of a setting, separated by slashes. `{}` stands for the value.
    pub words: String,
}

/// A point of the space: an elevator, and a value for each of its dimensions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Number of the elevator.
    pub elevator: usize,
    /// Numbers of the values in [`Dimension::values`].
    pub levels: Vec<usize>,
}

/// Selection of the declared tunables to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of the tunables and attributes to vary. Empty means all.
    pub vary: Vec<String>,
    /// Attributes of the queue that vary in addition to the tunables.
    pub also: Vec<String>,
    /// Names and values that are fixed for every elevator that has them.
    pub fix: Vec<(String, String)>,
    /// Whether only tunables and attributes in `vary` and `also` vary.
    pub defaults_only: bool,
    /// Controllers that are searched together with elevators of blk-mq.
    pub beside: Vec<Controller>,
    /// Names of the elevators with which controllers are combined. Empty means all.
    pub beside_elevators: Vec<String>,
    /// Whether controllers of cgroups are left out if the workload has no cgroups. If false, such
    /// controllers are an error.
    pub beside_if_possible: bool,
}

/// An error of a selection.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No elevator has a tunable of this name.
    #[error("{option} {name}: none of {elevators} has this tunable; available: {known}")]
    Unknown {
        /// Command-line option with the name.
        option: &'static str,
        /// The unknown name.
        name: String,
        /// Names of the elevators.
        elevators: String,
        /// Names of the available tunables.
        known: String,
    },
    /// The tunable of this name cannot vary.
    #[error(
        "{option} {name}: no value is worth trying, because the tunable is read-only, has no effect, or is missing in \
         usual kernels; to set the tunable nevertheless, give --fix {name}=VALUE"
    )]
    NotWorthTrying {
        /// Command-line option with the name.
        option: &'static str,
        /// Name of the tunable.
        name: String,
    },
}

impl Space {
    /// Creates the space of `selection` for the elevators of
    /// `schedulers`, with their fixed values, on a queue of `config`.
    ///
    /// # Errors
    /// A setting is invalid, or a name cannot be varied.
    pub fn of(schedulers: &[Setting], selection: &Selection, config: &QueueConfig) -> Result<Self, SpaceError> {
        check_names(schedulers, selection)?;
        let elevators = schedulers.iter().map(|scheduler| ElevatorSpace::of(scheduler, selection, config));
        Ok(Self { elevators: elevators.collect::<Result<_, _>>()? })
    }

    /// Returns the default points of all elevators.
    pub fn defaults(&self) -> impl Iterator<Item = Point> {
        self.elevators
            .iter()
            .enumerate()
            .map(|(elevator, elevator_space)| Point { elevator, levels: elevator_space.default_levels() })
    }

    /// Returns the setting of a point. Dimensions at their default are not set.
    #[must_use]
    pub fn setting(&self, point: &Point) -> Setting {
        let elevator_space = &self.elevators[point.elevator];
        let mut setting = elevator_space.defaults.clone();
        let mut files: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
        let mut set = |name: &str, value: &str| {
            // The values were validated when the space was created.
            let set = setting.set(name, value);
            debug_assert!(set.is_ok(), "{set:?}");
        };
        for (dimension, &level) in elevator_space.dimensions.iter().zip(&point.levels) {
            if level == dimension.default {
                continue;
            }
            if dimension.written.is_empty() {
                set(&dimension.name, &dimension.values[level].to_string());
            }
            for written in &dimension.written {
                let words = written.text(dimension.values[level]);
                if !files.iter().any(|(file, _)| *file == written.file) {
                    files.push((&written.file, Vec::new()));
                }
                let Some((_, parts)) = files.iter_mut().find(|(file, _)| *file == written.file) else { continue };
                match parts.iter_mut().find(|(cgroup, _)| *cgroup == written.cgroup) {
                    Some((_, there)) => *there += &format!("/{words}"),
                    None => parts.push((&written.cgroup, words)),
                }
            }
        }
        for (file, parts) in files {
            let entry = |(cgroup, words): &(&str, String)| {
                if cgroup.is_empty() { words.clone() } else { format!("{cgroup}:{words}") }
            };
            set(file, &parts.iter().map(entry).collect::<Vec<_>>().join("+"));
        }
        setting
    }

    /// Returns the point of a setting. `None` if the setting is not in this space.
    #[must_use]
    pub fn point(&self, setting: &Setting) -> Option<Point> {
        let fits = |elevator_space: &ElevatorSpace, point: &Point| {
            elevator_space.defaults.name() == setting.name() && self.setting(point) == *setting
        };
        let found = self.elevators.iter().enumerate().filter_map(|(elevator, elevator_space)| {
            let level = |dimension: &Dimension| dimension.level(setting).unwrap_or(dimension.default);
            let levels = elevator_space.dimensions.iter().map(level).collect();
            let point = Point { elevator, levels };
            fits(elevator_space, &point).then_some(point)
        });
        found.into_iter().next()
    }

    /// Returns the number of dimensions of a point that are not at their default.
    #[must_use]
    pub fn changes(&self, point: &Point) -> usize {
        self.changed(point).count()
    }

    /// Returns the numbers of the dimensions of a point that are not at their default.
    pub(super) fn changed<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = usize> + 'a {
        let dimensions = &self.elevators[point.elevator].dimensions;
        (0..dimensions.len()).filter(|&number| point.levels[number] != dimensions[number].default)
    }

    /// Returns `point` with some dimensions at their default.
    pub(super) fn put_back(&self, point: &Point, dimensions: &[usize]) -> Point {
        let mut point = point.clone();
        for &number in dimensions {
            point.levels[number] = self.elevators[point.elevator].dimensions[number].default;
        }
        point
    }

    /// Adds dimensions to every elevator that supports controllers, or only to the elevators in
    /// `only`. Dimensions of fixed files are left out. The default of an attribute is the value in
    /// effect with this elevator on a queue of `config`.
    pub(super) fn add(&mut self, dimensions: &[Dimension], only: &[String], config: &QueueConfig) {
        for elevator_space in &mut self.elevators {
            let is_meant = only.is_empty() || only.iter().any(|name| name == elevator_space.defaults.name());
            let is_multi_queue = elevator_space.defaults.registered().is_ok_and(|known| known.layer.is_multi_queue());
            let takes_controllers = is_multi_queue && is_meant;
            let fixed: Vec<&str> = elevator_space.defaults.assignments().map(iosched::Assignment::name).collect();
            let is_free = |new: &&Dimension| {
                let mut files = new.written.iter().map(|written| written.file.as_str());
                !fixed.contains(&new.name.as_str()) && files.all(|file| !fixed.contains(&file))
            };
            let is_new = |new: &&Dimension| elevator_space.dimensions.iter().all(|known| known.name != new.name);
            let new = dimensions.iter().filter(is_free).filter(is_new);
            let new = new.filter_map(|new| new.clone().beside(&elevator_space.defaults, config));
            let new: Vec<Dimension> = new.filter(|_| takes_controllers).collect();
            elevator_space.dimensions.extend(new);
        }
    }

    /// Returns the controllers that are searched.
    #[must_use]
    pub fn controllers(&self) -> Vec<Controller> {
        let everything_set = |elevator_space: &ElevatorSpace| {
            let files = elevator_space
                .dimensions
                .iter()
                .flat_map(|dimension| dimension.written.iter().map(|written| written.file.clone()));
            let names = elevator_space.dimensions.iter().map(|dimension| dimension.name.clone());
            files.chain(names).filter_map(|name| Controller::of(&name)).collect::<Vec<_>>()
        };
        let mut all: Vec<Controller> = self.elevators.iter().flat_map(everything_set).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the number of points.
    #[must_use]
    pub fn size(&self) -> u128 {
        let of_one = |elevator_space: &ElevatorSpace| {
            elevator_space
                .dimensions
                .iter()
                .map(|dimension| dimension.values.len() as u128)
                .fold(1u128, u128::saturating_mul)
        };
        self.elevators.iter().map(of_one).fold(0u128, u128::saturating_add)
    }
}

impl ElevatorSpace {
    fn of(scheduler: &Setting, selection: &Selection, config: &QueueConfig) -> Result<Self, SpaceError> {
        let registered = scheduler.registered().map_err(SettingError::from)?;
        let tunables = (registered.tunables)();
        let mut defaults = scheduler.clone();
        for (name, value) in &selection.fix {
            if declared(&tunables).any(|spec| spec.name == name) {
                defaults.set(name, value)?;
            }
        }
        defaults.build(Time::ZERO, config)?;
        let fixed: BTreeSet<&str> = defaults.assignments().map(iosched::Assignment::name).collect();
        let wanted = |spec: &&Spec| {
            let is_tunable = tunables.iter().any(|tunable| tunable.name == spec.name);
            let chosen = match selection.vary.as_slice() {
                [] => is_tunable && !selection.defaults_only,
                vary => vary.iter().any(|name| name == spec.name),
            };
            let also = selection.also.iter().any(|name| name == spec.name);
            (chosen || also) && !fixed.contains(spec.name) && !spec.read_only && spec.alias_of.is_none()
        };
        let specs: Vec<&Spec> = declared(&tunables).filter(wanted).collect();
        let dimensions = specs.into_iter().filter_map(|spec| Dimension::of(spec, spec.tuning?, &defaults, config));
        Ok(Self { dimensions: dimensions.collect(), defaults })
    }

    fn default_levels(&self) -> Vec<usize> {
        self.dimensions.iter().map(|dimension| dimension.default).collect()
    }
}

impl Written {
    /// Returns the words with a value inserted.
    fn text(&self, value: u64) -> String {
        self.words.replace("{}", &value.to_string())
    }
}

impl Dimension {
    /// Value that means "not set". It is larger than all other values.
    pub const UNSET: u64 = u64::MAX;

    /// Creates a dimension of a controller that is off by default.
    pub(super) fn off(name: String, unit: &str, mut values: Vec<u64>, written: Vec<Written>) -> Self {
        values.push(Self::UNSET);
        let default = values.len() - 1;
        Self { name, unit: unit.to_owned(), values, default, written }
    }

    /// Returns whether the dimension belongs to a controller's files.
    pub(super) const fn is_of_controller(&self) -> bool {
        !self.written.is_empty()
    }

    /// Returns the number of the first or last value, whichever is farther from the default.
    pub(super) const fn farther_end(&self) -> usize {
        let last = self.values.len() - 1;
        if self.default * 2 > last { 0 } else { last }
    }

    /// Returns the text of a value.
    #[must_use]
    pub fn text(&self, level: usize) -> String {
        match self.values[level] {
            Self::UNSET => NOT_SET.to_owned(),
            value => value.to_string(),
        }
    }

    /// Returns the index of the setting's value in the dimension. `None` if the setting does not
    /// set a value, or sets a value outside the dimension.
    fn level(&self, setting: &Setting) -> Option<usize> {
        let assigned = |name: &str| setting.assignments().find(|assignment| assignment.name() == name);
        let Some(first) = self.written.iter().find(|written| written.words.contains("{}")) else {
            let number = assigned(&self.name)?.number();
            return self.values.iter().position(|known| Some(*known) == number);
        };
        let text = assigned(&first.file)?.text();
        let of_cgroup = |part: &str| {
            if first.cgroup.is_empty() {
                return Some(part.to_owned());
            }
            Some(part.strip_prefix(first.cgroup.as_str())?.strip_prefix(':')?.to_owned())
        };
        let words = text.split('+').find_map(of_cgroup)?;
        let has = |wanted: &str| words.split('/').any(|word| word == wanted);
        self.values.iter().position(|&value| value != Self::UNSET && first.text(value).split('/').all(has))
    }

    /// Creates the dimension of a declared tunable. `None` if there is only one value.
    fn of(spec: &Spec, span: Span, defaults: &Setting, config: &QueueConfig) -> Option<Self> {
        Self::attribute(spec.name, &spec.unit.to_string(), ladder(span, spec.default)).beside(defaults, config)
    }

    /// Creates the dimension of a tunable or an attribute. [`Self::beside`] sets its default.
    pub(super) fn attribute(name: &str, unit: &str, values: Vec<u64>) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), values, default: 0, written: Vec::new() }
    }

    /// Completes an attribute for the elevator of `defaults`: adds the default value in effect and
    /// removes invalid values. `None` if only one value is left.
    fn beside(mut self, defaults: &Setting, config: &QueueConfig) -> Option<Self> {
        if self.is_of_controller() {
            return Some(self);
        }
        let effect = |setting: &Setting| in_effect(setting, &self.name, config);
        let default = effect(defaults)?;
        self.values.retain(|value| {
            let mut setting = defaults.clone();
            // Values that the queue rejects or changes on this device are left out.
            setting.set(&self.name, &value.to_string()).is_ok() && effect(&setting) == Some(*value)
        });
        self.values.push(default);
        self.values.sort_unstable();
        self.values.dedup();
        self.default = self.values.binary_search(&default).ok()?;
        (self.values.len() > 1).then_some(self)
    }
}

/// Returns the tunables and then the attributes of a queue.
fn declared<'a>(tunables: &'a [&'static Spec]) -> impl Iterator<Item = &'static Spec> + 'a {
    let attributes = RequestQueue::attribute_specs();
    tunables.iter().copied().chain(attributes.filter(|spec| tunables.iter().all(|tunable| tunable.name != spec.name)))
}

/// Returns the value in effect for `name` in a queue
/// with `setting`. `None` if the setting is invalid.
fn in_effect(setting: &Setting, name: &str, config: &QueueConfig) -> Option<u64> {
    let queue = setting.build(Time::ZERO, config).ok()?;
    queue.tunable(name).ok().or_else(|| queue.attribute(name).ok()?.parse().ok())
}

/// Returns the values of `span` in steps from `default`, in ascending order.
pub(super) fn ladder(span: Span, default: u64) -> Vec<u64> {
    let anchor = if (span.low..=span.high).contains(&default) { default } else { span.low };
    let steps = |factor: u64| -> Vec<u64> {
        let down =
            std::iter::successors(Some(anchor), |value| Some(value / factor)).take_while(|&v| v >= span.low.max(1));
        let up = std::iter::successors(anchor.checked_mul(factor), |value| value.checked_mul(factor));
        let mut values: Vec<u64> = down.chain(up.take_while(|&v| v <= span.high)).collect();
        values.extend(span.zero.then_some(0));
        values.sort_unstable();
        values
    };
    let fine = steps(2);
    if fine.len() > VALUES_MAX { steps(4) } else { fine }
}

/// Returns an error if an elevator lacks a name, or if a name cannot be varied.
fn check_names(schedulers: &[Setting], selection: &Selection) -> Result<(), SpaceError> {
    let mut specs: Vec<&'static Spec> = Vec::new();
    for scheduler in schedulers {
        let registered = scheduler.registered().map_err(SettingError::from)?;
        specs.extend(declared(&(registered.tunables)()));
    }
    let named = selection.vary.iter().map(|name| ("--vary", name, true));
    let named = named.chain(selection.also.iter().map(|name| ("--also", name, true)));
    for (option, name, varied) in named.chain(selection.fix.iter().map(|(name, _)| ("--fix", name, false))) {
        let of_name: Vec<&&Spec> = specs.iter().filter(|spec| spec.name == name).collect();
        if of_name.is_empty() {
            let known: BTreeSet<&str> =
                specs.iter().filter(|spec| spec.tuning.is_some()).map(|spec| spec.name).collect();
            return Err(SpaceError::Unknown {
                option,
                name: name.clone(),
                elevators: schedulers.iter().map(|scheduler| scheduler.name()).collect::<Vec<_>>().join(", "),
                known: known.into_iter().collect::<Vec<_>>().join(", "),
            });
        }
        if varied && of_name.iter().all(|spec| spec.tuning.is_none()) {
            return Err(SpaceError::NotWorthTrying { option, name: name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(schedulers: &[&str], selection: &Selection, config: &QueueConfig) -> Result<Space, SpaceError> {
        let schedulers: Vec<Setting> = schedulers.iter().map(|text| text.parse().unwrap()).collect();
        Space::of(&schedulers, selection, config)
    }

    fn dimension<'s>(space: &'s Space, name: &str) -> &'s Dimension {
        space.elevators[0]
            .dimensions
            .iter()
            .find(|dimension| dimension.name == name)
            .unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn space_doubles_and_halves_the_default() {
        let space = space(&["cfq"], &Selection::default(), &QueueConfig::default()).unwrap();
        assert_eq!(dimension(&space, "slice_idle").values, [0, 1, 2, 4, 8, 16, 32]);
        assert_eq!(dimension(&space, "quantum").values, [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(dimension(&space, "low_latency").values, [0, 1]);
        assert_eq!(dimension(&space, "back_seek_max").values.len(), 8);
        let names: Vec<&str> = space.elevators[0].dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
        // Aliases, tunables that no kernel has, and attributes of the queue are not included.
        assert!(!names.iter().any(|name| ["slice_idle_us", "yield", "nr_requests"].contains(name)), "{names:?}");
    }

    #[test]
    fn every_scheduler_space_has_its_default_and_valid_values() {
        for rotational in [true, false] {
            let config = QueueConfig { rotational, ..QueueConfig::default() };
            for elevator in iosched::Registry::linux().elevators() {
                let also = ["nr_requests", "nomerges", "read_ahead_kb", "max_sectors_kb"].map(str::to_owned).to_vec();
                let selection = Selection { also, ..Selection::default() };
                let space = space(&[elevator.name], &selection, &config).unwrap();
                let default = space.defaults().next().unwrap();
                assert_eq!(space.setting(&default).to_string(), elevator.name);
                for (number, dimension) in space.elevators[0].dimensions.iter().enumerate() {
                    for level in 0..dimension.values.len() {
                        let mut point = default.clone();
                        point.levels[number] = level;
                        let setting = space.setting(&point);
                        assert_eq!(in_effect(&setting, &dimension.name, &config), Some(dimension.values[level]));
                        assert_eq!(space.point(&setting), Some(point));
                    }
                }
            }
        }
    }

    #[test]
    fn default_in_the_space_is_the_effective_value_on_the_device() {
        let config = QueueConfig { rotational: false, ..QueueConfig::default() };
        let space = space(&["cfq"], &Selection::default(), &config).unwrap();
        let idle = dimension(&space, "slice_idle");
        assert_eq!(idle.values[idle.default], 0);
    }

    #[test]
    fn fixed_tunables_are_not_varied() {
        let selection = Selection {
            vary: vec!["slice_idle".to_owned(), "fifo_batch".to_owned()],
            also: vec!["nr_requests".to_owned()],
            fix: vec![("quantum".to_owned(), "4".to_owned())],
            ..Selection::default()
        };
        let space = space(&["cfq:low_latency=0", "deadline"], &selection, &QueueConfig::default()).unwrap();
        let names = |elevator_space: &ElevatorSpace| {
            elevator_space.dimensions.iter().map(|d| d.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&space.elevators[0]), ["slice_idle", "nr_requests"]);
        assert_eq!(names(&space.elevators[1]), ["fifo_batch", "nr_requests"]);
        assert_eq!(space.elevators[0].defaults.to_string(), "cfq:low_latency=0,quantum=4");
        assert_eq!(space.elevators[1].defaults.to_string(), "deadline");
        assert_eq!(space.size(), 7 * 7 + 8 * 7);
    }

    #[test]
    fn errors_of_unknown_tunables_name_valid_ones() {
        let error = |vary: &str| {
            let selection = Selection { vary: vec![vary.to_owned()], ..Selection::default() };
            space(&["cfq", "deadline"], &selection, &QueueConfig::default()).unwrap_err().to_string()
        };
        assert!(error("slice_idel").contains("fifo_batch"), "{}", error("slice_idel"));
        assert!(error("yield").contains("--fix yield=VALUE"));
    }
}
