//! Random changes of a busy disk. They change every setting that can change, to every accepted
//! value.

use iosched::{RequestQueue, Time};
use iosched_check::Random;

use super::EXPORTS;
use crate::LiveDisk;

/// A change that the disk's thread makes.
pub(super) type Change = Box<dyn FnOnce(&mut LiveDisk, Time) + Send>;

/// Returns a random change.
pub(super) fn draw(random: &mut Random) -> Change {
    let mut random = Random::new(random.next_word());
    Box::new(move |disk, now| change(disk, now, &mut random))
}

/// Returns a change that switches the scheduler if it would idle for longer than `idle_ns`.
pub(super) fn switch_if_idle_for(idle_ns: u64) -> Change {
    Box::new(move |disk, now| {
        if disk.next_timer().is_some_and(|at| at > now + idle_ns) {
            // Every registry has noop.
            let _ = disk.switch(now, "noop");
        }
    })
}

fn change(disk: &mut LiveDisk, now: Time, random: &mut Random) {
    match random.index(5) {
        0 => {
            let name = random.pick(&disk.registry().names());
            // The name comes from the registry, so it exists.
            let _ = disk.switch(now, name);
        }
        1 | 2 => tune(disk, now, random),
        3 => disk.set_depth(random.index(40) as u32),
        _ => govern(disk, now, random),
    }
}

fn tune(disk: &mut LiveDisk, now: Time, random: &mut Random) {
    if random.chance(20) {
        let value = random.pick(&[1, 4, 5, 9, 32, 128]);
        // Some schedulers need a larger value and refuse this one.
        let _ = disk.set_attribute(now, "nr_requests", &value.to_string());
        return;
    }
    let attribute = random.chance(50);
    let specs: Vec<_> = if attribute {
        RequestQueue::attribute_specs().filter(|spec| spec.name != "nr_requests").collect()
    } else {
        disk.registry().get(disk.queue().scheduler()).map(|elevator| (elevator.tunables)().to_vec()).unwrap_or_default()
    };
    if specs.is_empty() {
        return;
    }
    let spec = random.pick(&specs);
    let small = spec.min.saturating_add(random.below(30));
    let text = spec.number(random.pick(&[spec.min, spec.max, spec.default, small])).to_string();
    // Some attributes are read-only, and some do not accept the value.
    let _ = if attribute { disk.set_attribute(now, spec.name, &text) } else { disk.set_tunable(now, spec.name, &text) };
}

fn govern(disk: &mut LiveDisk, now: Time, random: &mut Random) {
    let (group, _) = random.pick(&EXPORTS);
    let clients: Vec<_> = disk.clients().map(|client| client.id).collect();
    if clients.is_empty() || random.chance(30) {
        // The weight may be outside the scheduler's range.
        let weight = random.pick(&[None, Some(10), Some(100), Some(1000), Some(9999)]);
        let _ = disk.group(group, crate::Portion { weight, ..crate::Portion::default() });
        return;
    }
    let client = random.pick(&clients);
    if random.chance(50) {
        if let Ok(ioprio) = random.pick(&["rt/1", "be/0", "be/4", "be/7", "idle"]).parse() {
            disk.set_client_ioprio(client, ioprio);
        }
    } else {
        disk.set_client_group(now, client, random.chance(70).then(|| group.to_owned()));
    }
}
