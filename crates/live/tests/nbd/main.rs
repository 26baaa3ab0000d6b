//! Tests of a served disk from the point of view of NBD clients, and tests of the declarations of
//! its exports.

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
