//! `iosched top`: the clients of a served disk with their
//! shares and waits, or the load of the kernel's disks.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueHint};

use crate::options::seconds_in;
use iosched_attributes::load;
use iosched_terminal::output;

/// Show the load of disks and its sources: rates, waits and shares
///
/// For a served disk, top shows its clients with their shares and waits. Otherwise it shows the disks of the kernel, as
/// iostat does, with their schedulers, and the processes that wait or write. Rates and waits are for the last interval.
///
/// If processes write through the page cache, a kworker sends their data to the disk. `iosched top` shows these
/// processes, but not their disk, because the kernel counts such writes only by process. If you are root, top shows the
/// processes of all users.
///
/// On a terminal, top redraws the table at every interval. With keys, you sort and filter the
/// table, and set the priorities of clients. Without a terminal, top prints one table after
/// another.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Disk to show: sda, /dev/sda, live:NAME, the directory of a mounted disk, or a control socket [default: all disks
    /// of the kernel]
    #[arg(value_name = "DISK", conflicts_with = "at", value_hint = ValueHint::AnyPath)]
    disk: Option<PathBuf>,

    /// Same as the argument DISK
    #[arg(long, value_name = "DIR|DISK", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Time between two tables
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds_in(0.1..=3600.0))]
    interval: f64,

    /// Number of tables to print [default: until q or Ctrl-C]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// Print one table, after one interval
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// Print one line of JSON per table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  iosched top
  iosched top sda --interval 1
  iosched top live:db
  iosched top live:db --once --json

Keys: q quit, s sort by the next column, r reverse, / filter, p pause, Up and
Down select, Enter details, i set a client's ioprio, w set its weight";

pub(crate) fn run(args: &TopArgs) -> Result<()> {
    let at = args.disk.as_deref().or(args.at.as_deref());
    let mut source = load::open(at)?;
    let interval = Duration::from_secs_f64(args.interval);
    let count = if args.once { Some(1) } else { args.count };
    if !args.json && count.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        #[cfg(feature = "screen")]
        return iosched_terminal::show::screen::show(source.as_mut(), interval);
        #[cfg(not(feature = "screen"))]
        output::say!(
            "this build of iosched cannot draw a screen, so it prints tables; to stop, press Ctrl-C. For a screen, \
             build iosched with --features full"
        );
    }
    for _ in 0..count.unwrap_or(u32::MAX) {
        std::thread::sleep(interval);
        let mut sample = source.sample()?;
        sample.sort(sample.sorted_by, sample.is_descending(sample.sorted_by));
        output::print(&if args.json { format!("{}\n", sample.json()) } else { sample.text() })?;
    }
    Ok(())
}
