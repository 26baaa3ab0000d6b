//! Incomplete requests, replies that nobody reads, and requests larger than the memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::handshake::certificates;
use crate::common::{IOSCHED, Server, available, is_root};
use crate::list::Sandbox;
use crate::nbd::{Client, FUA, READ, Target, WRITE, ZEROES, request, write};

/// Returns a write of 32 MiB that contains only the first 1,000 bytes of its data.
fn stalled_write() -> Vec<u8> {
    [request(0, WRITE, 1, 8 << 20, 32 << 20), vec![1; 1000]].concat()
}

pub(super) fn incomplete_writes(place: &Sandbox) {
    for args in [&["memory:64M"][..], &["memory:64M", "--budget-mib", "8"]] {
        let target = Target::of(place, args);
        let mut there: Vec<Client> = (0..16).map(|_| target.client()).collect();
        there.iter_mut().for_each(|client| client.send(&stalled_write()));
        for _ in 0..20 {
            target.answers();
        }
        let taken_kib = target.taken_kib();
        assert!(taken_kib < 16 << 10, "{taken_kib} KiB for 16,000 bytes");
        drop(there);
        target.serves_and_ends_well();
    }
}

pub(super) fn half_sent_writes(place: &Sandbox) {
    let target = Target::of(place, &["memory:64M", "--budget-mib", "8"]);
    let mut there: Vec<Client> = (0..16).map(|_| target.client()).collect();
    thread::scope(|scope| {
        for client in &mut there {
            // While other clients wait for their share of the memory, the server does not receive
            // all data.
            client.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
            let sent = [request(0, WRITE, 1, 8 << 20, 32 << 20), vec![1; 16 << 20]].concat();
            scope.spawn(move || client.try_send(&sent));
        }
    });
    for _ in 0..20 {
        target.answers();
    }
    // The memory of the disk contains the written data, up to 16 MiB.
    let taken_kib = target.taken_kib();
    assert!(taken_kib < (16 + 8 + 16) << 10, "{taken_kib} KiB with a budget of 8 MiB");
    drop(there);
    target.serves_and_ends_well();
}

pub(super) fn large_requests_with_small_budget(place: &Sandbox) {
    let data: Vec<u8> = (0..32_u32 << 20).map(|at| (at / 4096 * 31 + at) as u8).collect();
    let target = Target::of(place, &["memory:64M", "--budget-mib", "1"]);
    for (flags, offset) in [(0, 0), (FUA, 1000), (0, 31 << 20)] {
        let mut client = target.client();
        assert_eq!(client.error_of(&write(flags, 1, offset, &data)), 0);
        assert!(client.read(offset, 32 << 20).is_ok_and(|read| read == data), "simple replies, at {offset}");
        let mut client = target.structured();
        for flags in [0, 4] {
            client.send(&request(flags, READ, 2, offset, 32 << 20));
            assert!(client.chunks(offset, 32 << 20).is_ok_and(|read| read == data), "structured replies");
        }
        assert_eq!(client.error_of(&request(0, ZEROES, 3, offset, 32 << 20)), 0);
        client.send(&request(0, READ, 4, offset, 32 << 20));
        assert!(client.chunks(offset, 32 << 20).is_ok_and(|read| read.iter().all(|&byte| byte == 0)));
    }
    // The memory of the disk, 64 MiB, does not count for the budget.
    let taken_kib = target.taken_kib();
    assert!(taken_kib < (64 + 24) << 10, "{taken_kib} KiB");
    assert_eq!(target.server.stop(), Some(0));
}

pub(super) fn large_requests_with_small_budget_through_tls(place: &Sandbox) {
    if !certificates(place) {
        return;
    }
    fs::create_dir(place.path("trusted")).unwrap();
    fs::copy(place.path("tls/server-cert.pem"), place.path("trusted/ca-cert.pem")).unwrap();
    let data: Vec<u8> = (0..48_u32 << 20).map(|at| (at / 4096 * 31 + at) as u8).collect();
    place.file("in", &data);
    let target = Target::secure(place, &["memory:48M", "--budget-mib", "1", "--tls", "tls"]);
    let uri = "nbds+unix://localhost/?socket=s&tls-certificates=trusted";
    let copy = ["--request-size=33554432", "--connections=2", "--requests=2"];
    if target.server.client("nbdcopy", &[&copy[..], &["in", uri]].concat()).is_some() {
        target.server.client("nbdcopy", &[&copy[..], &[uri, "out"]].concat());
        assert!(fs::read(place.path("out")).unwrap() == data);
    }
    let taken_kib = target.taken_kib();
    assert!(taken_kib < (48 + 24) << 10, "{taken_kib} KiB");
    assert_eq!(target.server.stop(), Some(0));
}

pub(super) fn stall_within_a_request(place: &Sandbox) {
    let target = Target::of(place, &["memory:64M", "--budget-mib", "16", "--stall-timeout", "1"]);
    let mut idle = target.client();
    let mut still: Vec<Client> = (0..4).map(|_| target.client()).collect();
    still[0].send(&request(0, WRITE, 1, 0, 4096)[..1]);
    still[1].send(&request(0, WRITE, 1, 0, 4096));
    still[2].send(&stalled_write());
    still[3].send(&[request(0, WRITE, 1, 0, 4096), vec![1; 4095]].concat());
    for client in &mut still {
        target.answers();
        client.is_closed();
    }
    target.server.says("closed: the client stalled for 1 s in the middle of a request");
    assert_eq!(idle.read(0, 4096), Ok(vec![0; 4096]), "idle clients stay connected; incomplete writes change nothing");
    drop(idle);
    target.serves_and_ends_well();
}

pub(super) fn stall_without_reading_replies(place: &Sandbox) {
    let target = Target::of(place, &["memory:64M", "--budget-mib", "16", "--stall-timeout", "1"]);
    let mut greedy = target.client();
    greedy.send(&request(0, READ, 1, 0, 32 << 20));
    thread::sleep(Duration::from_secs(1));
    target.answers();
    target.server.says("closed: the client stalled");
    assert!(greedy.ends_after().len() < 32 << 20);
    drop(greedy);
    target.serves_and_ends_well();
}

pub(super) fn slow_client(place: &Sandbox) {
    let target = Target::of(place, &["memory:64M", "--budget-mib", "16", "--stall-timeout", "1"]);
    let mut slow = target.client();
    slow.send(&request(0, WRITE, 1, 0, 512 << 10));
    for _ in 0..16 {
        slow.send(&[3; 32 << 10]);
        thread::sleep(Duration::from_millis(150));
    }
    assert_eq!(slow.reply(), (0, 1));
    slow.send(&request(0, READ, 2, 0, 4 << 20));
    assert_eq!(slow.reply(), (0, 2));
    for _ in 0..16 {
        slow.bytes(256 << 10);
        thread::sleep(Duration::from_millis(150));
    }
    target.serves_and_ends_well();
}

/// A memory cgroup that is removed at the end of the test.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, bytes: u64) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/memory/iosched-test-{name}-{}", std::process::id()));
        let is_created = is_root() && fs::create_dir(&path).is_ok();
        if !available(is_created, "a memory cgroup (cgroup v1)") {
            return None;
        }
        fs::write(path.join("memory.limit_in_bytes"), bytes.to_string()).unwrap();
        Some(Self(path))
    }

    fn serving(&self, place: &Sandbox, args: &[&str]) -> Target {
        let mut command = Command::new("sh");
        let script = "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"";
        command.args(["-c", script]).arg(&self.0).arg(IOSCHED);
        Target::around(Server::start_by(command, &place.here, args).served())
    }

    fn most_mib(&self) -> u64 {
        let most = fs::read_to_string(self.0.join("memory.max_usage_in_bytes")).unwrap();
        most.trim().parse::<u64>().unwrap() >> 20
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // For a moment, the cgroup still counts a process that has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the number of clients that the test may connect, at most 1,000. Each client needs a
/// file.
fn crowd() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let files: usize = files.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX);
    let most = files.saturating_sub(200).min(1000);
    if most < 1000 {
        println!("{most} clients instead of 1,000: the test may open {files} files");
    }
    most
}

/// Runs `act` with many clients against a server in a cgroup of 256 MiB, while fio writes and
/// verifies.
fn beside_fio(place: &Sandbox, name: &str, budget: &[&str], act: impl Fn(&mut Client) + Sync) {
    let Some(group) = Group::new(name, 256 << 20) else { return };
    let args = [&["memory:64M", "--max-connections", "1100"][..], budget].concat();
    let target = group.serving(place, &args);
    let mut there: Vec<Client> = (0..crowd()).map(|_| target.client()).collect();
    thread::scope(|scope| {
        for some in there.chunks_mut(100) {
            let act = &act;
            scope.spawn(move || some.iter_mut().for_each(act));
        }
    });
    target.server.fio_verifies("beside", 8, "4m", 5);
    target.answers();
    println!("{name} {budget:?}: {} MiB at most, {} KiB resident", group.most_mib(), target.resident_kib());
    drop(there);
    target.answers();
    assert_eq!(target.server.stop(), Some(0));
}

const SMALL: [&str; 2] = ["--budget-mib", "64"];

pub(super) fn fio_beside_incomplete_writes(place: &Sandbox) {
    beside_fio(place, "begin", &[], |client| client.send(&stalled_write()));
}

pub(super) fn fio_beside_incomplete_writes_with_small_budget(place: &Sandbox) {
    beside_fio(place, "begin-small", &SMALL, |client| client.send(&stalled_write()));
}

pub(super) fn fio_beside_partly_sent_writes(place: &Sandbox) {
    beside_fio(place, "send", &SMALL, |client| {
        client.stream.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
        client.try_send(&[request(0, WRITE, 1, 8 << 20, 16 << 20), vec![1; 1 << 20]].concat());
    });
}

pub(super) fn fio_beside_unread_replies(place: &Sandbox) {
    beside_fio(place, "take", &SMALL, |client| {
        client.stream.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
        client.try_send(&request(0, READ, 1, 8 << 20, 1 << 20).repeat(64));
        client.try_send(&request(0, READ, 1, 8 << 20, 4096).repeat(1000));
    });
}
