//! A red-black tree over elements of an arena: the textbook's, node for node.
//!
//! Elevators' originals sometimes decide by the shape of such a tree (which of several equal elements a
//! descent meets first, at which of two neighbours it ends), so the shape is part of the contract:
//! an inserted node becomes a red leaf and is rebalanced as the textbook does; a removed node with two
//! children is replaced by its in-order successor.

use std::marker::PhantomData;

use super::{Id, Kind, NIL};

const RED: u32 = 1 << 31;
const PARENT: u32 = !RED;
/// The parent field of a root: no element has this number, which still leaves 2³¹ - 1 of them.
const NO_PARENT: u32 = PARENT;

/// An element's place in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbLinks {
    /// Parent, with the colour in the top bit.
    parent: u32,
    left: u32,
    right: u32,
}

impl Default for RbLinks {
    fn default() -> Self {
        Self { parent: NO_PARENT, left: NIL, right: NIL }
    }
}

/// An arena whose elements carry links of trees of kind `K`.
pub(crate) trait RbNodes<K: Kind> {
    /// The links of the element numbered `id`.
    fn links(&self, id: u32) -> &RbLinks;
    /// The same, to change.
    fn links_mut(&mut self, id: u32) -> &mut RbLinks;
}

/// A tree: its root, and its two ends at hand.
#[derive(Debug)]
pub(crate) struct RbTree<K> {
    root: u32,
    first: u32,
    last: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Default for RbTree<K> {
    fn default() -> Self {
        Self { root: NIL, first: NIL, last: NIL, kind: PhantomData }
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
    pub(crate) fn insert<N: RbNodes<K>>(
        &mut self,
        nodes: &mut N,
        id: K::Id,
        mut before: impl FnMut(&N, K::Id) -> bool,
    ) {
        if self.root == NIL {
            return self.attach(nodes, id, None, false);
        }
        // What arrives in order goes to the end without a descent.
        let last = K::Id::new(self.last);
        if !before(nodes, last) {
            return self.attach(nodes, id, Some(last), false);
        }
        let mut at = self.root;
        loop {
            let left = before(nodes, K::Id::new(at));
            let links = nodes.links(at);
            let next = if left { links.left } else { links.right };
            if next == NIL {
                return self.attach(nodes, id, Some(K::Id::new(at)), left);
            }
            at = next;
        }
    }

    /// Puts `id` in as the left or right child of `parent` (which has none there; `None` for an empty tree).
    pub(crate) fn attach<N: RbNodes<K>>(&mut self, nodes: &mut N, id: K::Id, parent: Option<K::Id>, left: bool) {
        let id = id.number();
        let Some(parent) = parent.map(Id::number) else {
            *nodes.links_mut(id) = RbLinks::default();
            (self.root, self.first, self.last) = (id, id, id);
            return;
        };
        *nodes.links_mut(id) = RbLinks { parent: parent | RED, left: NIL, right: NIL };
        if left {
            nodes.links_mut(parent).left = id;
            if self.first == parent {
                self.first = id;
            }
        } else {
            nodes.links_mut(parent).right = id;
            if self.last == parent {
                self.last = id;
            }
        }
        self.rebalance_after_insert(nodes, id);
    }

    fn rebalance_after_insert<N: RbNodes<K>>(&mut self, nodes: &mut N, mut id: u32) {
        loop {
            let parent = parent(nodes, id);
            if parent == NIL {
                set_black(nodes, id);
                return;
            }
            if !is_red(nodes, parent) {
                return;
            }
            // A red parent has a parent: the root is black.
            let grand = self::parent(nodes, parent);
            let parent_is_left = nodes.links(grand).left == parent;
            let uncle = if parent_is_left { nodes.links(grand).right } else { nodes.links(grand).left };
            if uncle != NIL && is_red(nodes, uncle) {
                set_black(nodes, parent);
                set_black(nodes, uncle);
                set_red(nodes, grand);
                id = grand;
                continue;
            }
            let mut upper = parent;
            if parent_is_left {
                if nodes.links(parent).right == id {
                    self.rotate_left(nodes, parent);
                    upper = id;
                }
                set_black(nodes, upper);
                set_red(nodes, grand);
                self.rotate_right(nodes, grand);
            } else {
                if nodes.links(parent).left == id {
                    self.rotate_right(nodes, parent);
                    upper = id;
                }
                set_black(nodes, upper);
                set_red(nodes, grand);
                self.rotate_left(nodes, grand);
            }
            return;
        }
    }

    /// Takes `id`, which is in this tree, out.
    pub(crate) fn remove<N: RbNodes<K>>(&mut self, nodes: &mut N, id: K::Id) {
        let id = id.number();
        if self.first == id {
            self.first = neighbour(nodes, id, true);
        }
        if self.last == id {
            self.last = neighbour(nodes, id, false);
        }
        let RbLinks { left, right, .. } = *nodes.links(id);
        // The place that becomes one black poorer, if any: the child that moves up and its new parent.
        let (child, child_parent, lost_black);
        if left != NIL && right != NIL {
            let mut successor = right;
            while nodes.links(successor).left != NIL {
                successor = nodes.links(successor).left;
            }
            lost_black = !is_red(nodes, successor);
            child = nodes.links(successor).right;
            if successor == right {
                child_parent = successor;
            } else {
                child_parent = parent(nodes, successor);
                nodes.links_mut(child_parent).left = child;
                if child != NIL {
                    set_parent(nodes, child, child_parent);
                }
                nodes.links_mut(successor).right = right;
                set_parent(nodes, right, successor);
            }
            nodes.links_mut(successor).left = left;
            set_parent(nodes, left, successor);
            self.put_in_place_of(nodes, id, successor);
            nodes.links_mut(successor).parent = nodes.links(id).parent;
        } else {
            child = if left == NIL { right } else { left };
            child_parent = parent(nodes, id);
            lost_black = !is_red(nodes, id);
            self.put_in_place_of(nodes, id, child);
            if child != NIL {
                set_parent(nodes, child, child_parent);
            }
        }
        *nodes.links_mut(id) = RbLinks::default();
        if lost_black {
            self.rebalance_after_remove(nodes, child, child_parent);
        }
    }

    /// The parent of `old`, or the root, points at `new` instead.
    fn put_in_place_of<N: RbNodes<K>>(&mut self, nodes: &mut N, old: u32, new: u32) {
        let parent = parent(nodes, old);
        if parent == NIL {
            self.root = new;
        } else if nodes.links(parent).left == old {
            nodes.links_mut(parent).left = new;
        } else {
            nodes.links_mut(parent).right = new;
        }
    }

    fn rebalance_after_remove<N: RbNodes<K>>(&mut self, nodes: &mut N, mut id: u32, mut parent: u32) {
        while parent != NIL && (id == NIL || !is_red(nodes, id)) {
            let is_left = nodes.links(parent).left == id;
            let sibling_of = |nodes: &N| {
                if is_left { nodes.links(parent).right } else { nodes.links(parent).left }
            };
            let mut sibling = sibling_of(nodes);
            if is_red(nodes, sibling) {
                set_black(nodes, sibling);
                set_red(nodes, parent);
                self.rotate(nodes, parent, is_left);
                sibling = sibling_of(nodes);
            }
            let RbLinks { left, right, .. } = *nodes.links(sibling);
            let (near, far) = if is_left { (left, right) } else { (right, left) };
            let near_red = near != NIL && is_red(nodes, near);
            let mut far = far;
            if far == NIL || !is_red(nodes, far) {
                if !near_red {
                    set_red(nodes, sibling);
                    id = parent;
                    parent = self::parent(nodes, id);
                    continue;
                }
                set_black(nodes, near);
                set_red(nodes, sibling);
                self.rotate(nodes, sibling, !is_left);
                far = sibling;
                sibling = near;
            }
            let red = is_red(nodes, parent);
            set_colour(nodes, sibling, red);
            set_black(nodes, parent);
            set_black(nodes, far);
            self.rotate(nodes, parent, is_left);
            id = self.root;
            break;
        }
        if id != NIL {
            set_black(nodes, id);
        }
    }

    fn rotate<N: RbNodes<K>>(&mut self, nodes: &mut N, id: u32, left: bool) {
        if left {
            self.rotate_left(nodes, id);
        } else {
            self.rotate_right(nodes, id);
        }
    }

    fn rotate_left<N: RbNodes<K>>(&mut self, nodes: &mut N, id: u32) {
        let up = nodes.links(id).right;
        let inner = nodes.links(up).left;
        nodes.links_mut(id).right = inner;
        if inner != NIL {
            set_parent(nodes, inner, id);
        }
        self.put_in_place_of(nodes, id, up);
        let parent = parent(nodes, id);
        set_parent(nodes, up, parent);
        nodes.links_mut(up).left = id;
        set_parent(nodes, id, up);
    }

    fn rotate_right<N: RbNodes<K>>(&mut self, nodes: &mut N, id: u32) {
        let up = nodes.links(id).left;
        let inner = nodes.links(up).right;
        nodes.links_mut(id).left = inner;
        if inner != NIL {
            set_parent(nodes, inner, id);
        }
        self.put_in_place_of(nodes, id, up);
        let parent = parent(nodes, id);
        set_parent(nodes, up, parent);
        nodes.links_mut(up).right = id;
        set_parent(nodes, id, up);
    }

    /// The element behind `id`.
    #[inline]
    pub(crate) fn next<N: RbNodes<K>>(&self, nodes: &N, id: K::Id) -> Option<K::Id> {
        K::Id::some(neighbour(nodes, id.number(), true))
    }

    /// The element before `id`.
    #[inline]
    pub(crate) fn prev<N: RbNodes<K>>(&self, nodes: &N, id: K::Id) -> Option<K::Id> {
        K::Id::some(neighbour(nodes, id.number(), false))
    }

    /// The child of `id` on the side of smaller elements.
    #[inline]
    pub(crate) fn left<N: RbNodes<K>>(&self, nodes: &N, id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes.links(id.number()).left)
    }

    /// The child of `id` on the side of larger elements.
    #[inline]
    pub(crate) fn right<N: RbNodes<K>>(&self, nodes: &N, id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes.links(id.number()).right)
    }

    /// Checks order, colours, links and ends; returns the number of elements.
    ///
    /// # Panics
    /// If any of it is wrong.
    pub(crate) fn check<N: RbNodes<K>>(&self, nodes: &N, mut in_order: impl FnMut(&N, K::Id, K::Id) -> bool) -> usize {
        fn walk<K: Kind, N: RbNodes<K>>(nodes: &N, id: u32, count: &mut usize) -> usize {
            if id == NIL {
                return 1;
            }
            *count += 1;
            let links = nodes.links(id);
            for child in [links.left, links.right].into_iter().filter(|&c| c != NIL) {
                assert_eq!(parent(nodes, child), id, "a child knows its parent");
                assert!(!(is_red(nodes, id) && is_red(nodes, child)), "no red node has a red child");
            }
            let black = walk(nodes, links.left, count);
            assert_eq!(black, walk(nodes, links.right, count), "every path has as many black nodes");
            black + usize::from(!is_red(nodes, id))
        }
        let mut count = 0;
        walk(nodes, self.root, &mut count);
        if self.root == NIL {
            assert_eq!((self.first, self.last), (NIL, NIL));
            return 0;
        }
        assert!(!is_red(nodes, self.root), "the root is black");
        let mut seen = 1;
        let mut at = K::Id::new(self.first);
        while let Some(next) = self.next(nodes, at) {
            assert!(in_order(nodes, at, next), "elements are in order");
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
fn neighbour<K: Kind, N: RbNodes<K>>(nodes: &N, id: u32, behind: bool) -> u32 {
    let side = |links: &RbLinks, right: bool| if right { links.right } else { links.left };
    let mut at = side(nodes.links(id), behind);
    if at != NIL {
        loop {
            let next = side(nodes.links(at), !behind);
            if next == NIL {
                return at;
            }
            at = next;
        }
    }
    let mut from = id;
    loop {
        let up = parent(nodes, from);
        if up == NIL || side(nodes.links(up), !behind) == from {
            return up;
        }
        from = up;
    }
}

#[inline]
fn parent<K: Kind, N: RbNodes<K>>(nodes: &N, id: u32) -> u32 {
    let parent = nodes.links(id).parent & PARENT;
    if parent == NO_PARENT { NIL } else { parent }
}

#[inline]
fn is_red<K: Kind, N: RbNodes<K>>(nodes: &N, id: u32) -> bool {
    nodes.links(id).parent & RED != 0
}

#[inline]
fn set_parent<K: Kind, N: RbNodes<K>>(nodes: &mut N, id: u32, parent: u32) {
    let links = nodes.links_mut(id);
    links.parent = (links.parent & RED) | (parent & PARENT);
}

#[inline]
fn set_colour<K: Kind, N: RbNodes<K>>(nodes: &mut N, id: u32, red: bool) {
    let links = nodes.links_mut(id);
    links.parent = (links.parent & PARENT) | if red { RED } else { 0 };
}

#[inline]
fn set_black<K: Kind, N: RbNodes<K>>(nodes: &mut N, id: u32) {
    set_colour(nodes, id, false);
}

#[inline]
fn set_red<K: Kind, N: RbNodes<K>>(nodes: &mut N, id: u32) {
    set_colour(nodes, id, true);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Arena(Vec<(u64, RbLinks)>);

    enum Test {}

    impl Kind for Test {
        type Id = u32;
    }

    impl RbNodes<Test> for Arena {
        fn links(&self, id: u32) -> &RbLinks {
            &self.0[id as usize].1
        }
        fn links_mut(&mut self, id: u32) -> &mut RbLinks {
            &mut self.0[id as usize].1
        }
    }

    fn check(tree: &RbTree<Test>, arena: &Arena) -> usize {
        tree.check(arena, |nodes, a, b| nodes.0[a as usize].0 <= nodes.0[b as usize].0)
    }

    fn insert(tree: &mut RbTree<Test>, arena: &mut Arena, id: u32) {
        let key = arena.0[id as usize].0;
        tree.insert(arena, id, |nodes, at| key < nodes.0[at as usize].0);
    }

    #[test]
    fn equal_keys_keep_the_order_they_came_in() {
        let mut arena = Arena(vec![(5, RbLinks::default()); 9]);
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
            let mut arena = Arena(keys.iter().map(|&k| (k, RbLinks::default())).collect());
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
