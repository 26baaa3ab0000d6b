//! A red-black tree over elements of an arena: the textbook's, node for node.
//!
//! Elevators' originals sometimes decide by the shape of such a tree (which of several equal elements a
//! descent meets first, at which of two neighbours it ends), so the shape is part of the contract:
//! an inserted node becomes a red leaf and is rebalanced as the textbook does; a removed node with two
//! children is replaced by its in-order successor.

use std::marker::PhantomData;

use super::{Id, Kind, NIL};

/// An element's place in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbLinks {
    parent: u32,
    left: u32,
    right: u32,
    red: bool,
}

impl Default for RbLinks {
    fn default() -> Self {
        Self { parent: NIL, left: NIL, right: NIL, red: false }
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
    let RbLinks { left, right, .. } = *nodes[id as usize].links();
    let [left, right] = [left, right].map(|child| nodes.get(child as usize).map(N::augmented));
    nodes[id as usize].augment(left, right);
}

/// Works out anew what `id`, if it is an element, and everything above it know of their subtrees.
#[inline]
fn augment_upwards<K, N: RbNode<K>>(nodes: &mut [N], mut id: u32) {
    while id != NIL {
        augment(nodes, id);
        id = nodes[id as usize].links().parent;
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
                let next = if self.finger == self.last { NIL } else { neighbour(nodes, self.finger, true) };
                match nodes.get(next as usize) {
                    Some(node) if !before(node) => {}
                    // Of two neighbours, one has no child on the side of the other.
                    Some(_) if finger.links().right != NIL => {
                        return self.attach(nodes, id, Some(K::Id::new(next)), true);
                    }
                    _ => return self.attach(nodes, id, Some(K::Id::new(self.finger)), false),
                }
            }
            Some(_) => {}
            None if self.root == NIL => return self.attach(nodes, id, None, false),
            None => {}
        }
        let (mut parent, mut at, mut left) = (self.root, self.root, false);
        while let Some(node) = nodes.get(at as usize) {
            parent = at;
            left = before(node);
            let links = node.links();
            at = if left { links.left } else { links.right };
        }
        self.attach(nodes, id, Some(K::Id::new(parent)), left);
    }

    /// Puts `id` in as the left or right child of `parent` (which has none there; `None` for an empty tree).
    #[inline]
    pub(crate) fn attach<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id, parent: Option<K::Id>, left: bool) {
        let id = id.number();
        self.finger = id;
        let Some(parent) = parent.map(Id::number) else {
            *nodes[id as usize].links_mut() = RbLinks::default();
            (self.root, self.first, self.last) = (id, id, id);
            if N::AUGMENTED {
                augment(nodes, id);
            }
            return;
        };
        *nodes[id as usize].links_mut() = RbLinks { parent, left: NIL, right: NIL, red: true };
        let above = nodes[parent as usize].links_mut();
        if left {
            above.left = id;
            if self.first == parent {
                self.first = id;
            }
        } else {
            above.right = id;
            if self.last == parent {
                self.last = id;
            }
        }
        let red = above.red;
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
            let grand = nodes[parent as usize].links().parent;
            let RbLinks { left, right, .. } = *nodes[grand as usize].links();
            let parent_is_left = left == parent;
            let uncle = if parent_is_left { right } else { left };
            if let Some(uncle) = nodes.get_mut(uncle as usize).map(N::links_mut).filter(|uncle| uncle.red) {
                uncle.red = false;
                nodes[parent as usize].links_mut().red = false;
                let above = nodes[grand as usize].links().parent;
                match nodes.get(above as usize) {
                    None => return,
                    Some(node) => {
                        let red = node.links().red;
                        nodes[grand as usize].links_mut().red = true;
                        if !red {
                            return;
                        }
                    }
                }
                (id, parent) = (grand, above);
                continue;
            }
            let inner =
                if parent_is_left { nodes[parent as usize].links().right } else { nodes[parent as usize].links().left };
            if inner == id {
                self.rotate(nodes, parent, parent_is_left);
                parent = id;
            }
            nodes[parent as usize].links_mut().red = false;
            nodes[grand as usize].links_mut().red = true;
            self.rotate(nodes, grand, !parent_is_left);
            return;
        }
    }

    /// Takes `id`, which is in this tree, out.
    #[inline]
    pub(crate) fn remove<N: RbNode<K>>(&mut self, nodes: &mut [N], id: K::Id) {
        let id = id.number();
        if self.first == id {
            self.first = neighbour(nodes, id, true);
        }
        if self.last == id {
            self.last = neighbour(nodes, id, false);
        }
        if self.finger == id {
            self.finger = NIL;
        }
        let RbLinks { parent, left, right, red } = *nodes[id as usize].links();
        // The place that becomes one black poorer, if any: the child that moves up and its new parent.
        let (child, child_parent, lost_black);
        if left != NIL && right != NIL {
            let mut successor = right;
            loop {
                let next = nodes[successor as usize].links().left;
                if next == NIL {
                    break;
                }
                successor = next;
            }
            let RbLinks { parent: successor_parent, right: successor_right, red: successor_red, .. } =
                *nodes[successor as usize].links();
            lost_black = !successor_red;
            child = successor_right;
            let links = nodes[successor as usize].links_mut();
            (links.parent, links.left, links.red) = (parent, left, red);
            if successor == right {
                child_parent = successor;
            } else {
                links.right = right;
                child_parent = successor_parent;
                nodes[child_parent as usize].links_mut().left = child;
                if let Some(node) = nodes.get_mut(child as usize) {
                    node.links_mut().parent = child_parent;
                }
                nodes[right as usize].links_mut().parent = successor;
            }
            nodes[left as usize].links_mut().parent = successor;
            self.put_in_place_of(nodes, parent, id, successor);
        } else {
            child = if left == NIL { right } else { left };
            child_parent = parent;
            lost_black = !red;
            self.put_in_place_of(nodes, parent, id, child);
            if let Some(node) = nodes.get_mut(child as usize) {
                node.links_mut().parent = parent;
            }
        }
        if N::AUGMENTED {
            augment_upwards(nodes, child_parent);
        }
        if lost_black {
            match nodes.get_mut(child as usize).map(N::links_mut) {
                Some(links) if links.red => links.red = false,
                _ => self.rebalance_after_remove(nodes, child, child_parent),
            }
        }
    }

    /// `parent`, or the root, points at `new` instead of `old`.
    #[inline]
    fn put_in_place_of<N: RbNode<K>>(&mut self, nodes: &mut [N], parent: u32, old: u32, new: u32) {
        match nodes.get_mut(parent as usize).map(N::links_mut) {
            None => self.root = new,
            Some(links) if links.left == old => links.left = new,
            Some(links) => links.right = new,
        }
    }

    /// The paths through `id`, a black child of `parent` or none, have one black node too few.
    fn rebalance_after_remove<N: RbNode<K>>(&mut self, nodes: &mut [N], mut id: u32, mut parent: u32) {
        let is_red = |nodes: &[N], id: u32| nodes.get(id as usize).is_some_and(|node| node.links().red);
        while parent != NIL {
            let is_left = nodes[parent as usize].links().left == id;
            let children = |nodes: &[N], id: u32| {
                let RbLinks { left, right, .. } = *nodes[id as usize].links();
                if is_left { (left, right) } else { (right, left) }
            };
            let (_, mut sibling) = children(nodes, parent);
            if is_red(nodes, sibling) {
                nodes[sibling as usize].links_mut().red = false;
                nodes[parent as usize].links_mut().red = true;
                self.rotate(nodes, parent, is_left);
                (_, sibling) = children(nodes, parent);
            }
            let (near, mut far) = children(nodes, sibling);
            if !is_red(nodes, far) {
                if !is_red(nodes, near) {
                    nodes[sibling as usize].links_mut().red = true;
                    let links = nodes[parent as usize].links_mut();
                    if links.red {
                        links.red = false;
                        return;
                    }
                    (id, parent) = (parent, links.parent);
                    continue;
                }
                nodes[near as usize].links_mut().red = false;
                nodes[sibling as usize].links_mut().red = true;
                self.rotate(nodes, sibling, !is_left);
                (far, sibling) = (sibling, near);
            }
            let above = nodes[parent as usize].links_mut();
            let red = std::mem::take(&mut above.red);
            nodes[sibling as usize].links_mut().red = red;
            nodes[far as usize].links_mut().red = false;
            self.rotate(nodes, parent, is_left);
            return;
        }
    }

    /// The child of `id` on the other side takes its place; `id` becomes that one's left (or right) child.
    fn rotate<N: RbNode<K>>(&mut self, nodes: &mut [N], id: u32, left: bool) {
        let RbLinks { parent, left: id_left, right: id_right, .. } = *nodes[id as usize].links();
        let up = if left { id_right } else { id_left };
        let raised = nodes[up as usize].links_mut();
        raised.parent = parent;
        let inner = std::mem::replace(if left { &mut raised.left } else { &mut raised.right }, id);
        let lowered = nodes[id as usize].links_mut();
        lowered.parent = up;
        *(if left { &mut lowered.right } else { &mut lowered.left }) = inner;
        if let Some(node) = nodes.get_mut(inner as usize) {
            node.links_mut().parent = id;
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
        if id.number() == self.last {
            return None;
        }
        K::Id::some(neighbour(nodes, id.number(), true))
    }

    /// The element before `id`.
    #[inline]
    pub(crate) fn prev<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        if id.number() == self.first {
            return None;
        }
        K::Id::some(neighbour(nodes, id.number(), false))
    }

    /// The child of `id` on the side of smaller elements.
    #[inline]
    pub(crate) fn left<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().left)
    }

    /// The child of `id` on the side of larger elements.
    #[inline]
    pub(crate) fn right<N: RbNode<K>>(&self, nodes: &[N], id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes[id.number() as usize].links().right)
    }

    /// Checks order, colours, links and ends; returns the number of elements.
    ///
    /// # Panics
    /// If any of it is wrong.
    pub(crate) fn check<N: RbNode<K>>(&self, nodes: &[N], mut in_order: impl FnMut(&N, &N) -> bool) -> usize {
        fn walk<K: Kind, N: RbNode<K>>(nodes: &[N], id: u32, parent: u32, count: &mut usize) -> usize {
            let Some(links) = nodes.get(id as usize).map(N::links) else { return 1 };
            *count += 1;
            assert_eq!(links.parent, parent, "a child knows its parent");
            let red_parent = nodes.get(parent as usize).is_some_and(|node| node.links().red);
            assert!(!(links.red && red_parent), "no red node has a red child");
            let black = walk(nodes, links.left, id, count);
            assert_eq!(black, walk(nodes, links.right, id, count), "every path has as many black nodes");
            black + usize::from(!links.red)
        }
        let mut count = 0;
        walk(nodes, self.root, NIL, &mut count);
        if self.root == NIL {
            assert_eq!((self.first, self.last), (NIL, NIL));
            return 0;
        }
        assert!(!nodes[self.root as usize].links().red, "the root is black");
        let mut seen = 1;
        let mut at = K::Id::new(self.first);
        while let Some(next) = self.next(nodes, at) {
            assert!(in_order(&nodes[at.number() as usize], &nodes[next.number() as usize]), "elements are in order");
            assert_eq!(self.prev(nodes, next).map(Id::number), Some(at.number()));
            at = next;
            seen += 1;
        }
        assert_eq!(at.number(), self.last);
        assert_eq!(seen, count);
        count
    }
}

/// The element behind `id`, or before it; [`NIL`] if it is the end one.
#[inline]
fn neighbour<K: Kind, N: RbNode<K>>(nodes: &[N], id: u32, behind: bool) -> u32 {
    let towards = |links: &RbLinks, right: bool| if right { links.right } else { links.left };
    let mut links = nodes[id as usize].links();
    let mut at = towards(links, behind);
    if at == NIL {
        // Up, until the way came from the other side.
        let mut from = id;
        loop {
            let up = links.parent;
            let Some(node) = nodes.get(up as usize) else { return NIL };
            links = node.links();
            if towards(links, !behind) == from {
                return up;
            }
            from = up;
        }
    }
    loop {
        let next = towards(nodes[at as usize].links(), !behind);
        if next == NIL {
            return at;
        }
        at = next;
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
