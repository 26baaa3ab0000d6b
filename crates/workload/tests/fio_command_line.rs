//! A fio command line gives the same jobs as a job file with the same options.
#![allow(clippy::disallowed_methods, reason = "a test writes a job file")]

use iosched_workload::Workload;
use iosched_workload::fio::{JobFile, NoVariables};

#[track_caller]
fn same(line: &str, file: &str) {
    let Workload::Jobs(jobs) = Workload::open(line).unwrap() else { panic!("{line}: not jobs") };
    let of_file = JobFile::parse("x.fio", file.as_bytes(), &NoVariables).unwrap();
    let summary = |jobs: &JobFile| {
        let one = |job: &iosched_workload::fio::Job| {
            (job.name.clone(), job.mode, job.io_depth, format!("{:?} {:?} {:?}", job.block_size, job.size, job.files))
        };
        jobs.jobs.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(summary(jobs.file()), summary(&of_file), "{line}");
}

fn error(line: &str) -> String {
    Workload::open(line).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_command_line_is_read_like_a_job_file() {
    let one = "[t]\nrw=randread\nbs=4k\niodepth=16\nioengine=libaio\ndirect=1\nsize=512M\nruntime=60\n";
    for line in [
        "fio --name=t --rw=randread --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --size=512M --runtime=60",
        "fio --name t --rw randread --bs 4k --iodepth 16 --ioengine libaio --direct --size 512M --runtime 60",
        "sudo /usr/bin/fio -name=t -rw=randread -bs=4k -iodepth=16 -ioengine=libaio -direct=1 -size=512M -runtime=60",
        "fio --rw=randread --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --size=512M --runtime=60 --name=t",
        "fio --name=t --rw=randread --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --size=512M --runtime=60 \
         --output=/tmp/x --output-format json --eta=never --group_reporting --minimal 2>&1 | tee log",
    ] {
        same(line, one);
    }
    same(
        "fio --bs=64k --size=1M --name=a --rw=read --name=b --rw=write --bs=8k",
        "[global]\nbs=64k\nsize=1M\n[a]\nrw=read\n[b]\nrw=write\nbs=8k\n",
    );
}

#[test]
fn option_section_selects_sections_of_a_job_file() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("command-line.fio");
    std::fs::write(&path, "[global]\nsize=1M\n[x]\nrw=read\n[y]\nrw=write\n").unwrap();
    let path = path.display();
    same(&format!("fio {path}"), "[global]\nsize=1M\n[x]\nrw=read\n[y]\nrw=write\n");
    same(&format!("fio {path} --section=y --bs=8k"), "[global]\nsize=1M\nbs=8k\n[y]\nrw=write\n");
    assert!(error("fio no-such.fio").contains("no-such.fio: "));
    let missing = error(&format!("fio {path} --section=z"));
    assert!(missing.contains("--section=z: ") && missing.contains("has no such section; it has x, y"), "{missing}");
}

#[test]
fn ionice_prefix_sets_the_priority_of_jobs_and_programs() {
    let priority = |line: &str| {
        let Workload::Jobs(jobs) = Workload::open(line).unwrap() else { panic!("{line}: not jobs") };
        jobs.file().jobs.iter().map(|job| job.ioprio.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(priority("ionice -c3 fio --size=1M --name=a --name=b --prioclass=1 --prio=2"), ["idle", "rt/2"]);
    assert_eq!(priority("sudo ionice -c2 -n7 fio --size=1M --name=a"), ["be/7"]);
    assert_eq!(priority("ionice -c1 -n0 hdparm -t /dev/sda"), ["rt/0"]);
    let program = |line: &str| {
        let Workload::Application(spec) = Workload::open(line).unwrap() else { panic!("{line}: no program") };
        spec.priority().to_string()
    };
    assert_eq!(program("ionice -c3 dd if=/dev/zero of=x bs=1M count=1"), "idle");
    assert_eq!(program("nice -n 19 dd if=/dev/zero of=x bs=1M count=1"), "be/7");
}

#[test]
fn timeout_prefix_sets_the_limit_of_jobs_and_programs() {
    for line in ["timeout 5 fio --name=t --size=1G", "timeout 5 hdparm -t /dev/sda", "timeout 5 dd if=x of=y count=9"] {
        assert_eq!(Workload::open(line).unwrap().limit_ns(), Some(5_000_000_000), "{line}");
    }
    assert_eq!(Workload::open("fio --name=t --size=1G").unwrap().limit_ns(), None);
}

#[test]
fn errors_of_the_command_line_name_the_option() {
    for (line, says) in [
        ("fio --name=t --size=1M --frob=1", "fio command line: frob: no such option"),
        ("fio --name=t --size=1M --rw=sideways", "fio command line: rw=sideways"),
        ("fio --name=t --size=1M --showcmd", "--showcmd: with this option, fio does not run jobs"),
        ("fio --rw=read --size=1M", "the file has no job; "),
    ] {
        assert!(error(line).contains(says), "{line}: {}", error(line));
    }
}
