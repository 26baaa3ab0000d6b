//! A page of metrics in one of the supported formats, and the server of such pages.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::format::Format;
use super::http::{self, HttpRequest, Response};
use super::{Listening, MetricsError};

/// Labels of a sample: names and values.
pub type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Source of metrics. It writes a page for each request.
pub trait Metrics: Send + Sync + 'static {
    /// Writes all metrics with their current values.
    ///
    /// # Errors
    /// The metrics no longer exist, or the page cannot be written.
    fn write(&self, page: &mut Page<'_>) -> fmt::Result;
}

/// A histogram with its labels.
#[derive(Clone, PartialEq, Debug)]
pub struct Times<'a> {
    /// The labels.
    pub labels: Labels<'a>,
    /// Sum of the times, seconds.
    pub seconds: f64,
    /// Number of measured times.
    pub count: u64,
    /// Upper bound of each bucket, seconds, and the number of times in the bucket. The last bound
    /// is infinite.
    pub buckets: Vec<(f64, u64)>,
}

/// A page of metrics that is being written.
pub struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
    format: Format,
}

impl fmt::Debug for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Page<'_> {
    /// Writes counters. In OpenMetrics, `name` is the name of the family, and the names of its
    /// samples end in `_total`. In the classic format, `name` is the name of the samples.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn counter<'l>(
        &mut self,
        (name, help): (&str, &str),
        counted: impl IntoIterator<Item = (Labels<'l>, u64)>,
    ) -> fmt::Result {
        let format = self.format;
        let classic = format!("{name}_total");
        let name = if format == Format::Classic { &classic } else { name };
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        let sample = |encoder: &mut MetricEncoder<'_>, value: u64| match format {
            // A gauge is encoded without the suffix `_total`.
            Format::Classic => encoder.encode_gauge(&value),
            Format::OpenMetrics => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        };
        for (labels, value) in counted {
            if labels.is_empty() {
                sample(&mut family, value)?;
            } else {
                sample(&mut family.encode_family(&labels)?, value)?;
            }
        }
        Ok(())
    }

    /// Writes a family of gauges with their labels.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn gauge<'l>(
        &mut self,
        (name, help): (&str, &str),
        values: impl IntoIterator<Item = (Labels<'l>, f64)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            // A whole number is written without a fraction, as other programs write it.
            let integer = value as i64;
            let is_whole = integer as f64 == value;
            let encode = |encoder: &mut MetricEncoder<'_>| {
                if is_whole { encoder.encode_gauge(&integer) } else { encoder.encode_gauge(&value) }
            };
            if labels.is_empty() { encode(&mut family)? } else { encode(&mut family.encode_family(&labels)?)? }
        }
        Ok(())
    }

    /// Writes a family of histograms of times, seconds.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn histogram<'l>(
        &mut self,
        (name, help): (&str, &str),
        times: impl IntoIterator<Item = Times<'l>>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for Times { labels, seconds, count, buckets } in times {
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(seconds, count, &buckets, None)?;
        }
        Ok(())
    }

    /// Writes constant properties. `name` has no suffix. The classic format has no info type, so
    /// this method writes a gauge.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn info<'l>(&mut self, (name, help): (&str, &str), infos: impl IntoIterator<Item = Labels<'l>>) -> fmt::Result {
        let classic = format!("{name}_info");
        let (name, kind) = match self.format {
            Format::Classic => (classic.as_str(), MetricType::Gauge),
            Format::OpenMetrics => (name, MetricType::Info),
        };
        let mut family = self.encoder.encode_descriptor(name, help, None, kind)?;
        for labels in infos {
            match self.format {
                Format::Classic => family.encode_family(&labels)?.encode_gauge(&1_u32)?,
                Format::OpenMetrics => family.encode_info(&labels)?,
            }
        }
        Ok(())
    }
}

/// Metrics in one of the formats.
struct InFormat {
    metrics: Arc<dyn Metrics>,
    format: Format,
}

impl fmt::Debug for InFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFormat").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Collector for InFormat {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.metrics.write(&mut Page { encoder, format: self.format })
    }
}

impl Listening {
    /// Serves metrics at `http://ADDRESS/metrics` until the process ends. Returns the actual
    /// address. It differs from the requested address if the requested port is 0.
    ///
    /// # Errors
    /// The system does not return the address or cannot create a thread.
    pub fn serve_metrics(self, metrics: Arc<dyn Metrics>) -> Result<SocketAddr, MetricsError> {
        let Self { listener, address } = self;
        let failed = |error: std::io::Error| MetricsError { address: address.clone(), message: error.to_string() };
        let at = listener.local_addr().map_err(failed)?;
        let registry = |format| {
            let mut registry = Registry::default();
            registry.register_collector(Box::new(InFormat { metrics: Arc::clone(&metrics), format }));
            registry
        };
        let (classic, open) = (registry(Format::Classic), registry(Format::OpenMetrics));
        http::serve(listener, move |request| answer(request, &classic, &open)).map_err(failed)?;
        Ok(at)
    }
}

fn answer(request: &HttpRequest, classic: &Registry, open: &Registry) -> Response {
    if request.path != "/metrics" {
        return Response::plain("404 Not Found", "metrics are at /metrics");
    }
    let format = Format::preferred(&request.accept);
    let mut body = String::new();
    let encoded = match format {
        Format::Classic => encode_registry(&mut body, classic),
        Format::OpenMetrics => encode(&mut body, open),
    };
    if encoded.is_err() {
        return Response::plain("503 Service Unavailable", "the server no longer serves this disk");
    }
    Response { status: "200 OK", content_type: format.content_type(), body }
}
