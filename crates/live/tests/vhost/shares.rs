//! Tests that guests share a disk according to the weights of their exports.

use iosched_live::Messages;

use super::Server;
use super::guest::{Guest, IN};

/// Size of a read, bytes. The reads are large, so that the device stays the bottleneck even if
/// other programs use the processors.
const READ_BYTES: u32 = 1 << 20;

/// Keeps `depth` reads of each guest in flight until all guests together have completed `total`
/// reads. Returns the number of completed reads of each guest.
fn shares(server: &Server, guests: usize, depth: usize, total: u64) -> Vec<u64> {
    let mut guests: Vec<Guest> = (0..guests).map(|_| Guest::new(1)).collect();
    let mut random = 1_u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % 60 * 2048
    };
    let mut had = vec![0; guests.len()];
    for (number, guest) in guests.iter_mut().enumerate() {
        guest.connect(&server.socket(number));
    }
    for guest in &mut guests {
        (0..depth).for_each(|_| _ = guest.submit(0, IN, next(), &[], READ_BYTES));
    }
    while had.iter().sum::<u64>() < total {
        let mut any = false;
        for (guest, had) in guests.iter_mut().zip(&mut had) {
            while let Some((head, _)) = guest.used(0) {
                guest.done(0, head);
                guest.submit(0, IN, next(), &[], READ_BYTES);
                (*had, any) = (*had + 1, true);
            }
        }
        if !any {
            std::thread::yield_now();
        }
    }
    had
}

#[test]
fn two_guests_share_according_to_their_weights() {
    let exports = ["vm1,weight=200", "vm2,weight=100"];
    // Slices are short, so that the test has many slices. Each guest keeps more requests in flight
    // than the device takes. The other requests wait in the scheduler, where the weights apply.
    let server = Server::with(
        "model:sata-ssd,size=64M",
        "cfq:slice_idle=0,slice_sync=20",
        Some(4),
        &exports,
        Messages::to_nobody(),
    );
    let had = shares(&server, 2, 20, 3_000);
    let share = had[0] as f64 / had.iter().sum::<u64>() as f64;
    println!("200 to 100: {had:?}, {share:.4} to the first");
    assert!((share - 2.0 / 3.0).abs() < 0.05 * 2.0 / 3.0, "{had:?}");
}
