//! The command `iosched`: arguments in, answers out. What it knows is in the libraries.
#![forbid(unsafe_code)]

mod advise;
mod args;
mod backing;
mod blktrace;
mod calibrate;
mod compare;
mod device;
mod exports;
mod fail;
mod get;
mod import;
mod job;
mod ls;
mod mount;
mod output;
mod reproduce;
mod restore;
mod sample;
mod serve;
mod served;
mod set;
mod show;
mod signals;
mod tell;
mod top;
mod trace;
mod tree;
mod tune;
mod ublk;
mod validate;
mod watched;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let code = carry_out(cli).unwrap_or_else(|error| fail::report(&error));
    output::finish();
    code
}

fn carry_out(cli: Cli) -> Result<ExitCode> {
    let command = match cli.command {
        Some(command) => command,
        // The same declaration, without options.
        None => match Cli::parse_from(["iosched", "compare"]).command {
            Some(command) => command,
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    match command {
        Command::Compare(args) => return compare::compare(&args),
        Command::Calibrate(args) => return calibrate::run(&args),
        Command::Tune(args) => return tune::run(&args),
        Command::Advise(args) => return advise::run(&args),
        Command::Reproduce(args) => return reproduce::run(&args),
        Command::Serve(args) => return serve::serve(&args),
        Command::Top(args) => top::run(&args)?,
        Command::Report { records, output } => compare::report(&records, output.as_deref())?,
        Command::Trace(command) => trace::trace(&command)?,
        Command::Device(command) => device::device(&command)?,
        Command::Elevator(command) => tell::elevator(&command)?,
        Command::Import(command) => import::import(&command)?,
        Command::Validate(command) => validate::run(&command)?,
        Command::Job(command) => return job::job(&command),
        Command::Mount(args) => return mount::run(&args),
        Command::Ublk(args) => return ublk::run(&args),
        Command::Ls(args) => ls::run(&args)?,
        Command::Get(args) => get::run(&args)?,
        Command::Set(args) => set::run(&args)?,
        Command::Restore(args) => return restore::run(&args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "iosched", &mut text);
            output::print(&String::from_utf8_lossy(&text))?;
        }
        Command::Man { dir: None } => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            output::print(&String::from_utf8_lossy(&text))?;
        }
        Command::Man { dir: Some(dir) } => {
            std::fs::create_dir_all(&dir)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
                .map_err(|error| anyhow::anyhow!("{}: {error}", dir.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_declared_without_contradictions() {
        Cli::command().debug_assert();
    }
}
