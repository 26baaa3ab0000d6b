//! Metrics of a served disk for Prometheus and compatible readers: operations and latencies of each
//! group and of each client, requests in the queue, and decisions of the scheduler. The series of a
//! client end when the client disconnects. The series of a group include its former clients. The
//! disk counts decisions only if its metrics are served. It always counts the other values.

mod format;
mod http;
mod page;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use iosched::{Op, Rate, Rates};

use crate::disk::{ClientStat, ConnectionCounts, DecisionCounts, Failures, Had, Latencies};
use crate::{Handle, Unsaid};

pub use page::{Labels, Metrics, Page, Times};

/// Number of buckets of [`Latencies`] that form one bucket of the metrics.
const BUCKETS_TOGETHER: usize = 8;

/// Reason why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {message}")]
pub struct MetricsError {
    address: String,
    message: String,
}

/// A bound socket on which metrics can be served.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: String,
}

impl Listening {
    /// Listens at `address`. Does not answer requests yet.
    ///
    /// # Errors
    /// The system cannot bind the address.
    pub fn at(address: &str) -> Result<Self, MetricsError> {
        let failed = |error: std::io::Error| MetricsError { address: address.to_owned(), message: error.to_string() };
        let listener = TcpListener::bind(address).map_err(failed)?;
        Ok(Self { listener, address: address.to_owned() })
    }

    /// Serves the metrics of a disk at `http://ADDRESS/metrics` until the process ends. Returns the
    /// actual address. It differs from the requested address if the requested port is 0.
    ///
    /// # Errors
    /// The system does not return the address or cannot create a thread.
    pub fn serve(self, handle: &Handle) -> Result<SocketAddr, MetricsError> {
        // The disk counts decisions from now on. If the disk has ended, there is nothing to count.
        let _ = handle.control(|disk, now| disk.count_decisions(now));
        self.serve_metrics(Arc::new(OfDisk { handle: handle.clone() }))
    }
}

/// Function that returns one count of a client's statistics.
type Figure = fn(&Had) -> u64;

/// Metrics of operations: a name and a help text each.
struct Families {
    operations: (&'static str, &'static str),
    bytes: (&'static str, &'static str),
    errors: (&'static str, &'static str),
    wait: (&'static str, &'static str),
}

const OF_CLIENTS: Families = Families {
    operations: ("iosched_operations", "Operations answered, of each connected client"),
    bytes: ("iosched_bytes", "Bytes of finished operations, of each connected client"),
    errors: ("iosched_errors", "Operations that failed, of each connected client"),
    wait: ("iosched_wait_seconds", "Time from request to reply, of each connected client"),
};
const OF_GROUPS: Families = Families {
    operations: ("iosched_group_operations", "Operations answered, of all clients that a group ever had"),
    bytes: ("iosched_group_bytes", "Bytes of finished operations, of all clients that a group ever had"),
    errors: ("iosched_group_errors", "Operations that failed, of all clients that a group ever had"),
    wait: ("iosched_group_wait_seconds", "Time from request to reply, of all clients that a group ever had"),
};

/// Statistics with the labels that identify the client or the group.
struct Labelled {
    labels: Vec<(&'static str, String)>,
    stat: ClientStat,
}

impl Labelled {
    /// Returns the statistics of each kind of operations, with all labels.
    fn kinds(&self) -> impl Iterator<Item = (Labels<'_>, &Had)> {
        let ClientStat { reads, writes, trims, flushes } = &self.stat;
        let kinds = [("read", reads), ("write", writes), ("trim", trims), ("flush", flushes)];
        kinds.into_iter().map(|(kind, had)| {
            let labels = self.labels.iter().map(|(name, value)| (*name, value.as_str()));
            (labels.chain([("kind", kind)]).collect(), had)
        })
    }
}

/// Name of a group in metrics.
fn group_name(group: Option<&String>) -> String {
    group.map_or_else(|| "/".to_owned(), Clone::clone)
}

/// State of a disk that the metrics show.
struct Snapshot {
    scheduler: &'static str,
    inflight: [u32; 2],
    waiting: usize,
    decisions: DecisionCounts,
    failures: Failures,
    connections: ConnectionCounts,
    unsaid: Unsaid,
    clients: Vec<Labelled>,
    /// Statistics of each group since its creation.
    group_stats: Vec<Labelled>,
    /// Name, weight, reservation and limit of each group.
    groups: Vec<(String, u32, Rates)>,
}

/// Metrics of a disk.
struct OfDisk {
    handle: Handle,
}

impl OfDisk {
    fn snapshot(&self) -> Option<Snapshot> {
        let unsaid = self.handle.messages().unsaid();
        let taken = self.handle.control(move |disk, _| Snapshot {
            scheduler: disk.queue().scheduler(),
            inflight: disk.inflight(),
            waiting: disk.queue().waiting(),
            decisions: disk.decision_counts().unwrap_or_default(),
            failures: disk.failures().clone(),
            connections: disk.connections,
            unsaid,
            clients: disk
                .clients()
                .map(|client| Labelled {
                    labels: vec![
                        ("client", client.id.to_string()),
                        ("name", client.identity.name.clone()),
                        ("group", group_name(client.identity.group.as_ref())),
                    ],
                    stat: client.stat.clone(),
                })
                .collect(),
            group_stats: disk
                .group_stats()
                .into_iter()
                .map(|(group, stat)| Labelled { labels: vec![("group", group_name(group.as_ref()))], stat })
                .collect(),
            groups: disk
                .groups()
                .zip(disk.group_rates())
                .map(|((name, weight), (_, rates))| (name.to_owned(), weight, rates))
                .collect(),
        });
        taken.ok()
    }
}

impl OfDisk {
    /// Writes the counters and the histogram of operations.
    fn of_operations(page: &mut Page<'_>, families: &Families, all: &[Labelled]) -> fmt::Result {
        let counters: [(_, Figure); 3] = [
            (families.operations, |had| had.ios),
            (families.bytes, |had| had.bytes),
            (families.errors, |had| had.errors),
        ];
        for (about, value) in counters {
            page.counter(about, all.iter().flat_map(Labelled::kinds).map(|(labels, had)| (labels, value(had))))?;
        }
        let times = all.iter().flat_map(Labelled::kinds).filter(|(_, had)| had.ios > 0).map(|(labels, had)| Times {
            labels,
            seconds: had.latencies.sum_ns() as f64 / 1e9,
            count: had.latencies.count(),
            buckets: buckets(&had.latencies),
        });
        page.histogram(families.wait, times)
    }

    /// Writes the weight, the reservation and the limit of each group. If a group has no
    /// reservation or no limit, the metric has no sample for this group.
    fn of_groups(page: &mut Page<'_>, groups: &[(String, u32, Rates)]) -> fmt::Result {
        let weights = groups.iter().map(|(name, weight, _)| (vec![("group", name.as_str())], f64::from(*weight)));
        page.gauge(("iosched_group_weight", "Weight of a group under the present scheduler"), weights)?;
        fn sample(name: &str, rate: Option<Rate>) -> Option<(Labels<'_>, f64)> {
            let (unit, number) = match rate? {
                Rate::Ios(rate) => ("ios", rate),
                Rate::Bytes(rate) => ("bytes", rate),
            };
            Some((vec![("group", name), ("unit", unit)], number as f64))
        }
        let help = "Reservation of each group, in requests or bytes per second; the label named unit says which";
        let reservations = groups.iter().filter_map(|(name, _, rates)| sample(name, rates.reservation));
        page.gauge(("iosched_group_reservation", help), reservations)?;
        let help = "Limit of each group, in requests or bytes per second; the label named unit says which";
        let limits = groups.iter().filter_map(|(name, _, rates)| sample(name, rates.limit));
        page.gauge(("iosched_group_limit", help), limits)
    }

    /// Encodes the metrics of the disk that do not belong to a client.
    fn of_disk(page: &mut Page<'_>, snapshot: &Snapshot) -> fmt::Result {
        let inflight = ["read", "write"].into_iter().zip(snapshot.inflight);
        let inflight = inflight.map(|(direction, count)| (vec![("direction", direction)], f64::from(count)));
        page.gauge(("iosched_inflight", "Commands in flight on the backing"), inflight)?;
        let help = "Requests waiting in the scheduler";
        page.gauge(("iosched_waiting", help), [(Vec::new(), snapshot.waiting as f64)])?;
        let DecisionCounts { slices, idles, idles_in_vain, preemptions, merges } = snapshot.decisions;
        let decisions = [
            ("slice", slices),
            ("idle", idles),
            ("idle_in_vain", idles_in_vain),
            ("preemption", preemptions),
            ("merge", merges),
        ];
        let decisions = decisions.map(|(decision, count)| (vec![("decision", decision)], count));
        page.counter(("iosched_decisions", "Decisions of the scheduler"), decisions)?;
        let ConnectionCounts { accepted, refused, stalled } = snapshot.connections;
        let connections = [("accepted", accepted), ("refused", refused), ("stalled", stalled)];
        let connections = connections.map(|(fate, count)| (vec![("fate", fate)], count));
        let help = "NBD connections by result: accepted, refused because there were too many, or closed because \
            they stalled";
        page.counter(("iosched_connections", help), connections)?;
        let failed: Vec<_> =
            snapshot.failures.iter().map(|(&(op, errno), &count)| (op, errno.0.to_string(), count)).collect();
        let failed = failed.iter().map(|(op, errno, count)| (vec![("command", name(*op)), ("errno", errno)], *count));
        let about = ("iosched_backing_errors", "Commands that failed on the backing");
        page.counter(about, failed)?;
        let Unsaid { dropped, suppressed } = snapshot.unsaid;
        let help = "Messages lost because the program that reads them was too slow";
        page.counter(("iosched_messages_dropped", help), [(Vec::new(), dropped)])?;
        let help = "Messages that were counted and not printed, because there were many of the same kind";
        page.counter(("iosched_messages_suppressed", help), [(Vec::new(), suppressed)])
    }
}

/// Returns the name of a command to the back end.
const fn name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "trim",
        Op::WriteZeroes => "write_zeroes",
    }
}

impl Metrics for OfDisk {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let snapshot = self.snapshot().ok_or(fmt::Error)?;
        Self::of_operations(page, &OF_GROUPS, &snapshot.group_stats)?;
        Self::of_operations(page, &OF_CLIENTS, &snapshot.clients)?;
        Self::of_groups(page, &snapshot.groups)?;
        Self::of_disk(page, &snapshot)?;
        let labels = vec![("disk", self.handle.name()), ("scheduler", snapshot.scheduler)];
        page.info(("iosched_disk", "The served disk"), [labels])
    }
}

/// Returns the upper bound of each bucket in seconds, and the number of latencies in the bucket.
fn buckets(latencies: &Latencies) -> Vec<(f64, u64)> {
    let together = latencies.counts().chunks(BUCKETS_TOGETHER).enumerate();
    let mut buckets: Vec<_> = together
        .map(|(number, counts)| {
            let last = number * BUCKETS_TOGETHER + counts.len() - 1;
            (Latencies::bound_ns(last) as f64 / 1e9, counts.iter().sum())
        })
        .collect();
    // The last bucket has no upper bound.
    if let Some(last) = buckets.last_mut() {
        last.0 = f64::INFINITY;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use iosched::IoPriority;

    use super::*;
    use crate::Portion;
    use crate::disk::{Action, Identity, Operation};
    use crate::reactor::{ServeOptions, start};

    fn get(at: SocketAddr, path: &str, accept: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nAccept: {accept}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn metrics_count_the_operations_of_clients() {
        let options = ServeOptions::new("test", "memory:1M".parse().unwrap(), iosched::Setting::defaults("cfq"));
        let served = start(&ServeOptions { budget_bytes: 1 << 20, ..options }, None).unwrap();
        let handle = &served.handle;
        let at = Listening::at("127.0.0.1:0").unwrap().serve(handle).unwrap();
        let rates = Rates { reservation: Some(Rate::Ios(500)), limit: Some(Rate::Bytes(50_000_000)) };
        handle.control(move |disk, _| disk.group("db", Portion { weight: Some(200), rates })).unwrap().unwrap();
        let (name, ioprio) = ("a \"client\"".to_owned(), IoPriority::default());
        let client = handle.connect(Identity { ioprio, ..Identity::new(name, 1) }).unwrap();
        for block in 0..20 {
            let (answer, answered) = std::sync::mpsc::channel();
            let offset = block * 4096;
            let read = Operation::new(Action::Read, offset, 4096);
            handle.submit(client, read, Box::new(move |result| answer.send(result.is_ok()).unwrap()));
            assert!(answered.recv().unwrap());
        }
        let (text, open) = (get(at, "/metrics", ""), get(at, "/metrics", "application/openmetrics-text"));
        let labels = r#"{client="1",name="a \"client\"",group="/",kind="read"}"#;
        for line in [
            format!("iosched_operations_total{labels} 20"),
            format!("iosched_bytes_total{labels} 81920"),
            format!("iosched_wait_seconds_count{labels} 20"),
            "iosched_disk_info{disk=\"test\",scheduler=\"cfq\"} 1".to_owned(),
            "iosched_group_weight{group=\"db\"} 200".to_owned(),
            "iosched_group_reservation{group=\"db\",unit=\"ios\"} 500".to_owned(),
            "iosched_group_limit{group=\"db\",unit=\"bytes\"} 50000000".to_owned(),
            "iosched_waiting 0".to_owned(),
            "iosched_connections_total{fate=\"stalled\"} 0".to_owned(),
            "iosched_messages_dropped_total 0".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
            assert!(open.lines().any(|found| found == line), "{line} is not in\n{open}");
        }
        let group = r#"{group="/",kind="read"}"#;
        let of_group = [
            format!("iosched_group_operations_total{group} 20"),
            format!("iosched_group_bytes_total{group} 81920"),
            format!("iosched_group_wait_seconds_count{group} 20"),
        ];
        assert!(text.contains(r#"iosched_group_operations_total{group="db",kind="write"} 0"#), "{text}");
        // The counters of the group outlive the client. Its later operations count for its new group.
        handle.control(move |disk, now| disk.set_client_group(now, client, Some("db".to_owned()))).unwrap();
        handle.control(move |disk, now| disk.disconnect(now, client)).unwrap();
        let after = get(at, "/metrics", "");
        for line in of_group {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
            assert!(after.lines().any(|found| found == line), "{line} is not in\n{after}");
        }
        assert!(after.contains(r#"iosched_group_operations_total{group="db",kind="read"} 0"#), "{after}");
        assert!(!after.contains("client=\"1\""), "{after}");
        let slices = text.lines().find_map(|line| line.strip_prefix("iosched_decisions_total{decision=\"slice\"} "));
        assert!(slices.unwrap().parse::<u64>().unwrap() > 0, "{text}");
        assert!(open.ends_with("# EOF\n") && open.contains("# TYPE iosched_operations counter"), "{open}");
        assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{open}");
        assert!(!text.contains("# EOF") && text.contains("# TYPE iosched_operations_total counter"), "{text}");
        assert!(text.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"), "{text}");
        assert!(get(at, "/", "").starts_with("HTTP/1.1 404"));
        served.handle.stop();
        served.wait().flushed.unwrap();
        assert!(get(at, "/metrics", "").contains(" 503"));
    }
}
