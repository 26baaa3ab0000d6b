//! A share of the device, and what costs are in it.

use super::clock::scale_up;

/// The share that is the whole device.
pub(super) const WHOLE: u32 = 65_536;

/// A group's shares, of [`WHOLE`], at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shares {
    /// By full weights.
    pub(super) full: u32,
    /// By current weights.
    pub(super) current: u32,
}

impl Shares {
    /// The root's.
    pub(super) const ALL: Self = Self { full: WHOLE, current: WHOLE };
}

/// What something that costs `absolute` on the whole device costs in a share of it.
pub(super) const fn in_share(absolute: u64, share: u32) -> u64 {
    scale_up(absolute, WHOLE as u64, share as u64)
}

/// What costs `cost` in a share costs on the whole device.
pub(super) const fn on_whole(cost: u64, share: u32) -> u64 {
    scale_up(cost, share as u64, WHOLE as u64)
}
