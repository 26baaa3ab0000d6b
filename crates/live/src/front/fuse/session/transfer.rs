//! Reads, writes and ranges of the disk. This module converts the kernel's requests to operations,
//! and the disk's answers to replies.

use std::sync::{Arc, Mutex, PoisonError};

use fuser::{Errno as FuseErrno, OpenFlags, ReplyData, ReplyEmpty, ReplyWrite, Request};

use super::filesystem::{DiskFs, TRANSFER_BYTES_MAX};
use crate::Errno;
use crate::disk::{Action, Operation};

/// Maximum size of one piece when a range is trimmed or zeroed, bytes.
const RANGE_BYTES_MAX: u64 = 1 << 30;

impl DiskFs {
    /// Submits an operation as the client of the request's process.
    pub(super) fn submit(&self, request: &Request, operation: Operation, reply: crate::reactor::Reply) {
        match self.clients.of(request.pid()) {
            Ok(client) => self.disk.submit(client, operation, reply),
            Err(errno) => reply(Err(errno)),
        }
    }

    /// Returns `length`, reduced so that the transfer does not exceed the end of the disk.
    fn length(&self, offset: u64, length: usize) -> u32 {
        let left = self.disk.capacity_bytes().saturating_sub(offset);
        u32::try_from(left.min(length as u64)).unwrap_or(TRANSFER_BYTES_MAX)
    }

    pub(super) fn read_disk(&self, request: &Request, offset: u64, size: u32, reply: ReplyData) {
        let length = self.length(offset, size as usize);
        if length == 0 {
            reply.data(&[]);
            return;
        }
        let reserved = self.budget.take(length.into());
        let read = Operation::new(Action::Read, offset, length.into());
        self.submit(
            request,
            read,
            Box::new(|result| {
                match result {
                    Ok(data) => reply.data(data.as_deref().unwrap_or_default()),
                    Err(errno) => reply.error(errno.into()),
                }
                drop(reserved);
            }),
        );
    }

    pub(super) fn write_disk(&self, request: &Request, offset: u64, bytes: &[u8], flags: OpenFlags, reply: ReplyWrite) {
        let length = self.length(offset, bytes.len());
        if length == 0 && !bytes.is_empty() {
            reply.error(FuseErrno::ENOSPC);
            return;
        }
        let reserved = self.budget.take(length.into());
        let mut data = self.disk.buffer(length as usize);
        data.copy_from_slice(&bytes[..length as usize]);
        let (fua, sync) = (flags.0 & (libc::O_SYNC | libc::O_DSYNC) != 0, flags.0 & libc::O_DIRECT != 0);
        let write = Operation { fua, sync, data: Some(data), ..Operation::new(Action::Write, offset, length.into()) };
        self.submit(
            request,
            write,
            Box::new(move |result| {
                match result {
                    Ok(_) => reply.written(length),
                    Err(errno) => reply.error(errno.into()),
                }
                drop(reserved);
            }),
        );
    }

    /// Submits actions on ranges, in pieces. Sends one reply after the last piece. If pieces
    /// failed, the reply has the first error.
    pub(super) fn do_range(
        &self,
        request: &Request,
        actions: Vec<(Action, u64, u64)>,
        no_hole: bool,
        reply: ReplyEmpty,
    ) {
        let mut pieces = Vec::new();
        for (action, mut offset, mut left) in actions {
            while left > 0 {
                let length = left.min(RANGE_BYTES_MAX);
                pieces.push(Operation { no_hole, ..Operation::new(action, offset, length) });
                (offset, left) = (offset + length, left - length);
            }
        }
        if pieces.is_empty() {
            reply.ok();
            return;
        }
        let left = Arc::new(Mutex::new((pieces.len(), Ok(()), Some(reply))));
        for operation in pieces {
            let left = Arc::clone(&left);
            let done = move |result: Result<_, Errno>| {
                let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                left.0 -= 1;
                left.1 = left.1.and(result.map(drop));
                if left.0 == 0
                    && let Some(reply) = left.2.take()
                {
                    match left.1 {
                        Ok(()) => reply.ok(),
                        Err(errno) => reply.error(errno.into()),
                    }
                }
            };
            self.submit(request, operation, Box::new(done));
        }
    }

    /// Returns the actions that punch a hole. The whole hole must read as zeroes, but only whole
    /// blocks can be trimmed.
    pub(super) fn hole(&self, offset: u64, length: u64) -> Vec<(Action, u64, u64)> {
        let block = u64::from(self.disk.block_bytes());
        let end = offset + length;
        let (first, last) = (offset.next_multiple_of(block), end / block * block);
        if first >= last || !self.disk.trim_zeroes() {
            return vec![(Action::WriteZeroes, offset, length)];
        }
        vec![
            (Action::WriteZeroes, offset, first - offset),
            (Action::Trim, first, last - first),
            (Action::WriteZeroes, last, end - last),
        ]
    }
}
