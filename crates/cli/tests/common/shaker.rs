//! Changes a disk at random: schedulers, tunables, attributes and priorities.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use iosched::{RequestQueue, Spec};
use iosched_check::Random;

/// A group whose rates may be limited.
const GROUP: &str = "shaken";
/// Time for which each scheduler stays.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

/// Changes a disk at random.
pub(crate) struct Shaker<'a> {
    random: Random,
    /// Writes a file of the control tree. Returns whether the value was accepted.
    write: &'a mut dyn FnMut(&str, &str) -> bool,
    /// Lists the directory of clients.
    clients: &'a mut dyn FnMut() -> Vec<String>,
    /// The only scheduler. `None` means all schedulers, one after the other.
    elevator: Option<&'static str>,
    pub(crate) switched: u64,
    pub(crate) taken: u64,
    pub(crate) refused: u64,
}

impl<'a> Shaker<'a> {
    pub(crate) fn new(
        random: Random,
        elevator: Option<&'static str>,
        write: &'a mut dyn FnMut(&str, &str) -> bool,
        clients: &'a mut dyn FnMut() -> Vec<String>,
    ) -> Self {
        Self { random, write, clients, elevator, switched: 0, taken: 0, refused: 0 }
    }

    /// Changes the disk until `done` is true.
    pub(crate) fn shake(&mut self, done: &AtomicBool) {
        while !done.load(Ordering::SeqCst) {
            let elevator = match self.elevator {
                // Random tunables can make a scheduler wait for hours. Therefore the scheduler is
                // sometimes restarted.
                Some(only) if self.random.chance(20) => {
                    self.switch("noop");
                    self.switch(only)
                }
                Some(only) => only,
                None => {
                    let next = self.random.pick(&iosched::Registry::linux().names());
                    self.switch(next)
                }
            };
            for _ in 0..self.random.below(4) {
                self.change(elevator);
            }
            thread::sleep(PAUSE);
        }
    }

    fn switch(&mut self, elevator: &'static str) -> &'static str {
        assert!((self.write)("queue/scheduler", elevator), "the disk refused the scheduler {elevator}");
        self.switched += 1;
        elevator
    }

    fn change(&mut self, elevator: &str) {
        let (path, value) = match self.random.below(10) {
            0 => ("device/queue_depth".to_owned(), (1 + self.random.below(64)).to_string()),
            1 => match (self.clients)() {
                clients if clients.is_empty() => return,
                clients => {
                    let client = &clients[self.random.below(clients.len() as u64) as usize];
                    let ioprio = self.random.pick(&["rt/0", "be/0", "be/4", "be/7", "idle"]);
                    let (file, value) = self.random.pick(&[("ioprio", ioprio), ("group", GROUP), ("group", "/")]);
                    (format!("clients/{client}/{file}"), value.to_owned())
                }
            },
            8 => {
                let caps = [
                    "rbps=max wbps=max",
                    "rbps=20000000",
                    "wbps=20000000",
                    "riops=max wiops=max",
                    "riops=500",
                    "wiops=500",
                ];
                (format!("groups/{GROUP}/io.max"), self.random.pick(&caps).to_owned())
            }
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
