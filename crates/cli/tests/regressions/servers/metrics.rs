//! Metrics, and clients of the metrics and of the control socket that stall or send wrong data.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use super::tools::{READ, Serving, WRITE, ask};
use crate::common::available;
use crate::list::Sandbox;

const METRICS: [&str; 2] = ["--metrics", "127.0.0.1:0"];

/// Starts a server that has served some requests.
fn busy(place: &Sandbox) -> Serving {
    let args = ["fault:bad=0+4096:memory:1M", "--export", "db,weight=800"];
    let serving = Serving::start(place, &[&args[..], &METRICS].concat());
    assert_eq!(ask(&mut serving.connect(), READ, 0), 5);
    serving
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// Asserts that promtool accepts the input.
#[track_caller]
fn promtool(place: &Sandbox, args: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(args).current_dir(&place.here).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        available(false, "promtool");
        return;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}\n{input}", String::from_utf8_lossy(&text));
}

pub(super) fn text_format(place: &Sandbox) {
    let mut serving = busy(place);
    for accept in ["", "*/*", "text/plain;version=0.0.4"] {
        let answer = serving.metrics(accept);
        assert!(answer.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
        promtool(place, &["check", "metrics"], body(&answer));
    }
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn openmetrics(place: &Sandbox) {
    let mut serving = busy(place);
    let answer = serving.metrics("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3");
    assert!(
        answer.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(body(&answer).ends_with("# EOF\n"));
    // promtool imports OpenMetrics only if each value has a time.
    let timed = |line: &str| if line.starts_with('#') { format!("{line}\n") } else { format!("{line} 1700000000\n") };
    place.file("open", body(&answer).lines().map(timed).collect::<String>());
    promtool(place, &["tsdb", "create-blocks-from", "openmetrics", "open", "blocks"], "");
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn stalled_metrics_clients(place: &Sandbox) {
    let mut serving = Serving::start(place, &[&["memory:1M"][..], &METRICS].concat());
    let mut stalled: Vec<_> = (0..20).map(|_| serving.metrics_socket()).collect();
    for (number, socket) in stalled.iter_mut().enumerate() {
        let begun = &b"GET /metrics HTTP/1.1\r\nX: "[..number];
        socket.write_all(begun).unwrap();
    }
    assert!(serving.metrics("").contains("200 OK"));
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn wrong_metrics_requests(place: &Sandbox) {
    let mut serving = Serving::start(place, &[&["memory:1M"][..], &METRICS].concat());
    let answer = |request: &[u8]| {
        let mut socket = serving.metrics_socket();
        // The server may close the connection before the test has sent all data.
        let _ = socket.write_all(request);
        let mut text = Vec::new();
        let _ = socket.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    };
    assert!(answer(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").contains(" 400 "));
    assert!(answer(b"DELETE /metrics HTTP/1.1\r\n\r\n").contains(" 405 "));
    assert!(answer(b"GET / HTTP/1.1\r\n\r\n").contains(" 404 "));
    let long = [&b"GET /metrics HTTP/1.1\r\nX: "[..], &vec![b'x'; 100_000]].concat();
    assert!(answer(&long).contains(" 431 "));
    assert!(!answer(b"HEAD /metrics HTTP/1.1\r\n\r\n").contains("iosched_"));
    assert!(serving.metrics("").contains("200 OK"));
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn unusable_addresses(place: &Sandbox) {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["serve", "memory:1M", "--unix", "s", "--metrics", &address];
    place.iosched(&args).refused(2, &["--metrics", &address, "in use"]);
    for option in ["--metrics", "--tcp"] {
        for (given, example) in
            [("9810", "127.0.0.1:9810"), (":9810", "127.0.0.1:9810"), ("localhost", "127.0.0.1:PORT")]
        {
            let args = ["serve", "memory:1M", "--unix", "s", "--insecure", option, given];
            place.iosched(&args).refused(2, &[option, &format!("write ADDRESS:PORT, for example {example}")]);
        }
    }
    assert!(!place.path("s").exists());
}

pub(super) fn control_floods(place: &Sandbox) {
    let mut serving = Serving::start(place, &["memory:1M"]);
    let flood = |bytes: Vec<u8>| {
        let mut socket = UnixStream::connect(place.path("c")).unwrap();
        socket.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        // The server stops reading when the client does not read its replies.
        let _ = socket.write_all(&bytes);
        socket
    };
    let requests = b"{\"op\":\"read\",\"path\":\"memory/stat\"}\n".repeat(100_000);
    let _held = [flood(requests), flood(vec![b'x'; 1 << 20]), flood(Vec::new())];
    place.iosched(&["get", "--at", "c", "nr_requests"]).code(0).says(&["nr_requests="]);
    assert_eq!(ask(&mut serving.connect(), WRITE, 0), 0);
    assert_eq!(serving.stop(), Some(0));
}
