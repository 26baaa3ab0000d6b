//! Shares of the device, and the conversion of costs.

use super::clock::scale_up;

/// Share of the whole device.
pub(super) const WHOLE: u32 = 65_536;

/// Shares of a group, out of [`WHOLE`], at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shares {
    /// Share by full weights.
    pub(super) full: u32,
    /// Share by current weights.
    pub(super) current: u32,
}

impl Shares {
    /// Shares of the root.
    pub(super) const ALL: Self = Self { full: WHOLE, current: WHOLE };
}

/// Converts a cost on the whole device to the cost in a share.
pub(super) const fn in_share(absolute: u64, share: u32) -> u64 {
    scale_up(absolute, WHOLE as u64, share as u64)
}

/// Converts a cost in a share to the cost on the whole device.
pub(super) const fn on_whole(cost: u64, share: u32) -> u64 {
    scale_up(cost, share as u64, WHOLE as u64)
}
