//! Tests of guests that violate the rules. The server must still serve other guests.

use std::sync::atomic::{AtomicBool, Ordering};

use iosched_check::Random;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EFD_SEMAPHORE, EventFd};

use super::Server;
use super::guest::{BASE, FLUSH, GET_ID, Guest, IN, SIZE};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const IOERR: u8 = 1;

/// Makes other threads end when a test ends, even if the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks that the server still serves another guest and the administrator.
fn is_served(server: &Server, guest: &mut Guest) {
    for number in 0..200_u64 {
        guest.write(number, &[number as u8; 512]);
        assert_eq!(guest.read(number, 512), [number as u8; 512]);
    }
    assert!(!server.clients().is_empty());
}

fn good_and_bad(server: &Server) -> (Guest, Guest) {
    let (mut good, mut bad) = (Guest::new(1), Guest::new(1));
    good.connect(&server.socket(0));
    bad.connect(&server.socket(1));
    (good, bad)
}

#[test]
fn endless_requests_of_a_guest_do_not_block_others() {
    // Requests of the first two kinds never reach the disk. Requests of the other kinds reach it.
    for (kind, reads) in [(GET_ID, 20), (99, 20), (FLUSH, 0), (IN, 512)] {
        let server = Server::new("memory:8M", &["good", "bad,read-only"]);
        let (mut good, mut bad) = good_and_bad(&server);
        let slot = bad.submit(0, kind, 0, &[], reads);
        bad.wait(0);
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = Ends(&ends);
            scope.spawn(|| bad.flood(0, slot * 3, &ends));
            is_served(&server, &mut good);
        });
    }
}

#[test]
fn endless_notifications_of_a_guest_do_not_block_others() {
    let server = Server::new("memory:8M", &["good", "bad"]);
    let (mut good, mut bad) = good_and_bad(&server);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = Ends(&ends);
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                bad.ring(0);
            }
        });
        is_served(&server, &mut good);
    });
    assert_eq!(bad.read(0, 512), [0; 512], "the bad guest is also served");
}

#[test]
fn always_readable_eventfd_does_not_block_others() {
    let server = Server::new("memory:8M", &["good", "bad"]);
    let (mut good, mut bad) = good_and_bad(&server);
    bad.disconnect();
    // Each read of this eventfd decreases its counter by one, so that notifications remain.
    let bell = EventFd::new(EFD_NONBLOCK | EFD_SEMAPHORE).unwrap();
    bell.write(u64::MAX - 2).unwrap();
    bad.ring_by(0, bell);
    bad.connect(&server.socket(1));
    is_served(&server, &mut good);
    assert_eq!(bad.read(0, 512), [0; 512], "the guest with this eventfd is also served");
    // The guest disconnects while the server ignores its notification file. The server must also
    // remove such a file.
    for _ in 0..50 {
        bad.disconnect();
        bad.connect(&server.socket(1));
    }
    is_served(&server, &mut good);
}

#[test]
fn data_outside_the_guest_memory_is_refused() {
    let server = Server::new("memory:8M", &["good", "bad"]);
    let (mut good, mut bad) = good_and_bad(&server);
    let header = BASE + (1 << 20);
    let status = vm_memory::GuestAddress(header + 16);
    // Length, count and address of the data. The data is larger than the disk, larger than the
    // memory, or half outside the memory.
    let cases =
        [(0xffff_fe00, 1, BASE), (0xffff_fe00, 100, BASE), (u32::MAX, 3, BASE), (4096, 1, BASE + (128 << 20) - 512)];
    for (bytes, times, address) in cases {
        vm_memory::Bytes::write_slice(&bad.memory, &[0xff], status).unwrap();
        bad.describe(0, 0, (header, 16, NEXT, 1));
        (1..=times).for_each(|number| bad.describe(0, number, (address, bytes, NEXT | WRITE, number + 1)));
        bad.describe(0, times + 1, (header + 16, 1, WRITE, 0));
        bad.offer(0, 0);
        assert_eq!(bad.wait_used(0), (0, 1), "{times} times {bytes} bytes");
        assert_eq!(vm_memory::Bytes::read_obj::<u8>(&bad.memory, status).unwrap(), IOERR);
    }
    is_served(&server, &mut good);
}

#[test]
fn random_ring_contents_do_not_block_other_guests() {
    let server = Server::new("memory:8M", &["good", "bad,read-only"]);
    let mut good = Guest::new(1);
    good.connect(&server.socket(0));
    let mut random = Random::new(1);
    for number in 0..60_u64 {
        good.write(number, &[number as u8; 512]);
        let mut bad = Guest::new(1);
        bad.connect(&server.socket(1));
        for _ in 0..20 {
            for descriptor in 0..SIZE {
                // The address is in the memory, near the end of the memory, or anywhere. The length
                // is small, large, or arbitrary.
                let address =
                    [BASE + random.below(1 << 20), BASE + (128 << 20) - random.below(1 << 14), random.next_word()];
                let bytes = [random.below(64), random.below(1 << 20), random.next_word()];
                let (flags, next) = (random.below(8) as u16, random.below(u64::from(SIZE) + 2) as u16);
                let described = (address[random.index(3)], bytes[random.index(3)] as u32, flags, next);
                bad.describe(0, descriptor, described);
            }
            (0..random.below(u64::from(SIZE))).for_each(|_| bad.offer(0, random.below(u64::from(SIZE) + 2) as u16));
            bad.ring(0);
            while bad.used(0).is_some() {}
        }
        assert_eq!(good.read(number, 512), [number as u8; 512]);
    }
    is_served(&server, &mut good);
}
