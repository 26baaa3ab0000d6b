//! Checks whether a plan holds: the setting in force, and the goals of each unit.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use iosched_kernel::observe::Observer;
use iosched_kernel::{BlockDevice, Roots};
use iosched_live::metrics::Listening;
use iosched_plan::Plan;
use iosched_plan::check::{self, Observed};
use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, say};
use iosched_terminal::show::plan::check::{CheckExporter, text};
use iosched_terminal::signals::stop_on_signal;

use crate::watch;

/// The plan to check, and how to check it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanCheck<'a> {
    /// The plan.
    pub(super) plan: &'a Plan,
    /// File of the plan, for messages.
    pub(super) file: &'a Path,
    /// Duration of one observation.
    pub(super) length: Duration,
    /// Number of checks. `None` means until a signal ends the command.
    pub(super) count: Option<u32>,
    /// Whether reports are printed as JSON.
    pub(super) json: bool,
    /// Address on which Prometheus metrics are served.
    pub(super) metrics: Option<&'a str>,
}

/// Checks a plan. The exit code is 1 if the last check found that the plan does not hold.
pub(super) fn run(wanted: PlanCheck<'_>) -> Result<ExitCode> {
    let plan = wanted.plan;
    let roots = Roots::default();
    let device = device(&roots, wanted.file, plan)?;
    let listening = wanted.metrics.map(Listening::at).transpose();
    let listening = listening.map_err(|error| usage(format!("--metrics {error}")))?;
    let stop = stop_on_signal()?;
    let mut observer = Observer::begin(&roots, vec![device.clone()], check::options(plan));
    watch::notes(&observer);
    let exporter = Arc::new(CheckExporter::default());
    let is_service = listening.is_some();
    if let Some(listening) = listening {
        say!("metrics: http://{}/metrics", listening.serve_metrics(Arc::clone(&exporter) as Arc<_>)?);
    }
    let mut holds = true;
    let mut left = wanted.count.unwrap_or(u32::MAX);
    while left > 0 && observer.take_unless(wanted.length, || stop.load(Ordering::SeqCst))? {
        let sample = observer.sample();
        let observed = Observed {
            sample,
            observes_fsync: observer.observes_fsync(),
            without_latencies: observer.without_latencies().map(ToString::to_string),
            ..check::state(plan, &device)
        };
        let report = check::check(plan, &observed);
        holds = report.holds();
        if is_service {
            exporter.set(report);
        } else if wanted.json {
            output::print(&format!("{}\n", serde_json::to_string(&report)?))?;
        } else {
            output::print(&text(&report))?;
        }
        if wanted.count.is_some() {
            left -= 1;
        }
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the device of a plan.
fn device(roots: &Roots, path: &Path, plan: &Plan) -> Result<BlockDevice> {
    let shown = path.display();
    let Some(device) = &plan.device else {
        return Err(usage(format!(
            "{shown}: this plan is for the modelled device {}. Make and check a plan for a device of this machine, \
             for example with device = \"/dev/sdb\"",
            plan.profile
        )));
    };
    let found = BlockDevice::find(roots, Path::new(device));
    Ok(found.map_err(|error| usage(format!("{shown}: device: {error}")))?.disk())
}
