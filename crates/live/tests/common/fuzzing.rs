//! Inputs that are random, or were right before some harm was done to them.

use std::path::Path;

use iosched_check::Random;

/// How many inputs a test tries: `IOSCHED_FUZZ_INPUTS`, or so few as take no time.
pub(crate) fn inputs(few: u64) -> u64 {
    std::env::var("IOSCHED_FUZZ_INPUTS").ok().map_or(few, |text| text.parse().expect("a number"))
}

/// Any bytes.
pub(crate) fn bytes(count: usize, random: &mut Random) -> Vec<u8> {
    (0..count).map(|_| random.next_word() as u8).collect()
}

/// Does some harm to a conversation.
pub(crate) fn damage(data: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.index(4) {
        if data.is_empty() {
            return;
        }
        let at = random.index(data.len());
        match random.index(6) {
            0 => data[at] ^= 1 << random.index(8),
            1 => data[at] = random.next_word() as u8,
            2 => data.truncate(at),
            3 => drop(data.drain(at..(at + random.index(16)).min(data.len()))),
            4 => data.extend_from_within(at..),
            _ => {
                let foreign = bytes(8, random);
                data.splice(at..at, foreign);
            }
        }
    }
}

/// Hands each file of a fuzz target's corpus to `fuzz`.
pub(crate) fn replay_corpus(target: &str, fuzz: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 4);
    for file in files {
        fuzz(&std::fs::read(file).unwrap());
    }
}
