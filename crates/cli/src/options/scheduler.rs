//! What --scheduler names.

use iosched::{Registered, Registry, Setting};

/// What one --scheduler names: a setting, or several elevators with their defaults.
pub(crate) fn settings(text: &str) -> Result<Vec<Setting>, String> {
    let defaults = |wanted: fn(&Registered) -> bool| {
        let linux = Registry::linux();
        let elevators = linux.elevators().iter().filter(|elevator| wanted(elevator));
        elevators.map(|elevator| Setting::defaults(elevator.name)).collect()
    };
    match text {
        "all" => Ok(defaults(|_| true)),
        "today" => Ok(defaults(|elevator| elevator.until.is_none())),
        _ => setting(text).map(|setting| vec![setting]),
    }
}

pub(crate) fn setting(text: &str) -> Result<Setting, String> {
    text.parse().map_err(|error: iosched::SettingError| error.to_string())
}
