//! Tests that use a served disk as guests do.

mod guest;
mod hostile;
mod reconnect;
mod requests;
mod resize;
mod shares;

use std::path::{Path, PathBuf};

use iosched::Setting;
use iosched_live::nbd::{Export, Exports};
use iosched_live::reactor::{self, ServeOptions, Served};
use iosched_live::vhost::{self, Door, Sockets};
use iosched_live::{Messages, OwnedListener};

/// A disk that is served to guests, with a socket for each export.
pub(crate) struct Server {
    pub(crate) served: Option<Served>,
    /// Sockets in the directory. They must be dropped before the directory.
    _sockets: Sockets,
    here: tempfile::TempDir,
}

impl Server {
    pub(crate) fn new(backend: &str, exports: &[&str]) -> Self {
        Self::with(backend, "cfq", None, exports, Messages::to_nobody())
    }

    pub(crate) fn with(
        backend: &str,
        scheduler: &str,
        depth: Option<u32>,
        declared: &[&str],
        messages: Messages,
    ) -> Self {
        let here = tempfile::tempdir().unwrap();
        let setting: Setting = scheduler.parse().unwrap();
        let options = ServeOptions { messages, depth, ..ServeOptions::new("test", backend.parse().unwrap(), setting) };
        let served = reactor::start(&options, None).unwrap();
        let mut exports = Exports::default();
        let mut doors = Vec::new();
        for (number, declared) in declared.iter().enumerate() {
            let export = Export::from_option(declared).unwrap();
            exports.add(export.clone()).unwrap();
            doors.push(Door { listener: OwnedListener::bind(&place(here.path(), number)).unwrap(), export });
        }
        let sockets = vhost::serve(&served.handle, &exports, doors).unwrap();
        assert!(sockets.warnings().is_empty(), "{:?}", sockets.warnings());
        Self { served: Some(served), _sockets: sockets, here }
    }

    pub(crate) fn socket(&self, number: usize) -> PathBuf {
        place(self.here.path(), number)
    }

    /// Returns the name and the number of operations of each client of the disk.
    pub(crate) fn clients(&self) -> Vec<(String, u64)> {
        let list = |disk: &mut iosched_live::LiveDisk, _| {
            let of = |client: &iosched_live::disk::Client| {
                let stat = &client.stat;
                let ios = [&stat.reads, &stat.writes, &stat.trims, &stat.flushes].map(|had| had.ios);
                (client.identity.name.clone(), ios.iter().sum())
            };
            disk.clients().map(of).collect()
        };
        self.served.as_ref().unwrap().handle.control(list).unwrap()
    }

    /// Stops the server normally.
    pub(crate) fn stop(&mut self) {
        let served = self.served.take().unwrap();
        served.handle.stop();
        served.wait().flushed.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.served.is_some() && !std::thread::panicking() {
            self.stop();
        }
    }
}

fn place(here: &Path, number: usize) -> PathBuf {
    here.join(format!("{number}.sock"))
}
