//! Tests of the control socket from the client's side.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::wire::{Answer, LINE_BYTES_MAX, Request};
use super::*;
use crate::Errno;
use crate::OwnedListener;
use crate::reactor::ServeOptions;

/// Starts a server with one file, which returns the last written value. The server refuses the
/// value `odd`.
fn server(here: &tempfile::TempDir) -> (ControlServer, PathBuf) {
    let path = here.path().join("control");
    let mut value = "1".to_owned();
    let handler = move |request| match request {
        Request::List { path } if path.is_empty() => Answer::Ok("dir/\nfile\n".to_owned()),
        Request::Read { path } if path == "file" => Answer::Ok(format!("{value}\n")),
        Request::Read { path } if path == "large" => Answer::Ok("x".repeat(1 << 20)),
        Request::Write { path, value: new } if path == "file" && new != "odd" => {
            value = new;
            Answer::Ok(String::new())
        }
        Request::Write { .. } => Answer::Error { errno: Errno::EINVAL, message: "odd is not even".to_owned() },
        _ => Answer::Error { errno: Errno(2), message: "there is file".to_owned() },
    };
    (ControlServer::spawn(OwnedListener::bind(&path).unwrap(), handler).unwrap(), path)
}

#[test]
fn written_values_are_read_back_and_bad_ones_are_refused() {
    let here = tempfile::tempdir().unwrap();
    let (server, path) = server(&here);
    let mut client = ControlClient::connect(&path).unwrap();
    assert_eq!(client.list("").unwrap(), ["dir/", "file"]);
    client.write("file", "two words\n").unwrap();
    assert_eq!(ControlClient::connect(&path).unwrap().read("file").unwrap(), "two words\n");
    let refused = client.write("file", "odd").unwrap_err();
    assert!(matches!(&refused, ClientError::Refused { errno: Errno::EINVAL, .. }), "{refused:?}");
    assert_eq!(refused.to_string(), "odd is not even");
    assert!(matches!(client.read("gone"), Err(ClientError::Refused { errno: Errno(2), .. })));
    assert!(matches!(client.write("file", "two\nlines"), Err(ClientError::Wire(_))));
    assert_eq!(client.read("file").unwrap(), "two words\n", "the connection continues after errors");
    drop(server);
    assert!(!path.exists());
    assert!(client.read("file").is_err());
}

fn read(path: &str) -> Request {
    Request::Read { path: path.to_owned() }
}

fn write(path: &str, value: &str) -> Request {
    Request::Write { path: path.to_owned(), value: value.to_owned() }
}

/// Number of rounds of requests that are sent without waiting for answers.
const ROUNDS: usize = 20;

#[test]
fn many_requests_at_once_are_answered_in_their_order() {
    let here = tempfile::tempdir().unwrap();
    let (_server, path) = server(&here);
    let mut stream = UnixStream::connect(&path).unwrap();
    let mut writer = stream.try_clone().unwrap();
    // The answers exceed every socket buffer. The server therefore waits for the reader. The reader
    // waits only for answers.
    let sender = std::thread::spawn(move || {
        for number in 0..ROUNDS {
            for request in [write("file", &number.to_string()), read("file"), read("large")] {
                writer.write_all(&request.encode().unwrap()).unwrap();
            }
        }
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut decoder = super::wire::AnswerDecoder::default();
    let mut answers = Vec::new();
    let mut bytes = vec![0; 70_000];
    loop {
        let count = stream.read(&mut bytes).unwrap();
        if count == 0 {
            break;
        }
        decoder.push(&bytes[..count]);
        while let Some(answer) = decoder.decode().unwrap() {
            answers.push(answer);
        }
    }
    sender.join().unwrap();
    assert_eq!(answers.len(), ROUNDS * 3);
    for (number, answers) in answers.chunks(3).enumerate() {
        assert_eq!(answers[1], Answer::Ok(format!("{number}\n")));
    }
}

#[test]
fn bad_or_silent_clients_do_not_disturb_others() {
    let here = tempfile::tempdir().unwrap();
    let (_server, path) = server(&here);
    let mut good = ControlClient::connect(&path).unwrap();
    let mut flood = UnixStream::connect(&path).unwrap();
    let _ = flood.write_all(&vec![b'x'; 4 * LINE_BYTES_MAX]);
    let mut text = String::new();
    let _ = flood.read_to_string(&mut text);
    assert!(text.starts_with(r#"{"error":{"errno":22,"message":"a line is longer than"#), "{text}");
    assert_eq!(good.read("file").unwrap(), "1\n");
    let silent: Vec<_> = (0..2 * CONNECTIONS_MAX).map(|_| UnixStream::connect(&path).unwrap()).collect();
    assert_eq!(ControlClient::connect(&path).unwrap().read("file").unwrap(), "1\n");
    drop(silent);
}

#[test]
fn control_socket_reaches_the_tree_of_a_served_disk() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("control");
    let backend = crate::backend::Spec::Memory(1 << 20);
    let options = ServeOptions::new("sda", backend, iosched::Setting::defaults("cfq"));
    let served = crate::reactor::start(&ServeOptions { budget_bytes: 1 << 20, ..options }, None).unwrap();
    let forest = Forest::new(vec![served.handle.clone()]);
    let _server = forest.serve(OwnedListener::bind(&path).unwrap()).unwrap();
    let mut client = ControlClient::connect(&path).unwrap();
    assert_eq!(client.list("").unwrap(), ["sda/"]);
    assert!(client.list("sda/queue").unwrap().contains(&"iosched/".to_owned()));
    assert_eq!(client.read("sda/size").unwrap(), "2048\n");
    client.write("sda/queue/scheduler", "deadline").unwrap();
    assert!(client.read("sda/queue/scheduler").unwrap().contains("[deadline]"));
    assert!(client.list("sda/queue/iosched").unwrap().contains(&"fifo_batch".to_owned()));
    for (path, errno, expected) in [
        ("sda/queue/nr_requests", libc::EINVAL, "queue/nr_requests: \"x\" is not a whole number"),
        (
            "sdb/queue/nr_requests",
            libc::ENOENT,
            "sdb/queue/nr_requests: there is no such file or directory; available: sda",
        ),
        ("", libc::EISDIR, "is a directory"),
    ] {
        match client.write(path, "x") {
            Err(ClientError::Refused { errno: found, message }) => {
                assert_eq!(found, Errno(errno), "{path}");
                assert!(message.contains(expected), "{path}: {message}");
            }
            other => panic!("{path}: {other:?}"),
        }
    }
    served.handle.stop();
    served.wait().flushed.unwrap();
    assert!(matches!(client.read("sda/size"), Err(ClientError::Refused { errno: Errno(libc::ENODEV), .. })));
}
