//! After the handshake: requests in, replies out.

mod reply;
mod request;

pub use reply::Replies;
pub use request::{Broken, Command, Decoder, Event, Refusal, Request};
