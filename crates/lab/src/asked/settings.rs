//! What --scheduler names.

use iosched::{Registered, Registry, Setting, SettingError};

use super::scan::scanned;
use crate::nearest::{did_you_mean, listed};

/// What one --scheduler names of the elevators of `registry`: a setting, one for each value of a scan, or several
/// elevators with their defaults.
///
/// # Errors
/// What is wrong with it, and what was meant, most likely.
pub fn settings(text: &str, registry: &Registry) -> Result<Vec<Setting>, String> {
    let defaults = |wanted: fn(&Registered) -> bool| {
        let elevators = registry.elevators().iter().filter(|elevator| wanted(elevator));
        elevators.copied().map(Setting::from).collect()
    };
    match text {
        "all" => Ok(defaults(|_| true)),
        "today" => Ok(defaults(Registered::is_in_linux)),
        _ => {
            let listed = listed_settings(text);
            match listed.as_slice() {
                [one] => scanned(one)?.iter().map(|text| setting_of(text, registry)).collect(),
                several => {
                    let named: Result<Vec<_>, _> = several.iter().map(|one| settings(one, registry)).collect();
                    Ok(named?.concat())
                }
            }
        }
    }
}

/// The settings of a list, such as `none,bfq:low_latency=0,nr_requests=64,kyber`. Commas separate settings and the values
/// in them; a value belongs to the setting before it. A text that names nothing is a list of itself.
#[must_use]
pub fn listed_settings(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        // The value of a file of a cgroup may hold a colon: `io.max=backup:wbps=1`.
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

/// Whether a text may be the name of a kernel's scheduler. One that a disk does not offer may be a module that the
/// kernel loads when the scheduler is set. Of a list, a kernel takes the first name and leaves out the rest.
#[must_use]
pub fn is_scheduler_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// A setting of Linux' elevators as it is written.
///
/// # Errors
/// What is wrong with it, and what was meant, most likely.
pub fn setting(text: &str) -> Result<Setting, String> {
    setting_of(text, &Registry::linux())
}

/// A setting of an elevator of `registry` as it is written.
///
/// # Errors
/// What is wrong with it, and what was meant, most likely.
pub fn setting_of(text: &str, registry: &Registry) -> Result<Setting, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_settings_and_the_values_in_them() {
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
            let found = settings(text, &Registry::linux());
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
}
