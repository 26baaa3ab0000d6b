//! `iosched man`: the manual page of a command, or all pages in a directory.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Command, ValueHint};
use clap_mangen::Man;

use crate::fail::usage;
use crate::output::{self, Kind, Output, Outputs, WriteArgs, all_of};

/// Print the man page, or that of a command
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The command, as compare or trace convert [default: iosched itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &ManArgs, root: Command) -> Result<()> {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    match &args.dir {
        Some(directory) => write_all(root, directory, args.write),
        None => output::print(&page(find(root, &args.command)?)?),
    }
}

/// The command of that name, and of that name below it.
fn find(root: Command, names: &[String]) -> Result<Command> {
    let mut at = root;
    for name in names {
        let of = at.get_display_name().unwrap_or_else(|| at.get_name()).replace('-', " ");
        let found = at.find_subcommand(name).cloned();
        at = found.ok_or_else(|| {
            let known: Vec<&str> = at.get_subcommands().map(Command::get_name).collect();
            match known[..] {
                [] => usage(format_args!("{of} has no commands below it, so there is no page of {of} {name}")),
                _ => usage(format_args!("there is no page of {of} {name}; {of} has {}", known.join(", "))),
            }
        })?;
    }
    Ok(at)
}

fn page(command: Command) -> Result<String> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(String::from_utf8(text)?)
}

fn write_all(root: Command, directory: &Path, write: WriteArgs) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| anyhow!("{}: {error}", directory.display()))?;
    let mut all = vec![root];
    let mut outputs = Outputs::new(write);
    let mut pages: Vec<(Output, String)> = Vec::new();
    while let Some(command) = all.pop() {
        all.extend(command.get_subcommands().cloned());
        let path = directory.join(Man::new(command.clone()).get_filename());
        pages.push((outputs.output("--dir", &path, Kind::Manual)?, page(command)?));
    }
    all_of(pages.into_iter().map(|(out, page)| out.text(&page)))
}
