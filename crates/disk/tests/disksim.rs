//! DiskSim's files, valid and damaged.

use iosched_disk::disksim::{Description, DiskSimError, Sources, service_times};
use iosched_disk::hdd::ReadAheadUntil;
use iosched_disk::{Model, Profile};
use proptest::prelude::*;

const MODEL: &str = "dm_disk D {\n Number of data surfaces = 2,\n Number of cylinders = 100,\n Block count = 15000,\n \
    Mechanical Model = m {\n Seek type = extracted,\n Single cylinder seek time = 1.0,\n Full strobe seek time = 9.0,\n \
    Add. write settling delay = 0.3,\n Head switch time = 0.2,\n Rotation speed (in rpms) = 7200 },\n \
    Layout Model = l {\n LBN-to-PBN mapping scheme = 1,\n Sparing scheme used = 8,\n Rangesize for sparing = 5,\n \
    Zones = [ z {\n First cylinder number = 0,\n Last cylinder number = 49,\n Blocks per track = 90,\n \
    Offset of first block = 3.0,\n Empty space at zone front = 20,\n Skew for track switch = 9.0,\n \
    Skew for cylinder switch = 12.0,\n Number of spares = 7,\n slips = [ 700, 33, 34 ],\n defects = [ 5, 6 ] },\n \
    z {\n First cylinder number = 51,\n Last cylinder number = 99,\n Blocks per track = 80,\n \
    Offset of first block = 0.0,\n Empty space at zone front = 0,\n Skew for track switch = 8.0,\n \
    Skew for cylinder switch = 11.0,\n Number of spares = 7,\n slips = [ ],\n defects = [ ] } ] } }\n";
const SEEK: &str = "Seek distances measured: 2\n1,\t1.0\n100,\t9.0\n";
const SPECS: &str = "s D {\n Per-request overhead time = 0.1,\n Time scale for overheads = 2.0,\n \
    Bulk sector transfer time = 0.1,\n Allow read hits on write data = 1,\n Max queue length = 1,\n \
    Number of buffer segments = 3,\n Maximum number of write segments = 2,\n Segment size (in blks) = 128,\n \
    Enable caching in buffer = 1,\n Buffer continuous read = 1,\n Maximum read-ahead (blks) = 100,\n \
    Read-ahead over requested = 1,\n Fast write level = 2,\n Immediate buffer read = 1,\n \
    Read hit over. after read = 0.1,\n Read hit over. after write = 0.2,\n Read miss over. after read = 0.3,\n \
    Read miss over. after write = 0.4,\n Write hit over. after read = 0.5,\n Write hit over. after write = 0.6,\n \
    Write miss over. after read = 0.7,\n Write miss over. after write = 0.8 }\n";

fn read(model: &str, seek: &str, specs: &str) -> Result<Description, DiskSimError> {
    Description::read(&Sources { model: ("a.model", model), seek: ("a.seek", seek), specs: ("a.diskspecs", specs) })
}

#[test]
fn written_profile_equals_the_imported_description() {
    let description = read(MODEL, SEEK, SPECS).unwrap();
    let profile = Profile::parse("a", &description.to_toml(Some("a disk"))).unwrap();
    assert_eq!(profile.model(), &Model::Hdd(Box::new(description.config.clone())));
    assert_eq!(profile.about(), "a disk");
    let overheads = description.config.interface.overheads;
    assert_eq!(overheads.write_miss_ns, Some([1_600_000, 1_800_000]), "scaled, plus the overhead per request");
    assert_eq!(description.config.zones[1].unused_cylinders_before, 1);
    assert_eq!(description.config.zones[0].slips, [33, 34, 700]);
    assert_eq!(description.remarks.len(), 1, "remapped sectors: {:?}", description.remarks);
    assert_eq!(description.config.read_cache.read_ahead_until, ReadAheadUntil::Track);
}

#[test]
fn unsupported_parts_of_a_description_are_named() {
    let with = |field: &str| SPECS.replace("Fast write level = 2", &format!("Fast write level = 2,\n {field}"));
    let remarks = |field: &str| read(MODEL, SEEK, &with(field)).unwrap().remarks.split_off(1);
    assert!(remarks("Use separate write segment = 0,\n Print stats = 1,\n Scheduler = s { Policy = 1 }").is_empty());
    assert_eq!(
        remarks("Use separate write segment = 1,\n Bubbles = many,\n Inner = s { Policy = 1 }"),
        [
            "\"Use separate write segment\" is 1; the model cannot represent this value",
            "\"Bubbles\" is many; the model cannot represent this value",
            "\"Inner\" is a list or a block; the model cannot represent this value",
        ]
    );
    let mechanics = MODEL.replace("Head switch time", "Percent error in rpms = 0.5,\n Head switch time");
    assert!(read(&mechanics, SEEK, SPECS).unwrap().remarks[1].contains("\"Percent error in rpms\" is 0.5"));
    let level = SPECS.replace("Fast write level = 2", "Fast write level = 1");
    assert!(read(MODEL, SEEK, &level).unwrap().remarks[1].contains("Fast write level"));
}

#[test]
fn end_of_readahead_is_imported() {
    let until = |value: u32| {
        let specs = SPECS.replace("Buffer continuous read = 1", &format!("Buffer continuous read = {value}"));
        let cache = read(MODEL, SEEK, &specs).unwrap().config.read_cache;
        (cache.read_ahead_sectors > 0, cache.read_ahead_until)
    };
    assert_eq!(until(0), (false, ReadAheadUntil::Distance));
    assert_eq!(until(2), (true, ReadAheadUntil::Cylinder));
    assert_eq!(until(3), (true, ReadAheadUntil::Distance));
    assert_eq!(until(4), (true, ReadAheadUntil::NextTrack));
}

/// Returns a text in which `put` replaces `length` bytes at position `at` (per mille of the text).
fn damaged(text: &str, at: usize, length: usize, put: &str) -> String {
    let start = text.len() * at / 1000;
    let end = (start + length).min(text.len());
    format!("{}{put}{}", &text[..start], &text[end..])
}

fn put() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("=".to_owned()),
        Just(",".to_owned()),
        Just("\n".to_owned()),
        Just("#".to_owned()),
        Just("-1".to_owned()),
        Just("1e308".to_owned()),
        Just("NaN".to_owned()),
        Just("99999999999".to_owned()),
        Just("0".to_owned()),
        Just("Zones = [ ]".to_owned()),
        (0u64..100_000).prop_map(|n| n.to_string()),
    ];
    prop::collection::vec(token, 0..4).prop_map(|tokens| tokens.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(31), cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_descriptions_give_an_error_or_a_valid_profile(
        which in 0usize..3, at in 0usize..1000, length in 0usize..40, put in put(),
    ) {
        let mut texts = [MODEL.to_owned(), SEEK.to_owned(), SPECS.to_owned()];
        texts[which] = damaged(&texts[which], at, length, &put);
        match read(&texts[0], &texts[1], &texts[2]) {
            Ok(description) => {
                let profile = Profile::parse("a", &description.to_toml(None));
                prop_assert!(profile.is_ok(), "{:?}", profile.err());
            }
            Err(error) => prop_assert!(error.to_string().starts_with("a."), "{}", error),
        }
    }

    #[test]
    fn damaged_traces_give_an_error_or_sectors_in_range(at in 0usize..1000, length in 0usize..9, put in put()) {
        let text = "R Hit 100 4 663.0 45422.0\nW Miss 900 8 607.0 34200.0\n";
        if let Ok(services) = service_times("a.trace", &damaged(text, at, length, &put), 1000) {
            prop_assert!(services.iter().all(|service| service.sector + u64::from(service.nr_sectors) <= 1000));
        }
    }
}
