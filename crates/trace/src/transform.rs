//! Transformation of traces between a reader and a writer: slices, other speeds, other positions,
//! filters.
//!
//! The only mechanism is a [`Chain`] of [`Step`]s. Each step takes a request and returns
//! it changed, or drops it. No request is held, so traces of any length pass through.

use std::collections::BTreeSet;
use std::ops::Range;

use iosched::{Op, Sector, Time};

use crate::blktrace::{BlkEvent, ProcessName};
use crate::placement::{Fit, Placement};
use crate::{TraceReader, TraceRequest};

/// A transformation of each request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Keeps the submissions within a span of time, and shifts the start of the span to 0.
    Slice {
        /// Start of the span (included).
        from: Time,
        /// End of the span (excluded), or `None` for the end of the trace.
        to: Option<Time>,
    },
    /// Divides arrivals by a factor above 0. Latencies do not change, because they belong to the
    /// device.
    Scale {
        /// Factor relative to the recorded speed.
        speed: f64,
    },
    /// Places sectors on a device of another size.
    Remap(Placement),
    /// Keeps the requests that pass a filter.
    Filter(Filter),
}

/// A filter of a trace: it keeps requests that meet all given criteria.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Processes by pid; empty for all. `pids` and [`Filter::names`] together are one criterion: a
    /// process matches if its pid or its name matches.
    pub pids: BTreeSet<u32>,
    /// Processes by their name at the time of the request. Traces record at most 16 bytes of a
    /// name, so only the first bytes of a longer name are compared.
    pub names: BTreeSet<ProcessName>,
    /// Operations; empty for all.
    pub ops: Vec<Op>,
    /// Range of sectors. A request matches if at least one of its sectors is in the range. Flushes
    /// do not match.
    pub sectors: Option<Range<Sector>>,
    /// Devices, by the text of [`TraceReader::device_text`] or by number; empty for all.
    pub devices: BTreeSet<String>,
}

impl Filter {
    /// Returns whether `request` is kept. `name` is the name of its process, and
    /// `device` returns the text of a device.
    #[must_use]
    pub fn keeps(&self, request: &TraceRequest, name: Option<ProcessName>, device: impl Fn(u32) -> String) -> bool {
        self.keeps_process(request.pid, name)
            && (self.ops.is_empty() || self.ops.contains(&request.op))
            && self.sectors.as_ref().is_none_or(|sectors| {
                request.op.has_data() && request.sector < sectors.end && sectors.start < request.end()
            })
            && (self.devices.is_empty() || request.device.is_some_and(|number| self.keeps_device(number, &device)))
    }

    fn keeps_process(&self, pid: u32, name: Option<ProcessName>) -> bool {
        let all = self.pids.is_empty() && self.names.is_empty();
        all || self.pids.contains(&pid) || name.is_some_and(|name| self.names.contains(&name))
    }

    fn keeps_device(&self, number: u32, device: &impl Fn(u32) -> String) -> bool {
        self.devices.contains(&number.to_string()) || self.devices.contains(&device(number))
    }
}

/// Steps that are applied one after the other.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    steps: Vec<Step>,
}

impl Chain {
    /// Creates a chain of these steps, in order. Without steps, a trace stays as it is.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// Applies the steps to a request. Returns `None` if it is dropped.
    #[must_use]
    pub fn apply(
        &self,
        request: &TraceRequest,
        name: Option<ProcessName>,
        device: impl Fn(u32) -> String,
    ) -> Option<TraceRequest> {
        let mut request = *request;
        for step in &self.steps {
            match step {
                Step::Slice { from, to } => {
                    if request.arrival < *from || to.is_some_and(|to| request.arrival >= to) {
                        return None;
                    }
                    request.arrival = Time::from_ns(request.arrival.since(*from));
                }
                Step::Scale { .. } => request.arrival = step.time(request.arrival),
                Step::Remap(placement) => {
                    if request.op.has_data() {
                        (request.sector, request.nr_sectors) = placement.place(request.sector, request.nr_sectors);
                    }
                }
                Step::Filter(filter) => {
                    if !filter.keeps(&request, name, &device) {
                        return None;
                    }
                }
            }
        }
        Some(request)
    }

    /// Returns whether no submission at `arrival` or later is kept.
    #[must_use]
    pub fn is_over(&self, arrival: Time) -> bool {
        let mut arrival = arrival;
        for step in &self.steps {
            if let Step::Slice { to: Some(to), .. } = step
                && arrival >= *to
            {
                return true;
            }
            arrival = step.time(arrival);
        }
        false
    }
}

/// Methods for events. An event does not always belong to a request.
impl Chain {
    /// Returns whether the chain can transform events. It cannot if it moves arrivals relative to
    /// completions, or if it may separate adjacent sectors.
    #[must_use]
    pub fn suits_events(&self) -> bool {
        let wraps = |placement: &Placement| matches!(placement.fit(), Fit::Wrapped { .. });
        self.steps.iter().all(|step| match step {
            Step::Slice { .. } | Step::Filter(_) => true,
            Step::Scale { .. } => false,
            Step::Remap(placement) => !wraps(placement),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns whether the chain has no filters, so that only time decides which requests are kept.
    pub(crate) fn only_slices(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Filter(_)))
    }

    /// Returns the time of an event after all steps. `time` is the time before the steps.
    pub(crate) fn time(&self, time: Time) -> Time {
        self.steps.iter().fold(time, |time, step| step.time(time))
    }

    /// Returns the position and length of sectors after all steps.
    pub(crate) fn place(&self, sector: Sector, nr_sectors: u32) -> (Sector, u32) {
        self.steps.iter().fold((sector, nr_sectors), |(sector, nr_sectors), step| match step {
            Step::Remap(placement) => placement.place(sector, nr_sectors),
            _ => (sector, nr_sectors),
        })
    }

    /// Returns whether `time` lies within the kept span.
    pub(crate) fn spans(&self, time: Time) -> bool {
        let mut time = time;
        for step in &self.steps {
            if matches!(step, Step::Slice { from, to } if time < *from || to.is_some_and(|to| time >= to)) {
                return false;
            }
            time = step.time(time);
        }
        true
    }

    /// Returns whether an event without sectors is kept, by its time, process and device.
    pub(crate) fn keeps_bystander(
        &self,
        event: &BlkEvent,
        name: Option<ProcessName>,
        device: impl Fn(u32) -> String,
    ) -> bool {
        let filters = self.steps.iter().filter_map(|step| match step {
            Step::Filter(filter) => Some(filter),
            _ => None,
        });
        self.spans(event.time)
            && filters.into_iter().all(|filter| {
                let is_device = filter.devices.is_empty() || filter.keeps_device(event.device, &device);
                is_device && filter.keeps_process(event.pid, name)
            })
    }
}

impl Step {
    /// Returns the time of an event at `time` after the step.
    fn time(&self, time: Time) -> Time {
        match self {
            Self::Slice { from, .. } => Time::from_ns(time.since(*from)),
            // Rounds to the nearest ns that a number of 53 bits can express. This is exact for 100
            // days.
            Self::Scale { speed } => Time::from_ns((time.as_ns() as f64 / speed).round() as u64),
            Self::Remap(_) | Self::Filter(_) => time,
        }
    }
}

/// Returns the next request of `reader` that `chain` keeps, transformed.
pub(crate) fn next_kept(reader: &mut TraceReader, chain: &Chain) -> Option<Result<TraceRequest, crate::TraceError>> {
    loop {
        let request = match reader.next()? {
            Ok(request) => request,
            Err(error) => return Some(Err(error)),
        };
        if chain.is_over(request.arrival) {
            return None;
        }
        let name = reader.process_names().get(&request.pid).copied();
        if let Some(request) = chain.apply(&request, name, |device| reader.device_text(device)) {
            return Some(Ok(request));
        }
    }
}
