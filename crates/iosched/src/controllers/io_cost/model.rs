//! Cost of a bio, from the capacity of the device per second.

use super::clock::SECOND;
use crate::request::{Op, Sector};

/// Number of sectors in a page.
const PAGE_SECTORS: u64 = 8;
/// Number of bytes in a page.
const PAGE_BYTES: u64 = 4096;
/// Distance from the end of the group's last bio beyond which a bio is random, pages: 16 MiB.
const RANDOM_PAGES: u64 = 4096;

/// Direction of a bio that has a cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Direction {
    /// Returns the direction of an operation that has a cost.
    pub(super) const fn of(op: Op) -> Option<Self> {
        match op {
            Op::Read => Some(Self::Read),
            Op::Write => Some(Self::Write),
            Op::Discard | Op::WriteZeroes | Op::Flush => None,
        }
    }

    /// Returns the index in pairs: reads first.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// Capacity of a device per second in one direction, as in `io.cost.model`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Speeds {
    /// Bytes per second.
    pub(super) bps: u64,
    /// Sequential bios of 4 KiB per second.
    pub(super) sequential_iops: u64,
    /// Random bios of 4 KiB per second.
    pub(super) random_iops: u64,
}

/// Costs of bios of one direction, in virtual time (2^37 per second). A bio of n pages costs
/// `sequential` or `random` plus n times `page`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BioCosts {
    /// Cost of each page of 4 KiB.
    pub page: u64,
    /// Cost of each sequential bio. A bio is sequential if it is at most 16 MiB away from the end
    /// of the group's last bio.
    pub sequential: u64,
    /// Cost of each random bio.
    pub random: u64,
}

impl BioCosts {
    /// Computes the costs from the speeds. A bio of 4 KiB, including its page, costs one second
    /// divided by `sequential_iops` or `random_iops`.
    pub(super) fn of(speeds: &Speeds) -> Self {
        let page = match speeds.bps.div_ceil(PAGE_BYTES) {
            0 => 0,
            pages => SECOND.div_ceil(pages),
        };
        let base = |iops: u64| if iops > 0 { SECOND.div_ceil(iops).saturating_sub(page) } else { 0 };
        Self { page, sequential: base(speeds.sequential_iops), random: base(speeds.random_iops) }
    }

    /// Returns the cost of a bio of `nr_sectors` on the whole device. `cursor`: the end of the
    /// group's last bio; 0: none.
    pub(super) fn bio(&self, cursor: Sector, sector: Sector, nr_sectors: u32) -> u64 {
        let distance = if cursor == 0 { 0 } else { sector.abs_diff(cursor) / PAGE_SECTORS };
        let base = if distance > RANDOM_PAGES { self.random } else { self.sequential };
        base.wrapping_add(self.merged(nr_sectors))
    }

    /// Returns the cost of a bio that joins a request.
    pub(super) fn merged(&self, nr_sectors: u32) -> u64 {
        (u64::from(nr_sectors) / PAGE_SECTORS).max(1).wrapping_mul(self.page)
    }

    /// Returns the virtual time for the transfer of `nr_sectors`.
    pub(super) fn transfer(&self, nr_sectors: u64) -> u64 {
        (nr_sectors / PAGE_SECTORS).wrapping_mul(self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEEDS: Speeds = Speeds { bps: 60_000_000, sequential_iops: 1_000, random_iops: 500 };

    #[test]
    fn cost_of_a_random_page_is_one_second_divided_by_iops() {
        let costs = BioCosts::of(&SPEEDS);
        assert_eq!(costs, BioCosts { page: 9_382_139, sequential: 128_056_815, random: 265_495_768 });
        assert_eq!(costs.bio(1 << 30, 8, 8), SECOND.div_ceil(500));
        assert_eq!(BioCosts::of(&Speeds::default()), BioCosts::default());
        assert_eq!(
            BioCosts::of(&Speeds { random_iops: u64::MAX, ..SPEEDS }).random,
            0,
            "the base cost is not negative"
        );
    }

    #[test]
    fn a_groups_first_bio_and_jumps_up_to_16_mib_are_sequential() {
        let costs = BioCosts::of(&SPEEDS);
        let base = |cursor, sector| costs.bio(cursor, sector, 1) - costs.page;
        let far = 4096 * 8;
        assert_eq!(base(0, 1 << 40), costs.sequential);
        assert_eq!([base(far, 2 * far + 7), base(far, 2 * far + 8)], [costs.sequential, costs.random]);
        assert_eq!([base(2 * far, far), base(2 * far + 8, far)], [costs.sequential, costs.random]);
    }

    #[test]
    fn page_counts_are_rounded_down_and_at_least_one() {
        let costs = BioCosts::of(&SPEEDS);
        assert_eq!([1, 8, 12, 16].map(|nr| costs.merged(nr)), [1, 1, 1, 2].map(|pages| pages * costs.page));
    }
}
