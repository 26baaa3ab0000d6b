//! Devices with known rates only: they reach these rates, and their profiles say that nothing else
//! is known.

use iosched_disk::Profile;
use iosched_disk::io_cost::{Family, IoCostModel};
use iosched_disk::measure::saturation;

/// Largest deviation of a simulated metric from the published one.
const TOLERANCE: f64 = 0.05;

#[test]
fn family_members_reach_their_published_saturation() {
    let family = Family::named("ssd").unwrap();
    let members = family.members();
    assert_eq!(members.iter().map(|member| member.runs.len()).sum::<usize>(), 66);
    for member in members {
        let profile = Profile::named(&member.name).unwrap();
        let found = saturation(&profile).model();
        for ((name, found), wanted) in IoCostModel::NAMES.iter().zip(found.figures()).zip(member.mean().figures()) {
            let off = found as f64 / wanted as f64 - 1.0;
            assert!(off.abs() <= TOLERANCE, "{}: {name} is {found}, not {wanted} ({:+.1} %)", member.name, off * 100.0);
        }
        let fit = profile.fit().unwrap();
        assert!(fit.rates_only && profile.about().ends_with("no latencies"), "{}", profile.about());
    }
}

#[test]
fn the_spread_of_runs_limits_the_trust_in_a_model() {
    let family = Family::named("ssd").unwrap();
    let (_, evo) = Family::member("Samsung_SSD_970_EVO_500GB").unwrap();
    assert_eq!((evo.name.as_str(), evo.runs.len()), ("samsung_ssd_970_evo_500gb", 3));
    assert_eq!(evo.range()[0], (1_213_945_997, 1_217_542_481));
    let error = |name: &str| Profile::named(name).unwrap().fit().unwrap().rate_error_percent;
    assert!(error("samsung_ssd_970_evo_500gb") <= 1.2, "{}", error("samsung_ssd_970_evo_500gb"));
    // The three runs wrote 32, 196 and 213 MB/s.
    assert!(error("skhynix_phoenix") > 75.0);
    let usual = family.usual_spread_percent();
    assert!((error("wd_black_sn770_1tb") - usual).abs() < 0.1 && (2.0..20.0).contains(&usual), "{usual}");
}
