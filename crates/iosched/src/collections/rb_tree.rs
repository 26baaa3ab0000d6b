//! A red-black tree over elements of an arena: the textbook's, node for node.
//!
//! Elevators' originals sometimes decide by the shape of such a tree (which of several equal elements a
//! descent meets first, at which of two neighbours it ends), so the shape is part of the contract:
//! an inserted node becomes a red leaf and is rebalanced as the textbook does; a removed node with two
//! children is replaced by its in-order successor.

use std::marker::PhantomData;

use super::{Id, Kind, NIL};

/// The side of smaller elements.
const LEFT: usize = 0;
/// The side of larger elements.
const RIGHT: usize = 1;

/// An element's place in a tree. Its neighbours in order are at hand, so that nothing climbs to find them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbLinks {
    /// The parent, and in the top bit whether this node is red.
    up: u32,
    child: [u32; 2],
    neighbour: [u32; 2],
}

/// A tree's elements have numbers below.
pub(crate) const NUMBERS_END: u32 = 1 << 30;
const RED: u32 = 1 << 31;

impl Default for RbLinks {
    fn default() -> Self {
        Self { up: NIL & !RED, child: [NIL; 2], neighbour: [NIL; 2] }
    }
}

impl RbLinks {
    /// [`NIL`] of the root.
    #[inline]
    fn parent(&self) -> u32 {
        // The bit below the colour, which only NIL has, takes its place.
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

    /// On which side of this node `child` is; [`LEFT`] if it is none of its children.
    #[inline]
    fn side_of(&self, child: u32) -> usize {
        usize::from(self.child[RIGHT] == child)
    }
}

/// An element that carries links of trees of kind `K`.
pub(crate) trait RbNode<K> {
    /// Its place.
    fn links(&self) -> &RbLinks;
    /// The same, to change.
    fn links_mut(&mut self) -> &mut RbLinks;

    /// Whether nodes know something of their subtrees. Without it the rest costs nothing.
    const AUGMENTED: bool = false;

    /// Works out what the node knows of its subtree from itself and its children.
    fn augment(&mut self, left: Option<u64>, right: Option<u64>) {
        let _ = (left, right);
    }

    /// What it knows of its subtree.
    fn augmented(&self) -> u64 {
        0
    }
}

/// Works out anew what `id` knows of its subtree.
#[inline]
fn augment<K, N: RbNode<K>>(nodes: &mut [N], id: u32) {
    let [left, right] = nodes[id as usize].links().child.map(|child| nodes.get(child as usize).map(N::augmented));
    nodes[id as usize].augment(left, right);
}

/// Works out anew what `id`, if it is an element, and everything above it know of their subtrees.
#[inline]
fn augment_upwards<K, N: RbNode<K>>(nodes: &mut [N], mut id: u32) {
    while id != NIL {
        augment(nodes, id);
        id = nodes[id as usize].links().parent();
    }
}

/// A tree: its root, and its two ends at hand.
#[derive(Debug)]
pub(crate) struct RbTree<K> {
    root: u32,
    first: u32,
    last: u32,
    /// The element put in last, if it still is in: what arrives next often belongs right behind it.
    finger: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Default for RbTree<K> {
    fn default() -> Self {
        Self { root: NIL, first: NIL, last: NIL, finger: NIL, kind: PhantomData }
    }
}

impl<K: Kind> RbTree<K> {
    /// The element every descent starts at.
    #[must_use]
    pub(crate) fn root(&self) -> Option<K::Id> {
        K::Id::some(self.root)
    }

    /// The smallest element.
    #[must_use]
    pub(crate) fn first(&self) -> Option<K::Id> {
        K::Id::some(self.first)
    }

    /// The largest element.
    #[must_use]
    pub(crate) fn last(&self) -> Option<K::Id> {
        K::Id::some(self.last)
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Puts `id` in, behind its equals. `before(x)` says whether `id` belongs before `x`.
    #[inline]
    pub(crate) fn insert<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id, mut before: impl FnMut(&N) -> bool) {
        // What arrives in order finds its place without a descent.
        match nodes.get(self.finger as usize) {
            Some(finger) if !before(finger) => {
                let RbLinks { neighbour, child, .. } = *finger.links();
                match nodes.get(neighbour[RIGHT] as usize) {
                    Some(node) if !before(node) => {}
                    // Of two neighbours, one has no child on the side of the other.
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

    /// Puts `id` in as the left or right child of `parent` (which has none there; `None` for an empty tree).
    #[inline]
    pub(crate) fn attach<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id, parent: Option<K::Id>, left: bool) {
        match parent {
            None => self.found(nodes, id.number()),
            Some(parent) => self.put_in(nodes, id.number(), parent.number(), if left { LEFT } else { RIGHT }),
        }
    }

    /// `id` becomes the root of a tree that is empty.
    fn found<N: RbNode<K>>(&mut self, nodes: &mut [N], id: u32) {
        *nodes[id as usize].links_mut() = RbLinks::default();
        (self.root, self.first, self.last, self.finger) = (id, id, id, id);
        if N::AUGMENTED {
            augment(nodes, id);
        }
    }

    /// `id` becomes the child of `parent` on `side`, where it has none, and so its neighbour.
    #[inline]
    fn put_in<N: RbNode<K>>(&mut self, nodes: &mut [N], id: u32, parent: u32, side: usize) {
        debug_assert!(id < NUMBERS_END, "the bit below the colour is NIL's");
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

    /// `id` and its parent are both red.
    fn rebalance_after_insert<N: RbNode<K>>(&mut self, nodes: &mut [N], mut id: u32, mut parent: u32) {
        loop {
            // A red parent has a parent: the root is black.
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

    /// Takes `id`, which is in this tree, out.
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
        // The place that becomes one black poorer, if any: the child that moves up and its new parent.
        let (child, child_parent, lost_black);
        if left != NIL && right != NIL {
            // The one behind it has no child on the left and takes its place.
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

    /// `parent`, or the root, points at `new` instead of `old`.
    #[inline]
    fn put_in_place_of<N: RbNode<K>>(&mut self, nodes: &mut [N], parent: u32, old: u32, new: u32) {
        match nodes.get_mut(parent as usize).map(N::links_mut) {
            None => self.root = new,
            Some(links) => links.child[links.side_of(old)] = new,
        }
    }

    /// The paths through `id`, a black child of `parent` or none, have one black node too few.
    fn rebalance_after_remove<N: RbNode<K>>(&mut self, nodes: &mut [N], mut id: u32, mut parent: u32) {
        let is_red = |nodes: &[N], id: u32| nodes.get(id as usize).is_some_and(|node| node.links().is_red());
        while let Some(above) = nodes.get(parent as usize) {
            // Both children are NIL only if nothing is missing: the other side has a black node.
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

    /// The child of `id` on the other side takes its place; `id` becomes that one's child on `side`.
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

    /// The element behind `id`.
    #[inline]
    pub(crate) fn next<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().neighbour[RIGHT])
    }

    /// The element before `id`.
    #[inline]
    pub(crate) fn prev<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().neighbour[LEFT])
    }

    /// The child of `id` on the side of smaller elements.
    #[inline]
    pub(crate) fn left<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().child[LEFT])
    }

    /// The child of `id` on the side of larger elements.
    #[inline]
    pub(crate) fn right<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().child[RIGHT])
    }

    /// Checks order, colours, links and ends; returns the number of elements.
    ///
    /// # Panics
    /// If any of it is wrong.
    pub(crate) fn check<N: RbNode<K>>(&self, nodes: &[N], mut in_order: impl FnMut(&N, &N) -> bool) -> usize {
        /// Puts the subtree of `id` on `walked` in order; how many black nodes each of its paths has.
        fn walk<K: Kind, N: RbNode<K>>(nodes: &[N], id: u32, parent: u32, walked: &mut Vec<u32>) -> usize {
            let Some(links) = nodes.get(id as usize).map(N::links) else { return 1 };
            assert_eq!(links.parent(), parent, "a child knows its parent");
            let red_parent = nodes.get(parent as usize).is_some_and(|node| node.links().is_red());
            assert!(!(links.is_red() && red_parent), "no red node has a red child");
            let black = walk(nodes, links.child[LEFT], id, walked);
            walked.push(id);
            assert_eq!(black, walk(nodes, links.child[RIGHT], id, walked), "every path has as many black nodes");
            black + usize::from(!links.is_red())
        }
        let mut walked = Vec::new();
        walk(nodes, self.root, NIL, &mut walked);
        if let Some(root) = nodes.get(self.root as usize) {
            assert!(!root.links().is_red(), "the root is black");
        }
        let ends = [walked.first(), walked.last()].map(|end| end.copied().unwrap_or(NIL));
        assert_eq!([self.first, self.last], ends, "the ends are at hand");
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
    fn equal_keys_keep_the_order_they_came_in() {
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
        fn stays_a_red_black_tree(keys in prop::collection::vec(0u64..40, 1..120), order in prop::collection::vec(any::<u16>(), 120)) {
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
