//! Tests of the control tree of a busy disk with random and damaged conversations.

use std::path::Path;

use iosched::RequestQueue;
use iosched_check::Random;
use iosched_live::control::fuzz::{ConversationTally, fuzz_control};
use iosched_live::control::wire::Request;
use iosched_testing::fuzzing::{bytes, damage, inputs, replay_corpus};

/// Maximum memory of a disk and its clients, bytes; and the additional maximum per byte of a
/// conversation.
const BYTES_MAX: u64 = 1 << 20;
const BYTES_PER_BYTE_MAX: u64 = 1024;

/// Returns a random path. The file or directory exists, may exist, or does not exist.
fn path(random: &mut Random) -> String {
    let elevator = random.pick(&iosched::Registry::linux().names());
    let tunables = iosched::Registry::linux().get(elevator).map(|elevator| (elevator.tunables)()).unwrap_or_default();
    let attributes: Vec<_> = RequestQueue::attribute_specs().map(|spec| spec.name).collect();
    match random.index(8) {
        0 | 1 => "queue/scheduler".to_owned(),
        2 if !tunables.is_empty() => format!("queue/iosched/{}", tunables[random.index(tunables.len())].name),
        2 | 3 => format!("queue/{}", random.pick(&attributes)),
        4 => {
            let file = random.pick(&["name", "pid", "ioprio", "group", "weight", "inflight", "stat", ""]);
            format!("clients/{}/{file}", random.index(4))
        }
        5 => format!("groups/{}/{}", random.pick(&["db", "a%20b", "more", "%2e%2e"]), random.pick(&["weight", ""])),
        6 => random.pick(&["device/queue_depth", "size", "stat", "inflight", "queue/rotational"]).to_owned(),
        _ => {
            let shown =
                ["/", "queue", "queue/iosched", "clients", "groups", "device", "none", "queue/", "//", "%", "a/b/c"];
            random.pick(&shown).to_owned()
        }
    }
}

/// Returns a random value for `path`. The file accepts most of these values.
fn value(path: &str, random: &mut Random) -> String {
    let fits = match path {
        "queue/scheduler" => 0..1,
        _ if path.starts_with("queue/") || path.starts_with("device/") => 1..2,
        _ => 2..4,
    };
    let kind = if random.index(4) == 0 { random.index(5) } else { fits.start + random.index(fits.len()) };
    match kind {
        0 => random.pick(&iosched::Registry::linux().names()).to_owned(),
        1 => random.index(300).to_string(),
        2 => random
            .pick(&["0", "1", "-1", "18446744073709551615", "18446744073709551616", "0x10", "1e9", " 7 "])
            .to_owned(),
        3 => random
            .pick(&["rt/0", "be/4", "idle", "be/8", "default", "/", "db", "more", "a!b", "700", "..", ""])
            .to_owned(),
        _ => (random.next_word() >> random.index(64)).to_string(),
    }
}

/// Returns the input with this number.
fn input(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    if random.index(8) == 0 {
        let count = random.index(300);
        return bytes(count, &mut random);
    }
    let mut data = bytes(2, &mut random);
    for _ in 0..1 + random.index(12) {
        let path = path(&mut random);
        let line = match random.index(6) {
            0 => Request::List { path },
            1 => Request::Read { path },
            _ => Request::Write { value: value(&path, &mut random), path },
        };
        data.extend(line.encode().unwrap());
    }
    if random.index(3) == 0 {
        damage(&mut data, &mut random);
    }
    data
}

#[test]
fn random_conversations_use_little_memory() {
    let mut all = ConversationTally::default();
    let inputs = inputs(10_000);
    for number in 0..inputs {
        let data = input(number);
        let mut tally = ConversationTally::default();
        let used = allocation_counter::measure(|| tally = fuzz_control(&data)).bytes_max;
        let most = BYTES_MAX + BYTES_PER_BYTE_MAX * data.len() as u64;
        assert!(used <= most, "input {number}: {used} bytes of memory for {} of input", data.len());
        all.answered += tally.answered;
        all.taken += tally.taken;
        all.refused += tally.refused;
        all.garbled += tally.garbled;
        all.operations += tally.operations;
    }
    println!("{inputs} inputs: {all:?}");
    // The inputs together reach every outcome.
    for reached in [all.answered, all.taken, all.refused, all.garbled, all.operations] {
        assert!(reached >= inputs / 10, "{reached} of {inputs}");
    }
}

#[test]
fn corpus_inputs_keep_the_invariants() {
    replay_corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/control"), |input| _ = fuzz_control(input));
}
