//! Runs on the device as confirming runs of the search, so that the same judge judges them.

use iosched::Setting;
use iosched_lab::{Figure, Records, RunRecord};

use crate::tune::{Goal, Measure, Phase, TuneHeader, TuneRun};

/// Runs on a device, measured as the search measured its own.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The plan of the search, with the device instead of its model and what was set there as baseline.
    pub header: TuneHeader,
    /// The runs.
    pub runs: Vec<TuneRun>,
}

impl Confirmed {
    /// Of `records`, in which one setting is [`Setting::present`].
    #[must_use]
    pub fn of(search: &TuneHeader, records: &Records) -> Self {
        let plan = &records.header;
        let mut header = search.clone();
        header.command.clone_from(&plan.command);
        header.device.clone_from(&plan.devices[0]);
        // Those of the settings, which the records hold.
        header.device.values.clear();
        header.baseline = Setting::present();
        header.budget = plan.runs * plan.settings.len() as u32;
        header.seed = plan.seed;
        header.equal_within_percent = plan.equal_within_percent;
        // Chance is not ours there.
        header.seeds_matter = true;
        // They are written as goals are.
        let measures: Vec<Option<Measure>> =
            header.measures.iter().map(|own| Some(own.name.parse::<Goal>().ok()?.measure)).collect();
        let run = |own: &RunRecord| TuneRun {
            phase: Phase::Confirm,
            setting: plan.settings[own.setting].label.clone(),
            run: own.run,
            seed: own.seed,
            simulated_ns: own.result.finished_ns,
            utilisation_percent: Figure::Utilisation.of(&own.result),
            values: measures.iter().map(|measure| measure.as_ref()?.of(&own.result)).collect(),
        };
        let runs = records.on(0).map(|own| own.runs().map(run).collect()).unwrap_or_default();
        Self { header, runs }
    }
}
