//! The file system, which contains the disk as a file, and the disk's control tree.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    Errno as FuseErrno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::budget::Budget;
use super::clients::Clients;
use super::nodes::{BLOCK, DISK, Nodes, ROOT};
use crate::control::tree::{Entry, Kind};
use crate::control::{ControlError, Forest};
use crate::disk::{Action, Operation};
use crate::{Errno, Handle};

/// Maximum size of a read or write by the kernel: 256 pages, in bytes.
pub(super) const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Maximum number of asynchronous requests in flight from the kernel. Further requests wait in the
/// kernel, in one queue without priorities. The maximum is large, so that requests rarely wait
/// there. Synchronous requests have no limit, but each task has at most one.
const BACKGROUND_MAX: u16 = 1024;
/// Size that a sysfs file shows, and maximum size of a write to such a file, in bytes.
const ATTRIBUTE_BYTES: u32 = 4096;
/// Time to live of files in the control tree. Such files can appear and disappear.
const FLEETING: Duration = Duration::ZERO;
/// Time to live of entries that do not change.
const LASTING: Duration = Duration::from_secs(3600);

impl From<Errno> for FuseErrno {
    fn from(Errno(errno): Errno) -> Self {
        Self::from_i32(errno)
    }
}

impl From<&ControlError> for FuseErrno {
    fn from(error: &ControlError) -> Self {
        error.errno().into()
    }
}

/// An open file or directory of the control tree.
enum Open {
    /// A file, with its content at the last read from the beginning.
    File(String),
    /// A directory, with its entries at the time when it was opened.
    Directory(Vec<(String, Kind)>),
}

/// Owner of the files, and permissions of the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Permissions of the disk's file.
    pub(super) disk_mode: u16,
    pub(super) read_only: bool,
}

/// File system of one disk.
pub(super) struct DiskFs {
    pub(super) disk: Handle,
    forest: Forest,
    pub(super) clients: Arc<Clients>,
    pub(super) budget: Arc<Budget>,
    access: Access,
    since: SystemTime,
    nodes: Mutex<Nodes>,
    open: Mutex<HashMap<u64, Open>>,
    handles: AtomicU64,
}

impl DiskFs {
    pub(super) fn new(disk: Handle, clients: Arc<Clients>, access: Access) -> Self {
        Self {
            forest: Forest::new(vec![disk.clone()]),
            budget: Arc::new(Budget::new(disk.budget_bytes())),
            disk,
            clients,
            access,
            since: SystemTime::now(),
            nodes: Mutex::default(),
            open: Mutex::default(),
            handles: AtomicU64::new(1),
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_files(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, node: INodeNo) -> Result<String, FuseErrno> {
        self.nodes().path(node.0).map(str::to_owned).ok_or(FuseErrno::ENOENT)
    }

    fn remember(&self, open: Open) -> FileHandle {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        self.open_files().insert(handle, open);
        FileHandle(handle)
    }

    // ---- attributes

    fn attr(&self, ino: u64, kind: FileType, perm: u16, size: u64) -> FileAttr {
        FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: self.access.uid,
            gid: self.access.gid,
            rdev: 0,
            blksize: ATTRIBUTE_BYTES,
            flags: 0,
        }
    }

    fn attr_of_disk(&self) -> FileAttr {
        let attr = self.attr(DISK, FileType::RegularFile, self.access.disk_mode, self.disk.capacity_bytes());
        FileAttr { blksize: self.disk.block_bytes().max(ATTRIBUTE_BYTES), ..attr }
    }

    fn attr_of(&self, ino: u64, path: &str, kind: Kind) -> FileAttr {
        match kind {
            // Users can create and remove groups.
            Kind::Directory if path.split_once('/').is_some_and(|(_, below)| below == "groups") => {
                self.attr(ino, FileType::Directory, 0o755, 0)
            }
            Kind::Directory => self.attr(ino, FileType::Directory, kind.mode(), 0),
            Kind::File { .. } => self.attr(ino, FileType::RegularFile, kind.mode(), ATTRIBUTE_BYTES.into()),
        }
    }

    fn attr_of_node(&self, node: INodeNo) -> Result<(Duration, FileAttr), FuseErrno> {
        match node.0 {
            ROOT => Ok((LASTING, self.attr(ROOT, FileType::Directory, 0o555, 0))),
            // The attributes are not cached for long, because the disk can grow.
            DISK => Ok((FLEETING, self.attr_of_disk())),
            number => {
                let path = self.path(node)?;
                let kind = self.forest.kind(&path).map_err(|error| FuseErrno::from(&error))?;
                Ok((FLEETING, self.attr_of(number, &path, kind)))
            }
        }
    }

    /// Returns the path of a name in a directory of the control tree.
    fn path_in(&self, directory: INodeNo, name: &OsStr) -> Result<String, FuseErrno> {
        let name = name.to_str().ok_or(FuseErrno::ENOENT)?;
        let path = self.path(directory)?;
        Ok(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") })
    }

    fn look_up(&self, directory: INodeNo, name: &OsStr) -> Result<(Duration, FileAttr), FuseErrno> {
        match directory.0 {
            ROOT if name == self.disk.name() => Ok((FLEETING, self.attr_of_disk())),
            ROOT if name == "block" => Ok((LASTING, self.attr_of(BLOCK, "", Kind::Directory))),
            ROOT => Err(FuseErrno::ENOENT),
            _ => {
                let path = self.path_in(directory, name)?;
                let kind = self.forest.kind(&path).map_err(|error| FuseErrno::from(&error))?;
                let number = self.nodes().look_up(&path);
                Ok((FLEETING, self.attr_of(number, &path, kind)))
            }
        }
    }

    // ---- the control tree

    fn read_attribute(&self, node: INodeNo, handle: FileHandle, offset: u64, size: u32) -> Result<Vec<u8>, FuseErrno> {
        // A read from the beginning reads the content again, as in sysfs. Further reads continue in
        // the same content.
        let fresh = if offset == 0 {
            let path = self.path(node)?;
            Some(self.forest.read(&path).map_err(|error| FuseErrno::from(&error))?)
        } else {
            None
        };
        let mut open = self.open_files();
        let Some(Open::File(text)) = open.get_mut(&handle.0) else {
            return Err(FuseErrno::EBADF);
        };
        if let Some(fresh) = fresh {
            *text = fresh;
        }
        let first = text.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let last = text.len().min(first + size as usize);
        Ok(text.as_bytes()[first..last].to_owned())
    }

    fn write_attribute(&self, node: INodeNo, bytes: &[u8]) -> Result<u32, FuseErrno> {
        let path = self.path(node)?;
        let value = std::str::from_utf8(bytes).map_err(|_| FuseErrno::EINVAL)?;
        if bytes.len() > ATTRIBUTE_BYTES as usize {
            return Err(FuseErrno::EINVAL);
        }
        self.forest.write(&path, value.to_owned()).map_err(|error| FuseErrno::from(&error))?;
        Ok(bytes.len() as u32)
    }

    fn open_attribute(&self, node: INodeNo, flags: OpenFlags) -> Result<FileHandle, FuseErrno> {
        let path = self.path(node)?;
        let kind = self.forest.kind(&path).map_err(|error| FuseErrno::from(&error))?;
        match kind {
            Kind::Directory => Err(FuseErrno::EISDIR),
            // The kernel allows root to open every file for writing. sysfs does not allow this.
            Kind::File { is_writable: false } if flags.acc_mode() != OpenAccMode::O_RDONLY => Err(FuseErrno::EACCES),
            Kind::File { .. } => Ok(self.remember(Open::File(String::new()))),
        }
    }

    fn open_directory(&self, node: INodeNo) -> Result<FileHandle, FuseErrno> {
        let mut entries = vec![(".".to_owned(), Kind::Directory), ("..".to_owned(), Kind::Directory)];
        if node.0 == ROOT {
            entries.push(("block".to_owned(), Kind::Directory));
            entries.push((self.disk.name().to_owned(), Kind::File { is_writable: true }));
        } else {
            let path = self.path(node)?;
            let listed = self.forest.list(&path).map_err(|error| FuseErrno::from(&error))?;
            entries.extend(listed.into_iter().map(|Entry { name, kind }| (name, kind)));
        }
        Ok(self.remember(Open::Directory(entries)))
    }

    /// Returns the inode number that a directory shows for a name. This is the number that the
    /// kernel knows, if any.
    fn number_in(&self, directory: INodeNo, name: &str) -> u64 {
        const UNKNOWN: u64 = u64::MAX;
        match (directory.0, name) {
            (_, ".") => directory.0,
            (ROOT, "block") => BLOCK,
            (ROOT, "..") => ROOT,
            (ROOT, _) => DISK,
            _ => self
                .path_in(directory, OsStr::new(name))
                .ok()
                .and_then(|path| self.nodes().number(&path))
                .unwrap_or(UNKNOWN),
        }
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_PARALLEL_DIROPS, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP]
        {
            // The file system also works without these capabilities.
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_write(TRANSFER_BYTES_MAX);
        let _ = config.set_max_readahead(TRANSFER_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_congestion_threshold(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.look_up(parent, name) {
            Ok((ttl, attr)) => reply.entry(&ttl, &attr, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.nodes().forget(node.0, lookups);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr_of_node(node) {
            Ok((ttl, attr)) => reply.attr(&ttl, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    /// Accepts some changes, but has no effect. Shells (`>`) and dd truncate a file before they
    /// write, so truncation is ignored, as for a block device. A larger size is an error. New times
    /// are ignored. A new owner or new permissions are an error, because only the mount sets them.
    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.is_some() || uid.is_some() || gid.is_some() {
            reply.error(FuseErrno::EPERM);
            return;
        }
        if node.0 == DISK && size.is_some_and(|size| size > self.disk.capacity_bytes()) {
            reply.error(FuseErrno::EFBIG);
            return;
        }
        match self.attr_of_node(node) {
            Ok((ttl, attr)) => reply.attr(&ttl, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if node.0 == DISK {
            if self.access.read_only && flags.acc_mode() != OpenAccMode::O_RDONLY {
                reply.error(FuseErrno::EROFS);
                return;
            }
            // The page cache would hide requests from the disk, and would read and write on behalf
            // of other processes.
            let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
            reply.opened(FileHandle(0), direct | FopenFlags::FOPEN_NOFLUSH);
            return;
        }
        match self.open_attribute(node, flags) {
            Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        request: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if node.0 == DISK {
            self.read_disk(request, offset, size, reply);
            return;
        }
        match self.read_attribute(node, handle, offset, size) {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        request: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if node.0 == DISK {
            self.write_disk(request, offset, bytes, flags, reply);
            return;
        }
        match self.write_attribute(node, bytes) {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing the file guarantees nothing about its data.
        reply.error(FuseErrno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.open_files().remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, request: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if node.0 != DISK {
            reply.ok();
            return;
        }
        let flush = Operation::new(Action::Flush, 0, 0);
        self.submit(
            request,
            flush,
            Box::new(|result| match result {
                Ok(_) => reply.ok(),
                Err(errno) => reply.error(errno.into()),
            }),
        );
    }

    fn fallocate(
        &self,
        request: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let end = offset.checked_add(length);
        if node.0 != DISK || end.is_none_or(|end| end > self.disk.capacity_bytes()) {
            reply.error(FuseErrno::EINVAL);
            return;
        }
        const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        const ZERO_RANGE: i32 = libc::FALLOC_FL_ZERO_RANGE;
        match mode & !libc::FALLOC_FL_KEEP_SIZE {
            libc::FALLOC_FL_PUNCH_HOLE if mode == PUNCH_HOLE => {
                self.do_range(request, self.hole(offset, length), false, reply);
            }
            ZERO_RANGE => self.do_range(request, vec![(Action::WriteZeroes, offset, length)], true, reply),
            // A block device returns the same error for other modes.
            _ => reply.error(FuseErrno::EOPNOTSUPP),
        }
    }

    /// Reports the whole disk as data.
    fn lseek(&self, _: &Request, node: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let capacity_bytes = i64::try_from(self.disk.capacity_bytes()).unwrap_or(i64::MAX);
        match whence {
            _ if node.0 != DISK => reply.error(FuseErrno::EINVAL),
            libc::SEEK_DATA | libc::SEEK_HOLE if !(0..capacity_bytes).contains(&offset) => {
                reply.error(FuseErrno::ENXIO);
            }
            libc::SEEK_DATA => reply.offset(offset),
            libc::SEEK_HOLE => reply.offset(capacity_bytes),
            _ => reply.error(FuseErrno::EINVAL),
        }
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.open_directory(node) {
            Ok(handle) => reply.opened(handle, FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _: &Request, node: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = match self.open_files().get(&handle.0) {
            Some(Open::Directory(entries)) => entries.clone(),
            _ => return reply.error(FuseErrno::EBADF),
        };
        for (at, (name, kind)) in entries.iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let file_type = if *kind == Kind::Directory { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(self.number_in(node, name)), at as u64 + 1, file_type, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.open_files().remove(&handle.0);
        reply.ok();
    }

    /// Creates a group.
    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let created = self.path_in(parent, name).and_then(|path| {
            self.forest.make_directory(&path).map_err(|error| FuseErrno::from(&error))?;
            self.look_up(parent, name)
        });
        match created {
            Ok((ttl, attr)) => reply.entry(&ttl, &attr, Generation(0)),
            Err(FuseErrno::ENOENT) => reply.error(FuseErrno::EPERM),
            Err(errno) => reply.error(errno),
        }
    }

    /// Refuses to create files. Users cannot create, remove or rename the files of a disk.
    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(FuseErrno::EACCES);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(FuseErrno::EPERM);
    }

    /// Removes a group.
    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = if parent.0 == ROOT { Err(FuseErrno::EPERM) } else { self.path_in(parent, name) };
        match path.and_then(|path| self.forest.remove_directory(&path).map_err(|error| FuseErrno::from(&error))) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: fuser::RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(FuseErrno::EPERM);
    }
}
