//! Histories in short, and whether what is broken on purpose is found.

use super::{Broken, Mistake, Theme, Told, history};
fn histories(theme: Theme, count: u64) -> Told {
    let mut all = Told::default();
    for seed in 0..count {
        match history(seed, theme, None) {
            Ok(told) => all.add(&told),
            Err(violation) => panic!("{violation}"),
        }
    }
    all
}

#[test]
fn whatever_happens_the_disk_keeps_what_it_has_promised() {
    let told = histories(Theme::All, 60);
    assert!(told.answers > 2000 && told.failures > 50 && told.cuts > 30 && told.ends > 50, "{told:?}");
}

#[test]
fn what_was_promised_outlives_power_cuts() {
    let told = histories(Theme::Cuts, 60);
    assert!(told.cuts > 100 && told.answers > 2000, "{told:?}");
}

#[test]
fn a_history_is_a_function_of_its_seed() {
    for seed in 0..10 {
        assert_eq!(history(seed, Theme::All, None), history(seed, Theme::All, None));
    }
}

#[test]
fn a_server_that_breaks_a_promise_is_found() {
    for (name, broken) in Broken::ALL {
        // Who waits for an answer in vain sees that only if the power does not fail.
        let theme = if broken == Broken::Command(Mistake::Untold) { Theme::All } else { Theme::Cuts };
        let found = (0..60).filter(|&seed| history(seed, theme, Some(broken)).is_err()).take(3).count();
        assert_eq!(found, 3, "{name}: found in {found} of 60 histories");
    }
}
