//! Tests the package in a root that has only Debian's essential packages, man and systemd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{done, printed, units};

/// Packages of the root in addition to the essential ones: man
/// finds pages, systemd reads and runs units, nbdinfo is a client.
const INCLUDED: &str = "man-db,systemd,systemd-sysv,libnbd-bin";
/// Possible lists of package sources; the first that exists is used.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];

/// Commands that run in the root with the package, and a text that their output must contain.
const TRIED: [(&str, &str); 9] = [
    ("iosched --version", concat!("iosched ", env!("CARGO_PKG_VERSION"))),
    // The main command, with the sample trace.
    ("iosched compare --runs 3 | cat", "Keep `mq-deadline` for now"),
    ("iosched job check /usr/share/doc/iosched/examples/priorities.fio", ""),
    ("man -w iosched-compare", "/usr/share/man/man1/iosched-compare.1.gz"),
    ("man iosched-trace-convert | cat", "iosched trace convert"),
    ("systemd-analyze verify --man=yes /usr/lib/systemd/system/iosched-*@.* && echo good", "good"),
    ("getent passwd iosched", "/var/lib/iosched-serve"),
    ("dpkg --verify iosched && echo files: good", "files: good"),
    ("bash -c '. /usr/share/bash-completion/completions/iosched && complete -p iosched'", "iosched"),
];

/// A root in its own directory, which is removed on drop.
pub(super) struct Root {
    directory: PathBuf,
    making: Child,
}

impl Drop for Root {
    fn drop(&mut self) {
        // A root that is still being created is no longer needed.
        // mmdebstrap unmounts its mounts when it is killed.
        if matches!(self.making.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.making.id().to_string()).status();
            let _ = self.making.wait();
        }
        let _ = Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.directory).status();
    }
}

impl Root {
    /// Begins to create a root from the packages that apt-get on this machine knows.
    pub(super) fn begin() -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("iosched-root-{}", std::process::id()));
        let sources =
            SOURCES.into_iter().find(|path| Path::new(path).exists()).context("apt-get has no sources here")?;
        let making = Command::new("mmdebstrap")
            .args(["--quiet", "--variant=essential", &format!("--include={INCLUDED}"), ""])
            .arg(&directory)
            .arg(sources)
            .stdin(Stdio::null())
            .spawn()
            .context("mmdebstrap cannot be run: install it")?;
        Ok(Self { directory, making })
    }

    /// Returns a command that runs a script in the root, without the environment of this process.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.directory).args(["sh", "-ec", script]).env_clear().stdin(Stdio::null());
        command.envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", "/root"), ("LC_ALL", "C.UTF-8")]);
        command
    }

    /// Installs the package, uses it and removes it. No file of it may remain.
    pub(super) fn install(mut self, deb: &Path) -> Result<()> {
        let status = self.making.wait()?;
        ensure!(status.success(), "mmdebstrap: {status}");
        let before = self.files()?;
        fs::copy(deb, self.directory.join("iosched.deb"))?;
        done(&mut self.shell("dpkg -i /iosched.deb"))?;
        for (script, expected) in TRIED {
            let text = printed(&mut self.shell(script)).with_context(|| script.to_owned())?;
            ensure!(text.contains(expected), "{script}: {expected:?} is not in what it prints: {text}");
            println!("in a fresh root: {script}: passed");
        }
        units::tried(&self.directory)?;
        done(&mut self.shell("dpkg --purge iosched && rm /iosched.deb"))?;
        let after = self.files()?;
        let left: Vec<&str> = after.lines().filter(|line| !before.lines().any(|known| known == *line)).collect();
        ensure!(left.is_empty(), "removed, and these are left: {left:?}");
        println!("in a fresh root: removed, and nothing is left");
        Ok(())
    }

    /// Returns all files that a package may leave behind.
    fn files(&self) -> Result<String> {
        printed(&mut self.shell("find /usr /etc -xdev -name '*iosched*'"))
    }
}
