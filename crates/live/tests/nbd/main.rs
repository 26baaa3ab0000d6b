//! The NBD protocol as a client sees it.

mod client;
mod exports;
mod fuzz;
mod handshake;
mod session;
mod tls;
mod transmission;
