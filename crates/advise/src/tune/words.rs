//! Sentences about a search, except its decision: doubts, and how to apply the recommendation.

use iosched::{Setting, controllers};
use iosched_kernel::settings::{Named, OfControllers};
use iosched_lab::request::quoted;
use iosched_lab::{
    BrokenConstraint, Comparison, Decision, DecisionKind, Doubt, Header, RUNS_WORTH, listed, marked, significant,
};

use super::controllers::Controller;
use super::results::{Finding, Standing, TuneResults};

impl TuneResults<'_> {
    /// Returns whether a setting other than the baseline is recommended.
    #[must_use]
    pub const fn recommends(&self) -> bool {
        matches!(self.finding, Finding::Better | Finding::Allowed)
    }

    /// Returns the names of the goals, such as "p99(sync) and throughput".
    #[must_use]
    pub fn goal_names(&self) -> String {
        let names: Vec<&str> =
            self.header.measures[..self.header.goals].iter().map(|measure| measure.name.as_str()).collect();
        names.join(" and ")
    }

    /// Returns the comparison of a setting with the baseline in each goal, in words, such as
    /// "p99(sync) better by 12 % (8 to 15 %)".
    #[must_use]
    pub fn against_baseline(&self, standing: &Standing) -> String {
        let against = |goal: usize| {
            let comparison = standing.figures[goal].as_ref()?.comparison.as_ref()?;
            let measure = &self.header.measures[goal];
            Some(format!("{} {}", measure.name, measure.describe(comparison)))
        };
        let all: Vec<String> = (0..self.header.goals).filter_map(against).collect();
        all.join(", ")
    }

    /// Returns the doubts about the results, in sentences.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if !self.header.workload.missing.is_empty() {
            doubts.push(iosched_lab::incomplete(&self.header.workload.missing));
        }
        doubts.extend(self.left_out());
        if !self.header.seeds_matter {
            doubts.push(
                "all seeds give the same runs, so differences are exact for this workload. A slightly different \
                 workload may behave differently"
                    .to_owned(),
            );
        }
        doubts.extend(self.model_error());
        if self.finding == Finding::CannotTell
            && let Some((open, runs)) = self.more_runs()
        {
            doubts.push(format!(
                "more runs may show {open}; give a larger --budget, or use iosched compare --runs{runs}"
            ));
        }
        if let Some(best) = self.recommended() {
            doubts.extend(self.unsure_constraints(best));
            doubts.extend(self.at_the_end(best));
        }
        if self.recommends() && self.put_back.iter().any(|removed| removed.comparisons.is_empty()) {
            doubts.push(format!(
                "the budget was too small to test whether the setting needs each of its changed values; give --budget \
                 {}",
                self.header.budget * 2
            ));
        }
        doubts
    }

    /// Returns a sentence about controllers that were left out, with a remedy.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let names: Vec<String> = self.header.left_out.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the search leaves out the controllers {}. These controllers need cgroups, but {} has no cgroups. To \
                 try these controllers, put the jobs of the workload into cgroups (cgroup= of a fio job, cgroup of a \
                 task)",
                listed(&names, "and"),
                self.header.workload.name
            )
        })
    }

    /// Returns the setting that may be better, with its goal and the undecided comparison.
    fn unsure_comparison(&self) -> Option<(&Standing, usize, &Comparison)> {
        let (number, goal) = self.unsure?;
        let standing = &self.standings[number];
        Some((standing, goal, standing.figures[goal].as_ref()?.comparison.as_ref()?))
    }

    /// Returns the open question about the setting that may be better. Also returns a text with the
    /// number of runs of each setting that would answer the question. This text begins with a
    /// space. It is empty if so many runs are not practical. Other undecided comparisons may need
    /// more runs.
    pub(crate) fn more_runs(&self) -> Option<(String, String)> {
        let (standing, goal, comparison) = self.unsure_comparison()?;
        let runs = comparison.runs_needed.filter(|&runs| runs <= RUNS_WORTH);
        Some((
            format!("whether {} is better in {}", marked(&standing.label), self.header.measures[goal].name),
            runs.map_or_else(String::new, |runs| format!(" {runs}")),
        ))
    }

    /// Returns a sentence about the known error of the model.
    pub(crate) fn model_error(&self) -> Option<String> {
        self.header.device.fit.map(|fit| Doubt::ModelError { name: self.header.device.name.clone(), fit }.to_string())
    }

    /// Returns sentences about constraints that the setting keeps only on average.
    pub(crate) fn unsure_constraints(&self, best: &Standing) -> Vec<String> {
        let constraints = self.header.constraints.iter().zip(&best.constraints);
        let unsure = constraints.filter(|(_, constraint)| constraint.kept && !constraint.sure);
        unsure
            .map(|(record, constraint)| {
                let unit = &self.header.measures[record.measure].unit;
                format!(
                    "on average, the setting meets the constraint {} (the mean is {}, the limit is {} {unit}), but \
                     single runs may break the constraint",
                    record.text,
                    significant(constraint.value, 3),
                    significant(constraint.limit, 3)
                )
            })
            .collect()
    }

    /// Returns a sentence about recommended values that are the smallest or largest tried value.
    fn at_the_end(&self, best: &Standing) -> Option<String> {
        let point = self.header.space.point(&best.setting)?;
        let dimensions = &self.header.space.elevators[point.elevator].dimensions;
        let at_end = dimensions.iter().zip(&point.levels).filter(|(dimension, level)| {
            let is_switch = dimension.values.len() == 2;
            // 0 does not count as an end, because no value is below it.
            let last = **level + 1 == dimension.values.len();
            let first = **level == 0 && dimension.values[0] > 1;
            **level != dimension.default && !is_switch && (first || last)
        });
        let names: Vec<String> =
            at_end.map(|(dimension, &level)| format!("{}={}", dimension.name, dimension.text(level))).collect();
        if names.is_empty() {
            return None;
        }
        Some(format!(
            "{} is the lowest or the highest value that iosched tried; values beyond it may be better",
            names.join(", ")
        ))
    }

    /// Returns the constraints that a setting breaks, with its values.
    #[must_use]
    pub fn broken_by(&self, standing: &Standing) -> Vec<BrokenConstraint> {
        let broken =
            self.header.constraints.iter().zip(&standing.constraints).filter(|(_, constraint)| !constraint.kept);
        let described = broken.map(|(record, constraint)| {
            let unit = &self.header.measures[record.measure].unit;
            let value = format!("{} {unit}", significant(constraint.value, 3));
            BrokenConstraint { constraint: record.text.clone(), value }
        });
        described.collect()
    }
}

/// A disk whose name is in the variable `$DEV`.
const DEV: Named<'_> = Named { node: "/dev/$DEV", number: "$(cat /sys/block/$DEV/dev)" };
/// Command that restores the kernel's default of wbt.
const WBT_DEFAULT: &str = "echo -1 > /sys/block/$DEV/queue/wbt_lat_usec";

/// Returns the names and values of the files below `queue`, the scheduler first.
fn of_queue(setting: &Setting) -> Vec<(String, String)> {
    let scheduler = ("scheduler".to_owned(), setting.name().to_owned());
    let tunables = setting.tunables().iter().map(|tunable| (format!("iosched/{}", tunable.name()), tunable.text()));
    let attributes = setting.attributes().iter().filter(|attribute| !controllers::is_file(attribute.name()));
    let attributes = attributes.map(|attribute| (attribute.name().to_owned(), attribute.text()));
    [scheduler].into_iter().chain(tunables).chain(attributes).collect()
}

/// Returns the commands, for root, that apply a setting to the disk in `$DEV`. If the elevator is
/// not in Linux, the command serves the disk with this elevator.
#[must_use]
pub fn commands(setting: &Setting) -> Vec<String> {
    if !setting.is_in_linux() {
        return vec![format!("iosched serve /dev/$DEV --scheduler {}", quoted(&setting.to_string()))];
    }
    let of_queue = of_queue(setting).into_iter();
    let of_queue = of_queue.map(|(name, value)| format!("echo {value} > /sys/block/$DEV/queue/{name}"));
    of_queue.chain(OfControllers::of(setting).commands(DEV)).collect()
}

/// Comment before commands: the required rights, and the meaning of `$DEV`.
const RIGHTS_AND_DEV: &str = "as root; DEV is the name of the disk, such as sda";

/// Returns [`commands`] after a comment that explains the required rights and `$DEV`.
#[must_use]
pub fn commands_explained(setting: &Setting) -> Vec<String> {
    [format!("# {RIGHTS_AND_DEV}")].into_iter().chain(commands(setting)).collect()
}

/// Returns the commands that apply a decision, with comments. If the decision is a choice between
/// two settings, returns the commands of both. Empty if the decision keeps the baseline.
#[must_use]
pub fn commands_of(decision: &Decision, header: &Header) -> Vec<String> {
    if !matches!(decision.kind, DecisionKind::Change | DecisionKind::Trade) {
        return Vec::new();
    }
    let kernel = |number: usize| header.settings[number].setting.kernel();
    // No command changes the version of Linux.
    let can = |number: &usize| *number != header.baseline && kernel(*number) == kernel(header.baseline);
    let settings: Vec<usize> = [decision.setting, decision.otherwise].into_iter().flatten().filter(can).collect();
    let of = |(place, &number): (usize, &usize)| {
        let record = &header.settings[number];
        if decision.kind == DecisionKind::Change {
            return commands_explained(&record.setting);
        }
        let explained = if place == 0 { format!(", {RIGHTS_AND_DEV}") } else { String::new() };
        [format!("# for {}{explained}", record.label)].into_iter().chain(commands(&record.setting)).collect()
    };
    settings.iter().enumerate().flat_map(of).collect()
}

/// Returns titles and lines that make a setting with controllers permanent on the disk in `$DEV`,
/// and titles and lines that undo this change. Empty for a setting without controllers. `before` is
/// the setting before the change.
#[must_use]
pub fn lasting(setting: &Setting, before: &Setting) -> Vec<(String, Vec<String>)> {
    if Controller::used_by(setting).is_empty() || !setting.is_in_linux() {
        return Vec::new();
    }
    let controllers = OfControllers::of(setting);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let drop_ins = controllers.drop_ins(DEV).into_iter();
    let mut parts: Vec<(String, Vec<String>)> = drop_ins
        .map(|drop_in| {
            let title = format!(
                "to apply the setting at every boot, write this text to {}, with the name of the disk instead of $DEV:",
                drop_in.path
            );
            (title, lines(&drop_in.text))
        })
        .collect();
    let attributes = of_queue(setting).into_iter().map(|(name, value)| format!(", ATTR{{queue/{name}}}=\"{value}\""));
    let rule = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", KERNEL==\"$DEV\"{}{}",
        attributes.collect::<String>(),
        controllers.rule_parts()
    );
    let rules = "/etc/udev/rules.d/90-iosched-$DEV.rules";
    parts.push((format!("and write this text to {rules}, with the name of the disk instead of $DEV:"), vec![rule]));
    let mut undo = vec![format!("rm -f {rules}")];
    if setting.name() != before.name() {
        undo.push(format!("echo {} > /sys/block/$DEV/queue/scheduler", before.name()));
    }
    if Controller::used_by(setting).contains(&Controller::Wbt) {
        undo.push(WBT_DEFAULT.to_owned());
    }
    undo.extend(controllers.undo(DEV));
    parts.push(("to undo the change:".to_owned(), undo));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_apply_the_setting() {
        let setting = "bfq:slice_idle=0,nr_requests=512".parse().unwrap();
        assert_eq!(
            commands(&setting),
            [
                "echo bfq > /sys/block/$DEV/queue/scheduler",
                "echo 0 > /sys/block/$DEV/queue/iosched/slice_idle",
                "echo 512 > /sys/block/$DEV/queue/nr_requests"
            ]
        );
        let served = commands(&"cfq-2.6.34:slice_idle=0".parse().unwrap());
        assert_eq!(served.len(), 1);
        assert!(served[0].starts_with("iosched serve ") && served[0].contains("cfq-2.6.34:slice_idle=0"), "{served:?}");
        assert_eq!(commands(&Setting::defaults("none")), ["echo none > /sys/block/$DEV/queue/scheduler"]);
    }

    #[test]
    fn controller_settings_have_persist_and_undo_commands() {
        let setting = "mq-deadline:wbt_lat_usec=2000,io.max=backup:wbps=1000000".parse().unwrap();
        assert_eq!(
            commands(&setting)[2],
            "systemctl set-property --runtime backup.service \"IOWriteBandwidthMax=/dev/$DEV 1000000\""
        );
        let parts = lasting(&setting, &Setting::defaults("none"));
        assert_eq!(
            parts[0].0,
            "to apply the setting at every boot, write this text to \
             /etc/systemd/system/backup.service.d/50-iosched.conf, with the name of the disk instead of $DEV:"
        );
        assert_eq!(parts[0].1, ["[Service]", "IOWriteBandwidthMax=/dev/$DEV 1000000"]);
        assert!(parts[1].1[0].ends_with("ATTR{queue/scheduler}=\"mq-deadline\", ATTR{queue/wbt_lat_usec}=\"2000\""));
        let undo = &parts[2].1;
        assert_eq!(undo[1..3], ["echo none > /sys/block/$DEV/queue/scheduler", WBT_DEFAULT]);
        assert_eq!(undo[3], "systemctl set-property --runtime backup.service IOWriteBandwidthMax=");
        assert!(lasting(&Setting::defaults("bfq"), &Setting::defaults("none")).is_empty());
    }
}
