//! Short histories, and tests that histories find deliberate faults.

use super::{Broken, HistoryTally, Mistake, Theme, history};
fn histories(theme: Theme, count: u64) -> HistoryTally {
    let mut all = HistoryTally::default();
    for seed in 0..count {
        match history(seed, theme, None) {
            Ok(tally) => all.add(&tally),
            Err(violation) => panic!("{violation}"),
        }
    }
    all
}

#[test]
fn disk_keeps_its_promises_in_random_histories() {
    let tally = histories(Theme::All, 60);
    assert!(tally.answers > 2000 && tally.failures > 50 && tally.cuts > 30 && tally.ends > 50, "{tally:?}");
}

#[test]
fn promised_data_survives_power_cuts() {
    let tally = histories(Theme::Cuts, 60);
    assert!(tally.cuts > 100 && tally.answers > 2000, "{tally:?}");
}

#[test]
fn same_seed_gives_the_same_history() {
    for seed in 0..10 {
        assert_eq!(history(seed, Theme::All, None), history(seed, Theme::All, None));
    }
}

#[test]
fn histories_find_every_deliberate_fault() {
    for (name, broken) in Broken::ALL {
        // Only a client that waits forever shows this fault. A power cut would hide it.
        let theme = if broken == Broken::Command(Mistake::Untold) { Theme::All } else { Theme::Cuts };
        let found = (0..60).filter(|&seed| history(seed, theme, Some(broken)).is_err()).take(3).count();
        assert_eq!(found, 3, "{name}: found in {found} of 60 histories");
    }
}
