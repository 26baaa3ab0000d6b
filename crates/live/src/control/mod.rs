//! Control of a live disk while it runs: a tree of files of the shape of `/sys/block`, and a socket to reach it where
//! there is no file system.

mod client;
mod error;
mod forest;
pub mod fuzz;
mod server;
pub mod tree;
pub mod wire;

pub use client::{ClientError, ControlClient, nbd_server};
pub use error::ControlError;
pub use forest::Forest;
pub use server::{CONNECTIONS_MAX, ControlServer, is_socket};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;
