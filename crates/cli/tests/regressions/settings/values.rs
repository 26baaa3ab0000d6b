//! Values that are written to attributes, and messages about these values.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::common::{Loop, Mount, Mounted, Server, has_all_schedulers, has_fuse, image, is_root};
use crate::list::Sandbox;

/// Returns a loop device with mq-deadline, and its name.
#[track_caller]
fn disk(place: &Sandbox) -> Option<(Loop, String)> {
    if !is_root() {
        return None;
    }
    let disk = Loop::new(&image(&place.here, "image", 16 << 20)).filter(has_all_schedulers)?;
    let name = disk.device.file_name().unwrap().to_str().unwrap().to_owned();
    // Switching the scheduler restores the default tunables of both schedulers.
    for scheduler in ["none", "mq-deadline"] {
        fs::write(format!("/sys/block/{name}/queue/scheduler"), scheduler).unwrap();
    }
    Some((disk, name))
}

fn read(name: &str, attribute: &str) -> String {
    fs::read_to_string(format!("/sys/block/{name}/queue/{attribute}")).unwrap().trim().to_owned()
}

pub(super) fn out_of_range(place: &Sandbox) {
    let Some((_disk, name)) = disk(place) else { return };
    for (tunable, value) in
        [("read_expire", "-5"), ("fifo_batch", "-1"), ("front_merges", "7"), ("fifo_batch", "99999999999")]
    {
        let before = read(&name, &format!("iosched/{tunable}"));
        let text = format!("{tunable}: {value} is out of range");
        place.iosched(&["set", &format!("{name}/iosched/{tunable}={value}")]).refused(2, &[&text]);
        assert_eq!(read(&name, &format!("iosched/{tunable}")), before);
    }
}

pub(super) fn stored_value_differs(place: &Sandbox) {
    let Some((_disk, name)) = disk(place) else { return };
    for (attribute, value) in
        [("iosched/read_expire", "125"), ("nr_requests", "1"), ("nr_requests", "3"), ("read_ahead_kb", "5")]
    {
        let answer = place.iosched(&["set", &format!("{name}/{attribute}={value}")]);
        let took = read(&name, attribute);
        if took == value {
            answer.code(0).says(&[&format!("{attribute}={value}\n")]);
        } else {
            answer.refused(1, &[&format!("the disk stored {took} instead of {value}")]);
        }
    }
    place.iosched(&["set", &format!("{name}/read_ahead_kb=128")]).code(0);
}

pub(super) fn another_notation(place: &Sandbox) {
    let Some((_disk, name)) = disk(place) else { return };
    for (assignment, took) in [
        ("scheduler=bfq", "scheduler=bfq"),
        ("scheduler=mq-deadline", "scheduler=mq-deadline"),
        ("nr_requests=064", "=64"),
    ] {
        place.iosched(&["set", &format!("{name}/{assignment}")]).code(0).says(&[took]);
    }
}

pub(super) fn earlier_changes_stay(place: &Sandbox) {
    let Some((_disk, name)) = disk(place) else { return };
    let args = [format!("{name}/nr_requests=64"), format!("{name}/size=1"), format!("{name}/nomerges=1")];
    let answer = place.iosched(&["set", &args[0], &args[1], &args[2]]);
    answer.refused(
        1,
        &["read-only", &format!("the earlier changes of this command stay in force: {name}/nr_requests=64")],
    );
    assert_eq!((read(&name, "nr_requests"), read(&name, "nomerges")), ("64".to_owned(), "0".to_owned()));
}

pub(super) fn later_value_is_wrong(place: &Sandbox) {
    let Some((_disk, name)) = disk(place) else { return };
    let before = read(&name, "nr_requests");
    let of = |assignment: &str| format!("{name}/{assignment}");
    for (first, second, expected) in [
        ("nr_requests=64", "iosched/fifo_batch=-5", "fifo_batch: -5 is out of range"),
        ("scheduler=bfq", "iosched/low_latency=2", "low_latency: 2 is out of range; it must be from 0 to 1"),
        ("nr_requests=64", "write_cache=off", "the value must be one of write back, write through"),
        ("nr_requests=64", "no_such=1", "there is no such attribute"),
    ] {
        place
            .iosched(&["set", &of(first), &of(second)])
            .refused(2, &[expected])
            .never(&["the earlier changes of this command"]);
        assert_eq!(read(&name, "nr_requests"), before, "{second}");
        assert!(read(&name, "scheduler").contains("[mq-deadline]"), "{second}");
    }
}

pub(super) fn compare_restores_the_scheduler(place: &Sandbox) {
    let Some((disk, name)) = disk(place) else { return };
    place.file("read.toml", "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 1000]\ntotal = 10\n");
    let on = disk.device.to_str().unwrap();
    for (setting, expected) in [
        ("mq-deadline:read_expire=-5", "read_expire: -5 is out of range"),
        ("mq-deadline:nr_requests=1", "nr_requests instead of 1"),
        ("bogus", "the kernel has no scheduler bogus"),
        ("bfq:no_such=1", "there is no attribute no_such"),
    ] {
        let args =
            ["compare", "--on", on, "-w", "read.toml", "--runs", "2", "--scheduler", "none", "--scheduler", setting];
        place.iosched(&args).refused(2, &[expected]);
        assert!(read(&name, "scheduler").contains("[mq-deadline]"), "{setting}: the scheduler is restored");
    }
}

pub(super) fn lists_of_schedulers(place: &Sandbox) {
    const READ: &str = "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 1000]\ntotal = 10\n";
    place.file("read.toml", READ);
    let list = ["--scheduler", "none, bfq:low_latency=0,nr_requests=64,mq-deadline", "--runs", "2"];
    let labels = ["none", "bfq:low_latency=0,nr_requests=64", "mq-deadline"];
    let common = ["compare", "-w", "read.toml", "--json"];
    let named = |args: &[&str]| {
        let answer = place.iosched(&[&common, args, &list].concat());
        answer.code(0);
        let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let settings = found["metrics"][0]["settings"].as_array().unwrap().clone();
        settings.iter().map(|setting| setting["setting"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named(&["-d", "nvme"]), labels);
    for wrong in ["", ",", "none,low_latency=0:1", "low_latency=0,none"] {
        place.iosched(&["compare", "-w", "read.toml", "--scheduler", wrong]).refused(2, &["scheduler"]);
    }
    let Some((disk, name)) = disk(place) else { return };
    let on = disk.device.to_str().unwrap();
    assert_eq!(named(&["--on", on]), labels);
    for wrong in ["", ",", "none,low_latency=0:1", "low_latency=0,none", "a b"] {
        let args = ["compare", "--on", on, "-w", "read.toml", "--runs", "2", "--scheduler", wrong];
        place.iosched(&args).refused(2, &["scheduler"]).never(&["kernel has no"]);
    }
    // Only one scheduler can be set, so every command refuses a list of schedulers with the same
    // message.
    place.iosched(&["set", &format!("{name}/scheduler=none,bfq")]).refused(2, &["none,bfq", "mq-deadline"]);
    place.iosched(&["compare", "--on", on, "-w", "read.toml", "--baseline", "none,bfq"]).refused(2, &["none,bfq"]);
    let validate = ["validate", on, "--profile", "sata-ssd", "--scheduler", "none, bogus"];
    place.iosched(&validate).refused(2, &["--scheduler bogus: "]);
    assert!(read(&name, "scheduler").contains("[mq-deadline]"), "the scheduler is restored");
}

pub(super) fn free_space(place: &Sandbox) {
    if !is_root() {
        return;
    }
    let memory = Mount::in_memory("size=32m", place.path("memory"));
    let on = memory.at.to_str().unwrap();
    for line in [
        "dd if=/dev/zero of=f bs=1M count=1000",
        "iozone -s 1024000 -i 0",
        "sysbench fileio --file-total-size=1000M --file-num=4 --file-test-mode=rndrd --time=1 run",
    ] {
        let answer = place.iosched(&["compare", "--on", on, "--workload", line]);
        answer.refused(1, &["need 1000 MiB, but only 32 MiB are free"]);
        assert_eq!(fs::read_dir(&memory.at).unwrap().count(), 0, "no file is created");
    }
    // A tmpfs is not on a block device. If the size of the workload is no problem, the message says
    // this.
    let fits = place.iosched(&["compare", "--on", on, "--workload", "dd if=/dev/zero of=f bs=1M count=8"]);
    fits.refused(2, &["is not on a block device"]);
}

pub(super) fn out_of_range_in_simulation(place: &Sandbox) {
    for (setting, expected) in [
        ("deadline:read_expire=-5", "read_expire: -5 is out of range; it must be from 0 to "),
        ("cfq:quantum=0", "quantum: 0 is out of range; it must be from 1 to "),
        ("mq-deadline:front_merges=2", "front_merges: 2 is out of range; it must be from 0 to 1"),
    ] {
        place.iosched(&["compare", "--scheduler", setting]).refused(2, &[expected]);
    }
}

/// Asserts that all commands that accept a setting refuse a wrong one with the same message.
pub(super) fn same_message_for_a_wrong_setting(place: &Sandbox) {
    place.file("read.toml", "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 1000]\ntotal = 10\n");
    let disk = disk(place);
    let on = disk.as_ref().map(|(disk, _)| disk.device.to_str().unwrap());
    for (setting, problem) in [
        ("mq-deadline:fifo_batch=-1", "mq-deadline: fifo_batch: -1 is out of range; it must be from 0 to 2147483647"),
        ("bfq:low_latency=x", "bfq: low_latency: \"x\" is not a whole number; it must be from 0 to 1"),
        ("none:nomerges=3", "none: nomerges: 3 is out of range; it must be from 0 to 2"),
        (
            "bfq:low_latency",
            "\"low_latency\" is not of the form name=value; write the setting as bfq:name=value,name=value",
        ),
        ("none:io.max=db", "none: io.max: \"db\": the name of the cgroup is missing; write CGROUP:VALUES"),
    ] {
        let text = format!("error: --scheduler {setting}: ");
        place.file(
            "plan.toml",
            format!("workloads = [\"read.toml\"]\ndevices = [\"nvme\"]\nschedulers = [\"none\", {setting:?}]\n"),
        );
        place
            .iosched(&["sweep", "plan.toml", "--output", "out"])
            .refused(2, &[&format!("schedulers {setting}: "), problem]);
        let compare = ["compare", "-w", "read.toml", "--runs", "2", "--scheduler", setting];
        let tune = ["tune", "-w", "read.toml", "-d", "nvme", "--goal", "throughput", "--scheduler", setting];
        let serve = ["serve", "memory:1M", "--scheduler", setting];
        let on_device: Vec<&str> = on.iter().flat_map(|on| compare.iter().copied().chain(["--on", on])).collect();
        for args in [&compare[..], &tune, &serve, &on_device] {
            if !args.is_empty() {
                place.iosched(args).refused(2, &[&text, problem]);
            }
        }
        // If a single attribute is set, the message is the same, with the name of the disk.
        let (Some((_, name)), Some((scheduler, value))) = (&disk, setting.split_once(':')) else { continue };
        if value.contains('=') && !value.starts_with("io.") {
            let problem = problem.strip_prefix(&format!("{scheduler}: ")).unwrap();
            let args = ["set", name, &format!("scheduler={scheduler}"), value];
            place.iosched(&args).refused(2, &[&format!("error: {name}: {problem}")]);
        }
    }
}

/// Asserts that `set` and `compare --on` print the same message for a scheduler that the kernel
/// does not have.
pub(super) fn missing_scheduler(place: &Sandbox) {
    let Some((disk, name)) = disk(place) else { return };
    place.file("read.toml", "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 1000]\ntotal = 10\n");
    let text =
        format!("{name}: the kernel has no scheduler mq-deadlin for this device; it has none, mq-deadline, kyber, bfq");
    let text = [text.as_str(), "did you mean mq-deadline?"];
    let on = disk.device.to_str().unwrap();
    place.iosched(&["compare", "-w", "read.toml", "--on", on, "--scheduler", "mq-deadlin"]).refused(2, &text);
    place.iosched(&["set", &name, "scheduler=mq-deadlin"]).refused(2, &text);
}

/// Wrong values and their messages. The messages are the same through files and through a socket.
const WRONG: &[(&str, &str, &[&str])] = &[
    ("scheduler", "bogus", &["scheduler: there is no scheduler \"bogus\"; available: noop"]),
    ("nr_requests", "0", &["nr_requests: 0 is out of range; it must be from 1 to 65536 requests"]),
    ("nr_requests", "65537", &["nr_requests: 65537 is out of range; it must be from 1 to 65536 requests"]),
    ("max_sectors_kb", "99999999", &["max_sectors_kb: 99999999 is out of range", "KiB"]),
    ("nomerges", "x", &["nomerges: \"x\" is not a whole number; it must be from 0 to 2"]),
    ("iosched/quantum", "0", &["quantum: 0 is out of range; it must be from 1 to "]),
    ("iosched/low_latency", "-1", &["low_latency: -1 is out of range; it must be from 0 to 1"]),
    ("device/queue_depth", "0", &["\"0\" is not a queue depth"]),
];

#[track_caller]
fn refused(place: &Sandbox, at: &Path, attribute: &str, value: &str, expected: &[&str]) {
    let at = at.to_str().unwrap();
    let answer = place.iosched(&["set", "--at", at, &format!("{attribute}={value}")]);
    answer.refused(2, expected).never(&["kernel refuses", "os error"]);
}

pub(super) fn wrong_values_on_a_mounted_disk(place: &Sandbox) {
    if !has_fuse() {
        return;
    }
    let mounted = Mounted::new(&place.here, "disk", "memory:16M", &["--scheduler", "cfq"]);
    fs::create_dir(mounted.attribute("groups/db")).unwrap();
    let mut byte = [0];
    let mut disk = File::open(mounted.disk()).unwrap();
    disk.read_exact(&mut byte).unwrap();
    // Only the name of the entry is kept. An open entry would keep the disk mounted.
    let client = {
        let entry = fs::read_dir(mounted.attribute("clients")).unwrap().next().unwrap().unwrap();
        entry.file_name().into_string().unwrap()
    };
    for (attribute, value, expected) in WRONG {
        refused(place, &mounted.at, attribute, value, expected);
    }
    of_group(place, &mounted.at);
    of_client(place, &mounted.at, &client);
    refused(place, &mounted.at, &format!("clients/{client}/weight"), "100", &["the client is in no group"]);
    drop(disk);
    assert_eq!(mounted.end(), 0);
}

pub(super) fn wrong_values_on_a_served_disk(place: &Sandbox) {
    let server = Server::serving(&place.here, &["memory:16M", "--scheduler", "cfq"]);
    let socket = place.path("c");
    for (attribute, value, expected) in WRONG {
        refused(place, &socket, attribute, value, expected);
    }
    refused(place, &socket, "scheduler", "deadlin", &["there is no scheduler \"deadlin\"", "did you mean deadline?"]);
    let connection = server.connect();
    let answer = place.iosched(&["get", "--at", socket.to_str().unwrap()]);
    let client =
        answer.out.lines().find_map(|line| line.strip_prefix("clients/")?.split_once('/')).expect("a client").0;
    of_client(place, &socket, client);
    refused(
        place,
        &socket,
        &format!("clients/{client}/weight"),
        "5000",
        &["\"5000\" is not a weight: for cfq, write a weight from"],
    );
    drop(connection);
    assert_eq!(server.stop(), Some(0));
}

pub(super) fn wrong_weights_of_an_export(place: &Sandbox) {
    let server = Server::serving(&place.here, &["memory:16M", "--scheduler", "cfq", "--export", "db,weight=800"]);
    of_group(place, &place.path("c"));
    assert_eq!(server.stop(), Some(0));
}

fn of_group(place: &Sandbox, at: &Path) {
    for value in ["5000", "9", "many", "-1"] {
        let text = format!("{value:?} is not a weight: for cfq, write a weight from 10 to 1000, or default");
        refused(place, at, "groups/db/weight", value, &[&text]);
    }
    place.iosched(&["set", "--at", at.to_str().unwrap(), "groups/db/weight=300"]).code(0);
}

/// Checks wrong values of a client's attributes.
fn of_client(place: &Sandbox, at: &Path, client: &str) {
    for (file, value, expected) in [
        ("ioprio", "be/9", "\"be/9\" is not an ioprio; write none, idle, rt/LEVEL or be/LEVEL"),
        ("ioprio", "best", "\"best\" is not an ioprio"),
        ("group", "a/b", "\"a/b\" is not the name of a group"),
    ] {
        refused(place, at, &format!("clients/{client}/{file}"), value, &[expected]);
    }
}

pub(super) fn unknown_names(place: &Sandbox) {
    let Some((_disk, name)) = disk(place) else { return };
    place
        .iosched(&["set", &format!("{name}/iosched/slice_idle=0")])
        .refused(2, &["there is no such attribute", "fifo_batch"]);
    place
        .iosched(&["set", "no-such-disk/scheduler=none"])
        .refused(2, &["there is no such disk or attribute; the disks are"]);
    place.iosched(&["set", &format!("{name}x"), "scheduler=none"]).refused(2, &["is neither a disk", "did you mean"]);
    place.iosched(&["set", &name, "shceduler=none"]).refused(2, &["did you mean scheduler?"]);
    place.iosched(&["set", &name]).refused(2, &["NAME=VALUE is missing after the disk"]);
    place.iosched(&["get", &format!("{name}x")]).refused(2, &["there is no such disk or attribute; did you mean"]);
    place.iosched(&["get", "live:nothing"]).refused(2, &["there is no such served disk"]);
}
