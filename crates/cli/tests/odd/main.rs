//! The list of odd inputs and hostile clients: what users and others gave the command, and what must come of it.
//!
//! A case is a name, which states what must hold, and a function that makes it happen in a directory of its own. Every
//! case of a list is tried, also after one has failed.

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

use list::Odd;

/// Every list there is.
const LISTS: &[(&str, &[Odd])] = &[
    ("long", long::CASES),
    ("outputs", outputs::CASES),
    ("settings", settings::CASES),
    ("small", small::CASES),
    ("traces", traces::CASES),
    ("verdicts", verdicts::CASES),
    ("clients", clients::CASES),
    ("servers", servers::CASES),
];

#[test]
fn long() {
    list::hold("long", long::CASES);
}

#[test]
fn outputs() {
    list::hold("outputs", outputs::CASES);
}

#[test]
fn settings() {
    list::hold("settings", settings::CASES);
}

#[test]
fn small() {
    list::hold("small", small::CASES);
}

#[test]
fn traces() {
    list::hold("traces", traces::CASES);
}

#[test]
fn verdicts() {
    list::hold("verdicts", verdicts::CASES);
}

#[test]
fn clients() {
    list::hold("clients", clients::CASES);
}

#[test]
fn servers() {
    list::hold("servers", servers::CASES);
}

#[test]
fn no_case_is_listed_twice() {
    let mut names = BTreeSet::new();
    for (list, cases) in LISTS {
        for odd in *cases {
            assert!(names.insert(odd.name), "{list}: {}", odd.name);
        }
    }
    println!("{} odd inputs and hostile clients", names.len());
}
