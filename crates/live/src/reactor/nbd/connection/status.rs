//! Block status: the allocated ranges of the disk.
//!
//! The connection queries the back end between two turns of the disk, after earlier answers have
//! taken effect. A connection has only one such request at a time, and the length of a reply is
//! bounded. A client with a large request therefore does not block other clients.

use iosched_nbd::wire::{STATE_HOLE, STATE_ZERO};
use iosched_nbd::{Extent, Replies, Request};

use super::{Connection, ConnectionStage, With};
use crate::backend::Backend;

/// Maximum number of extents in one reply. The number is limited because each extent may need two
/// system calls. The client can request the remaining extents.
const EXTENTS_MAX: usize = 128;

/// Returns the extents of `backend` in the range of `request`.
fn extents(request: &Request, backend: &dyn Backend) -> Vec<Extent> {
    let count_max = if request.one_extent { 1 } else { EXTENTS_MAX };
    let (mut at, end) = (request.offset, request.offset + request.length);
    let mut extents = Vec::new();
    while at < end && extents.len() < count_max {
        let extent = backend.extent(at..end);
        at += extent.length;
        let state = if extent.is_hole { STATE_HOLE | STATE_ZERO } else { 0 };
        extents.push(Extent { length: extent.length, state });
    }
    extents
}

impl Connection {
    /// Queues a request for block status if there is room for the answer. Returns whether there was
    /// room.
    pub(super) fn ask_for_extents(&mut self, request: Request, with: &mut With<'_>) -> bool {
        let has_room = Replies::extents_bytes_max(EXTENTS_MAX) as u64 <= self.room_bytes(with);
        if has_room {
            self.status = Some(request);
            with.statuses.push_back(with.id);
        }
        has_room
    }

    /// Answers a pending request for block status.
    pub(in super::super) fn tell_extents(&mut self, backend: &dyn Backend, with: &mut With<'_>) {
        let Some(request) = self.status.take() else { return };
        let ConnectionStage::Transmission { replies, .. } = &self.stage else { return };
        let replies = *replies;
        self.progress.ended();
        self.say(with, |out| replies.extents(out, request.reply_to(), extents(&request, backend).into_iter()));
        if self.leaving && !self.closed {
            self.finish(with);
        }
        self.check_for_stall(with);
    }
}
