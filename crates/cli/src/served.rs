//! What `serve`, `mount` and `ublk` have in common: a disk that is served until it is told to stop.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use iosched_live::backend::Spec;
use iosched_live::reactor::{Ended, Options, Recorded, Served};
use iosched_live::{Handle, OwnedListener};
use iosched_sim::SchedulerSetting;

use crate::fail::usage;
use crate::output::say;

/// Ended at once by a second signal: as a shell says of a program that SIGTERM ended.
const TERMINATED: i32 = 143;

/// Which disk is served, and how.
#[derive(Args, Debug)]
pub(crate) struct DiskArgs {
    /// What the data is on: a file or block device, memory:SIZE, or model:PROFILE[,size=SIZE] for a modelled disk in real time
    /// (see `iosched device list`); fault:PLAN:BACKING fails on purpose
    #[arg(value_name = "BACKING")]
    backing: Spec,

    /// What the disk is called [default: after the file or profile]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The elevator, with tunables and attributes: cfq or cfq:slice_idle=0,nr_requests=64
    #[arg(short, long, value_name = "SETTING", default_value = "cfq")]
    scheduler: SchedulerSetting,

    /// Commands that the backing is given at once; what is beyond waits in the elevator [default: 32, of models their own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,

    /// Memory for clients' data on its way, in MiB; each client has 64 KiB in any case
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    budget_mib: u32,

    /// Write a block trace of all that happens, which blkparse and iosched read; as BASE.blktrace.0 blkparse finds it by BASE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,

    /// Tell metrics of the disk and its clients at http://ADDRESS:PORT/metrics, to Prometheus and whoever else asks
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,

    /// What a modelled disk leaves to chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl DiskArgs {
    /// What the disk is called.
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.backing.default_name())
    }

    /// Whether it can be called that.
    pub(crate) fn check_name(&self) -> Result<()> {
        let name = self.name();
        if name.is_empty() || name.contains('/') {
            return Err(usage(format!("{name:?} is no name for a disk: say --name NAME, without a slash")));
        }
        Ok(())
    }

    /// Begins to serve it.
    pub(crate) fn start(&self, nbd: Option<iosched_live::reactor::nbd::Config>) -> Result<Served> {
        self.check_name()?;
        let options = Options {
            name: self.name(),
            backend: self.backing.clone(),
            scheduler: self.scheduler.name.clone(),
            depth: self.depth,
            budget_bytes: u64::from(self.budget_mib) << 20,
            seed: self.seed,
            record: self.record.clone(),
        };
        let served = iosched_live::reactor::start(&options, nbd)?;
        let setting = self.scheduler.clone();
        served.handle.control(move |disk, now| {
            for (name, value) in &setting.attributes {
                disk.set_attribute(now, name, value)?;
            }
            for (name, value) in &setting.tunables {
                disk.set_tunable(now, name, value)?;
            }
            Ok::<(), iosched::TunableError>(())
        })??;
        if let Some(address) = &self.metrics {
            say!("metrics: http://{}/metrics", iosched_live::metrics::serve(&served.handle, address)?);
        }
        Ok(served)
    }
}

/// From now on SIGTERM, SIGINT and SIGHUP let the disk finish what it has and flush; the next one ends everything at once.
pub(crate) fn stop_on_signal(handle: &Handle) -> Result<()> {
    let handle = handle.clone();
    let stopping = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if stopping.swap(true, Ordering::SeqCst) {
            std::process::exit(TERMINATED);
        }
        say!("\nfinishing and flushing; a second signal ends at once");
        handle.stop();
    })?;
    Ok(())
}

/// Waits until the disk has ended, and says what did not go well.
pub(crate) fn wait(served: Served) -> Result<()> {
    let Ended { flushed, recorded } = served.wait();
    if let Some(Recorded { lost, result }) = recorded {
        if lost > 0 {
            say!("warning: {lost} events are not in the trace: its file was too slow for them");
        }
        result.context("the trace ends early")?;
    }
    flushed.context("the last flush failed: what was written since the last good one may not be on the backing")
}

/// Serves what is under way, flushes, and ends.
pub(crate) fn end(served: Served) -> Result<()> {
    served.handle.stop();
    wait(served)
}

/// A disk for people: what it is on, its size and its elevator.
pub(crate) fn about(served: &Served) -> Result<String> {
    let scheduler = served.handle.control(|disk, _| disk.queue().scheduler())?;
    Ok(format!("{}, {}, {scheduler}", served.about, size(served.handle.capacity_bytes())))
}

/// Listens on a unix socket, and says if a dead server's was there.
pub(crate) fn bind(path: &Path) -> Result<OwnedListener> {
    let listener = OwnedListener::bind(path)?;
    if listener.has_replaced() {
        say!("{}: left by a server that has ended; it is replaced", path.display());
    }
    Ok(listener)
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >= 1 << shift);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, name)| {
            let value = bytes as f64 / (1_u64 << shift) as f64;
            if value.fract() == 0.0 { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
        },
    )
}
