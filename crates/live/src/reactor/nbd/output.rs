//! What a connection has to send, in order: small things together, large data from where it lies.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::os::fd::RawFd;

use io_uring::{opcode, types};

use crate::Buffer;
use crate::nbd::{TlsError, Transport};
use crate::ring::Submissions;

/// Data up to this is copied behind the reply it belongs to; more is sent from its buffer.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// Pieces in one system call.
const PIECES_MAX: usize = 64;
/// What is longer is sent as the client takes it, and not waited for altogether: it shows that it gets on.
const AT_ONCE_BYTES_MAX: usize = 64 << 10;
/// What TLS adds to as many bytes as it encrypts at a time.
const TLS_PIECE: (usize, usize) = (16 << 10, 64);

/// Bytes to send.
enum Piece {
    Bytes(Vec<u8>),
    Data(Buffer),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Data(buffer) => buffer,
        }
    }
}

/// What the kernel is sending: it stays where it is until that has ended.
struct Sending {
    pieces: Vec<Piece>,
    vectors: Vec<libc::iovec>,
    message: libc::msghdr,
    left: usize,
}

// SAFETY: its pointers point into its own pieces.
unsafe impl Send for Sending {}

impl Sending {
    fn new() -> Box<Self> {
        // SAFETY: all zeroes is a message without anything.
        let message = unsafe { std::mem::zeroed() };
        Box::new(Self { pieces: Vec::new(), vectors: Vec::new(), message, left: 0 })
    }

    fn push(&mut self, piece: Piece) {
        let bytes = piece.bytes();
        self.vectors.push(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        self.left += bytes.len();
        self.pieces.push(piece);
    }

    /// Leaves out what has been sent.
    fn skip(&mut self, mut sent: usize) {
        self.left -= sent;
        for vector in &mut self.vectors {
            let here = sent.min(vector.iov_len);
            // SAFETY: it stays within the piece, or right behind it with nothing left.
            vector.iov_base = unsafe { vector.iov_base.byte_add(here) };
            vector.iov_len -= here;
            sent -= here;
        }
    }

    fn submit(&mut self, fd: RawFd, id: u32, ring: &mut Submissions<'_>) {
        self.message.msg_iov = self.vectors.as_mut_ptr();
        self.message.msg_iovlen = self.vectors.len();
        let wait = if self.left > AT_ONCE_BYTES_MAX { 0 } else { libc::MSG_WAITALL };
        let flags = (libc::MSG_NOSIGNAL | wait) as u32;
        ring.push(opcode::SendMsg::new(types::Fd(fd), &raw const self.message).flags(flags).build(), id);
    }
}

/// What a connection has to send.
pub(super) struct Output {
    /// Behind all pieces.
    tail: Vec<u8>,
    pieces: VecDeque<Piece>,
    piece_bytes: usize,
    sending: Option<Box<Sending>>,
    /// To be used again.
    spare: Option<Box<Sending>>,
    spare_tail: Vec<u8>,
    /// Plain bytes on their way into TLS.
    scratch: Vec<u8>,
}

impl Output {
    pub(super) fn new() -> Self {
        Self {
            tail: Vec::new(),
            pieces: VecDeque::new(),
            piece_bytes: 0,
            sending: None,
            spare: None,
            spare_tail: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Bytes that are not sent yet.
    pub(super) fn bytes(&self) -> usize {
        self.tail.len() + self.piece_bytes + self.sending.as_ref().map_or(0, |sending| sending.left)
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Appends what `write` writes, through `transport`.
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

    /// Appends bytes that are what goes over the socket: TLS' own.
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

    /// Lets the kernel send what there is, if it is not about that already.
    pub(super) fn send(&mut self, fd: RawFd, id: u32, ring: &mut Submissions<'_>) {
        if self.sending.is_some() {
            return;
        }
        self.end_tail();
        if self.pieces.is_empty() {
            return;
        }
        let mut sending = self.spare.take().unwrap_or_else(Sending::new);
        let count = self.pieces.len().min(PIECES_MAX);
        for piece in self.pieces.drain(..count) {
            self.piece_bytes -= piece.bytes().len();
            sending.push(piece);
        }
        sending.submit(fd, id, ring);
        self.sending = Some(sending);
    }

    /// The kernel has sent `sent` bytes of what it was given; the rest is sent, too. Of memory for what comes next,
    /// `kept_bytes` are kept.
    pub(super) fn sent(&mut self, sent: usize, fd: RawFd, id: u32, kept_bytes: usize, ring: &mut Submissions<'_>) {
        let Some(mut sending) = self.sending.take() else { return };
        sending.skip(sent.min(sending.left));
        if sending.left > 0 {
            sending.submit(fd, id, ring);
            self.sending = Some(sending);
            return;
        }
        for piece in sending.pieces.drain(..) {
            if let Piece::Bytes(mut bytes) = piece
                && self.spare_tail.capacity() == 0
                && bytes.capacity() <= kept_bytes
            {
                bytes.clear();
                self.spare_tail = bytes;
            }
        }
        sending.vectors.clear();
        self.spare = Some(sending);
        if self.scratch.capacity() > kept_bytes {
            self.scratch = Vec::new();
        }
    }

    /// The kernel could not send: nobody is there.
    pub(super) fn failed(&mut self) {
        self.sending = None;
    }
}
