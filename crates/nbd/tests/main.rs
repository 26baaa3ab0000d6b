//! The NBD protocol as a client sees it.

mod client;
mod fuzz;
mod handshake;
mod round_trip;
mod session;
mod transmission;
