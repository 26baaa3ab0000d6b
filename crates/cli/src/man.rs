//! `iosched man`: shows the man page of a command, or writes all pages to a directory.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use anyhow::{Result, anyhow};
use clap::{Args, Command, ValueHint};
use clap_mangen::Man;
use console::Term;
use iosched_lab::request::did_you_mean;
use iosched_system::open_directory::OpenDirectory;

use iosched_terminal::fail::{all_of, usage};
use iosched_terminal::output::{self, Kind, Output, Outputs, WriteArgs};

/// Show the man page of iosched or of a command
///
/// On a terminal, man displays the page. If man is not installed, iosched prints the text of
/// --help. Without a terminal, iosched prints the source of the page.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Command to show, such as compare or trace convert [default: iosched itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands to this directory instead
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
        None => show(find(root, &args.command)?),
    }
}

/// Returns the command or subcommand with these names.
fn find(root: Command, names: &[String]) -> Result<Command> {
    let mut at = root;
    for name in names {
        let page = at.get_display_name().unwrap_or_else(|| at.get_name()).replace('-', " ");
        let found = at.find_subcommand(name).cloned();
        at = found.ok_or_else(|| {
            let known: Vec<&str> = at.get_subcommands().map(Command::get_name).collect();
            match known[..] {
                [] => usage(format_args!("{page} has no subcommands, so there is no page of {page} {name}")),
                _ => {
                    let meant = did_you_mean(name, known.iter().copied());
                    usage(format_args!(
                        "there is no page of {page} {name}; the commands of {page} are {}{meant}",
                        known.join(", ")
                    ))
                }
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

/// Shows the page with man on a terminal. If man fails, prints the text of --help. Without a
/// terminal, prints the source of the page.
fn show(mut command: Command) -> Result<()> {
    let page = page(command.clone())?;
    if !Term::stdout().is_term() {
        return output::print(&page);
    }
    by_man(&page).or_else(|_| output::print(&command.render_long_help().to_string()))
}

/// Shows the page with man. Fails if man is missing or cannot read a page from standard input.
fn by_man(page: &str) -> Result<()> {
    let mut man = process::Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut input) = man.stdin.take() {
        // man may end before it has read the whole page.
        let _ = input.write_all(page.as_bytes());
    }
    if man.wait()?.success() { Ok(()) } else { Err(anyhow!("man cannot display the page")) }
}

fn write_all(root: Command, directory: &Path, write: WriteArgs) -> Result<()> {
    OpenDirectory::reach_or_make(directory).map_err(|error| anyhow!("{}: {error}", directory.display()))?;
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
