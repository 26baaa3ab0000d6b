//! Tests of the fuzz targets with their corpora, unchanged and randomly damaged.

use std::path::{Path, PathBuf};

use iosched_trace::fuzz::TARGETS;
use proptest::prelude::*;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn fuzz_targets_accept_every_corpus_file() {
    for (name, entry) in TARGETS {
        let files = corpus(name);
        assert!(!files.is_empty(), "{name} has a corpus");
        for (path, data) in files {
            println!("{}", path.display());
            entry(&data);
        }
    }
}

#[test]
fn prefixes_of_corpus_files_do_not_panic() {
    for (name, entry) in TARGETS {
        for (_, data) in corpus(name) {
            (0..data.len()).step_by(data.len() / 200 + 1).for_each(|length| entry(&data[..length]));
        }
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Splice(prop::sample::Index, prop::sample::Index, prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let extreme = prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b'0', b'9']);
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (at(), extreme).prop_map(|(at, byte)| Damage::Set(at, byte)),
        at().prop_map(Damage::Cut),
        (at(), 1..100usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at(), at(), at(), 1..200usize).prop_map(|(file, from, to, length)| Damage::Splice(file, from, to, length)),
    ]
}

fn apply(data: &mut Vec<u8>, damage: &Damage, files: &[(PathBuf, Vec<u8>)]) {
    if data.is_empty() {
        return;
    }
    match damage {
        Damage::Flip(at, bits) => {
            let at = at.index(data.len());
            data[at] ^= bits;
        }
        Damage::Set(at, byte) => {
            let at = at.index(data.len());
            data[at] = *byte;
        }
        Damage::Cut(at) => data.truncate(at.index(data.len())),
        Damage::Remove(at, length) => {
            let at = at.index(data.len());
            data.drain(at..(at + length).min(data.len()));
        }
        Damage::Splice(file, from, to, length) => {
            let other = &files[file.index(files.len())].1;
            let from = from.index(other.len().max(1));
            let piece = other[from.min(other.len())..(from + length).min(other.len())].to_vec();
            let to = to.index(data.len());
            data.splice(to..to, piece);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_corpus_files_do_not_panic(
        target in prop::sample::select(TARGETS.to_vec()),
        file in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..8),
    ) {
        let (name, entry) = target;
        let files = corpus(name);
        let mut data = files[file.index(files.len())].1.clone();
        for damage in &damages {
            apply(&mut data, damage, &files);
        }
        entry(&data);
    }

    #[test]
    fn random_bytes_do_not_panic(
        target in prop::sample::select(TARGETS.to_vec()),
        data in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        target.1(&data);
    }
}
