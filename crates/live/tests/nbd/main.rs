//! The NBD protocol as a client sees it.

mod client;
mod exports;
mod handshake;
mod tls;
mod transmission;
