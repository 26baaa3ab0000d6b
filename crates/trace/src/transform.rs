//! Traces changed on their way from a reader to a writer: parts of them, faster, elsewhere.
//!
//! One mechanism: a [`Chain`] of [`Step`]s, each of which takes a request and gives it back changed, or not at all.
//! Nothing is held, so traces of any length pass through.

use std::collections::BTreeSet;
use std::ops::Range;

use iosched::{Op, Sector, Time};

use crate::blktrace::{BlkEvent, ProcessName};
use crate::placement::{Fit, Placement};
use crate::{TraceReader, TraceRequest};

/// What is done to each request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Keeps what was submitted within a span, and lets it begin at 0.
    Slice {
        /// From then on.
        from: Time,
        /// And before then; `None` for the end.
        to: Option<Time>,
    },
    /// Divides arrivals by a factor above 0; latencies, which are the device's, stay.
    Scale {
        /// How many times faster than recorded.
        speed: f64,
    },
    /// Puts sectors where they belong on a device of another size.
    Remap(Placement),
    /// Keeps what passes.
    Filter(Filter),
}

/// What to keep of a trace: requests that each of the criteria given allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of these processes; empty for all. They and [`Filter::names`] are one criterion: one of either is enough.
    pub pids: BTreeSet<u32>,
    /// Of processes called so at the time. At most 16 bytes of a name are recorded, so that a longer one means what it
    /// begins with.
    pub names: BTreeSet<ProcessName>,
    /// That do this; empty for all.
    pub ops: Vec<Op>,
    /// That have at least one of these sectors; flushes have none.
    pub sectors: Option<Range<Sector>>,
    /// To these devices, as [`TraceReader::device_text`] calls them or by their number; empty for all.
    pub devices: BTreeSet<String>,
}

impl Filter {
    /// Whether `request` is kept; `name` is its process' and `device` says what its device is called.
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

/// Steps one after the other.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    steps: Vec<Step>,
}

impl Chain {
    /// These steps, the first of which is done first. None leaves a trace as it is.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// What becomes of a request; `None` if it is left out.
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

    /// Whether nothing submitted at `arrival` or later is kept.
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

/// For events: what they are about is not always a request.
impl Chain {
    /// Whether events go through it as a whole. Not if arrivals move apart from completions, nor if sectors that adjoin
    /// may not do so any more.
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

    /// Whether nothing but time decides on what is kept.
    pub(crate) fn only_slices(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Filter(_)))
    }

    /// When what happened at `time` happens in the end.
    pub(crate) fn time(&self, time: Time) -> Time {
        self.steps.iter().fold(time, |time, step| step.time(time))
    }

    /// Where sectors are in the end.
    pub(crate) fn place(&self, sector: Sector, nr_sectors: u32) -> (Sector, u32) {
        self.steps.iter().fold((sector, nr_sectors), |(sector, nr_sectors), step| match step {
            Step::Remap(placement) => placement.place(sector, nr_sectors),
            _ => (sector, nr_sectors),
        })
    }

    /// Whether `time` lies within what is kept.
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

    /// Whether an event about no sectors is kept: by its time, process and device.
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
    /// When what happened at `time` happens after the step.
    fn time(&self, time: Time) -> Time {
        match self {
            Self::Slice { from, .. } => Time::from_ns(time.since(*from)),
            // The nearest ns that a number of 53 bits can say: exact for a hundred days.
            Self::Scale { speed } => Time::from_ns((time.as_ns() as f64 / speed).round() as u64),
            Self::Remap(_) | Self::Filter(_) => time,
        }
    }
}

/// The next request of `reader` that `chain` keeps, changed.
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
