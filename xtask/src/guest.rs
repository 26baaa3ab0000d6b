//! `cargo xtask guest`: tests that need a kernel that this machine may not have. A virtual machine
//! (guest) runs `iosched ublk`, and measures the effect of the kernel's controllers on programs.
//!
//! The guest has Debian's kernel and an initramfs with programs of this machine and a test script.
//! QEMU emulates the hardware of the guest, so the guest runs on any machine.

pub(crate) mod linux;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use linux::{Contents, EMULATOR, KERNEL_ARGUMENTS};

/// Drivers and schedulers under test, as files of the kernel's package.
const MODULES: [&str; 6] = [
    "kernel/drivers/block/ublk_drv.ko",
    "kernel/drivers/block/null_blk/null_blk.ko",
    "kernel/fs/configfs/configfs.ko",
    "kernel/block/bfq.ko",
    "kernel/block/mq-deadline.ko",
    "kernel/block/kyber-iosched.ko",
];
/// Programs of this machine for the guest, and their packages.
const PROGRAMS: [(&str, &str); 6] = [
    ("busybox", "busybox-static"),
    ("fio", "fio"),
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("blkdiscard", "util-linux"),
    ("setpriv", "util-linux"),
];
const INIT: &str = include_str!("guest/init.sh");
/// The parts of the test: name and script.
const PARTS: [(&str, &str); 7] = [
    ("ublk", include_str!("guest/ublk.sh")),
    ("cgroups", include_str!("guest/cgroups.sh")),
    ("throttle", include_str!("guest/throttle.sh")),
    ("watch", include_str!("guest/watch.sh")),
    ("weights", include_str!("guest/weights.sh")),
    ("orders", include_str!("guest/orders.sh")),
    ("costs", include_str!("guest/costs.sh")),
];
/// The parts that run by default, by kernel. Debian's Linux 6.1 has no ublk.
const USUAL: [(&str, &[&str]); 2] =
    [("6.12", &["ublk", "cgroups", "throttle", "watch", "orders"]), ("6.1", &["throttle", "watch", "orders"])];
/// The parts whose guest has a clock that counts instructions. Each of them has a separate guest.
const COUNTED: [&str; 2] = ["orders", "costs"];
/// Parts that enable trace events. With trace events, Linux changes its own code while it runs. If
/// QEMU has several CPUs, it may execute an old instruction, and Linux stops with "Oops: int3".
/// These parts therefore have a guest with one CPU.
const TRACED: [&str; 1] = ["watch"];
/// Largest number of boots of a guest that does not reach its tests.
const BOOTS: usize = 3;

/// Test iosched in QEMU, under a kernel with ublk and cgroup controllers
///
/// Needs the packages qemu-system-x86, busybox-static, cpio, xz-utils, fio and e2fsprogs. apt-get fetches the package
/// of the kernel, which stays in target/guest.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show all output of the guest
    #[arg(long)]
    verbose: bool,
    /// Run only these parts: ublk, cgroups, throttle, watch, orders, weights or costs
    ///
    /// weights and costs run only if you name them. In the guests of orders and costs, an instruction takes one
    /// nanosecond, so the load of this machine changes no result. Linux 6.1 has only throttle, watch and orders.
    #[arg(long, value_name = "PART", value_parser = PARTS.map(|(name, _)| name))]
    only: Vec<String>,
    /// Version of Linux in the guest
    #[arg(long, value_parser = linux::SERIES, default_value = linux::SERIES[0])]
    kernel: String,
    /// Stop the guest after this time, in seconds
    #[arg(long, default_value_t = 600)]
    seconds_max: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let usual = USUAL.iter().find(|(kernel, _)| *kernel == args.kernel).map_or(&[][..], |(_, parts)| *parts);
    let named: Vec<&str> = args.only.iter().map(String::as_str).collect();
    let parts = if named.is_empty() { usual } else { &named };
    let program = crate::crash::command()?;
    let target = program.parent().and_then(Path::parent).context("the target directory")?;
    let folder = linux::folder(target)?;
    let kernel = linux::kernel(&folder, &args.kernel)?;
    let contents =
        Contents { programs: &PROGRAMS, iosched: Some(&program), modules: &MODULES, init: INIT, parts: &PARTS };
    let initramfs = contents.pack(&folder, "guest", &kernel)?;
    let (image, console) = (linux::image(&kernel)?, folder.join("console"));
    let (counted, timed): (Vec<&str>, Vec<&str>) = parts.iter().partition(|part| COUNTED.contains(part));
    let (traced, timed): (Vec<&str>, Vec<&str>) = timed.iter().partition(|part| TRACED.contains(part));
    let guests = [timed, traced].into_iter().filter(|parts| !parts.is_empty());
    let guests = guests.chain(counted.iter().map(|&part| vec![part]));
    let (mut passed, mut failed) = (0, 0);
    for parts in guests {
        let guest = Guest { args, image: &image, initramfs: &initramfs, console: &console, parts: &parts };
        let (more_passed, more_failed) = guest.run()?;
        (passed, failed) = (passed + more_passed, failed + more_failed);
    }
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A guest that runs some parts of the test.
struct Guest<'a> {
    args: &'a Args,
    image: &'a Path,
    initramfs: &'a Path,
    /// File for messages of the guest's kernel.
    console: &'a Path,
    parts: &'a [&'a str],
}

impl Guest<'_> {
    /// Runs the guest. Returns the numbers of checks that passed and that failed.
    fn run(&self) -> Result<(u32, u32)> {
        let began = Instant::now();
        let mut ended = self.boot()?;
        // A boot that does not reach the tests has no result about iosched or Linux.
        for _ in 1..BOOTS {
            if ended.has_begun() {
                break;
            }
            println!("the guest did not begin: {}; it is booted again", ended.how(self.console));
            ended = self.boot()?;
        }
        let lines = &ended.lines;
        let (mut passed, mut failed) = (0, 0);
        for line in lines.iter().filter_map(|line| line.strip_prefix("guest: ")) {
            passed += u32::from(line.starts_with("passed: "));
            failed += u32::from(line.starts_with("FAILED: "));
            println!("{line}");
        }
        println!("guest: {passed} passed, {failed} failed in {:.0} s", began.elapsed().as_secs_f64());
        if lines.last().map(String::as_str) != Some("guest: end") {
            eprintln!("{}", text(self.console));
            bail!("the guest did not come to its end: {}", ended.how(self.console));
        }
        Ok((passed, failed))
    }

    /// Runs the guest to its end. Messages of its kernel go to `console`.
    fn boot(&self) -> Result<Ended> {
        let began = Instant::now();
        let arguments = format!("{KERNEL_ARGUMENTS} parts={}", self.parts.join(","));
        let counts = self.parts.iter().any(|part| COUNTED.contains(part));
        let processors: &[&str] = if counts {
            &["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1"]
        } else if self.parts.iter().any(|part| TRACED.contains(part)) {
            &["-accel", "tcg", "-smp", "1"]
        } else {
            &["-accel", "tcg", "-smp", "2"]
        };
        let mut child = Command::new("timeout")
            .arg(self.args.seconds_max.to_string())
            .arg(EMULATOR)
            .args(processors)
            .args(["-m", "1024", "-nographic", "-no-reboot", "-nodefaults"])
            .args(["-serial", "stdio", "-append", &arguments])
            .arg("-serial")
            .arg(format!("file:{}", self.console.display()))
            .arg("-kernel")
            .arg(self.image)
            .arg("-initrd")
            .arg(self.initramfs)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("timeout")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        let mut lines = Vec::new();
        for line in output.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).trim().to_owned();
            if self.args.verbose {
                println!("{line}");
            }
            lines.push(line);
        }
        let status = child.wait()?;
        ensure!(status.code() != Some(127), "{EMULATOR} is not here: install qemu-system-x86");
        Ok(Ended { lines, status, seconds: began.elapsed().as_secs_f64() })
    }
}

/// The result of a guest.
struct Ended {
    /// Lines of the output.
    lines: Vec<String>,
    status: ExitStatus,
    seconds: f64,
}

impl Ended {
    /// Returns whether the guest reached its tests.
    fn has_begun(&self) -> bool {
        self.lines.iter().any(|line| line.starts_with("guest: "))
    }

    /// Returns a text with the way in which the emulator ended, and the last messages of the tests
    /// and of the kernel.
    fn how(&self, console: &Path) -> String {
        let how = match self.status.code() {
            Some(124) => "ended by us".to_owned(),
            _ => self.status.to_string(),
        };
        let line = self.lines.last().map_or("nothing", String::as_str);
        let console = text(console);
        let is_bad = |line: &&str| ["Kernel panic", "BUG:", "Oops"].iter().any(|word| line.contains(word));
        let kernel = console.lines().find(is_bad).or_else(|| console.lines().last()).unwrap_or("nothing");
        format!("{how} after {:.0} s; the last it said: {line}; its kernel: {}", self.seconds, kernel.trim())
    }
}

/// Returns the text of a file. Empty if the file is missing.
fn text(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
