//! A scheduler setting: an elevator, its tunables, attributes of the queue; as a user writes it, for a simulation, a
//! live disk and the kernel's own disks alike.

use std::fmt;
use std::str::FromStr;

use crate::controllers::{self, NamedWrite};
use crate::elevator::Registered;
use crate::kernel::{KernelVersion, UnknownKernel};
use crate::queue::{QueueConfig, RequestQueue};
use crate::registry::{Registry, UnknownElevator};
use crate::time::Time;
use crate::tunable::{Spec, TextSpec, TunableError};

/// Stands for the elevator that is there.
const PRESENT: &str = "present";
/// Comes before the version of Linux.
const AT_KERNEL: &str = " @ ";
/// What a tunable's name may begin with, as in sysfs.
const ELEVATOR: &str = "iosched/";

/// An elevator and what is set of it.
///
/// Written `cfq:slice_idle=0,quantum=32,nr_requests=512`: names that are no tunables of the elevator are attributes of
/// the queue. So are files of cgroups that controllers have, by the cgroups' names:
/// `mq-deadline:wbt_lat_usec=2000,io.max=backup:wbps=50000000/wiops=100`. `present` in place of an elevator stands for
/// the one that is there. ` @ ` and a version at the end say whose rules a simulation follows: `bfq @ 6.1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    elevator: Choice,
    tunables: Vec<Assignment>,
    attributes: Vec<Assignment>,
    kernel: Option<KernelVersion>,
}

/// The elevator of a setting.
#[derive(Clone, Debug, Default)]
enum Choice {
    /// The one that is there, with its tunables as they are.
    #[default]
    Present,
    /// An entry of a registry.
    Registered(Registered),
    /// One that only a kernel has, or a record tells of.
    Other(String),
}

impl Choice {
    fn name(&self) -> &str {
        match self {
            Self::Present => PRESENT,
            Self::Registered(registered) => registered.name,
            Self::Other(name) => name,
        }
    }

    fn of(name: &str, registry: &Registry) -> Self {
        match registry.get(name) {
            Ok(registered) => Self::Registered(registered),
            Err(_) if name == PRESENT => Self::Present,
            Err(_) => Self::Other(name.to_owned()),
        }
    }

    /// The declaration of the tunable `name`.
    fn tunable(&self, name: &str) -> Option<&'static Spec> {
        let Self::Registered(registered) = self else { return None };
        (registered.tunables)().into_iter().find(|spec| spec.name == name)
    }

    /// The declaration of the file `name`, which does not hold one number.
    fn text(&self, name: &str) -> Option<&'static TextSpec> {
        let Self::Registered(registered) = self else { return None };
        registered.texts.iter().find(|spec| spec.name == name)
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Choice {}

/// What is written to one tunable or attribute.
#[derive(Clone, Debug)]
pub struct Assignment {
    name: String,
    value: Assigned,
}

/// A value that is written.
#[derive(Clone, Debug)]
enum Assigned {
    /// As its declaration takes it.
    Number(&'static Spec, u64),
    /// What only a kernel knows to read.
    Text(String),
}

impl PartialEq for Assignment {
    /// The same is written, whoever knows what it is.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text() == other.text()
    }
}

impl Eq for Assignment {}

impl Assignment {
    /// As it was written before: by the declaration, if that is how it writes the value.
    fn recorded(name: &str, spec: Option<&'static Spec>, text: &str) -> Self {
        let declared =
            spec.and_then(|spec| Self::of(name, spec, text).ok()).filter(|assignment| assignment.text() == text);
        declared.unwrap_or_else(|| Self { name: name.to_owned(), value: Assigned::Text(text.to_owned()) })
    }

    fn of(name: &str, spec: &'static Spec, text: &str) -> Result<Self, TunableError> {
        Ok(Self { name: name.to_owned(), value: Assigned::Number(spec, spec.parse_exactly(text)?) })
    }

    /// The name of the tunable or attribute.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value in the unit of the declaration; `None`: none that we know declares it.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.value {
            Assigned::Number(_, number) => Some(number),
            Assigned::Text(_) => None,
        }
    }

    /// The value as it is written to a file.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Assigned::Number(spec, number) => spec.number(*number).to_string(),
            Assigned::Text(text) => text.clone(),
        }
    }
}

/// Whose value it is that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An attribute of the queue.
    Queue,
    /// A tunable of its elevator.
    Elevator,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A version of Linux that is not known.
    #[error(transparent)]
    Kernel(#[from] UnknownKernel),
    /// No such elevator.
    #[error(transparent)]
    UnknownElevator(#[from] UnknownElevator),
    /// A part without `=`.
    #[error("{setting}: {part:?} is not name=value; write it like {elevator}:name=value,name=value")]
    NotAnAssignment {
        /// The whole setting.
        setting: String,
        /// The part.
        part: String,
        /// The elevator.
        elevator: String,
    },
    /// Neither a tunable of the elevator nor an attribute of the queue.
    #[error(
        "{elevator}: there is no {name:?}; tunables of {elevator}: {tunables}; attributes of the queue: {attributes}"
    )]
    UnknownName {
        /// The elevator.
        elevator: String,
        /// The name given.
        name: String,
        /// The elevator's tunables.
        tunables: String,
        /// The queue's attributes.
        attributes: String,
    },
    /// A file of a controller, beside an elevator that has none beside it.
    #[error("{elevator}: {name} can be combined only with schedulers of blk-mq: none, mq-deadline, kyber, bfq, adios")]
    NoControllers {
        /// The elevator.
        elevator: String,
        /// The file.
        name: String,
    },
    /// A value that is not taken.
    #[error("{elevator}: {source}")]
    Value {
        /// The elevator.
        elevator: String,
        /// What is wrong with it.
        source: TunableError,
    },
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl From<Registered> for Setting {
    /// The elevator with its defaults.
    fn from(registered: Registered) -> Self {
        Self { elevator: Choice::Registered(registered), ..Self::default() }
    }
}

impl Setting {
    /// What there is, unchanged.
    #[must_use]
    pub fn present() -> Self {
        Self::default()
    }

    /// The elevator of that name with its defaults: one of Linux' that we have, or one that only a kernel has.
    #[must_use]
    pub fn defaults(name: &str) -> Self {
        Self { elevator: Choice::of(name, &Registry::linux()), ..Self::default() }
    }

    /// Reads a setting of an elevator of `registry`, every name and value checked.
    ///
    /// # Errors
    /// No such elevator or name, or a value out of its declared range.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let (text, kernel) = match text.rsplit_once(AT_KERNEL) {
            Some((text, kernel)) => (text, Some(kernel.parse()?)),
            None => (text, None),
        };
        let (elevator, values) = text.split_once(':').unwrap_or((text, ""));
        let mut setting = Self { kernel, ..Self::from(registry.get(elevator.trim())?) };
        for part in parts(values) {
            let (name, value) = setting.assignment(text, part)?;
            setting.set(name, value)?;
        }
        Ok(setting)
    }

    /// Reads a setting of a kernel's disk, which may have schedulers, tunables and attributes that nobody declared
    /// here. What its values may be is for the kernel to say.
    ///
    /// # Errors
    /// A part that is not `name=value`.
    pub fn parse_of_kernel(text: &str) -> Result<Self, SettingError> {
        let (elevator, values) = text.split_once(':').unwrap_or((text, ""));
        let mut setting = Self::defaults(elevator.trim());
        for part in parts(values) {
            let (name, value) = setting.assignment(text, part)?;
            setting.set_of_kernel(name, value);
        }
        Ok(setting)
    }

    fn assignment<'t>(&self, text: &str, part: &'t str) -> Result<(&'t str, &'t str), SettingError> {
        let (name, value) = part.split_once('=').ok_or_else(|| SettingError::NotAnAssignment {
            setting: text.to_owned(),
            part: part.to_owned(),
            elevator: self.name().to_owned(),
        })?;
        Ok((name.trim(), value.trim()))
    }

    /// The elevator's name; `present` stands for the one that is there.
    #[must_use]
    pub fn name(&self) -> &str {
        self.elevator.name()
    }

    /// Whether the elevator is the one that is there.
    #[must_use]
    pub fn is_present(&self) -> bool {
        matches!(self.elevator, Choice::Present)
    }

    /// The elevator's entry.
    ///
    /// # Errors
    /// It is in no registry: only a kernel may have it.
    pub fn registered(&self) -> Result<Registered, UnknownElevator> {
        match &self.elevator {
            Choice::Registered(registered) => Ok(*registered),
            other => Registry::linux().get(other.name()),
        }
    }

    /// Whether Linux has its elevator today: see [`Registered::is_in_linux`]. One that only a kernel knows is that
    /// kernel's own.
    #[must_use]
    pub fn is_in_linux(&self) -> bool {
        self.registered().is_ok_and(|elevator| elevator.is_in_linux()) || matches!(self.elevator, Choice::Present)
    }

    /// The version of Linux whose rules a simulation of this setting follows; `None`: that of the simulation.
    #[must_use]
    pub fn kernel(&self) -> Option<KernelVersion> {
        self.kernel
    }

    /// The same setting under a version of Linux.
    #[must_use]
    pub fn at(self, kernel: KernelVersion) -> Self {
        Self { kernel: Some(kernel), ..self }
    }

    /// The same setting, without a version of Linux of its own.
    #[must_use]
    pub fn without_kernel(self) -> Self {
        Self { kernel: None, ..self }
    }

    /// What is set of the elevator, in the order it is written.
    #[must_use]
    pub fn tunables(&self) -> &[Assignment] {
        &self.tunables
    }

    /// What is set of the queue, likewise.
    #[must_use]
    pub fn attributes(&self) -> &[Assignment] {
        &self.attributes
    }

    /// All that is set: first of the elevator, then of the queue.
    pub fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        self.tunables.iter().chain(&self.attributes)
    }

    /// Adds one value: to the tunables if the elevator has one of that name, else to the attributes.
    ///
    /// # Errors
    /// No such elevator or name, or a value out of its declared range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let registered = self.registered()?;
        let refused = |source| SettingError::Value { elevator: registered.name.to_owned(), source };
        if let Some(spec) = self.elevator.tunable(name) {
            self.tunables.push(Assignment::of(name, spec, value).map_err(refused)?);
        } else if let Some(spec) = self.elevator.text(name) {
            spec.check(value).map_err(refused)?;
            self.tunables.push(Assignment::recorded(name, None, value));
        } else if let Some(spec) = attribute(name) {
            self.attributes.push(Assignment::of(name, spec, value).map_err(refused)?);
        } else if controllers::is_file(name) {
            if !registered.layer.is_multi_queue() {
                return Err(SettingError::NoControllers {
                    elevator: registered.name.to_owned(),
                    name: name.to_owned(),
                });
            }
            NamedWrite::parse(name, value).map_err(|error| refused(error.into()))?;
            self.attributes.push(Assignment { name: name.to_owned(), value: Assigned::Text(value.to_owned()) });
        } else {
            return Err(SettingError::UnknownName {
                elevator: registered.name.to_owned(),
                name: name.to_owned(),
                tunables: list(
                    (registered.tunables)()
                        .iter()
                        .map(|spec| spec.name)
                        .chain(registered.texts.iter().filter(|spec| !spec.takes.is_empty()).map(|spec| spec.name)),
                ),
                attributes: list(
                    RequestQueue::attribute_specs()
                        .filter(|s| !s.read_only)
                        .map(|spec| spec.name)
                        .chain(controllers::files()),
                ),
            });
        }
        Ok(())
    }

    /// Adds one value as [`set`](Self::set) does; what no declaration takes is kept as it is written. Names that the
    /// elevator does not declare are attributes.
    pub fn set_of_kernel(&mut self, name: &str, value: &str) {
        let bare = name.strip_prefix(ELEVATOR).unwrap_or(name);
        if let Some(spec) = self.elevator.tunable(bare) {
            self.tunables.push(Assignment::recorded(name, Some(spec), value));
        } else if self.elevator.text(bare).is_some() {
            self.tunables.push(Assignment::recorded(name, None, value));
        } else {
            self.attributes.push(Assignment::recorded(name, attribute(name), value));
        }
    }

    /// A queue with this setting, made at `now`.
    ///
    /// # Errors
    /// No such elevator, tunable or attribute, or a value that is not taken on such a device.
    pub fn build(&self, now: Time, config: &QueueConfig) -> Result<RequestQueue, SettingError> {
        let config = QueueConfig { kernel: self.kernel.unwrap_or(config.kernel), ..config.clone() };
        let mut queue = RequestQueue::new(now, &config, self.registered()?);
        self.write(|of, name, value| match of {
            Owner::Queue => queue.set_attribute(now, name, value),
            Owner::Elevator => queue.set_tunable(now, name, value),
        })?;
        Ok(queue)
    }

    /// Writes all that is set, first of the queue, then of the elevator.
    ///
    /// # Errors
    /// A value that `write` does not take; what is behind it is not written.
    pub fn write(
        &self,
        mut write: impl FnMut(Owner, &str, &str) -> Result<(), TunableError>,
    ) -> Result<(), SettingError> {
        let attributes = self.attributes.iter().map(|assignment| (Owner::Queue, assignment));
        for (of, assignment) in attributes.chain(self.tunables.iter().map(|assignment| (Owner::Elevator, assignment))) {
            let refused = |source| SettingError::Value { elevator: self.name().to_owned(), source };
            write(of, &assignment.name, &assignment.text()).map_err(refused)?;
        }
        Ok(())
    }
}

/// The declaration of an attribute of the queue.
fn attribute(name: &str) -> Option<&'static Spec> {
    RequestQueue::attribute_specs().find(|spec| spec.name == name)
}

fn parts(values: &str) -> impl Iterator<Item = &str> {
    values.split(',').map(str::trim).filter(|part| !part.is_empty())
}

impl FromStr for Setting {
    type Err = SettingError;

    /// [`Setting::parse`] of the elevators of Linux.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, &Registry::linux())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (i, assignment) in self.assignments().enumerate() {
            write!(f, "{}{}={}", if i == 0 { ':' } else { ',' }, assignment.name, assignment.text())?;
        }
        self.kernel.map_or(Ok(()), |kernel| write!(f, "{AT_KERNEL}{kernel}"))
    }
}

#[cfg(feature = "serde")]
mod form {
    //! As records keep it: the elevator's name, and names with values as text.

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Assignment, ELEVATOR, KernelVersion, Setting, attribute};

    #[derive(Serialize, Deserialize)]
    struct Form {
        name: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tunables: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel: Option<KernelVersion>,
    }

    impl Serialize for Setting {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let pairs = |all: &[Assignment]| {
                all.iter().map(|assignment| (assignment.name.clone(), assignment.text())).collect()
            };
            let (tunables, attributes) = (pairs(&self.tunables), pairs(&self.attributes));
            Form { name: self.name().to_owned(), tunables, attributes, kernel: self.kernel }.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Setting {
        /// Of whatever was recorded: whether it can be run is asked when it is.
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let Form { name, tunables, attributes, kernel } = Form::deserialize(deserializer)?;
            let mut setting = Self::defaults(&name);
            setting.kernel = kernel;
            let tunable = |name: &str| setting.elevator.tunable(name.strip_prefix(ELEVATOR).unwrap_or(name));
            let recorded = |(name, value): &(String, String)| Assignment::recorded(name, tunable(name), value);
            setting.tunables = tunables.iter().map(recorded).collect();
            let recorded = |(name, value): &(String, String)| Assignment::recorded(name, attribute(name), value);
            setting.attributes = attributes.iter().map(recorded).collect();
            Ok(setting)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_elevator_are_told_apart_and_shown_again() {
        let setting: Setting = "noop: nr_requests=512, nomerges = 1 ".parse().unwrap();
        assert_eq!((setting.tunables().len(), setting.attributes().len()), (0, 2));
        assert_eq!(setting.attributes()[0].number(), Some(512));
        assert_eq!(setting.to_string(), "noop:nr_requests=512,nomerges=1");
        let queue = setting.build(Time::ZERO, &QueueConfig::default()).unwrap();
        assert_eq!(queue.attribute("nr_requests").unwrap(), "512");
        assert_eq!("noop".parse::<Setting>().unwrap(), Setting::defaults("noop"));
    }

    #[test]
    fn a_setting_may_name_its_kernel() {
        let setting: Setting = "mq-deadline:fifo_batch=8 @ debian-12".parse().unwrap();
        assert_eq!(setting.to_string(), "mq-deadline:fifo_batch=8 @ 6.1");
        assert_eq!(setting, "mq-deadline:fifo_batch=8".parse::<Setting>().unwrap().at("6.1".parse().unwrap()));
        assert_ne!(setting, "mq-deadline:fifo_batch=8".parse().unwrap());
        let queue = setting.build(Time::ZERO, &QueueConfig::default()).unwrap();
        assert_eq!(queue.env().kernel.to_string(), "6.1");
        let error = "bfq @ 6.99".parse::<Setting>().unwrap_err().to_string();
        assert!(error.starts_with("\"6.99\" is not a known kernel"), "{error}");
        let cgroup: Setting = "none:io.max=user@1000.service:wbps=1000000".parse().unwrap();
        assert_eq!(cgroup.kernel(), None, "a name of a cgroup may have an @");
    }

    #[test]
    fn bad_settings_are_refused_before_a_run() {
        let wrong = |text: &str| text.parse::<Setting>().unwrap_err().to_string();
        assert!(wrong("nop").starts_with("there is no scheduler \"nop\"; available: noop"), "{}", wrong("nop"));
        assert!(wrong("present").starts_with("there is no scheduler \"present\""), "{}", wrong("present"));
        assert!(wrong("noop:quantum").contains("is not name=value"));
        assert!(wrong("noop:quantumm=3").contains("attributes of the queue: nr_requests"));
        assert_eq!(
            wrong("noop:nr_requests=0"),
            "noop: nr_requests: 0 is out of range; it must be from 1 to 4294967295 requests"
        );
        assert!(wrong("noop:rotational=0").contains("read-only"));
        // What the file would take as the nearest value is not what was asked for.
        assert!(wrong("deadline:read_expire=-5").contains("read_expire: -5 is out of range; it must be from 0 to "));
    }

    #[test]
    fn settings_refused_by_the_device_fail_with_the_queue() {
        let setting: Setting = "noop:max_sectors_kb=4096".parse().unwrap();
        assert!(setting.build(Time::ZERO, &QueueConfig::default()).is_err());
        let of_kernel = Setting::parse_of_kernel("noop:io_poll=0").unwrap();
        assert!(of_kernel.build(Time::ZERO, &QueueConfig::default()).is_err(), "no queue of ours has it");
        assert!(Setting::defaults("scx").build(Time::ZERO, &QueueConfig::default()).is_err());
    }

    #[test]
    fn a_setting_of_a_kernel_reads_as_it_is_written() {
        let read = |text: &str| Setting::parse_of_kernel(text).unwrap();
        for text in ["bfq", "bfq:low_latency=0,nr_requests=64", "present", "present:wbt_lat_usec=0", "scx:a=b"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("present"), Setting::present());
        assert_eq!(read("none: a = 1 ,").to_string(), "none:a=1");
        // By the declaration where there is one that takes it.
        assert_eq!(read("bfq:low_latency=0").tunables()[0].number(), Some(0));
        assert_eq!(read("bfq:iosched/low_latency=0").tunables()[0].name(), "iosched/low_latency");
        assert_eq!(read("bfq:low_latency=2").tunables()[0].number(), None);
        let error = Setting::parse_of_kernel("bfq:low_latency").unwrap_err().to_string();
        assert!(error.contains("\"low_latency\" is not name=value"), "{error}");
    }
}
