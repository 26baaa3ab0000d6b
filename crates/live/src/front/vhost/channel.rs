//! The channel by which a frontend is told what it has not asked for: that the configuration has changed.
//!
//! The crate `vhost` keeps the channel's socket to itself and has no such message. So the socket is taken out of the
//! message that brings it, which the crate reads afterwards as if nothing had happened.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send};
use vhost::vhost_user::message::{BackendReq, FrontendReq};

/// What every message begins with: what it is, flags, and the bytes that follow.
const HEADER_BYTES: usize = 12;
/// The flags of a message that is not to be answered: the protocol's version.
const FLAGS: u32 = 1;

/// The channel, if the next message brings one. Waits for that message.
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

/// Tells a frontend that the configuration has changed. One that does not take what it is told is not waited for.
pub(crate) fn tell_changed(channel: impl AsFd) {
    let request: u32 = BackendReq::CONFIG_CHANGE_MSG.into();
    let mut message = [0; HEADER_BYTES];
    message[..4].copy_from_slice(&request.to_le_bytes());
    message[4..8].copy_from_slice(&FLAGS.to_le_bytes());
    // It asks for the configuration anew when it connects again.
    let _ = send(channel, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}
