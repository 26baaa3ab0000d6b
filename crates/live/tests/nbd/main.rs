//! Tests of a served disk from the side of NBD clients, and of the declarations of its exports.

mod disk;
mod exports;
mod extended;
mod installed;
#[cfg(feature = "tls")]
mod installed_tls;
mod integrity;
mod server;
mod status;
#[cfg(feature = "tls")]
mod tls;
