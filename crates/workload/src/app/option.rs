//! Declarations of programs and their options.

/// Unit of the sizes of direct I/Os, bytes.
pub(super) const DIRECT_BYTES: u64 = 512;

/// An option of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppOption {
    /// Name of the option: `-s`, or `bs` if it is written `bs=VALUE`.
    pub name: &'static str,
    /// Name of the option's value; `None`: it has no value.
    pub value: Option<&'static str>,
    /// Effect of the option, its unit and its default.
    pub about: &'static str,
}

impl AppOption {
    /// Returns the syntax of the option: `-s SIZE`, `bs=BYTES`.
    #[must_use]
    pub fn usage(&self) -> String {
        match self.value {
            None => self.name.to_owned(),
            Some(value) if self.name.starts_with('-') => format!("{} {value}", self.name),
            Some(value) => format!("{}={value}", self.name),
        }
    }
}

/// Declares an option with a value.
pub(in crate::app) const fn option(name: &'static str, value: &'static str, about: &'static str) -> AppOption {
    AppOption { name, value: Some(value), about }
}

/// Declares an option without a value.
pub(in crate::app) const fn flag(name: &'static str, about: &'static str) -> AppOption {
    AppOption { name, value: None, about }
}

/// A program that a command line can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Name of the program: the first word of a command line.
    pub name: &'static str,
    /// Description of the program in one line.
    pub about: &'static str,
    /// Options of the program.
    pub options: &'static [AppOption],
}

/// Returns options and their values in fio's syntax.
pub(in crate::app) fn fio_words(options: &[(&str, String)]) -> Vec<String> {
    options.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}
