//! Published experiments as data: workloads, settings, machine and published figures.
//!
//! Each experiment is one TOML file, with the published figures in a CSV file. No parameter adjusts
//! the model to a single case.

use iosched::Setting;
use iosched_disk::Profile;
use serde::{Deserialize, Deserializer};

use super::assumptions::{Fitted, Unknown};
use super::goal::Goal;
use super::published::{self, PublishedFigure, PublishedSeries};
use crate::error::LabError;
use crate::machine::MachineProfile;

/// Name, description and published figures of each experiment, in the order of the documents.
const EMBEDDED: &[(&str, &str, &str)] = &[
    ("quantum", include_str!("../../experiments/quantum.toml"), include_str!("../../experiments/quantum.csv")),
    (
        "fsync-yield",
        include_str!("../../experiments/fsync-yield.toml"),
        include_str!("../../experiments/fsync-yield.csv"),
    ),
    ("dd", include_str!("../../experiments/dd.toml"), include_str!("../../experiments/dd.csv")),
    (
        "low-latency",
        include_str!("../../experiments/low-latency.toml"),
        include_str!("../../experiments/low-latency.csv"),
    ),
    ("tpcc", include_str!("../../experiments/tpcc.toml"), include_str!("../../experiments/tpcc.csv")),
    (
        "nvme-interference",
        include_str!("../../experiments/nvme-interference.toml"),
        include_str!("../../experiments/nvme-interference.csv"),
    ),
    ("start-up", include_str!("../../experiments/start-up.toml"), include_str!("../../experiments/start-up.csv")),
    ("streams", include_str!("../../experiments/streams.toml"), include_str!("../../experiments/streams.csv")),
    ("shares", include_str!("../../experiments/shares.toml"), include_str!("../../experiments/shares.csv")),
];

/// Family of published experiments with a common source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// CFQ and other schedulers of its time, measured with programs.
    #[default]
    Cfq,
    /// Schedulers and policies of current kernels, measured with fio.
    Today,
}

impl Family {
    /// All families, with their names.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Cfq, "cfq"), (Self::Today, "today")];

    /// Returns the family with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|&(_, family_name)| family_name == name).map(|(family, _)| family)
    }
}

/// Published experiment that can be reproduced in simulation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the experiment, such as `quantum`.
    #[serde(skip)]
    pub name: String,
    /// Family of the experiment.
    #[serde(default)]
    pub family: Family,
    /// Title: the comparison in a few words.
    pub title: String,
    /// Description in one or two sentences.
    pub about: String,
    /// Name of the machine, see [`MachineProfile::named`].
    pub machine: String,
    /// Label of the baseline.
    pub baseline: String,
    /// Settings that are compared.
    pub settings: Vec<Variant>,
    /// Workloads that run under each setting.
    pub cases: Vec<Case>,
    /// Relations between figures that the experiment must reproduce.
    #[serde(default)]
    pub goals: Vec<Goal>,
    /// Published series of values.
    #[serde(default)]
    pub series: Vec<PublishedSeries>,
    /// Values that the document does not state.
    #[serde(default)]
    pub unknowns: Vec<Unknown>,
    /// Parameters that were set so that the model meets published figures.
    #[serde(default)]
    pub fitted: Vec<Fitted>,
    /// Published figures.
    #[serde(skip)]
    pub published: Vec<PublishedFigure>,
}

/// Setting that a published experiment compares.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Label of the setting in the document.
    pub label: String,
    /// Explanation of the label, if it needs one.
    pub about: Option<String>,
    /// The scheduler of each disk, in the order of [`Case::devices`].
    #[serde(deserialize_with = "schedulers")]
    pub schedulers: Vec<Setting>,
}

/// A workload that runs under each setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the case, such as `iozone 1M`.
    pub name: String,
    /// Command of the workload (see `iosched_workload::app::Spec`), or the text of a fio job file.
    /// A job file begins with a section.
    pub workload: String,
    /// Command that runs while `workload` runs, and is not measured.
    pub background: Option<String>,
    /// Names of the profiles of the disks.
    pub devices: Vec<String>,
    /// Amount of data of each test, KiB. If the metrics of a test are rates, the time of the test
    /// follows from this amount.
    pub test_kib: Option<u64>,
}

fn schedulers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Setting>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

impl Experiment {
    /// Returns the names of all experiments, in the order of the documents.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, ..)| *name)
    }

    /// Returns the experiment with that name.
    ///
    /// # Errors
    /// There is no experiment with that name.
    pub fn named(name: &str) -> Result<Self, LabError> {
        match EMBEDDED.iter().find(|(known, ..)| *known == name) {
            Some((name, text, figures)) => Self::parse(name, text, figures),
            None => {
                let known = Self::names().chain(Family::ALL.map(|(_, name)| name)).collect();
                Err(LabError::UnknownExperiment { name: name.to_owned(), known })
            }
        }
    }

    /// Returns all experiments of the catalogue.
    ///
    /// # Errors
    /// Only if the data in this crate are invalid.
    pub fn all() -> Result<Vec<Self>, LabError> {
        EMBEDDED.iter().map(|(name, text, figures)| Self::parse(name, text, figures)).collect()
    }

    fn parse(name: &str, text: &str, figures: &str) -> Result<Self, LabError> {
        let data = |problem: String| LabError::Data { file: format!("{name}.toml"), problem };
        let mut experiment: Self = toml::from_str(text).map_err(|error| data(error.to_string()))?;
        name.clone_into(&mut experiment.name);
        experiment.published = published::figures(&format!("{name}.csv"), figures)?;
        match experiment.inconsistency() {
            None => Ok(experiment),
            Some(problem) => Err(data(problem)),
        }
    }

    /// Returns an error if a name in the experiment refers to nothing.
    fn inconsistency(&self) -> Option<String> {
        let setting = |label: &str| self.settings.iter().any(|known| known.label == label);
        let case = |name: &str| self.cases.iter().any(|known| known.name == name);
        if !setting(&self.baseline) {
            return Some(format!("the baseline {} is not a setting", self.baseline));
        }
        let places = self.published.iter().map(|published| (&published.case, &published.setting));
        let series = self.series.iter().map(|series| (&series.case, &series.setting));
        let goals = self.goals.iter().flat_map(Goal::places);
        for (name, label) in places.chain(series).chain(goals) {
            if !case(name) || !setting(label) {
                return Some(format!("the case {name} or the setting {label} does not exist"));
            }
        }
        if let Some(problem) = self.wrong_unknown() {
            return Some(problem);
        }
        for (case, setting) in
            self.cases.iter().flat_map(|case| self.settings.iter().map(move |setting| (case, setting)))
        {
            if case.devices.len() != setting.schedulers.len() {
                return Some(format!("{} does not have a scheduler for each disk of {}", setting.label, case.name));
            }
        }
        None
    }

    /// Returns the profile of the machine of the experiment.
    ///
    /// # Errors
    /// There is no machine with that name.
    pub fn machine(&self) -> Result<MachineProfile, LabError> {
        MachineProfile::named(&self.machine)
    }

    /// Returns the index of the baseline.
    #[must_use]
    pub fn baseline(&self) -> usize {
        self.settings.iter().position(|setting| setting.label == self.baseline).unwrap_or(0)
    }

    /// Returns the experiments with only the cases that have the name `text`. If there is no such
    /// case, returns the experiments with the cases whose name contains `text`.
    ///
    /// # Errors
    /// No case matches.
    pub fn with_cases(experiments: Vec<Self>, text: &str) -> Result<Vec<Self>, LabError> {
        let names = || experiments.iter().flat_map(|experiment| &experiment.cases).map(|case| &case.name);
        let exactly = names().any(|name| name == text);
        let wanted = |case: &Case| if exactly { case.name == text } else { case.name.contains(text) };
        let known: Vec<String> = names().cloned().collect();
        let chosen = experiments.into_iter().map(|mut experiment| {
            experiment.cases.retain(wanted);
            experiment
        });
        let chosen: Vec<Self> = chosen.filter(|experiment| !experiment.cases.is_empty()).collect();
        if chosen.is_empty() {
            return Err(LabError::UnknownCase { case: text.to_owned(), known });
        }
        Ok(chosen)
    }
}

impl Case {
    /// Returns the workload in one line: the command, or the sections of the job file.
    #[must_use]
    pub fn command(&self) -> String {
        if !self.workload.starts_with('[') {
            return self.workload.clone();
        }
        let sections = self.workload.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
        let jobs: Vec<&str> = sections.filter(|section| *section != "global").collect();
        format!("fio: {}", jobs.join(", "))
    }

    /// Returns the profiles of the disks.
    ///
    /// # Errors
    /// There is no profile with one of the names.
    pub fn profiles(&self) -> Result<Vec<Profile>, LabError> {
        let load = |name: &String| {
            Profile::named(name).map_err(|error| LabError::Data { file: self.name.clone(), problem: error.to_string() })
        };
        self.devices.iter().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_consistent_and_has_its_machine() {
        let all = Experiment::all().unwrap();
        assert_eq!(all.iter().filter(|experiment| experiment.family == Family::Cfq).count(), 5);
        assert_eq!(all.iter().filter(|experiment| experiment.family == Family::Today).count(), 4);
        for experiment in &all {
            experiment.machine().unwrap();
            let (figures, goals) = (!experiment.published.is_empty(), !experiment.goals.is_empty());
            assert!(figures || experiment.family == Family::Today, "{}", experiment.name);
            assert!(goals || experiment.name == "dd", "{}", experiment.name);
        }
    }

    #[test]
    fn names_of_cases_and_settings_are_unique() {
        for experiment in Experiment::all().unwrap() {
            let mut names: Vec<&str> = experiment.cases.iter().map(|case| case.name.as_str()).collect();
            names.extend(experiment.settings.iter().map(|setting| setting.label.as_str()));
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", experiment.name);
        }
    }

    #[test]
    fn cases_are_selected_by_part_of_their_name() {
        let chosen = |text: &str| {
            let chosen = Experiment::with_cases(Experiment::all().unwrap(), text);
            chosen.map(|chosen| chosen.iter().map(|experiment| experiment.cases.len()).sum::<usize>())
        };
        assert_eq!(chosen("fs_mark").unwrap(), 4);
        assert_eq!(chosen("fs_mark san").unwrap(), 1);
        assert_eq!(chosen("64k san").unwrap(), 2);
        let error = chosen("postmark").unwrap_err().to_string();
        assert!(error.contains("\"postmark\"") && error.contains("iozone 64k san"), "{error}");
    }

    #[test]
    fn experiment_with_unknown_names_is_refused() {
        let (_, text, figures) = EMBEDDED[2];
        let refused = |text: &str, figures: &str| Experiment::parse("x", text, figures).unwrap_err().to_string();
        assert!(refused(&text.replace("baseline = \"deadline\"", "baseline = \"bfq\""), figures).contains("bfq"));
        assert!(refused(text, &figures.replace("write,write,s,noop", "erase,write,s,noop")).contains("erase"));
        assert!(refused(&text.replace("[\"noop\"]", "[\"nop\"]"), figures).contains("there is no scheduler"));
        assert!(refused(&text.replace("[\"sata-desktop\"]", "[]"), figures).contains("a scheduler for each disk"));
        assert!(Experiment::named("postmark").unwrap_err().to_string().contains("low-latency"));
    }
}
