//! Tests of the fuzz target: on its corpus and on random bytes.

#![allow(clippy::disallowed_methods, reason = "the test reads the corpus files")]

use std::path::Path;

use iosched_check::fuzz::replay;
use proptest::prelude::*;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/operations");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_corpus_file_replays_without_a_violation() {
    let files = corpus();
    assert!(!files.is_empty());
    for (path, data) in files {
        if let Err(violation) = replay(&data) {
            panic!("{path}: {violation}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_replay_without_a_violation(data in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Err(violation) = replay(&data) {
            return Err(TestCaseError::fail(violation.to_string()));
        }
    }
}
