//! I/O of each cgroup, from `io.stat`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::owner::shortened;
use crate::block::DeviceNumber;
use crate::cgroup::Tree;
use crate::roots::read;

/// I/O of a cgroup and its descendants on one disk.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct GroupIo {
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub write_bytes: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
}

impl GroupIo {
    /// Returns the difference to an `earlier` reading.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
        }
    }

    /// Returns the bytes in both directions.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes
    }

    /// Returns the I/Os in both directions.
    #[must_use]
    pub const fn ios(&self) -> u64 {
        self.reads + self.writes
    }
}

/// Parses the lines of `io.stat`. Disks without I/O have no numbers.
pub(super) fn parse(text: &str) -> Vec<(DeviceNumber, GroupIo)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut io = GroupIo::default();
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let field = match name {
                "rbytes" => &mut io.read_bytes,
                "wbytes" => &mut io.write_bytes,
                "rios" => &mut io.reads,
                "wios" => &mut io.writes,
                _ => continue,
            };
            *field = value.parse().ok()?;
        }
        Some((number, io))
    };
    text.lines().filter_map(line).collect()
}

/// I/O by cgroup and device.
pub(super) type GroupsIo = BTreeMap<(String, DeviceNumber), GroupIo>;

/// Reads `io.stat` of at most `groups_max` cgroups, down to the depth `depth_max`. Omits the root
/// cgroup, because its I/O is equal to the I/O of the disk.
pub(super) fn of_groups(tree: &Tree, depth_max: usize, groups_max: usize) -> GroupsIo {
    let mut found = GroupsIo::new();
    let groups = tree.groups_to(depth_max).into_iter().filter(|group| !group.is_empty());
    for group in groups.take(groups_max) {
        let Ok(text) = read(&tree.directory(&group).join("io.stat")) else { continue };
        for (number, io) in parse(&text) {
            found.insert((shortened(&group, depth_max), number), io);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_io_stat_are_read() {
        let text = "259:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0 cost.usage=7\n8:0 \n\
            7:1 rbytes=x\nnonsense\n";
        let parsed = parse(text);
        let io = GroupIo { read_bytes: 4096, write_bytes: 8192, reads: 1, writes: 2 };
        assert_eq!(parsed, [("259:0".parse().unwrap(), io), ("8:0".parse().unwrap(), GroupIo::default())]);
        assert_eq!((io.bytes(), io.ios()), (12_288, 3));
    }
}
