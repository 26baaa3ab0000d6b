//! Whether what a live disk is to be on is somebody else's: mounted, swapped to, or made into another device. Two who
//! write to the same blocks and do not know of each other destroy what is there.

use std::os::unix::fs::FileTypeExt;

use anyhow::Result;
use iosched_kernel::Roots;
use iosched_kernel::block::{self, BlockDevice, Usage};
use iosched_live::backend::Spec;

use crate::fail::usage;
use crate::output::say;

/// Refuses what is in use; with `force` that is only told.
pub(crate) fn check(spec: &Spec, force: bool) -> Result<()> {
    let Some(path) = spec.path() else { return Ok(()) };
    // What cannot be looked at cannot be opened either, which says why.
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
            "{path}: is in use: {used}; two writers destroy its data. End the other use, or serve it anyway with \
             --force"
        )));
    }
    say!("warning: {path}: is in use: {used}; it is served anyway");
    Ok(())
}
