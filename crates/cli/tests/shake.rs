//! Tests that switch schedulers every 10 ms and change tunables, attributes and priorities at
//! random. At the same time, fio writes and verifies through NBD and through a mounted disk.
//!
//! `IOSCHED_SHAKE_SECONDS` is the duration in seconds (default 5), and `IOSCHED_SHAKE_SEED` the
//! seed of the changes (default 1).

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use common::{Mounted, Server, Shaker, directory, has_fuse, has_program, image, output, setting, verified_writes};
use iosched_check::Random;
use iosched_live::control::{ClientError, ControlClient};

const DEPTHS: [u32; 3] = [1, 16, 64];

/// Changes the disk while `verify` writes and verifies. `verify` gets a depth and a seed. It is
/// called again until the time is over.
fn shake(
    front_end: &str,
    mut write: impl FnMut(&str, &str) -> bool + Send,
    mut clients: impl FnMut() -> Vec<String> + Send,
    verify: impl Fn(u32, u64),
) {
    let (seconds, seed) = (setting("IOSCHED_SHAKE_SECONDS", 5), setting("IOSCHED_SHAKE_SEED", 1));
    let (began, done) = (Instant::now(), AtomicBool::new(false));
    println!("{front_end}: IOSCHED_SHAKE_SEED={seed}");
    thread::scope(|scope| {
        let shaker = scope.spawn(|| {
            let (random, write, clients) = (Random::new(seed), &mut write, &mut clients);
            let mut shaker = Shaker::new(random, None, write, clients);
            shaker.shake(&done);
            let Shaker { switched, taken, refused, .. } = shaker;
            (switched, taken, refused)
        });
        let mut runs = 0;
        let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for depth in DEPTHS.into_iter().cycle() {
                runs += 1;
                verify(depth, seed << 32 | runs);
                if began.elapsed().as_secs() >= seconds && runs >= DEPTHS.len() as u64 {
                    break;
                }
            }
        }));
        done.store(true, Ordering::SeqCst);
        let (switched, taken, refused) = shaker.join().unwrap();
        verified.unwrap();
        println!(
            "{front_end}: {runs} runs of fio verified in {:.0} s; {switched} switches, {taken} values taken, {refused} refused",
            began.elapsed().as_secs_f64()
        );
        assert!(switched > 20 && taken > 20, "too few changes: {switched} switches, {taken} values");
    });
}

#[test]
fn fio_verifies_data_over_nbd_during_random_changes() {
    if !has_program("fio") {
        return;
    }
    let here = directory("shake-nbd");
    image(&here, "disk.img", 32 << 20);
    let server = Server::serving(&here, &["disk.img", "--name", "sda"]);
    let connect = || ControlClient::connect(&here.join("c")).unwrap();
    let (mut control, mut lister) = (connect(), connect());
    shake(
        "nbd",
        |path, value| match control.write(&format!("sda/{path}"), value) {
            Ok(()) => true,
            Err(ClientError::Refused { .. }) => false,
            Err(error) => panic!("{path}: {error}"),
        },
        || lister.list("sda/clients").unwrap().iter().map(|name| name.trim_end_matches('/').to_owned()).collect(),
        |depth, seed| drop(server.fio_verifies("shaken", depth, "32m", seed)),
    );
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn fio_verifies_a_mounted_disk_during_random_changes() {
    if !has_fuse() || !has_program("fio") {
        return;
    }
    let here = directory("shake-mount");
    let image = image(&here, "disk.img", 32 << 20);
    let mounted = Mounted::new(&here, "sda", image.to_str().unwrap(), &[]);
    let fio = |here: &Path, depth: u32, seed: u64| {
        let mut fio = Command::new("fio");
        fio.current_dir(here).args(["--direct=1", "--ioengine=libaio", "--filename"]).arg(mounted.disk());
        output(fio.args(verified_writes("shaken", depth, "32m", seed)));
    };
    shake(
        "mounted",
        |path, value| mounted.echo(path, value).is_ok(),
        || {
            let entries = std::fs::read_dir(mounted.attribute("clients")).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        },
        |depth, seed| fio(&here, depth, seed),
    );
    assert_eq!(mounted.end(), 0);
}
