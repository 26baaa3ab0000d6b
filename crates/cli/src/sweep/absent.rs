//! Sweeps, where they are not built in.

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use super::SweepArgs;

pub(super) fn run(args: &SweepArgs) -> Result<ExitCode> {
    // They are declared whatever is built, so that the help is.
    let _ = (&args.plan, &args.output, args.dry_run, args.jobs, &args.metric, &args.report, args.json, &args.write);
    Err(anyhow!("this build of iosched cannot sweep; build it with --features full"))
}
