//! Tests of the metrics with other programs: Prometheus, and the parsers of its Python client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use iosched_live::Handle;
use iosched_live::disk::{Action, ClientId, Identity, Operation};
use iosched_live::metrics::Listening;
use iosched_live::reactor::{self, ServeOptions, Served};
use iosched_testing::machine;
use iosched_testing::prometheus::{Dashboard, Prometheus};
use serde_json::Value;

/// A client's name with all characters that must be escaped in a label.
const NAME: &str = "a \"client\" \\ of two\nlines";
const READS: u64 = 20;
const OPEN: &str = "application/openmetrics-text";

/// Returns a disk whose client has read data, and the address of its metrics.
fn served() -> (Served, SocketAddr) {
    let options = ServeOptions::new("test", "memory:1M".parse().unwrap(), iosched::Setting::defaults("cfq"));
    let served = reactor::start(&options, None).unwrap();
    let at = Listening::at("127.0.0.1:0").unwrap().serve(&served.handle).unwrap();
    let client = served.handle.connect(Identity::new(NAME, 1)).unwrap();
    (0..READS).for_each(|_| read(&served.handle, client));
    (served, at)
}

/// Reads 4 KiB as a client, and waits for the answer.
fn read(handle: &Handle, client: ClientId) {
    let (answer, answered) = std::sync::mpsc::channel();
    let read = Operation::new(Action::Read, 0, 4096);
    handle.submit(client, read, Box::new(move |result| answer.send(result.is_ok()).unwrap()));
    assert!(answered.recv().unwrap());
}

/// Returns a whole answer, including its head.
fn get(at: SocketAddr, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no body: {answer}")).1
}

/// Starts a proxy that returns the classic text, even to a program that prefers OpenMetrics.
fn classic_only(metrics: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(get(metrics, "/metrics", "text/plain").as_bytes());
        }
    });
    at
}

#[test]
fn prometheus_computes_quantiles_and_keeps_names() {
    if !machine::has_program("prometheus") {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let (served, at) = served();
    let prometheus = Prometheus::start(here.path(), &[("open", at), ("classic", classic_only(at))]).unwrap();
    let both = |query: &str| prometheus.query(query, |series| series.len() == 2).unwrap();
    let buckets = "sum by (job, name, le) (iosched_wait_seconds_bucket{kind=\"read\"})";
    for series in both(&format!("histogram_quantile(0.9, {buckets})")) {
        assert_eq!(series["metric"]["name"], NAME);
        let seconds: f64 = series["value"][1].as_str().unwrap().parse().unwrap();
        assert!(seconds > 0.0 && seconds < 60.0, "{series}");
    }
    for series in both("iosched_operations_total{kind=\"read\"}") {
        assert_eq!(series["value"][1], READS.to_string());
    }
    served.handle.stop();
    served.wait().flushed.unwrap();
}

/// Folder of the files for Prometheus and Grafana.
const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");

#[test]
fn every_panel_of_the_dashboard_shows_a_disk_with_clients() {
    if !machine::has_program("prometheus") {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let (served, at) = served();
    let handle = served.handle.clone();
    let (stop, stopped) = std::sync::mpsc::channel();
    // Rates are above 0 only while a client reads. Without scheduler decisions, the panel for
    // decisions would be empty.
    let reader = std::thread::spawn(move || {
        let client = handle.connect(Identity::new("reader", 2)).unwrap();
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            read(&handle, client);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let prometheus = Prometheus::start(here.path(), &[("disks", at)]).unwrap();
    let text = std::fs::read_to_string(format!("{PACKAGING}/grafana/iosched-served-disks.json")).unwrap();
    let Dashboard { panels, variables } = Dashboard::read(&text).unwrap();
    assert!(panels.len() > 10 && variables.len() > 2, "{panels:?} {variables:?}");
    for (title, query) in panels {
        prometheus.query_of_a_panel(&query).unwrap_or_else(|error| panic!("{title}: {error}"));
    }
    variables.iter().for_each(|variable| drop(prometheus.values_of_a_variable(variable).unwrap()));
    stop.send(()).unwrap();
    reader.join().unwrap();
    served.handle.stop();
    served.wait().flushed.unwrap();
}

#[test]
fn alerts_use_only_metrics_that_a_disk_has() {
    let (served, at) = served();
    let page = get(at, "/metrics", "text/plain");
    let known: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let rules = std::fs::read_to_string(format!("{PACKAGING}/prometheus/iosched.rules.yml")).unwrap();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let names = rules.split(|c: char| !is_part(c)).filter(|word| word.starts_with("iosched_"));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(known.contains(&family), "the alerts use {name}, but the metrics are {known:?}");
    }
    served.handle.stop();
    served.wait().flushed.unwrap();
}

#[test]
fn alerts_pass_the_tests_of_promtool() {
    if !machine::has_program("promtool") {
        return;
    }
    let mut command = Command::new("promtool");
    let output = command.args(["test", "rules", "iosched.rules.test.yml"]);
    let output = output.current_dir(format!("{PACKAGING}/prometheus")).output().unwrap();
    let [printed, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{printed}{errors}");
}

/// Script that prints every sample as JSON.
const PARSE: &str = "\
import json, sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics
parser = openmetrics if sys.argv[1] == 'open' else parser
families = parser.text_string_to_metric_families(sys.stdin.read())
print(json.dumps([[s.name, s.labels, s.value] for family in families for s in family.samples]))
";

/// Returns the command for Debian's Python, if it is installed, because Debian's Python packages
/// need it. Another Python may come first in PATH.
fn python() -> Command {
    const OF_DEBIAN: &str = "/usr/bin/python3";
    Command::new(if Path::new(OF_DEBIAN).exists() { OF_DEBIAN } else { "python3" })
}

fn parsed(format: &str, text: &str) -> Vec<Value> {
    let mut command = python();
    command.args(["-c", PARSE, format]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn python_parsers_read_the_metrics() {
    let has_parser = python().args(["-c", "import prometheus_client"]).stderr(Stdio::null()).status();
    if !machine::available(has_parser.is_ok_and(|status| status.success()), "python3-prometheus-client") {
        return;
    }
    let (served, at) = served();
    for (format, accept) in [("classic", "text/plain"), ("open", OPEN)] {
        let samples = parsed(format, body(&get(at, "/metrics", accept)));
        let value = |name: &str, label: (&str, &str)| {
            let is_it = |sample: &&Value| sample[0] == name && sample[1][label.0] == label.1;
            let found = samples.iter().find(is_it).unwrap_or_else(|| panic!("{format}: no {name} with {label:?}"));
            found[2].as_f64().unwrap()
        };
        assert_eq!(value("iosched_wait_seconds_bucket", ("le", "+Inf")), READS as f64);
        assert_eq!(value("iosched_wait_seconds_count", ("name", NAME)), READS as f64);
        assert_eq!(value("iosched_operations_total", ("name", NAME)), READS as f64);
        assert_eq!(value("iosched_disk_info", ("scheduler", "cfq")), 1.0);
    }
    served.handle.stop();
    served.wait().flushed.unwrap();
}
