//! A line of a trace: an event as a JSON object.

use std::fmt::{Display, Write as _};

use serde_json::Value;

/// An unfinished line.
pub(super) struct Line(String);

impl Line {
    /// Begins the line of an event at `t_ns` ns since the start of the run.
    pub(super) fn new(t_ns: u64, event: &str) -> Self {
        Self(format!("{{\"t\":{t_ns},\"ev\":\"{event}\""))
    }

    /// Adds a field with a number, or with another value that needs no quotes.
    pub(super) fn number(mut self, key: &str, value: impl Display) -> Self {
        let _ = write!(self.0, ",\"{key}\":{value}");
        self
    }

    /// Adds a field with a text.
    pub(super) fn text(self, key: &str, value: &str) -> Self {
        self.number(key, Value::from(value))
    }

    /// Returns the name of its event.
    pub(super) fn event(&self) -> &str {
        self.0.split('"').nth(5).unwrap_or_default()
    }

    /// Completes the line.
    pub(super) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
