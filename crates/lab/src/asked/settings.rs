//! What --scheduler names.

use iosched::{Registered, Registry, Setting, SettingError};

use super::nearest::{did_you_mean, listed};
use super::scan::scanned;

/// What one --scheduler names: a setting, one for each value of a scan, or several elevators with their defaults.
///
/// # Errors
/// What is wrong with it, and what was meant, most likely.
pub fn settings(text: &str) -> Result<Vec<Setting>, String> {
    let defaults = |wanted: fn(&Registered) -> bool| {
        let linux = Registry::linux();
        let elevators = linux.elevators().iter().filter(|elevator| wanted(elevator));
        elevators.map(|elevator| Setting::defaults(elevator.name)).collect()
    };
    match text {
        "all" => Ok(defaults(|_| true)),
        "today" => Ok(defaults(|elevator| elevator.until.is_none())),
        _ => scanned(text)?.iter().map(|text| setting(text)).collect(),
    }
}

/// A setting as it is written.
///
/// # Errors
/// What is wrong with it, and what was meant, most likely.
pub fn setting(text: &str) -> Result<Setting, String> {
    text.parse().map_err(|error: SettingError| {
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
