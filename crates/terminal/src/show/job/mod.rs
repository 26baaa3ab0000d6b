//! fio job files: what a file would run, and the list of fio's options.

mod describe;
mod options;
mod page;

pub use options::list as options;
pub use page::{json, text};
