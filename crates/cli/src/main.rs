//! The command `iosched`: argument parsing and output. The functionality is in the libraries.
//!
//! # Contents
//!
//! | file | content |
//! |---|---|
//! | `invocation.rs` | the arguments that the user gave, and command lines that repeat them |
//! | `command.rs` | all commands; each command has a file or folder with its arguments and its code |
//! | `options/` | shared arguments: numbers, schedulers, workloads, replay, length of runs, judgement of differences |
//!
//! Results, messages, errors and files are written by `crates/terminal`.
#![forbid(unsafe_code)]

mod advise;
mod backing;
mod blktrace;
mod calibrate;
mod command;
mod compare;
mod complete;
mod device;
mod doctor;
mod exports;
#[cfg(test)]
mod file_arguments_tests;
mod get;
mod import;
mod invocation;
mod job;
mod judge;
mod lasting;
mod ls;
mod man;
mod mount;
mod options;
mod plan;
mod record;
mod report;
mod reproduce;
mod restore;
mod scheduler;
mod serve;
mod served;
mod set;
mod sweep;
mod top;
mod trace;
mod tune;
mod ublk;
mod validate;
mod vhost;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use command::{Cli, Command};
use invocation::Invocation;
use iosched_kernel::Roots;
use iosched_terminal::{fail, output, show};

fn main() -> ExitCode {
    complete::answer(command::command);
    let (cli, given) =
        command::parse(std::env::args_os()).unwrap_or_else(|error| fail::wrong_arguments(error, &command::command()));
    let code = carry_out(cli, &given).unwrap_or_else(|error| fail::report(&error));
    output::finish();
    code
}

fn carry_out(cli: Cli, given: &Invocation) -> Result<ExitCode> {
    cli.progress.choose();
    if cli.verbose {
        fail::be_verbose();
    }
    let command = match cli.command {
        Some(command) => command,
        // Without a command, iosched compares. The declaration of `compare` provides the defaults.
        None => {
            return match command::parse(["iosched", "compare"])? {
                (Cli { command: Some(Command::Compare(args)), .. }, given) => compare_here(&args, &given),
                _ => Ok(ExitCode::SUCCESS),
            };
        }
    };
    match command {
        Command::Compare(args) => return compare::compare(&args, given),
        Command::Calibrate(args) => return calibrate::run(&args, given),
        Command::Tune(args) => return tune::run(&args, given),
        Command::Advise(args) => return advise::run(&args, given),
        Command::Plan(args) => return plan::run(&args, given),
        Command::Sweep(args) => return sweep::run(&args),
        Command::Reproduce(args) => return reproduce::run(&args, given),
        Command::Judge(args) => return judge::run(&args),
        Command::Record(args) => return record::run(&args),
        Command::Serve(args) => return serve::serve(&args),
        Command::Top(args) => top::run(&args)?,
        Command::Watch(args) => return watch::run(&args),
        Command::Report(args) => report::run(&args)?,
        Command::Trace(command) => trace::run(&command)?,
        Command::Device(command) => device::run(&command)?,
        Command::Scheduler(command) => scheduler::scheduler(&command)?,
        Command::Controller(command) => scheduler::controller(&command)?,
        Command::Import(command) => import::import(&command)?,
        Command::Validate(args) => return validate::run(&args, given),
        Command::Job(command) => return job::job(&command),
        Command::Mount(args) => return mount::run(&args),
        Command::Ublk(args) => return ublk::run(&args),
        Command::Vhost(args) => return vhost::run(&args),
        Command::Ls(args) => ls::run(&args)?,
        Command::Doctor(args) => doctor::run(&args)?,
        Command::Get(args) => get::run(&args)?,
        Command::Set(args) => return set::run(&args),
        Command::Restore(args) => return restore::run(&args),
        Command::Completions { shell } => {
            output::print(&complete::registration(shell)?)?;
        }
        Command::Man(args) => man::run(&args, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the comparison of the sample. On a terminal, it also prints the disks of this machine.
fn compare_here(args: &compare::CompareArgs, given: &Invocation) -> Result<ExitCode> {
    let code = compare::compare(args, given)?;
    if std::io::stdout().is_terminal() {
        let found = show::here::found(&Roots::default());
        output::print(&if found.is_empty() { found } else { format!("\n{found}") })?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects every command and subcommand with its name as typed.
    fn every_command(command: &clap::Command, name: &str, all: &mut Vec<(String, clap::Command)>) {
        all.push((name.to_owned(), command.clone()));
        for below in command.get_subcommands() {
            every_command(below, &format!("{name} {}", below.get_name()), all);
        }
    }

    /// Splits a line into words, with quotes as in a shell.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote, mut begun) = (vec![String::new()], None, false);
        for c in line.chars() {
            match (c, quote) {
                ('"' | '\'', None) => (quote, begun) = (Some(c), true),
                (c, Some(open)) if c == open => quote = None,
                (' ', None) => {
                    if begun {
                        words.push(String::new());
                    }
                    begun = false;
                }
                (c, _) => {
                    words.last_mut().unwrap().push(c);
                    begun = true;
                }
            }
        }
        words
    }

    #[test]
    fn help_examples_fit_80_columns_and_are_valid() {
        let mut all = Vec::new();
        every_command(&Cli::command(), "iosched", &mut all);
        let mut tried = 0;
        for (name, command) in &all {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let mut lines = help.lines();
            while let Some(line) = lines.next() {
                assert!(line.len() <= 80 || !line.starts_with("  iosched"), "{name}: {line}");
                let mut paragraph = line.to_owned();
                while let Some(begun) = paragraph.strip_suffix('\\') {
                    let next = lines.next().unwrap_or_default();
                    assert!(next.len() <= 80, "{name}: {next}");
                    paragraph = format!("{begun}{}", next.trim_start());
                }
                let Some(example) = paragraph.strip_prefix("  ").filter(|line| line.starts_with("iosched ")) else {
                    continue;
                };
                let parsed = command::command().try_get_matches_from(words(example));
                assert!(parsed.is_ok(), "{name}: {example}: {}", parsed.unwrap_err());
                tried += 1;
            }
        }
        assert!(tried > 30, "{tried}");
    }

    #[test]
    fn all_options_accept_negative_numbers_as_values() {
        let mut all = Vec::new();
        every_command(&command::command(), "iosched", &mut all);
        for (name, command) in &all {
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                assert!(argument.is_allow_negative_numbers_set(), "{name}: {}", argument.get_id());
            }
        }
    }

    #[test]
    fn the_command_line_is_declared_without_contradictions() {
        command::command().debug_assert();
    }
}
