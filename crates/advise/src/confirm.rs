//! Runs on the device, converted to confirming runs of a search. The same rules can therefore judge
//! both.

use iosched::Setting;
use iosched_lab::{Figure, FigureResults, Records, Results, RunRecord, starved_tasks};

use crate::tune::{Goal, Measure, Phase, TuneHeader, TuneResults, TuneRun, Verdicts};

/// Runs on a device, with the metrics that the search uses.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The plan of the search, with the device instead of
    /// its model and with the present setting as baseline.
    pub header: TuneHeader,
    /// The runs of complete rounds.
    pub runs: Vec<TuneRun>,
    /// Results of a comparison of the same records. The verdicts of this comparison decide. If
    /// `None`, the verdicts follow from the runs alone.
    pub of_device: Option<Results>,
    /// Labels of the settings, in the order of that comparison.
    labels: Vec<String>,
}

impl Confirmed {
    /// Creates the confirmation from `records`. One of its settings is [`Setting::present`].
    #[must_use]
    pub fn of(search: &TuneHeader, records: &Records) -> Self {
        let plan = &records.header;
        let mut header = search.clone();
        header.command.clone_from(&plan.command);
        header.device.clone_from(&plan.devices[0]);
        // The records already store the values of the settings.
        header.device.values.clear();
        header.baseline = Setting::present();
        header.budget = plan.runs * plan.settings.len() as u32;
        header.seed = plan.seed;
        header.equal_within_percent = plan.equal_within_percent;
        // On a real device, runs also differ for reasons other than the seed.
        header.seeds_matter = true;
        // The records and the goals use the same names for metrics.
        let measures: Vec<Option<Measure>> =
            header.measures.iter().map(|measure| Some(measure.name.parse::<Goal>().ok()?.measure)).collect();
        let run = |record: &RunRecord| TuneRun {
            phase: Phase::Confirm,
            setting: plan.settings[record.setting].label.clone(),
            run: record.run,
            seed: record.seed,
            simulated_ns: record.result.finished_ns,
            utilisation_percent: Figure::Utilisation.of(&record.result),
            values: measures.iter().map(|measure| measure.as_ref()?.of(&record.result)).collect(),
            starved: starved_tasks(&record.result, plan.workload.kind),
        };
        let device = records.on(0);
        let complete = |setting: usize| device.map(|of_device| of_device.complete_runs(setting)).unwrap_or_default();
        let runs = (0..plan.settings.len()).flat_map(complete).map(run).collect();
        let labels = plan.settings.iter().map(|setting| setting.label.clone()).collect();
        Self { header, runs, of_device: device.map(Results::of), labels }
    }

    /// Returns the results of the runs.
    #[must_use]
    pub fn results(&self) -> TuneResults<'_> {
        match &self.of_device {
            None => TuneResults::of(&self.header, &self.runs),
            Some(results) => TuneResults::confirmed(&self.header, &self.runs, &self.verdicts(results)),
        }
    }

    fn verdicts(&self, results: &Results) -> Verdicts {
        let figures: Vec<_> = self.header.measures.iter().map(|measure| results.named(&measure.name)).collect();
        let verdict = |(setting, label): (usize, &String)| {
            let comparison =
                |results: &Option<&FigureResults>| results.as_ref()?.settings.get(setting)?.as_ref()?.comparison;
            (label.clone(), figures.iter().map(comparison).collect())
        };
        Verdicts {
            by_label: self.labels.iter().enumerate().map(verdict).collect(),
            level: figures.first().and_then(|results| Some(results.as_ref()?.level)).unwrap_or_default(),
        }
    }
}
