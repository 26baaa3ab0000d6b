//! Programs and their options, as they are declared.

/// Direct I/O is a multiple of this, bytes.
pub(super) const DIRECT_BYTES: u64 = 512;

/// An option of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppOption {
    /// Its name: `-s`, or `bs` if it is written `bs=VALUE`.
    pub name: &'static str,
    /// What its value is called; `None`: it has none.
    pub value: Option<&'static str>,
    /// What it does, its unit and its default.
    pub about: &'static str,
}

impl AppOption {
    /// How it is written: `-s SIZE`, `bs=BYTES`.
    #[must_use]
    pub fn usage(&self) -> String {
        match self.value {
            None => self.name.to_owned(),
            Some(value) if self.name.starts_with('-') => format!("{} {value}", self.name),
            Some(value) => format!("{}={value}", self.name),
        }
    }
}

/// An option with a value.
pub(in crate::app) const fn option(name: &'static str, value: &'static str, about: &'static str) -> AppOption {
    AppOption { name, value: Some(value), about }
}

/// An option without a value.
pub(in crate::app) const fn flag(name: &'static str, about: &'static str) -> AppOption {
    AppOption { name, value: None, about }
}

/// A program that can be named in a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name: the command line's first word.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Its options.
    pub options: &'static [AppOption],
}

/// Options and their values, as fio reads them.
pub(in crate::app) fn fio_words(options: &[(&str, String)]) -> Vec<String> {
    options.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}
