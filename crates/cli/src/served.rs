//! Common parts of `serve`, `mount`, `ublk` and `vhost`:
//! a disk that is served until a signal arrives.

use std::path::{Path, PathBuf, absolute};

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum, ValueHint};
use iosched::{Registry, Setting};
use iosched_live::backend::Spec;
use iosched_live::disk::attribute_spec;
use iosched_live::metrics::Listening;
use iosched_live::nbd::Exports;
use iosched_live::reactor::{Ended, Recorded, Recording, ServeOptions, Served, nbd};
use iosched_live::{Handle, OwnedListener, Shares, is_printable, reactor};

use iosched_lab::request::SettingTarget;

use crate::backing;
use iosched_attributes::socket_to_make;
use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, Outputs, Replacing, say};
use iosched_terminal::show::size;

/// Which disk is served, and how.
#[derive(Args, Debug)]
pub(crate) struct DiskArgs {
    /// Storage for the data: a file, a block device, memory:SIZE or model:PROFILE[,size=SIZE]
    ///
    /// model:PROFILE is a modelled disk that takes as long as the real disk; `iosched device list`
    /// lists the profiles. fault:PLAN:BACKING makes requests fail on purpose, for tests.
    #[arg(value_name = "BACKING")]
    backing: Spec,

    /// Name of the disk [default: from the file or profile]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Scheduler with tunables and queue attributes, such as cfq or cfq:slice_idle=0,nr_requests=64 [default: cfq]
    ///
    /// If exports declare weights, the default is the setting that "--for shared" chooses. If exports declare
    /// reservations or limits, the default is mclock.
    #[arg(short, long, value_name = "SETTING")]
    scheduler: Option<String>,

    /// Let iosched choose the scheduler for this use of the disk; without --depth, iosched also chooses the depth
    #[arg(long = "for", value_name = "PURPOSE", conflicts_with = "scheduler")]
    purpose: Option<Purpose>,

    /// Maximum number of requests in flight on the backing; other requests wait in the scheduler
    /// [default: 32, or the model's queue depth]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,

    /// Memory for data in transit to and from clients, in MiB; each client can always use 64 KiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    budget_mib: u32,

    /// Write a block trace of all events to this file, for blkparse and iosched
    ///
    /// To read the file with `blkparse -i BASE`, give the file the name BASE.blktrace.0.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,

    /// Write all inputs and decisions of the request queue to this file, for `iosched validate recording`
    ///
    /// Each request takes about 200 bytes. If writing to the file is slow, the served disk becomes slow too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record_driver: Option<PathBuf>,

    /// Let --record and --record-driver replace existing files
    #[arg(long)]
    overwrite: bool,

    /// Serve Prometheus metrics of the disk and its clients at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    metrics: Option<String>,

    /// Seed of the random numbers of a modelled disk
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Serve the backing even if another program uses it; if both programs write, they destroy the
    /// data
    #[arg(long)]
    force: bool,
}

/// Purposes of a disk that decide how it is best served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Purpose {
    /// For several tenants, or for clients that always have requests waiting. Same as --scheduler cfq:slice_idle=0
    /// --depth 8
    Shared,
}

impl Purpose {
    fn scheduler(self) -> &'static str {
        match self {
            Self::Shared => "cfq:slice_idle=0",
        }
    }

    fn depth(self) -> u32 {
        match self {
            Self::Shared => 8,
        }
    }
}

/// The scheduler and depth of a disk.
pub(crate) struct Chosen {
    setting: Setting,
    depth: Option<u32>,
    shows_depth: bool,
    /// The declared shares for which iosched chose the setting.
    pub(crate) kept: Option<Shares>,
}

/// A disk that is ready to be served. All checks have passed, and nothing has changed yet.
pub(crate) struct Opened {
    disk: reactor::Opened,
    metrics: Option<Listening>,
}

impl DiskArgs {
    /// Returns the name of the disk.
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.backing.default_name())
    }

    /// Checks that the name is valid.
    pub(crate) fn check_name(&self) -> Result<()> {
        let name = self.name();
        if name.is_empty() || name.contains('/') || !name.chars().all(is_printable) {
            return Err(usage(format!(
                "{name:?} cannot be the name of a disk; choose another name with --name NAME, without slashes \
                 and control characters"
            )));
        }
        Ok(())
    }

    /// Returns the scheduler and the depth from the options. By default, they enforce the declared
    /// shares.
    pub(crate) fn choose(&self, declared: Option<Shares>) -> Result<Chosen> {
        let kept = declared.filter(|&shares| shares != Shares::Priorities && self.scheduler.is_none());
        let purpose = self.purpose.or(kept.filter(|&shares| shares == Shares::Weights).map(|_| Purpose::Shared));
        let setting = match (purpose, &self.scheduler) {
            (Some(purpose), _) => purpose.scheduler().parse()?,
            (None, Some(text)) => SettingTarget::Served(&Registry::linux(), attribute_spec)
                .parse(text)
                .map_err(|problem| usage(format!("--scheduler {text}: {problem}")))?,
            (None, None) if kept == Some(Shares::Rates) => Setting::defaults("mclock"),
            (None, None) => Setting::defaults("cfq"),
        };
        let kept = kept.filter(|_| self.purpose.is_none());
        Ok(Chosen { setting, depth: self.depth.or(purpose.map(Purpose::depth)), shows_depth: purpose.is_some(), kept })
    }

    /// Prepares the disk for serving. `exports` is a file that the command also reads.
    pub(crate) fn open(&self, chosen: &Chosen, exports: Option<&Path>) -> Result<Opened> {
        self.check_name()?;
        backing::check(&self.backing, self.force)?;
        let outputs = Outputs::new(Replacing { is_allowed: self.overwrite, option: "--overwrite" });
        let mut outputs = outputs.reads_all(self.backing.path().into_iter().chain(exports));
        let mut written =
            |option, path: &Option<PathBuf>| path.as_ref().map(|path| outputs.streamed(option, path)).transpose();
        let record = written("--record", &self.record)?;
        let recording = written("--record-driver", &self.record_driver)?;
        let options = ServeOptions {
            name: self.name(),
            backend: self.backing.clone(),
            shared: self.force,
            setting: chosen.setting.clone(),
            registry: Registry::linux(),
            depth: chosen.depth,
            budget_bytes: u64::from(self.budget_mib) << 20,
            seed: self.seed,
            record,
            recording: recording.map(Recording::File),
            replace: self.overwrite,
            messages: output::messages().clone(),
        };
        let disk = reactor::open(&options)?;
        let metrics = self.metrics.as_deref().map(Listening::at).transpose();
        let metrics = metrics.map_err(|error| usage(format!("--metrics {error}")))?;
        Ok(Opened { disk, metrics })
    }
}

impl Opened {
    /// Starts serving the disk.
    pub(crate) fn serve(self, nbd: Option<nbd::Config>) -> Result<Served> {
        let served = self.disk.serve(nbd)?;
        if let Some(metrics) = self.metrics {
            say!("metrics: http://{}/metrics", metrics.serve(&served.handle)?);
        }
        Ok(served)
    }
}

/// Waits until the disk ends, and reports errors.
pub(crate) fn wait(served: Served) -> Result<()> {
    let Ended { flushed, recorded, driver_recorded, gone } = served.wait();
    if let Some(path) = gone {
        let path = path.display();
        say!(
            "warning: {path}: another program deleted or replaced this file while iosched served it; the file that \
             now has this name does not contain the written data"
        );
    }
    let trace = recorded.map_or(Ok(()), |Recorded { lost, result }| {
        if lost > 0 {
            say!("warning: the trace lacks {lost} events, because iosched could not write the file fast enough");
        }
        result.map_err(|error| anyhow!("the trace ends early: {error}"))
    });
    let recording = driver_recorded.map_or(Ok(()), |Recorded { result, .. }| {
        result.map_err(|error| anyhow!("the recording of the queue ends early: {error}"))
    });
    let trace = trace.and(recording);
    let Err(errno) = flushed else { return trace };
    if let Err(error) = trace {
        say!("error: {error}");
    }
    Err(anyhow!(
        "the last flush failed: {errno}; data written since the last successful flush may not be on the backing"
    ))
}

/// Stops the disk. Requests in flight complete, and the disk is flushed.
pub(crate) fn end(served: Served) -> Result<()> {
    served.handle.stop();
    wait(served)
}

/// Condition under which weights have an effect. On a fast backing, few requests wait. CFQ
/// therefore idles until the next request of an export comes, but at most for the time in this
/// text.
const WITHIN: &str = "if each client sends its next request within 8 ms";

/// Describes a disk: its backing, size and scheduler. If iosched chose the scheduler, also gives
/// the reason.
pub(crate) fn about(served: &Served, chosen: &Chosen) -> String {
    let Chosen { setting, depth, shows_depth, kept } = chosen;
    let depth = depth.filter(|_| *shows_depth).map(|depth| format!(", depth {depth}")).unwrap_or_default();
    let why = match kept {
        // Async writes of all clients share few queues, so weights have little effect on them.
        Some(Shares::Weights) => {
            format!(
                " (this scheduler applies the declared weights {WITHIN}; to apply the weights to async writes too, \
                 declare sync=all)"
            )
        }
        Some(shares) => format!(" (this scheduler applies the declared {})", shares.declared()),
        None => String::new(),
    };
    format!("{}, {}, {setting}{depth}{why}", served.about, size(served.handle.capacity_bytes()))
}

/// Warns if the scheduler of a disk ignores the declared shares, or applies weights only to reads.
/// `remedy` describes how to apply the shares. `kept` contains the shares for which iosched chose
/// the scheduler.
pub(crate) fn warn_if_ignored(
    disk: &Handle,
    exports: &Exports,
    kept: Option<Shares>,
    remedy: impl Fn(Shares) -> String,
) {
    let Some(shares) = exports.shares() else { return };
    // If the disk has ended, there is nothing to warn about.
    let looked = disk.control(move |disk, _| (disk.ignores(shares), disk.queue().scheduler()));
    let Ok((is_ignored, scheduler)) = looked else { return };
    if is_ignored {
        say!("warning: {scheduler} ignores the declared {}; {} to apply them", shares.declared(), remedy(shares));
    } else if shares == Shares::Weights && kept.is_none() && exports.has_async_writes() {
        say!(
            "warning: for writes, {scheduler} applies the declared weights only approximately; to apply them exactly, \
             declare sync=all for each export"
        );
    }
}

/// Describes the options that apply the shares.
pub(crate) fn by_options(shares: Shares) -> String {
    format!("use {}", shares.options())
}

/// Listens on a Unix socket. Prints a message if it replaces the socket of a server that has ended.
pub(crate) fn bind(path: &Path) -> Result<OwnedListener> {
    let listener = OwnedListener::bind(path)?;
    if listener.has_replaced() {
        say!("{}: iosched replaced this socket, because its server has ended", path.display());
    }
    Ok(listener)
}

/// Checks that all sockets are different. `named` contains each option and its path. No socket
/// exists yet.
pub(crate) fn check_sockets<'a>(named: impl IntoIterator<Item = (&'a str, &'a PathBuf)>) -> Result<()> {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in named {
        let place = absolute(path).unwrap_or_else(|_| path.clone());
        if let Some((other, _)) = known.iter().find(|(_, known_place)| *known_place == place) {
            let twice = if *other == option {
                format!("{option} names this socket twice")
            } else {
                format!("both {other} and {option} name this socket")
            };
            return Err(usage(format!("{}: {twice}; use a different socket for each", path.display())));
        }
        known.push((option, place));
    }
    Ok(())
}

/// Checks that an address to listen on has a port.
pub(crate) fn address(text: &str) -> std::result::Result<String, String> {
    let port = |text: &str| text.parse::<u16>().ok();
    if text.rsplit_once(':').is_some_and(|(host, digits)| !host.is_empty() && port(digits).is_some()) {
        return Ok(text.to_owned());
    }
    let example = port(text.trim_start_matches(':')).map_or_else(|| "PORT".to_owned(), |port| port.to_string());
    Err(format!("write ADDRESS:PORT, for example 127.0.0.1:{example}"))
}

/// Listens on a control socket, which is a path or `live:NAME`.
pub(crate) fn bind_control(given: &Path) -> Result<OwnedListener> {
    bind(&socket_to_make(given)?)
}
