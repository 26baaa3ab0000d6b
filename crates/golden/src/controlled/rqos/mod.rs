//! wbt, io.latency and io.max, as recorded on Linux 6.12.
//!
//! | file | contents |
//! |---|---|
//! | `scenario.rs` | scenarios |
//! | `player.rs` | events in order |
//! | `path.rs` | the path of a bio: threads, io.max, the entry, hooks, tags |
//! | `changes.rs` | writes to files, and the freezes of the queue for them |
//! | `lines.rs` | events in the format of the recordings |

mod changes;
mod lines;
mod path;
mod player;
mod scenario;

use super::scenario::ScenarioError;

/// Returns the trace of a scenario, line by line, in the format of the recordings.
///
/// # Errors
/// If the text is not a scenario of this family.
pub(super) fn play(json: &[u8]) -> Result<Vec<String>, ScenarioError> {
    Ok(player::Player::new(&scenario::Scenario::parse(json)?)?.play())
}
