//! The calls that a ring makes, and the memory that it owns meanwhile.

use std::ops::Range;
use std::os::fd::OwnedFd;

use io_uring::{opcode, squeue, types};

use super::Slot;
use crate::buffer::{Buffer, Scratch, Segment, Shared};
use crate::ublk::QueueCommand;

/// Segments, or pieces, in one call; what is beyond is left.
pub(super) const VECTORS_MAX: usize = libc::UIO_MAXIOV as usize;

/// A system call that the kernel makes for us.
pub enum Call {
    /// Reads into segments, from byte `offset` of the file on.
    Read {
        /// Where to.
        segments: Vec<Segment>,
        /// In bytes.
        offset: u64,
    },
    /// Writes segments.
    Write {
        /// What.
        segments: Vec<Segment>,
        /// Where to, in bytes.
        offset: u64,
        /// On stable storage when it is done.
        stable: bool,
    },
    /// Reads, and nobody looks at what.
    ReadAway {
        /// Where it goes to.
        scratch: Scratch,
        /// Where there.
        place: Range<usize>,
        /// In bytes.
        offset: u64,
    },
    /// Writes a part of shared bytes.
    WriteShared {
        /// Of these.
        bytes: Shared,
        /// What part.
        place: Range<usize>,
        /// Where to, in bytes.
        offset: u64,
        /// On stable storage when it is done.
        stable: bool,
    },
    /// What was written before is on stable storage when it is done.
    Sync {
        /// Without what is known of the file, but for its length.
        data_only: bool,
    },
    /// `fallocate`.
    Allocate {
        /// As fallocate(2) has it.
        mode: i32,
        /// From this byte on.
        offset: u64,
        /// In bytes.
        length: u64,
    },
    /// Waits until the file can be read without waiting.
    WaitReadable,
    /// Takes the next connection, which comes as [`Memory::Socket`].
    Accept,
    /// Receives into a buffer's part, all of it if nothing prevents that.
    ReceiveAll(Segment),
    /// Receives what there is.
    Receive {
        /// Where to.
        bytes: Vec<u8>,
        /// From this byte of it on.
        from: usize,
    },
    /// Sends over a socket.
    Send {
        /// What, in this order.
        pieces: Vec<Piece>,
        /// Bytes of them that have been sent.
        sent: usize,
        /// Until nothing is left, if nothing prevents that.
        all: bool,
    },
    /// Answers the ublk driver, or asks it for a request.
    Ublk(QueueCommand),
}

/// Bytes to send.
pub enum Piece {
    /// Small ones.
    Bytes(Vec<u8>),
    /// Data, from where it is.
    Data(Buffer),
}

impl Piece {
    /// All of them.
    ///
    /// # Panics
    /// If they are elsewhere: see [`Buffer::only_to_send`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Data(buffer) => buffer,
        }
    }

    /// How many.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Data(buffer) => buffer.len(),
        }
    }

    /// Whether some of them may change, so that what is read of them at once has to be taken at once.
    #[must_use]
    pub fn may_change(&self) -> bool {
        matches!(self, Self::Data(buffer) if buffer.has_parts_elsewhere())
    }

    /// Tells `each` where they are, in order: where a part begins, and how long it is.
    fn places(&self, mut each: impl FnMut(*const u8, usize)) {
        match self {
            Self::Bytes(bytes) => each(bytes.as_ptr(), bytes.len()),
            Self::Data(buffer) => buffer.places(each),
        }
    }
}

/// What a call came with, handed back; or what came of it.
#[derive(Default)]
pub enum Memory {
    /// Nothing.
    #[default]
    None,
    /// Of a read or write.
    Segments(Vec<Segment>),
    /// Of [`Call::ReceiveAll`].
    Segment(Segment),
    /// Of [`Call::ReadAway`].
    Scratch(Scratch),
    /// Of [`Call::WriteShared`].
    Shared(Shared),
    /// Of [`Call::Receive`].
    Bytes(Vec<u8>),
    /// Of [`Call::Send`].
    Pieces(Vec<Piece>),
    /// Of [`Call::Accept`], under way or failed.
    Accepting,
    /// Of [`Call::Accept`]: the connection.
    Socket(OwnedFd),
}

/// A call that is over.
pub struct Completed<T> {
    /// The submitter's name for it.
    pub tag: T,
    /// As the system call has it: negative is an errno.
    pub result: i32,
    /// What it came with, handed back.
    pub memory: Memory,
}

fn vector((start, length): (*mut u8, usize)) -> libc::iovec {
    libc::iovec { iov_base: start.cast(), iov_len: length }
}

fn flags(stable: bool) -> i32 {
    if stable { libc::RWF_DSYNC } else { 0 }
}

impl Call {
    /// Moves what it came with into `slot`. What the kernel is told points there.
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

/// The kernel has sent so many bytes of the pieces: what it has begun of a page that may change is kept.
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
    /// How many of the segments the kernel is told of.
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
        // SAFETY: all zeroes is a message without anything.
        let message = self.message.get_or_insert_with(|| Box::new(unsafe { std::mem::zeroed() }));
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len() as _;
        &raw const **message
    }
}
