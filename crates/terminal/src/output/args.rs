//! Options of every command that writes files.

use clap::Args;

/// How files are written.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct WriteArgs {
    /// Replace existing files that iosched did not write; without this option, such a file is an error
    #[arg(long, alias = "force")]
    pub overwrite: bool,
}
