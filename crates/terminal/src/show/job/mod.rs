//! fio job files: the description of a file's jobs, and the list of fio's options.

mod describe;
mod options;
mod page;

pub use options::list as options;
pub use page::{json, text};
