//! Block status: what of the disk a client is told is allocated.
//!
//! The back end is asked between two turns of the disk, so that what was answered before has been done. A connection has
//! one such request at a time, and a reply is bounded: whoever asks for much waits for others in between.

use iosched_nbd::wire::{STATE_HOLE, STATE_ZERO};
use iosched_nbd::{Extent, Replies, Request};

use super::{Connection, ConnectionStage, With};
use crate::backend::Backend;

/// Most extents in one reply: each may take two system calls. The client asks for what is behind them.
const EXTENTS_MAX: usize = 128;

/// What `backend` has where `request` asks for it.
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
    /// Asks for what is allocated, if there is room for the answer. Whether there was.
    pub(super) fn ask_for_extents(&mut self, request: Request, with: &mut With<'_>) -> bool {
        let has_room = Replies::extents_bytes_max(EXTENTS_MAX) as u64 <= self.room_bytes(with);
        if has_room {
            self.status = Some(request);
            with.statuses.push_back(with.id);
        }
        has_room
    }

    /// Tells what is allocated, if that is waited for.
    pub(in super::super) fn tell_extents(&mut self, backend: &dyn Backend, with: &mut With<'_>) {
        let Some(request) = self.status.take() else { return };
        let ConnectionStage::Transmission { replies, .. } = &self.stage else { return };
        let replies = *replies;
        self.progress.ended();
        self.say(with, |out| replies.extents(out, request.reply_to(), extents(&request, backend).into_iter()));
        if self.leaving && !self.closed {
            self.finish(with);
        }
        self.look_if_stalled(with);
    }
}
