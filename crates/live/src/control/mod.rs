//! Control of a served disk while it runs: a tree of files in the form of `/sys/block`, and a
//! socket that gives access to the tree without a file system.

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
