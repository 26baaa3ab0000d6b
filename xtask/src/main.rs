//! Tasks for this repository: `cargo xtask COMMAND`. Each command has a module.
#![forbid(unsafe_code)]

mod api;
mod arm;
mod cost;
mod crash;
mod devices;
mod dist;
mod elevators;
mod golden;
mod guest;
mod histories;
mod machines;
mod page;
mod parallel;
mod reference;
mod release;
mod rules;
mod soak;
mod speed;
mod tune;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use iosched_live::reactor::history::Theme;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Conformance, measurements and house rules of this repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare our schedulers with recorded runs of Linux
    Golden(golden::Args),
    /// Measure the cost of a scheduler per request, beside Linux
    Cost(cost::Args),
    /// Run random operations on every scheduler, and check its invariants
    Soak(soak::Args),
    /// Kill a served disk at random moments under load, and check that it kept everything that it acknowledged
    Crash(crash::Args),
    /// Run whole histories of served disks in virtual time: clients, network, reactor, back ends, power cuts
    Histories(histories::Args),
    /// Cut the power of served disks in virtual time, and check that acknowledged data survives
    Cuts(histories::Args),
    Guest(guest::Args),
    Machines(machines::Args),
    Arm(arm::Args),
    Dist(dist::Args),
    Release(release::Args),
    /// Write the public interface of the policy library, as rustdoc reports it
    Api(api::Args),
    /// Check the house rules
    Rules,
    /// Write the reference pages from the declarations of tunables, trace formats and fio's options
    Reference(reference::Args),
    /// Measure the modelled devices, and write the tables of docs/device-anchors.md
    Devices(devices::Args),
    /// Run the small workload of docs/elevators.md under every scheduler, and write its plot and table
    Elevators(elevators::Args),
    /// Measure how many requests per second the simulator replays
    Speed(speed::Args),
    /// Check that tuning finds the best setting of a full grid with a tenth of its runs
    Tune(tune::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Golden(args) => golden::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::Soak(args) => soak::run_soak(&args),
        Command::Crash(args) => crash::run(&args),
        Command::Histories(args) => histories::run(&args, Theme::All),
        Command::Cuts(args) => histories::run(&args, Theme::Cuts),
        Command::Guest(args) => guest::run(&args),
        Command::Machines(args) => machines::run(&args),
        Command::Arm(args) => arm::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Release(args) => release::run(&args),
        Command::Api(args) => api::run(&args),
        Command::Rules => rules::run(),
        Command::Reference(args) => reference::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Elevators(args) => elevators::run(&args),
        Command::Speed(args) => speed::run(&args),
        Command::Tune(args) => tune::measure(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
