//! Summaries of the runs of a probe.

use iosched_sim::Histogram;
use serde::Serialize;

use super::probe::Span;
use super::records::{Measurements, Part, Sample};
use iosched_lab::stat::{mean, standard_deviation};

/// A metric over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// Standard deviation divided by the mean. `None` for one run.
    pub variation: Option<f64>,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        let variation = standard_deviation(&values).map(|deviation| deviation / mean(&values).max(f64::MIN_POSITIVE));
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() {
            0 => 0.0,
            n if n % 2 == 1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Self { median, variation }
    }
}

/// The metrics of all runs of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// I/Os per second.
    pub iops: Spread,
    /// Mean latency, ns.
    pub mean_ns: Spread,
    /// Median latency, ns.
    pub p50_ns: Spread,
    /// The 99th percentile of the latency, ns.
    pub p99_ns: Spread,
    /// Latencies of all runs.
    pub latency: Histogram,
    /// Latencies of reads of all runs.
    pub reads: Histogram,
    /// Latencies of writes of all runs.
    pub writes: Histogram,
    /// Latencies of flushes of all runs.
    pub flushes: Histogram,
    /// Parts of the first run of a probe in parts.
    pub parts: Vec<Part>,
    /// Total measured time, ns.
    pub counted_ns: u64,
    /// Duration of the first run.
    pub span: Span,
    /// Ratio of the rate of the last run to the rate of the first run. `None` for fewer than three
    /// runs.
    pub drift: Option<f64>,
}

impl Summary {
    /// Creates a summary of runs in their order of time. `None` without runs.
    #[must_use]
    pub fn of(samples: &[&Sample]) -> Option<Self> {
        let first = samples.first()?;
        let iops = |sample: &Sample| sample.ios() as f64 * 1e9 / sample.counted_ns as f64;
        let latencies: Vec<Histogram> = samples.iter().map(|sample| sample.latency()).collect();
        let spread = |value: &dyn Fn(&Histogram) -> f64| Spread::of(latencies.iter().map(value).collect());
        let quantile = |q: f64| spread(&move |latency: &Histogram| latency.quantile_ns(q) as f64);
        let mut latency = Histogram::default();
        let [mut reads, mut writes, mut flushes] = std::array::from_fn(|_| Histogram::default());
        latencies.iter().for_each(|histogram| latency.merge(histogram));
        for sample in samples {
            reads.merge(&sample.reads);
            writes.merge(&sample.writes);
            flushes.merge(&sample.flushes);
        }
        let last = samples.last().filter(|_| samples.len() >= 3);
        Some(Self {
            iops: Spread::of(samples.iter().map(|sample| iops(sample)).collect()),
            mean_ns: spread(&Histogram::mean_ns),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            latency,
            reads,
            writes,
            flushes,
            parts: first.parts.clone(),
            span: Span {
                warm_up_ns: first.warm_up_ns,
                measured_ns: first.counted_ns / first.parts.len().max(1) as u64,
            },
            counted_ns: samples.iter().map(|sample| sample.counted_ns).sum(),
            drift: last.map(|last| iops(last) / iops(first)),
        })
    }
}

impl Measurements {
    /// Returns the summary of each probe, in the order
    /// of the probes. `None` for a probe without runs.
    #[must_use]
    pub fn summaries(&self) -> Vec<Option<Summary>> {
        let samples_of = |probe| self.samples.iter().filter(|sample| sample.probe == probe).collect::<Vec<_>>();
        (0..self.header.probes.len()).map(|probe| Summary::of(&samples_of(probe))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_ignores_one_outlier() {
        let spread = Spread::of(vec![100.0, 102.0, 5.0]);
        assert_eq!(spread.median, 100.0);
        assert!(spread.variation.unwrap() > 0.5, "the variation shows the outlier");
        assert_eq!(Spread::of(vec![1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::of(vec![1.0]).variation, None);
    }
}
