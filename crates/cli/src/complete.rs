//! Completion of values in a shell: schedulers and their tunables, profiles, and disks. The value
//! name of an argument selects the candidates.

use std::ffi::OsStr;
use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use clap::{Arg, Command};
use clap_complete::engine::ValueCompleter;
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate, PathCompleter, Shell};
use iosched::Registry;
use iosched_disk::Profile;
use iosched_kernel::{BlockDevice, Roots};

use iosched_attributes::lives;

/// Environment variable with which a shell requests candidates.
const VARIABLE: &str = "COMPLETE";
const COMMAND: &str = "iosched";

/// Prints the candidates and exits, if a shell requests them.
pub(crate) fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Returns the script that makes a shell request candidates.
pub(crate) fn registration(shell: Shell) -> Result<String> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let found =
        shells.completer(&name).ok_or_else(|| anyhow!("{name}: there is no completion script for this shell"))?;
    let mut text = Vec::new();
    found.write_registration(VARIABLE, COMMAND, COMMAND, COMMAND, &mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Returns the argument with the completer for its values.
pub(crate) fn completed(argument: Arg) -> Arg {
    let mut takes = String::new();
    for name in argument.get_value_names().unwrap_or_default() {
        let _ = write!(takes, "{name}|");
    }
    let is_scheduler = matches!(argument.get_id().as_str(), "scheduler" | "schedulers");
    if is_scheduler || takes.starts_with("SETTING") {
        argument.add(ArgValueCompleter::new(schedulers))
    } else if takes.contains("PROFILE") {
        argument.add(ArgValueCompleter::new(profiles))
    } else if takes.contains("DISK") || takes.starts_with("DEVICE") {
        argument.add(ArgValueCompleter::new(disks))
    } else {
        argument
    }
}

fn text(current: &OsStr) -> &str {
    current.to_str().unwrap_or_default()
}

fn beginning<'a>(current: &str, all: impl IntoIterator<Item = (String, &'a str)>) -> Vec<CompletionCandidate> {
    let found = all.into_iter().filter(|(value, _)| value.starts_with(current));
    found
        .map(|(value, help)| CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.to_owned().into())))
        .collect()
}

/// Returns the names of files. Values without another completer use this one.
fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(current)
}

/// Completes the name of a scheduler, such as `cfq`. After a colon or comma, completes a tunable,
/// such as `cfq:slice_idle=`.
fn schedulers(current: &OsStr) -> Vec<CompletionCandidate> {
    let (current, linux) = (text(current), Registry::linux());
    let Some((name, _)) = current.split_once(':') else {
        return beginning(current, linux.elevators().iter().map(|elevator| (elevator.name.to_owned(), elevator.about)));
    };
    let Some(elevator) = linux.elevators().iter().find(|known| known.name == name) else { return Vec::new() };
    let at = current.rfind([':', ',']).map_or(0, |at| at + 1);
    let texts = elevator
        .texts
        .iter()
        .filter(|parameter| !parameter.takes.is_empty())
        .map(|parameter| (parameter.name, parameter.doc));
    let names = (elevator.tunables)().into_iter().map(|tunable| (tunable.name, tunable.doc)).chain(texts);
    beginning(current, names.map(|(name, doc)| (format!("{}{name}=", &current[..at]), doc)))
}

fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let embedded = Profile::names().map(|name| (name.to_owned(), ""));
    let mut found = beginning(text(current), embedded);
    found.extend(paths(current));
    found
}

/// Completes disks of the kernel and named served disks.
fn disks(current: &OsStr) -> Vec<CompletionCandidate> {
    let kernels = BlockDevice::disks(&Roots::default()).into_iter().map(|disk| (disk.name().to_owned(), ""));
    let lives = lives().into_iter().map(|name| (format!("live:{name}"), "a served disk"));
    let mut found = beginning(text(current), kernels.chain(lives));
    found.extend(paths(current));
    found
}
