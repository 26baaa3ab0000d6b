//! The channel on which the server tells a frontend that the configuration has changed. The server
//! sends this message without a request of the frontend.
//!
//! The crate `vhost` does not give access to the channel's socket and lacks this message. This
//! module therefore peeks at the message that contains the socket, and copies the socket. The crate
//! then reads the message as usual.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send};
use vhost::vhost_user::message::{BackendReq, FrontendReq};

/// Bytes of a message's header: type, flags, and length of the rest of the message.
const HEADER_BYTES: usize = 12;
/// Flags of a message without a reply. They contain only the version of the protocol.
const FLAGS: u32 = 1;

/// Waits for the next message. Returns the channel if the message contains it.
pub(super) fn brought_by(stream: &UnixStream) -> Option<OwnedFd> {
    let mut header = [0; HEADER_BYTES];
    let (_, bytes) = recv(stream, &mut header, RecvFlags::PEEK | RecvFlags::WAITALL).ok()?;
    let request: u32 = FrontendReq::SET_BACKEND_REQ_FD.into();
    if bytes < HEADER_BYTES || header[..4] != request.to_le_bytes() {
        return None;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC;
    recvmsg(stream, &mut [IoSliceMut::new(&mut header)], &mut ancillary, flags).ok()?;
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    })
}

/// Reports to a frontend that the configuration has changed. Does not wait, even if the frontend
/// does not read.
pub(crate) fn tell_changed(channel: impl AsFd) {
    let request: u32 = BackendReq::CONFIG_CHANGE_MSG.into();
    let mut message = [0; HEADER_BYTES];
    message[..4].copy_from_slice(&request.to_le_bytes());
    message[4..8].copy_from_slice(&FLAGS.to_le_bytes());
    // If this fails, the frontend reads the configuration when it connects again.
    let _ = send(channel, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}
