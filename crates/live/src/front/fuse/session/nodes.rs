//! Inode numbers of the control tree. A path has an inode number from the kernel's first lookup
//! until the kernel forgets the path.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Inode number of the root directory.
pub(super) const ROOT: u64 = 1;
/// Inode number of the disk, a file in the root directory.
pub(super) const DISK: u64 = 2;
/// Inode number of the directory `block` in the root directory: the root of the control tree.
pub(super) const BLOCK: u64 = 3;
/// First inode number of other nodes.
const FIRST: u64 = 16;

struct Node {
    path: String,
    /// Number of lookups that the kernel has not forgotten.
    lookups: u64,
}

/// Paths in the control tree by inode number.
pub(super) struct Nodes {
    nodes: HashMap<u64, Node>,
    numbers: HashMap<String, u64>,
    next: u64,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { nodes: HashMap::new(), numbers: HashMap::new(), next: FIRST }
    }
}

impl Nodes {
    /// Returns the path of an inode that the kernel knows. The path of `block` is empty.
    pub(super) fn path(&self, number: u64) -> Option<&str> {
        if number == BLOCK {
            return Some("");
        }
        self.nodes.get(&number).map(|node| node.path.as_str())
    }

    /// Counts a lookup of a path by the kernel. Returns the path's inode number.
    pub(super) fn look_up(&mut self, path: &str) -> u64 {
        let number = match self.numbers.entry(path.to_owned()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let number = *new.insert(self.next);
                self.nodes.insert(number, Node { path: path.to_owned(), lookups: 0 });
                self.next += 1;
                number
            }
        };
        if let Some(node) = self.nodes.get_mut(&number) {
            node.lookups += 1;
        }
        number
    }

    /// Returns the inode number of a path, if the kernel knows it.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.numbers.get(path).copied()
    }

    /// Handles the message that the kernel has forgotten `lookups` lookups of a node.
    pub(super) fn forget(&mut self, number: u64, lookups: u64) {
        let Entry::Occupied(mut node) = self.nodes.entry(number) else { return };
        node.get_mut().lookups = node.get().lookups.saturating_sub(lookups);
        if node.get().lookups == 0 {
            let path = node.remove().path;
            self.numbers.remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_number_until_the_kernel_forgets_it() {
        let mut nodes = Nodes::default();
        let queue = nodes.look_up("sda/queue");
        assert_eq!(nodes.look_up("sda/queue"), queue);
        let stat = nodes.look_up("sda/stat");
        assert_ne!(queue, stat);
        assert_eq!(nodes.path(queue), Some("sda/queue"));
        assert_eq!(nodes.number("sda/queue"), Some(queue));
        nodes.forget(queue, 1);
        assert_eq!(nodes.path(queue), Some("sda/queue"));
        nodes.forget(queue, 1);
        assert_eq!((nodes.path(queue), nodes.number("sda/queue")), (None, None));
        assert_ne!(nodes.look_up("sda/queue"), queue, "numbers are not reused");
        nodes.forget(stat, 5);
        nodes.forget(stat, 5);
        nodes.forget(ROOT, 1);
        assert_eq!(nodes.path(BLOCK), Some(""));
        assert_eq!(nodes.path(DISK), None);
    }
}
