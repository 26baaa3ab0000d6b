//! `cargo xtask guest`: tests that need a kernel that this machine may not have. A
//! guest runs `iosched ublk`, and measures the kernel's own controllers from outside.
//!
//! The guest has Debian's kernel and an initramfs with programs of this machine
//! and a test script. QEMU emulates its hardware, so it runs on any machine.

pub(crate) mod linux;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use linux::{Contents, EMULATOR, KERNEL_ARGUMENTS};

/// Drivers and schedulers under test, from the kernel's package.
const MODULES: [&str; 5] = [
    "kernel/drivers/block/ublk_drv.ko",
    "kernel/drivers/block/null_blk/null_blk.ko",
    "kernel/fs/configfs/configfs.ko",
    "kernel/block/bfq.ko",
    "kernel/block/mq-deadline.ko",
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
/// The parts of the test by name. The last two run only on request.
const PARTS: [(&str, &str); 6] = [
    ("ublk", include_str!("guest/ublk.sh")),
    ("cgroups", include_str!("guest/cgroups.sh")),
    ("orders", include_str!("guest/orders.sh")),
    ("throttle", include_str!("guest/throttle.sh")),
    ("weights", include_str!("guest/weights.sh")),
    (COSTS, include_str!("guest/costs.sh")),
];
/// The part that counts instructions, in a guest whose clock counts them.
const COSTS: &str = "costs";
/// Number of boots of a guest that does not reach its tests.
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
    /// Run only these parts: ublk, cgroups, orders, throttle, weights or costs
    ///
    /// weights and costs run only if you name them. costs must be alone; an instruction then takes one nanosecond.
    #[arg(long, value_name = "PART", value_parser = PARTS.map(|(name, _)| name))]
    only: Vec<String>,
    /// Stop the guest after this time, in seconds
    #[arg(long, default_value_t = 600)]
    seconds_max: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let counts = args.only.iter().any(|part| part == COSTS);
    ensure!(!counts || args.only.len() == 1, "{COSTS} is done by itself: other parts need a guest whose time is real");
    let program = crate::crash::command()?;
    let target = program.parent().and_then(Path::parent).context("the target directory")?;
    let folder = linux::folder(target)?;
    let kernel = linux::kernel(&folder)?;
    let contents =
        Contents { programs: &PROGRAMS, iosched: Some(&program), modules: &MODULES, init: INIT, parts: &PARTS };
    let initramfs = contents.pack(&folder, "guest", &kernel)?;
    let began = Instant::now();
    let console = folder.join("console");
    let image = linux::image(&kernel)?;
    let mut ended = boot(args, &image, &initramfs, &console)?;
    // A boot that does not reach the tests says nothing about their subjects.
    for _ in 1..BOOTS {
        if ended.has_begun() {
            break;
        }
        println!("the guest did not begin: {}; it is booted again", ended.how(&console));
        ended = boot(args, &image, &initramfs, &console)?;
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
        eprintln!("{}", text(&console));
        bail!("the guest did not come to its end: {}", ended.how(&console));
    }
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

    /// Returns a line with the end of the emulator, and
    /// the last messages of the tests and of the kernel.
    fn how(&self, console: &Path) -> String {
        let how = match self.status.code() {
            Some(124) => "ended by us".to_owned(),
            _ => self.status.to_string(),
        };
        let lines = self.lines.last().map_or("nothing", String::as_str);
        let console = text(console);
        let is_bad = |line: &&str| ["Kernel panic", "BUG:", "Oops"].iter().any(|word| line.contains(word));
        let kernel = console.lines().find(is_bad).or_else(|| console.lines().last()).unwrap_or("nothing");
        format!("{how} after {:.0} s; the last it said: {lines}; its kernel: {}", self.seconds, kernel.trim())
    }
}

/// Returns the text of a file. Empty if the file is missing.
fn text(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Runs the guest to its end. Messages of its kernel go to `console`.
fn boot(args: &Args, image: &Path, initramfs: &Path, console: &Path) -> Result<Ended> {
    let began = Instant::now();
    let mut arguments = KERNEL_ARGUMENTS.to_owned();
    if !args.only.is_empty() {
        arguments.push_str(&format!(" parts={}", args.only.join(",")));
    }
    let processors: &[&str] = if args.only == [COSTS] {
        &["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1"]
    } else {
        &["-accel", "tcg", "-smp", "2"]
    };
    let mut child = Command::new("timeout")
        .arg(args.seconds_max.to_string())
        .arg(EMULATOR)
        .args(processors)
        .args(["-m", "1024", "-nographic", "-no-reboot", "-nodefaults"])
        .args(["-serial", "stdio", "-append", &arguments])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(initramfs)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("timeout")?;
    let output = BufReader::new(child.stdout.take().context("its output")?);
    let mut lines = Vec::new();
    for line in output.split(b'\n') {
        let line = String::from_utf8_lossy(&line?).trim().to_owned();
        if args.verbose {
            println!("{line}");
        }
        lines.push(line);
    }
    let status = child.wait()?;
    ensure!(status.code() != Some(127), "{EMULATOR} is not here: install qemu-system-x86");
    Ok(Ended { lines, status, seconds: began.elapsed().as_secs_f64() })
}
