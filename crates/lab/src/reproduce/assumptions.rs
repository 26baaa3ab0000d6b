//! Unknowns and fitted parameters of published experiments. An unknown is a value that the document
//! does not state. A fitted parameter was set so that the model meets published figures.
//!
//! Each unknown lists its possible values. The first one is the usual assumption. Runs with the
//! other values show the band of each metric, and whether a verdict depends on the unknown.

use serde::Deserialize;

use super::catalogue::{Case, Experiment};
use super::run::BAND_RUNS;
use crate::error::LabError;
use crate::machine::{MachineProfile, merge};

/// A value that a document does not state and that metrics depend on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Name of the unknown, such as `size of the file system`.
    pub name: String,
    /// Reason why it is unknown, and why the first value is assumed.
    pub about: String,
    /// Names of the cases that depend on it.
    pub cases: Vec<String>,
    /// Possible values: first the assumed value, then the ends of the range.
    pub values: Vec<UnknownValue>,
}

/// A possible value of an unknown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnknownValue {
    /// Name of the value, such as `20 GB`.
    pub label: String,
    /// Changes to the machine's description.
    #[serde(default)]
    machine: toml::Table,
    /// Command that replaces the case's workload.
    workload: Option<String>,
    /// Disks that replace the case's disks.
    devices: Option<Vec<String>>,
}

/// A parameter that was set so that the model meets published figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// Place and name of the parameter.
    pub parameter: String,
    /// Value, with its unit.
    pub value: String,
    /// Published figures to which the parameter was fitted.
    pub to: String,
}

/// A case with a value for every unknown.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    /// The assumption that is not the usual one; `None` if all assumptions are the usual ones.
    pub(super) assumption: Option<String>,
    pub(super) case: Case,
    pub(super) machine: MachineProfile,
}

impl Experiment {
    /// Returns `case` with the usual value of every unknown, and then once with each other value.
    pub(super) fn decided(&self, case: &Case) -> Result<Vec<Decided>, LabError> {
        let unknowns: Vec<&Unknown> =
            self.unknowns.iter().filter(|unknown| unknown.cases.contains(&case.name)).collect();
        let others = unknowns.iter().enumerate().flat_map(|(number, unknown)| {
            let values = unknown.values.iter().skip(1);
            values.map(move |value| (number, value, Some(format!("{}: {}", unknown.name, value.label))))
        });
        let mut all = vec![self.decide(case, None, unknowns.iter().filter_map(|unknown| unknown.values.first()))?];
        for (number, other, assumption) in others {
            let values = unknowns.iter().enumerate().filter_map(|(place, unknown)| match place == number {
                true => Some(other),
                false => unknown.values.first(),
            });
            all.push(self.decide(case, assumption, values)?);
        }
        Ok(all)
    }

    /// Returns the number of all runs, including the runs with other values of unknowns. `runs` is
    /// the number of runs of each case under each setting with the usual assumptions.
    #[must_use]
    pub fn runs_planned(&self, runs: u32) -> usize {
        let others = |case: &Case| {
            let unknowns = self.unknowns.iter().filter(|unknown| unknown.cases.contains(&case.name));
            unknowns.map(|unknown| unknown.values.len() - 1).sum::<usize>()
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

    /// Returns an error in the unknowns, if there is one.
    pub(super) fn wrong_unknown(&self) -> Option<String> {
        self.unknowns.iter().find_map(|unknown| {
            let missing = unknown.cases.iter().find(|name| !self.cases.iter().any(|case| case.name == **name));
            match missing {
                Some(case) => {
                    Some(format!("{} names the case {case}, but there is no case with this name", unknown.name))
                }
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
        let mut table_of_case = table("hz = 100\n[vm]\na = 1\nb = 2\n");
        merge(&mut table_of_case, &table("[vm]\nb = 3\n[file_system]\nc = 4\n"));
        assert_eq!(table_of_case, table("hz = 100\n[vm]\na = 1\nb = 3\n[file_system]\nc = 4\n"));
    }

    #[test]
    fn cases_are_decided_for_every_value_of_their_unknowns() {
        for experiment in Experiment::all().unwrap() {
            for case in &experiment.cases {
                let decided = experiment.decided(case).unwrap();
                let unknowns = experiment.unknowns.iter().filter(|unknown| unknown.cases.contains(&case.name));
                assert_eq!(decided.len(), 1 + unknowns.map(|unknown| unknown.values.len() - 1).sum::<usize>());
                assert!(
                    decided[0].assumption.is_none()
                        && decided[1..].iter().all(|decided_case| decided_case.assumption.is_some())
                );
            }
        }
    }

    #[test]
    fn value_of_an_unknown_changes_the_machine() {
        let experiment = Experiment::named("quantum").unwrap();
        let case = experiment.cases.iter().find(|case| case.name == "fdtree large_deep").unwrap();
        let percents: Vec<Option<u32>> = experiment
            .decided(case)
            .unwrap()
            .iter()
            .map(|decided_case| decided_case.machine.machine.file_system.directory_percent)
            .collect();
        assert_eq!(percents, [Some(50), Some(0), Some(100)]);
    }
}
