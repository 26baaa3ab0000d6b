//! Families of devices. They must reach their published rates, and their profiles must say whether
//! latencies are known.

use iosched_disk::Profile;
use iosched_disk::io_cost::{Family, IoCostModel};
use iosched_disk::measure::saturation;

/// Largest deviation of a simulated metric from the published metric, as a share.
const TOLERANCE: f64 = 0.05;

#[test]
fn family_members_reach_their_published_saturation() {
    let family = Family::named("ssd").unwrap();
    let members = family.members();
    assert_eq!(members.iter().map(|member| member.runs.len()).sum::<usize>(), 65);
    for member in members {
        let profile = Profile::named(&member.name).unwrap();
        let found = saturation(&profile).model();
        for ((name, found), wanted) in IoCostModel::NAMES.iter().zip(found.figures()).zip(member.mean().figures()) {
            let off = found as f64 / wanted as f64 - 1.0;
            assert!(off.abs() <= TOLERANCE, "{}: {name} is {found}, not {wanted} ({:+.1} %)", member.name, off * 100.0);
        }
        let fit = profile.fit().unwrap();
        let has_latencies = member.latencies().is_some();
        assert_eq!(fit.rates_only, !has_latencies, "{}", member.name);
        assert_eq!(!has_latencies, profile.about().ends_with("without latencies"), "{}", profile.about());
    }
}

#[test]
fn rate_error_covers_the_spread_of_the_runs() {
    let family = Family::named("ssd").unwrap();
    let (_, evo) = Family::member("Samsung_SSD_970_EVO_500GB").unwrap();
    assert_eq!((evo.name.as_str(), evo.runs.len()), ("samsung_ssd_970_evo_500gb", 3));
    assert_eq!(evo.range()[0], (1_213_945_997, 1_217_542_481));
    let error = |name: &str| Profile::named(name).unwrap().fit().unwrap().rate_error_percent;
    assert!(error("samsung_ssd_970_evo_500gb") <= 1.2, "{}", error("samsung_ssd_970_evo_500gb"));
    // The two runs wrote 32 and 213 MB/s.
    assert!(error("skhynix_phoenix") > 70.0);
    let usual = family.usual_spread_percent();
    assert!((error("wd_black_sn770_1tb") - usual).abs() < 0.1 && (2.0..20.0).contains(&usual), "{usual}");
}

#[test]
fn family_has_no_duplicate_runs() {
    let members = Family::named("ssd").unwrap().members();
    let mut seen: Vec<[u64; 6]> =
        members.iter().flat_map(|member| &member.runs).map(|run| run.model.figures()).collect();
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "two runs have the same six rates");
}

#[test]
fn family_has_25_members_with_plausible_latencies() {
    let members = Family::named("ssd").unwrap().members();
    let latencies: Vec<_> = members.iter().filter_map(|member| Some((member, member.latencies()?))).collect();
    assert_eq!(latencies.len(), 25);
    for (member, latencies) in latencies {
        let lone_us = latencies.lone_read.0 as f64 / 1e3;
        assert!((20.0..400.0).contains(&lone_us), "{}: {lone_us} us", member.name);
        let longest_ms = latencies.settling.longest_ns as f64 / 1e6;
        assert!((0.2..60.0).contains(&longest_ms), "{}: {longest_ms} ms", member.name);
        let profile = Profile::named(&member.name).unwrap();
        assert!(profile.fitted_to().iter().any(|entry| entry.starts_with("settling.longest_ns")));
    }
}
