//! A scheduler setting: elevator, its tunables, the queue's attributes; as a user writes it.

use std::fmt;
use std::str::FromStr;

use iosched::{QueueConfig, Registry, RequestQueue, Time, TunableError, UnknownElevator};
use serde::{Deserialize, Serialize};

/// An elevator and what is set of it. Written `cfq:slice_idle=0,quantum=32,nr_requests=512`: names that are
/// attributes of the queue and not tunables of the elevator go to the attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerSetting {
    /// The elevator's name in the registry.
    pub name: String,
    /// Tunables in the order they are written, value in the unit of the declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunables: Vec<(String, String)>,
    /// Attributes of the queue, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
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

impl SchedulerSetting {
    /// The elevator `name` with its defaults.
    #[must_use]
    pub fn defaults(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Adds one value: to the tunables if the elevator has one of that name, else to the attributes.
    ///
    /// # Errors
    /// No such elevator or name, or a value out of its declared range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let registered = Registry::linux().get(&self.name)?;
        let tunables = (registered.tunables)();
        let refused = |source| SettingError::Value { elevator: self.name.clone(), source };
        let pair = (name.to_owned(), value.trim().to_owned());
        if let Some(spec) = tunables.iter().find(|spec| spec.name == name) {
            spec.parse_exactly(value).map_err(refused)?;
            self.tunables.push(pair);
        } else if let Some(spec) = RequestQueue::attribute_specs().find(|spec| spec.name == name) {
            spec.parse_exactly(value).map_err(refused)?;
            self.attributes.push(pair);
        } else {
            return Err(SettingError::UnknownName {
                elevator: self.name.clone(),
                name: name.to_owned(),
                tunables: list(tunables.iter().map(|spec| spec.name)),
                attributes: list(RequestQueue::attribute_specs().filter(|s| !s.read_only).map(|spec| spec.name)),
            });
        }
        Ok(())
    }

    /// A queue with this setting, made at `now`.
    ///
    /// # Errors
    /// No such elevator, tunable or attribute, or a value that is not taken on such a device.
    pub fn build(&self, now: Time, config: &QueueConfig) -> Result<RequestQueue, SettingError> {
        let refused = |source| SettingError::Value { elevator: self.name.clone(), source };
        let mut queue = RequestQueue::new(now, config, Registry::linux().get(&self.name)?);
        for (name, value) in &self.attributes {
            queue.set_attribute(now, name, value).map_err(refused)?;
        }
        for (name, value) in &self.tunables {
            queue.set_tunable(now, name, value).map_err(refused)?;
        }
        Ok(queue)
    }
}

impl FromStr for SchedulerSetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, values) = text.split_once(':').unwrap_or((text, ""));
        let mut setting = Self::defaults(name.trim());
        Registry::linux().get(&setting.name)?;
        for part in values.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| SettingError::NotAnAssignment {
                setting: text.to_owned(),
                part: part.to_owned(),
                elevator: setting.name.clone(),
            })?;
            setting.set(name.trim(), value)?;
        }
        Ok(setting)
    }
}

impl fmt::Display for SchedulerSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (i, (name, value)) in self.tunables.iter().chain(&self.attributes).enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_elevator_are_told_apart_and_shown_again() {
        let setting: SchedulerSetting = "noop: nr_requests=512, nomerges = 1 ".parse().unwrap();
        assert_eq!(setting.attributes.len(), 2);
        assert_eq!(setting.to_string(), "noop:nr_requests=512,nomerges=1");
        assert_eq!(
            setting.build(Time::ZERO, &QueueConfig::default()).unwrap().attribute("nr_requests").unwrap(),
            "512"
        );
        assert_eq!("noop".parse::<SchedulerSetting>().unwrap(), SchedulerSetting::defaults("noop"));
    }

    #[test]
    fn what_is_wrong_is_said_before_anything_runs() {
        let wrong = |text: &str| text.parse::<SchedulerSetting>().unwrap_err().to_string();
        assert!(wrong("nop").starts_with("\"nop\" is not an elevator; there are noop"), "{}", wrong("nop"));
        assert!(wrong("noop:quantum").contains("is not name=value"));
        assert!(wrong("noop:quantumm=3").contains("attributes of the queue: nr_requests"));
        assert_eq!(wrong("noop:nr_requests=0"), "noop: nr_requests: 0 is out of range 1..=4294967295 requests");
        assert!(wrong("noop:rotational=0").contains("read-only"));
        // What the file would take as the nearest value is not what was asked for.
        assert!(wrong("deadline:read_expire=-5").contains("read_expire: -5 is out of range 0..="));
    }

    #[test]
    fn what_only_this_device_refuses_is_said_when_the_queue_is_built() {
        let setting: SchedulerSetting = "noop:max_sectors_kb=4096".parse().unwrap();
        assert!(setting.build(Time::ZERO, &QueueConfig::default()).is_err());
    }
}
