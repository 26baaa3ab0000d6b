//! Elevators are switched every 10 ms, and tunables, attributes and priorities changed at random, while fio writes and verifies:
//! through NBD, and through a mounted disk.
//!
//! `IOSCHED_SHAKE_SECONDS` says for how long (5), `IOSCHED_SHAKE_SEED` which changes (1).

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Mounted, Server, directory, has_fuse, has_program, image, output, verified_writes};
use iosched::{RequestQueue, Spec};
use iosched_check::Random;
use iosched_live::control::{ClientError, ControlClient};

/// An elevator has so long.
const PAUSE: Duration = Duration::from_millis(10);
const DEPTHS: [u32; 3] = [1, 16, 64];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

/// Changes a disk at random.
struct Shaker<'a> {
    random: Random,
    /// Writes a file of the control tree; whether the value was taken.
    write: &'a mut dyn FnMut(&str, &str) -> bool,
    /// Reads the directory of clients.
    clients: &'a mut dyn FnMut() -> Vec<String>,
    switched: u64,
    taken: u64,
    refused: u64,
}

impl Shaker<'_> {
    fn shake(&mut self, done: &AtomicBool) {
        while !done.load(Ordering::SeqCst) {
            let elevator = self.random.pick(&iosched::Registry::linux().names());
            assert!((self.write)("queue/scheduler", elevator), "{elevator} is not taken");
            self.switched += 1;
            for _ in 0..self.random.below(4) {
                self.change(elevator);
            }
            thread::sleep(PAUSE);
        }
    }

    fn change(&mut self, elevator: &str) {
        let (path, value) = match self.random.below(8) {
            0 => ("device/queue_depth".to_owned(), (1 + self.random.below(64)).to_string()),
            1 => match (self.clients)() {
                clients if clients.is_empty() => return,
                clients => {
                    let client = &clients[self.random.below(clients.len() as u64) as usize];
                    let ioprio = self.random.pick(&["rt/0", "be/0", "be/4", "be/7", "idle"]);
                    (format!("clients/{client}/ioprio"), ioprio.to_owned())
                }
            },
            2..5 => {
                let specs: Vec<&Spec> = RequestQueue::attribute_specs().collect();
                let spec = self.random.pick(&specs);
                (format!("queue/{}", spec.name), self.value(spec))
            }
            _ => {
                let specs =
                    iosched::Registry::linux().get(elevator).map(|elevator| (elevator.tunables)()).unwrap_or_default();
                if specs.is_empty() {
                    return;
                }
                let spec = self.random.pick(&specs);
                (format!("queue/iosched/{}", spec.name), self.value(spec))
            }
        };
        if (self.write)(&path, &value) {
            self.taken += 1;
        } else {
            self.refused += 1;
        }
    }

    fn value(&mut self, spec: &Spec) -> String {
        let small = spec.min.saturating_add(self.random.below(30));
        spec.number(self.random.pick(&[spec.min, spec.max, spec.default, small, small])).to_string()
    }
}

/// Shakes while `verify` writes and verifies, which is given a depth and a seed, again and again until the time is over.
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
            let mut shaker = Shaker { random, write, clients, switched: 0, taken: 0, refused: 0 };
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
        assert!(switched > 20 && taken > 20, "it was shaken");
    });
}

#[test]
fn nothing_is_lost_through_nbd() {
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
fn nothing_is_lost_through_a_mounted_disk() {
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
