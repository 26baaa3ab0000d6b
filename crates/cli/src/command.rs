//! All commands. What each takes is declared in its own file; what several take in `options`. Parsing, help, man pages
//! and completions come from there.

use clap::{CommandFactory, Parser, Subcommand};

use crate::watched::ProgressKind;

/// Choose, tune and run I/O schedulers, with evidence.
///
/// Without a command, compares the schedulers that Linux has today (none, mq-deadline, kyber, bfq), and CFQ beside
/// them, on a recorded pgbench run that comes with iosched, on a modelled 7200 rpm SATA disk: what `iosched compare`
/// does without options.
///
/// Exit status: 0 if all went well; 1 if something failed; 2 if the command line, a setting or a file's format is
/// wrong; 130 if Ctrl-C ended it early.
#[derive(Debug, Parser)]
#[command(name = "iosched", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// How it is told on standard error how far long work is
    #[arg(long, global = true, value_enum, value_name = "HOW", default_value_t, display_order = 900)]
    pub(crate) progress: ProgressKind,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Box<crate::compare::CompareArgs>),
    Calibrate(Box<crate::calibrate::CalibrateArgs>),
    Tune(Box<crate::tune::TuneArgs>),
    Advise(Box<crate::advise::AdviseArgs>),
    Sweep(Box<crate::sweep::SweepArgs>),
    Reproduce(crate::reproduce::ReproduceArgs),
    Record(crate::record::RecordArgs),
    Serve(Box<crate::serve::ServeArgs>),
    Top(crate::top::TopArgs),
    Report(crate::report::ReportArgs),
    /// Read, convert and change traces
    #[command(subcommand)]
    Trace(crate::trace::TraceCommand),
    /// Show device profiles
    #[command(subcommand)]
    Device(crate::device::DeviceCommand),
    /// Show schedulers and their tunables
    #[command(subcommand)]
    Elevator(crate::tell::ElevatorCommand),
    /// Show the policies beside the elevator: io.max, io.cost, io.latency, wbt and others
    #[command(subcommand)]
    Policy(crate::tell::PolicyCommand),
    /// Import device profiles
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
    /// Print what has a shell complete commands, options and values
    ///
    /// Schedulers, their tunables, profiles and disks are completed, too, as they are at that moment. For bash:
    /// echo 'source <(iosched completions bash)' >> ~/.bashrc
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    Man(crate::man::ManArgs),
}

/// The command line. A negative number is a value, which is then out of range, and no option that does not exist.
pub(crate) fn command() -> clap::Command {
    fn numbers(command: clap::Command) -> clap::Command {
        let takes = |argument: &clap::Arg| argument.get_action().takes_values();
        let command = command.mut_args(|own| {
            if takes(&own) { crate::complete::completed(own.allow_negative_numbers(true)) } else { own }
        });
        command.mut_subcommands(numbers)
    }
    numbers(Cli::command())
}
