//! Checks whether the backing of a served disk is already in use: mounted, used as swap, or part of
//! another device. If two programs write to the same blocks independently, they destroy the data.

use std::os::unix::fs::FileTypeExt;

use anyhow::Result;
use iosched_kernel::Roots;
use iosched_kernel::block::{self, BlockDevice, Usage};
use iosched_live::backend::Spec;

use iosched_terminal::fail::usage;
use iosched_terminal::output::say;

/// Refuses a backing that is in use. With `force`, only prints a warning.
pub(crate) fn check(spec: &Spec, force: bool) -> Result<()> {
    let Some(path) = spec.path() else { return Ok(()) };
    // If the metadata cannot be read, the later opening of the backing fails with a better message.
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    let roots = Roots::default();
    let used = if found.file_type().is_block_device() {
        BlockDevice::find(&roots, path).map_or_else(|_| Usage::default(), |device| device.usage())
    } else {
        block::usage_of_file(&roots, path)
    };
    if used.is_none() {
        return Ok(());
    }
    let path = path.display();
    if !force {
        return Err(usage(format!(
            "{path}: the backing is in use: {used}; two writers would destroy the data. Unmount or free the \
             backing, or add --force to serve the backing anyway"
        )));
    }
    say!("warning: {path}: the backing is in use: {used}; iosched serves the backing anyway");
    Ok(())
}
