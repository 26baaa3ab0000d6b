//! Many clients at once, and limits of connections and files.

use std::io::Read;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{IOSCHED, Server, has_program};
use crate::list::Sandbox;
use crate::nbd::{Client, DISC, ENOMEM, READ, Target, WRITE, option, request, write};

pub(super) fn five_hundred_short_connections(place: &Sandbox) {
    let target = Target::new(place);
    for round in 0..500 {
        match round % 3 {
            0 => drop(target.raw()),
            1 => drop(target.client()),
            _ => target.client().send(&request(0, DISC, 0, 0, 0)),
        }
    }
    target.serves_and_ends_well();
}

pub(super) fn slow_handshakes(place: &Sandbox) {
    let target = Target::new(place);
    let mut slow: Vec<Client> = (0..200).map(|_| Client::greeted(target.raw())).collect();
    let bytes = [&[0, 0, 0, 3][..], &option(3, &[])].concat();
    for byte in &bytes {
        slow.iter_mut().for_each(|client| client.send(&[*byte]));
        target.answers();
    }
    assert!(target.taken_kib() < 200 * 48);
    drop(slow);
    target.serves_and_ends_well();
}

pub(super) fn above_the_maximum(place: &Sandbox) {
    let target = Target::of(place, &["memory:16M", "--budget-mib", "16", "--max-connections", "4"]);
    let mut there: Vec<Client> = (0..4).map(|_| target.client()).collect();
    for _ in 0..100 {
        assert_eq!(target.raw().read(&mut [0; 18]).unwrap(), 0, "the server closes the connection");
    }
    target.server.says("refused: there are already 4 connections, the maximum");
    for client in &mut there {
        assert!(client.read(0, 512).is_ok());
    }
    let mut gone = there.pop().unwrap();
    gone.send(&request(0, DISC, 0, 0, 0));
    gone.is_closed();
    drop(there);
    target.serves_and_ends_well();
}

pub(super) fn no_free_file_descriptors(place: &Sandbox) {
    if !has_program("prlimit") {
        return;
    }
    let target = Target::new(place);
    target.limit(&["--nofile=24:24"]);
    let mut there = Vec::new();
    // The first clients use up the files that the server may open. The other clients wait in the
    // backlog of the socket.
    for _ in 0..40 {
        there.push(target.raw());
    }
    target.server.says("cannot accept a connection: Too many open files");
    let mut first = Client::introduced(there.remove(0)).choose_export("");
    let before = target.ticks();
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(100));
        assert!(first.read(0, 512).is_ok());
    }
    let ticks = target.ticks() - before;
    assert!(ticks < 50, "{ticks} ticks of 10 ms in a second: the server does not wait for a free file");
    drop(there);
    target.serves_and_ends_well();
}

pub(super) fn no_free_memory(place: &Sandbox) {
    if !has_program("prlimit") {
        return;
    }
    let target = Target::of(place, &["memory:16M"]);
    // The limit is a little above the present address space. Each write that has begun needs
    // address space for a part of its data.
    target.limit(&[&format!("--as={}", target.address_space_bytes() + (48 << 20))]);
    let mut there: Vec<Client> = (0..100).map(|_| target.client()).collect();
    for client in &mut there {
        client.send(&[request(0, WRITE, 1, 0, 8 << 20), vec![1; 5000]].concat());
    }
    let mut refused = target.client();
    assert_eq!(refused.error_of(&write(0, 2, 0, &vec![2; 8 << 20])), ENOMEM);
    assert!(refused.read(0, 4096).is_ok(), "the server still serves reads");
    drop(there);
    target.serves_and_ends_well();
}

pub(super) fn weights_with_many_clients(place: &Sandbox) {
    let exports = ["--export", "many,weight=10", "--export", "one,weight=1000", "--export", ""];
    let args = ["model:sata-ssd,size=1G", "--scheduler", "cfq:slice_idle=0", "--depth", "4", "--budget-mib", "32"];
    let target = Target::of(place, &[&args[..], &exports].concat());
    let done = AtomicBool::new(false);
    let busy = |name: &'static str, number: u64| {
        let (target, done) = (&target, &done);
        move || {
            let mut client = target.handshaking().choose_export(name);
            let mut count = 0;
            client.send(&request(0, READ, 0, 0, 65_536).repeat(8));
            while !done.load(Ordering::SeqCst) {
                client.reply();
                client.bytes(65_536);
                count += 1;
                let offset = (number * 1_000_003 + count * 7919) % 16_000 * 65_536;
                client.send(&request(0, READ, 0, offset, 65_536));
            }
            count
        }
    };
    let (many, one) = thread::scope(|scope| {
        let many: Vec<_> = (0..64).map(|number| scope.spawn(busy("many", number))).collect();
        let one = scope.spawn(busy("one", 100));
        thread::sleep(Duration::from_secs(2));
        done.store(true, Ordering::SeqCst);
        (many.into_iter().map(|client| client.join().unwrap()).sum::<u64>(), one.join().unwrap())
    });
    assert!(one > many, "one client of weight 1000 had {one} reads, 64 of weight 10 had {many}");
    assert_eq!(target.server.stop(), Some(0));
}

pub(super) fn soft_limit_of_files(place: &Sandbox) {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 40; exec \"$0\" \"$@\"", IOSCHED]);
    let server = Server::start_by(command, &place.here, &["memory:16M", "--budget-mib", "16"]).served();
    let target = Target::around(server);
    // The server raises its soft limit of files, so it can accept more clients.
    let mut there: Vec<Client> = (0..100).map(|_| target.client()).collect();
    assert!(there.iter_mut().all(|client| client.read(0, 512).is_ok()));
    drop(there);
    target.serves_and_ends_well();
}
