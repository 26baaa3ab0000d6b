//! Red-black tree over elements of an arena, with the shape that the textbook algorithm produces.
//!
//! Linux' schedulers sometimes depend on the shape of the tree: which of several equal elements a
//! search meets first, or at which of two neighbours a search ends. The shape is therefore part of
//! the contract. An inserted node becomes a red leaf and is rebalanced as in the textbook. A
//! removed node with two children is replaced by its in-order successor.

use std::marker::PhantomData;

use super::{Id, Kind, NIL};

/// Side of smaller elements.
const LEFT: usize = 0;
/// Side of larger elements.
const RIGHT: usize = 1;

/// Position of an element in a tree. It includes the previous and the next element, so that a step
/// to a neighbour need not climb in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbLinks {
    /// Parent; the top bit says whether this node is red.
    up: u32,
    child: [u32; 2],
    neighbour: [u32; 2],
}

/// Upper limit of element numbers: the number of every element in a tree is smaller.
pub(crate) const NUMBERS_END: u32 = 1 << 30;
const RED: u32 = 1 << 31;

impl Default for RbLinks {
    fn default() -> Self {
        Self { up: NIL & !RED, child: [NIL; 2], neighbour: [NIL; 2] }
    }
}

impl RbLinks {
    /// Returns the parent; [`NIL`] for the root.
    #[inline]
    fn parent(&self) -> u32 {
        // Copies the bit below the colour over the colour. Only NIL has that bit.
        ((self.up << 1).cast_signed() >> 1).cast_unsigned()
    }

    #[inline]
    fn is_red(&self) -> bool {
        self.up & RED != 0
    }

    #[inline]
    fn set_parent(&mut self, parent: u32) {
        self.up = self.up & RED | parent & !RED;
    }

    #[inline]
    fn set_red(&mut self) {
        self.up |= RED;
    }

    #[inline]
    fn set_black(&mut self) {
        self.up &= !RED;
    }

    /// Returns the side of this node on which `child` is; [`LEFT`] if it is not a child.
    #[inline]
    fn side_of(&self, child: u32) -> usize {
        usize::from(self.child[RIGHT] == child)
    }
}

/// Element with links for trees of kind `K`.
pub(crate) trait RbNode<K> {
    /// Returns the links.
    fn links(&self) -> &RbLinks;
    /// Returns the links for writing.
    fn links_mut(&mut self) -> &mut RbLinks;

    /// Whether nodes store data about their subtrees. If not, the functions below cost nothing.
    const AUGMENTED: bool = false;

    /// Computes the node's data about its subtree from the node and its children.
    fn augment(&mut self, left: Option<u64>, right: Option<u64>) {
        let _ = (left, right);
    }

    /// Returns the node's data about its subtree.
    fn augmented(&self) -> u64 {
        0
    }
}

/// Computes the subtree data of `id` again.
#[inline]
fn augment<K, N: RbNode<K>>(nodes: &mut [N], id: u32) {
    let [left, right] = nodes[id as usize].links().child.map(|child| nodes.get(child as usize).map(N::augmented));
    nodes[id as usize].augment(left, right);
}

/// Computes the subtree data of `id` and of all its ancestors again. `id` may be [`NIL`].
#[inline]
fn augment_upwards<K, N: RbNode<K>>(nodes: &mut [N], mut id: u32) {
    while id != NIL {
        augment(nodes, id);
        id = nodes[id as usize].links().parent();
    }
}

/// Red-black tree: its root, and its first and last element.
#[derive(Debug)]
pub(crate) struct RbTree<K> {
    root: u32,
    first: u32,
    last: u32,
    /// Last inserted element, if it is still in the tree. The next
    /// element often belongs directly after it.
    finger: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Default for RbTree<K> {
    fn default() -> Self {
        Self { root: NIL, first: NIL, last: NIL, finger: NIL, kind: PhantomData }
    }
}

impl<K: Kind> RbTree<K> {
    /// Returns the root, where every search starts.
    #[must_use]
    pub(crate) fn root(&self) -> Option<K::Id> {
        K::Id::some(self.root)
    }

    /// Returns the smallest element.
    #[must_use]
    pub(crate) fn first(&self) -> Option<K::Id> {
        K::Id::some(self.first)
    }

    /// Returns the largest element.
    #[must_use]
    pub(crate) fn last(&self) -> Option<K::Id> {
        K::Id::some(self.last)
    }

    /// Returns whether the tree is empty.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Inserts `id` after all equal elements. `before(x)` returns whether `id` belongs before `x`.
    #[inline]
    pub(crate) fn insert<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id, mut before: impl FnMut(&N) -> bool) {
        // Elements that arrive in order find their place without a search.
        match nodes.get(self.finger as usize) {
            Some(finger) if !before(finger) => {
                let RbLinks { neighbour, child, .. } = *finger.links();
                match nodes.get(neighbour[RIGHT] as usize) {
                    Some(node) if !before(node) => {}
                    // Of two neighbours, one has no child on the side of the other neighbour.
                    Some(_) if child[RIGHT] != NIL => return self.put_in(nodes, id.number(), neighbour[RIGHT], LEFT),
                    _ => return self.put_in(nodes, id.number(), self.finger, RIGHT),
                }
            }
            Some(_) => {}
            None if self.root == NIL => return self.found(nodes, id.number()),
            None => {}
        }
        let (mut parent, mut at, mut side) = (self.root, self.root, LEFT);
        while let Some(node) = nodes.get(at as usize) {
            parent = at;
            side = usize::from(!before(node));
            at = node.links().child[side];
        }
        self.put_in(nodes, id.number(), parent, side);
    }

    /// Inserts `id` as the left or right child of `parent`, which must have no child on that side.
    /// `parent` is `None` if the tree is empty.
    #[inline]
    pub(crate) fn attach<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id, parent: Option<K::Id>, left: bool) {
        match parent {
            None => self.found(nodes, id.number()),
            Some(parent) => self.put_in(nodes, id.number(), parent.number(), if left { LEFT } else { RIGHT }),
        }
    }

    /// Makes `id` the root of an empty tree.
    fn found<N: RbNode<K>>(&mut self, nodes: &mut [N], id: u32) {
        *nodes[id as usize].links_mut() = RbLinks::default();
        (self.root, self.first, self.last, self.finger) = (id, id, id, id);
        if N::AUGMENTED {
            augment(nodes, id);
        }
    }

    /// Makes `id` the child of `parent` on `side`, which must be
    /// free. `id` then is a neighbour of `parent`.
    #[inline]
    fn put_in<N: RbNode<K>>(&mut self, nodes: &mut [N], id: u32, parent: u32, side: usize) {
        debug_assert!(id < NUMBERS_END, "the number of a node is below NUMBERS_END");
        self.finger = id;
        let above = nodes[parent as usize].links_mut();
        let beyond = std::mem::replace(&mut above.neighbour[side], id);
        above.child[side] = id;
        let red = above.is_red();
        let mut links = RbLinks { up: RED | parent, child: [NIL; 2], neighbour: [beyond; 2] };
        links.neighbour[side ^ 1] = parent;
        *nodes[id as usize].links_mut() = links;
        match nodes.get_mut(beyond as usize) {
            Some(node) => node.links_mut().neighbour[side ^ 1] = id,
            None if side == LEFT => self.first = id,
            None => self.last = id,
        }
        if N::AUGMENTED {
            augment_upwards(nodes, id);
        }
        if red {
            self.rebalance_after_insert(nodes, id, parent);
        }
    }

    /// Rebalances a tree in which `id` and its parent are both red.
    fn rebalance_after_insert<N: RbNode<K>>(&mut self, nodes: &mut [N], mut id: u32, mut parent: u32) {
        loop {
            // A red parent has a parent, because the root is black.
            let links = nodes[parent as usize].links();
            let (grand, inner) = (links.parent(), links.child);
            let above = nodes[grand as usize].links();
            let side = above.side_of(parent);
            if let Some(uncle) = nodes.get_mut(above.child[side ^ 1] as usize).map(N::links_mut)
                && uncle.is_red()
            {
                uncle.set_black();
                nodes[parent as usize].links_mut().set_black();
                let above = nodes[grand as usize].links().parent();
                let Some(node) = nodes.get(above as usize) else { return };
                let red = node.links().is_red();
                nodes[grand as usize].links_mut().set_red();
                if !red {
                    return;
                }
                (id, parent) = (grand, above);
                continue;
            }
            if inner[side ^ 1] == id {
                self.rotate(nodes, parent, side);
                parent = id;
            }
            nodes[parent as usize].links_mut().set_black();
            nodes[grand as usize].links_mut().set_red();
            self.rotate(nodes, grand, side ^ 1);
            return;
        }
    }

    /// Removes `id`, which is in this tree.
    #[inline]
    pub(crate) fn remove<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id) {
        let id = id.number();
        let links = *nodes[id as usize].links();
        let (parent, [left, right], [before, behind]) = (links.parent(), links.child, links.neighbour);
        match nodes.get_mut(before as usize) {
            Some(node) => node.links_mut().neighbour[RIGHT] = behind,
            None => self.first = behind,
        }
        match nodes.get_mut(behind as usize) {
            Some(node) => node.links_mut().neighbour[LEFT] = before,
            None => self.last = before,
        }
        if self.finger == id {
            self.finger = NIL;
        }
        // The place that loses a black node, if any: the child that moves up, and its new parent.
        let (child, child_parent, lost_black);
        if left != NIL && right != NIL {
            // The successor has no left child, and takes the place of `id`.
            let successor = nodes[behind as usize].links_mut();
            let successor_parent = successor.parent();
            lost_black = !successor.is_red();
            child = successor.child[RIGHT];
            (successor.up, successor.child[LEFT]) = (links.up, left);
            if behind == right {
                child_parent = behind;
            } else {
                successor.child[RIGHT] = right;
                child_parent = successor_parent;
                nodes[child_parent as usize].links_mut().child[LEFT] = child;
                if let Some(node) = nodes.get_mut(child as usize) {
                    node.links_mut().set_parent(child_parent);
                }
                nodes[right as usize].links_mut().set_parent(behind);
            }
            nodes[left as usize].links_mut().set_parent(behind);
            self.put_in_place_of(nodes, parent, id, behind);
        } else {
            child = if left == NIL { right } else { left };
            child_parent = parent;
            lost_black = !links.is_red();
            self.put_in_place_of(nodes, parent, id, child);
            if let Some(node) = nodes.get_mut(child as usize) {
                node.links_mut().set_parent(parent);
            }
        }
        if N::AUGMENTED {
            augment_upwards(nodes, child_parent);
        }
        if lost_black {
            match nodes.get_mut(child as usize).map(N::links_mut) {
                Some(links) if links.is_red() => links.set_black(),
                _ => self.rebalance_after_remove(nodes, child, child_parent),
            }
        }
    }

    /// Makes `parent`, or the root, point to `new` instead of `old`.
    #[inline]
    fn put_in_place_of<N: RbNode<K>>(&mut self, nodes: &mut [N], parent: u32, old: u32, new: u32) {
        match nodes.get_mut(parent as usize).map(N::links_mut) {
            None => self.root = new,
            Some(links) => links.child[links.side_of(old)] = new,
        }
    }

    /// Rebalances a tree in which the paths through `id` lack one black node. `id` is a black child
    /// of `parent`, or no element.
    fn rebalance_after_remove<N: RbNode<K>>(&mut self, nodes: &mut [N], mut id: u32, mut parent: u32) {
        let is_red = |nodes: &[N], id: u32| nodes.get(id as usize).is_some_and(|node| node.links().is_red());
        while let Some(above) = nodes.get(parent as usize) {
            // The other side has a black node, so only one child can be NIL.
            let side = above.links().side_of(id);
            let mut sibling = above.links().child[side ^ 1];
            if is_red(nodes, sibling) {
                nodes[sibling as usize].links_mut().set_black();
                nodes[parent as usize].links_mut().set_red();
                self.rotate(nodes, parent, side);
                sibling = nodes[parent as usize].links().child[side ^ 1];
            }
            let children = nodes[sibling as usize].links().child;
            let (near, mut far) = (children[side], children[side ^ 1]);
            if !is_red(nodes, far) {
                if !is_red(nodes, near) {
                    nodes[sibling as usize].links_mut().set_red();
                    let links = nodes[parent as usize].links_mut();
                    if links.is_red() {
                        links.set_black();
                        return;
                    }
                    (id, parent) = (parent, links.parent());
                    continue;
                }
                nodes[near as usize].links_mut().set_black();
                nodes[sibling as usize].links_mut().set_red();
                self.rotate(nodes, sibling, side ^ 1);
                (far, sibling) = (sibling, near);
            }
            let above = nodes[parent as usize].links_mut();
            let red = above.is_red();
            above.set_black();
            if red {
                nodes[sibling as usize].links_mut().set_red();
            } else {
                nodes[sibling as usize].links_mut().set_black();
            }
            nodes[far as usize].links_mut().set_black();
            self.rotate(nodes, parent, side);
            return;
        }
    }

    /// Rotates: the child of `id` on the other side takes the position of `id`, and `id` becomes
    /// the child of that child on `side`.
    fn rotate<N: RbNode<K>>(&mut self, nodes: &mut [N], id: u32, side: usize) {
        let links = nodes[id as usize].links();
        let (parent, up) = (links.parent(), links.child[side ^ 1]);
        let raised = nodes[up as usize].links_mut();
        raised.set_parent(parent);
        let inner = std::mem::replace(&mut raised.child[side], id);
        let lowered = nodes[id as usize].links_mut();
        lowered.set_parent(up);
        lowered.child[side ^ 1] = inner;
        if let Some(node) = nodes.get_mut(inner as usize) {
            node.links_mut().set_parent(id);
        }
        self.put_in_place_of(nodes, parent, id, up);
        if N::AUGMENTED {
            augment(nodes, id);
            augment(nodes, up);
        }
    }

    /// Returns the element after `id`.
    #[inline]
    pub(crate) fn next<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().neighbour[RIGHT])
    }

    /// Returns the element before `id`.
    #[inline]
    pub(crate) fn prev<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().neighbour[LEFT])
    }

    /// Returns the left child of `id`.
    #[inline]
    pub(crate) fn left<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().child[LEFT])
    }

    /// Returns the right child of `id`.
    #[inline]
    pub(crate) fn right<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().child[RIGHT])
    }

    /// Checks order, colours, links and ends. Returns the number of elements.
    ///
    /// # Panics
    /// If a check fails.
    pub(crate) fn check<N: RbNode<K>>(&self, nodes: &[N], mut in_order: impl FnMut(&N, &N) -> bool) -> usize {
        /// Adds the subtree of `id` to `walked`, in order. Returns the
        /// number of black nodes on each of its paths.
        fn walk<K: Kind, N: RbNode<K>>(nodes: &[N], id: u32, parent: u32, walked: &mut Vec<u32>) -> usize {
            let Some(links) = nodes.get(id as usize).map(N::links) else { return 1 };
            assert_eq!(links.parent(), parent, "a child knows its parent");
            let red_parent = nodes.get(parent as usize).is_some_and(|node| node.links().is_red());
            assert!(!(links.is_red() && red_parent), "no red node has a red child");
            let black = walk(nodes, links.child[LEFT], id, walked);
            walked.push(id);
            assert_eq!(
                black,
                walk(nodes, links.child[RIGHT], id, walked),
                "all paths have the same number of black nodes"
            );
            black + usize::from(!links.is_red())
        }
        let mut walked = Vec::new();
        walk(nodes, self.root, NIL, &mut walked);
        if let Some(root) = nodes.get(self.root as usize) {
            assert!(!root.links().is_red(), "the root is black");
        }
        let ends = [walked.first(), walked.last()].map(|end| end.copied().unwrap_or(NIL));
        assert_eq!([self.first, self.last], ends, "the tree knows its first and its last node");
        for (place, &id) in walked.iter().enumerate() {
            let beside = [place.wrapping_sub(1), place + 1].map(|place| walked.get(place).copied().unwrap_or(NIL));
            assert_eq!(nodes[id as usize].links().neighbour, beside, "neighbours know each other");
            if let Some(next) = nodes.get(beside[RIGHT] as usize) {
                assert!(in_order(&nodes[id as usize], next), "elements are in order");
            }
        }
        walked.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Default)]
    struct Node {
        key: u64,
        links: RbLinks,
    }

    enum Test {}

    impl Kind for Test {
        type Id = u32;
    }

    impl RbNode<Test> for Node {
        fn links(&self) -> &RbLinks {
            &self.links
        }
        fn links_mut(&mut self) -> &mut RbLinks {
            &mut self.links
        }
    }

    fn check(tree: &RbTree<Test>, arena: &[Node]) -> usize {
        tree.check(arena, |a, b| a.key <= b.key)
    }

    fn insert(tree: &mut RbTree<Test>, arena: &mut [Node], id: u32) {
        let key = arena[id as usize].key;
        tree.insert(arena, id, |at| key < at.key);
    }

    #[test]
    fn equal_keys_keep_their_insertion_order() {
        let mut arena = vec![Node { key: 5, ..Node::default() }; 9];
        let mut tree = RbTree::default();
        for id in 0..9 {
            insert(&mut tree, &mut arena, id);
        }
        let mut at = tree.first();
        for id in 0..9 {
            assert_eq!(at, Some(id));
            at = tree.next(&arena, id);
        }
    }

    proptest! {
        #[test]
        fn tree_keeps_red_black_rules_after_inserts_and_removals(keys in prop::collection::vec(0u64..40, 1..120), order in prop::collection::vec(any::<u16>(), 120)) {
            let mut arena: Vec<_> = keys.iter().map(|&key| Node { key, ..Node::default() }).collect();
            let mut tree = RbTree::default();
            let mut inside = Vec::new();
            for id in 0..keys.len() as u32 {
                insert(&mut tree, &mut arena, id);
                inside.push(id);
                prop_assert_eq!(check(&tree, &arena), inside.len());
                if order[id as usize % order.len()] % 3 == 0 {
                    let out = inside.swap_remove(order[id as usize % order.len()] as usize % inside.len());
                    tree.remove(&mut arena, out);
                    prop_assert_eq!(check(&tree, &arena), inside.len());
                }
            }
            for (i, &pick) in order.iter().enumerate() {
                if inside.is_empty() { break }
                let out = inside.swap_remove((pick as usize + i) % inside.len());
                tree.remove(&mut arena, out);
                prop_assert_eq!(check(&tree, &arena), inside.len());
            }
        }
    }
}
