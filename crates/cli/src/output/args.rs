//! What every command that writes files is told in the same way.

use clap::Args;

/// How files are written.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct WriteArgs {
    /// Replace files that iosched did not make; without this option, iosched leaves them alone and runs nothing
    #[arg(long, alias = "force")]
    pub(crate) overwrite: bool,
}
