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
        _ => scanned(text)?.iter().map(|text| setting_of(text, registry)).collect(),
    }
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
