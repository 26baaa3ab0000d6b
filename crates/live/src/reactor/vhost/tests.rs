//! Tests of the turn in which the server serves guests. They use no thread, no kernel and no guest.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::mpsc;

use iosched_system::Memory as Taken;
use rustix::event::{EventfdFlags, eventfd};
use vm_memory::{Bytes, GuestAddress};

use super::*;
use crate::reactor::{Opened, ServeOptions, open};
use crate::ring::Tag;
use crate::virtio::chain::tests::{NEXT, WRITE, put};
use crate::virtio::memory::tests::{USER, memory};

const SIZE: u16 = 256;
const AVAILABLE: u64 = 4096;
const USED: u64 = 8192;
const HEADER: u64 = 12288;
const STATUS: u64 = 12544;
const INDIRECT: u16 = 4;
/// Number of descriptors of a request.
const DESCRIPTORS: u16 = 64;

/// A ring that records the calls that wait for notifications.
#[derive(Default)]
struct Waits(Vec<Tag>);

impl Calls for Waits {
    fn push(&mut self, _: BorrowedFd<'_>, call: Call, tag: Tag) {
        assert!(matches!(call, Call::WaitReadable));
        self.0.push(tag);
    }

    fn cancel(&mut self, tag: Tag) {
        self.0.retain(|&waits| waits != tag);
    }
}

struct World {
    server: Server,
    disk: LiveDisk,
    waits: Waits,
    memory: Arc<Memory>,
    now: Time,
    device: usize,
}

impl World {
    /// Creates a guest with one queue. No disk supports the type of the guest's requests.
    fn new() -> Self {
        let options = ServeOptions::new("test", "memory:1M".parse().unwrap(), "noop".parse().unwrap());
        let Opened { disk, .. } = open(&options).unwrap();
        let memory = Arc::new(memory(1 << 16));
        let header = [99, 0, 0, 0];
        memory.write(HEADER, &header).unwrap();
        let table = 16384;
        for number in 0..DESCRIPTORS - 1 {
            put(&memory, table, number, (HEADER, 16, NEXT, number + 1));
        }
        put(&memory, table, DESCRIPTORS - 1, (STATUS, 1, WRITE, 0));
        (0..SIZE).for_each(|head| put(&memory, 0, head, (table, 16 * u32::from(DESCRIPTORS), INDIRECT, 0)));
        let (server, waits) = (Server::new(Messages::to_nobody()), Waits::default());
        let mut world = Self { server, disk, waits, memory, now: Time::BEGINNING, device: 0 };
        world.connect();
        world
    }

    fn hands<T>(&mut self, act: impl FnOnce(&mut Server, &mut Hands<'_>, usize) -> T) -> T {
        let Self { server, disk, waits, now, device, .. } = self;
        act(server, &mut Hands { now: *now, disk, ring: waits }, *device)
    }

    fn connect(&mut self) {
        let memory = Arc::clone(&self.memory);
        self.device = self.hands(|server, hands, _| server.open(hands, Identity::new("vm", 0), "vm").unwrap());
        let addresses = Addresses { descriptors: USER, available: USER + AVAILABLE, used: USER + USED };
        let bell = File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        self.hands(|server, hands, device| {
            server.set_memory(device, memory)?;
            server.set_size(device, 0, SIZE.into())?;
            server.set_addresses(device, 0, addresses)?;
            server.set_kick(hands, device, 0, bell)
        })
        .unwrap();
    }

    /// Makes `count` requests available in total.
    fn offer(&self, count: u16) {
        (0..SIZE)
            .for_each(|at| self.memory.guest.write_obj(at, GuestAddress(AVAILABLE + 4 + u64::from(at) * 2)).unwrap());
        self.memory.guest.write_obj(count, GuestAddress(AVAILABLE + 2)).unwrap();
    }

    fn answered(&self) -> u16 {
        self.memory.guest.read_obj(GuestAddress(USED + 2)).unwrap()
    }

    /// Simulates a notification of the guest, or a failed wait. Returns whether the server
    /// immediately waits again.
    fn ring(&mut self, result: i32) -> bool {
        let tag = self.waits.0.pop().expect("the server waits for a notification");
        let completed = Completed { tag, result, memory: Taken::None };
        self.server.kicked(self.now, &completed, &mut self.waits);
        !self.waits.0.is_empty()
    }

    fn turn(&mut self) {
        self.server.time(self.now, &mut self.waits);
        self.server.serve(self.now, &mut self.disk);
    }
}

#[test]
fn turn_does_a_bounded_amount_of_a_guests_work() {
    let mut world = World::new();
    world.offer(SIZE);
    let each = WORK_MAX.div_ceil(u32::from(DESCRIPTORS) + 1) as u16;
    for turn in 1..=4 {
        assert!(world.server.has_arrived(), "turn {turn}");
        world.turn();
        world.server.go_on(world.now, &mut world.disk);
        assert_eq!(world.answered(), (turn * each).min(SIZE), "turn {turn}");
    }
    world.turn();
    assert!(world.answered() == SIZE && !world.server.has_arrived());
}

#[test]
fn guest_with_needless_notifications_is_ignored_for_a_while() {
    let mut world = World::new();
    world.turn();
    for _ in 0..VAIN_RINGS_MAX {
        assert!(world.ring(0) && world.server.next_time().is_none());
    }
    for _ in 0..3 {
        assert!(!world.ring(0), "the server ignores the guest again after the next needless notification");
        let until = world.server.next_time().unwrap();
        assert_eq!(until, world.now + DEAF_NS);
        world.now = until;
        world.turn();
        assert!(world.server.next_time().is_none());
    }
    world.offer(1);
    world.turn();
    assert!(world.answered() == 1 && world.ring(0), "the server listens again once the guest has a request");
}

#[test]
fn vhost_retries_when_listening_fails() {
    let mut world = World::new();
    assert!(!world.ring(-libc::ENOMEM));
    world.now = world.server.next_time().unwrap();
    world.turn();
    assert!(world.ring(0));
}

#[test]
fn server_stops_listening_to_a_disconnected_guest() {
    let mut world = World::new();
    assert!(!world.ring(-libc::ENOMEM));
    let (waits, over) = mpsc::sync_channel(1);
    world.hands(|server, hands, device| server.close(hands, device, waits));
    over.try_recv().unwrap();
    assert!(world.server.next_time().is_none() && world.server.kicks.is_empty());
    // The next device and its notification file get the same numbers again.
    world.connect();
    assert!(world.ring(0));
}
