//! `iosched import`: what others know of a device, as a profile.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use iosched_disk::Profile;
use iosched_disk::disksim::{Description, Sources};

use crate::fail::{of_file, usage};
use crate::output::{Kind, Outputs, WriteArgs};

/// Larger files are no descriptions of disks.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Make a profile of DiskSim's description of a disk
    Disksim(DisksimArgs),
}

#[derive(Args, Debug)]
pub(crate) struct DisksimArgs {
    /// Geometry and mechanics, as cheetah9LP.model
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    model: PathBuf,
    /// Seek times, as cheetah9LP.seek
    #[arg(value_name = "SEEK", value_hint = ValueHint::FilePath)]
    seek: PathBuf,
    /// Bus, cache and overheads, as cheetah9LP.diskspecs
    #[arg(value_name = "SPECS", value_hint = ValueHint::FilePath)]
    specs: PathBuf,
    /// The profile to write; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "-")]
    output: PathBuf,
    /// What the disk is, in a line, for `iosched device show` [default: made up of its size and speed]
    #[arg(long, value_name = "TEXT")]
    about: Option<String>,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn import(command: &ImportCommand) -> Result<()> {
    let ImportCommand::Disksim(args) = command;
    let (model, seek, specs) = (read(&args.model)?, read(&args.seek)?, read(&args.specs)?);
    let names = [&args.model, &args.seek, &args.specs].map(|path| path.display().to_string());
    let sources = Sources { model: (&names[0], &model), seek: (&names[1], &seek), specs: (&names[2], &specs) };
    let description = Description::read(&sources).map_err(usage)?;
    let text = description.to_toml(args.about.as_deref());
    let profile = Profile::parse(&names[0], &text)?;
    for remark in &description.remarks {
        eprintln!("warning: {remark}");
    }
    let out = Outputs::new(args.write).reads_all([&args.model, &args.seek, &args.specs]).output(
        "--output",
        &args.output,
        Kind::Profile,
    )?;
    out.text(&text)?;
    if !out.is_standard_output() {
        eprintln!("{}: {}, {}", args.output.display(), description.name, profile.about());
    }
    Ok(())
}

/// A text, compressed or not. A file that is not there or is no text is an error of usage.
pub(crate) fn read(path: &Path) -> Result<String> {
    iosched_trace::read_text(path, BYTES_MAX)
        .map_err(|error| of_file(format!("{}: cannot be read: {error}", path.display()), &error))
}
