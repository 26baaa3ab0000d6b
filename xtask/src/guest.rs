//! `cargo xtask guest`: what needs a kernel that this machine may not have, in a guest that has it: `iosched ublk`, and the
//! kernel's own controllers, from outside.
//!
//! The guest is Debian's kernel, and an initramfs of this machine's programs with a script that says what holds. QEMU
//! runs it without hardware's help, on any machine.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// What stands for the newest kernel of its series, made for virtual machines.
const KERNEL: &str = "linux-image-6.12-cloud-amd64";
/// Drivers and schedulers under test, in the kernel's package.
const MODULES: [&str; 5] = [
    "kernel/drivers/block/ublk_drv.ko",
    "kernel/drivers/block/null_blk/null_blk.ko",
    "kernel/fs/configfs/configfs.ko",
    "kernel/block/bfq.ko",
    "kernel/block/mq-deadline.ko",
];
/// Programs of this machine that the guest has, and the packages they are in.
const PROGRAMS: [(&str, &str); 6] = [
    ("busybox", "busybox-static"),
    ("fio", "fio"),
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("blkdiscard", "util-linux"),
    ("setpriv", "util-linux"),
];
const INIT: &str = include_str!("guest/init.sh");
/// The parts of what it does, by name; the last two only if they are asked for.
const PARTS: [(&str, &str); 5] = [
    ("ublk", include_str!("guest/ublk.sh")),
    ("cgroups", include_str!("guest/cgroups.sh")),
    ("orders", include_str!("guest/orders.sh")),
    ("weights", include_str!("guest/weights.sh")),
    (COSTS, include_str!("guest/costs.sh")),
];
/// The part that counts instructions, in a guest whose time they are.
const COSTS: &str = "costs";
const EMULATOR: &str = "qemu-system-x86_64";
/// An emulated timer may miss what the kernel tries it with when the machine is busy: it panics, if it tries. A kernel that
/// goes on after a fault hangs sooner or later: it is to panic, too, and the emulator ends.
const KERNEL_ARGUMENTS: &str = "console=ttyS1 panic=-1 oops=panic no_timer_check";
/// How often a guest that does not come as far as its tests is booted.
const BOOTS: usize = 3;

/// Run a kernel with ublk and controllers of cgroups in QEMU, and test iosched there.
///
/// Needs the packages qemu-system-x86, busybox-static, cpio, xz-utils, fio and e2fsprogs; the kernel's package is
/// fetched by apt-get, and kept in target/guest.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show all that the guest says.
    #[arg(long)]
    verbose: bool,
    /// Do these parts only: ublk, cgroups, orders, weights (done only if it is named); or costs by itself, where an
    /// instruction takes a nanosecond.
    #[arg(long, value_name = "PART", value_parser = PARTS.map(|(name, _)| name))]
    only: Vec<String>,
    /// The guest is ended then, in seconds.
    #[arg(long, default_value_t = 600)]
    seconds_max: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let counts = args.only.iter().any(|part| part == COSTS);
    ensure!(!counts || args.only.len() == 1, "{COSTS} is done by itself: other parts need a guest whose time is real");
    let program = crate::crash::command()?;
    let target = program.parent().and_then(Path::parent).context("the target directory")?;
    let folder = target.join("guest");
    fs::create_dir_all(&folder)?;
    let kernel = kernel(&folder)?;
    let initramfs = initramfs(&folder, &program, &kernel)?;
    let began = Instant::now();
    let console = folder.join("console");
    let image = image(&kernel)?;
    let mut ended = boot(args, &image, &initramfs, &console)?;
    // An emulator that does not get as far as the tests says nothing of what they are of.
    for _ in 1..BOOTS {
        if ended.has_begun() {
            break;
        }
        println!("the guest did not begin: {}; it is booted again", ended.how(&console));
        ended = boot(args, &image, &initramfs, &console)?;
    }
    let said = &ended.said;
    let (mut passed, mut failed) = (0, 0);
    for line in said.iter().filter_map(|line| line.strip_prefix("guest: ")) {
        passed += u32::from(line.starts_with("passed: "));
        failed += u32::from(line.starts_with("FAILED: "));
        println!("{line}");
    }
    println!("guest: {passed} passed, {failed} failed in {:.0} s", began.elapsed().as_secs_f64());
    if said.last().map(String::as_str) != Some("guest: end") {
        eprintln!("{}", text(&console));
        bail!("the guest did not come to its end: {}", ended.how(&console));
    }
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a program says, if it succeeds.
fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{}", command.get_program().display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {}", command.get_program().display(), output.status, said.trim());
    Ok(output)
}

/// The folder of an unpacked kernel package; it is fetched if it is not there.
fn kernel(folder: &Path) -> Result<PathBuf> {
    let kernel = folder.join("kernel");
    if kernel.is_dir() {
        return Ok(kernel);
    }
    let depends = output(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let depends = String::from_utf8(depends.stdout)?;
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.with_context(|| format!("{KERNEL} is not known here: apt-get update?"))?;
    println!("fetching {package}");
    output(Command::new("apt-get").args(["-q", "download", package]).current_dir(folder))?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let file = entries(folder)?.into_iter().find(is_package).context("apt-get has left no package")?;
    // It is there as a whole or not at all.
    let unpacked = folder.join("unpacked");
    let _ = fs::remove_dir_all(&unpacked);
    output(Command::new("dpkg").arg("-x").args([&file, &unpacked]))?;
    fs::rename(&unpacked, &kernel)?;
    fs::remove_file(file)?;
    Ok(kernel)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?)
}

/// The kernel itself.
fn image(kernel: &Path) -> Result<PathBuf> {
    let is_image = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"));
    entries(&kernel.join("boot"))?.into_iter().find(is_image).context("the package has no kernel")
}

/// What the guest has: programs, what they are linked with, the driver, and what to do.
fn initramfs(folder: &Path, program: &Path, kernel: &Path) -> Result<PathBuf> {
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    for directory in ["bin", "dev", "host", "mnt", "proc", "sys", "tmp"] {
        fs::create_dir_all(root.join(directory))?;
    }
    let mut files = BTreeSet::new();
    for (name, package) in PROGRAMS {
        let found = found(name).with_context(|| format!("{name} is not here: install {package}"))?;
        let folder = if name == "busybox" { "bin" } else { "host" };
        fs::copy(&found, root.join(folder).join(name))?;
        files.extend(libraries(&found)?);
    }
    // What is for debuggers is most of it.
    output(Command::new("strip").arg(program).arg("-o").arg(root.join("host/iosched")))?;
    files.extend(libraries(program)?);
    for file in files {
        let place = root.join(file.strip_prefix("/")?);
        fs::create_dir_all(place.parent().unwrap_or(&root))?;
        fs::copy(&file, place)?;
    }
    let modules = entries(&kernel.join("lib/modules"))?.pop().context("the package has no modules")?;
    for module in MODULES.map(Path::new) {
        let packed = modules.join(module).with_extension("ko.xz");
        let plain = output(Command::new("xz").arg("-dc").arg(packed))?;
        fs::write(root.join(module.file_name().context("a module has a name")?), plain.stdout)?;
    }
    for (name, text) in PARTS {
        fs::write(root.join(format!("{name}.sh")), text)?;
    }
    let init = root.join("init");
    fs::write(&init, INIT)?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    let archive = folder.join("initramfs");
    let pack = "find . | cpio --quiet -o -H newc";
    let packed = Command::new("sh").args(["-c", pack]).current_dir(&root).stdout(File::create(&archive)?).status()?;
    ensure!(packed.success(), "the initramfs cannot be packed: install cpio");
    Ok(archive)
}

fn found(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let administrators = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(administrators).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// What a program is linked with, by full names.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    // Fails for what is linked with nothing.
    let linked = Command::new("ldd").arg(program).output()?;
    let linked = String::from_utf8(linked.stdout)?;
    Ok(linked.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

/// What came of a guest.
struct Ended {
    /// Line by line.
    said: Vec<String>,
    status: ExitStatus,
    seconds: f64,
}

impl Ended {
    /// Whether it came as far as its tests.
    fn has_begun(&self) -> bool {
        self.said.iter().any(|line| line.starts_with("guest: "))
    }

    /// In a line: how the emulator ended, and the last that tests and kernel said.
    fn how(&self, console: &Path) -> String {
        let how = match self.status.code() {
            Some(124) => "ended by us".to_owned(),
            _ => self.status.to_string(),
        };
        let said = self.said.last().map_or("nothing", String::as_str);
        let console = text(console);
        let is_bad = |line: &&str| ["Kernel panic", "BUG:", "Oops"].iter().any(|word| line.contains(word));
        let kernel = console.lines().find(is_bad).or_else(|| console.lines().last()).unwrap_or("nothing");
        format!("{how} after {:.0} s; the last it said: {said}; its kernel: {}", self.seconds, kernel.trim())
    }
}

/// What a file has; nothing is had of one that is not there.
fn text(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Runs the guest to its end. What its kernel says goes to `console`.
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
    let mut said = Vec::new();
    for line in output.split(b'\n') {
        let line = String::from_utf8_lossy(&line?).trim().to_owned();
        if args.verbose {
            println!("{line}");
        }
        said.push(line);
    }
    let status = child.wait()?;
    ensure!(status.code() != Some(127), "{EMULATOR} is not here: install qemu-system-x86");
    Ok(Ended { said, status, seconds: began.elapsed().as_secs_f64() })
}
