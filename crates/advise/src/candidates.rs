//! The choice of settings that are worth runs on the device.

use crate::tune::TuneResults;
use iosched::Setting;
use iosched_kernel::settings::OfControllers;

/// Returns at most `most` settings to compare with the present one, the most promising first. They
/// are the setting that the search recommends, its scheduler with the defaults, and the best
/// setting of every other scheduler. Settings that write files of cgroups are left out. If the
/// model does not fit, the list has the recommendation, and then every scheduler with its defaults.
/// This list can be longer than `most`.
#[must_use]
pub fn candidates(search: &TuneResults<'_>, model_fits: bool, most: usize) -> Vec<Setting> {
    let header = search.header;
    let elevators = &header.space.elevators;
    let defaults = |name: &str| {
        elevators.iter().find(|elevator| elevator.defaults.name() == name).map(|elevator| elevator.defaults.clone())
    };
    let best = search.recommended().map(|standing| standing.setting.clone());
    let of_best = best.as_ref().and_then(|best| defaults(best.name()));
    let best_of_each = elevators.iter().filter_map(|elevator| {
        let mut confirmed = search.standings.iter().skip(1);
        confirmed
            .find(|standing| standing.setting.name() == elevator.defaults.name())
            .map(|standing| standing.setting.clone())
    });
    let all_defaults = elevators.iter().map(|elevator| elevator.defaults.clone());
    let (others, most): (Vec<Setting>, usize) = if model_fits {
        // In the order of the standings, best first.
        let mut others: Vec<Setting> = best_of_each.collect();
        others.sort_by_key(|setting| search.standings.iter().position(|standing| standing.setting == *setting));
        (others.into_iter().chain(all_defaults).collect(), most)
    } else {
        (all_defaults.collect(), most.max(elevators.len()))
    };
    let mut chosen: Vec<Setting> = Vec::new();
    for setting in best.into_iter().chain(of_best).chain(others) {
        let is_new = setting != header.baseline && !chosen.contains(&setting);
        // The administrator manages the cgroups of the machine, so a trial does not write their
        // files.
        let can_be_tried = OfControllers::of(&setting).is_empty();
        if is_new && can_be_tried && chosen.len() < most {
            chosen.push(setting);
        }
    }
    chosen
}
