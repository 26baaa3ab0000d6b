//! `iosched serve`: serves a disk to NBD clients through a scheduler.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use iosched_live::control::Forest;
use iosched_live::nbd::{Exports, ServerConfig, TlsFiles};
use iosched_live::reactor::nbd::{Config, Limits, Listener};
use iosched_live::{Handle, OwnedListener};

use crate::exports::{ExportArgs, changes, describe};
use crate::options::whole_seconds;
use crate::served::{DiskArgs, about, address, bind, bind_control, by_options, check_sockets, wait, warn_if_ignored};
use iosched_terminal::ending::Ending;
use iosched_terminal::fail::usage;
use iosched_terminal::output::say;

/// Serve a disk to NBD clients, through a scheduler
///
/// To the scheduler, each client is a process with a priority. An export is a named share of the
/// disk. Declare exports with --export or in a file. The clients of one export form a group, and
/// groups share the disk by weight. If exports have a class or level but no weight, the scheduler
/// orders all clients by class and level instead. If you declare no export, the disk has one
/// export, with the name of the disk. Clients can also use the empty name for this export.
///
/// On SIGTERM or Ctrl-C, the server finishes the requests of its clients, flushes and ends. A
/// second signal ends the server at once. In both cases, clients lose no data that they flushed. On
/// SIGHUP, the server reads the file of --exports again. Without --exports, SIGHUP is the same as
/// SIGTERM.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    disk: DiskArgs,

    /// Unix socket to listen on; only its owner can use it [default: NAME.sock in the current directory]
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    unix: Option<PathBuf>,

    /// Network address to listen on; the usual port is 10809; needs --tls or --insecure
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    tcp: Option<String>,

    #[command(flatten)]
    exports: ExportArgs,

    /// Directory with certificates for TLS: server-cert.pem and server-key.pem, and ca-cert.pem to require certificates
    /// from clients
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    tls: Option<PathBuf>,

    /// Unix socket for `iosched ls`, `get`, `set` and `top`: a path, or a name such as live:db; only its owner can use
    /// it
    ///
    /// A named socket is in /run/iosched; for users other than root, it is in $XDG_RUNTIME_DIR/iosched.
    #[arg(long, value_name = "SOCKET|live:NAME", value_hint = ValueHint::FilePath)]
    control: Option<PathBuf>,

    /// Allow connections without TLS, also over the network: everyone who reaches the port can use the disk
    #[arg(long)]
    insecure: bool,

    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,

    /// Time allowed for a client's handshake
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = whole_seconds)]
    handshake_timeout: u16,

    /// Time after which the server disconnects a stalled client
    ///
    /// A client is stalled if it has an incomplete request or reply, and transfers less than 64 KiB of it in this time.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = whole_seconds)]
    stall_timeout: u16,
}

const EXAMPLES: &str = "Examples:
  iosched serve disk.img --unix disk.sock
      then: nbd-client -unix disk.sock /dev/nbd0,
      or --uri 'nbd+unix:///?socket=disk.sock'
  iosched serve disk.img --export db,class=be,level=0,weight=800 \\
      --export backup,class=idle
      a database and a backup, which gets the remaining capacity
  iosched serve model:sata-2005,size=1G --scheduler deadline
      a disk of 2005, with its data in memory
  iosched serve disk.img --control live:db
      then: iosched set live:db scheduler=deadline
  iosched serve /dev/sdb --tcp 0.0.0.0:10809 --tls /etc/iosched/tls";

pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode> {
    let (ending, hangups) = match args.exports.file() {
        Some(_) => Ending::on_signal_but_hangup().map(|(ending, hangups)| (ending, Some(hangups)))?,
        None => (Ending::on_signal()?, None),
    };
    args.disk.check_name()?;
    let exports = args.exports.load(&args.disk.name())?;
    let tls = args.tls.as_deref().map(load_tls).transpose()?;
    if args.tcp.is_some() && tls.is_none() && !args.insecure {
        return Err(usage(
            "--tcp needs --tls DIR or --insecure; with --insecure, everybody who can reach the port can use the disk",
        ));
    }
    let sockets = args.unix.iter().map(|path| ("--unix", path));
    check_sockets(sockets.chain(args.control.iter().map(|path| ("--control", path))))?;
    // Opens the disk first, so that an error occurs before other programs can see any effect.
    let shares = exports.shares();
    let chosen = args.disk.choose(shares)?;
    let disk = args.disk.open(&chosen, args.exports.file())?;
    ending.starts();
    let Doors { listeners, places, socket } = doors(args)?;
    let limits = Limits {
        connections: args.max_connections.into(),
        handshake_ns: u64::from(args.handshake_timeout) * iosched::SECOND_NS,
        stall_timeout_ns: u64::from(args.stall_timeout) * iosched::SECOND_NS,
    };
    let plain = tls.is_none() || args.insecure;
    let declared = exports.clone();
    let names: Vec<String> = exports.as_slice().iter().map(describe).collect();
    let control = args.control.as_deref().map(bind_control).transpose()?;
    let served = disk.serve(Some(Config { listeners, exports, tls, plain, limits }))?;
    let about = about(&served, &chosen);
    warn_if_ignored(&served.handle, &declared, chosen.kept, by_options);
    if let Some(hangups) = hangups {
        reread_exports(args, declared, served.handle.clone(), hangups)?;
    }
    let control = control.map(|listener| Forest::new(vec![served.handle.clone()]).serve(listener)).transpose()?;
    ending.stops(&served);
    say!("{}: {}", served.handle.name(), about);
    for name in names {
        say!("export {name}");
    }
    for place in places {
        say!("{place}");
    }
    if let Some(path) = &args.control {
        say!("control: iosched ls {}", path.display());
    }
    // Without systemd, no process receives this notification.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let ended = wait(served);
    drop((socket, control));
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the exports again at each SIGHUP. If this fails, prints a warning and keeps the exports.
fn reread_exports(args: &ServeArgs, mut declared: Exports, disk: Handle, hangups: mpsc::Receiver<()>) -> Result<()> {
    let (files, name) = (args.exports.clone(), args.disk.name());
    let reread = move || {
        while hangups.recv().is_ok() {
            let exports = match files.load(&name) {
                Ok(exports) => exports,
                Err(error) => {
                    say!("warning: {error}; the server keeps the present exports");
                    continue;
                }
            };
            if disk.set_exports(exports.clone()).is_err() {
                return;
            }
            if exports.shares() != declared.shares() {
                warn_if_ignored(&disk, &exports, None, |shares| format!("set {}", shares.written()));
            }
            let changes = changes(&declared, &exports);
            changes.iter().for_each(|change| say!("export {change}"));
            say!("iosched read the exports again; changes: {}", changes.len());
            declared = exports;
        }
    };
    thread::Builder::new().name("exports".to_owned()).spawn(reread).context("cannot start a thread for exports")?;
    Ok(())
}

fn load_tls(folder: &Path) -> Result<Arc<ServerConfig>> {
    let files = TlsFiles::in_directory(folder);
    let loaded = files.load().map_err(usage)?;
    for warning in files.warnings() {
        say!("warning: {warning}");
    }
    Ok(loaded)
}

/// The sockets for clients, and texts that describe their addresses.
struct Doors {
    listeners: Vec<Listener>,
    places: Vec<String>,
    /// The socket whose file is removed at the end.
    socket: Option<OwnedListener>,
}

fn of_systemd() -> Result<Vec<Listener>> {
    Listener::from_systemd()
        .map_err(|error| usage(format!("LISTEN_FDS: {error}: an inherited socket is not a listening socket")))
}

fn doors(args: &ServeArgs) -> Result<Doors> {
    let mut doors = Doors { listeners: of_systemd()?, places: Vec::new(), socket: None };
    if !doors.listeners.is_empty() {
        let count = doors.listeners.len();
        doors.places.push(if count == 1 {
            "a socket from systemd".to_owned()
        } else {
            format!("{count} sockets from systemd")
        });
    }
    if let Some(address) = &args.tcp {
        let listener = TcpListener::bind(address).map_err(|error| usage(format!("--tcp {address}: {error}")))?;
        doors.places.push(format!("nbd://{}", listener.local_addr()?));
        doors.listeners.push(Listener::Tcp(listener));
    }
    let default = doors.listeners.is_empty().then(|| PathBuf::from(format!("{}.sock", args.disk.name())));
    if let Some(path) = args.unix.clone().or(default) {
        let socket = bind(&path)?;
        doors.places.push(format!("nbd+unix:///?socket={}", path.display()));
        doors.listeners.push(Listener::Unix(socket.listener().try_clone()?));
        doors.socket = Some(socket);
    }
    Ok(doors)
}
