//! The plan: the setting of a device, and the predicted results of each unit.

use iosched::{IoPriority, Setting};
use serde::{Deserialize, Serialize};

use crate::goal::WantedGoal;
use crate::target::Target;

/// A setting of a device, and the predicted results of each unit under this setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the program that made the plan.
    pub version: String,
    /// The device file, such as `/dev/sdb`. `None` for a plan of a modelled device.
    pub device: Option<String>,
    /// Name of the profile that the plan was made with.
    pub profile: String,
    /// The scheduler, its tunables, wbt, and the values of the units' controllers. These values
    /// name each cgroup as [`UnitPlan::cgroup`] does.
    pub setting: Setting,
    /// The units, in the order of the intents file.
    pub units: Vec<UnitPlan>,
}

/// The I/O priority and the predicted results of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitPlan {
    /// Name of the unit.
    pub name: String,
    /// The unit's counterpart on the machine, such as a cgroup.
    pub target: Target,
    /// Name of the unit's cgroup in [`Plan::setting`].
    pub cgroup: String,
    /// I/O priority of the unit's processes, if the plan sets one.
    #[serde(with = "priority_text", default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<IoPriority>,
    /// The predicted results, for each goal.
    pub goals: Vec<GoalOutcome>,
}

/// A goal with its predicted value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalOutcome {
    /// The goal.
    pub wanted: WantedGoal,
    /// The predicted value, in the unit of the goal.
    pub predicted: Interval,
    /// Whether the goal is met.
    pub outcome: Outcome,
}

/// A value with the interval in which it lies with 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub from: f64,
    /// Upper end.
    pub to: f64,
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval meets the goal.
    Met,
    /// The whole interval misses the goal.
    Missed,
    /// The interval contains the bound.
    CannotTell,
}

/// Stores an I/O priority as text, such as `be/4`.
mod priority_text {
    use iosched::IoPriority;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(priority: &Option<IoPriority>, serializer: S) -> Result<S::Ok, S::Error> {
        priority.map(|priority| priority.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IoPriority>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use iosched::{IoClass, Registry};

    use super::*;

    #[test]
    fn a_stored_plan_is_read_unchanged() {
        let wanted = WantedGoal { goal: "p99(read) < 5 ms".parse().unwrap(), hard: true };
        let predicted = Interval { value: 3.0, from: 2.5, to: 3.5 };
        let plan = Plan {
            version: "0.1.0".to_owned(),
            device: Some("/dev/sdb".to_owned()),
            profile: "ssd-sata".to_owned(),
            setting: Setting::parse("bfq:io.bfq.weight=db:200", &Registry::linux()).unwrap(),
            units: vec![UnitPlan {
                name: "db".to_owned(),
                target: "system.slice/postgresql.service".parse().unwrap(),
                cgroup: "db".to_owned(),
                priority: Some(IoPriority::new(IoClass::BestEffort, 2)),
                goals: vec![GoalOutcome { wanted, predicted, outcome: Outcome::Met }],
            }],
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{text}");
    }
}
