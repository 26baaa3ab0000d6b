//! The calls that a ring makes, and the memory that the ring owns during a call.

use std::ops::Range;
use std::os::fd::OwnedFd;

use io_uring::{opcode, squeue, types};

use super::Slot;
use crate::buffer::{Buffer, Scratch, Segment, Shared};
use crate::ublk::QueueCommand;

/// Largest number of segments or pieces in one call. The call ignores all further segments and
/// pieces.
pub(super) const VECTORS_MAX: usize = libc::UIO_MAXIOV as usize;

/// A system call that the kernel makes asynchronously.
pub enum Call {
    /// Reads into segments, starting at byte `offset` of the file.
    Read {
        /// Destination.
        segments: Vec<Segment>,
        /// Offset in the file, bytes.
        offset: u64,
    },
    /// Writes segments.
    Write {
        /// Data.
        segments: Vec<Segment>,
        /// Offset in the file, bytes.
        offset: u64,
        /// Whether the data is on stable storage at completion.
        stable: bool,
    },
    /// Reads data that the program never accesses.
    ReadAway {
        /// Memory for the data.
        scratch: Scratch,
        /// Range in that memory.
        place: Range<usize>,
        /// Offset in the file, bytes.
        offset: u64,
    },
    /// Writes a part of shared bytes.
    WriteShared {
        /// The shared bytes.
        bytes: Shared,
        /// Range in `bytes`.
        place: Range<usize>,
        /// Offset in the file, bytes.
        offset: u64,
        /// Whether the data is on stable storage at completion.
        stable: bool,
    },
    /// Ensures that earlier writes are on stable storage when the call completes.
    Sync {
        /// Whether the call may leave out metadata other than the file's size.
        data_only: bool,
    },
    /// Calls fallocate(2).
    Allocate {
        /// Mode of fallocate(2).
        mode: i32,
        /// Start of the range, bytes.
        offset: u64,
        /// Length of the range, bytes.
        length: u64,
    },
    /// Waits until a read of the file would return immediately.
    WaitReadable,
    /// Accepts the next connection, which is returned as [`Memory::Socket`].
    Accept,
    /// Receives into a part of a buffer. The call fills the whole part unless an
    /// error prevents this.
    ReceiveAll(Segment),
    /// Receives the data that is available.
    Receive {
        /// Destination.
        bytes: Vec<u8>,
        /// Index of the first byte in `bytes`.
        from: usize,
    },
    /// Sends data over a socket.
    Send {
        /// Data, in this order.
        pieces: Vec<Piece>,
        /// Number of bytes of the data that have been sent.
        sent: usize,
        /// Whether the call continues until all data is sent or an error occurs.
        all: bool,
    },
    /// Answers a request of the ublk driver, or fetches a request.
    Ublk(QueueCommand),
}

/// Data to send: a few bytes, or the bytes of a buffer.
pub enum Piece {
    /// A few bytes.
    Bytes(Vec<u8>),
    /// Data of a buffer, which the kernel sends without a copy.
    Data(Buffer),
}

impl Piece {
    /// Returns all bytes.
    ///
    /// # Panics
    /// If some bytes are in other memory: see [`Buffer::only_to_send`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Data(buffer) => buffer,
        }
    }

    /// Returns the number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Data(buffer) => buffer.len(),
        }
    }

    /// Returns whether some of the bytes may change. In this case, a call must not continue after a
    /// partial send, because the ring must first copy the rest of the page (`keep_page`).
    #[must_use]
    pub fn may_change(&self) -> bool {
        matches!(self, Self::Data(buffer) if buffer.has_parts_elsewhere())
    }

    /// Calls `each` with the address and the length of each part, in order.
    fn places(&self, mut each: impl FnMut(*const u8, usize)) {
        match self {
            Self::Bytes(bytes) => each(bytes.as_ptr(), bytes.len()),
            Self::Data(buffer) => buffer.places(each),
        }
    }
}

/// The memory of a call, which the completion returns to the caller, or the result of the call.
#[derive(Default)]
pub enum Memory {
    /// None.
    #[default]
    None,
    /// Memory of a read or write.
    Segments(Vec<Segment>),
    /// Memory of [`Call::ReceiveAll`].
    Segment(Segment),
    /// Memory of [`Call::ReadAway`].
    Scratch(Scratch),
    /// Memory of [`Call::WriteShared`].
    Shared(Shared),
    /// Memory of [`Call::Receive`].
    Bytes(Vec<u8>),
    /// Memory of [`Call::Send`].
    Pieces(Vec<Piece>),
    /// [`Call::Accept`], in flight or failed.
    Accepting,
    /// Connection of [`Call::Accept`].
    Socket(OwnedFd),
}

/// Call that the kernel has completed, with its result.
pub struct Completed<T> {
    /// The submitter's tag for the call.
    pub tag: T,
    /// Result of the system call. A negative value is an errno.
    pub result: i32,
    /// Memory of the call, returned to the submitter.
    pub memory: Memory,
}

fn vector((start, length): (*mut u8, usize)) -> libc::iovec {
    libc::iovec { iov_base: start.cast(), iov_len: length }
}

fn flags(stable: bool) -> i32 {
    if stable { libc::RWF_DSYNC } else { 0 }
}

impl Call {
    /// Moves the memory of the call into `slot`. Returns the kernel's entry, which points to this
    /// memory.
    pub(super) fn prepare<T>(self, fd: types::Fd, ioprio: u16, slot: &mut Slot<T>) -> squeue::Entry {
        let (entry, memory) = match self {
            Self::Read { segments, offset } => {
                let entry = match &segments[..] {
                    [one] => opcode::Read::new(fd, one.start(), one.len() as u32).offset(offset).ioprio(ioprio).build(),
                    all => {
                        let count = slot.set_segments(all);
                        let read = opcode::Readv::new(fd, slot.vectors.as_ptr().cast(), count);
                        read.offset(offset).ioprio(ioprio).build()
                    }
                };
                (entry, Memory::Segments(segments))
            }
            Self::Write { segments, offset, stable } => {
                let entry = match &segments[..] {
                    [one] => {
                        let write = opcode::Write::new(fd, one.start(), one.len() as u32);
                        write.offset(offset).ioprio(ioprio).rw_flags(flags(stable)).build()
                    }
                    all => {
                        let count = slot.set_segments(all);
                        let write = opcode::Writev::new(fd, slot.vectors.as_ptr().cast(), count);
                        write.offset(offset).ioprio(ioprio).rw_flags(flags(stable)).build()
                    }
                };
                (entry, Memory::Segments(segments))
            }
            Self::ReadAway { scratch, place, offset } => {
                let start = scratch.place(place.start, place.len());
                let read = opcode::Read::new(fd, start, place.len() as u32).offset(offset).ioprio(ioprio);
                (read.build(), Memory::Scratch(scratch))
            }
            Self::WriteShared { bytes, place, offset, stable } => {
                let part = &bytes[place];
                let write = opcode::Write::new(fd, part.as_ptr(), part.len() as u32).offset(offset);
                (write.ioprio(ioprio).rw_flags(flags(stable)).build(), Memory::Shared(bytes))
            }
            Self::Sync { data_only } => {
                let flags = if data_only { types::FsyncFlags::DATASYNC } else { types::FsyncFlags::empty() };
                (opcode::Fsync::new(fd).flags(flags).build(), Memory::None)
            }
            Self::Allocate { mode, offset, length } => {
                (opcode::Fallocate::new(fd, length).offset(offset).mode(mode).build(), Memory::None)
            }
            Self::WaitReadable => (opcode::PollAdd::new(fd, libc::POLLIN as u32).build(), Memory::None),
            Self::Accept => {
                let accept = opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut());
                (accept.flags(libc::SOCK_CLOEXEC).build(), Memory::Accepting)
            }
            Self::ReceiveAll(segment) => {
                let receive = opcode::Recv::new(fd, segment.start(), segment.len() as u32);
                (receive.flags(libc::MSG_WAITALL).build(), Memory::Segment(segment))
            }
            Self::Receive { mut bytes, from } => {
                let room = &mut bytes[from..];
                (opcode::Recv::new(fd, room.as_mut_ptr(), room.len() as u32).build(), Memory::Bytes(bytes))
            }
            Self::Send { pieces, sent, all } => {
                let message = slot.set_pieces(&pieces, sent);
                slot.sent = sent;
                let wait = if all { libc::MSG_WAITALL } else { 0 };
                let send = opcode::SendMsg::new(fd, message).flags((libc::MSG_NOSIGNAL | wait) as u32);
                (send.build(), Memory::Pieces(pieces))
            }
            Self::Ublk(command) => (command.entry(fd), Memory::None),
        };
        slot.memory = memory;
        entry
    }
}

/// Copies the rest of a page that may change, after the kernel has sent `sent` bytes of the pieces.
pub(super) fn keep_page(pieces: &mut [Piece], mut sent: usize) {
    for piece in pieces {
        if sent < piece.len() {
            if let Piece::Data(buffer) = piece {
                buffer.keep_page(sent);
            }
            return;
        }
        sent -= piece.len();
    }
}

impl<T> Slot<T> {
    /// Passes segments to the kernel. Returns the number of segments.
    fn set_segments(&mut self, segments: &[Segment]) -> u32 {
        self.vectors.clear();
        let segments = segments.iter().take(VECTORS_MAX);
        self.vectors.extend(segments.map(|segment| vector((segment.start(), segment.len()))));
        self.vectors.len() as u32
    }

    fn set_pieces(&mut self, pieces: &[Piece], mut sent: usize) -> *const libc::msghdr {
        self.vectors.clear();
        for piece in pieces {
            piece.places(|start, length| {
                let here = sent.min(length);
                sent -= here;
                if here < length && self.vectors.len() < VECTORS_MAX {
                    self.vectors.push(vector((start.wrapping_add(here).cast_mut(), length - here)));
                }
            });
        }
        // SAFETY: all zeroes is an empty message.
        let message = self.message.get_or_insert_with(|| Box::new(unsafe { std::mem::zeroed() }));
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len() as _;
        &raw const **message
    }
}
