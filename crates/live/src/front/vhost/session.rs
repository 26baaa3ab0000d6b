//! Messages of a connected frontend. The disk's thread executes each message.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};

use rustix::fs::OFlags;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight, VhostUserLog,
    VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{BackendReqHandler, Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};

use super::channel;
use crate::Handle;
use crate::disk::Identity;
use crate::nbd::Export;
use crate::reactor::vhost::{Hands, Server};
use crate::reactor::{ConnectError, Stopped};
use crate::virtio::device::{Card, PROTOCOL_FEATURES, QUEUE_SIZE_MAX, QUEUES_MAX};
use crate::virtio::inflight::{self, Region};
use crate::virtio::memory::Memory;
use crate::virtio::{Addresses, Refusal};

/// Session of a connected frontend.
pub(super) struct Session {
    disk: Handle,
    read_only: bool,
    /// Index of the device in the server.
    device: usize,
    is_open: bool,
}

fn refused(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::ReqHandlerError(io::Error::other(why))
}

impl Session {
    /// Opens a session and creates its device.
    ///
    /// # Errors
    /// The disk has ended, or has the maximum number of clients.
    pub(super) fn open(disk: &Handle, export: &Export, identity: Identity) -> std::result::Result<Self, ConnectError> {
        let serial = if export.name.is_empty() { disk.name() } else { &export.name }.to_owned();
        let device = disk.vhost(move |server, hands| server.open(hands, identity, &serial))??;
        Ok(Self { disk: disk.clone(), read_only: export.read_only, device, is_open: true })
    }

    /// Handles messages until one side disconnects. Returns after all operations of the guest are
    /// complete.
    ///
    /// # Errors
    /// The frontend violates the protocol, or the system fails.
    pub(super) fn run(self, stream: UnixStream) -> io::Result<()> {
        let session = Arc::new(Mutex::new(self));
        let messages = stream.try_clone()?;
        let mut handler = BackendReqHandler::from_stream(stream, Arc::clone(&session));
        let ended = loop {
            let channel = channel::brought_by(&messages);
            match handler.handle_request() {
                Ok(()) => {
                    if let (Some(channel), Ok(session)) = (channel, session.lock()) {
                        session.keep(channel);
                    }
                }
                Err(Error::Disconnected | Error::PartialMessage) => break Ok(()),
                Err(Error::SocketBroken(_)) => break Ok(()),
                Err(error) => break Err(io::Error::other(error)),
            }
        };
        // The next frontend may send requests of this frontend again. The connection therefore ends
        // only after all requests of this frontend are complete.
        if let Ok(mut session) = session.lock() {
            session.close();
        }
        ended
    }

    fn close(&mut self) {
        let (device, (waits, closed)) = (self.device, mpsc::sync_channel(1));
        if std::mem::replace(&mut self.is_open, false)
            && self.disk.vhost(move |server, hands| server.close(hands, device, waits)).is_ok()
        {
            // If the disk ends meanwhile, the channel closes and this wait ends.
            let _ = closed.recv();
        }
    }

    /// Returns the current properties of the disk for the guest.
    fn card(&self) -> Card {
        Card::new(self.disk.capacity_bytes(), self.disk.block_bytes(), self.read_only)
    }

    /// Stores the channel that reports changes to the frontend.
    fn keep(&self, channel: OwnedFd) {
        // If the disk has ended, there are no changes to report.
        let _ = self.ask(move |server, _, device| server.set_channel(device, channel));
    }

    /// Runs `act` on the disk's thread.
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Server, &mut Hands<'_>, usize) -> std::result::Result<T, Refusal> + Send + 'static,
    ) -> Result<T> {
        let device = self.device;
        let done = self.disk.vhost(move |server, hands| act(server, hands, device));
        done.map_err(refused)?.map_err(refused)
    }
}

/// File system type that statfs reports for eventfds.
const ANON_INODE_FS_MAGIC: rustix::fs::FsWord = 0x0904_1934;

/// Checks that a notification file never blocks. The file must be an eventfd or another anonymous
/// file of the kernel.
fn never_waits(file: File) -> Result<File> {
    let about = rustix::fs::fstatfs(&file).map_err(|error| refused(io::Error::from(error)))?;
    if about.f_type != ANON_INODE_FS_MAGIC {
        return Err(refused("a doorbell must be an eventfd"));
    }
    let set = rustix::fs::fcntl_getfl(&file).and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK));
    set.map_err(|error| refused(io::Error::from(error)))?;
    Ok(file)
}

impl VhostUserBackendReqHandlerMut for Session {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::RESET_DEVICE))
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.card().features())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.card().features() != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.ask(move |server, _, device| server.set_features(device, features))
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<vhost::VhostUserMemoryRegionBase>>> {
        let memory = Arc::new(Memory::map(regions, files).map_err(refused)?);
        self.ask(move |server, _, device| server.set_memory(device, memory))?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        self.ask(move |server, _, device| server.set_size(device, index, num))
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _: u64,
    ) -> Result<()> {
        let addresses = Addresses { descriptors, available, used };
        self.ask(move |server, _, device| server.set_addresses(device, index, addresses))
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.ask(move |server, _, device| server.set_base(device, index, base))
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let (waits, stopped) = mpsc::sync_channel(1);
        self.ask(move |server, hands, device| server.stop(hands, device, index, waits))?;
        let next = stopped.recv().map_err(|_| refused(Stopped))?;
        Ok(VhostUserVringState::new(index, next.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let file = never_waits(file.ok_or_else(|| refused(Refusal::Polled))?)?;
        self.ask(move |server, hands, device| server.set_kick(hands, device, index.into(), file))
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let file = file.map(never_waits).transpose()?;
        self.ask(move |server, _, device| server.set_call(device, index.into(), file))
    }

    fn set_vring_err(&mut self, _: u8, _: Option<File>) -> Result<()> {
        // This file is not needed, because the status of each request reports errors.
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(PROTOCOL_FEATURES)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        if features & !PROTOCOL_FEATURES.bits() != 0 { Err(Error::FeatureMismatch) } else { Ok(()) }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(QUEUES_MAX.into())
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.ask(move |server, _, device| server.enable(device, index, enable))
    }

    fn get_config(&mut self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        self.card().config(offset, size).ok_or(Error::InvalidParam)
    }

    fn set_config(&mut self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        Err(Error::InvalidOperation("the configuration is read-only"))
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("a disk has no display"))
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::SHARED_OBJECT))
    }

    fn get_inflight_fd(&mut self, inflight: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let &VhostUserInflight { num_queues: queues, queue_size: size, .. } = inflight;
        if queues > QUEUES_MAX || size > QUEUE_SIZE_MAX {
            return Err(Error::InvalidParam);
        }
        inflight::create(queues, size).map_err(refused)
    }

    fn set_inflight_fd(&mut self, inflight: &VhostUserInflight, file: File) -> Result<()> {
        let region = Region::map(inflight, file).map_err(refused)?;
        self.ask(move |server, _, device| server.set_region(device, region))
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS))
    }

    fn add_mem_region(
        &mut self,
        _: &VhostUserSingleMemoryRegion,
        _: File,
        _: Option<bool>,
    ) -> Result<Option<vhost::VhostUserMemoryRegionBase>> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS))
    }

    fn remove_mem_region(&mut self, _: &VhostUserSingleMemoryRegion) -> Result<()> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS))
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::DEVICE_STATE))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::DEVICE_STATE))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::SHMEM))
    }

    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        Err(Error::InactiveOperation(VhostUserProtocolFeatures::LOG_SHMFD))
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn only_eventfds_are_accepted_for_notifications() {
        assert!(never_waits(eventfd(0, EventfdFlags::empty()).unwrap().into()).is_ok());
        assert!(never_waits(tempfile::tempfile().unwrap()).is_err());
        assert!(never_waits(OwnedFd::from(UnixStream::pair().unwrap().0).into()).is_err());
    }
}
