//! wbt, io.latency and io.max, as they were recorded of Linux 6.12.
//!
//! | file | what it is |
//! |---|---|
//! | `scenario.rs` | what is played |
//! | `player.rs` | events in their order |
//! | `path.rs` | the way of a bio: threads, io.max, the entry, hooks, tags |
//! | `changes.rs` | writes to files, and what empties the queue for them |
//! | `lines.rs` | what happens, as the recordings write it |

mod changes;
mod lines;
mod path;
mod player;
mod scenario;

use super::scenario::ScenarioError;

/// What happens in a scenario, line by line as it was recorded.
///
/// # Errors
/// The text is no scenario of this family.
pub(super) fn play(json: &[u8]) -> Result<Vec<String>, ScenarioError> {
    Ok(player::Player::new(&scenario::Scenario::parse(json)?)?.play())
}
