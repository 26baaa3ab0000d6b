//! A scheduler setting: an elevator, its tunables, and attributes of the queue. Simulations, served
//! disks and the kernel's disks use the same notation.

use std::fmt;
use std::str::FromStr;

use crate::controllers::{self, NamedWrite};
use crate::elevator::Registered;
use crate::kernel::{KernelVersion, UnknownKernel};
use crate::queue::{QueueConfig, RequestQueue};
use crate::registry::{Registry, UnknownElevator};
use crate::time::Time;
use crate::tunable::{Spec, TextSpec, TunableError};

/// Name that stands for the disk's present elevator.
const PRESENT: &str = "present";
/// Separator before the version of Linux.
const AT_KERNEL: &str = " @ ";
/// Optional prefix of a tunable's name, as in sysfs.
const ELEVATOR: &str = "iosched/";

/// Elevator, with values of its tunables and of the queue's attributes.
///
/// The notation is `cfq:slice_idle=0,quantum=32,nr_requests=512`. A name that is not a tunable of
/// the elevator is an attribute of the queue, or a controller's file of a cgroup. The value of a
/// cgroup's file begins with the name of the cgroup:
/// `mq-deadline:wbt_lat_usec=2000,io.max=backup:wbps=50000000/wiops=100`. `present` instead of an
/// elevator stands for the present elevator of the disk. ` @ ` and a version at the end select the
/// version of Linux that a simulation follows: `bfq @ 6.1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    elevator: Choice,
    tunables: Vec<Assignment>,
    attributes: Vec<Assignment>,
    kernel: Option<KernelVersion>,
}

/// Elevator of a setting.
#[derive(Clone, Debug, Default)]
enum Choice {
    /// The present elevator of the disk; its other tunables keep their values.
    #[default]
    Present,
    /// Entry of a registry.
    Registered(Registered),
    /// Elevator that only a kernel has, or that only a record names.
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

    /// Returns the declaration of the tunable `name`.
    fn tunable(&self, name: &str) -> Option<&'static Spec> {
        let Self::Registered(registered) = self else { return None };
        (registered.tunables)().into_iter().find(|spec| spec.name == name)
    }

    /// Returns the declaration of the file `name` that does not hold one number.
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

/// Value for one tunable or attribute.
#[derive(Clone, Debug)]
pub struct Assignment {
    name: String,
    value: Assigned,
}

/// Value to write.
#[derive(Clone, Debug)]
enum Assigned {
    /// Number, in the unit of its declaration.
    Number(&'static Spec, u64),
    /// Text that only a kernel can interpret.
    Text(String),
}

impl PartialEq for Assignment {
    /// Compares name and text. A known declaration makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text() == other.text()
    }
}

impl Eq for Assignment {}

impl Assignment {
    /// Creates an assignment from a record. Stores the value as a number if its declaration would
    /// write the number as this same text. Otherwise stores the value as text.
    fn recorded(name: &str, spec: Option<&'static Spec>, text: &str) -> Self {
        let declared =
            spec.and_then(|spec| Self::of(name, spec, text).ok()).filter(|assignment| assignment.text() == text);
        declared.unwrap_or_else(|| Self { name: name.to_owned(), value: Assigned::Text(text.to_owned()) })
    }

    fn of(name: &str, spec: &'static Spec, text: &str) -> Result<Self, TunableError> {
        Ok(Self { name: name.to_owned(), value: Assigned::Number(spec, spec.parse_exactly(text)?) })
    }

    /// Returns the name of the tunable or attribute.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value in the unit of its declaration, or `None` without a known declaration.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.value {
            Assigned::Number(_, number) => Some(number),
            Assigned::Text(_) => None,
        }
    }

    /// Returns the value as text for the file.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Assigned::Number(spec, number) => spec.number(*number).to_string(),
            Assigned::Text(text) => text.clone(),
        }
    }
}

/// Owner of an assigned value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The queue: the value is an attribute.
    Queue,
    /// The elevator: the value is a tunable.
    Elevator,
}

/// Returns whether a version of Linux belongs to a series such as `4.19`.
fn is_of_series(kernel: KernelVersion, series: &str) -> bool {
    kernel.to_string().strip_prefix(series).is_some_and(|patch| patch.is_empty() || patch.starts_with('.'))
}

/// Error in a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// The version of Linux is not known.
    #[error(transparent)]
    Kernel(#[from] UnknownKernel),
    /// The elevator has the rules of another version of Linux.
    #[error(
        "iosched has {elevator} only with the rules of Linux {rules}, not with the rules of {kernel}; write \
         {elevator} without @ {kernel}"
    )]
    OtherKernel {
        /// The elevator.
        elevator: String,
        /// Versions of Linux that are known to have its rules.
        rules: String,
        /// The version that the setting names.
        kernel: KernelVersion,
    },
    /// The version of Linux has an io.cost with other rules, or no io.cost.
    #[error(
        "{elevator}: iosched cannot simulate {name} for Linux {kernel}, because the io.cost of iosched follows Linux \
         5.10 and later; name Linux 5.10 or later, or leave {name} out"
    )]
    UnknownIoCost {
        /// The name of the elevator.
        elevator: String,
        /// The name of the file.
        name: String,
        /// The version of Linux.
        kernel: KernelVersion,
    },
    /// The elevator does not exist.
    #[error(transparent)]
    UnknownElevator(#[from] UnknownElevator),
    /// A part has no `=`.
    #[error("{setting}: {part:?} is not of the form name=value; write the setting as {elevator}:name=value,name=value")]
    NotAnAssignment {
        /// The whole setting.
        setting: String,
        /// The wrong part.
        part: String,
        /// The name of the elevator.
        elevator: String,
    },
    /// The name is neither a tunable of the elevator nor an attribute of the queue.
    #[error(
        "{elevator}: there is no tunable or attribute {name:?}; tunables of {elevator}: {tunables}; attributes of the \
         queue: {attributes}"
    )]
    UnknownName {
        /// The name of the elevator.
        elevator: String,
        /// The given name.
        name: String,
        /// The tunables of the elevator.
        tunables: String,
        /// The attributes of the queue.
        attributes: String,
    },
    /// The setting combines a controller's file with an elevator that does not support controllers.
    #[error(
        "{elevator}: {name} can be combined only with schedulers of blk-mq: none, mq-deadline, kyber, bfq, adios, \
         mclock"
    )]
    NoControllers {
        /// The name of the elevator.
        elevator: String,
        /// The name of the file.
        name: String,
    },
    /// The value is refused.
    #[error("{elevator}: {source}")]
    Value {
        /// The name of the elevator.
        elevator: String,
        /// The reason.
        source: TunableError,
    },
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl From<Registered> for Setting {
    /// Creates a setting with the elevator's defaults.
    fn from(registered: Registered) -> Self {
        Self { elevator: Choice::Registered(registered), ..Self::default() }
    }
}

impl Setting {
    /// Creates a setting that changes nothing.
    #[must_use]
    pub fn present() -> Self {
        Self::default()
    }

    /// Creates a setting of the elevator `name` with its defaults. The elevator is in
    /// [`Registry::linux`], or only a kernel has it.
    #[must_use]
    pub fn defaults(name: &str) -> Self {
        Self { elevator: Choice::of(name, &Registry::linux()), ..Self::default() }
    }

    /// Parses a setting of an elevator of `registry` and checks every name and value.
    ///
    /// # Errors
    /// Fails if the elevator or a name does not exist, or if a value is outside its declared range.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let (text, kernel) = match text.rsplit_once(AT_KERNEL) {
            Some((text, kernel)) => (text, Some(kernel.parse()?)),
            None => (text, None),
        };
        let (elevator, values) = text.split_once(':').unwrap_or((text, ""));
        let elevator = registry.get(elevator.trim())?;
        if let Some(kernel) = kernel
            && elevator.until.is_some_and(|until| !is_of_series(kernel, until))
        {
            let rules = elevator.kernels().trim_start_matches("as of ").to_owned();
            return Err(SettingError::OtherKernel { elevator: elevator.name.to_owned(), rules, kernel });
        }
        let mut setting = Self { kernel, ..Self::from(elevator) };
        for part in parts(values) {
            let (name, value) = setting.assignment(text, part)?;
            setting.set(name, value)?;
        }
        Ok(setting)
    }

    /// Parses a setting of a kernel's disk. The kernel may have schedulers, tunables and attributes
    /// that are not declared here. The kernel checks the values.
    ///
    /// # Errors
    /// Fails if a part is not `name=value`.
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

    /// Returns the elevator's name, or `present` for the disk's present elevator.
    #[must_use]
    pub fn name(&self) -> &str {
        self.elevator.name()
    }

    /// Returns whether the setting keeps the disk's present elevator.
    #[must_use]
    pub fn is_present(&self) -> bool {
        matches!(self.elevator, Choice::Present)
    }

    /// Returns the elevator's entry.
    ///
    /// # Errors
    /// Fails if the elevator is in no registry: only a kernel may have it.
    pub fn registered(&self) -> Result<Registered, UnknownElevator> {
        match &self.elevator {
            Choice::Registered(registered) => Ok(*registered),
            other => Registry::linux().get(other.name()),
        }
    }

    /// Returns whether present Linux has the elevator: see [`Registered::is_in_linux`]. Returns
    /// `true` for [`Setting::present`], and `false` for an elevator that only a kernel has.
    #[must_use]
    pub fn is_in_linux(&self) -> bool {
        self.registered().is_ok_and(|elevator| elevator.is_in_linux()) || matches!(self.elevator, Choice::Present)
    }

    /// Returns whether Linux does not include the elevator, but some modified kernels do.
    #[must_use]
    pub fn is_out_of_tree(&self) -> bool {
        self.registered().is_ok_and(|elevator| elevator.out_of_tree.is_some())
    }

    /// Returns the version of Linux that a simulation of this setting follows. If it is `None`, the
    /// version of the simulation applies.
    #[must_use]
    pub fn kernel(&self) -> Option<KernelVersion> {
        self.kernel
    }

    /// Returns the same setting under the given version of Linux.
    #[must_use]
    pub fn at(self, kernel: KernelVersion) -> Self {
        Self { kernel: Some(kernel), ..self }
    }

    /// Returns the same setting without a version of Linux.
    #[must_use]
    pub fn without_kernel(self) -> Self {
        Self { kernel: None, ..self }
    }

    /// Returns the assignments of the elevator's tunables, in the order of the text.
    #[must_use]
    pub fn tunables(&self) -> &[Assignment] {
        &self.tunables
    }

    /// Returns the assignments of the queue's attributes, in the order of the text.
    #[must_use]
    pub fn attributes(&self) -> &[Assignment] {
        &self.attributes
    }

    /// Returns all assignments: first the tunables, then the attributes.
    pub fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        self.tunables.iter().chain(&self.attributes)
    }

    /// Adds one value: to the tunables if the elevator has a tunable `name`, otherwise to the
    /// attributes.
    ///
    /// # Errors
    /// Fails if the elevator or the name does not exist, or if the value is outside its declared
    /// range. Also fails for a controller's file if the elevator does not support controllers.
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

    /// Adds one value as [`set`](Self::set) does, but without checks. A value that no declaration
    /// accepts is stored as text. Names that the elevator does not declare are attributes.
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

    /// Creates a queue with this setting at the time `now`.
    ///
    /// # Errors
    /// Fails if the elevator, a tunable or an attribute does not exist, or if
    /// the queue refuses a value on this device.
    pub fn build(&self, now: Time, config: &QueueConfig) -> Result<RequestQueue, SettingError> {
        let config = QueueConfig { kernel: self.kernel.unwrap_or(config.kernel), ..config.clone() };
        if !config.kernel.is_since(5, 10)
            && let Some(io_cost) = self.attributes.iter().find(|attribute| attribute.name.starts_with("io.cost."))
        {
            let (elevator, name) = (self.name().to_owned(), io_cost.name.clone());
            return Err(SettingError::UnknownIoCost { elevator, name, kernel: config.kernel });
        }
        let mut queue = RequestQueue::new(now, &config, self.registered()?);
        self.write(|of, name, value| match of {
            Owner::Queue => queue.set_attribute(now, name, value),
            Owner::Elevator => queue.set_tunable(now, name, value),
        })?;
        Ok(queue)
    }

    /// Writes all values: first the queue's attributes, then the elevator's tunables.
    ///
    /// # Errors
    /// Fails at the first value that `write` refuses; the remaining values are not written.
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

/// Returns the declaration of an attribute of the queue.
fn attribute(name: &str) -> Option<&'static Spec> {
    RequestQueue::attribute_specs().find(|spec| spec.name == name)
}

fn parts(values: &str) -> impl Iterator<Item = &str> {
    values.split(',').map(str::trim).filter(|part| !part.is_empty())
}

impl FromStr for Setting {
    type Err = SettingError;

    /// Calls [`Setting::parse`] with the elevators of Linux.
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
    //! Setting in a record: the elevator's name, and names with values as text.

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
        /// Accepts any recorded setting. A later run of the setting checks whether it can run.
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
    fn settings_parse_and_print_queue_attributes() {
        let setting: Setting = "noop: nr_requests=512, nomerges = 1 ".parse().unwrap();
        assert_eq!((setting.tunables().len(), setting.attributes().len()), (0, 2));
        assert_eq!(setting.attributes()[0].number(), Some(512));
        assert_eq!(setting.to_string(), "noop:nr_requests=512,nomerges=1");
        let queue = setting.build(Time::ZERO, &QueueConfig::default()).unwrap();
        assert_eq!(queue.attribute("nr_requests").unwrap(), "512");
        assert_eq!("noop".parse::<Setting>().unwrap(), Setting::defaults("noop"));
    }

    #[test]
    fn old_elevators_accept_only_their_own_kernel_version() {
        let parse = |text: &str| Setting::parse(text, &Registry::linux());
        for text in
            ["cfq @ 5.4", "cfq @ 4.18", "deadline @ 6.1", "noop @ 4.20", "cfq-2.6.34 @ 4.19", "anticipatory @ 5.0"]
        {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("only with the rules of Linux"), "{text}: {error}");
        }
        let error = parse("cfq @ 5.4").unwrap_err().to_string();
        assert_eq!(
            error,
            "iosched has cfq only with the rules of Linux 4.19, not with the rules of 5.4; write cfq \
                           without @ 5.4"
        );
        for text in ["cfq @ 4.19", "cfq @ 4.19.300", "deadline @ 4.19", "bfq @ 5.4"] {
            assert!(parse(text).is_ok(), "{text}");
        }
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
        assert_eq!(cgroup.kernel(), None, "a cgroup name may contain an @");
    }

    #[test]
    fn io_cost_is_refused_for_linux_before_5_10() {
        for (kernel, is_known) in [("4.18", false), ("5.9", false), ("5.10", true), ("6.12", true)] {
            let setting: Setting = format!("none:io.cost.qos=enable=1 @ {kernel}").parse().unwrap();
            let built = setting.build(Time::ZERO, &QueueConfig::default());
            assert_eq!(built.is_ok(), is_known, "{kernel}");
            if let Err(error) = built {
                let start = format!("none: iosched cannot simulate io.cost.qos for Linux {kernel}, ");
                assert!(error.to_string().starts_with(&start), "{error}");
            }
        }
    }

    #[test]
    fn bad_settings_are_refused_before_a_run() {
        let wrong = |text: &str| text.parse::<Setting>().unwrap_err().to_string();
        assert!(wrong("nop").starts_with("there is no scheduler \"nop\"; available: noop"), "{}", wrong("nop"));
        assert!(wrong("present").starts_with("there is no scheduler \"present\""), "{}", wrong("present"));
        assert!(wrong("noop:quantum").contains("is not of the form name=value"));
        assert!(wrong("noop:quantumm=3").contains("attributes of the queue: nr_requests"));
        assert_eq!(
            wrong("noop:nr_requests=0"),
            "noop: nr_requests: 0 is out of range; it must be from 1 to 4294967295 requests"
        );
        assert!(wrong("noop:rotational=0").contains("read-only"));
        // `set` must refuse a value that the file would round to the nearest valid value.
        assert!(wrong("deadline:read_expire=-5").contains("read_expire: -5 is out of range; it must be from 0 to "));
    }

    #[test]
    fn build_fails_for_settings_the_queue_does_not_support() {
        let setting: Setting = "noop:max_sectors_kb=4096".parse().unwrap();
        assert!(setting.build(Time::ZERO, &QueueConfig::default()).is_err());
        let of_kernel = Setting::parse_of_kernel("noop:io_poll=0").unwrap();
        assert!(of_kernel.build(Time::ZERO, &QueueConfig::default()).is_err(), "simulated queues have no io_poll");
        assert!(Setting::defaults("scx").build(Time::ZERO, &QueueConfig::default()).is_err());
    }

    #[test]
    fn settings_of_kernel_disks_are_parsed_and_printed() {
        let read = |text: &str| Setting::parse_of_kernel(text).unwrap();
        for text in ["bfq", "bfq:low_latency=0,nr_requests=64", "present", "present:wbt_lat_usec=0", "scx:a=b"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("present"), Setting::present());
        assert_eq!(read("none: a = 1 ,").to_string(), "none:a=1");
        // A value is a number if a declaration accepts it.
        assert_eq!(read("bfq:low_latency=0").tunables()[0].number(), Some(0));
        assert_eq!(read("bfq:iosched/low_latency=0").tunables()[0].name(), "iosched/low_latency");
        assert_eq!(read("bfq:low_latency=2").tunables()[0].number(), None);
        let error = Setting::parse_of_kernel("bfq:low_latency").unwrap_err().to_string();
        assert!(error.contains("\"low_latency\" is not of the form name=value"), "{error}");
    }
}
