//! Tests of the control tree of a disk: its contents and its errors.

use iosched::recording::What;
use iosched::{Flags, IoClass, IoPriority, Rate, Rates, Registry, RequestQueue, Time};
use proptest::prelude::*;

use super::tree::{Kind, kind, list, make_directory, read, remove_directory, write};
use crate::backend::BackendCard;
use crate::disk::{Action, ClientId, Identity, Operation, Settings};
use crate::{Errno, LiveDisk, Pool, Portion};

const NOW: Time = Time::ZERO;

fn disk() -> LiveDisk {
    let settings = Settings {
        recorded: true,
        name: "disk".to_owned(),
        setting: iosched::Setting::defaults("cfq"),
        registry: iosched::Registry::linux(),
        card: BackendCard {
            about: "nothing".to_owned(),
            device: iosched_disk::Card {
                capacity_sectors: (1 << 20) / iosched::SECTOR_BYTES,
                depth: 8,
                hw_queues: 1,
                rotational: true,
                write_cache: true,
                fua: false,
                max_hw_sectors_kb: 512,
            },
            block_bytes: 4096,
            depth_max: 64,
            trim_zeroes: false,
            fast_zeroes: false,
        },
        budget_bytes: 1 << 20,
    };
    LiveDisk::new(NOW, settings, Pool::default()).unwrap()
}

fn client(disk: &mut LiveDisk, name: &str, group: Option<&str>) -> ClientId {
    let ioprio = IoPriority::new(IoClass::BestEffort, 4);
    let group = group.map(str::to_owned);
    disk.connect(NOW, Identity { ioprio, group, ..Identity::new(name, 4711) }).unwrap()
}

fn value(disk: &mut LiveDisk, path: &str) -> String {
    let text = read(disk, NOW, path).unwrap();
    assert!(text.ends_with('\n'), "{path}: {text:?}");
    text.trim_end().to_owned()
}

/// Collects every path with its kind.
fn walk(disk: &LiveDisk, path: &str, found: &mut Vec<(String, Kind)>) {
    for entry in list(disk, path).unwrap() {
        let below = if path.is_empty() { entry.name } else { format!("{path}/{}", entry.name) };
        assert_eq!(kind(disk, &below).unwrap(), entry.kind);
        if entry.kind == Kind::Directory {
            walk(disk, &below, found);
        }
        found.push((below, entry.kind));
    }
}

fn everything(disk: &mut LiveDisk) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(disk, "", &mut found);
    let files = found.into_iter().filter(|(_, kind)| *kind != Kind::Directory);
    files.map(|(path, _)| (path.clone(), value(disk, &path))).collect()
}

#[test]
fn every_listed_file_can_be_read_under_every_scheduler() {
    let mut disk = disk();
    client(&mut disk, "one", Some("db"));
    client(&mut disk, "two", None);
    for registered in Registry::linux().elevators() {
        write(&mut disk, NOW, "queue/scheduler", &format!("{}\n", registered.name)).unwrap();
        assert!(value(&mut disk, "queue/scheduler").contains(&format!("[{}]", registered.name)));
        let names: Vec<_> = list(&disk, "queue/iosched").unwrap().into_iter().map(|entry| entry.name).collect();
        let tunables = (registered.tunables)().into_iter().map(|spec| spec.name);
        let mut declared: Vec<_> = tunables.chain(registered.texts.iter().map(|spec| spec.name)).collect();
        declared.sort_unstable();
        assert_eq!(names, declared);
        let files = everything(&mut disk);
        for spec in RequestQueue::attribute_specs() {
            assert!(files.iter().any(|(path, _)| *path == format!("queue/{}", spec.name)), "{}", spec.name);
        }
        for spec in (registered.tunables)().into_iter().filter(|spec| !spec.read_only) {
            let path = format!("queue/iosched/{}", spec.name);
            let present = value(&mut disk, &path);
            write(&mut disk, NOW, &path, &present).unwrap();
            assert_eq!(value(&mut disk, &path), present, "a value that was read can be written");
        }
    }
}

#[test]
fn adios_files_accept_and_show_several_numbers() {
    let mut disk = disk();
    write(&mut disk, NOW, "queue/scheduler", "adios").unwrap();
    write(&mut disk, NOW, "queue/iosched/lat_model_read", "300000 200").unwrap();
    assert_eq!(value(&mut disk, "queue/iosched/lat_model_read"), "base : 300000 ns\nslope: 200 ns/KiB");
    write(&mut disk, NOW, "queue/iosched/reset_lat_model", "1").unwrap();
    assert_eq!(value(&mut disk, "queue/iosched/lat_model_read"), "base : 0 ns\nslope: 0 ns/KiB");
    let error = write(&mut disk, NOW, "queue/iosched/lat_model_read", "300000").unwrap_err().to_string();
    assert!(error.contains("two numbers: base in ns and slope in ns/KiB"), "{error}");
    assert!(write(&mut disk, NOW, "queue/iosched/adios_version", "4").is_err());
}

#[test]
fn files_have_the_shape_and_units_of_sysfs() {
    let mut disk = disk();
    assert_eq!(value(&mut disk, "size"), "2048");
    assert_eq!(value(&mut disk, "inflight").split_whitespace().collect::<Vec<_>>(), ["0", "0"]);
    assert_eq!(value(&mut disk, "stat").split_whitespace().count(), 17);
    assert_eq!(value(&mut disk, "device/queue_depth"), "8");
    assert_eq!(value(&mut disk, "device/rescan"), "0");
    assert_eq!(value(&mut disk, "queue/physical_block_size"), "4096");
    assert_eq!(value(&mut disk, "queue/rotational"), "1");
    assert!(matches!(kind(&disk, "queue/rotational"), Ok(Kind::File { is_writable: false })));
    assert_eq!(kind(&disk, "queue/nr_requests").unwrap().mode(), 0o644);
    assert_eq!(kind(&disk, "stat").unwrap().mode(), 0o444);
    assert_eq!(kind(&disk, "").unwrap().mode(), 0o555);
}

#[test]
fn bad_writes_fail_with_the_errno_of_sysfs() {
    let mut disk = disk();
    let id = client(&mut disk, "one", None);
    client(&mut disk, "two", Some("db"));
    let before = everything(&mut disk);
    let mut refused = |path: &str, text: &str, errno: i32, expected: &str| {
        let error = write(&mut disk, NOW, path, text).unwrap_err();
        assert_eq!(error.errno(), Errno(errno), "{path}: {error}");
        assert!(error.to_string().contains(expected), "{path}: {error}");
    };
    refused("queue/scheduler", "bogus", libc::EINVAL, "there is no scheduler \"bogus\"; available: noop");
    refused("queue/scheduler", "", libc::EINVAL, "there is no scheduler");
    refused("queue/nr_requests", "0", libc::EINVAL, "queue/nr_requests: 0 is out of range; it must be from 1 to ");
    refused("queue/nr_requests", "65537", libc::EINVAL, "out of range; it must be from 1 to 65536");
    refused("queue/nr_requests", "many", libc::EINVAL, "\"many\" is not a whole number");
    refused("queue/iosched/quantum", "-1", libc::EINVAL, "queue/iosched/quantum");
    refused("queue/rotational", "0", libc::EACCES, "read-only");
    refused("stat", "0", libc::EACCES, "read-only");
    refused("device/queue_depth", "0", libc::EINVAL, "from 1 to 64");
    refused("device/queue_depth", "65", libc::EINVAL, "from 1 to 64");
    refused("device/rescan", "0", libc::EINVAL, "write 1");
    refused("device/rescan", "1", libc::EINVAL, "cannot grow; only files and block devices can");
    refused(&format!("clients/{id}/ioprio"), "be/8", libc::EINVAL, "be/LEVEL");
    refused(
        &format!("clients/{id}/weight"),
        "500",
        libc::EINVAL,
        "first write the name of a group to the file \
         `group` of the client",
    );
    refused(&format!("clients/{id}/group"), "a/b", libc::EINVAL, "not the name of a group");
    refused(&format!("clients/{id}/pid"), "1", libc::EACCES, "read-only");
    refused("clients/999/ioprio", "idle", libc::ENOENT, "available: 1, 2");
    refused("groups/db/weight", "5000", libc::EINVAL, "from 10 to 1000");
    refused("groups/db/weight", "heavy", libc::EINVAL, "from 10 to 1000, or default");
    refused("groups/other/weight", "100", libc::ENOENT, "available: db");
    refused("queue/read_expire", "1", libc::ENOENT, "nr_requests");
    refused("queue/nr_requests/x", "1", libc::ENOTDIR, "is a file");
    refused("queue", "1", libc::EISDIR, "is a directory");
    assert_eq!(read(&mut disk, NOW, "clients").unwrap_err().errno(), Errno(libc::EISDIR));
    assert_eq!(list(&disk, "stat").unwrap_err().errno(), Errno(libc::ENOTDIR));
    assert_eq!(everything(&mut disk), before);
}

#[test]
fn priority_group_and_weight_of_clients_can_be_changed() {
    let mut disk = disk();
    let one = client(&mut disk, "one\ttwo", Some("a/b"));
    let path = |file: &str| format!("clients/{one}/{file}");
    assert_eq!(value(&mut disk, &path("name")), "one?two");
    assert_eq!(value(&mut disk, &path("pid")), "4711");
    assert_eq!(value(&mut disk, &path("ioprio")), "be/4");
    write(&mut disk, NOW, &path("ioprio"), "idle\n").unwrap();
    assert_eq!(value(&mut disk, &path("ioprio")), "idle");
    assert_eq!(value(&mut disk, &path("group")), "a!b");
    write(&mut disk, NOW, &path("weight"), "700").unwrap();
    assert_eq!(value(&mut disk, "groups/a!b/weight"), "700");
    write(&mut disk, NOW, "groups/a!b/weight", "default").unwrap();
    assert_eq!(value(&mut disk, &path("weight")), "500");

    make_directory(&mut disk, "groups/db").unwrap();
    assert_eq!(make_directory(&mut disk, "groups/db").unwrap_err().errno(), Errno(libc::EEXIST));
    for wrong in ["groups", "groups/x/y", "queue/x"] {
        assert_eq!(make_directory(&mut disk, wrong).unwrap_err().errno(), Errno(libc::EPERM), "{wrong}");
    }
    for wrong in ["a\nb", "\u{7}", "a\u{2028}b", "\u{202e}a", &"x".repeat(256)] {
        let error = make_directory(&mut disk, &format!("groups/{wrong}")).unwrap_err();
        assert_eq!(error.errno(), Errno(libc::EINVAL), "{error}");
    }
    write(&mut disk, NOW, &path("group"), "db").unwrap();
    write(&mut disk, NOW, &path("weight"), "100").unwrap();
    assert_eq!(value(&mut disk, "groups/db/weight"), "100");
    write(&mut disk, NOW, &path("group"), "/").unwrap();
    assert_eq!(value(&mut disk, &path("weight")), "none");
}

#[test]
fn group_is_removed_only_without_clients_and_exports() {
    let mut disk = disk();
    let refused = |disk: &mut LiveDisk, path: &str, errno, expected: &str| {
        let error = remove_directory(disk, NOW, path).unwrap_err();
        assert!(error.errno() == Errno(errno) && error.to_string().contains(expected), "{path}: {error}");
    };
    let one = client(&mut disk, "one", None);
    let group = format!("clients/{one}/group");
    make_directory(&mut disk, "groups/made").unwrap();
    write(&mut disk, NOW, "groups/made/weight", "700").unwrap();
    write(&mut disk, NOW, &group, "made").unwrap();
    refused(&mut disk, "groups/made", libc::EBUSY, "this group still has clients (1)");
    write(&mut disk, NOW, &group, "/").unwrap();
    remove_directory(&mut disk, NOW, "groups/made").unwrap();
    refused(&mut disk, "groups/made", libc::ENOENT, "there is no such file or directory");
    // A new group of the same name starts with default values.
    make_directory(&mut disk, "groups/made").unwrap();
    assert_eq!(value(&mut disk, "groups/made/weight"), "500");
    // The control socket has no rmdir, but a file has the same effect.
    make_directory(&mut disk, "groups/other").unwrap();
    assert_eq!(value(&mut disk, "groups/other/remove"), "0");
    let error = write(&mut disk, NOW, "groups/other/remove", "yes").unwrap_err();
    assert!(error.to_string().contains("write 1 to remove the group"), "{error}");
    write(&mut disk, NOW, "groups/other/remove", "1").unwrap();
    assert_eq!(kind(&disk, "groups/other").unwrap_err().errno(), Errno(libc::ENOENT));
    let portion = Portion { weight: Some(800), ..Portion::default() };
    disk.group("db", portion).unwrap();
    assert_eq!(write(&mut disk, NOW, "groups/db/remove", "1").unwrap_err().errno(), Errno(libc::EBUSY));
    refused(&mut disk, "groups/db", libc::EBUSY, "an export declares this group");
    disk.release_group("db");
    remove_directory(&mut disk, NOW, "groups/db").unwrap();
    refused(&mut disk, "groups", libc::EPERM, "only groups can be removed");
    refused(&mut disk, "queue/scheduler", libc::ENOTDIR, "is a file");
}

#[test]
fn rates_of_a_group_are_read_and_written() {
    let mut disk = disk();
    write(&mut disk, NOW, "queue/scheduler", "mclock").unwrap();
    let rates = Rates { reservation: Some(Rate::Ios(500)), limit: None };
    disk.group("db", Portion { weight: None, rates }).unwrap();
    let read = |disk: &mut LiveDisk| ["reservation", "limit"].map(|file| value(disk, &format!("groups/db/{file}")));
    assert_eq!(read(&mut disk), ["500", "max"]);
    write(&mut disk, NOW, "groups/db/limit", "700\n").unwrap();
    let error = write(&mut disk, NOW, "groups/db/reservation", "701").unwrap_err().to_string();
    assert!(error.contains("\"701\" does not fit the limit 700 of the group"), "{error}");
    let error = write(&mut disk, NOW, "groups/db/limit", "fast").unwrap_err().to_string();
    assert!(error.contains("\"fast\" is not a rate") && error.ends_with("max means no limit"), "{error}");
    write(&mut disk, NOW, "groups/db/reservation", "20MB/s").unwrap();
    assert_eq!(read(&mut disk), ["20MB", "700"]);
    // The rates do not change while another scheduler is in force.
    write(&mut disk, NOW, "queue/scheduler", "cfq").unwrap();
    write(&mut disk, NOW, "groups/db/limit", "max").unwrap();
    write(&mut disk, NOW, "queue/scheduler", "mclock").unwrap();
    assert_eq!(read(&mut disk), ["20MB", "max"]);
    write(&mut disk, NOW, "groups/db/reservation", "0").unwrap();
    assert_eq!(read(&mut disk), ["0", "max"]);
}

#[test]
fn new_io_max_of_a_group_applies_to_waiting_requests() {
    const FILE: &str = "groups/db/io.max";
    let mut disk = disk();
    write(&mut disk, NOW, "queue/scheduler", "none").unwrap();
    let id = client(&mut disk, "one", Some("db"));
    assert_eq!(value(&mut disk, FILE), "rbps=max wbps=max riops=max wiops=max");
    write(&mut disk, NOW, FILE, "riops=10 wbps=4096\n").unwrap();
    assert_eq!(value(&mut disk, FILE), "rbps=max wbps=4096 riops=10 wiops=max");
    for (text, errno) in [("rbps=0", libc::ERANGE), ("rbps=1", libc::EINVAL), ("bps=5", libc::EINVAL)] {
        let error = write(&mut disk, NOW, FILE, text).unwrap_err();
        assert_eq!(error.errno(), Errno(errno), "{error}");
        assert!(error.to_string().starts_with(&format!("{FILE}: {text:?}: ")), "{error}");
        assert!(error.to_string().ends_with(
            "write any of rbps=N, wbps=N, riops=N and wiops=N, where N is 2 or \
             more, or max"
        ));
    }
    assert_eq!(value(&mut disk, FILE), "rbps=max wbps=4096 riops=10 wiops=max");
    for cookie in 0..8 {
        let read = Operation::new(Action::Read, cookie * 8192, 4096);
        disk.submit(NOW, id, Operation { cookie, ..read });
    }
    let run = |disk: &mut LiveDisk, now: Time| {
        let mut segments = Vec::new();
        disk.arrive(now);
        while let Some(command) = disk.next_command(now, &mut segments) {
            disk.complete(now, command.id, Ok(()));
        }
        disk.take_done().count()
    };
    let capped = run(&mut disk, NOW);
    assert!(capped < 3, "a limit of 10 IOPS let {capped} of 8 reads pass at once");
    write(&mut disk, NOW, FILE, "riops=max").unwrap();
    let mut all = capped + run(&mut disk, NOW);
    // Throttled bios continue at the next tick.
    for _ in 0..100 {
        let Some(at) = disk.next_timer().filter(|_| !disk.is_idle()) else { break };
        assert!(at.as_ns() < 20 * iosched::MILLISECOND_NS, "{at} is too late");
        disk.timer(at);
        all += run(&mut disk, at);
    }
    assert_eq!(all, 8, "no request is lost");
    assert!(disk.is_idle());
}

#[test]
fn sync_file_of_a_client_decides_which_writes_are_sync() {
    let mut disk = disk();
    let id = client(&mut disk, "one", None);
    let path = format!("clients/{id}/sync");
    let flags = |disk: &mut LiveDisk, fua: bool, sync: bool| {
        disk.take_records();
        let data = Some(disk.buffer(4096));
        disk.submit(NOW, id, Operation { fua, sync, data, ..Operation::new(Action::Write, 0, 4096) });
        let bio = disk.take_records().into_iter().find_map(|record| match record.what {
            What::Submit(bio, _) => Some(bio),
            _ => None,
        });
        bio.unwrap().flags
    };
    let (direct, stable) = (Flags::SYNC | Flags::IDLE, Flags::SYNC | Flags::FUA);
    assert_eq!(value(&mut disk, &path), "fua");
    assert_eq!(flags(&mut disk, false, false), Flags::empty());
    assert_eq!(flags(&mut disk, true, false), stable);
    assert_eq!(flags(&mut disk, false, true), direct);
    write(&mut disk, NOW, &path, "all").unwrap();
    assert_eq!((flags(&mut disk, false, false), flags(&mut disk, true, false)), (direct, direct | stable));
    let error = write(&mut disk, NOW, &path, "some").unwrap_err();
    assert!(
        error.to_string().ends_with("write fua (only writes with FUA are sync) or all (all writes are sync)"),
        "{error}"
    );
    assert_eq!(value(&mut disk, &path), "all");
}

#[test]
fn number_of_groups_is_bounded() {
    let mut disk = disk();
    let created = (0..2000).take_while(|n| make_directory(&mut disk, &format!("groups/{n}")).is_ok()).count();
    assert_eq!(created, 1024);
    let id = client(&mut disk, "one", None);
    assert!(write(&mut disk, NOW, &format!("clients/{id}/group"), "another").is_err());
}

#[test]
fn client_directory_has_statistics_until_it_disconnects() {
    let mut disk = disk();
    let id = client(&mut disk, "one", None);
    disk.submit(NOW, id, Operation::new(Action::Read, 2 << 20, 512));
    let stat = value(&mut disk, &format!("clients/{id}/stat"));
    let kinds: Vec<_> = stat.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["read", "write", "trim", "flush"]);
    assert!(stat.starts_with("read ios=0 bytes=0 errors=0 mean_us=0 p50_us=0"), "{stat}");
    disk.disconnect(NOW, id);
    assert_eq!(list(&disk, "clients").unwrap(), []);
    assert_eq!(kind(&disk, &format!("clients/{id}")).unwrap_err().errno(), Errno(libc::ENOENT));
}

proptest! {
    #[test]
    fn refused_writes_change_nothing(
        writes in prop::collection::vec((any::<prop::sample::Index>(), "(?s).{0,12}|-?[0-9]{1,22}|cfq|deadline|idle|be/[0-9]|/|default"), 1..30),
        garbage in "[a-z/.\\PC]{0,40}",
    ) {
        let mut disk = disk();
        client(&mut disk, "one", Some("db"));
        client(&mut disk, "two", None);
        for (at, text) in writes {
            let mut paths = Vec::new();
            walk(&disk, "", &mut paths);
            let (path, _) = &paths[at.index(paths.len())];
            let before = everything(&mut disk);
            if write(&mut disk, NOW, path, &text).is_err() {
                prop_assert_eq!(everything(&mut disk), before);
            }
        }
        let before = everything(&mut disk);
        let is_there = kind(&disk, &garbage).is_ok();
        let taken = write(&mut disk, NOW, &garbage, "1");
        prop_assert!(is_there || taken.is_err());
        prop_assert!(is_there || everything(&mut disk) == before);
    }
}
