//! Recorded runs of the controllers beside the elevator.
//!
//! Each family has a block layer of its own around its controllers, as its recordings had: tasks, tags, a device, and
//! an order of events. `rqos` is that of wbt, io.latency and io.max, `io_cost` that of io.cost.

mod io_cost;
mod line;
mod rqos;
mod scenario;

use serde::Deserialize;

pub use scenario::ScenarioError;

/// Runs that were recorded in one block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// wbt, io.latency and io.max.
    Rqos,
    /// io.cost.
    IoCost,
}

impl Family {
    /// The family of a scenario, by its JSON; `None`: it is one of elevators.
    #[must_use]
    pub fn of(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head {
            sched: Option<String>,
        }
        match serde_json::from_slice::<Head>(json).ok()?.sched.as_deref() {
            None => Some(Self::Rqos),
            Some("none") => Some(Self::IoCost),
            Some(_) => None,
        }
    }

    /// How summaries call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rqos => "rqos",
            Self::IoCost => "io.cost",
        }
    }

    /// What happens in a scenario, line by line as it was recorded.
    ///
    /// # Errors
    /// The JSON is no scenario of this family.
    pub fn play(self, json: &[u8]) -> Result<Vec<String>, ScenarioError> {
        match self {
            Self::Rqos => rqos::play(json),
            Self::IoCost => io_cost::play(json),
        }
    }
}
