//! Summary of a fleet's dataset: the setting for each volume, and the gain with one setting for all
//! volumes, for each device, or for each volume.
//!
//! A volume is a workload on a device. A setting looks too good in the runs that chose it.
//! Therefore one half of the runs chooses settings and the other half judges them. Then the two
//! halves change roles. A gain is the mean of both results. The single run of a volume cannot be
//! divided. The summary has a doubt about such volumes.

mod gains;
mod page;
mod volumes;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use iosched_lab::{Figure, marked};
use serde::Serialize;

use crate::columns::Table;
use crate::error::SweepError;

pub use gains::{Gain, Strategy};
pub use volumes::{Choice, Gathering, Volume};

/// Summary of a dataset for one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Id of the metric.
    pub metric: String,
    /// Name of the metric for display.
    pub name: String,
    /// Metric as a phrase for sentences, such as "the mean latency of sync I/O".
    pub phrase: String,
    /// Unit of the metric.
    pub unit: String,
    /// Whether higher values are better.
    pub higher_is_better: bool,
    /// Volumes, sorted by device and workload.
    pub volumes: Vec<Volume>,
    /// Number of volumes without the metric.
    pub without: usize,
    /// Gains of each strategy: one setting for all volumes, for each device, or for each volume.
    pub gains: Vec<Gain>,
    /// Doubts, one sentence each.
    pub doubts: Vec<String>,
}

impl Summary {
    /// Summarizes the tables `runs` and `verdicts` of a dataset. `figure` is the id of a metric
    /// with a better direction, such as `sync_mean`.
    ///
    /// # Errors
    /// The tables do not belong to a dataset, or no volume has the metric.
    pub fn of(runs: &Table, verdicts: &Table, figure: &str) -> Result<Self, SweepError> {
        let mut gathering = Gathering::new(figure);
        gathering.runs(runs)?;
        gathering.verdicts(verdicts)?;
        Self::of_all(gathering, figure)
    }

    /// Summarizes everything that was gathered for a metric.
    ///
    /// # Errors
    /// No volume has the metric, or neither direction of the metric is better.
    pub fn of_all(gathering: Gathering, figure: &str) -> Result<Self, SweepError> {
        let found = gathering.volumes()?;
        let doubts = doubts(&found.volumes, found.without);
        let gains = gains::all(&found.volumes, found.higher_is_better);
        let known = Figure::ALL.iter().find(|known| known.id() == figure);
        Ok(Self {
            metric: figure.to_owned(),
            name: known.map_or(figure, |known| known.name()).to_owned(),
            phrase: known.map_or_else(|| figure.to_owned(), |known| known.phrase(false)),
            unit: found.unit,
            higher_is_better: found.higher_is_better,
            without: found.without,
            gains,
            doubts,
            volumes: found.volumes,
        })
    }

    /// Returns the number of volumes with this kind of choice.
    #[must_use]
    pub fn count(&self, choice: Choice) -> usize {
        self.volumes.iter().filter(|volume| volume.choice == choice).count()
    }

    /// Returns the volumes for which the runs cannot tell whether another setting is better.
    pub fn doubtful(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().filter(|volume| volume.choice == Choice::CannotTell)
    }

    /// Returns each chosen setting with its number of volumes, the largest number first.
    #[must_use]
    pub fn chosen(&self) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for volume in &self.volumes {
            match counts.iter_mut().find(|(label, _)| *label == volume.chosen) {
                Some((_, count)) => *count += 1,
                None => counts.push((&volume.chosen, 1)),
            }
        }
        counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        counts
    }

    /// Returns each chosen setting and kind of choice, with its number of volumes. Settings that
    /// are better than the baseline come first, then baselines.
    #[must_use]
    pub fn choices(&self) -> Vec<(&str, Choice, usize)> {
        let mut counts: BTreeMap<(Choice, &str), usize> = BTreeMap::new();
        for volume in &self.volumes {
            *counts.entry((volume.choice, &volume.chosen)).or_default() += 1;
        }
        let mut all: Vec<_> = counts.into_iter().map(|((choice, label), count)| (label, choice, count)).collect();
        all.sort_by_key(|&(_, choice, count)| (choice, Reverse(count)));
        all
    }

    /// Returns the settings to use and their gains, in sentences.
    #[must_use]
    pub fn decision(&self) -> Vec<String> {
        let [better, nothing, unknown] =
            [Choice::Better, Choice::NothingBetter, Choice::CannotTell].map(|choice| self.count(choice));
        let (all, phrase) = (self.volumes.len(), &self.phrase);
        let on = |count: usize| match count {
            _ if count == all && all == 1 => "the only volume".to_owned(),
            _ if count == all => format!("all {all} volumes"),
            _ => format!("{count} of {all} volumes"),
        };
        // Usually, all volumes have the same baseline.
        let baseline = |choice: Choice| {
            let of_choice = self.choices().into_iter().filter(|(_, known, _)| *known == choice).collect::<Vec<_>>();
            match of_choice[..] {
                [(label, ..)] => marked(label),
                _ => "the baseline".to_owned(),
            }
        };
        let changes: Vec<String> = self
            .choices()
            .into_iter()
            .filter(|(_, choice, _)| *choice == Choice::Better)
            .map(|(label, _, count)| format!("{} on {}", marked(label), on(count)))
            .collect();
        let mut sentences = Vec::new();
        if better > 0 {
            sentences.push(format!("Set {}. This clearly improves {phrase}.", changes.join("; ")));
        }
        if nothing > 0 {
            sentences.push(format!(
                "Keep {} on {}: no setting improves {phrase}.",
                baseline(Choice::NothingBetter),
                on(nothing)
            ));
        }
        if unknown > 0 {
            sentences.push(format!(
                "Keep {} on {} for now: there are too few runs to tell whether another setting improves {phrase}.",
                baseline(Choice::CannotTell),
                on(unknown)
            ));
        }
        sentences.push("Each pair of a workload and a device is called a volume.".to_owned());
        // If no gain shows a change, one setting for all volumes is the baseline.
        if self.gains.iter().any(|gain| !gain.is_same()) {
            sentences.extend(self.gains.iter().map(|gain| gain.sentence(phrase)));
        }
        sentences
    }

    /// Returns [`Self::decision`] in one line.
    #[must_use]
    pub fn answer(&self) -> String {
        self.decision().join(" ")
    }

    /// Returns the summary as an HTML page.
    #[must_use]
    pub fn html(&self) -> String {
        page::page(self)
    }
}

fn doubts(volumes: &[Volume], without: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    let single = volumes.iter().filter(|volume| volume.runs < 2).count();
    if single > 0 {
        sentences.push(format!(
            "{single} volumes have only one run of each setting, so iosched gives no verdict for these volumes, \
             and does not count them in any gain; give 2 or more runs"
        ));
    }
    if without > 0 {
        sentences.push(format!("{without} volumes do not have this metric, so the results leave them out"));
    }
    let few = volumes.iter().filter(|volume| volume.runs >= 2 && volume.choice == Choice::CannotTell).count();
    if few * 3 > volumes.len().max(1) {
        sentences.push(format!(
            "for {few} volumes, there are too few runs to tell whether another setting is better; give more runs"
        ));
    }
    let trusted = volumes.iter().filter(|volume| volume.doubts.is_some()).count();
    if trusted > 0 {
        sentences.push(format!(
            "there are additional doubts about {trusted} comparisons; the table of verdicts lists these doubts"
        ));
    }
    sentences
}
