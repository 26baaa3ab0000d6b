//! After the handshake: requests in, replies out.

mod reply;
mod request;

pub use reply::{Replies, ReplyTo};
pub use request::{Broken, Decoder, Event, Refusal, Request, RequestKind};
