//! Receives the bytes of a connection, and manages the memory for these bytes. The data of a large
//! write goes directly into the write's buffer. All other bytes go into the connection's receive
//! buffer. This buffer stays small while few bytes arrive.

use std::os::fd::AsFd;

use iosched_system::{Call, Memory};

use super::{Connection, ConnectionStage, Receiving, With};
use crate::nbd::Transport;
use crate::ring::Submissions;

/// Initial size of the receive buffer, bytes.
const RECEIVED_BYTES: usize = 4 << 10;
/// Maximum size of a request with its data that the receive buffer takes at once, bytes. The data
/// of a larger request goes directly into the request's own buffer.
const REQUEST_BYTES: usize = 32 << 10;
/// Number of consecutive small receives after which the receive buffer shrinks.
const SMALL_MAX: u32 = 64;
/// Maximum amount of a write's data in one receive, bytes. Each receive counts as progress of the
/// client.
const DATA_BYTES: usize = 64 << 10;
impl Connection {
    /// Makes the kernel receive, if there is room. The receive buffer keeps at most `kept_bytes`
    /// bytes.
    pub(in super::super) fn receive(&mut self, id: u32, kept_bytes: usize, ring: &mut Submissions<'_>) {
        if self.receiving != Receiving::No || self.closed || self.stalled || self.leaving {
            return;
        }
        let direct = matches!(self.transport, Transport::Plain) && self.from == self.to;
        if let (Some(arriving), true) = (&mut self.arriving, direct) {
            let Some(room) = arriving.lend(DATA_BYTES) else { return };
            ring.push(self.socket.as_fd(), Call::ReceiveAll(room), id);
            self.receiving = Receiving::Data;
            return;
        }
        if self.from == self.to {
            self.fit_received(kept_bytes);
            (self.from, self.to) = (0, 0);
        } else if self.to == self.received.len() {
            self.received.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.to == self.received.len() {
            return;
        }
        let call = Call::Receive { bytes: std::mem::take(&mut self.received), from: self.to };
        ring.push(self.socket.as_fd(), call, id);
        self.receiving = Receiving::Bytes;
    }

    /// Adapts the size of the empty receive buffer. The buffer grows if it was too small for one
    /// request or for several requests at once. It shrinks if it was too large for a long time.
    fn fit_received(&mut self, kept_bytes: usize) {
        let now = self.received.len();
        let has_few = self.to < now / 8;
        self.small = if has_few { self.small + 1 } else { 0 };
        let is_stream = !matches!(self.transport, Transport::Plain);
        let wanted = if self.to == now && (self.requests > 1 || now < REQUEST_BYTES || is_stream) {
            now * 2
        } else if self.small > SMALL_MAX {
            self.small = 0;
            now / 2
        } else {
            now
        };
        let wanted = wanted.clamp(RECEIVED_BYTES, kept_bytes.max(RECEIVED_BYTES));
        if wanted != now {
            self.received = vec![0; wanted];
        }
        self.requests = 0;
    }

    /// Handles the result of a receive.
    pub(in super::super) fn received(&mut self, result: i32, memory: Memory, with: &mut With<'_>) {
        if let Memory::Bytes(bytes) = memory {
            self.received = bytes;
        }
        let was = std::mem::replace(&mut self.receiving, Receiving::No);
        if self.closed {
            return;
        }
        let bytes = usize::try_from(result).unwrap_or_default();
        if bytes == 0 {
            return self.nothing_more(result, with);
        }
        self.progress.moved(bytes);
        match was {
            Receiving::Data => self.data_received(bytes, with),
            _ => self.to += bytes,
        }
        self.look(with);
    }

    /// Handles the end of the input. A client that has shut down only its sending side still gets
    /// its answers.
    fn nothing_more(&mut self, result: i32, with: &mut With<'_>) {
        let shakes_hands = matches!(self.stage, ConnectionStage::Handshake(_));
        if shakes_hands {
            self.tell(
                "clients that disconnected during the handshake",
                "the client disconnected during the \
                handshake",
                with,
            );
        }
        if result == 0 && !shakes_hands && !crate::sys::has_hung_up(self.socket.as_fd()) {
            self.finish(with);
        } else {
            self.close(with);
        }
    }

    fn data_received(&mut self, bytes: usize, with: &mut With<'_>) {
        if let ConnectionStage::Transmission { decoder, .. } = &mut self.stage {
            decoder.data_received(bytes as u32);
        }
        if let Some(arriving) = &mut self.arriving {
            arriving.filled += bytes;
        }
        self.hand_over_if_arrived(with);
    }
}
