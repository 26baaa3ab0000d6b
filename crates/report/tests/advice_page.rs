//! Tests of the page of advice. The model of the search also represents the device.

mod common;

use iosched::Setting;
use iosched_advise::tune::{Selection, TuneResults, Tuning, tune};
use iosched_advise::{Advice, Confirmed, candidates};
use iosched_disk::Profile;
use iosched_kernel::settings::{DropIn, Lasting, Named, OfControllers};
use iosched_lab::{Control, Experiment, execute};
use iosched_report::advice_html;
use iosched_testing::workloads::LOOKUPS_AND_BACKUP as TASKS;
use iosched_workload::{TaskSet, Workload};

fn experiment(settings: Vec<Setting>) -> Experiment {
    let workload = Workload::Tasks(TaskSet::parse("tasks.toml", TASKS).unwrap().into());
    Experiment::new(workload, Profile::named("sata-7200").unwrap(), settings).unwrap()
}

#[test]
fn untried_cgroup_settings_are_listed_with_their_commands() {
    let capped = "none:io.max=backup:wiops=60";
    let tasks = TASKS.replace("name = \"backup\"", "name = \"backup\"\ncgroup = \"backup\"")
        + "\n[[cgroups]]\nname = \"backup\"\n";
    let of = |settings: Vec<Setting>| {
        let workload = Workload::Tasks(TaskSet::parse("tasks.toml", &tasks).unwrap().into());
        Experiment::new(workload, Profile::named("sata-7200").unwrap(), settings).unwrap()
    };
    let settings = ["none", capped].map(|setting| setting.parse().unwrap()).to_vec();
    let goals = vec!["mean(lookup)".parse().unwrap()];
    let mut tuning = Tuning::new(of(settings), &Selection::default(), goals).unwrap();
    tuning.baseline = "none".parse().unwrap();
    tuning.budget = 30;
    let search = tune(&tuning, &Control::new(2), |_| Ok(())).unwrap();
    let mut on_device = of(vec![Setting::defaults("none")]);
    on_device.runs = 2;
    let mut records = execute(&on_device, &Control::new(2), |_| Ok(())).unwrap().records;
    records.header.settings[0].label = Setting::present().to_string();
    let confirmed = Confirmed::of(&search.header, &records);
    let predicted = TuneResults::of(&search.header, &search.runs);
    let advice = Advice::of("none".to_owned(), Some(true), predicted, &confirmed);
    assert_eq!(advice.untried().expect("the search found a setting").label, capped);
    let setting: Setting = capped.parse().unwrap();
    let device = Named { node: "/dev/sda", number: "8:0" };
    let commands = OfControllers::of(&setting);
    let lasting = Lasting {
        commands: commands.commands(device),
        rule_path: "/etc/udev/rules.d/90-iosched-sda.rules".to_owned(),
        rule: "KERNEL==\"sda\"".to_owned(),
        profile_name: "iosched-sda".to_owned(),
        profile_path: "/etc/tuned/iosched-sda/tuned.conf".to_owned(),
        profile: "[main]".to_owned(),
        drop_ins: commands.drop_ins(device),
        undo: commands.undo(device),
    };
    let page = advice_html(&advice, &records, None, None, Some(&lasting));
    common::whole_page(&page);
    let from = page.find("<section id=\"untried\">").unwrap();
    let section = &page[from..from + page[from..].find("</section>").unwrap()];
    for text in [capped, "mean(lookup)", "IOWriteIOPSMax=/dev/sda 60", "backup.service.d/50-iosched.conf"] {
        assert!(section.contains(text), "{text} is not in {section}");
    }
    let without = advice_html(&advice, &records, None, None, None);
    assert!(!without.contains("id=\"untried\""));
}

#[test]
fn advice_page_has_setting_configuration_files_and_undo() {
    let schedulers = ["none", "mq-deadline", "bfq"].map(Setting::defaults).to_vec();
    let goals = vec!["mean(lookup)".parse().unwrap()];
    let mut tuning = Tuning::new(experiment(schedulers), &Selection::default(), goals).unwrap();
    tuning.baseline = "none".parse().unwrap();
    tuning.budget = 60;
    let search = tune(&tuning, &Control::new(2), |_| Ok(())).unwrap();
    let predicted = TuneResults::of(&search.header, &search.runs);
    // The model represents the device: runs on the device are simulated. The first setting is the
    // present one.
    let tried = candidates(&predicted, true, 4).into_iter().filter(|candidate| candidate.name() != "none");
    let mut on_device = experiment([Setting::defaults("none")].into_iter().chain(tried).collect());
    on_device.runs = 12;
    on_device.goals = vec!["mean(lookup)".parse().unwrap()];
    let mut records = execute(&on_device, &Control::new(2), |_| Ok(())).unwrap().records;
    records.header.settings[0].label = Setting::present().to_string();
    let confirmed = Confirmed::of(&search.header, &records);
    let advice = Advice::of("none".to_owned(), Some(true), predicted, &confirmed);
    let lasting = Lasting {
        commands: vec!["echo bfq > /sys/block/sda/queue/scheduler".to_owned()],
        rule_path: "/etc/udev/rules.d/90-iosched-sda.rules".to_owned(),
        rule: "KERNEL==\"sda\"".to_owned(),
        profile_name: "iosched-sda".to_owned(),
        profile_path: "/etc/tuned/iosched-sda/tuned.conf".to_owned(),
        profile: "[main]".to_owned(),
        drop_ins: vec![DropIn {
            unit: "db.service".to_owned(),
            path: "/etc/systemd/system/db.service.d/50-iosched.conf".to_owned(),
            text: "[Service]\nIOWeight=800\n".to_owned(),
        }],
        undo: vec!["echo none > /sys/block/sda/queue/scheduler".to_owned()],
    };
    let page = advice_html(&advice, &records, None, Some(&lasting), None);
    common::whole_page(&page);
    assert!(page.contains("<h1>Settings of ") && page.contains("<p class=\"lead\">Set "), "{page}");
    for text in [
        "90-iosched-sda.rules",
        "[main]",
        "50-iosched.conf",
        "IOWeight=800",
        "echo none &gt; /sys",
        "lookups beside a backup",
        "mean(lookup), predicted",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
}
