//! All commands. The file of each command declares the arguments of the command. `options` declares
//! shared arguments. Parsing, help, man pages and completions use these declarations.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::invocation::Invocation;
use iosched_terminal::progress::ProgressKind;

/// Choose, tune and run I/O schedulers, with evidence.
///
/// Without a command, iosched runs `iosched compare` without options, as a sample. The sample
/// compares the schedulers of today's Linux (none, mq-deadline, kyber, bfq) and CFQ. The workload
/// is a recorded pgbench run that comes with iosched, and the device is a modelled 7200 rpm SATA
/// disk.
///
/// Exit status: 0 on success; 1 on failure; 2 if the command line, a setting or the format of a file is wrong; 130
/// after Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "iosched", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// How to report progress on standard error
    #[arg(long, global = true, value_enum, value_name = "STYLE", default_value_t, display_order = 900)]
    pub(crate) progress: ProgressKind,
    /// Print more details of an error, such as the reason why iosched rejected each trace format
    #[arg(long, global = true, display_order = 901)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Box<crate::compare::CompareArgs>),
    Calibrate(Box<crate::calibrate::CalibrateArgs>),
    Tune(Box<crate::tune::TuneArgs>),
    Advise(Box<crate::advise::AdviseArgs>),
    Plan(Box<crate::plan::PlanArgs>),
    Sweep(Box<crate::sweep::SweepArgs>),
    Reproduce(crate::reproduce::ReproduceArgs),
    Judge(crate::judge::JudgeArgs),
    Record(crate::record::RecordArgs),
    Serve(Box<crate::serve::ServeArgs>),
    Top(crate::top::TopArgs),
    Watch(crate::watch::WatchArgs),
    Report(crate::report::ReportArgs),
    /// Show, convert and edit traces
    #[command(subcommand)]
    Trace(crate::trace::TraceCommand),
    /// Show device profiles
    #[command(subcommand)]
    Device(crate::device::DeviceCommand),
    /// Show schedulers and their tunables
    #[command(subcommand)]
    Scheduler(crate::scheduler::SchedulerCommand),
    /// Show controllers: io.max, io.cost, io.latency, wbt and others
    #[command(subcommand)]
    Controller(crate::scheduler::ControllerCommand),
    /// Import device profiles from other formats
    #[command(subcommand)]
    Import(crate::import::ImportCommand),
    Validate(crate::validate::ValidateArgs),
    /// Check fio job files
    #[command(subcommand)]
    Job(crate::job::JobCommand),
    Mount(crate::mount::MountArgs),
    Ublk(Box<crate::ublk::UblkArgs>),
    Vhost(Box<crate::vhost::VhostArgs>),
    Doctor(crate::doctor::DoctorArgs),
    Ls(crate::ls::LsArgs),
    Get(crate::get::GetArgs),
    Set(crate::set::SetArgs),
    Restore(crate::restore::RestoreArgs),
    /// Print a shell completion script
    ///
    /// The script also completes the names of schedulers, tunables, profiles and disks. The script
    /// looks these names up at each completion. For bash: echo 'source <(iosched completions bash)'
    /// >> ~/.bashrc
    Completions {
        /// Shell to print the script for
        shell: clap_complete::Shell,
    },
    Man(crate::man::ManArgs),
}

/// Returns the clap command. Options accept negative numbers, so that the error message can contain
/// the valid range. Otherwise clap would report a negative number as an unknown option.
pub(crate) fn command() -> clap::Command {
    fn numbers(command: clap::Command) -> clap::Command {
        let takes = |argument: &clap::Arg| argument.get_action().takes_values();
        let command = command.mut_args(|argument| {
            if takes(&argument) { crate::complete::completed(argument.allow_negative_numbers(true)) } else { argument }
        });
        command.mut_subcommands(numbers)
    }
    numbers(Cli::command())
}

/// Parses a command line. Also returns the arguments in the form in which the user gave them.
pub(crate) fn parse<W: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = W>,
) -> Result<(Cli, Invocation), clap::Error> {
    let command = command();
    let matches = command.clone().try_get_matches_from(words)?;
    Ok((Cli::from_arg_matches(&matches)?, Invocation::of(&command, &matches)))
}
