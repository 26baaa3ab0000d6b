//! Tests of every form with the program that reads it, if the machine has the program.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output as Ended, Stdio};

use iosched::{Registry, Setting};
use iosched_testing::machine::{available, udev_messages};

use super::*;
use crate::plan::{Plan, UnitPlan};

/// Returns a plan of a setting with units of the form (name, match, I/O priority).
pub(super) fn plan(setting: &str, units: &[(&str, &str, Option<&str>)]) -> Plan {
    let unit = |(name, target, priority): &(&str, &str, Option<&str>)| UnitPlan {
        name: (*name).to_owned(),
        target: target.parse().unwrap(),
        cgroup: (*name).to_owned(),
        priority: priority.map(|priority| priority.parse().unwrap()),
        goals: Vec::new(),
    };
    Plan {
        version: "0.1.0".to_owned(),
        device: Some("/dev/sdb".to_owned()),
        profile: "sata-ssd".to_owned(),
        setting: Setting::parse(setting, &Registry::linux()).unwrap(),
        units: units.iter().map(unit).collect(),
    }
}

pub(super) fn place() -> Place {
    Place { number: Some("8:16".to_owned()), model_name: Some("A Disk".to_owned()), ..Place::named("/dev/sdb") }
}

/// A setting with every value that units can have.
const ALL: &str = "none:nomerges=2,io.max=a:rbps=max/wbps=50000000/riops=7/wiops=100,io.latency=a:target=2000,\
                   io.weight=a:800+b:50,io.prio.class=b:idle";
const IO_COST: &str = "none:io.cost.qos=enable=1/rpct=95/rlat=2500/min=50/max=150,io.cost.model=ctrl=user/model=linear/\
                       rbps=500000000/rseqiops=40000/rrandiops=30000/wbps=400000000/wseqiops=30000/wrandiops=20000";

/// Returns a plan with every value for the units `a` and `b`.
fn all(a: &str, b: &str) -> Plan {
    plan(ALL, &[("a", a, Some("be/2")), ("b", b, None)])
}

fn text<'o>(output: &'o Output, path: &str) -> &'o str {
    let paths: Vec<&str> = output.files.iter().map(|file| &*file.path).collect();
    &output.files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} is not in {paths:?}")).text
}

/// Returns the lines without comments.
fn plain(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[track_caller]
fn has_note(output: &Output, words: &str) {
    assert!(output.notes.iter().any(|note| note.to_string().contains(words)), "{words}: {:#?}", output.notes);
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    available(found.is_ok(), program)
}

fn text_of(ended: &Ended) -> String {
    format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr))
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let ended = command.stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.success(), "{command:?}: {}", text_of(&ended));
    text_of(&ended)
}

#[test]
fn systemd_accepts_drop_ins_and_udev_accepts_the_rule() {
    let plan = all("system.slice/a.service", "system.slice/b.service");
    let output = output(Form::Systemd, &plan, &place()).unwrap();
    assert_eq!(
        plain(text(&output, "/etc/systemd/system/a.service.d/50-iosched.conf")),
        "[Service]\nIOWeight=800\nIOReadBandwidthMax=/dev/sdb infinity\nIOWriteBandwidthMax=/dev/sdb 50000000\n\
         IOReadIOPSMax=/dev/sdb 7\nIOWriteIOPSMax=/dev/sdb 100\nIODeviceLatencyTargetSec=/dev/sdb 2000us\n\
         IOSchedulingClass=best-effort\nIOSchedulingPriority=2\n"
    );
    assert_eq!(
        plain(text(&output, "/etc/systemd/system/b.service.d/50-iosched.conf")),
        "[Service]\nIOWeight=50\nIOSchedulingClass=idle\n"
    );
    has_note(&output, "b: systemd has no property for io.prio.class=idle");
    let directory = tempfile::tempdir().unwrap();
    let rule = text(&output, "/etc/udev/rules.d/90-iosched-sdb.rules");
    assert!(plain(rule).ends_with("KERNEL==\"sdb\", ATTR{queue/scheduler}=\"none\", ATTR{queue/nomerges}=\"2\"\n"));
    fs::write(directory.path().join("90-iosched-sdb.rules"), rule).unwrap();
    assert_eq!(udev_messages(directory.path(), "90-iosched-sdb.rules").unwrap_or_default(), "");
    if !has("systemd-analyze") {
        return;
    }
    let units = tempfile::tempdir().unwrap();
    let verify = |output: &Output| {
        write_below(output, units.path()).unwrap();
        let system = units.path().join("etc/systemd/system");
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no"]).env("SYSTEMD_UNIT_PATH", format!("{}:", system.display()));
        for unit in ["a.service", "b.service"] {
            fs::write(system.join(unit), "[Service]\nExecStart=/bin/true\n").unwrap();
            command.arg(system.join(unit));
        }
        let text = text_of(&command.output().unwrap());
        text.lines().filter(|line| line.contains("50-iosched.conf")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(verify(&output), "");
    // The program must detect an error, so that its check means something.
    let mut wrong = output;
    wrong.files[1].text = wrong.files[1].text.replace("IOWeight", "IOWait");
    fs::remove_dir_all(units.path().join("etc")).unwrap();
    assert!(verify(&wrong).contains("IOWait"));
}

#[test]
fn tmpfiles_sets_cgroups_that_are_not_units() {
    let output = output(Form::Systemd, &all("tenants/a", "tenants/b"), &place()).unwrap();
    has_note(&output, "tenants/a is not a systemd unit");
    let root = tempfile::tempdir().unwrap();
    for file in ["io.max", "io.latency", "io.weight", "io.prio.class"] {
        for unit in ["a", "b"] {
            let path = root.path().join("sys/fs/cgroup/tenants").join(unit);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(file), "").unwrap();
        }
    }
    write_below(&output, root.path()).unwrap();
    if !has("systemd-tmpfiles") {
        return;
    }
    let option = format!("--root={}", root.path().display());
    succeeds(Command::new("systemd-tmpfiles").args(["--create", &option, "iosched-sdb.conf"]));
    let read = |file: &str| fs::read_to_string(root.path().join("sys/fs/cgroup/tenants").join(file)).unwrap();
    assert_eq!(read("a/io.max").trim(), "8:16 rbps=max wbps=50000000 riops=7 wiops=100");
    assert_eq!(read("a/io.latency").trim(), "8:16 target=2000");
    assert_eq!((read("b/io.weight").trim(), read("b/io.prio.class").trim()), ("8:16 50", "idle"));
}

#[test]
fn hwdb_finds_the_model_of_io_cost() {
    let plan = plan(IO_COST, &[("a", "a.service", None)]);
    let output = output(Form::Hwdb, &plan, &place()).unwrap();
    let file = "/etc/udev/hwdb.d/90-iocost-a_disk.hwdb";
    assert!(text(&output, file).contains("\nblock:*:name:A_Disk:fwrev:*:\n"), "{}", text(&output, file));
    if !has("systemd-hwdb") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    write_below(&output, root.path()).unwrap();
    let option = format!("--root={}", root.path().display());
    succeeds(Command::new("systemd-hwdb").args(["update", "--strict", &option]));
    let found = succeeds(Command::new("systemd-hwdb").args(["query", &option, "block::name:A_Disk:fwrev:1.0:"]));
    assert!(found.contains("IOCOST_MODEL_MEASURED=rbps=500000000 rseqiops=40000 rrandiops=30000"), "{found}");
    assert!(found.contains("IOCOST_QOS_MEASURED=") && found.contains("rlat=2500"), "{found}");
    // The udev rule sets the same values, and needs no hwdb.
    let rule = super::output(Form::Systemd, &plan, &place()).unwrap();
    let rule = text(&rule, "/etc/udev/rules.d/90-iosched-sdb.rules");
    assert!(
        rule.contains("echo %M:%m enable=1 rpct=95 rlat=2500 min=50 max=150 > /sys/fs/cgroup/io.cost.qos"),
        "{rule}"
    );
}

#[test]
fn docker_accepts_every_option() {
    let output = output(Form::Containers, &all("container:a", "container:b"), &place()).unwrap();
    let options = plain(text(&output, "a.options"));
    assert_eq!(
        options,
        "--blkio-weight=89 --device-write-bps=/dev/sdb:50000000 --device-read-iops=/dev/sdb:7 \
         --device-write-iops=/dev/sdb:100\n"
    );
    has_note(&output, "a: A container engine cannot express the latency target of 2000 us");
    has_note(&output, "b: A container engine cannot express io.prio.class=idle");
    has_note(&output, "The udev rule sets the device: write this rule with --write systemd");
    if has("docker") {
        // No daemon listens at this socket, so that docker creates no container.
        let answer = |options: &str| {
            let mut command = Command::new("docker");
            command.env("DOCKER_HOST", "unix:///nonexistent/socket").arg("create").args(options.split_whitespace());
            text_of(&command.arg("image").output().unwrap())
        };
        assert!(answer(&options).contains("annot connect"), "{}", answer(&options));
        assert!(!answer("--device-write-bps=/dev/sdb:x").contains("annot connect"));
    }
    let compose = text(&output, "compose.iosched.yaml");
    let Some(json) = yaml(compose) else { return };
    let config = &json["services"]["a"]["blkio_config"];
    assert_eq!(config["weight"], 89);
    assert_eq!(config["device_write_bps"], serde_json::json!([{"path": "/dev/sdb", "rate": 50_000_000}]));
    assert_eq!(config["device_read_bps"], serde_json::Value::Null);
    assert_eq!(json["services"]["b"]["blkio_config"]["weight"], 15);
}

/// Parses YAML with Python.
fn yaml(text: &str) -> Option<serde_json::Value> {
    let script = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    if text_of(&ended).contains("No module named") {
        println!("skipped: Python has no module yaml");
        return None;
    }
    assert!(ended.status.success(), "{}", text_of(&ended));
    Some(serde_json::from_slice(&ended.stdout).unwrap())
}

#[test]
fn libvirt_validates_the_domain_and_virsh_sets_it() {
    let output = output(Form::Libvirt, &all("libvirt:test", "libvirt:other"), &place()).unwrap();
    has_note(&output, "iosched multiplies the weights of the domains by 2.00");
    has_note(&output, "further apart than libvirt allows");
    has_note(&output, "a: libvirt cannot express the latency target");
    let domain = format!(
        "<domain type='qemu'>\n<name>test</name>\n<memory>1024</memory>\n{}<os><type>hvm</type></os>\n<devices>\n\
         <disk type='file' device='disk'>\n<source file='/a'/>\n<target dev='vda'/>\n{}</disk>\n</devices>\n</domain>\n",
        text(&output, "test.blkiotune.xml"),
        text(&output, "test.iotune.xml")
    );
    assert!(domain.contains("<weight>1000</weight>") && domain.contains("<write_bytes_sec>50000000</write_bytes_sec>"));
    let directory = tempfile::tempdir().unwrap();
    let validate = |domain: &str| {
        let file = directory.path().join("domain.xml");
        fs::write(&file, domain).unwrap();
        let ended = Command::new("virt-xml-validate").arg(&file).arg("domain").output().unwrap();
        (ended.status.success(), text_of(&ended))
    };
    if available(Path::new("/usr/bin/virt-xml-validate").exists(), "virt-xml-validate") && has("xmllint") {
        let (valid, message) = validate(&domain);
        assert!(valid, "{message}");
        assert!(!validate(&domain.replace("write_iops_sec", "write_iopsx_sec")).0, "the check must detect an error");
    }
    if has("virsh") {
        let script = text(&output, "test.virsh.sh");
        let file = directory.path().join("test.virsh.sh");
        fs::write(&file, script).unwrap();
        let set =
            |file: &Path| Command::new("sh").arg(file).env("LIBVIRT_DEFAULT_URI", "test:///default").output().unwrap();
        let ended = set(&file);
        assert!(ended.status.success(), "{}", text_of(&ended));
        fs::write(&file, script.replace("--device-read-iops-sec", "--device-iops-sec")).unwrap();
        assert!(!set(&file).status.success(), "the check must detect an error");
    }
}

#[test]
fn qemu_creates_the_throttle_group() {
    let output = output(Form::Qemu, &all("qemu:a", "qemu:b"), &place()).unwrap();
    has_note(
        &output,
        "a: QEMU has no weights and no latency targets. Start the machine in a unit that has them: systemd-run",
    );
    has_note(&output, "b: The plan sets no limit");
    has_note(&output, "a: QEMU does not set the I/O priority be/2. Start QEMU with ionice -c 2 -n 2.");
    let options = plain(text(&output, "a.qemu-options"));
    let lines: Vec<&str> = options.lines().collect();
    assert_eq!(
        lines[2],
        ",throttling.group=a-limits,throttling.bps-write=50000000,throttling.iops-read=7,throttling.iops-write=100"
    );
    if !has("qemu-system-x86_64") {
        return;
    }
    let base = "exec qemu-system-x86_64 -machine none -nodefaults -display none -S -qmp stdio";
    let ask = |arguments: &str| {
        let mut child = Command::new("sh")
            .args(["-c", &format!("{base} {arguments}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = "{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"qom-get\",\"arguments\":{\"path\":\"/objects/a-limits\",\
                         \"property\":\"limits\"}}\n{\"execute\":\"query-named-block-nodes\"}\n{\"execute\":\"query-block\"}\n{\"execute\":\"quit\"}\n";
        // A QEMU that refuses its options has already ended, so this write can fail.
        let _ = child.stdin.take().unwrap().write_all(questions.as_bytes());
        text_of(&child.wait_with_output().unwrap())
    };
    let disk = r#"-blockdev '{"driver":"null-co","node-name":"NODE"}'"#;
    let answer = ask(&format!("{} {disk} {}", lines[0], lines[1]));
    assert!(answer.contains("\"bps-write\": 50000000") && answer.contains("\"iops-read\": 7"), "{answer}");
    assert!(answer.contains("NODE-limited"), "{answer}");
    let drive = format!("-drive if=none,id=d,driver=null-co{}", lines[2]);
    let answer = ask(&drive);
    assert!(answer.contains("\"bps_wr\": 50000000") && answer.contains("\"iops_wr\": 100"), "{answer}");
}

#[test]
fn the_script_for_proxmox_keeps_other_disk_options() {
    let output = output(Form::Proxmox, &all("proxmox:101", "proxmox:102"), &place()).unwrap();
    has_note(&output, "a: A disk option of Proxmox cannot express the latency target of 2000 us");
    has_note(
        &output,
        "b: The disk options of a virtual machine cannot express weights. Write the plan for qemu.slice/102.scope",
    );
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    write_below(&output, here).unwrap();
    // An imitation of qm. As its manual page says, it sets a disk option as a whole.
    let qm = "#!/bin/sh\ncase $1 in\nconfig) [ -e \"$HERE/$2.qm\" ] && cat \"$HERE/$2.qm\" ;;\n\
              set) shift; echo \"$2: $3\" | cut -c 3- >\"$HERE/$1.qm\" ;;\nesac\n";
    fs::write(here.join("qm"), qm).unwrap();
    succeeds(Command::new("chmod").arg("+x").arg(here.join("qm")));
    let run = |number: &str, arguments: &[&str]| {
        let path = format!("{}:{}", here.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.arg(here.join(format!("proxmox-{number}.sh"))).args(arguments);
        command.env("PATH", path).env("HERE", here).env("PVE", here).output().unwrap()
    };
    let config = || fs::read_to_string(here.join("101.qm")).unwrap();
    fs::write(here.join("101.qm"), "scsi0: local:vm-101-disk-0,iops_rd=9,size=8G,mbps_rd_max=3\n").unwrap();
    for _ in 0..2 {
        let ended = run("101", &["scsi0"]);
        assert!(ended.status.success(), "{}", text_of(&ended));
        assert_eq!(config(), "scsi0: local:vm-101-disk-0,size=8G,mbps_wr=47.6837,iops_rd=7,iops_wr=100\n");
    }
    assert!(run("101", &["scsi0", "undo"]).status.success());
    assert_eq!(config(), "scsi0: local:vm-101-disk-0,size=8G\n");
    assert!(!run("101", &["scsi9"]).status.success() && !run("101", &[]).status.success());
    // A container has no configuration file of qm.
    fs::create_dir(here.join("lxc")).unwrap();
    let container = here.join("lxc/102.conf");
    fs::write(&container, "arch: amd64\nlxc.cgroup2.io.weight: 8:16 3\n").unwrap();
    let ended = run("102", &[]);
    assert!(ended.status.success(), "{}", text_of(&ended));
    let read = || fs::read_to_string(&container).unwrap();
    assert_eq!(read(), "arch: amd64\nlxc.cgroup2.io.weight: 8:16 50\nlxc.cgroup2.io.prio.class: idle\n");
    assert!(run("102", &["undo"]).status.success());
    assert_eq!(read(), "arch: amd64\n");
}

#[test]
fn kubectl_applies_the_annotation() {
    let plan = plan(
        "none:io.max=b:wbps=50000000,io.weight=g:400+b:100+e:20,io.latency=g:target=2000",
        &[
            ("g", "kubernetes:guaranteed", None),
            ("b", "kubernetes:burstable", None),
            ("e", "kubernetes:besteffort", None),
        ],
    );
    let output = output(Form::Kubernetes, &plan, &place()).unwrap();
    has_note(&output, "Kubernetes has no field for block I/O in a pod");
    has_note(&output, "g: Guaranteed pods have no common slice. Each of these pods has the weight 100");
    has_note(&output, "g: Kubernetes cannot express the latency target of 2000 us");
    let drop_in = |slice: &str| plain(text(&output, &format!("/etc/systemd/system/{slice}.d/50-iosched.conf")));
    assert_eq!(drop_in("kubepods-burstable.slice"), "[Slice]\nIOWeight=25\nIOWriteBandwidthMax=/dev/sdb 50000000\n");
    assert_eq!(drop_in("kubepods-besteffort.slice"), "[Slice]\nIOWeight=5\n");
    if let Some(classes) = yaml(text(&output, "/etc/iosched/blockio.yaml")) {
        // The keys of goresctrl, which containerd and CRI-O use.
        let expected = serde_json::json!({"Classes": {
            "g": [{"Weight": 50}],
            "b": [{"Weight": 20}, {"Devices": ["/dev/sdb"], "ThrottleWriteBps": "50000000"}],
            "e": [{"Weight": 12}],
        }});
        assert_eq!(classes, expected);
    }
    if !available(Command::new("kubectl").arg("version").arg("--client").output().is_ok(), "kubectl") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    write_below(&output, here).unwrap();
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  selector:\n    matchLabels:\n      \
                      app: web\n  template:\n    metadata:\n      labels:\n        app: web\n    spec:\n      containers:\n      \
                      - name: web\n        image: web\n";
    fs::write(here.join("web.yaml"), deployment).unwrap();
    let mut command = Command::new("kubectl");
    command.args(["patch", "--local", "--output", "yaml", "--filename"]).arg(here.join("web.yaml"));
    let patched = succeeds(command.arg("--patch-file").arg(here.join("b.patch.yaml")));
    assert!(patched.contains("        blockio.resources.beta.kubernetes.io/pod: b\n"), "{patched}");
}

#[test]
fn exports_have_weights_or_priorities() {
    let weights = plan(
        "bfq:low_latency=0,io.bfq.weight=a:800+b:5,io.max=b:wbps=1000",
        &[("a", "export:alpha", Some("be/0")), ("b", "export:beta", None), ("c", "export:gamma", None)],
    );
    let weighted = output(Form::Exports, &weights, &place()).unwrap();
    assert_eq!(
        plain(text(&weighted, "exports.toml")),
        "[export.alpha]\nweight = 800\n[export.beta]\nweight = 10\n[export.gamma]\nweight = 100\n"
    );
    has_note(&weighted, "b: Exports take weights from 10 to 1000, so the weight 5 becomes 10");
    has_note(&weighted, "a: A file of exports has either weights or classes");
    let command = "iosched serve DISK --unix DISK.sock --exports exports.toml --scheduler \
                   'bfq:low_latency=0,io.max=beta:wbps=1000'";
    assert_eq!(weighted.files[0].activate, [command]);
    let classes = plan("mq-deadline", &[("a", "export:alpha", Some("rt/1")), ("b", "export:beta", Some("idle"))]);
    let classes = output(Form::Exports, &classes, &place()).unwrap();
    assert_eq!(
        plain(text(&classes, "exports.toml")),
        "[export.alpha]\nclass = \"rt\"\nlevel = 1\n[export.beta]\nclass = \"idle\"\n"
    );
}
