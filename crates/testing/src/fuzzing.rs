//! Random inputs, and valid inputs that are then damaged.

use std::path::Path;

use iosched_check::Random;

/// Returns the number of inputs that a test tries: `IOSCHED_FUZZ_INPUTS`, or `few` if this variable
/// is not set. A test with `few` inputs is short.
///
/// # Panics
/// If the variable is not a number.
#[must_use]
pub fn inputs(few: u64) -> u64 {
    std::env::var("IOSCHED_FUZZ_INPUTS").ok().map_or(few, |text| text.parse().expect("a number"))
}

/// Returns `count` random bytes.
pub fn bytes(count: usize, random: &mut Random) -> Vec<u8> {
    (0..count).map(|_| random.next_word() as u8).collect()
}

/// Damages an input in one to four places.
pub fn damage(data: &mut Vec<u8>, random: &mut Random) {
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

/// Passes each file of a corpus folder to `fuzz`.
///
/// # Panics
/// If the folder cannot be read or has fewer than four files.
pub fn replay_corpus(folder: &Path, fuzz: impl Fn(&[u8])) {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 4, "{} files in {}", files.len(), folder.display());
    for file in files {
        fuzz(&std::fs::read(file).unwrap());
    }
}
