//! `iosched vhost`: a served disk as disks of virtual machines.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_live::control::Forest;
use iosched_live::nbd::{Export, Exports};
use iosched_live::reactor::Served;
use iosched_live::reactor::nbd::{Config, Limits, Listener};
use iosched_live::vhost::{self, Door};

use crate::exports::{ExportArgs, describe};
use crate::served::{Chosen, DiskArgs, about, bind, bind_control, by_options, check_sockets, wait, warn_if_ignored};
use iosched_terminal::ending::Ending;
use iosched_terminal::output::{self, say};

/// Serve a disk to virtual machines, through a scheduler
///
/// QEMU, libvirt, cloud-hypervisor and others connect to the socket with vhost-user-blk. The guest
/// sees a virtio disk, and shares the memory of its queues with the server. The first --socket
/// belongs to the first --export, and so on. To the scheduler, a socket is one client with the
/// class, level and weight of its export. Give each machine a separate socket.
///
/// If the server restarts or is killed, a machine with the option reconnect=1 waits and loses no request. Machines
/// cannot be migrated.
///
/// On SIGTERM or Ctrl-C, the server finishes the requests of the machines, flushes and ends. A
/// second signal ends the server at once.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VhostArgs {
    #[command(flatten)]
    disk: DiskArgs,

    /// Unix socket to listen on; only its owner can use it. Repeat the option for several sockets; each socket serves
    /// one export
    #[arg(long = "socket", value_name = "SOCKET", required = true, value_hint = ValueHint::FilePath)]
    sockets: Vec<PathBuf>,

    #[command(flatten)]
    exports: ExportArgs,

    /// Unix socket to serve the exports to NBD clients as well; only its owner can use it
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    nbd: Option<PathBuf>,

    /// Unix socket for `iosched ls`, `get`, `set` and `top`: a path, or a name such as live:db; only its owner can use
    /// it
    ///
    /// A named socket is in /run/iosched; for users other than root, it is in $XDG_RUNTIME_DIR/iosched.
    #[arg(long, value_name = "SOCKET|live:NAME", value_hint = ValueHint::FilePath)]
    control: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  iosched vhost disk.img --socket vm1.sock --export vm1,weight=200 \\
      --socket vm2.sock --export vm2,weight=100
      two machines share a disk, and the first gets two thirds; QEMU options for the first:
      -object memory-backend-memfd,id=m,size=1G,share=on -numa node,memdev=m
      -chardev socket,id=d,path=vm1.sock,reconnect=1
      -device vhost-user-blk-pci,chardev=d
  iosched vhost /dev/sdb --socket vm.sock --nbd backup.sock --control live:vm
      then: iosched top live:vm";

pub(crate) fn run(args: &VhostArgs) -> Result<ExitCode> {
    let ending = Ending::on_signal()?;
    args.disk.check_name()?;
    vhost::check()?;
    let (exports, each) = args.exports.load_each(&args.disk.name(), args.sockets.len())?;
    let sockets = args.sockets.iter().map(|path| ("--socket", path));
    let sockets = sockets.chain(args.nbd.iter().map(|path| ("--nbd", path)));
    check_sockets(sockets.chain(args.control.iter().map(|path| ("--control", path))))?;
    let chosen = args.disk.choose(exports.shares())?;
    let disk = args.disk.open(&chosen, args.exports.file())?;
    ending.starts();
    let listeners = args.sockets.iter().map(|path| bind(path)).collect::<Result<Vec<_>>>()?;
    let doors = listeners.into_iter().zip(&each).map(|(listener, export)| Door { listener, export: export.clone() });
    let doors = doors.collect();
    let nbd = args.nbd.as_deref().map(bind).transpose()?;
    let listener = nbd.as_ref().map(|socket| socket.listener().try_clone()).transpose()?;
    let config = listener.map(|listener| with_nbd(listener, &exports));
    let control = args.control.as_deref().map(bind_control).transpose()?;
    let served = disk.serve(config)?;
    let control = control.map(|listener| Forest::new(vec![served.handle.clone()]).serve(listener)).transpose()?;
    let sockets = vhost::serve(&served.handle, &exports, doors)?;
    warn_if_ignored(&served.handle, &exports, chosen.kept, by_options);
    ending.stops(&served);
    sockets.warnings().iter().for_each(|warning| say!("warning: {warning}"));
    announce(&served, &chosen, args, &each);
    // Without systemd, no process receives this notification.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let ended = wait(served);
    drop((sockets, nbd, control));
    ended?;
    Ok(ExitCode::SUCCESS)
}

fn with_nbd(listener: std::os::unix::net::UnixListener, exports: &Exports) -> Config {
    Config {
        listeners: vec![Listener::Unix(listener)],
        exports: exports.clone(),
        tls: None,
        plain: true,
        limits: Limits::default(),
    }
}

fn announce(served: &Served, chosen: &Chosen, args: &VhostArgs, each: &[Export]) {
    say!("{}: {}", served.handle.name(), about(served, chosen));
    let nbd = args.nbd.as_deref().map(Path::display);
    nbd.iter().for_each(|path| say!("nbd+unix:///?socket={path}"));
    if let Some(path) = &args.control {
        say!("control: iosched ls {}", path.display());
    }
    let lines = args.sockets.iter().zip(each);
    let lines = lines.map(|(socket, export)| format!("{}: {}\n", socket.display(), describe(export)));
    output::announce(&lines.collect::<String>());
}
