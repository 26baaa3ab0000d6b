//! A candidate of the search: values of a setting, and priorities of units.

use std::collections::BTreeMap;

use iosched::{IoClass, IoPriority, Setting, SettingError};
use iosched_advise::io_cost::IoCost;

/// io.cost's bounds on the rate of virtual time, per cent, as words of io.cost.qos.
const VRATE: &str = "min=50.00/max=150.00";
/// Share of I/Os whose latency should be within io.cost's QoS latency, per cent.
const QOS_PERCENT: u32 = 95;
/// Largest weights that bfq and io.weight accept.
const BFQ_WEIGHT_MAX: u32 = 1_000;
const IO_WEIGHT_MAX: u32 = 10_000;

/// I/O priority that a candidate gives to the processes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    RealTime,
    Idle,
}

impl Priority {
    pub(crate) fn ioprio(self) -> IoPriority {
        match self {
            Self::RealTime => IoPriority::new(IoClass::RealTime, 4),
            Self::Idle => IoPriority::new(IoClass::Idle, 7),
        }
    }

    pub(crate) fn of(ioprio: IoPriority) -> Option<Self> {
        [Self::RealTime, Self::Idle].into_iter().find(|known| known.ioprio().class() == ioprio.class())
    }
}

/// Values of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnitValues {
    /// Weight of the unit's cgroup, if the scheduler or io.cost uses weights.
    pub(crate) weight: Option<u32>,
    /// Words of io.max: rbps, wbps, riops, wiops.
    pub(crate) caps: [Option<u64>; 4],
    /// Target of io.latency, us.
    pub(crate) target_us: Option<u64>,
    /// Class of io.prio.class.
    pub(crate) class: Option<&'static str>,
    /// I/O priority of the processes.
    pub(crate) priority: Option<Priority>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) scheduler: &'static str,
    /// Tunables and attributes of the queue.
    pub(crate) values: BTreeMap<String, u64>,
    /// Latency of io.cost's QoS, us. `None` if io.cost is off.
    pub(crate) cost_us: Option<u64>,
    pub(crate) units: Vec<UnitValues>,
}

pub(crate) const CAPS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

impl Candidate {
    pub(crate) fn plain(scheduler: &'static str, units: usize) -> Self {
        Self { scheduler, values: BTreeMap::new(), cost_us: None, units: vec![UnitValues::default(); units] }
    }

    /// Returns whether weights have an effect.
    pub(crate) fn uses_weights(&self) -> bool {
        self.cost_us.is_some() || self.scheduler == "bfq"
    }

    /// Returns the number of values that are set.
    pub(crate) fn changes(&self) -> usize {
        let of_unit = |unit: &UnitValues| {
            unit.caps.iter().flatten().count()
                + usize::from(unit.target_us.is_some())
                + usize::from(unit.class.is_some())
                + usize::from(unit.priority.is_some())
                + usize::from(unit.weight.is_some() && self.uses_weights())
        };
        self.values.len() + usize::from(self.cost_us.is_some()) + self.units.iter().map(of_unit).sum::<usize>()
    }

    /// Returns the setting. `names` has the name of each unit's cgroup, or `None` for a unit
    /// without a cgroup. The setting leaves out the values of units without a cgroup.
    ///
    /// # Errors
    /// If the scheduler refuses a value.
    pub(crate) fn setting(&self, names: &[Option<&str>], io_cost: &IoCost) -> Result<Setting, SettingError> {
        let mut setting = Setting::defaults(self.scheduler);
        for (name, value) in &self.values {
            setting.set(name, &value.to_string())?;
        }
        let file = |value_of: &dyn Fn(&UnitValues) -> Option<String>| {
            let parts = names
                .iter()
                .zip(&self.units)
                .filter_map(|(name, unit)| Some(format!("{}:{}", (*name)?, value_of(unit)?)));
            let text = parts.collect::<Vec<_>>().join("+");
            (!text.is_empty()).then_some(text)
        };
        let caps = |unit: &UnitValues| {
            let words = CAPS.iter().zip(unit.caps).filter_map(|(word, cap)| Some(format!("{word}={}", cap?)));
            let words = words.collect::<Vec<_>>().join("/");
            (!words.is_empty()).then_some(words)
        };
        if let Some(text) = file(&caps) {
            setting.set("io.max", &text)?;
        }
        if let Some(text) = file(&|unit| Some(format!("target={}", unit.target_us?))) {
            setting.set("io.latency", &text)?;
        }
        if let Some(us) = self.cost_us {
            setting.set("io.cost.model", &io_cost.model.to_string().replace(' ', "/"))?;
            let qos = format!("enable=1/rpct={QOS_PERCENT}/rlat={us}/wpct={QOS_PERCENT}/wlat={us}/{VRATE}");
            setting.set("io.cost.qos", &qos)?;
            if let Some(text) = file(&|unit| Some(unit.weight?.min(IO_WEIGHT_MAX).to_string())) {
                setting.set("io.weight", &text)?;
            }
        }
        if self.scheduler == "bfq"
            && let Some(text) = file(&|unit| Some(unit.weight?.min(BFQ_WEIGHT_MAX).to_string()))
        {
            setting.set("io.bfq.weight", &text)?;
        }
        if let Some(text) = file(&|unit| unit.class.map(str::to_owned)) {
            setting.set("io.prio.class", &text)?;
        }
        Ok(setting)
    }
}

#[cfg(test)]
mod tests {
    use iosched_disk::Profile;

    use super::*;

    #[test]
    fn values_of_units_become_one_setting() {
        let io_cost = IoCost::of_profile(&Profile::named("sata-ssd").unwrap());
        let mut candidate = Candidate::plain("mq-deadline", 2);
        candidate.values.insert("nr_requests".into(), 32);
        candidate.units[0] = UnitValues { weight: Some(800), target_us: Some(2000), ..UnitValues::default() };
        candidate.units[1].caps = [None, Some(50_000_000), None, Some(100)];
        candidate.units[1].class = Some("idle");
        let text =
            |candidate: &Candidate| candidate.setting(&[Some("db"), Some("backup")], &io_cost).unwrap().to_string();
        assert_eq!(
            text(&candidate),
            "mq-deadline:nr_requests=32,io.max=backup:wbps=50000000/wiops=100,io.latency=db:target=2000,\
             io.prio.class=backup:idle"
        );
        assert_eq!(candidate.changes(), 5);
        candidate.cost_us = Some(4000);
        assert!(text(&candidate).contains("rlat=4000") && text(&candidate).contains("io.weight=db:800"));
        candidate.scheduler = "bfq";
        candidate.values.clear();
        candidate.cost_us = None;
        assert!(text(&candidate).contains("io.bfq.weight=db:800"));
    }
}
