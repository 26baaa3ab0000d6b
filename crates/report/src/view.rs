//! Data that all parts of the report use: records, results, and names of settings and processes.

use iosched_lab::{DeviceRecord, Doubt, Fairness, Header, OnDevice, Results};
use iosched_sim::{TaskResult, Timeline};

/// Maximum length of a label that is shown unchanged beside a line.
const SHORT_MAX: usize = 16;

/// Appearance of a setting. It is the same on the whole page.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'a> {
    /// Index in [`Header::settings`].
    pub(crate) number: usize,
    /// Label as the user wrote it.
    pub(crate) label: &'a str,
    /// Name for places with little room. It is the label if the label is short. Otherwise it is the
    /// name of the scheduler with the setting's number in the table of settings.
    pub(crate) short: String,
    /// CSS classes that give the setting its colour and dashes.
    pub(crate) class: String,
}

/// Records and results of one device, with the names of settings and processes.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) records: OnDevice<'a>,
    pub(crate) results: Results,
    pub(crate) fairness: Fairness,
    pub(crate) settings: Vec<Setting<'a>>,
    /// Doubts that are shown with this device: all doubts, or only those that are not common to all
    /// devices.
    pub(crate) doubts: Vec<Doubt>,
    /// Whether the page has several devices.
    pub(crate) several: bool,
}

impl Setting<'_> {
    /// Number of different colours. Further settings repeat the colours with dashed lines.
    pub(crate) const COLOURS: usize = 8;
}

impl<'a> View<'a> {
    pub(crate) fn of(records: OnDevice<'a>) -> Self {
        let settings = records.header().settings.iter().enumerate().map(|(number, setting)| {
            let label = setting.label.as_str();
            let dashes = if number < Setting::COLOURS { "" } else { " dashed" };
            Setting {
                number,
                label,
                short: if label.chars().count() <= SHORT_MAX {
                    label.to_owned()
                } else {
                    format!("{} #{}", setting.setting.name(), number + 1)
                },
                class: format!("s{}{dashes}", number % Setting::COLOURS),
            }
        });
        let results = Results::of(records);
        Self {
            records,
            fairness: Fairness::of(records),
            settings: settings.collect(),
            doubts: results.doubts.clone(),
            results,
            several: records.header().devices.len() > 1,
        }
    }

    pub(crate) fn header(&self) -> &'a Header {
        self.records.header()
    }

    pub(crate) fn device(&self) -> &'a DeviceRecord {
        self.records.device()
    }

    /// Returns the id of a part of the page. It is different for each device.
    pub(crate) fn id(&self, name: &str) -> String {
        if self.several { format!("{}-{name}", device_id(self.records.number())) } else { name.to_owned() }
    }

    /// Returns the baseline.
    pub(crate) fn baseline(&self) -> Option<&Setting<'a>> {
        self.settings.get(self.header().baseline)
    }

    /// Returns the settings whose first run has a timeline, with this timeline.
    pub(crate) fn timelines(&self) -> Vec<(&Setting<'a>, &'a Timeline)> {
        let timelines = self.records.timelines();
        timelines.filter_map(|record| Some((self.settings.get(record.setting)?, &record.timeline))).collect()
    }

    /// Returns the timelines with completions and latencies of I/Os. Records of earlier versions
    /// have no such timelines.
    pub(crate) fn io_timelines(&self) -> Vec<(&Setting<'a>, &'a Timeline)> {
        self.timelines().into_iter().filter(|(_, timeline)| !timeline.io.is_empty()).collect()
    }

    /// Returns the end of a setting's first run, ns.
    pub(crate) fn finished_ns(&self, setting: usize) -> u64 {
        self.records.run(0, setting).map_or(0, |run| run.result.finished_ns)
    }

    /// Returns the time at which counting begins in a setting's first run, and the end of the run,
    /// ns.
    pub(crate) fn counted(&self, setting: usize) -> (u64, u64) {
        let result = self.records.run(0, setting).map(|run| &run.result).filter(|result| result.finished_ns > 0);
        result.map_or((0, self.horizon_ns()), |result| (result.counted_from_ns, result.finished_ns))
    }

    /// Returns the range of the time axis for the first runs of all settings, ns. It begins at the
    /// earliest time that counts.
    pub(crate) fn time_axis(&self) -> (f64, f64) {
        let from = |(setting, _): (&Setting<'_>, _)| {
            self.records.run(0, setting.number).map_or(0, |run| run.result.counted_from_ns)
        };
        let from_ns = self.timelines().into_iter().map(from).min().unwrap_or(0);
        (from_ns as f64, self.horizon_ns() as f64)
    }

    /// Returns the tasks of a setting's first run.
    pub(crate) fn tasks(&self, setting: usize) -> &'a [TaskResult] {
        let run = self.records.runs().find(|run| run.setting == setting);
        run.map_or(&[], |run| run.result.tasks.as_slice())
    }

    /// Returns the end of a time axis for the first runs of all settings, ns.
    pub(crate) fn horizon_ns(&self) -> u64 {
        let ends = self.timelines().into_iter().map(|(setting, timeline)| {
            let binned = [queue_bins(timeline), io_bins(timeline)].map(|(bin_ns, count)| count as u64 * bin_ns);
            match self.finished_ns(setting.number) {
                0 => binned[0].max(binned[1]),
                finished => finished,
            }
        });
        ends.max().unwrap_or(0).max(1)
    }
}

/// Returns the id of a device's section in a page of several devices.
pub(crate) fn device_id(number: usize) -> String {
    format!("device{}", number + 1)
}

/// Returns the name of a process, such as "postgres (812)", or "pid 812" if the process has no
/// name.
pub(crate) fn process(name: &str, pid: u32) -> String {
    let name = name.trim();
    if name.is_empty() { format!("pid {pid}") } else { format!("{name} ({pid})") }
}

/// Bins of a timeline: their width, ns, and their number.
pub(crate) type Bins = (u64, usize);

/// Returns the width of the bins of a plot with at most `bins_max` bins, ns. All settings have the
/// same width. It is the largest width of the timelines, doubled until the bins fit.
pub(crate) fn shared_width_ns(timelines: impl Iterator<Item = Bins>, bins_max: usize) -> u64 {
    let timelines: Vec<Bins> = timelines.collect();
    let mut width = timelines.iter().map(|bins| bins.0).max().unwrap_or(1).max(1);
    let end = timelines.iter().map(|&(bin_ns, count)| count as u64 * bin_ns).max().unwrap_or(0);
    while end.div_ceil(width) > bins_max as u64 {
        width *= 2;
    }
    width
}

/// Returns the bins of a timeline's data about the queue.
pub(crate) fn queue_bins(timeline: &Timeline) -> Bins {
    (timeline.bin_ns, timeline.bins.len())
}

/// Returns the bins of a timeline's data about I/Os.
pub(crate) fn io_bins(timeline: &Timeline) -> Bins {
    (timeline.io.bin_ns, timeline.io.bins.len())
}

/// Joins neighbouring bins of `bin_ns` into bins of `width_ns`.
pub(crate) fn rebin<T: Copy, U>(bins: &[T], bin_ns: u64, width_ns: u64, join: impl FnMut(&[T]) -> U) -> Vec<U> {
    let per = usize::try_from(width_ns / bin_ns.max(1)).unwrap_or(1).max(1);
    bins.chunks(per).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_merged_down_to_the_maximum_number() {
        assert_eq!(shared_width_ns([(4, 100)].into_iter(), 50), 8);
        assert_eq!(shared_width_ns([(4, 100), (2, 200)].into_iter(), 100), 4);
        assert_eq!(rebin(&[1, 2, 3, 4, 5], 4, 8, |part| part.iter().sum::<i32>()), [3, 7, 5]);
    }

    #[test]
    fn process_without_a_name_is_labelled_with_its_pid() {
        assert_eq!([process("", 7), process(" a ", 7)], ["pid 7", "a (7)"]);
    }
}
