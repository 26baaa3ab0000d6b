//! Clients of the control socket and of the metrics.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::common::PATIENCE;
use crate::list::Sandbox;
use crate::nbd::Target;

/// A request that any control socket answers.
const LIST: &str = "{\"op\":\"list\",\"path\":\"\"}\n";

fn control(target: &Target) -> UnixStream {
    let stream = UnixStream::connect(target.server.here.join("c")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns the first line of the reply.
fn line(stream: &mut UnixStream) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

fn controls(target: &Target) {
    let mut stream = control(target);
    stream.write_all(LIST.as_bytes()).unwrap();
    let answer = line(&mut stream);
    assert!(answer.starts_with("{\"ok\":"), "{answer}");
}

pub(super) fn garbage_lines(place: &Sandbox) {
    let target = Target::new(place);
    for bytes in [
        &b"\xff\xfe\n"[..],
        b"\n",
        b"what\n",
        b"{\"op\":\"read\"}\n",
        b"{\"op\":\"read\",\"path\":7}\n",
        b"{\"op\":\"write\",\"path\":\"a\"}\n",
        b"{\"op\":\"list\",\"path\":\"../../..\"}\n",
        b"\0\n",
    ] {
        let mut stream = control(&target);
        stream.write_all(bytes).unwrap();
        let answer = line(&mut stream);
        assert!(answer.starts_with("{\"error\":"), "{bytes:?}: {answer}");
    }
    controls(&target);
    target.serves_and_ends_well();
}

pub(super) fn huge_lines(place: &Sandbox) {
    let target = Target::new(place);
    for _ in 0..4 {
        let mut stream = control(&target);
        let noise = vec![b'x'; 1 << 20];
        // The server closes the connection before the test has sent all data.
        while stream.write_all(&noise).is_ok() {}
    }
    assert!(target.taken_kib() < 16 << 10);
    controls(&target);
    target.serves_and_ends_well();
}

pub(super) fn slow_lines(place: &Sandbox) {
    let target = Target::new(place);
    let mut slow: Vec<UnixStream> = (0..50).map(|_| control(&target)).collect();
    let (first, rest) = LIST.as_bytes().split_at(16);
    for byte in first {
        slow.iter_mut().for_each(|stream| stream.write_all(&[*byte]).unwrap());
        thread::sleep(Duration::from_millis(2));
    }
    controls(&target);
    slow.iter_mut().for_each(|stream| stream.write_all(rest).unwrap());
    assert!(slow.iter_mut().all(|stream| !line(stream).is_empty()), "slow clients also get a reply");
    drop(slow);
    target.serves_and_ends_well();
}

pub(super) fn many_control_clients(place: &Sandbox) {
    let target = Target::new(place);
    let mut crowd: Vec<UnixStream> = (0..300).map(|_| control(&target)).collect();
    controls(&target);
    crowd.truncate(10);
    controls(&target);
    drop(crowd);
    target.serves_and_ends_well();
}

pub(super) fn unread_control_replies(place: &Sandbox) {
    let target = Target::new(place);
    let mut stream = control(&target);
    stream.set_nonblocking(true).unwrap();
    let requests = LIST.repeat(1000);
    while stream.write_all(requests.as_bytes()).is_ok() {}
    controls(&target);
    assert!(target.taken_kib() < 16 << 10);
    drop(stream);
    target.serves_and_ends_well();
}

/// Returns the metrics.
fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(super) fn garbage_at_the_metrics_port(place: &Sandbox) {
    let (target, address) = Target::measured(place, &["memory:16M", "--budget-mib", "16"]);
    for bytes in [&b"\xff\xff\xff\n\n"[..], b"GET\r\n\r\n", b"PUT /metrics HTTP/9.9\r\n\r\n", b"NBDMAGICIHAVEOPT"] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&bytes.repeat(20)).unwrap();
    }
    // Some clients connect and send nothing.
    let _silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&address).unwrap()).collect();
    assert!(metrics(&address).contains("iosched_connections_total"));
    target.answers();
    assert_eq!(target.server.stop(), Some(0));
}

pub(super) fn refused_and_stalled_are_counted(place: &Sandbox) {
    let args = ["memory:16M", "--budget-mib", "16", "--max-connections", "2", "--stall-timeout", "1"];
    let (target, address) = Target::measured(place, &args);
    let mut still = target.client();
    still.send(&crate::nbd::request(0, crate::nbd::WRITE, 1, 0, 4096)[..20]);
    let quiet = target.client();
    let mut refused = target.raw();
    assert_eq!(refused.read(&mut [0; 18]).unwrap(), 0);
    still.is_closed();
    let text = metrics(&address);
    for count in ["refused\"} 1", "stalled\"} 1"] {
        let line = format!("iosched_connections_total{{fate=\"{count}");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    drop(quiet);
    assert_eq!(target.server.stop(), Some(0));
}
