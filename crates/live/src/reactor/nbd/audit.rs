//! Sums over a server's connections. Histories compare them with each other.

use super::Server;
use super::account::LEAST_BYTES;

/// Sums over a server's connections.
pub(in super::super) struct Audit {
    pub(in super::super) connections: usize,
    /// Operations that the disk has not completed.
    pub(in super::super) operations: usize,
    /// Bytes that the connections hold, each by its own count.
    pub(in super::super) held_bytes: u64,
    /// Bytes that the server has counted.
    pub(in super::super) charged_bytes: u64,
    /// The largest sum that is allowed.
    pub(in super::super) bytes_max: u64,
}

impl Server {
    pub(in super::super) fn audit(&self) -> Audit {
        let connections = self.connections.len();
        Audit {
            connections,
            operations: self.pending.len(),
            held_bytes: self.connections.iter().map(|(_, connection)| connection.held_bytes()).sum(),
            charged_bytes: self.account.held_bytes,
            bytes_max: self.account.budget_bytes + connections as u64 * LEAST_BYTES,
        }
    }
}
