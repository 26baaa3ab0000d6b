//! Inode numbers of the control tree: of each path that the kernel has looked up and not forgotten, one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The root directory.
pub(super) const ROOT: u64 = 1;
/// The disk, as a file in it.
pub(super) const DISK: u64 = 2;
/// The directory `block` in it: the root of the control tree.
pub(super) const BLOCK: u64 = 3;
/// The first of all others.
const FIRST: u64 = 16;

struct Node {
    path: String,
    /// How often the kernel was told of it.
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
    /// The path of an inode that the kernel knows; that of `block` is empty.
    pub(super) fn path(&self, number: u64) -> Option<&str> {
        if number == BLOCK {
            return Some("");
        }
        self.nodes.get(&number).map(|node| node.path.as_str())
    }

    /// The kernel is told of a path once more; its number.
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

    /// The number of a path, if the kernel knows it.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.numbers.get(path).copied()
    }

    /// The kernel forgets that it was told so often.
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
        assert_ne!(nodes.look_up("sda/queue"), queue, "numbers are not used again");
        nodes.forget(stat, 5);
        nodes.forget(stat, 5);
        nodes.forget(ROOT, 1);
        assert_eq!(nodes.path(BLOCK), Some(""));
        assert_eq!(nodes.path(DISK), None);
    }
}
