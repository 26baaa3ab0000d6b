//! A line of a trace in the making: an event as a JSON object.

use std::fmt::{Display, Write as _};

use serde_json::Value;

/// A line in the making.
pub(super) struct Line(String);

impl Line {
    /// The line of an event, which happens `t_ns` ns after the run began.
    pub(super) fn new(t_ns: u64, event: &str) -> Self {
        Self(format!("{{\"t\":{t_ns},\"ev\":\"{event}\""))
    }

    /// One more field: a number, or what is written like one.
    pub(super) fn number(mut self, key: &str, value: impl Display) -> Self {
        let _ = write!(self.0, ",\"{key}\":{value}");
        self
    }

    /// One more field: a text.
    pub(super) fn text(self, key: &str, value: &str) -> Self {
        self.number(key, Value::from(value))
    }

    /// The name of its event.
    pub(super) fn event(&self) -> &str {
        self.0.split('"').nth(5).unwrap_or_default()
    }

    /// It is complete.
    pub(super) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
