//! Inputs and clients with which the command once failed. Each of them is a case that must not fail
//! again.
//!
//! A case has a name, which states the property, and a function that runs in a separate directory.
//! Each case is a test. The name of the test is the name of the list and the name of the case:
//! `cargo test --test regressions -- "traces: a truncated"`.

#[path = "../common/mod.rs"]
mod common;
mod list;
mod long;
mod nbd;

mod outputs;
mod settings;
mod small;
mod traces;
mod verdicts;

mod clients;
mod servers;

use std::collections::BTreeSet;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use list::Case;

/// All lists of cases.
const LISTS: [(&str, &[Case]); 8] = [
    ("clients", clients::CASES),
    ("long", long::CASES),
    ("outputs", outputs::CASES),
    ("servers", servers::CASES),
    ("settings", settings::CASES),
    ("small", small::CASES),
    ("traces", traces::CASES),
    ("verdicts", verdicts::CASES),
];

fn names_are_unique() {
    let mut names = BTreeSet::new();
    for (list, cases) in LISTS {
        for case in cases {
            assert!(names.insert(case.name), "{list}: {} is listed twice", case.name);
        }
    }
}

fn main() -> ExitCode {
    let trials = LISTS.into_iter().flat_map(|(list, cases)| {
        let trial = move |(number, case): (usize, &'static Case)| {
            Trial::test(format!("{list}: {}", case.name), move || {
                case.run(&format!("regression-{list}-{number}"));
                Ok(())
            })
        };
        cases.iter().enumerate().map(trial)
    });
    let unique = Trial::test("names are unique", || {
        names_are_unique();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.chain([unique]).collect()).exit_code()
}
