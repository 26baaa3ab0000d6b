//! fdtree: creates a tree of directories, writes files into each, removes the files, and removes
//! the directories. Options: [`options`].
//!
//! The original is a shell script that spends most of its time in processes. It starts these
//! processes:
//! - one mkdir for each directory;
//! - one dd for each file (blocks of 4096 bytes);
//! - one rm for the files of a directory;
//! - one rmdir for the directories in a directory;
//! - a subshell for each directory that it enters. It enters a directory only if it has work there.
//!
//! The published rates of two trees support this list of processes. The trees have 4 KiB files: 40
//! in each of 8,421 directories, and 4 in each of 88,573 directories. A file took 0.97 and 1.25 ms
//! to create, and 0.17 and 0.54 ms to remove. A directory took 0.17 and about 0.7 ms to remove.
//! With 0.9 to 1 ms per process, the list gives all six values within about 10 %. A directory took
//! 1.25 and 2.1 ms to create. This is 1.1 ms for each directory, plus about 3 ms for each of the
//! 421 and 29,524 directories that contain directories. The script is not available; the two values
//! only suggest that the 3 ms are three processes.
//!
//! The model is a single task. For a disk, this is equal to processes that run in sequence and use
//! writeback. Directories are created and entered in the order of the recursion. Times are
//! differences of a clock with whole seconds, and the run starts at a random point within a second.
//! Rates are integers, rounded down. A time of zero counts as one second.

mod options;
#[cfg(test)]
mod tests;
mod tree;

pub(super) use options::{ABOUT, FdtreeOptions};

use std::collections::VecDeque;

use options::BLOCK_BYTES;

use crate::app::{AppTask, Application, Better, Call, Existing, Figure, Node, OpenFlags, Report, Source, Step};
use iosched_numbers::SplitMix64;

const NS_PER_S: u64 = 1_000_000_000;

/// Number of processes to enter a directory in which directories are created.
const ENTER_TO_MAKE: usize = 3;

/// Parts of the test, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    DirectoryCreate,
    FileCreate,
    FileRemove,
    DirectoryRemove,
}

const PHASES: [Phase; 4] = [Phase::DirectoryCreate, Phase::FileCreate, Phase::FileRemove, Phase::DirectoryRemove];

/// A directory whose subdirectories are being removed.
#[derive(Clone, Copy, Debug)]
struct Entered {
    number: u64,
    height: usize,
    /// Next child to enter.
    next: u64,
}

/// A running fdtree.
#[derive(Debug)]
pub(super) struct Fdtree {
    options: FdtreeOptions,
    tasks: [AppTask; 1],
    /// Time from a whole second of the clock to the start of the run, ns.
    clock_ns: u64,
    /// Start of each phase, and end of the last phase, in whole seconds of the clock.
    seconds: Vec<u64>,
    /// Calls that are due, at most a few.
    calls: VecDeque<Call>,
    /// The current directory, and the current file in it.
    directory: u64,
    file: u64,
    /// Directories on the path from the top while directories are removed.
    path: Vec<Entered>,
    /// Directory whose subdirectories one rmdir removes, its height, and the next subdirectory.
    removing: Option<Entered>,
    /// Number of directories and files created and removed.
    done: u64,
}

fn digits(number: u64) -> u8 {
    number.checked_ilog10().unwrap_or(0) as u8 + 1
}

/// Returns the node of a directory.
const fn directory_node(number: u64) -> Node {
    Node::new(number as u32)
}

impl Fdtree {
    pub(super) fn new(options: &FdtreeOptions, seed: u64) -> Self {
        Self {
            options: options.clone(),
            tasks: [AppTask { name: "fdtree".to_owned() }],
            clock_ns: SplitMix64::entity(seed, 0).below(NS_PER_S),
            seconds: Vec::with_capacity(PHASES.len() + 1),
            calls: VecDeque::with_capacity(8),
            directory: 0,
            file: 0,
            path: Vec::with_capacity(options.tree.levels() + 1),
            removing: None,
            done: 0,
        }
    }

    fn files(&self) -> u64 {
        self.options.tree.count() * self.options.files
    }

    /// Returns the node of the current file. Nodes of files come after the nodes of directories.
    fn file_node(&self) -> Node {
        Node::new((self.options.tree.count() + self.directory * self.options.files + self.file) as u32)
    }

    /// Adds the next calls of a phase. At the end of the phase, adds no calls.
    fn refill(&mut self, phase: Phase) {
        match phase {
            Phase::DirectoryCreate => self.create_directory(),
            Phase::FileCreate => self.create_file(),
            Phase::FileRemove => self.remove_file(),
            Phase::DirectoryRemove => self.remove_directory(),
        }
    }

    fn create_directory(&mut self) {
        let tree = &self.options.tree;
        if self.directory == tree.count() {
            return;
        }
        let directory = tree.directory(self.directory);
        let parent = directory.parent.map_or(Node::root(0), directory_node);
        let level = (tree.levels() - directory.height) as u64;
        let name_bytes = 4 + digits(level) + digits(directory.place);
        self.calls.push_back(Call::Spawn);
        self.calls.push_back(Call::MakeDirectory { parent, node: directory_node(directory.number), name_bytes });
        if directory.height > 0 && directory.parent.is_some() {
            self.calls.extend([Call::Spawn; ENTER_TO_MAKE]);
        }
        self.directory += 1;
        self.done += 1;
    }

    /// Moves to the next file, and to the next directory after the last file.
    const fn next_file(&mut self) {
        self.done += 1;
        self.file += 1;
        if self.file == self.options.files {
            self.file = 0;
            self.directory += 1;
        }
    }

    fn create_file(&mut self) {
        if self.directory == self.options.tree.count() {
            return;
        }
        if self.file == 0 && self.directory > 0 {
            self.calls.push_back(Call::Spawn);
        }
        let (parent, node) = (directory_node(self.directory), self.file_node());
        let level = self.options.tree.levels() - self.options.tree.directory(self.directory).height;
        let name_bytes = 4 + digits(level as u64) + digits(self.file);
        let flags = OpenFlags { create: true, truncate: true, ..OpenFlags::default() };
        let (offset, bytes, calls) = (0, BLOCK_BYTES, self.options.blocks);
        self.calls.extend([
            Call::Spawn,
            Call::Open { parent, node, name_bytes, flags },
            Call::Write { node, offset, bytes, calls, source: Source::Zero },
            Call::Close { node },
        ]);
        self.next_file();
    }

    fn remove_file(&mut self) {
        if self.directory == self.options.tree.count() {
            return;
        }
        if self.file == 0 {
            let processes = if self.directory > 0 { 2 } else { 1 };
            self.calls.extend(std::iter::repeat_n(Call::Spawn, processes));
        }
        self.calls.push_back(Call::Unlink { node: self.file_node() });
        self.next_file();
    }

    /// Removes the contents of a directory before the directory itself. The top directory is last.
    fn remove_directory(&mut self) {
        let tree = &self.options.tree;
        if let Some(removing) = &mut self.removing {
            let node = directory_node(tree.child(removing.number, removing.height, removing.next));
            self.calls.push_back(Call::RemoveDirectory { node });
            self.done += 1;
            removing.next += 1;
            if removing.next == tree.children(removing.height) {
                self.removing = None;
            }
            return;
        }
        while let Some(entered) = self.path.last_mut() {
            if entered.height > 1 && entered.next < tree.children(entered.height) {
                let number = tree.child(entered.number, entered.height, entered.next);
                let height = entered.height - 1;
                entered.next += 1;
                self.path.push(Entered { number, height, next: 0 });
                self.calls.push_back(Call::Spawn);
            } else {
                self.calls.push_back(Call::Spawn);
                self.removing = Some(Entered { next: 0, ..*entered });
                self.path.pop();
                return;
            }
        }
        if self.directory == 0 {
            self.calls.extend([Call::Spawn, Call::RemoveDirectory { node: directory_node(0) }]);
            self.directory = 1;
            self.done += 1;
        }
    }

    /// Begins a phase, or ends the run.
    fn begin(&mut self, now_ns: u64) {
        self.seconds.push((self.clock_ns + now_ns) / NS_PER_S);
        (self.directory, self.file) = (0, 0);
        let (number, height) = (0, self.options.tree.levels());
        if self.phase() == Some(Phase::DirectoryRemove) && height > 0 {
            self.path.push(Entered { number, height, next: 0 });
        }
    }

    fn phase(&self) -> Option<Phase> {
        PHASES.get(self.seconds.len().checked_sub(1)?).copied()
    }
}

impl Application for Fdtree {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &[]
    }

    fn step(&mut self, _task: usize, now_ns: u64) -> Step {
        if self.seconds.is_empty() {
            self.begin(now_ns);
        }
        loop {
            if let Some(call) = self.calls.pop_front() {
                return Step::Call(call);
            }
            let Some(phase) = self.phase() else { return Step::Exit };
            self.refill(phase);
            if self.calls.is_empty() {
                self.begin(now_ns);
            }
        }
    }

    fn progress(&self) -> f64 {
        let all = 2 * (self.options.tree.count() + self.files());
        self.done as f64 / all as f64
    }

    fn report(&self) -> Report {
        let (directories, files) = (self.options.tree.count(), self.files());
        let kib = files * self.options.blocks * (BLOCK_BYTES / 1024);
        let mut report = Report::default();
        for (ends, phase) in self.seconds.windows(2).zip(PHASES) {
            let taken_s = (ends[1] - ends[0]).max(1);
            let mut figure = |unit: &'static str, value: u64, better| {
                let name = phase.name().to_owned();
                report.figures.push(Figure { name, unit: unit.into(), value: value as f64, better });
            };
            figure("s", taken_s, Better::Lower);
            match phase {
                Phase::DirectoryCreate | Phase::DirectoryRemove => {
                    figure("dirs/s", directories / taken_s, Better::Higher);
                }
                Phase::FileCreate => {
                    figure("files/s", files / taken_s, Better::Higher);
                    figure("KiB/s", kib / taken_s, Better::Higher);
                }
                Phase::FileRemove => figure("files/s", files / taken_s, Better::Higher),
            }
        }
        report
    }
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::DirectoryCreate => "directory_create",
            Self::FileCreate => "file_create",
            Self::FileRemove => "file_remove",
            Self::DirectoryRemove => "directory_remove",
        }
    }
}
