//! Machines by name: the hardware and kernel above the request queue, each value with its source.
//!
//! A profile is a TOML file that contains a [`Machine`].

use std::path::Path;

use iosched_machine::description::Machine;

use crate::error::LabError;

/// Built-in profiles: name and text.
const EMBEDDED: &[(&str, &str)] = &[
    ("desktop-2013", include_str!("../machines/desktop-2013.toml")),
    ("linux-6.12", include_str!("../machines/linux-6.12.toml")),
    ("phenom-ii-2009", include_str!("../machines/phenom-ii-2009.toml")),
    ("server-2005", include_str!("../machines/server-2005.toml")),
    ("server-2010", include_str!("../machines/server-2010.toml")),
];

/// A machine with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineProfile {
    /// Name of the built-in profile, or of the file.
    pub name: String,
    /// Processor, memory, settings of the kernel, and file system.
    pub machine: Machine,
    /// Text of the profile, if it came from a file.
    pub text: Option<String>,
}

impl MachineProfile {
    /// Returns the names of the built-in profiles, sorted.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// Returns the built-in profile of a machine with this name.
    ///
    /// # Errors
    /// There is no profile with that name.
    pub fn named(name: &str) -> Result<Self, LabError> {
        Self::parse(name, Self::embedded(name)?)
    }

    fn embedded(name: &str) -> Result<&'static str, LabError> {
        let found = EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        found.ok_or_else(|| LabError::UnknownMachine { name: name.to_owned(), known: Self::names().collect() })
    }

    /// Returns a built-in profile with changes.
    ///
    /// # Errors
    /// There is no profile with that name, or the profile is not valid with the changes.
    pub(crate) fn changed(name: &str, changes: &toml::Table) -> Result<Self, LabError> {
        let problem = |error: toml::de::Error| LabError::Data { file: name.to_owned(), problem: error.to_string() };
        let mut table: toml::Table = Self::embedded(name)?.parse().map_err(problem)?;
        merge(&mut table, changes);
        Ok(Self { name: name.to_owned(), machine: table.try_into().map_err(problem)?, text: None })
    }

    /// Returns a built-in profile, or reads one from a file if `name` contains a `/` or ends in
    /// `.toml`.
    ///
    /// # Errors
    /// There is no profile with that name, or the file cannot be read or is not a profile.
    pub fn load(name: &str) -> Result<Self, LabError> {
        if !iosched_disk::is_path(name) {
            return Self::named(name);
        }
        let text = iosched_trace::read_plain(Path::new(name))
            .map_err(|source| LabError::Io { file: name.to_owned(), source })?;
        Ok(Self { text: Some(text.clone()), ..Self::parse(name, &text)? })
    }

    /// Parses a profile. `name` is its name in messages.
    ///
    /// # Errors
    /// The text is not TOML, or a field is unknown, missing or of another type.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let problem = |error: toml::de::Error| LabError::Data { file: name.to_owned(), problem: error.to_string() };
        let machine = toml::from_str(text).map_err(problem)?;
        Ok(Self { name: name.to_owned(), machine, text: None })
    }
}

/// Merges `changes` into `table`, including nested tables.
pub(crate) fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, change) in changes {
        match (table.get_mut(key), change) {
            (Some(toml::Value::Table(present)), toml::Value::Table(change)) => merge(present, change),
            _ => {
                table.insert(key.clone(), change.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_valid_and_lists_its_sources() {
        for (name, text) in EMBEDDED {
            let profile = MachineProfile::named(name).unwrap();
            assert!(!profile.machine.about.is_empty(), "{name}");
            assert!(text.contains("# Sources."), "{name}");
        }
        assert!(EMBEDDED.is_sorted());
    }

    #[test]
    fn error_of_an_unknown_machine_lists_known_machines() {
        let error = MachineProfile::load("toaster").unwrap_err().to_string();
        assert!(error.contains("\"toaster\"") && error.contains("phenom-ii-2009"), "{error}");
        let error = MachineProfile::parse("mine.toml", "about = \"x\"\nhz = \"many\"").unwrap_err().to_string();
        assert!(error.starts_with("mine.toml: TOML parse error at line 2"), "{error}");
    }
}
