//! fs_mark: creates many small files in sequence and makes each durable. Options: [`options`].
//!
//! The first thread creates the directories. Then each thread creates, writes and closes its files.
//! A thread creates a fixed number of files in one directory, then continues in the next directory.
//! The clock of an iteration stops when the chosen method has made all files durable. Then the
//! files are removed, unless the user keeps them. The report has the mean over the iterations, and
//! the "app overhead": the time outside of system calls that write files.

mod options;
#[cfg(test)]
mod tests;

pub(super) use options::{ABOUT, FsMarkOptions};

use options::{Flushed, Method};

use crate::app::{AppTask, Application, Better, Call, Existing, Figure, Node, OpenFlags, Report, Series, Source, Step};

/// Length of a file's name, bytes: the default of the original.
const NAME_BYTES: u8 = 40;
/// Length of a directory's name, bytes.
const DIRECTORY_NAME_BYTES: u8 = 2;
/// CPU time to create a file's name and to read clocks, ns; assumed.
const FILE_NS: u64 = 5_000;

/// Next action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FsMarkStage {
    /// Create this directory.
    Directory(u64),
    /// Wait until the first thread has created the directories.
    Before,
    Begin,
    File(u64),
    Create(u64),
    /// Number of a file, and the number of its bytes that were written.
    Write(u64, u64),
    Fsync(u64),
    Close(u64),
    Sync,
    /// Reopen a file to flush it at the end. This is its position in the list of such files.
    OpenAgain(u64),
    FsyncAgain(u64),
    CloseAgain(u64),
    Measured,
    Remove(u64),
    /// Wait for the other threads.
    Next,
    Ended,
}

/// State of a thread.
#[derive(Clone, Debug)]
struct Thread {
    stage: FsMarkStage,
    start_ns: u64,
    /// Computing time in this iteration, ns.
    computed_ns: u64,
    /// Number of durable files in all iterations.
    files: u64,
}

/// A running fs_mark.
#[derive(Debug)]
pub(super) struct FsMark {
    options: FsMarkOptions,
    tasks: Vec<AppTask>,
    threads: Vec<Thread>,
    iteration: u64,
    /// Number of threads that wait for the other threads.
    waiting: usize,
    /// Start of the first thread and end of the last thread in this iteration, ns.
    start_ns: u64,
    end_ns: u64,
    computed_ns: u64,
    /// Files/s, and app overhead in µs, of the iterations so far.
    measured: Vec<(f64, f64)>,
    woken: std::ops::Range<usize>,
    /// The last thread to arrive. This thread does not wait, so nothing wakes it.
    awake: usize,
}

impl FsMark {
    pub(super) fn new(options: &FsMarkOptions) -> Self {
        let count = options.task_count();
        let name = |number: usize| if count == 1 { "fs_mark".to_owned() } else { format!("fs_mark {number}") };
        let stage = |number: usize| if number == 0 { FsMarkStage::Directory(0) } else { FsMarkStage::Before };
        let thread = |number| Thread { stage: stage(number), start_ns: 0, computed_ns: 0, files: 0 };
        Self {
            options: options.clone(),
            tasks: (0..count).map(|number| AppTask { name: name(number) }).collect(),
            threads: (0..count).map(thread).collect(),
            iteration: 0,
            waiting: 0,
            start_ns: u64::MAX,
            end_ns: 0,
            computed_ns: 0,
            measured: Vec::new(),
            woken: 0..0,
            awake: usize::MAX,
        }
    }

    /// Returns the number of directories to create. If the parent directory must be created, it is
    /// the first of them.
    fn directories(&self) -> u64 {
        self.options.directories + u64::from(self.options.own_directory.is_some())
    }

    /// Returns the parent of all other directories, or of all files.
    fn top(&self) -> Node {
        if self.options.own_directory.is_some() { Node::new(0) } else { Node::root(0) }
    }

    fn make_directory(&self, number: u64) -> Option<Step> {
        let (parent, name_bytes) = match self.options.own_directory {
            Some(name_bytes) if number == 0 => (Node::root(0), name_bytes),
            _ => (self.top(), DIRECTORY_NAME_BYTES),
        };
        let node = Node::new(number as u32);
        (number < self.directories()).then_some(Step::Call(Call::MakeDirectory { parent, node, name_bytes }))
    }

    /// Returns the number of a file among all files that a thread creates in all iterations.
    const fn own_number(&self, file: u64) -> u64 {
        self.iteration * self.options.files + file
    }

    fn node(&self, thread: usize, file: u64) -> Node {
        // Files that are kept have different numbers in each iteration.
        let number_in_thread = if self.options.keep { self.own_number(file) } else { file };
        let number = number_in_thread * self.threads.len() as u64 + thread as u64;
        Node::new((self.directories() + number) as u32)
    }

    fn directory_of(&self, file: u64) -> Node {
        if self.options.directories == 0 {
            return self.top();
        }
        let place = self.own_number(file) / self.options.files_per_directory % self.options.directories;
        let first = u64::from(self.options.own_directory.is_some());
        Node::new((first + place) as u32)
    }

    fn open(&self, thread: usize, file: u64, flags: OpenFlags) -> Step {
        let (parent, node) = (self.directory_of(file), self.node(thread, file));
        Step::Call(Call::Open { parent, node, name_bytes: NAME_BYTES, flags })
    }

    /// Returns the next write of a thread, and the total of bytes written after it.
    fn write(&self, thread: usize, file: u64, written: u64) -> Option<(Step, u64)> {
        let left = self.options.file_bytes - written;
        let bytes = self.options.write_bytes.min(left);
        let calls = left.checked_div(bytes)?;
        let (node, offset) = (self.node(thread, file), written);
        let call = Call::Write { node, offset, bytes, calls, source: Source::Buffer };
        Some((Step::Call(call), written + bytes * calls))
    }

    /// Returns the file at this position in the list of flushes at the end. Returns `None` after
    /// the last file.
    const fn flushed(&self, number: u64) -> Option<u64> {
        let Method::After { files, .. } = self.options.method else { return None };
        let all = self.options.files;
        match files {
            Flushed::Last if number == 0 => Some(all - 1),
            Flushed::Forwards if number < all => Some(number),
            Flushed::Backwards if number < all => Some(all - 1 - number),
            _ => None,
        }
    }

    /// Records that `thread` has reached this point. Returns whether all threads have reached it.
    /// The last thread does not wait, and wakes the other threads.
    fn meet(&mut self, thread: usize) -> bool {
        self.waiting += 1;
        if self.waiting < self.threads.len() {
            return false;
        }
        self.waiting = 0;
        self.woken = 0..self.threads.len();
        self.awake = thread;
        true
    }

    /// Records that the files of a thread are durable.
    fn measure(&mut self, thread: usize, now_ns: u64) {
        let measured = &mut self.threads[thread];
        measured.files = (self.iteration + 1) * self.options.files;
        self.start_ns = self.start_ns.min(measured.start_ns);
        self.end_ns = self.end_ns.max(now_ns);
        self.computed_ns += std::mem::take(&mut measured.computed_ns);
    }

    /// Ends an iteration of all threads.
    fn next_iteration(&mut self) {
        let files = (self.options.files * self.threads.len() as u64) as f64;
        let seconds = self.end_ns.saturating_sub(self.start_ns).max(1) as f64 / 1e9;
        self.measured.push((files / seconds, self.computed_ns as f64 / 1e3));
        (self.start_ns, self.end_ns, self.computed_ns) = (u64::MAX, 0, 0);
        self.iteration += 1;
        let is_last = self.iteration == self.options.iterations;
        for thread in &mut self.threads {
            thread.stage = if is_last { FsMarkStage::Ended } else { FsMarkStage::Begin };
        }
    }

    /// Returns the next step of a thread, if its stage has one, and the thread's next stage.
    fn advance(&mut self, thread: usize, now_ns: u64) -> (Option<Step>, FsMarkStage) {
        let stage = self.threads[thread].stage;
        match stage {
            FsMarkStage::Directory(number) => match self.make_directory(number) {
                Some(step) => (Some(step), FsMarkStage::Directory(number + 1)),
                None => (None, FsMarkStage::Before),
            },
            FsMarkStage::Before => (if self.meet(thread) { None } else { Some(Step::Wait) }, FsMarkStage::Begin),
            FsMarkStage::Begin => {
                self.threads[thread].start_ns = now_ns;
                (None, FsMarkStage::File(0))
            }
            FsMarkStage::File(file) if file == self.options.files => (None, FsMarkStage::Sync),
            FsMarkStage::File(file) => {
                let state = &mut self.threads[thread];
                state.computed_ns += FILE_NS;
                state.files = self.iteration * self.options.files + file;
                (Some(Step::Compute { ns: FILE_NS }), FsMarkStage::Create(file))
            }
            FsMarkStage::Create(file) => {
                let flags = OpenFlags { create: true, truncate: true, ..OpenFlags::default() };
                (Some(self.open(thread, file, flags)), FsMarkStage::Write(file, 0))
            }
            FsMarkStage::Write(file, written) => match self.write(thread, file, written) {
                Some((step, written)) => (Some(step), FsMarkStage::Write(file, written)),
                None => (None, FsMarkStage::Fsync(file)),
            },
            FsMarkStage::Fsync(file) => {
                let step = Step::Call(Call::Fsync { node: self.node(thread, file) });
                (Some(step).filter(|_| self.options.method == Method::BeforeClose), FsMarkStage::Close(file))
            }
            FsMarkStage::Close(file) => {
                (Some(Step::Call(Call::Close { node: self.node(thread, file) })), FsMarkStage::File(file + 1))
            }
            FsMarkStage::Sync => {
                let sync = matches!(self.options.method, Method::After { sync: true, .. });
                (sync.then_some(Step::Call(Call::Sync)), FsMarkStage::OpenAgain(0))
            }
            FsMarkStage::OpenAgain(number) => match self.flushed(number) {
                Some(file) => (Some(self.open(thread, file, OpenFlags::default())), FsMarkStage::FsyncAgain(number)),
                None => (None, FsMarkStage::Measured),
            },
            FsMarkStage::FsyncAgain(number) => {
                let file = self.flushed(number);
                let step = file.map(|file| Step::Call(Call::Fsync { node: self.node(thread, file) }));
                (step, FsMarkStage::CloseAgain(number))
            }
            FsMarkStage::CloseAgain(number) => {
                let file = self.flushed(number);
                let step = file.map(|file| Step::Call(Call::Close { node: self.node(thread, file) }));
                (step, FsMarkStage::OpenAgain(number + 1))
            }
            FsMarkStage::Measured => {
                self.measure(thread, now_ns);
                (None, if self.options.keep { FsMarkStage::Next } else { FsMarkStage::Remove(0) })
            }
            FsMarkStage::Remove(file) if file == self.options.files => (None, FsMarkStage::Next),
            FsMarkStage::Remove(file) => {
                (Some(Step::Call(Call::Unlink { node: self.node(thread, file) })), FsMarkStage::Remove(file + 1))
            }
            FsMarkStage::Next => {
                if !self.meet(thread) {
                    return (Some(Step::Wait), FsMarkStage::Next);
                }
                self.next_iteration();
                (None, self.threads[thread].stage)
            }
            FsMarkStage::Ended => (Some(Step::Exit), FsMarkStage::Ended),
        }
    }
}

impl Application for FsMark {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &[]
    }

    fn step(&mut self, task: usize, now_ns: u64) -> Step {
        loop {
            let (step, stage) = self.advance(task, now_ns);
            self.threads[task].stage = stage;
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn take_woken(&mut self) -> Option<usize> {
        let awake = self.awake;
        self.woken.find(|&task| task != awake)
    }

    fn progress(&self) -> f64 {
        let done: u64 = self.threads.iter().map(|thread| thread.files).sum();
        done as f64 / (self.options.files * self.options.iterations) as f64 / self.threads.len() as f64
    }

    fn report(&self) -> Report {
        let count = self.measured.len() as f64;
        if self.measured.is_empty() {
            return Report::default();
        }
        let name = || "fs_mark".to_owned();
        let [files, overhead]: [Vec<f64>; 2] = [
            self.measured.iter().map(|&(files, _)| files).collect(),
            self.measured.iter().map(|iteration| iteration.1).collect(),
        ];
        let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
        let figures = vec![
            Figure { name: name(), unit: "files/s".into(), value: mean(&files), better: Better::Higher },
            Figure {
                name: "app_overhead".to_owned(),
                unit: "us".into(),
                value: mean(&overhead),
                better: Better::Lower,
            },
        ];
        let mut series = Vec::new();
        if files.len() > 1 {
            series.push(Series { name: name(), unit: "files/s".into(), values: files, step_s: None });
        }
        Report { figures, series }
    }
}
