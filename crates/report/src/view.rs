//! What all parts of the report look at: records, results, and how settings and processes are called.

use iosched_lab::{DeviceRecord, Doubt, Fairness, Header, OnDevice, Results};
use iosched_sim::{TaskResult, Timeline};

/// Labels up to this length stand beside lines as they are.
const SHORT_MAX: usize = 16;

/// How a setting is shown, the same throughout.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'a> {
    /// Its number in [`Header::settings`].
    pub(crate) number: usize,
    /// As the user wrote it.
    pub(crate) label: &'a str,
    /// For places where there is no room: the label if it is short, else the elevator's name and the number in the
    /// table of settings.
    pub(crate) short: String,
    /// Classes that give it its colour and dashes.
    pub(crate) class: String,
}

/// Records and results of one device, and names.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) records: OnDevice<'a>,
    pub(crate) results: Results,
    pub(crate) fairness: Fairness,
    pub(crate) settings: Vec<Setting<'a>>,
    /// The doubts that are told with this device: all of them, or those that not every device shares.
    pub(crate) doubts: Vec<Doubt>,
    /// Whether it is one device of several on the page.
    pub(crate) several: bool,
}

impl Setting<'_> {
    /// Colours that settings have of their own; more settings begin again, with dashed lines.
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

    /// The name of a place in the page: of its own for every device.
    pub(crate) fn id(&self, name: &str) -> String {
        if self.several { format!("{}-{name}", device_id(self.records.number())) } else { name.to_owned() }
    }

    /// The baseline.
    pub(crate) fn baseline(&self) -> Option<&Setting<'a>> {
        self.settings.get(self.header().baseline)
    }

    /// Settings with the timeline of their first run, as far as there are such.
    pub(crate) fn timelines(&self) -> Vec<(&Setting<'a>, &'a Timeline)> {
        let timelines = self.records.timelines();
        timelines.filter_map(|own| Some((self.settings.get(own.setting)?, &own.timeline))).collect()
    }

    /// Those that say when I/Os were done, and how long they took: all but those of earlier versions.
    pub(crate) fn io_timelines(&self) -> Vec<(&Setting<'a>, &'a Timeline)> {
        self.timelines().into_iter().filter(|(_, timeline)| !timeline.io.is_empty()).collect()
    }

    /// When the first run of a setting ended, ns.
    pub(crate) fn finished_ns(&self, setting: usize) -> u64 {
        self.records.run(0, setting).map_or(0, |run| run.result.finished_ns)
    }

    /// From when the first run of a setting counts, and when it ended, ns.
    pub(crate) fn counted(&self, setting: usize) -> (u64, u64) {
        let result = self.records.run(0, setting).map(|run| &run.result).filter(|result| result.finished_ns > 0);
        result.map_or((0, self.horizon_ns()), |result| (result.counted_from_ns, result.finished_ns))
    }

    /// The time axis of the first runs of all settings, from when the first of them counts, ns.
    pub(crate) fn time_axis(&self) -> (f64, f64) {
        let from = |(setting, _): (&Setting<'_>, _)| {
            self.records.run(0, setting.number).map_or(0, |run| run.result.counted_from_ns)
        };
        let from_ns = self.timelines().into_iter().map(from).min().unwrap_or(0);
        (from_ns as f64, self.horizon_ns() as f64)
    }

    /// The tasks of a setting's first run.
    pub(crate) fn tasks(&self, setting: usize) -> &'a [TaskResult] {
        let run = self.records.runs().find(|run| run.setting == setting);
        run.map_or(&[], |run| run.result.tasks.as_slice())
    }

    /// The end of a time axis that holds the first runs of all settings, ns.
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

/// The place of a device in a page of several.
pub(crate) fn device_id(number: usize) -> String {
    format!("device{}", number + 1)
}

/// How a process is called: "postgres (812)"; without a name "pid 812".
pub(crate) fn process(name: &str, pid: u32) -> String {
    let name = name.trim();
    if name.is_empty() { format!("pid {pid}") } else { format!("{name} ({pid})") }
}

/// Bins of a timeline: their width, ns, and how many there are.
pub(crate) type Bins = (u64, usize);

/// The width of the bins of a plot with at most `bins_max` of them: that of the timelines, doubled as often as needed,
/// so that settings share it.
pub(crate) fn shared_width_ns(timelines: impl Iterator<Item = Bins>, bins_max: usize) -> u64 {
    let timelines: Vec<Bins> = timelines.collect();
    let mut width = timelines.iter().map(|own| own.0).max().unwrap_or(1).max(1);
    let end = timelines.iter().map(|&(bin_ns, count)| count as u64 * bin_ns).max().unwrap_or(0);
    while end.div_ceil(width) > bins_max as u64 {
        width *= 2;
    }
    width
}

/// The bins of what a timeline says of the queue.
pub(crate) fn queue_bins(timeline: &Timeline) -> Bins {
    (timeline.bin_ns, timeline.bins.len())
}

/// The bins of what it says of I/Os.
pub(crate) fn io_bins(timeline: &Timeline) -> Bins {
    (timeline.io.bin_ns, timeline.io.bins.len())
}

/// Joins neighbouring bins of `bin_ns` into those of `width_ns`.
pub(crate) fn rebin<T: Copy, U>(bins: &[T], bin_ns: u64, width_ns: u64, join: impl FnMut(&[T]) -> U) -> Vec<U> {
    let per = usize::try_from(width_ns / bin_ns.max(1)).unwrap_or(1).max(1);
    bins.chunks(per).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_joined_until_they_are_few_enough() {
        assert_eq!(shared_width_ns([(4, 100)].into_iter(), 50), 8);
        assert_eq!(shared_width_ns([(4, 100), (2, 200)].into_iter(), 100), 4);
        assert_eq!(rebin(&[1, 2, 3, 4, 5], 4, 8, |part| part.iter().sum::<i32>()), [3, 7, 5]);
    }

    #[test]
    fn a_process_without_a_name_is_told_by_its_pid() {
        assert_eq!([process("", 7), process(" a ", 7)], ["pid 7", "a (7)"]);
    }
}
