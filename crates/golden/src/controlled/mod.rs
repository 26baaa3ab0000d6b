//! Recorded runs of the controllers beside the elevator.
//!
//! Each family has a block layer of its own around its controllers, as its recordings had: tasks, tags, a device, and
//! an order of events. [`rqos`] is that of wbt, io.latency and io.max.

mod rqos;

use serde::Deserialize;

/// What is wrong with a scenario of controllers.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PlayError(#[from] rqos::ScenarioError);

/// Runs that were recorded in one block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// wbt, io.latency and io.max.
    Rqos,
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
            Some(_) => None,
        }
    }

    /// How summaries call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rqos => "rqos",
        }
    }

    /// What happens in a scenario, line by line as it was recorded.
    ///
    /// # Errors
    /// The JSON is no scenario of this family.
    pub fn play(self, json: &[u8]) -> Result<Vec<String>, PlayError> {
        match self {
            Self::Rqos => Ok(rqos::play(json)?),
        }
    }
}
