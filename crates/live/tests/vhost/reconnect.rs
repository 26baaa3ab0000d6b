//! Tests with servers and frontends that disconnect and connect again.

use super::Server;
use super::guest::{Guest, IN, OUT};

#[test]
fn requests_of_a_lost_frontend_are_done_after_reconnecting() {
    let server = Server::new("model:sata-7200,size=64M", &["vm"]);
    let mut guest = Guest::new(1);
    guest.connect(&server.socket(0));
    guest.write(0, &[1; 4096]);
    for number in 0..20_u64 {
        let sector = number * 5000 % 130_000;
        guest.submit(
            0,
            if number % 2 == 0 { OUT } else { IN },
            sector,
            &vec![number as u8; if number % 2 == 0 { 512 } else { 0 }],
            if number % 2 == 0 { 0 } else { 512 },
        );
    }
    guest.disconnect();
    guest.connect(&server.socket(0));
    for _ in 0..20 {
        assert_eq!(guest.wait(0).1, 0);
    }
    for number in (0..20_u64).step_by(2) {
        assert_eq!(guest.read(number * 5000 % 130_000, 512), [number as u8; 512]);
    }
    assert_eq!(server.clients().len(), 1);
}

#[test]
fn next_server_continues_where_the_last_one_ended() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8 << 20).unwrap();
    let backend = file.path().to_str().unwrap().to_owned();
    let mut guest = Guest::new(1);
    for round in 0..5_u64 {
        let mut server = Server::new(&backend, &["vm"]);
        guest.connect(&server.socket(0));
        if round > 0 {
            assert_eq!(guest.wait(0).1, 0, "the request from the time without a server is answered");
            assert_eq!(guest.read(round - 1, 512), [round as u8 - 1; 512]);
        }
        guest.write(100 + round, &[7; 512]);
        server.stop();
        guest.submit(0, OUT, round, &[round as u8; 512], 0);
        guest.disconnect();
    }
}

#[test]
fn second_frontend_waits_until_the_first_disconnects() {
    let server = Server::new("memory:8M", &["vm"]);
    let mut first = Guest::new(1);
    first.connect(&server.socket(0));
    let socket = server.socket(0);
    let second = std::thread::spawn(move || {
        let mut second = Guest::new(1);
        second.connect(&socket);
        second.read(0, 512)
    });
    first.write(0, &[5; 512]);
    assert!(!second.is_finished());
    first.disconnect();
    assert_eq!(second.join().unwrap(), [5; 512]);
}
