//! Test of the hdd model against real disks. The traces have another owner, and are in a directory
//! next to the repository. If they are missing, the test prints a message and passes.

use std::path::{Path, PathBuf};

use iosched_disk::Profile;
use iosched_disk::disksim::service_times;
use iosched_lab::validate::validate;

/// Results of the best published simulator, us.
const PUBLISHED_US: [(&str, f64); 6] = [
    ("atlas10k", 268.0),
    ("barracuda", 348.0),
    ("cheetah4LP", 318.0),
    ("ibm18es", 136.0),
    ("cheetah9LP", 107.0),
    ("atlas_III", 378.0),
];

#[test]
fn model_error_is_at_most_that_of_the_best_published_model() {
    let folder = std::env::var_os("IOSCHED_DISKSIM")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/disksim"), PathBuf::from);
    for (name, published_us) in PUBLISHED_US {
        let path = folder.join(format!("{name}.trace.gz"));
        if !path.exists() {
            eprintln!("skipped {name}: there is no {}", path.display());
            continue;
        }
        let profile = Profile::named(name).unwrap();
        let text = iosched_trace::read_text(&path, 64 << 20).unwrap();
        let services = service_times(name, &text, profile.card().capacity_sectors).unwrap();
        for seed in [1, 2] {
            let overall = validate(&profile, name, &services, seed).overall();
            let rms_us = overall.rms_ms * 1e3;
            println!("{name}, seed {seed}: {rms_us:.0} us, published {published_us}");
            assert!(rms_us <= published_us, "{name}: {rms_us} us");
        }
    }
}
