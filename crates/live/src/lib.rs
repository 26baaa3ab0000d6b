//! A live disk: the elevators of [`iosched`] in the data path of real storage.
#![warn(missing_docs)]

mod errno;
pub mod nbd;

pub use errno::Errno;
