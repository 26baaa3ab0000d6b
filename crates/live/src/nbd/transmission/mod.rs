//! After the handshake: requests in, replies out.

mod reply;
mod request;

pub use reply::Replies;
pub use request::{Broken, Decoder, Event, Refusal, Request, RequestKind};
