//! System calls: the first frame of each call.

use iosched_workload::app::{Call, Contents, Existing, LaidOut, Node, OpenFlags, Source};

use super::direct::{Direct, DirectStage, Discard, Scatter};
use super::metadata::Metadata;
use super::read::Read;
use super::sync::{Fsync, SyncAll};
use super::task::{Action, Frame, Open, Task, Wait};
use super::write::Write;
use super::{Inode, MachineError, Model};
use crate::cache::{Cached, Mapping, State};
use crate::fs::{Effects, Ino};
use crate::readahead::Readahead;
use crate::{PAGE_BYTES, PAGE_SECTORS};

/// Length of the name of a file that an application lays out before a run, bytes.
const LAID_OUT_NAME_BYTES: u8 = 12;

impl Model {
    /// Begins a system call of `task`. Call [`run`](Self::run) to continue the call. `batch`
    /// contains the offsets of scattered writes, bytes.
    pub fn begin(&mut self, task: u32, call: &Call, batch: &[u64]) {
        let frame = match *call {
            Call::Spawn => Ok(Frame::Compute(self.machine.cpu.spawn_ns)),
            Call::MakeDirectory { parent, node, name_bytes } => self.make(task, parent, node, name_bytes, true),
            Call::RemoveDirectory { node } => self.known(task, node).map(|_| Frame::Remove { node, directory: true }),
            Call::Unlink { node } => self.known(task, node).map(|_| Frame::Remove { node, directory: false }),
            Call::Open { parent, node, name_bytes, flags } => self.open(task, parent, node, name_bytes, flags),
            Call::Close { node } => Ok(self.close(task, node)),
            Call::Read { node, offset, bytes, calls } => Ok(self.begin_read(task, node, offset, bytes, calls)),
            Call::Write { node, offset, bytes, calls, source } => {
                Ok(self.begin_write(task, node, offset, bytes, calls, source))
            }
            Call::WriteScattered { node, bytes } => {
                Ok(Frame::Scatter(Scatter { node, bytes, offsets: batch.to_vec(), next: 0 }))
            }
            Call::Submit { node, is_write, offset, bytes, tag } => {
                let (flags, _) = self.moves(task, node, (offset, bytes));
                let (position, end, stage) = (offset, offset + bytes, DirectStage::Begin);
                let tag = Some(tag);
                Ok(Frame::Direct(Direct { node, is_write, position, end, call_bytes: bytes, flags, tag, stage }))
            }
            Call::Discard { node, offset, bytes } => {
                Ok(Frame::Discard(Discard { node, offset, end: offset + bytes, sent: false }))
            }
            Call::Fsync { node } => Ok(Frame::Fsync(Fsync::new(node, false))),
            Call::Fdatasync { node } => Ok(Frame::Fsync(Fsync::new(node, true))),
            Call::Sync => Ok(Frame::SyncAll(SyncAll::default())),
        };
        match frame {
            Ok(frame) => self.tasks[task as usize].stack.push(frame),
            Err(error) => self.fail(error),
        }
    }

    /// Creates the files and directories that exist before an application starts.
    pub(super) fn prepare(&mut self, namespace: usize, existing: &[Existing]) -> Result<(), MachineError> {
        let mut effects = Effects::ignored();
        for &Existing { node, parent, name_bytes, bytes } in existing {
            let Some((disk, directory)) = self.find(namespace, parent) else {
                return Err(MachineError::NoSuchFile { node: parent.0 });
            };
            let fs = &mut self.disks[disk].fs;
            let ino = match bytes {
                None => fs.make_directory(directory, name_bytes, &mut effects)?,
                Some(bytes) => {
                    let ino = fs.create(directory, name_bytes, &mut effects)?;
                    fs.allocate(ino, 0, bytes.div_ceil(PAGE_BYTES), &mut effects)?;
                    fs.set_size(ino, bytes);
                    ino
                }
            };
            self.name(namespace, node, Some((disk, ino)));
        }
        Ok(())
    }

    /// Creates the files that an application has just laid out on the first disk. Their metadata is
    /// in memory and on the medium.
    ///
    /// # Errors
    /// If the files do not fit.
    pub fn lay_out(&mut self, application: usize, files: &[LaidOut]) -> Result<(), MachineError> {
        let directory = self.disks[0].fs.work_directory();
        let mut effects = Effects::ignored();
        let mut known = Effects::default();
        // If no thread converts extents, preallocated blocks count as written.
        let converts = self.disks[0].convert_task.is_some();
        for file in files {
            let fs = &mut self.disks[0].fs;
            let ino = if file.contents == Contents::Device {
                let blocks = self.disks[0].capacity_sectors / PAGE_SECTORS;
                let ino = self.disks[0].fs.add_device(blocks);
                let mapping = self.mapping(0, ino);
                self.inode_mut(mapping).device = true;
                ino
            } else {
                let ino = fs.create(directory, LAID_OUT_NAME_BYTES, &mut effects)?;
                fs.set_size(ino, file.bytes);
                let pages = file.bytes.div_ceil(PAGE_BYTES);
                match file.contents {
                    Contents::Preallocated if converts => fs.allocate_unwritten(ino, 0, pages, &mut effects)?,
                    Contents::Written | Contents::Preallocated => fs.allocate(ino, 0, pages, &mut effects)?,
                    Contents::Hole | Contents::Device => {}
                }
                fs.lookup(ino, &mut known);
                fs.map_blocks_of(ino, &mut known);
                ino
            };
            self.name(application, file.node, Some((0, ino)));
        }
        known.reads.sort_unstable();
        known.reads.dedup();
        let device = self.device_mapping(0);
        for block in known.reads {
            // If there is no room, the block is read when it is needed.
            if matches!(self.cache.get(device, block), Cached::Absent { .. }) {
                let _ = self.cache.insert(device, block, 1, State::Clean);
            }
        }
        Ok(())
    }

    /// Returns whether a file is the disk itself.
    pub(super) fn is_device(&self, disk: usize, ino: Ino) -> bool {
        self.inode(self.mapping(disk, ino)).device
    }

    fn make(
        &mut self,
        task: u32,
        parent: Node,
        node: Node,
        name_bytes: u8,
        directory: bool,
    ) -> Result<Frame, MachineError> {
        let (disk, above) = self.known(task, parent)?;
        let effects = &mut self.tasks[task as usize].effects;
        effects.clear();
        let fs = &mut self.disks[disk].fs;
        let ino = match directory {
            true => fs.make_directory(above, name_bytes, effects)?,
            false => {
                let ino = fs.create(above, name_bytes, effects)?;
                fs.open(ino);
                ino
            }
        };
        self.name(self.tasks[task as usize].namespace, node, Some((disk, ino)));
        let mapping = self.mapping(disk, ino);
        *self.inode_mut(mapping) = Inode { listed: self.inode(mapping).listed, ..Inode::default() };
        let cpu = &self.machine.cpu;
        let cpu_ns = if directory { cpu.inode_ns.unwrap_or(cpu.metadata_ns) } else { cpu.metadata_ns };
        Ok(Frame::Metadata(Metadata::new(disk, cpu_ns).changing(ino)))
    }

    /// Returns the wait for the I/O of a file that is in progress, if there is any. The contents of
    /// the file cannot be dropped while this I/O is in progress.
    fn unsettled(&self, mapping: Mapping) -> Option<Wait> {
        if self.cache.nr_writeback_of(mapping) > 0 {
            Some(Wait::Written(mapping))
        } else if self.inode(mapping).allocating > 0 {
            Some(Wait::Allocated(mapping))
        } else {
            None
        }
    }

    /// Removes a file or directory, once none of its pages is under writeback.
    pub(super) fn remove(&mut self, task: u32, node: Node, directory: bool) -> Action {
        let (disk, ino) = self.file(task, node);
        let mapping = self.mapping(disk, ino);
        if let Some(wait) = self.unsettled(mapping) {
            return Action::Block(wait);
        }
        let effects = &mut self.tasks[task as usize].effects;
        effects.clear();
        let fs = &mut self.disks[disk].fs;
        let removed = match directory {
            true => fs.remove_directory(ino, effects),
            false => fs.unlink(ino, effects),
        };
        if let Err(error) = removed {
            self.fail(error);
        }
        self.forget(disk, mapping);
        self.disks[disk].journal.forget_order(ino);
        self.name(self.tasks[task as usize].namespace, node, None);
        let cpu = &self.machine.cpu;
        let cpu_ns = if directory { cpu.metadata_ns } else { cpu.inode_ns.unwrap_or(cpu.metadata_ns) };
        Action::Become(Frame::Metadata(Metadata::new(disk, cpu_ns)))
    }

    /// Truncates a file to 0 bytes, once none of its pages is under writeback.
    pub(super) fn truncate(&mut self, task: u32, node: Node) -> Action {
        let (disk, ino) = self.file(task, node);
        let mapping = self.mapping(disk, ino);
        if let Some(wait) = self.unsettled(mapping) {
            return Action::Block(wait);
        }
        let effects = &mut self.tasks[task as usize].effects;
        effects.clear();
        self.disks[disk].fs.truncate(ino, effects);
        self.forget(disk, mapping);
        Action::Become(Frame::Metadata(Metadata::new(disk, 0).changing(ino)))
    }

    fn open(
        &mut self,
        task: u32,
        parent: Node,
        node: Node,
        name_bytes: u8,
        flags: OpenFlags,
    ) -> Result<Frame, MachineError> {
        self.close(task, node);
        let readahead = Readahead::new(self.machine.kernel.readahead());
        self.tasks[task as usize].open.push(Open { node, flags, readahead, last: (u64::MAX, 0) });
        let Some((disk, ino)) = self.find(self.tasks[task as usize].namespace, node) else {
            if !flags.create {
                return Err(MachineError::NoSuchFile { node: node.0 });
            }
            return self.make(task, parent, node, name_bytes, false);
        };
        if self.is_device(disk, ino) {
            return Ok(Frame::Compute(self.machine.cpu.syscall_ns));
        }
        let this = &mut self.tasks[task as usize];
        this.effects.clear();
        let fs = &mut self.disks[disk].fs;
        fs.open(ino);
        fs.lookup(ino, &mut this.effects);
        if flags.truncate && fs.size(ino) > 0 {
            this.stack.push(Frame::Truncate(node));
        }
        Ok(Frame::Metadata(Metadata::new(disk, self.machine.cpu.syscall_ns)))
    }

    fn close(&mut self, task: u32, node: Node) -> Frame {
        let open = &mut self.tasks[task as usize].open;
        if let Some(index) = open.iter().position(|open| open.node == node) {
            open.swap_remove(index);
            let file = self.find(self.tasks[task as usize].namespace, node);
            if let Some((disk, ino)) = file.filter(|&(disk, ino)| !self.is_device(disk, ino)) {
                self.disks[disk].fs.close(ino);
            }
        }
        Frame::Compute(self.machine.cpu.syscall_ns)
    }

    /// Closes the files of a task that has ended.
    pub fn exit(&mut self, task: u32) {
        while let Some(open) = self.tasks[task as usize].open.last() {
            self.close(task, open.node);
        }
    }

    fn begin_read(&mut self, task: u32, node: Node, offset: u64, bytes: u64, calls: u64) -> Frame {
        let (flags, again) = self.moves(task, node, (offset, bytes * calls));
        let end = offset + bytes * calls;
        if flags.direct {
            let (position, call_bytes, stage) = (offset, bytes, DirectStage::Begin);
            return Frame::Direct(Direct { node, is_write: false, position, end, call_bytes, flags, tag: None, stage });
        }
        Frame::Read(Read { node, position: offset, end, call_bytes: bytes, call_end: offset + bytes, again })
    }

    fn begin_write(&mut self, task: u32, node: Node, offset: u64, bytes: u64, calls: u64, source: Source) -> Frame {
        let (flags, again) = self.moves(task, node, (offset, bytes * calls));
        let end = offset + bytes * calls;
        if flags.direct {
            let (position, call_bytes, stage) = (offset, bytes, DirectStage::Begin);
            return Frame::Direct(Direct { node, is_write: true, position, end, call_bytes, flags, tag: None, stage });
        }
        let (start, position, call_bytes) = (offset, offset, bytes);
        Frame::Write(Write { node, position, end, call_bytes, start, source, allocated: 0, flags, again })
    }

    /// Records the range of a call (offset and length). Returns the flags of the open file. Also
    /// returns whether the previous call on this file had the same range.
    fn moves(&mut self, task: u32, node: Node, what: (u64, u64)) -> (OpenFlags, bool) {
        let index = self.open_file(task, node);
        let this = &mut self.tasks[task as usize];
        this.used = index;
        let open = &mut this.open[index];
        let before = std::mem::replace(&mut open.last, what);
        (open.flags, before == what)
    }

    /// Returns the index of a task's open file.
    pub(super) fn open_file(&self, task: u32, node: Node) -> usize {
        let Task { open, used, .. } = &self.tasks[task as usize];
        // Most calls use the same file as the task's previous call.
        if open.get(*used).is_some_and(|open| open.node == node) {
            return *used;
        }
        let Some(index) = open.iter().position(|open| open.node == node) else {
            unreachable!("applications open files before they use them");
        };
        index
    }

    /// Returns disk and inode of a node, or an error if the application names a node that does not
    /// exist.
    fn known(&self, task: u32, node: Node) -> Result<(usize, Ino), MachineError> {
        self.find(self.tasks[task as usize].namespace, node).ok_or(MachineError::NoSuchFile { node: node.0 })
    }

    fn name(&mut self, namespace: usize, node: Node, place: Option<(usize, Ino)>) {
        let nodes = &mut self.namespaces[namespace];
        let index = node.0 as usize;
        if nodes.len() <= index {
            nodes.resize(index + 1, None);
        }
        nodes[index] = place.map(|(disk, ino)| (disk as u8, ino));
    }
}
