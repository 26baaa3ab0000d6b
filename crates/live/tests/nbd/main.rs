//! Tests that use a served disk as NBD clients do, and tests of export declarations.

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
