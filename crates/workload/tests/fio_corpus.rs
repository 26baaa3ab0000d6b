//! The corpus of the fuzz target: unchanged, truncated and randomly damaged.
#![allow(clippy::disallowed_methods, reason = "the test reads the corpus")]

use std::path::{Path, PathBuf};

use iosched_workload::fio::fuzz::job_file;
use iosched_workload::fio::job_options;
use proptest::prelude::*;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/job_file");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn no_corpus_file_panics() {
    let files = corpus();
    assert!(!files.is_empty());
    for (path, data) in files {
        println!("{}", path.display());
        job_file(&data);
    }
}

#[test]
fn no_prefix_of_a_corpus_file_panics() {
    for (_, data) in corpus() {
        (0..data.len()).for_each(|length| job_file(&data[..length]));
    }
}

/// Generates values from pieces.
fn value() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "0",
            "1",
            "4k",
            "64ki",
            "100",
            "4294967295",
            "18446744073709551616",
            "0x",
            "-1",
            "1.5",
            "50%",
            "3z",
            "10ms",
            "(",
            ")",
            "*",
            "^",
            "/",
            ":",
            ",",
            "-",
            "zipf",
            "zoned",
            "randrw",
            "read",
            "libaio",
            "rbd",
            "none",
            "${SIZE}",
            "${NOT}",
            "$ncpus",
            "\"",
            "é",
            "\u{0}",
            " ",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_value_of_any_option_panics(
        lines in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(value()), 0..20u8), 1..20)
    ) {
        let options: Vec<_> = job_options().collect();
        let mut text = "[global]\nsize=1g\n[j]\n".to_owned();
        for (option, value, kind) in lines {
            match kind {
                0 => text.push_str("[k]\n"),
                1 => text.push_str("[global]\n"),
                2 => text.push_str("include self\n"),
                _ => {
                    text.push_str(options[option.index(options.len())].name);
                    text.extend(value.map(|value| format!("={value}")));
                    text.push('\n');
                }
            }
        }
        job_file(text.as_bytes());
    }

    #[test]
    fn no_damage_to_a_corpus_file_panics(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8, cut in 0..20usize) {
        let files = corpus();
        let mut data = files[file.index(files.len())].1.clone();
        let at = at.index(data.len());
        data[at] = byte;
        data.drain(at..(at + cut).min(data.len()));
        job_file(&data);
    }
}
