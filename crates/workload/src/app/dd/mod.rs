//! dd: copies in blocks and reports the time. Options: [`options`].
//!
//! The model follows GNU dd. The clock starts when both files are open and stops when they are
//! closed. The time includes the flush of `conv=fsync` or `conv=fdatasync`. Each process of each
//! command is a separate task. The processes of the next command start when all processes of the
//! previous command have ended.

mod options;
#[cfg(test)]
mod tests;

pub(super) use options::{ABOUT, DdOptions};

use options::{Command, End, File, Input};

use crate::app::{
    AppOutcome, AppTask, Application, Better, Call, Contents, Existing, Figure, LaidOut, Node, OpenFlags, Report,
    Series, Source, Step,
};
use crate::outcome::Note;

/// Returns the length of a file's name, bytes, at most 255.
fn name_bytes(file: &File) -> u8 {
    u8::try_from(file.name.len()).unwrap_or(u8::MAX)
}

/// Next action of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DdStage {
    /// The previous command is running.
    Before,
    OpenInput,
    OpenOutput,
    Start,
    /// Continue to copy. This many bytes have been read and written so far.
    Copy {
        done: u64,
    },
    /// Write the block that was read last. This many bytes have been written before the block.
    WriteBlock {
        done: u64,
    },
    Flush,
    CloseInput,
    CloseOutput,
    Stop,
    Ended,
}

/// A process of a command.
#[derive(Clone, Debug)]
struct Process {
    command: usize,
    job: usize,
    stage: DdStage,
    /// Bytes copied in this repetition.
    done: u64,
    repetition: u64,
    start_ns: u64,
    /// Total time of the repetitions, ns.
    taken_ns: u64,
    end_ns: u64,
}

/// A running dd, or several dd commands in sequence.
#[derive(Debug)]
pub(super) struct Dd {
    files: Vec<File>,
    commands: Vec<Command>,
    tasks: Vec<AppTask>,
    existing: Vec<Existing>,
    laid_out: Vec<LaidOut>,
    processes: Vec<Process>,
    /// Number of processes of the current command that have not ended.
    left: usize,
    /// Processes that have ended, in the order of their ends.
    ended: Vec<usize>,
    /// Tasks to wake.
    woken: std::ops::Range<usize>,
}

impl Dd {
    pub(super) fn new(options: &DdOptions, disk_bytes: u64) -> Self {
        let files = options.files.clone();
        let mut commands = options.commands.clone();
        commands.iter_mut().for_each(|command| command.end_with_the_disk(&files, disk_bytes));
        let mut tasks = Vec::new();
        let mut processes = Vec::new();
        for (number, command) in commands.iter().enumerate() {
            for job in 0..command.jobs {
                tasks.push(AppTask { name: format!("dd {}", command.label_of(job)) });
                let stage = if number == 0 { DdStage::OpenInput } else { DdStage::Before };
                let (command, done, repetition, start_ns, taken_ns, end_ns) = (number, 0, 0, 0, 0, 0);
                processes.push(Process { command, job, stage, done, repetition, start_ns, taken_ns, end_ns });
            }
        }
        let existing = files.iter().enumerate().filter_map(|(number, file)| {
            let bytes = Some(file.existing_bytes?);
            Some(Existing { node: node(number), parent: Node::root(0), name_bytes: name_bytes(file), bytes })
        });
        let existing = existing.collect();
        let device = |(number, file): (usize, &File)| {
            let (node, contents) = (node(number), Contents::Device);
            file.device.then_some(LaidOut { node, bytes: disk_bytes, contents })
        };
        let laid_out = files.iter().enumerate().filter_map(device).collect();
        let left = commands[0].jobs;
        Self { files, commands, tasks, existing, laid_out, processes, left, ended: Vec::new(), woken: 0..0 }
    }

    /// Ends a process. After the last process of a command has ended, the next command starts.
    fn end(&mut self, task: usize, now_ns: u64) {
        self.processes[task].end_ns = now_ns;
        self.ended.push(task);
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        let next = self.ended.len();
        if let Some(process) = self.processes.get(next) {
            self.left = self.commands[process.command].jobs;
            self.woken = next..next + self.left;
        }
    }

    fn open(&self, file: usize, flags: OpenFlags) -> Step {
        let name_bytes = name_bytes(&self.files[file]);
        Step::Call(Call::Open { parent: Node::root(0), node: node(file), name_bytes, flags })
    }
}

/// Returns the node of a file.
const fn node(file: usize) -> Node {
    Node::new(file as u32)
}

/// Returns the bytes per call, and the number of calls, to move `bytes` in blocks of `size`. If
/// less than a block remains, one call moves the rest.
fn blocks(bytes: u64, size: u64) -> (u64, u64) {
    if bytes < size { (bytes, 1) } else { (size, bytes / size) }
}

impl Process {
    /// Returns the next step of a copy: a read or a write. Returns `None` at the end of the copy.
    fn copy(&mut self, command: &Command, done: u64) -> Option<Step> {
        let left = command.bytes - done;
        if left == 0 {
            self.stage = if command.end == End::None { DdStage::CloseInput } else { DdStage::Flush };
            return None;
        }
        let (input, output) = (command.input.file(self.job), command.output_file(self.job));
        if let (Some(input), Some(_)) = (input, output) {
            self.stage = DdStage::WriteBlock { done };
            let (bytes, calls) = blocks(command.piece_bytes(left), command.input_block_bytes);
            return Some(Step::Call(Call::Read { node: node(input), offset: command.skip_bytes + done, bytes, calls }));
        }
        // Only one file is involved. All whole blocks are one step, and the rest is another step.
        let size = if output.is_some() { command.output_block_bytes } else { command.input_block_bytes };
        let (bytes, calls) = blocks(left, size);
        self.stage = DdStage::Copy { done: done + bytes * calls };
        if let Some(output) = output {
            let (offset, source) = (command.seek_bytes + done, Source::Zero);
            return Some(Step::Call(Call::Write { node: node(output), offset, bytes, calls, source }));
        }
        let offset = command.skip_bytes + done;
        Some(Step::Call(Call::Read { node: node(input?), offset, bytes, calls }))
    }

    fn write_block(&mut self, command: &Command, done: u64) -> Option<Step> {
        let piece = command.piece_bytes(command.bytes - done);
        self.stage = DdStage::Copy { done: done + piece };
        let (bytes, calls) = blocks(piece, command.output_block_bytes);
        let (node, offset) = (node(command.output_file(self.job)?), command.seek_bytes + done);
        Some(Step::Call(Call::Write { node, offset, bytes, calls, source: Source::Buffer }))
    }

    /// Ends a repetition.
    fn stop(&mut self, command: &Command, now_ns: u64) {
        self.taken_ns += now_ns - self.start_ns;
        self.repetition += 1;
        self.done = 0;
        self.stage = if self.repetition < command.repeat { DdStage::OpenInput } else { DdStage::Ended };
    }
}

impl Application for Dd {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &self.existing
    }

    fn laid_out(&self) -> &[LaidOut] {
        &self.laid_out
    }

    fn step(&mut self, task: usize, now_ns: u64) -> Step {
        loop {
            let process = &mut self.processes[task];
            let command = &self.commands[process.command];
            let (input, output) = (command.input.file(process.job), command.output_file(process.job));
            match process.stage {
                DdStage::Before => {
                    process.stage = DdStage::OpenInput;
                    return Step::Wait;
                }
                DdStage::OpenInput => {
                    process.stage = DdStage::OpenOutput;
                    if let Some(input) = input {
                        let flags = OpenFlags { direct: command.direct_input, ..OpenFlags::default() };
                        return self.open(input, flags);
                    }
                }
                DdStage::OpenOutput => {
                    process.stage = DdStage::Start;
                    if let Some(output) = output {
                        let flags = command.output_flags;
                        return self.open(output, flags);
                    }
                }
                DdStage::Start => {
                    process.start_ns = now_ns;
                    process.stage = DdStage::Copy { done: 0 };
                }
                DdStage::Copy { done } => {
                    process.done = done;
                    if let Some(step) = process.copy(command, done) {
                        return step;
                    }
                }
                DdStage::WriteBlock { done } => {
                    if let Some(step) = process.write_block(command, done) {
                        return step;
                    }
                }
                DdStage::Flush => {
                    process.stage = DdStage::CloseInput;
                    if let Some(node) = output.map(node) {
                        let all = command.end == End::Fsync;
                        return Step::Call(if all { Call::Fsync { node } } else { Call::Fdatasync { node } });
                    }
                }
                DdStage::CloseInput => {
                    process.stage = DdStage::CloseOutput;
                    if let Some(node) = input.map(node) {
                        return Step::Call(Call::Close { node });
                    }
                }
                DdStage::CloseOutput => {
                    process.stage = DdStage::Stop;
                    if let Some(node) = output.map(node) {
                        return Step::Call(Call::Close { node });
                    }
                }
                DdStage::Stop => process.stop(command, now_ns),
                DdStage::Ended => {
                    self.end(task, now_ns);
                    return Step::Exit;
                }
            }
        }
    }

    fn take_woken(&mut self) -> Option<usize> {
        self.woken.next()
    }

    fn progress(&self) -> f64 {
        let parts = self.processes.iter().map(|process| {
            let command = &self.commands[process.command];
            let (bytes, repeat) = (command.bytes.max(1) as f64, command.repeat as f64);
            ((process.repetition as f64 + process.done as f64 / bytes) * bytes, bytes * repeat)
        });
        let (done, all) = parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        done / all
    }

    fn outcome(&mut self, _: u64) -> AppOutcome {
        let is_random = self.commands.iter().any(|command| matches!(command.input, Input::Random));
        let note = Note::NotCarriedOut {
            what: "the CPU time of the kernel for random bytes".to_owned(),
            why: "the kernel needs 2 ms or more for 1 MiB of /dev/urandom, so a fast disk waits for dd; to measure \
                  the disk, write if=/dev/zero"
                .to_owned(),
        };
        AppOutcome {
            report: Some(self.report()),
            notes: is_random.then_some(note).into_iter().collect(),
            ..AppOutcome::default()
        }
    }

    fn report(&self) -> Report {
        let mut report = Report::default();
        for (number, command) in self.commands.iter().enumerate() {
            let of = self.ended.iter().map(|&task| &self.processes[task]).filter(|process| process.command == number);
            let processes: Vec<&Process> = of.collect();
            if processes.len() == command.jobs {
                tell(&mut report, command, &processes);
            }
        }
        report
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Adds the output of the processes of a command, in the order of their ends.
fn tell(report: &mut Report, command: &Command, processes: &[&Process]) {
    let name = &command.label;
    let bytes = command.bytes as f64 * command.repeat as f64;
    let taken = |process: &&Process| seconds(process.taken_ns);
    let elapsed = match processes {
        [one] => taken(one),
        all => {
            let start_ns = all.iter().map(|process| process.end_ns - process.taken_ns).min().unwrap_or(0);
            seconds(all.iter().map(|process| process.end_ns).max().unwrap_or(0) - start_ns)
        }
    };
    let mut figure = |name: String, unit: &'static str, value, better| {
        report.figures.push(Figure { name, unit: unit.into(), value, better });
    };
    figure(name.clone(), "s", elapsed, Better::Lower);
    figure(name.clone(), "MB/s", bytes * processes.len() as f64 / elapsed / 1e6, Better::Higher);
    if processes.len() > 1 {
        let (first, last) = processes
            .iter()
            .map(taken)
            .fold((f64::MAX, 0.0), |(first, last): (f64, f64), value| (first.min(value), last.max(value)));
        figure(format!("{name}_first"), "s", first, Better::Lower);
        figure(format!("{name}_last"), "s", last, Better::Lower);
        let values = processes.iter().map(taken).collect();
        report.series.push(Series { name: name.clone(), unit: "s".into(), values, step_s: None });
        let values = processes.iter().map(|process| bytes / taken(process) / 1e6).collect();
        report.series.push(Series { name: name.clone(), unit: "MB/s".into(), values, step_s: None });
    }
}
