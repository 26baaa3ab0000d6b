//! Metrics of a live disk, as Prometheus and its like read them: what each client has had, how long it waited, what is in the queue and what the
//! elevator decided. Nothing is counted for them that is not counted anyway, but for decisions.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tiny_http::{Header, Method, Request, Response, Server};

use crate::Handle;
use crate::disk::{ClientStat, ConnectionCounts, DecisionCounts, Had, Latencies};

/// What OpenMetrics' text is called in HTTP.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Buckets of a latency are as wide as so many of those that are counted.
const BUCKETS_TOGETHER: usize = 8;

/// Why there are no metrics.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {message}")]
pub struct MetricsError {
    address: String,
    message: String,
}

/// Serves the metrics of a disk at `http://ADDRESS/metrics` for as long as the process lives; the address in force, which matters if the
/// port asked for is 0.
///
/// # Errors
/// If the address cannot be had.
pub fn serve(handle: &Handle, address: &str) -> Result<SocketAddr, MetricsError> {
    let failed = |message: String| MetricsError { address: address.to_owned(), message };
    let server = Server::http(address).map_err(|error| failed(error.to_string()))?;
    let at = server.server_addr().to_ip().ok_or_else(|| failed("not an address of the network".to_owned()))?;
    // Decisions are counted from now on. Without the disk there is nothing to count.
    let _ = handle.control(|disk, now| disk.count_decisions(now));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(OfDisk(handle.clone())));
    let answer_all = move || {
        for request in server.incoming_requests() {
            // Whoever asked may have gone.
            let _ = answer(request, &registry);
        }
    };
    let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(answer_all);
    thread.map_err(|error| failed(error.to_string()))?;
    Ok(at)
}

fn answer(request: Request, registry: &Registry) -> io::Result<()> {
    if *request.method() != Method::Get || request.url().split('?').next() != Some("/metrics") {
        return request.respond(Response::from_string("metrics are at /metrics\n").with_status_code(404));
    }
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        return request.respond(Response::from_string("the disk is no longer served\n").with_status_code(503));
    }
    let response = Response::from_string(text);
    match Header::from_bytes("Content-Type", CONTENT_TYPE) {
        Ok(header) => request.respond(response.with_header(header)),
        Err(()) => request.respond(response),
    }
}

/// A figure of what a client has had.
type Figure = fn(&Had) -> u64;

/// What is told of a client.
struct OfClient {
    number: String,
    name: String,
    group: String,
    stat: ClientStat,
}

impl OfClient {
    fn kinds(&self) -> [(&'static str, &Had); 4] {
        let ClientStat { reads, writes, trims, flushes } = &self.stat;
        [("read", reads), ("write", writes), ("trim", trims), ("flush", flushes)]
    }

    fn labels<'a>(&'a self, kind: &'a str) -> [(&'static str, &'a str); 4] {
        [("client", &self.number), ("name", &self.name), ("group", &self.group), ("kind", kind)]
    }
}

/// What is told of a disk.
struct Snapshot {
    scheduler: &'static str,
    inflight: [u32; 2],
    waiting: usize,
    decisions: DecisionCounts,
    connections: ConnectionCounts,
    clients: Vec<OfClient>,
}

struct OfDisk(Handle);

impl fmt::Debug for OfDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics of {}", self.0.name())
    }
}

impl OfDisk {
    fn snapshot(&self) -> Option<Snapshot> {
        let taken = self.0.control(|disk, _| Snapshot {
            scheduler: disk.queue().scheduler(),
            inflight: disk.inflight(),
            waiting: disk.queue().waiting(),
            decisions: disk.decision_counts().unwrap_or_default(),
            connections: disk.connections,
            clients: disk
                .clients()
                .map(|client| OfClient {
                    number: client.id.to_string(),
                    name: client.identity.name.clone(),
                    group: client.identity.group.clone().unwrap_or_else(|| "/".to_owned()),
                    stat: client.stat.clone(),
                })
                .collect(),
        });
        taken.ok()
    }
}

impl Collector for OfDisk {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let of = self.snapshot().ok_or(fmt::Error)?;
        let counters: [(&str, &str, Figure); 3] = [
            ("iosched_operations", "Operations answered", |had| had.ios),
            ("iosched_bytes", "Bytes of operations answered", |had| had.bytes),
            ("iosched_errors", "Operations that failed", |had| had.errors),
        ];
        for (name, help, value) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for client in &of.clients {
                for (kind, had) in client.kinds() {
                    family
                        .encode_family(&client.labels(kind))?
                        .encode_counter::<NoLabelSet, _, u64>(&value(had), None)?;
                }
            }
        }
        let help = "From being asked for to being answered";
        let mut family = encoder.encode_descriptor("iosched_wait_seconds", help, None, MetricType::Histogram)?;
        for client in &of.clients {
            for (kind, had) in client.kinds().into_iter().filter(|(_, had)| had.ios > 0) {
                let latencies = &had.latencies;
                let (sum, count) = (latencies.sum_ns() as f64 / 1e9, latencies.count());
                let labels = client.labels(kind);
                let mut labelled = family.encode_family(&labels)?;
                labelled.encode_histogram::<NoLabelSet>(sum, count, &buckets(latencies), None)?;
            }
        }
        let mut family =
            encoder.encode_descriptor("iosched_inflight", "Commands in the backing", None, MetricType::Gauge)?;
        for (direction, count) in ["read", "write"].into_iter().zip(of.inflight) {
            family.encode_family(&[("direction", direction)])?.encode_gauge(&i64::from(count))?;
        }
        let help = "Requests that wait in the elevator";
        encoder
            .encode_descriptor("iosched_waiting", help, None, MetricType::Gauge)?
            .encode_gauge(&(of.waiting as i64))?;
        let DecisionCounts { slices, idles, idles_in_vain, preemptions, merges } = of.decisions;
        let decisions = [
            ("slice", slices),
            ("idle", idles),
            ("idle_in_vain", idles_in_vain),
            ("preemption", preemptions),
            ("merge", merges),
        ];
        let help = "What the elevator decided";
        let mut family = encoder.encode_descriptor("iosched_decisions", help, None, MetricType::Counter)?;
        for (decision, count) in decisions {
            let labels = [("decision", decision)];
            let mut labelled = family.encode_family(&labels)?;
            labelled.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let ConnectionCounts { accepted, refused, stood_still } = of.connections;
        let connections = [("accepted", accepted), ("refused", refused), ("stood_still", stood_still)];
        let help = "NBD connections: let in, refused because there were as many as are allowed, closed because they stood still";
        let mut family = encoder.encode_descriptor("iosched_connections", help, None, MetricType::Counter)?;
        for (fate, count) in connections {
            family.encode_family(&[("fate", fate)])?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let info = [("disk", self.0.name()), ("scheduler", of.scheduler)];
        encoder.encode_descriptor("iosched_disk", "What is served", None, MetricType::Info)?.encode_info(&info)
    }
}

/// Upper bounds in seconds, and how many lie in each.
fn buckets(latencies: &Latencies) -> Vec<(f64, u64)> {
    let together = latencies.counts().chunks(BUCKETS_TOGETHER).enumerate();
    let mut buckets: Vec<_> = together
        .map(|(number, counts)| {
            let last = number * BUCKETS_TOGETHER + counts.len() - 1;
            (Latencies::bound_ns(last) as f64 / 1e9, counts.iter().sum())
        })
        .collect();
    // The last has no bound.
    if let Some(last) = buckets.last_mut() {
        last.0 = f64::MAX;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use iosched::IoPriority;

    use super::*;
    use crate::disk::{Action, Identity, Operation};
    use crate::reactor::{Options, start};

    fn get(at: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn what_clients_have_had_is_told() {
        let options = Options {
            name: "test".to_owned(),
            backend: "memory:1M".parse().unwrap(),
            scheduler: "cfq".to_owned(),
            depth: None,
            budget_bytes: 1 << 20,
            seed: 1,
            record: None,
        };
        let served = start(&options, None).unwrap();
        let handle = &served.handle;
        let at = serve(handle, "127.0.0.1:0").unwrap();
        let (name, ioprio) = ("a \"client\"".to_owned(), IoPriority::default());
        let client = handle.connect(Identity { name, pid: 1, ioprio, group: None, read_only: false }).unwrap();
        for block in 0..20 {
            let (answer, answered) = std::sync::mpsc::channel();
            let offset = block * 4096;
            let read = Operation::new(Action::Read, offset, 4096);
            handle.submit(client, read, Box::new(move |result| answer.send(result.is_ok()).unwrap()));
            assert!(answered.recv().unwrap());
        }
        let text = get(at, "/metrics");
        let labels = r#"{client="1",name="a \"client\"",group="/",kind="read"}"#;
        for line in [
            format!("iosched_operations_total{labels} 20"),
            format!("iosched_bytes_total{labels} 81920"),
            format!("iosched_wait_seconds_count{labels} 20"),
            "iosched_disk_info{disk=\"test\",scheduler=\"cfq\"} 1".to_owned(),
            "iosched_waiting 0".to_owned(),
            "iosched_connections_total{fate=\"stood_still\"} 0".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let slices = text.lines().find_map(|line| line.strip_prefix("iosched_decisions_total{decision=\"slice\"} "));
        assert!(slices.unwrap().parse::<u64>().unwrap() > 0, "{text}");
        assert!(text.ends_with("# EOF\n"));
        assert!(get(at, "/").starts_with("HTTP/1.0 404") || get(at, "/").starts_with("HTTP/1.1 404"));
        served.handle.stop();
        served.wait().flushed.unwrap();
        assert!(get(at, "/metrics").contains(" 503"));
    }
}
