//! The NBD protocol as a client sees it.

mod client;
#[path = "../common/mod.rs"]
mod common;
mod exports;
mod fuzz;
mod handshake;
mod installed;
mod server;
mod session;
mod tls;
mod transmission;
