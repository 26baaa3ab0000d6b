//! Tests of the lasting forms of a setting with systemd's own programs, if they are installed.
//! These programs check the files that systemd reads.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{DropIn, Lasting, Recorded, rule_name};
use crate::recorded::Recorded as Machine;
use iosched::Setting;
use iosched_testing::machine::udev_messages;

/// A setting that uses every part that drop-ins and rules can contain.
const SETTING: &str = "none:nomerges=2,io.max=backup:rbps=max/wbps=50000000/riops=7/wiops=100+batch.slice:wbps=1000,\
                       io.latency=db:target=2000,io.weight=db:800,\
                       io.cost.qos=enable=1/rpct=95.00/rlat=2500/min=50.00/max=150.00,\
                       io.cost.model=ctrl=user/model=linear/rbps=5/rseqiops=4/rrandiops=3/wbps=5/wseqiops=4/wrandiops=3";

fn lasting() -> Lasting {
    let machine = Machine::new();
    let recorded = Recorded { scheduler: "mq-deadline".to_owned(), values: Vec::new() };
    Lasting::of(&machine.device("sda"), &SETTING.parse::<Setting>().unwrap(), &recorded)
}

/// Returns the standard output and error of a command. If the program is not installed, prints a
/// message and returns `None`. In CI, the program must be installed.
fn output_of(command: &mut Command) -> Option<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) => {
            Some(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{program}: {error}");
            println!("skipped: {program} is not installed: {error}");
            None
        }
    }
}

/// Returns the messages of systemd-analyze about drop-ins.
fn verified(here: &Path, drop_ins: &[DropIn]) -> Option<String> {
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]).env("SYSTEMD_UNIT_PATH", format!("{}:", here.display()));
    for drop_in in drop_ins {
        let unit = here.join(&drop_in.unit);
        fs::write(&unit, if drop_in.unit.ends_with(".slice") { "" } else { "[Service]\nExecStart=/bin/true\n" })
            .unwrap();
        let file = here.join(drop_in.below_units());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, &drop_in.text).unwrap();
        command.arg(unit);
    }
    let text = output_of(&mut command)?;
    // Messages about other units of the machine are left out.
    Some(text.lines().filter(|line| line.contains(DropIn::FILE)).collect::<Vec<_>>().join("\n"))
}

#[test]
fn systemd_accepts_every_line_of_drop_ins() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let mut drop_ins = lasting().drop_ins;
    assert_eq!(drop_ins.len(), 3, "{drop_ins:?}");
    let Some(text) = verified(here, &drop_ins) else { return };
    assert_eq!(text, "");
    // The check must detect an error.
    drop_ins[0].text = drop_ins[0].text.replace("IOReadIOPSMax", "IOReadOpsMax");
    let text = verified(here, &drop_ins).unwrap();
    assert!(text.contains("IOReadOpsMax"), "{text}");
}

#[test]
fn udev_accepts_every_word_of_rules() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let rule = lasting().rule;
    assert!(rule.contains("io.cost.qos") && rule.contains("nomerges"), "{rule}");
    fs::write(here.join(rule_name("sda")), &rule).unwrap();
    let Some(text) = udev_messages(here, &rule_name("sda")) else { return };
    assert_eq!(text, "");
    // The check must detect an error.
    fs::write(here.join(rule_name("sda")), rule.replace("ATTR{", "ATR{")).unwrap();
    let text = udev_messages(here, &rule_name("sda")).unwrap();
    assert!(text.contains("Invalid key 'ATR'"), "{text}");
}
