//! Names of processes and devices, and the numbers that stand for them.

use std::collections::BTreeMap;

use crate::blktrace::ProcessName;

/// Maximum number of names of processes that are remembered, and of names of devices.
pub(crate) const NAMES_MAX: usize = 65_536;

/// Last name of each process by pid, for the first 65,536 pids.
pub type ProcessNames = BTreeMap<u32, ProcessName>;

/// Names that a trace gives to numbers, for at most 65,536 processes and 65,536 devices.
#[derive(Debug, Default)]
pub struct Names {
    pub(crate) processes: ProcessNames,
    pub(crate) devices: DeviceNames,
    numbers: BTreeMap<Box<str>, u32>,
    /// Numbers of processes that only have names.
    pids: BTreeMap<Box<[u8]>, u32>,
}

/// Names of devices by number, for the first 65,536.
pub type DeviceNames = BTreeMap<u32, Box<str>>;

/// Longest name of a device, bytes: a path in fio's logs.
const DEVICE_NAME_MAX_BYTES: usize = 4096;

impl Names {
    pub(crate) fn process(&mut self, pid: u32, name: ProcessName) {
        if self.processes.len() < NAMES_MAX || self.processes.contains_key(&pid) {
            self.processes.insert(pid, name);
        }
    }

    /// Returns the number of a process that only has a name. The first process is 1. If there are
    /// more than [`NAMES_MAX`] names, the further processes share 0, the number of unknown
    /// processes.
    pub(crate) fn number_process(&mut self, name: &[u8]) -> u32 {
        if let Some(&known) = self.pids.get(name) {
            return known;
        }
        if self.pids.len() == NAMES_MAX {
            return 0;
        }
        let number = self.pids.len() as u32 + 1;
        self.pids.insert(name.into(), number);
        number
    }

    /// Returns the number of the device called `name`. The first device is 0. Returns `None` if the
    /// name is not text or too long, or if there are too many names.
    pub(crate) fn device(&mut self, name: &[u8]) -> Option<u32> {
        let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= DEVICE_NAME_MAX_BYTES)?;
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let number = self.devices.len() as u32;
        (self.devices.len() < NAMES_MAX).then(|| {
            self.devices.insert(number, name.into());
            self.numbers.insert(name.into(), number);
            number
        })
    }
}

/// Names of a request's process and device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels<'a> {
    pub(crate) process: Option<ProcessName>,
    pub(crate) device: Option<&'a str>,
}
