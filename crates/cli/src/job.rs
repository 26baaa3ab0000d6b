//! `iosched job`: shows what a fio job file would run, and lists fio's options.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Subcommand, ValueHint};
use iosched_lab::request::ProcessEnvironment;
use iosched_workload::fio::CheckedJobs;

use iosched_terminal::show::{self, Look, job};

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Show what a fio job file runs, and which options iosched ignores or does not support
    ///
    /// The table has one row per job. All copies of a job (numjobs) share one row. Below the table,
    /// iosched lists the options without effect and the options that it does not support. For each
    /// option, iosched prints the line in the file and the reason. Environment variables (${NAME})
    /// come from the environment of this command. As in fio, an unset variable is empty.
    ///
    /// Exit status: 0 if iosched can run the file; 1 if the file needs an option that iosched does
    /// not support; 2 if it is not a valid job file.
    Check {
        /// A fio job file; - for standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Print everything as one JSON document
        #[arg(long)]
        json: bool,
    },
    /// List fio's options and how iosched treats them
    Options {
        /// List only options with this text in their name or in an alias
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print everything as one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Exit code for a file with unsupported options.
const REFUSED: u8 = 1;

pub(crate) fn job(command: &JobCommand) -> Result<ExitCode> {
    match command {
        JobCommand::Check { file, json } => {
            let checked = if file == Path::new("-") {
                let name = "standard input";
                let mut text = Vec::new();
                std::io::stdin().read_to_end(&mut text).with_context(|| name)?;
                CheckedJobs::parse(name, &text, &ProcessEnvironment)?
            } else {
                CheckedJobs::open(file, &ProcessEnvironment)?
            };
            let text = if *json {
                serde_json::to_string_pretty(&job::json(&checked))? + "\n"
            } else {
                job::text(&checked, Look::of_standard_output())
            };
            show::answer(&text, *json)?;
            Ok(if checked.refusals.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
        }
        JobCommand::Options { name, json } => {
            show::answer(&job::options(name.as_deref(), *json)?, *json)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
