//! io.cost, as recorded on Linux 6.12.
//!
//! | file | contents |
//! |---|---|
//! | `scenario.rs` | the format of scenarios |
//! | `run.rs` | events in order |
//! | `block.rs` | the block layer: a bio's path from its task to the device |
//! | `lines.rs` | events in the format of the recordings |

mod block;
mod lines;
mod run;
mod scenario;

use super::scenario::ScenarioError;

/// Returns the trace of a scenario, line by line, in the format of the recordings.
///
/// # Errors
/// If the text is not a scenario of this family.
pub(super) fn play(json: &[u8]) -> Result<Vec<String>, ScenarioError> {
    Ok(run::Run::new(&serde_json::from_slice(json)?)?.play())
}
