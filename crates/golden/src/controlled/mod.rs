//! Recorded runs of the controllers.
//!
//! Each family has a separate block layer around its controllers, with the same tasks, tags, device
//! and order of events as in its recordings. `rqos` is the block layer of wbt, io.latency and
//! io.max. `io_cost` is the block layer of io.cost.

mod io_cost;
mod line;
mod rqos;
mod scenario;

use serde::Deserialize;

pub use scenario::ScenarioError;

/// A family of runs that were recorded in one block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// wbt, io.latency and io.max.
    Rqos,
    /// io.cost.
    IoCost,
}

impl Family {
    /// Returns the family of a scenario in JSON. `None` if it is a scenario for elevators.
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

    /// Returns the family's name in summaries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rqos => "rqos",
            Self::IoCost => "io.cost",
        }
    }

    /// Returns the trace of a scenario, line by line, in the format of the recordings.
    ///
    /// # Errors
    /// If the JSON is not a scenario of this family.
    pub fn play(self, json: &[u8]) -> Result<Vec<String>, ScenarioError> {
        match self {
            Self::Rqos => rqos::play(json),
            Self::IoCost => io_cost::play(json),
        }
    }
}
