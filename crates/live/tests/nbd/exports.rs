//! Tests of export declarations, in a file and as an option, and of their errors.

use iosched::{IoClass, IoPriority, Rate, Rates};
use iosched_live::nbd::{EXPORTS_MAX, Export, Exports, ExportsError};
use iosched_live::{Portion, Shares, SyncWrites};
use iosched_nbd::Offer;
use proptest::prelude::*;

fn read(text: &str) -> Result<Exports, ExportsError> {
    Exports::from_toml("exports.toml", text)
}

fn wrong(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn wrong_option(text: &str) -> String {
    Export::from_option(text).unwrap_err().to_string()
}

#[test]
fn a_file_declares_exports() {
    let exports = read(
        "[export.db]\nclass = \"be\"\nlevel = 0\nweight = 800\nsync = \"all\"\ndescription = \"a, b\"\n\n[export.backup]\nclass = 'idle'\n\
         read_only = true\n[export.\"a b/ü\"]\n",
    )
    .unwrap();
    let db = Export {
        name: "db".into(),
        description: "a, b".into(),
        ioprio: IoPriority::new(IoClass::BestEffort, 0),
        weight: Some(800),
        rates: Rates::default(),
        read_only: false,
        sync: SyncWrites::All,
    };
    let backup = Export { ioprio: IoPriority::new(IoClass::Idle, 4), read_only: true, ..Export::new("backup") };
    assert_eq!(exports.as_slice(), [Export::new("a b/ü"), backup, db]);
}

#[test]
fn file_and_option_declare_the_same_exports() {
    let file = read("[export.db]\nclass = \"rt\"\nlevel = 7\nweight = 10\nread_only = true\nsync = \"all\"\ndescription = \"x, y=z\"")
        .unwrap();
    for option in [
        "db,class=rt,level=7,weight=10,read-only,sync=all,description=x, y=z",
        "db,weight=10,read_only=true,level=7,sync=all,class=rt,description=x, y=z",
    ] {
        assert_eq!(file.as_slice(), [Export::from_option(option).unwrap()]);
    }
    assert_eq!(Export::from_option("db").unwrap(), Export::new("db"));
    assert_eq!(Export::from_option("").unwrap(), Export::new(""));
    assert!(!Export::from_option("db,read-only=false").unwrap().read_only);
}

#[test]
fn default_export_has_the_name_of_the_disk() {
    for text in ["", "[export]"] {
        assert_eq!(read(text).unwrap().or_default("sda").as_slice(), [Export::new("sda")]);
    }
    let declared = read("[export.db]").unwrap();
    assert_eq!(declared.clone().or_default("sda"), declared);
}

#[test]
fn exports_are_groups_unless_class_and_level_decide() {
    let groups = |text: &str| -> Vec<Option<(String, Option<u32>)>> {
        let exports = read(text).unwrap();
        let group = |export| exports.group(export).map(|(name, portion)| (name.to_owned(), portion.weight));
        exports.as_slice().iter().map(group).collect()
    };
    let group = |name: &str, weight| Some((name.to_owned(), weight));
    assert_eq!(groups("[export.a]\n[export.b]"), [group("a", None), group("b", None)]);
    assert_eq!(groups("[export.a]\nclass = \"be\"\n[export.b]\nclass = \"idle\""), [None, None]);
    assert_eq!(groups("[export.a]\n[export.b]\nlevel = 0"), [None, None]);
    assert_eq!(
        groups("[export.a]\nweight = 800\n[export.b]\nclass = \"idle\"\n[export.c]\nlevel = 7\n[export.\"\"]"),
        [None, group("a", Some(800)), group("b", Some(10)), group("c", None)]
    );
    assert_eq!(groups("[export.a]\nclass = \"idle\"\nweight = 100"), [group("a", Some(100))]);
}

#[test]
fn offer_has_the_properties_of_disk_and_export() {
    let mut disk = Offer::new("sda", 1 << 30);
    (disk.rotational, disk.trim) = (true, false);
    let exports = read("[export.a]\nread_only = true\n[export.b]\ndescription = \"x\"").unwrap();
    let offers = exports.offers(&disk);
    let (mut a, mut b) = (disk.clone(), disk.clone());
    (a.name, a.read_only) = ("a".into(), true);
    (b.name, b.description) = ("b".into(), "x".into());
    assert_eq!(offers[..], [a, b]);
    disk.read_only = true;
    assert!(Export::new("b").offer(&disk).read_only);
}

#[test]
fn errors_of_wrong_values_have_line_and_remedy() {
    let all = [
        ("class = \"fast\"", "class: \"fast\" is not a valid value: write rt (real time), be (best effort) or idle"),
        ("class = 1", "class: 1 is not a valid value: write rt (real time), be (best effort) or idle"),
        ("level = 8", "level: 8 is not a valid value: write a number from 0 (most urgent) to 7"),
        ("level = \"0\"", "level: \"0\" is not a valid value: write a number from 0 (most urgent) to 7"),
        ("level = -1", "level: -1 is not a valid value: write a number from 0 (most urgent) to 7"),
        ("weight = 9", "weight: 9 is not a valid value: write a number from 10 to 1000"),
        ("weight = 1001", "weight: 1001 is not a valid value: write a number from 10 to 1000"),
        ("weight = 100.0", "weight: 100.0 is not a valid value: write a number from 10 to 1000"),
        ("description = 5", "description: 5 is not a valid value: write a text"),
        (
            "sync = \"yes\"",
            "sync: \"yes\" is not a valid value: write fua (only writes with FUA are sync) or all (all writes are \
             sync)",
        ),
        ("read_only = \"yes\"", "read_only: \"yes\" is not a valid value: write true or false"),
        (
            "wieght = 5",
            "wieght: an export has no such field; its fields are class, level, weight, reservation, limit, sync, \
             description and read_only",
        ),
        ("level = 0\nclass = \"idle\"", "level: the class idle has no levels; leave the level out"),
    ];
    for (field, problem) in all {
        let expected = format!("exports.toml:4: export \"db\": {problem}");
        assert_eq!(wrong(&format!("[export.backup]\n\n[export.db]\n{field}\n")), expected);
    }
}

#[test]
fn errors_of_wrong_options_have_export_and_remedy() {
    let all = [
        ("class=fast", "class: fast is not a valid value: write rt (real time), be (best effort) or idle"),
        ("class", "class: nothing is not a valid value: write rt (real time), be (best effort) or idle"),
        ("level=", "level: nothing is not a valid value: write a number from 0 (most urgent) to 7"),
        ("level=x", "level: x is not a valid value: write a number from 0 (most urgent) to 7"),
        ("weight=1e3", "weight: 1e3 is not a valid value: write a number from 10 to 1000"),
        ("read-only=maybe", "read_only: maybe is not a valid value: write true or false"),
        ("level=1,level=2", "level: the export gives this field twice; remove one of the two"),
        ("class=idle,level=1", "level: the class idle has no levels; leave the level out"),
        (
            "name=x",
            "name: an export has no such field; its fields are class, level, weight, reservation, limit, sync, \
             description and read_only",
        ),
    ];
    for (fields, problem) in all {
        assert_eq!(wrong_option(&format!("db,{fields}")), format!("--export: export \"db\": {problem}"));
    }
}

#[test]
fn malformed_tables_of_exports_are_refused() {
    for (text, line, what) in [
        ("[exports.db]", "line 1", "unknown field `exports`, expected `export`"),
        ("\nexport = 5", "line 2", "expected a map"),
        ("[export]\ndb = 5", "line 2", "expected a map"),
        ("[export.db]\n[export.db]", "line 2", "duplicate key"),
        ("[export.db]\nlevel = ", "line 2", ""),
    ] {
        let message = wrong(text);
        assert!(message.starts_with("exports.toml: "), "{message}");
        assert!(message.contains(line) && message.contains(what), "{message}");
    }
}

#[test]
fn names_and_descriptions_over_4096_bytes_are_refused() {
    let long = "x".repeat(4097);
    assert!(
        wrong(&format!("[export.{long}]"))
            .ends_with("name: the text has 4097 bytes, but the protocol allows only 4096")
    );
    let message = wrong_option(&format!("db,description={long}"));
    assert!(message.ends_with("description: the text has 4097 bytes, but the protocol allows only 4096"), "{message}");
}

#[test]
fn unprintable_export_names_are_refused() {
    let expected = "the name has unprintable characters; remove them";
    for name in ["a\nb", "\u{1b}[2J", "a\u{2028}b", "\u{202e}a"] {
        assert!(wrong_option(&format!("{name},level=1")).ends_with(expected), "{name:?}");
        let escaped: String = name.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        assert!(wrong(&format!("[export.\"{escaped}\"]")).ends_with(expected), "{name:?}");
    }
    assert!(Export::from_option("Ärger \"1\" \\ \u{65e5}").is_ok());
}

#[test]
fn duplicate_names_and_too_many_exports_are_refused() {
    let mut exports = read("[export.db]").unwrap();
    assert!(matches!(exports.add(Export::new("db")), Err(ExportsError::Twice { name }) if name == "db"));
    for index in 1..EXPORTS_MAX {
        exports.add(Export::new(format!("{index}"))).unwrap();
    }
    assert!(matches!(exports.add(Export::new("one more")), Err(ExportsError::TooMany { .. })));
    assert!(exports.as_slice().is_sorted_by(|one, next| one.name < next.name));
}

#[test]
fn error_names_a_missing_exports_file() {
    let message = Exports::load("/nowhere/exports.toml".as_ref()).unwrap_err().to_string();
    assert!(message.starts_with("/nowhere/exports.toml: cannot read this file: "), "{message}");
}

proptest! {
    #[test]
    fn parsing_any_text_does_not_panic(text in "\\PC{0,80}", field in "(class|level|weight|read-only)=\\PC{0,4}") {
        let _ = Export::from_option(&text);
        let _ = Export::from_option(&format!("db,{field}"));
        let _ = Exports::from_toml("f", &text);
        let _ = Exports::from_toml("f", &format!("[export.db]\n{field}"));
    }
}

#[test]
fn reservations_and_limits_are_declared_in_ios_or_bytes() {
    let rates = |reservation, limit| Rates { reservation, limit };
    let file = read("[export.a]\nreservation = 500\nlimit = \"50MB/s\"\n[export.b]\nreservation = \"8MiB\"").unwrap();
    let [a, b] = file.as_slice() else { panic!("two exports") };
    assert_eq!(a.rates, rates(Some(Rate::Ios(500)), Some(Rate::Bytes(50_000_000))));
    assert_eq!(b.rates, rates(Some(Rate::Bytes(8 << 20)), None));
    assert_eq!(Export::from_option("a,reservation=500,limit=50MB").unwrap(), *a);
    assert_eq!(file.shares(), Some(Shares::Rates));
    // Reservations and limits create a group for each export, even if a class is declared.
    let file = read("[export.a]\nlimit = 5\n[export.b]\nclass = \"rt\"").unwrap();
    let portion = Portion { weight: None, rates: rates(None, Some(Rate::Ios(5))) };
    assert_eq!(file.group(&file.as_slice()[0]), Some(("a", portion)));
    assert_eq!(file.group(&file.as_slice()[1]), Some(("b", Portion::default())));
    let error = wrong("[export.a]\nlimit = \"fast\"");
    assert!(
        error.ends_with(
            "export \"a\": limit: \"fast\" is not a valid value: write I/Os per second, such as 500, or bytes per second with a \
             unit, such as 50MB"
        ) && error.starts_with("exports.toml:2: "),
        "{error}"
    );
    assert!(wrong("[export.a]\nlimit = 0").contains("limit: 0 is not a valid value"));
    assert!(wrong_option("a,limit").contains("limit: nothing is not a valid value"));
    assert!(wrong_option("a,limit=5,limit=5").contains("limit: the export gives this field twice"));
    let error = wrong_option("a,reservation=50MB,limit=20MB");
    assert!(error.contains("reservation: 50MB is above the limit 20MB; lower the reservation or raise"), "{error}");
}
