//! io.cost, as it was recorded of Linux 6.12.
//!
//! | file | what it is |
//! |---|---|
//! | `scenario.rs` | scenarios as they are written |
//! | `run.rs` | what happens when: events in their order |
//! | `block.rs` | the block layer: a bio's way from its task to the device |
//! | `lines.rs` | events as the recordings write them |

mod block;
mod lines;
mod run;
mod scenario;

use super::scenario::ScenarioError;

/// What happens in a scenario, line by line as it was recorded.
///
/// # Errors
/// The text is no scenario of this family.
pub(super) fn play(json: &[u8]) -> Result<Vec<String>, ScenarioError> {
    Ok(run::Run::new(&serde_json::from_slice(json)?)?.play())
}
