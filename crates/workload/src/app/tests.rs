//! A simple simulated machine for tests. The test sets the duration of every call. A call that a
//! file system would reject is an error.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::app::{Application, Call, Node, Spec, Step};

/// Contents of the file system.
#[derive(Debug, Default)]
struct Tree {
    /// Parents of directories and files.
    parents: BTreeMap<Node, Node>,
    /// Sizes of files. `None`: a directory.
    bytes: BTreeMap<Node, Option<u64>>,
    /// Number of entries of directories.
    entries: BTreeMap<Node, u64>,
    open: BTreeSet<(usize, Node)>,
    /// Nodes whose size does not change.
    devices: BTreeSet<Node>,
}

impl Tree {
    fn add(&mut self, node: Node, parent: Node, bytes: Option<u64>) {
        assert!(node.as_root().is_none(), "a root directory is created");
        let is_directory = parent.as_root().is_some() || self.bytes.get(&parent) == Some(&None);
        assert!(is_directory, "{parent:?} is not a directory");
        assert!(self.bytes.insert(node, bytes).is_none(), "{node:?} already exists");
        self.parents.insert(node, parent);
        *self.entries.entry(parent).or_default() += 1;
    }

    fn remove(&mut self, node: Node) {
        let parent = self.parents.remove(&node).expect("the node exists");
        *self.entries.get_mut(&parent).expect("the node has a parent") -= 1;
        self.bytes.remove(&node);
    }

    fn file(&mut self, task: usize, node: Node) -> &mut u64 {
        assert!(self.open.contains(&(task, node)), "{node:?} is not open");
        self.bytes.get_mut(&node).and_then(Option::as_mut).expect("the node is a file")
    }

    fn call(&mut self, task: usize, call: Call, batch: &[u64]) {
        match call {
            Call::Spawn | Call::Sync => {}
            Call::MakeDirectory { parent, node, .. } => self.add(node, parent, None),
            Call::RemoveDirectory { node } => {
                assert_eq!(self.bytes.get(&node), Some(&None), "{node:?} is not a directory");
                assert_eq!(self.entries.get(&node).copied().unwrap_or(0), 0, "{node:?} is not empty");
                self.remove(node);
            }
            Call::Open { parent, node, flags, .. } => {
                match self.bytes.get(&node) {
                    None => {
                        assert!(flags.create, "{node:?} does not exist");
                        self.add(node, parent, Some(0));
                    }
                    Some(bytes) => {
                        assert!(bytes.is_some(), "{node:?} is a directory");
                        assert_eq!(self.parents[&node], parent);
                    }
                }
                if flags.truncate && !self.devices.contains(&node) {
                    self.bytes.insert(node, Some(0));
                }
                assert!(self.open.insert((task, node)), "{node:?} is already open");
            }
            Call::Close { node } => assert!(self.open.remove(&(task, node)), "{node:?} is not open"),
            Call::Unlink { node } => {
                assert!(matches!(self.bytes.get(&node), Some(Some(_))), "{node:?} is not a file");
                self.remove(node);
            }
            Call::Read { node, offset, bytes, calls } => {
                assert!(bytes > 0 && calls > 0);
                assert!(offset + bytes * calls <= *self.file(task, node), "{node:?} is read beyond its end");
            }
            Call::Write { node, offset, bytes, calls, .. } => {
                assert!(bytes > 0 && calls > 0);
                let is_device = self.devices.contains(&node);
                let end = self.file(task, node);
                assert!(!is_device || offset + bytes * calls <= *end, "{node:?} is written beyond its end");
                *end = (*end).max(offset + bytes * calls);
            }
            Call::WriteScattered { node, bytes } => {
                assert!(bytes > 0 && !batch.is_empty());
                let end = *self.file(task, node);
                assert!(batch.iter().all(|offset| offset + bytes <= end), "{node:?} is written beyond its end");
            }
            Call::Submit { node, offset, bytes, .. } | Call::Discard { node, offset, bytes } => {
                assert!(bytes > 0 && offset + bytes <= *self.file(task, node), "{node:?}: an I/O beyond its end");
            }
            Call::Fsync { node } | Call::Fdatasync { node } => {
                self.file(task, node);
            }
        }
    }
}

/// A call, its task, and its start, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimedCall {
    pub(super) task: usize,
    pub(super) call: Call,
    pub(super) at_ns: u64,
}

/// Runs an application to its end. Calls `see` for each system call. `see` returns the duration of
/// this system call, ns.
pub(super) fn drive(app: &mut dyn Application, mut see: impl FnMut(TimedCall) -> u64) {
    let mut tree = Tree::default();
    for existing in app.existing() {
        tree.add(existing.node, existing.parent, existing.bytes);
    }
    for file in app.laid_out() {
        tree.add(file.node, Node::root(0), Some(file.bytes));
        tree.devices.insert(file.node);
    }
    let tasks = app.tasks().len();
    let mut due: BinaryHeap<Reverse<(u64, u64, usize)>> =
        (0..tasks).map(|task| Reverse((0, task as u64, task))).collect();
    let mut sequence = tasks as u64;
    let mut waiting = BTreeSet::new();
    let mut left = tasks;
    let mut progress = 0.0;
    while let Some(Reverse((now_ns, _, task))) = due.pop() {
        let mut next = |due_ns, task| {
            sequence += 1;
            due.push(Reverse((due_ns, sequence, task)));
        };
        match app.step(task, now_ns) {
            Step::Call(call) => {
                tree.call(task, call, app.batch(task));
                next(now_ns + see(TimedCall { task, call, at_ns: now_ns }), task);
            }
            Step::Compute { ns } => next(now_ns + ns, task),
            Step::Sleep { until_ns } => next(now_ns.max(until_ns), task),
            Step::Wait => assert!(waiting.insert(task)),
            Step::Exit => left -= 1,
        }
        while let Some(woken) = app.take_woken() {
            assert!(waiting.remove(&woken), "task {woken} does not wait");
            next(now_ns, woken);
        }
        let now = app.progress();
        assert!((progress..=1.0 + 1e-9).contains(&now), "progress went from {progress} to {now}");
        progress = now;
    }
    assert_eq!((left, waiting.len()), (0, 0), "all tasks end");
    assert!(app.progress() > 1.0 - 1e-9);
}

/// Returns all calls of a command line. Each call takes `call_ns`.
pub(super) fn calls(command: &str, call_ns: u64) -> (Vec<TimedCall>, Box<dyn Application>) {
    let spec = Spec::parse(command).unwrap();
    let mut app = spec.start(1, 1 << 30);
    assert_eq!(app.tasks().len(), spec.task_count());
    let mut timed_calls = Vec::new();
    drive(app.as_mut(), |call| {
        timed_calls.push(call);
        call_ns
    });
    (timed_calls, app)
}
