//! `cargo xtask machines`: two virtual machines share one disk of `iosched vhost`. Each machine
//! writes and verifies files in its own partition in a loop. At the same time, the test switches
//! elevators, kills and restarts the server, and kills one of the machines.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{iter, thread};

use anyhow::{Context, Result, bail, ensure};

use crate::guest::linux::{self, Contents, EMULATOR, KERNEL_ARGUMENTS};

const INIT: &str = include_str!("guest/machine.sh");
const PROGRAMS: [(&str, &str); 4] =
    [("busybox", "busybox-static"), ("fio", "fio"), ("mke2fs", "e2fsprogs"), ("e2fsck", "e2fsprogs")];
const MODULES: [&str; 1] = ["kernel/drivers/block/virtio_blk.ko"];
/// Size of the disk, bytes, and starts of its two partitions, sectors.
const DISK_BYTES: u64 = 65 << 20;
const PARTS: [u32; 2] = [1 << 11, 33 << 11];
const PART_SECTORS: u32 = 32 << 11;
const ELEVATORS: [&str; 5] = ["cfq", "deadline", "bfq", "noop", "mq-deadline"];
/// Number of kills of the server.
const KILLS: usize = 3;
/// Largest number of boots of a machine that does not report its start.
const BOOTS: usize = 3;
/// Longest wait for any message.
const PATIENCE: Duration = Duration::from_secs(200);

/// Run two virtual machines on one disk of `iosched vhost`, and kill the server and one of the machines
///
/// Needs the packages qemu-system-x86, busybox-static, cpio, xz-utils, fio and e2fsprogs. apt-get fetches the package
/// of the kernel, which stays in target/guest.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show all output of the machines
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let began = Instant::now();
    let program = command()?;
    let target = program.parent().and_then(Path::parent).context("the target directory")?;
    let folder = linux::folder(target)?;
    let kernel = linux::kernel(&folder, linux::SERIES[0])?;
    let contents = Contents { programs: &PROGRAMS, iosched: None, modules: &MODULES, init: INIT, parts: &[] };
    let initramfs = contents.pack(&folder, "machine", &kernel)?;
    let here = folder.join("machines");
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(&here)?;
    let host = Host { program, here, image: linux::image(&kernel)?, initramfs, verbose: args.verbose };
    fs::write(host.here.join("disk.img"), partitioned())?;
    File::options().write(true).open(host.here.join("disk.img"))?.set_len(DISK_BYTES)?;
    let (ends, changes) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut elevators = ELEVATORS.iter().cycle();
            while !ends.load(Ordering::Relaxed) {
                // The server may not be running at this moment.
                changes.fetch_add(host.switch(elevators.next()).into(), Ordering::Relaxed);
            }
        });
        let done = live(&host, &changes);
        ends.store(true, Ordering::Relaxed);
        done
    })
    .with_context(|| format!("what was said is in {}", host.here.display()))?;
    let (changes, seconds) = (changes.into_inner(), began.elapsed().as_secs());
    println!("machines: passed in {seconds} s, with {changes} changes of the scheduler");
    Ok(ExitCode::SUCCESS)
}

/// Controls the machines. A machine sends the messages that this test waits for only if it found no
/// error.
fn live(host: &Host, changes: &AtomicU32) -> Result<()> {
    let mut server = host.serve()?;
    let boot = |name, part, again| Machine::boot(host, name, part, again);
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| boot("first", 1, false));
        (boot("second", 2, false), first.join())
    });
    let (mut second, mut first) = (first?, second.map_err(|_| anyhow::anyhow!("a thread has panicked"))??);
    for machine in [&mut first, &mut second] {
        machine.hear("kept")?;
        machine.hear("verified")?;
    }
    let under_load = changes.load(Ordering::Relaxed);
    ensure!(under_load > 0, "the scheduler was never changed");
    println!("passed: two machines verify their files on one disk");
    for _ in 0..KILLS {
        server.0.kill()?;
        server.0.wait()?;
        server = host.serve()?;
        // The first message can belong to a round that began before this point. The second message
        // proves that a whole round has run since then.
        for machine in [&mut first, &mut second] {
            machine.hear("verified")?;
            machine.hear("verified")?;
        }
    }
    println!("passed: the server was killed and restarted {KILLS} times, and no data was lost");
    drop(first);
    (0..2).try_for_each(|_| second.hear("verified"))?;
    println!("passed: one machine was killed, and the other machine continues");
    let mut first = boot("first", 1, true)?;
    first.hear("kept")?;
    first.hear("verified")?;
    println!("passed: the killed machine starts again with its stored files");
    first.end()?;
    second.end()?;
    println!("passed: the file systems of both machines pass their check");
    Ok(())
}

/// Builds the iosched command with the same features as the workspace's tests, so that no further
/// build is needed.
fn command() -> Result<PathBuf> {
    let tests = ["test", "--quiet", "--no-run", "--workspace", "--features", "iosched-cli/full", "--test", "vhost"];
    ensure!(Command::new("cargo").args(tests).status()?.success(), "the command cannot be built");
    let command = std::env::current_exe()?;
    let target = command.parent().and_then(Path::parent).context("the target directory")?;
    Ok(target.join("debug/iosched"))
}

/// Returns the first sector of a disk with two partitions.
fn partitioned() -> Vec<u8> {
    let mut sector = vec![0; 446];
    for first in PARTS {
        // The partition is not bootable, has no geometry, and has the type Linux.
        sector.extend([0, 0, 0, 0, 0x83, 0, 0, 0]);
        sector.extend(first.to_le_bytes());
        sector.extend(PART_SECTORS.to_le_bytes());
    }
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    sector
}

/// A process that is killed on drop.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files for the server and the machines.
struct Host {
    program: PathBuf,
    /// Directory of the disk and the sockets.
    here: PathBuf,
    image: PathBuf,
    initramfs: PathBuf,
    verbose: bool,
}

impl Host {
    /// Starts a server, and waits until it is ready.
    fn serve(&self) -> Result<Ends> {
        let mut command = Command::new(&self.program);
        command.args([
            "vhost",
            "disk.img",
            "--control",
            "control",
            "--socket",
            "first.sock",
            "--export",
            "a,weight=200",
        ]);
        command.args(["--socket", "second.sock", "--export", "b,weight=100"]);
        command.current_dir(&self.here).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.log("server")?);
        let mut child = Ends(command.spawn()?);
        let lines = BufReader::new(child.0.stdout.take().context("its output")?).lines();
        let ready = lines.map_while(Result::ok).any(|line| line.starts_with("second.sock: "));
        ensure!(ready, "the server does not begin");
        Ok(child)
    }

    /// Returns the log file of a program. It contains many messages, because emulators report every
    /// killed server.
    fn log(&self, name: &str) -> Result<File> {
        Ok(File::options().create(true).append(true).open(self.here.join(format!("{name}.log")))?)
    }

    /// Switches the elevator. Returns whether a server was running.
    fn switch(&self, elevator: Option<&&str>) -> bool {
        let scheduler = format!("scheduler={}", elevator.unwrap_or(&"noop"));
        let mut command = Command::new(&self.program);
        command.args(["set", "--at", "control", &scheduler]).current_dir(&self.here);
        let replies = command.stdin(Stdio::null()).output();
        thread::sleep(Duration::from_millis(50));
        replies.is_ok_and(|replies| replies.status.success())
    }
}

/// A virtual machine.
struct Machine {
    name: &'static str,
    orders: ChildStdin,
    replies: Receiver<String>,
    console: PathBuf,
    /// The process of the emulator, which ends on drop.
    _process: Ends,
}

impl Machine {
    /// Boots a machine with its partition of the disk. If `again` is true, the partition already
    /// has a file system.
    fn boot(host: &Host, name: &'static str, part: u32, again: bool) -> Result<Self> {
        let mut failed = None;
        for _ in 0..BOOTS {
            let mut machine = Self::start(host, name, part, again)?;
            match machine.hear("begins") {
                Ok(()) => return Ok(machine),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or_else(|| bail!("{name} was not booted"), Err)
    }

    fn start(host: &Host, name: &'static str, part: u32, again: bool) -> Result<Self> {
        let again = if again { " again=1" } else { "" };
        let console = host.here.join(format!("{name}.console"));
        let mut command = Command::new(EMULATOR);
        // The second machine has two CPUs. Each CPU has its own queue.
        let processors = part.to_string();
        command.args(["-accel", "tcg", "-m", "384", "-nographic", "-no-reboot", "-nodefaults", "-smp", &processors]);
        command.args(["-machine", "memory-backend=ram", "-object", "memory-backend-memfd,id=ram,size=384M,share=on"]);
        command.args(["-chardev", &format!("socket,id=disk,path={name}.sock,reconnect=1")]);
        command.args(["-device", &format!("vhost-user-blk-pci,chardev=disk,num-queues={processors}")]);
        command.args(["-serial", "stdio", "-serial", &format!("file:{}", console.display())]);
        command.args(["-append", &format!("{KERNEL_ARGUMENTS} part={part}{again}")]);
        command.arg("-kernel").arg(&host.image).arg("-initrd").arg(&host.initramfs).current_dir(&host.here);
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(host.log(name)?).spawn();
        let mut process = Ends(process.with_context(|| format!("{EMULATOR} is not here: install qemu-system-x86"))?);
        let orders = process.0.stdin.take().context("its input")?;
        let lines = BufReader::new(process.0.stdout.take().context("its output")?).split(b'\n').map_while(Result::ok);
        let (sender, replies) = mpsc::channel();
        let verbose = host.verbose;
        thread::spawn(move || {
            for line in lines {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if verbose {
                    println!("{name}: {line}");
                }
                // The receiver may no longer exist.
                let _ = sender.send(line);
            }
        });
        Ok(Self { name, orders, replies, console, _process: process })
    }

    /// Waits for a message of the machine. Fails if the machine reports a failure or ends.
    fn hear(&mut self, word: &str) -> Result<()> {
        let mut last = String::new();
        for line in iter::from_fn(|| self.replies.recv_timeout(PATIENCE).ok()) {
            let Some(replies) = line.strip_prefix("machine: ") else { continue };
            ensure!(!replies.starts_with("FAILED"), "{}: {replies}", self.name);
            if replies.starts_with(word) {
                return Ok(());
            }
            last = replies.to_owned();
        }
        let console = fs::read(&self.console).unwrap_or_default();
        let kernel = String::from_utf8_lossy(&console).lines().last().unwrap_or_default().to_owned();
        bail!("{} does not say {word:?}; the last it said: {last:?}; its kernel: {kernel}", self.name)
    }

    /// Makes the machine verify all its files and end.
    fn end(mut self) -> Result<()> {
        self.orders.write_all(b"end\n")?;
        self.hear("whole")
    }
}
