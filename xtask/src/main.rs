//! Tasks about this repository: `cargo xtask COMMAND`. One module per command.

mod golden;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Conformance, measurements and house rules of this repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare our elevators with recorded runs of Linux' own.
    Golden(golden::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Golden(args) => golden::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
