//! Settings: reading and writing of files, the assumed kind of
//! device, and the resulting costs and periods.

use super::IoCost;
use super::clock::{Clock, MICROSECOND};
use super::files::{self, IoCostFile, Model, Owned, Percent, Qos, Weight};
use super::group::{WEIGHT_DEFAULT, WEIGHT_UNIT};
use super::model::BioCosts;
use super::table::Table;
use crate::context::CgroupId;
use crate::controllers::site::Site;
use crate::controllers::write_error::WriteError;
use crate::time::{SECOND_NS, Time};

/// Parts per million in a whole.
pub(super) const PPM: u32 = 1_000_000;
/// Time after which another kind of device is assumed, ns, if the rate stays far too high or low.
const FAR_OFF_NS: u64 = 10 * SECOND_NS;

/// Settings of a device, and the values that follow from them.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    rotational: bool,
    depth: u32,
    /// Whether a file of the device was ever written.
    touched: bool,
    pub(super) on: bool,
    pub(super) qos: Owned<Qos>,
    pub(super) model: Owned<Model>,
    /// Assumed kind of device.
    table: Option<Table>,
    /// Start of the time in which the device seems to be faster flash than assumed, and the same
    /// for slower flash.
    fast_since: Option<Time>,
    slow_since: Option<Time>,
    /// Costs of reads and writes.
    pub(super) costs: [BioCosts; 2],
    /// Lowest and highest rate of virtual time, per µs.
    pub(super) bounds: [u64; 2],
}

impl Settings {
    pub(super) fn new(rotational: bool, depth: u32) -> Self {
        Self {
            rotational,
            depth,
            touched: false,
            on: false,
            qos: Owned { value: Table::Flash.qos(), by_user: false },
            model: Owned { value: Table::Flash.model(), by_user: false },
            table: None,
            fast_since: None,
            slow_since: None,
            costs: [BioCosts::default(); 2],
            bounds: [MICROSECOND; 2],
        }
    }

    /// Returns the kind of device to assume at `now`, with the rate `base` of virtual time.
    fn choose_table(&mut self, now: Time, base: u64) -> Table {
        if self.rotational {
            return Table::Disk;
        }
        if self.depth == 1 {
            return Table::OneRequest;
        }
        let Some(flash @ (Table::Flash | Table::FastFlash)) = self.table else { return Table::Flash };
        if self.qos.by_user || self.model.by_user {
            return flash;
        }
        let percent = base * 100 / MICROSECOND;
        if lasts(&mut self.fast_since, flash == Table::Flash && percent >= 500, now) {
            return Table::FastFlash;
        }
        if lasts(&mut self.slow_since, flash == Table::FastFlash && percent <= 10, now) {
            return Table::Flash;
        }
        flash
    }

    /// Updates the assumed kind of device. If the kind changed, or if `anyway` is set, computes the
    /// values that follow from the settings.
    pub(super) fn refresh(&mut self, now: Time, clock: &mut Clock, anyway: bool) {
        let table = self.choose_table(now, clock.base);
        let is_new = self.table != Some(table);
        if !is_new && !anyway {
            return;
        }
        if is_new {
            (clock.base, clock.rate) = (MICROSECOND, MICROSECOND);
        }
        self.table = Some(table);
        (self.fast_since, self.slow_since) = (None, None);
        if !self.qos.by_user {
            self.qos.value = table.qos();
        }
        if !self.model.by_user {
            self.model.value = table.model();
        }
        let qos = &self.qos.value;
        clock.period_us = period_us(qos);
        self.costs = self.model.value.0.each_ref().map(BioCosts::of);
        let rate = |ppm: u32| (u64::from(ppm) * MICROSECOND).div_ceil(PPM.into());
        self.bounds = [rate(qos.slowest_ppm), rate(qos.fastest_ppm)];
    }
}

/// Returns whether `holds` has been true for long enough. `since` is the start of that time.
fn lasts(since: &mut Option<Time>, holds: bool, now: Time) -> bool {
    if !holds {
        *since = None;
        return false;
    }
    now.since(*since.get_or_insert(now)) >= FAR_OFF_NS
}

/// Returns the length of a period, µs: at least twice the longer latency target, so that a period
/// contains requests that may miss the target.
fn period_us(qos: &Qos) -> u64 {
    let longer = usize::from(qos.target_us[1] > qos.target_us[0]);
    let ppm = qos.target_ppm[longer];
    let times = if ppm > 0 { ((PPM - ppm.min(PPM)) / 50_000).max(2) } else { 2 };
    u64::from(times.wrapping_mul(qos.target_us[longer]).clamp(1_000, 1_000_000))
}

impl IoCost {
    /// Writes a file. The texts of `io.cost.qos` and `io.cost.model` (of the root) come without the
    /// number of the device. The text of `io.weight` (of other groups) is complete. The host
    /// selects the device by its number.
    ///
    /// The first write of qos or model also creates the controller,
    /// which is off until `enable=1` is written.
    ///
    /// # Errors
    /// Fails if the file refuses `text`, does not belong to this group, or
    /// cannot be written. Nothing changes then.
    pub fn write(&mut self, site: &mut Site, file: IoCostFile, group: CgroupId, text: &str) -> Result<(), WriteError> {
        self.tree.know(&site.groups);
        match (file, group) {
            (IoCostFile::Qos, CgroupId::ROOT) => {
                self.touch(site.now);
                let set = &mut self.settings;
                (set.on, set.qos) = files::parse_qos(text, set.on, set.qos)?;
                site.io_cost_is_on = set.on;
                set.refresh(site.now, &mut self.clock, true);
            }
            (IoCostFile::Model, CgroupId::ROOT) => {
                self.touch(site.now);
                let set = &mut self.settings;
                set.model = files::parse_model(text, set.model)?;
                set.refresh(site.now, &mut self.clock, true);
            }
            (IoCostFile::Weight, group) if group != CgroupId::ROOT => {
                self.set_weight(site, group, files::parse_weight(text)?)
            }
            _ => return Err(WriteError::Invalid),
        }
        Ok(())
    }

    /// Creates the controller, which is off, at the first write.
    fn touch(&mut self, now: Time) {
        if !std::mem::replace(&mut self.settings.touched, true) {
            self.clock.start_us = self.clock.at(now).us;
            self.settings.refresh(now, &mut self.clock, true);
        }
    }

    fn set_weight(&mut self, site: &mut Site, group: CgroupId, weight: Weight) {
        let at = self.clock.at(site.now);
        let state = &mut self.tree[group];
        match weight {
            Weight::Default(weight) => state.default_weight = weight,
            Weight::Device(weight) => state.device_weight = weight,
        }
        let new = state.device_weight.unwrap_or(state.default_weight) * WEIGHT_UNIT;
        if new != state.weight && state.full_weight > 0 {
            let current = state.current_weight;
            self.tree.set(group, new, current, Some(at.now));
            self.tree.commit();
        }
        self.tree[group].weight = new;
    }

    /// Returns the content of a file without the number of the
    /// device; empty if there is nothing to show.
    #[must_use]
    pub fn read(&self, file: IoCostFile, group: CgroupId) -> String {
        let set = &self.settings;
        let state = self.tree.get(group);
        match file {
            IoCostFile::Qos if group == CgroupId::ROOT && set.touched => files::qos_text(set.on, &set.qos),
            IoCostFile::Model if group == CgroupId::ROOT && set.touched => files::model_text(&set.model),
            IoCostFile::Weight if group != CgroupId::ROOT => {
                let weights = state.map_or((WEIGHT_DEFAULT, None), |state| (state.default_weight, state.device_weight));
                files::weight_text(weights.0, weights.1)
            }
            IoCostFile::Stat if set.on => {
                let totals = state.map(|state| state.totals.text()).unwrap_or_default();
                if group == CgroupId::ROOT { format!("cost.vrate={} {totals}", self.rate_percent()) } else { totals }
            }
            _ => String::new(),
        }
    }

    /// Returns the base rate, rounded to the nearest hundredth of a percent.
    fn rate_percent(&self) -> Percent {
        Percent((self.clock.base * 10_000 + MICROSECOND / 2) / MICROSECOND)
    }

    /// Returns the costs of reads and writes.
    #[must_use]
    pub fn costs(&self) -> [BioCosts; 2] {
        self.settings.costs
    }

    /// Returns the length of a period, µs, 1,000 to 1,000,000; 0 before the first write.
    #[must_use]
    pub fn period_us(&self) -> u64 {
        self.clock.period_us
    }

    /// Returns the lowest and the highest rate of virtual time, per µs; 137438 is 100 %.
    #[must_use]
    pub fn rate_bounds(&self) -> [u64; 2] {
        self.settings.bounds
    }
}
