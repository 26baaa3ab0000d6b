//! The NBD protocol as a client sees it.

mod client;
#[path = "../common/mod.rs"]
mod common;
mod disk;
mod exports;
mod extended;
mod fuzz;
#[path = "../common/fuzzing.rs"]
mod fuzzing;
mod handshake;
mod installed;
#[cfg(feature = "tls")]
mod installed_tls;
mod integrity;
mod server;
mod session;
mod status;
#[cfg(feature = "tls")]
mod tls;
mod transmission;
