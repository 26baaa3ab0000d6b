//! Settings such as `bfq:low_latency=0,nr_requests=64`, parsed for every kind of disk.
//!
//! [`Setting`] parses the text. [`SettingTarget`] says on which kind of disk the setting is used,
//! because the kind determines the possible values. The declaration of a tunable or attribute
//! checks the value. Every command, plan file and Python call therefore reports a wrong setting
//! with the same message.

use std::str::FromStr;

use iosched::controllers::{self, NamedWrite};
use iosched::{Registered, Registry, Setting, SettingError, Spec};
use iosched_kernel::attribute::{AttributeError, declaration};
use iosched_kernel::settings::SettingsError;

use super::scan::scanned;
use crate::nearest::{did_you_mean, listed};

/// Disk that a setting is for.
#[derive(Clone, Copy, Debug)]
pub enum SettingTarget<'a> {
    /// A modelled device. It has the schedulers of a registry.
    Model(&'a Registry),
    /// A served disk. It has the schedulers of a registry and narrows the range of some attributes.
    Served(&'a Registry, fn(&Spec) -> Spec),
    /// A disk of the kernel, with the schedulers that it offers now. It may have schedulers,
    /// tunables and attributes that iosched does not declare. The kernel checks their values.
    Kernel(&'a [String]),
}

impl SettingTarget<'_> {
    /// Parses one setting, such as `bfq:low_latency=0,nr_requests=64`.
    ///
    /// # Errors
    /// The text is not a setting of this disk. The message says what is valid.
    pub fn parse(self, text: &str) -> Result<Setting, String> {
        match self {
            Self::Model(registry) => parse_declared(text, registry),
            Self::Served(registry, narrowed) => {
                let setting = parse_declared(text, registry)?;
                for assignment in setting.attributes() {
                    let declared = declaration(assignment.name(), setting.name())
                        .filter(|_| !controllers::is_file(assignment.name()));
                    let checked =
                        declared.map_or(Ok(()), |declared| declared.check_within(&assignment.text(), narrowed));
                    checked.map_err(|error| format!("{}: {error}", setting.name()))?;
                }
                Ok(setting)
            }
            Self::Kernel(offered) => parse_of_kernel(text, offered),
        }
    }

    /// Parses a text that means one or several settings: one setting, a list of settings, a scan,
    /// or one of the words `all` and `today` for the schedulers of the disk.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse).
    pub fn parse_all(self, text: &str) -> Result<Vec<Setting>, String> {
        match (text, self) {
            ("all" | "today", Self::Kernel(offered)) => offered.iter().map(|name| self.parse(name)).collect(),
            ("all", Self::Model(registry) | Self::Served(registry, _)) => Ok(defaults(registry, |_| true)),
            ("today", Self::Model(registry) | Self::Served(registry, _)) => {
                Ok(defaults(registry, Registered::is_in_linux))
            }
            _ => match listed_settings(text).as_slice() {
                [one] => scanned(one)?.iter().map(|text| self.parse(text)).collect(),
                several => {
                    let named: Result<Vec<_>, _> = several.iter().map(|one| self.parse_all(one)).collect();
                    Ok(named?.concat())
                }
            },
        }
    }
}

/// Returns the schedulers of `registry` that satisfy `wanted`, with their defaults.
fn defaults(registry: &Registry, wanted: fn(&Registered) -> bool) -> Vec<Setting> {
    registry.elevators().iter().filter(|elevator| wanted(elevator)).copied().map(Setting::from).collect()
}

fn parse_declared(text: &str, registry: &Registry) -> Result<Setting, String> {
    Setting::parse(text, registry).map_err(|error: SettingError| {
        let meant = match &error {
            SettingError::UnknownElevator(unknown) => did_you_mean(&unknown.name, unknown.known.iter().copied()),
            SettingError::UnknownName { name, tunables, attributes, .. } => {
                did_you_mean(name, listed(tunables).chain(listed(attributes)))
            }
            _ => String::new(),
        };
        format!("{error}{meant}")
    })
}

fn parse_of_kernel(text: &str, offered: &[String]) -> Result<Setting, String> {
    let setting = Setting::parse_of_kernel(text).map_err(|error| error.to_string())?;
    let scheduler = setting.name();
    if !is_scheduler_name(scheduler) {
        let offered = offered.join(", ");
        return Err(format!("{scheduler:?} is not a scheduler of this device; write one of {offered}"));
    }
    for assignment in setting.assignments() {
        let (name, value) = (assignment.name(), assignment.text());
        let checked = if name == "io.mclock" {
            Err(format!("{name}: only the scheduler mclock has this file, and no kernel has mclock"))
        } else if controllers::is_file(name) {
            NamedWrite::parse(name, &value).map(drop).map_err(|error| error.to_string())
        } else {
            let declared = declaration(&format!("iosched/{name}"), scheduler).or_else(|| declaration(name, scheduler));
            declared.map_or(Ok(()), |declared| declared.check(&value)).map_err(|error| error.to_string())
        };
        checked.map_err(|problem| format!("{scheduler}: {problem}"))?;
    }
    Ok(setting)
}

/// Returns a suggestion such as `; did you mean low_latency?` for a name that a disk of the kernel
/// does not have. The text is empty if no name is similar.
#[must_use]
pub fn settings_meant(error: &SettingsError) -> String {
    match error {
        SettingsError::Missing { name, available, .. } => did_you_mean(name, listed(available)),
        SettingsError::Attribute(AttributeError::Unknown { name, known, .. }) => {
            let known = listed(known);
            did_you_mean(name, known.map(|known| known.strip_prefix("iosched/").unwrap_or(known)))
        }
        _ => String::new(),
    }
}

/// An attribute and its new value: `[DISK/]ATTRIBUTE=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeValue {
    /// Attribute. If the user wrote the disk, its name comes before the attribute.
    pub name: String,
    /// New value.
    pub value: String,
}

/// Error of a text that is not `ATTRIBUTE=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not NAME=VALUE")]
pub struct NotAttributeValue(String);

impl AttributeValue {
    /// Splits a name into the disk and the attribute. The disk is `None` if the name does not start
    /// with a disk of `disks`.
    pub fn parts<'n, 'd>(name: &'n str, mut disks: impl Iterator<Item = &'d str>) -> (Option<&'n str>, &'n str) {
        let name = name.trim_matches('/');
        match name.split_once('/') {
            Some((disk, rest)) if disks.any(|known| known == disk) => (Some(disk), rest),
            _ => (None, name),
        }
    }
}

impl FromStr for AttributeValue {
    type Err = NotAttributeValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if !name.is_empty() && !value.is_empty() && !value.contains('\n') => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(NotAttributeValue(text.to_owned())),
        }
    }
}

/// Splits a list of settings, such as `none,bfq:low_latency=0,nr_requests=64,kyber`. Commas
/// separate both settings and their values. A value belongs to the setting before it. A text
/// without any setting is returned unchanged.
#[must_use]
pub fn listed_settings(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        // The value of a cgroup file can contain a colon, as in `io.max=backup:wbps=1`.
        let is_value = part.find('=').is_some_and(|at| !part[..at].contains(':'));
        match all.last_mut() {
            Some(last) if is_value => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(part);
            }
            _ => all.push(part.to_owned()),
        }
    }
    if all.is_empty() { vec![text.to_owned()] } else { all }
}

/// Returns whether a text can be the name of a kernel's scheduler. The disk need not offer the
/// scheduler now, because the kernel may load the scheduler's module later. Rejects a list, because
/// the kernel would use its first name and ignore the rest.
#[must_use]
pub fn is_scheduler_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_settings_and_their_values() {
        for (text, expected) in [
            ("cfq", "cfq"),
            ("mq-deadline, bfq,kyber ", "mq-deadline bfq kyber"),
            ("cfq:slice_idle=0,quantum=8", "cfq:slice_idle=0,quantum=8"),
            ("cfq,quantum=8", "cfq:quantum=8"),
            ("none,bfq:low_latency=0,nr_requests=64,kyber", "none bfq:low_latency=0,nr_requests=64 kyber"),
            ("none,wbt_lat_usec=0,io.max=db:wbps=1/wiops=2,bfq", "none:wbt_lat_usec=0,io.max=db:wbps=1/wiops=2 bfq"),
            ("none:io.max=db:wbps=1", "none:io.max=db:wbps=1"),
            ("low_latency=0,bfq", "low_latency=0 bfq"),
            ("", ""),
            (",", ","),
        ] {
            assert_eq!(listed_settings(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_list_is_not_the_name_of_a_scheduler() {
        assert!(["none", "mq-deadline", "bfq2_x.1"].into_iter().all(is_scheduler_name));
        assert!(!["", "none,bfq", "a b", "low_latency=0", "none:x", "a/b", "a\n"].into_iter().any(is_scheduler_name));
    }

    #[test]
    fn one_text_names_several_settings() {
        let named = |text: &str| {
            let found = SettingTarget::Model(&Registry::linux()).parse_all(text);
            found.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(named("none,bfq:low_latency=0,kyber").unwrap(), "none bfq:low_latency=0 kyber");
        assert_eq!(
            named("cfq:slice_idle=0..2/2,quantum=4,none").unwrap(),
            "cfq:slice_idle=0,quantum=4 cfq:slice_idle=2,quantum=4 none"
        );
        assert_eq!(named("noop,today").unwrap(), "noop mq-deadline kyber none bfq");
        for wrong in ["none,bfx", "", ",", "none,low_latency=0"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_targets_refuse_wrong_values_with_the_same_message() {
        let registry = Registry::linux();
        let offered = ["none".to_owned(), "bfq".to_owned()];
        let targets = [
            SettingTarget::Model(&registry),
            SettingTarget::Served(&registry, |spec| *spec),
            SettingTarget::Kernel(&offered),
        ];
        for (text, problem) in [
            ("bfq:low_latency=7", "bfq: low_latency: 7 is out of range; it must be from 0 to 1"),
            ("bfq:low_latency=x", "bfq: low_latency: \"x\" is not a whole number; it must be from 0 to 1"),
            ("none:nr_requests=0", "none: nr_requests: 0 is out of range; it must be from 1 to 4294967295 requests"),
            (
                "bfq:low_latency",
                "bfq:low_latency: \"low_latency\" is not of the form name=value; write the setting as bfq:name=value,name=value",
            ),
            ("bfq:slice_idle=8..0", "slice_idle: a scan must begin with the lower value; write 0..8"),
            (
                "none:io.max=db",
                "none: io.max: \"db\": the name of the cgroup is missing; write CGROUP:VALUES, such as \
                 backup:wbps=50000000/wiops=100, with + between cgroups; write any of rbps=N, wbps=N, \
                 riops=N and wiops=N, where N is 2 or more, or max",
            ),
        ] {
            for target in targets {
                assert_eq!(target.parse_all(text).unwrap_err(), problem, "{target:?}");
            }
        }
    }

    #[test]
    fn a_served_disk_narrows_the_range() {
        let narrowed = |spec: &Spec| Spec { max: if spec.name == "nr_requests" { 9 } else { spec.max }, ..*spec };
        let target = SettingTarget::Served(&Registry::linux(), narrowed);
        let error = target.parse("cfq:nr_requests=10").unwrap_err();
        assert_eq!(error, "cfq: nr_requests: 10 is out of range; it must be from 1 to 9 requests");
        assert!(target.parse("cfq:nr_requests=9,quantum=10").is_ok());
    }

    #[test]
    fn kernel_target_accepts_unknown_names() {
        let target = SettingTarget::Kernel(&[]);
        for text in ["bfq2:magic=1", "bfq:no_such=x", "present", "none:logical_block_size=512"] {
            assert_eq!(target.parse(text).unwrap().to_string(), text);
        }
        assert!(target.parse("none,bfq").unwrap_err().contains("is not a scheduler of this device"));
        assert!(target.parse("none:write_cache=off").unwrap_err().contains("must be one of write back, write through"));
    }

    #[test]
    fn attribute_has_a_name_a_value_and_an_optional_disk() {
        let read: AttributeValue = "sda/queue/nr_requests = 64".parse().unwrap();
        assert_eq!((read.name.as_str(), read.value.as_str()), ("sda/queue/nr_requests", "64"));
        assert_eq!(AttributeValue::parts(&read.name, ["sda"].into_iter()), (Some("sda"), "queue/nr_requests"));
        assert_eq!(AttributeValue::parts(&read.name, ["sdb"].into_iter()), (None, "sda/queue/nr_requests"));
        for wrong in ["", "nr_requests", "=64", "nr_requests=", "a=1\n2"] {
            let error = wrong.parse::<AttributeValue>().unwrap_err().to_string();
            assert_eq!(error, format!("{wrong:?} is not NAME=VALUE"));
        }
    }
}
