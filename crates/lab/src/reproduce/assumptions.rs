//! What documents do not say: unknowns, each with the values it may have, and parameters that were fitted to published
//! figures.
//!
//! The first value of an unknown is the one that is taken. Runs with the others show over which band figures move, and
//! whether a verdict hangs on it.

use serde::Deserialize;

use super::catalogue::{Case, Experiment};
use super::run::BAND_RUNS;
use crate::error::LabError;
use crate::machine::{MachineProfile, merge};

/// Something a document does not say and figures depend on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// In a few words: `size of the file system`.
    pub name: String,
    /// Why nobody knows, and why the first value is taken.
    pub about: String,
    /// Names of the cases that depend on it.
    pub cases: Vec<String>,
    /// What it may be: the one that is taken, and the ends of its range.
    pub values: Vec<UnknownValue>,
}

/// What an unknown may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnknownValue {
    /// In a few words: `20 GB`.
    pub label: String,
    /// What it changes of the machine's description.
    #[serde(default)]
    machine: toml::Table,
    /// The command that is run instead.
    workload: Option<String>,
    /// The disks that it is run on instead.
    devices: Option<Vec<String>>,
}

/// A parameter that was set so that the model meets published figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// Where it is and how it is called.
    pub parameter: String,
    /// What it was set to, with its unit.
    pub value: String,
    /// The figures it was set to meet.
    pub to: String,
}

/// A case with every unknown decided.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    /// What is not as it is usually taken; `None`: nothing.
    pub(super) assumption: Option<String>,
    pub(super) case: Case,
    pub(super) machine: MachineProfile,
}

impl Experiment {
    /// `case` with all unknowns as they are taken, and then with each of the other values in turn.
    pub(super) fn decided(&self, case: &Case) -> Result<Vec<Decided>, LabError> {
        let unknowns: Vec<&Unknown> = self.unknowns.iter().filter(|own| own.cases.contains(&case.name)).collect();
        let others = unknowns.iter().enumerate().flat_map(|(number, unknown)| {
            let values = unknown.values.iter().skip(1);
            values.map(move |value| (number, value, Some(format!("{}: {}", unknown.name, value.label))))
        });
        let mut all = vec![self.decide(case, None, unknowns.iter().filter_map(|own| own.values.first()))?];
        for (number, other, assumption) in others {
            let values = unknowns.iter().enumerate().filter_map(|(own, unknown)| match own == number {
                true => Some(other),
                false => unknown.values.first(),
            });
            all.push(self.decide(case, assumption, values)?);
        }
        Ok(all)
    }

    /// All runs of it, if each case is run so many times under each setting: those over unknowns are among them.
    #[must_use]
    pub fn runs_planned(&self, runs: u32) -> usize {
        let others = |case: &Case| {
            let unknowns = self.unknowns.iter().filter(|own| own.cases.contains(&case.name));
            unknowns.map(|own| own.values.len() - 1).sum::<usize>()
        };
        let of_case = |case: &Case| runs as usize + others(case) * runs.min(BAND_RUNS) as usize;
        self.cases.iter().map(of_case).sum::<usize>() * self.settings.len()
    }

    fn decide<'a>(
        &self,
        case: &Case,
        assumption: Option<String>,
        values: impl Iterator<Item = &'a UnknownValue>,
    ) -> Result<Decided, LabError> {
        let (mut case, mut changes) = (case.clone(), toml::Table::new());
        for value in values {
            merge(&mut changes, &value.machine);
            if let Some(workload) = &value.workload {
                case.workload.clone_from(workload);
            }
            if let Some(devices) = &value.devices {
                case.devices.clone_from(devices);
            }
        }
        Ok(Decided { assumption, case, machine: MachineProfile::changed(&self.machine, &changes)? })
    }

    /// What is wrong with the unknowns, if anything is.
    pub(super) fn wrong_unknown(&self) -> Option<String> {
        self.unknowns.iter().find_map(|unknown| {
            let missing = unknown.cases.iter().find(|name| !self.cases.iter().any(|case| case.name == **name));
            match missing {
                Some(case) => Some(format!("{} is about {case}, which is not a case", unknown.name)),
                None if unknown.values.len() < 2 => Some(format!("{} has fewer than two values", unknown.name)),
                None => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_merged_key_by_key() {
        let table = |text: &str| text.parse::<toml::Table>().unwrap();
        let mut own = table("hz = 100\n[vm]\na = 1\nb = 2\n");
        merge(&mut own, &table("[vm]\nb = 3\n[file_system]\nc = 4\n"));
        assert_eq!(own, table("hz = 100\n[vm]\na = 1\nb = 3\n[file_system]\nc = 4\n"));
    }

    #[test]
    fn every_value_of_every_unknown_can_be_decided() {
        for experiment in Experiment::all().unwrap() {
            for case in &experiment.cases {
                let decided = experiment.decided(case).unwrap();
                let unknowns = experiment.unknowns.iter().filter(|own| own.cases.contains(&case.name));
                assert_eq!(decided.len(), 1 + unknowns.map(|own| own.values.len() - 1).sum::<usize>());
                assert!(decided[0].assumption.is_none() && decided[1..].iter().all(|own| own.assumption.is_some()));
            }
        }
    }

    #[test]
    fn a_value_changes_the_machine() {
        let experiment = Experiment::named("quantum").unwrap();
        let case = experiment.cases.iter().find(|case| case.name == "fdtree large_deep").unwrap();
        let percents: Vec<Option<u32>> = experiment
            .decided(case)
            .unwrap()
            .iter()
            .map(|own| own.machine.machine.file_system.directory_percent)
            .collect();
        assert_eq!(percents, [Some(50), Some(0), Some(100)]);
    }
}
