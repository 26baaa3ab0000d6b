//! Sums over a server's connections. Histories check that these sums agree.

use super::Server;
use super::account::LEAST_BYTES;

/// Sums over a server's connections.
pub(in super::super) struct Audit {
    pub(in super::super) connections: usize,
    /// Operations that the disk has not completed.
    pub(in super::super) operations: usize,
    /// Number of bytes that the connections hold, as each connection counts them.
    pub(in super::super) held_bytes: u64,
    /// Number of bytes that the server's account contains.
    pub(in super::super) charged_bytes: u64,
    /// Maximum allowed number of bytes.
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
