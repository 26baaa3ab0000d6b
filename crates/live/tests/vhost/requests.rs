//! Tests of requests of guests and their answers.

use std::sync::{Arc, Mutex};

use iosched_live::Messages;

use super::Server;
use super::guest::{DISCARD, F_EVENT_IDX, FLUSH, GET_ID, Guest, IN, OUT, SIZE, SLOTS, WRITE_ZEROES, range};

const IOERR: u8 = 1;
const UNSUPP: u8 = 2;

/// Buffer for messages to the user.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

#[test]
fn guest_reads_its_data_with_and_without_event_idx() {
    for without in [0, F_EVENT_IDX] {
        let server = Server::new("memory:8M", &["vm"]);
        let mut guest = Guest::new(1);
        guest.without = without;
        guest.connect(&server.socket(0));
        let data = bytes(300 * 512, 1);
        guest.write(3, &data);
        assert_eq!(guest.read(3, 300 * 512), data);
        guest.call(FLUSH, 0, &[], 0).unwrap();
        guest.call(DISCARD, 0, &range(8, 8, 0), 0).unwrap();
        guest.call(WRITE_ZEROES, 0, &range(100, 50, 1), 0).unwrap();
        let mut now = data.clone();
        now[5 * 512..13 * 512].fill(0);
        now[97 * 512..147 * 512].fill(0);
        assert_eq!(guest.read(3, 300 * 512), now);
        let mut id = b"vm".to_vec();
        id.resize(20, 0);
        assert_eq!(guest.call(GET_ID, 0, &[], 20), Ok(id));
        let (name, ios) = server.clients().remove(0);
        assert!(name.starts_with("vm ") && ios == 6, "{name} has had {ios}");
    }
}

#[test]
fn guest_sees_the_size_and_invalid_requests_fail() {
    let server = Server::new("memory:8M", &["vm", "archive,read-only"]);
    let mut guest = Guest::new(1);
    guest.connect(&server.socket(0));
    assert_eq!(guest.config(0, 8), (8_u64 << 20 >> 9).to_le_bytes());
    assert_eq!(guest.call(IN, (8 << 20 >> 9) - 1, &[], 1024), Err(IOERR), "beyond the end");
    assert_eq!(guest.call(OUT, u64::MAX >> 9, &[0; 512], 0), Err(IOERR));
    assert_eq!(guest.call(IN, 0, &[], 100), Err(IOERR), "part of a sector");
    assert_eq!(guest.call(99, 0, &[], 512), Err(UNSUPP));
    assert_eq!(guest.call(DISCARD, 0, &range(0, u32::MAX, 0), 0), Err(IOERR));
    assert_eq!(guest.read(0, 512), [0; 512], "the queue continues after errors");
    let mut reader = Guest::new(1);
    reader.connect(&server.socket(1));
    assert_eq!(reader.call(OUT, 0, &[0; 512], 0), Err(IOERR), "the export is read-only");
    assert_eq!(reader.read(0, 512), [0; 512]);
}

#[test]
fn several_queues_are_served_with_many_requests_each() {
    let server = Server::new("memory:64M", &["vm"]);
    let mut guest = Guest::new(4);
    guest.connect(&server.socket(0));
    let place = |queue: usize, round: u64, slot: u64| (queue as u64 * 4 + round) * u64::from(SLOTS) + slot;
    for round in 0..4 {
        for queue in 0..4 {
            for slot in 0..u64::from(SLOTS) {
                let place = place(queue, round, slot);
                guest.submit(queue, OUT, place * 8, &bytes(4096, place as usize), 0);
            }
        }
        for queue in 0..4 {
            (0..SLOTS).for_each(|_| assert_eq!(guest.wait(queue).1, 0));
        }
    }
    for place in 0..4 * 4 * u64::from(SLOTS) {
        assert_eq!(guest.read(place * 8, 4096), bytes(4096, place as usize));
    }
}

#[test]
fn a_large_request_is_done_in_pieces() {
    let server = Server::new("memory:16M", &["vm"]);
    let mut guest = Guest::new(1);
    guest.connect(&server.socket(0));
    let data = bytes((5 << 19) + 512, 9);
    guest.write(1, &data);
    assert!(guest.read(1, data.len() as u32) == data);
    assert_eq!(server.clients()[0].1, 6, "three pieces each");
}

#[test]
fn queue_stops_after_its_started_requests_complete() {
    let server = Server::new("model:sata-7200,size=64M", &["vm"]);
    let mut guest = Guest::new(2);
    guest.connect(&server.socket(0));
    for number in 0..10 {
        guest.submit(1, IN, number * 9000, &[], 512);
    }
    // Requests that have begun are answered first. The other requests stay for the next start.
    let next = guest.stop(1);
    let answered = std::iter::from_fn(|| guest.used(1)).count() as u32;
    assert_eq!(next, answered);
    assert_eq!(guest.read(0, 512), [0; 512], "the other queue continues");
}

#[test]
fn guests_that_break_the_rules_end_their_own_queue() {
    let server = Server::new("memory:8M", &["bad", "good"]);
    let mut good = Guest::new(1);
    good.connect(&server.socket(1));
    let mut bad = Guest::new(2);
    bad.connect(&server.socket(0));
    // A chain without end, a chain outside the memory, and chains without a status. The server
    // returns each chain without an answer.
    let (next, write) = (1, 2);
    for descriptor in [(1 << 30, 16, next, 0), (1 << 40, 16, next, 1), (1 << 30, 16, 0, 0), (1 << 30, 16, write, 0)] {
        bad.describe(1, 0, descriptor);
        bad.describe(1, 1, (1 << 41, 1, write, 0));
        bad.offer(1, 0);
        assert_eq!(bad.wait_used(1).1, 0);
    }
    // The server also returns a chain whose data passes the last address at the start of the second
    // piece.
    bad.describe(1, 0, (1 << 30, 16, next, 1));
    bad.describe(1, 1, (u64::MAX - 511, 2 << 20, next | write, 2));
    bad.describe(1, 2, ((1 << 30) + 64, 1, write, 0));
    bad.offer(1, 0);
    assert_eq!(bad.wait_used(1).1, 0);
    // The server does not return a head outside the table.
    bad.offer(1, 9999);
    assert_eq!(bad.read(0, 512), [0; 512]);
    assert_eq!(good.read(0, 512), [0; 512]);
}

#[test]
fn queue_with_an_invalid_index_is_no_longer_served() {
    let log = LogBuffer::default();
    let messages = Messages::to(log.clone());
    let server = Server::with("memory:8M", "cfq", None, &["vm"], messages.clone());
    let mut guest = Guest::new(2);
    guest.connect(&server.socket(0));
    guest.advance(1, SIZE + 1);
    assert_eq!(guest.read(0, 512), [0; 512]);
    assert!(messages.finish(std::time::Duration::from_secs(60)));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the server no longer serves queue 1"), "{log}");
}
