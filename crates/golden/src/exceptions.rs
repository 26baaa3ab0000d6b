//! Recorded runs that simulated runs do not reproduce, by design.

/// Elevator, name of the run, and reason.
const EXCEPTIONS: &[(&str, &str, &str)] =
    &[("cfq", "coopfuzz011", NEIGHBOUR), ("cfq", "coopfuzz034", NEIGHBOUR), ("mq-deadline", "md30_rbshape", SHAPE)];

const NEIGHBOUR: &str = "in the recorded kernel, the memory allocator decides at which of two neighbours a search ends";
const SHAPE: &str = "if several requests have the same sector, the shape of the tree in the recorded \
    kernel decides which request a \
     search finds";

/// Returns the reason why a simulated run may differ from the recorded run. `None` if the runs must
/// not differ.
pub fn reason(elevator: &str, run: &str) -> Option<&'static str> {
    EXCEPTIONS.iter().find(|known| known.0 == elevator && known.1 == run).map(|known| known.2)
}
