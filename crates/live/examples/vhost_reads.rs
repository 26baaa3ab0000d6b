//! A driver in user space for a vhost-user-blk disk of any server. It sends random reads of 4 KiB
//! for a given time and prints the IOPS: `cargo run -p iosched-live --example vhost_reads SOCKET
//! DEPTH SECONDS [poll]`.
//!
//! Like a guest's driver, this program notifies the server only if the server requests
//! notifications. It sleeps until the server notifies it of an answer. With `poll`, it polls for
//! answers instead of sleeping. It does not check the data.

#[path = "../tests/vhost/guest.rs"]
mod guest;

use std::path::Path;
use std::time::{Duration, Instant};

use guest::{Guest, IN, SLOTS};
use iosched_check::Random;

const READ_BYTES: u32 = 4096;
const SECTORS: u64 = READ_BYTES as u64 / 512;

/// Keeps `depth` reads in flight for `duration`. Returns the answered reads per second.
fn measure(socket: &Path, depth: u16, duration: Duration, polls: bool) -> f64 {
    let mut guest = Guest::new(1);
    guest.connect(socket);
    let capacity = guest.config(0, 8).try_into().expect("eight bytes");
    let blocks = (u64::from_le_bytes(capacity) / SECTORS) as usize;
    let mut random = Random::new(1);
    let mut next = || random.index(blocks) as u64 * SECTORS;
    (0..depth).for_each(|_| _ = guest.submit(0, IN, next(), &[], READ_BYTES));
    let began = Instant::now();
    let mut answered = 0_u64;
    loop {
        let mut came = guest.used(0);
        while came.is_none() {
            came = if polls { guest.used(0) } else { Some(guest.wait_used(0)) };
        }
        while let Some((head, _)) = came {
            assert_eq!(guest.again(0, head / 3, next()), 0, "a read failed");
            answered += 1;
            came = guest.used(0);
        }
        let elapsed = began.elapsed();
        if elapsed >= duration {
            return answered as f64 / elapsed.as_secs_f64();
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [socket, depth, seconds, rest @ ..] = &arguments[..] else {
        return Err("write it like vhost_reads vm.sock 32 5, or vhost_reads vm.sock 32 5 poll".into());
    };
    let depth: u16 = depth.parse()?;
    if !(1..=SLOTS).contains(&depth) {
        return Err(format!("depth {depth} is out of range; it must be from 1 to {SLOTS}").into());
    }
    let iops = measure(Path::new(socket), depth, Duration::from_secs(seconds.parse()?), rest == ["poll"]);
    println!("{iops:.0}");
    Ok(())
}
