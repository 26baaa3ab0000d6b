//! The NBD protocol as a client sees it.

mod client;
mod handshake;
mod round_trip;
mod transmission;
