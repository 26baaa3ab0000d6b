//! Output of a connection, in order. Small data is copied together. Large data is sent from its own
//! buffer.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use iosched_system::{Call, Memory, Piece};

use crate::Buffer;
use crate::nbd::{TlsError, Transport};
use crate::ring::Submissions;

/// Maximum size of data that is copied after its reply header, bytes. Larger data is sent from its
/// own buffer.
pub(super) const COPIED_BYTES_MAX: usize = 16 << 10;
/// Maximum number of pieces in one system call.
const PIECES_MAX: usize = 64;
/// Maximum output that one call sends completely, bytes. The kernel sends longer output step by
/// step as the client receives it, so that the client's progress is visible.
const AT_ONCE_BYTES_MAX: usize = 64 << 10;
/// Size of a TLS record, and the bytes that TLS adds to it.
const TLS_PIECE: (usize, usize) = (16 << 10, 64);

/// Output of a connection.
pub(super) struct Output {
    /// Bytes that follow all pieces.
    tail: Vec<u8>,
    pieces: VecDeque<Piece>,
    piece_bytes: usize,
    /// Number of bytes that the kernel is sending, and number of these bytes that are left.
    sending: Option<(usize, usize)>,
    /// Memory that can be reused.
    spare: Vec<Piece>,
    spare_tail: Vec<u8>,
    /// Plain bytes that TLS has not encrypted yet.
    scratch: Vec<u8>,
}

impl Output {
    pub(super) fn new() -> Self {
        Self {
            tail: Vec::new(),
            pieces: VecDeque::new(),
            piece_bytes: 0,
            sending: None,
            spare: Vec::new(),
            spare_tail: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Returns the number of bytes that are not sent yet.
    pub(super) fn bytes(&self) -> usize {
        self.tail.len() + self.piece_bytes + self.sending.map_or(0, |(_, left)| left)
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Appends the output of `write`, encrypted if `transport` is TLS.
    #[inline]
    pub(super) fn write(
        &mut self,
        transport: &mut Transport,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), TlsError> {
        if matches!(transport, Transport::Plain) {
            write(&mut self.tail);
            return Ok(());
        }
        self.scratch.clear();
        write(&mut self.scratch);
        transport.send(&mut &self.scratch[..], &mut self.tail, usize::MAX)
    }

    /// Returns the buffer for bytes that go to the socket unchanged, such as TLS's own messages.
    pub(super) fn raw(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Appends data.
    #[inline]
    pub(super) fn data(&mut self, transport: &mut Transport, data: Buffer) -> Result<(), TlsError> {
        if !matches!(transport, Transport::Plain) {
            let (piece, added) = TLS_PIECE;
            self.tail.reserve(data.len() + (data.len() / piece + 1) * added);
            return transport.send(&mut &data[..], &mut self.tail, usize::MAX);
        }
        if data.len() <= COPIED_BYTES_MAX {
            self.tail.extend_from_slice(&data);
            return Ok(());
        }
        self.end_tail();
        self.piece_bytes += data.len();
        self.pieces.push_back(Piece::Data(data));
        Ok(())
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.piece_bytes += self.tail.len();
            let next = std::mem::take(&mut self.spare_tail);
            self.pieces.push_back(Piece::Bytes(std::mem::replace(&mut self.tail, next)));
        }
    }

    /// Makes the kernel send pending output, if it is not already sending.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, id: u32, ring: &mut Submissions<'_>) {
        if self.sending.is_some() {
            return;
        }
        self.end_tail();
        if self.pieces.is_empty() {
            return;
        }
        let mut pieces = std::mem::take(&mut self.spare);
        let count = self.pieces.len().min(PIECES_MAX);
        pieces.extend(self.pieces.drain(..count));
        let bytes = pieces.iter().map(Piece::len).sum();
        self.piece_bytes -= bytes;
        self.submit(pieces, (bytes, bytes), (socket, id), ring);
    }

    fn submit(
        &mut self,
        pieces: Vec<Piece>,
        (bytes, left): (usize, usize),
        (socket, id): (BorrowedFd<'_>, u32),
        ring: &mut Submissions<'_>,
    ) {
        let all = left <= AT_ONCE_BYTES_MAX && !pieces.iter().any(Piece::may_change);
        ring.push(socket, Call::Send { pieces, sent: bytes - left, all }, id);
        self.sending = Some((bytes, left));
    }

    /// Handles a completed send of `sent` bytes, and takes back their memory. Sends the rest. Keeps
    /// at most `kept_bytes` bytes of memory for further output.
    pub(super) fn sent(
        &mut self,
        sent: usize,
        memory: Memory,
        kept_bytes: usize,
        to: (BorrowedFd<'_>, u32),
        ring: &mut Submissions<'_>,
    ) {
        let (Some((bytes, left)), Memory::Pieces(mut pieces)) = (self.sending.take(), memory) else { return };
        let left = left.saturating_sub(sent);
        if left > 0 {
            self.submit(pieces, (bytes, left), to, ring);
            return;
        }
        for piece in pieces.drain(..) {
            if let Piece::Bytes(mut bytes) = piece
                && self.spare_tail.capacity() == 0
                && bytes.capacity() <= kept_bytes
            {
                bytes.clear();
                self.spare_tail = bytes;
            }
        }
        self.spare = pieces;
        if self.scratch.capacity() > kept_bytes {
            self.scratch = Vec::new();
        }
    }

    /// Handles a failed send. The client has disconnected.
    pub(super) fn failed(&mut self) {
        self.sending = None;
    }
}
