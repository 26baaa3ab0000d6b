//! Tests the packages in a root directory that has only Debian's essential packages, man and
//! systemd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{done, printed, units};

/// Packages of the root directory in addition to the essential packages: man shows pages, systemd
/// reads and runs units, and nbdinfo is a client.
const INCLUDED: &str = "man-db,systemd,systemd-sysv,libnbd-bin";
/// Possible lists of package sources. The first existing list is used.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];

/// Commands that run in the root directory with an installed package, and texts that their output
/// must contain.
const TRIED: [(&str, &str); 9] = [
    ("iosched --version", concat!("iosched ", env!("CARGO_PKG_VERSION"))),
    // The main command, with the sample trace.
    ("iosched compare --runs 3 | cat", "Keep `mq-deadline` for now"),
    ("iosched job check /usr/share/doc/iosched/examples/priorities.fio", ""),
    ("man -w iosched-compare", "/usr/share/man/man1/iosched-compare.1.gz"),
    ("man iosched-trace-convert | cat", "iosched trace convert"),
    ("systemd-analyze verify --man=yes /usr/lib/systemd/system/iosched-*@.* && echo good", "good"),
    ("getent passwd iosched", "/var/lib/iosched-serve"),
    ("bash -c '. /usr/share/bash-completion/completions/iosched && complete -p iosched'", "iosched"),
    ("zcat /usr/share/doc/iosched/third-party-licences.gz", "serde_json"),
];
/// Files for Grafana and Prometheus that a package must have.
const MONITORING: [&str; 4] = [
    "usr/share/iosched/grafana/iosched-kernel-disks.json",
    "usr/share/iosched/grafana/iosched-served-disks.json",
    "usr/share/iosched/prometheus/iosched.rules.yml",
    "usr/share/iosched/prometheus/iosched-watch.rules.yml",
];

/// A root directory that is being created. It is removed on drop.
pub(crate) struct Root {
    directory: PathBuf,
    making: Child,
}

/// A root directory that is complete.
pub(crate) struct ReadyRoot(Root);

impl Drop for Root {
    fn drop(&mut self) {
        // If the root directory is still being created, stop mmdebstrap. It removes its mounts when
        // it is killed.
        if matches!(self.making.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.making.id().to_string()).status();
            let _ = self.making.wait();
        }
        let _ = Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.directory).status();
    }
}

impl Root {
    /// Begins to create a root directory from the packages that apt-get on this machine knows.
    pub(crate) fn begin() -> Result<Self> {
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

    /// Waits until the root directory is complete.
    pub(crate) fn ready(mut self) -> Result<ReadyRoot> {
        let status = self.making.wait()?;
        ensure!(status.success(), "mmdebstrap: {status}");
        Ok(ReadyRoot(self))
    }
}

impl ReadyRoot {
    /// Returns a command that runs a script in the root directory, without the environment of this
    /// process.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.0.directory).args(["sh", "-ec", script]).env_clear().stdin(Stdio::null());
        command.envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", "/root"), ("LC_ALL", "C.UTF-8")]);
        command
    }

    /// Installs the Debian package, uses it with its units, and removes it. Afterwards, no file of
    /// the package may remain.
    pub(crate) fn install_deb(&self, deb: &Path) -> Result<()> {
        let before = self.files()?;
        fs::copy(deb, self.0.directory.join("iosched.deb"))?;
        done(&mut self.shell("dpkg -i /iosched.deb"))?;
        self.use_package("deb")?;
        let verified = printed(&mut self.shell("dpkg --verify iosched && echo files: good"))?;
        ensure!(verified.contains("files: good"), "dpkg --verify: {verified}");
        units::tried(&self.0.directory)?;
        done(&mut self.shell("dpkg --purge iosched && rm /iosched.deb"))?;
        self.is_clean("deb", &before)
    }

    /// Does the same as [`install_deb`](Self::install_deb) with the RPM package and this machine's
    /// rpm. Does not start units.
    pub(crate) fn install_rpm(&self, package: &Path) -> Result<()> {
        let before = self.files()?;
        // The Debian package may have left its user and directories, which the RPM package also
        // has.
        let accounts =
            "sed -i '/^iosched:/d' /etc/passwd /etc/shadow /etc/group /etc/gshadow; rm -rf /var/lib/iosched-*";
        done(&mut self.shell(accounts))?;
        done(self.rpm().args(["--install", "--nodeps"]).arg(package))?;
        self.use_package("rpm")?;
        done(self.rpm().args(["--verify", "--nodeps", "iosched"]))?;
        done(self.rpm().args(["--erase", "iosched"]))?;
        self.is_clean("rpm", &before)
    }

    /// Returns a call of this machine's rpm for the root directory and the package database in it.
    fn rpm(&self) -> Command {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(&self.0.directory);
        // Debian's rpm refuses to install packages without this option. Other versions of rpm do
        // not have it.
        if Path::new("/etc/debian_version").exists() {
            rpm.arg("--force-debian");
        }
        rpm
    }

    fn use_package(&self, kind: &str) -> Result<()> {
        for (script, expected) in TRIED {
            let text = printed(&mut self.shell(script)).with_context(|| script.to_owned())?;
            ensure!(text.contains(expected), "{script}: {expected:?} is not in what it prints: {text}");
            println!("{kind} in a fresh root: {script}: passed");
        }
        for file in MONITORING {
            let text = fs::read_to_string(self.0.directory.join(file)).with_context(|| file.to_owned())?;
            if file.ends_with(".json") {
                serde_json::from_str::<serde_json::Value>(&text).with_context(|| file.to_owned())?;
            }
        }
        println!("{kind} in a fresh root: dashboards and alerts are there");
        Ok(())
    }

    /// Checks that the present files are the same as before the installation.
    fn is_clean(&self, kind: &str, before: &str) -> Result<()> {
        let after = self.files()?;
        let left: Vec<&str> = after.lines().filter(|line| !before.lines().any(|known| known == *line)).collect();
        ensure!(left.is_empty(), "removed, and these are left: {left:?}");
        println!("{kind} in a fresh root: removed, and nothing is left");
        Ok(())
    }

    /// Returns all files that a package may leave behind.
    fn files(&self) -> Result<String> {
        printed(&mut self.shell("find /usr /etc -xdev -name '*iosched*'"))
    }
}
