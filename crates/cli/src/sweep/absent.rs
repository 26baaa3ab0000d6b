//! The command `sweep` in a build without support for sweeps.

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use super::SweepArgs;

pub(super) fn run(args: &SweepArgs) -> Result<ExitCode> {
    // The arguments are declared in every build, so that the help is complete.
    let _ = (&args.plan, &args.dataset, args.dry_run, args.jobs, &args.metric, &args.report, args.json, &args.write);
    Err(anyhow!("this build of iosched cannot sweep; build it with --features full"))
}
