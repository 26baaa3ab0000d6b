//! Loop devices for tests, as root.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_testing::machine::available;

/// A loop device over a temporary file, detached on drop.
pub(crate) struct Loop {
    pub(crate) here: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Loop {
    /// Attaches a loop device. Returns `None` if there are no loop devices or the test does not run
    /// as root.
    #[track_caller]
    pub(crate) fn new() -> Option<Self> {
        let here = tempfile::tempdir().unwrap();
        let image = here.path().join("image");
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        Self::over(here, &image, "off")
    }

    /// Attaches a loop device over the file `image` in the directory `here`. The directory is
    /// removed when the loop device is detached. `direct` is `on` to bypass the page cache, and
    /// `off` otherwise.
    #[track_caller]
    pub(crate) fn over(here: tempfile::TempDir, image: &Path, direct: &str) -> Option<Self> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
        available(is_root, "root").then_some(())?;
        let direct = format!("--direct-io={direct}");
        let found = Command::new("losetup").args(["--find", "--show", &direct]).arg(image).output();
        let found = found.ok().filter(|found| found.status.success());
        available(found.is_some(), "a loop device").then_some(())?;
        let path = PathBuf::from(String::from_utf8(found?.stdout).unwrap().trim());
        let loop_device = Self { here, path };
        // An earlier user of the loop device may have left settings.
        fs::write(loop_device.device().queue().join("scheduler"), "none").unwrap();
        Some(loop_device)
    }

    pub(crate) fn device(&self) -> BlockDevice {
        BlockDevice::find(&Roots::default(), &self.path).unwrap()
    }

    pub(crate) fn state(&self) -> StateDirectory {
        StateDirectory::at(&self.here.path().join("state"))
    }

    /// Returns whether the kernel has a scheduler.
    #[track_caller]
    pub(crate) fn has(&self, scheduler: &str) -> bool {
        let found = self.device().schedulers().iter().any(|name| name == scheduler);
        available(found, &format!("the scheduler {scheduler}"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = fs::write(self.device().queue().join("scheduler"), "none");
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}
