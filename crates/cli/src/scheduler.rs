//! `iosched scheduler` and `iosched controller`: descriptions of schedulers and controllers.

use anyhow::Result;
use clap::Subcommand;

use iosched_terminal::show::{self, schedulers};

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulerCommand {
    /// List the schedulers
    List,
    /// Show the tunables of a scheduler and the attributes of its queue
    Show {
        /// Name of the scheduler
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControllerCommand {
    /// List the controllers
    List,
    /// Show the purpose of a controller, its rules, its dangers and its settings
    Show {
        /// Name of the controller, or of one of its files
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub(crate) fn controller(command: &ControllerCommand) -> Result<()> {
    show::page(&match command {
        ControllerCommand::List => schedulers::controllers(),
        ControllerCommand::Show { name } => schedulers::controller(name)?,
    })
}

pub(crate) fn scheduler(command: &SchedulerCommand) -> Result<()> {
    show::page(&match command {
        SchedulerCommand::List => schedulers::schedulers(),
        SchedulerCommand::Show { name } => schedulers::scheduler(name)?,
    })
}
