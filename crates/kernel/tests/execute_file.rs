//! An existing file as a target. The file is read like a device and not changed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use iosched_kernel::file::FileError;
use iosched_kernel::{ExecuteError, ExecuteOptions, Roots, Target, execute};
use iosched_workload::app::Spec;
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use iosched_workload::{Pattern, Task, TaskOp, TaskSet, Workload};

const MIB: u64 = 1 << 20;

fn jobs(text: &str) -> Workload {
    Workload::Jobs(Jobs::new(JobFile::parse("t.fio", text.as_bytes(), &NoVariables).unwrap()))
}

fn file(here: &Path, bytes: u64) -> PathBuf {
    let path = here.join("file");
    let mut out = File::create(&path).unwrap();
    for _ in 0..bytes / MIB {
        out.write_all(&[7; MIB as usize]).unwrap();
    }
    out.write_all(&vec![7; (bytes % MIB) as usize]).unwrap();
    out.sync_all().unwrap();
    path
}

#[test]
fn file_target_is_read_and_never_written() {
    let here = tempfile::tempdir().unwrap();
    let path = file(here.path(), 64 * MIB + 5000);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let target = match Target::file(&Roots::default(), &path) {
        Err(FileError::NotDirect { .. }) => {
            println!("skipped: direct I/O is not available in {}", here.path().display());
            return;
        }
        target => target.unwrap(),
    };
    assert!(!target.is_writable() && !target.is_directory());
    assert_eq!((target.size_bytes(), target.to_string()), (Some(64 * MIB + 4096), path.display().to_string()));
    let whole = jobs("[a]\nfilename=/dev/x\nrw=read\nbs=1m\ndirect=1\n");
    let result = execute::run(&whole, &target, &ExecuteOptions::default()).unwrap();
    assert_eq!(result.jobs[0].read.bytes, 64 * MIB, "whole blocks of 1 MiB");
    let reader = Task { pattern: Some(Pattern::Random), range: Some([0, 1000]), total: Some(50), ..Task::new(1) };
    let tasks =
        |task| Workload::Tasks(Box::new(TaskSet { name: "t".to_owned(), tasks: vec![task], ..TaskSet::default() }));
    assert_eq!(execute::run(&tasks(reader.clone()), &target, &ExecuteOptions::default()).unwrap().ios, 50);

    for text in ["[a]\nrw=randrw\nfilename=/dev/x\n", "[a]\nrw=randtrim\nsize=1m\n"] {
        let error = execute::prepare(&jobs(text), &target, None).unwrap_err();
        assert!(matches!(error, ExecuteError::OnlyRead { .. }), "{error}");
    }
    let write = tasks(Task { op: TaskOp::Write, ..reader });
    let error = execute::prepare(&write, &target, None).unwrap_err().to_string();
    assert!(
        error.contains("is a file, and iosched does not write to files that you name; give a directory"),
        "{error}"
    );
    let program = Workload::Application(Box::new(Spec::parse("fdtree -l 1").unwrap()));
    assert!(execute::prepare(&program, &target, None).is_err());
    drop(target);
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.len(), about.modified().unwrap()), (64 * MIB + 5000, modified));
    assert!(fs::read(&path).unwrap().iter().all(|&byte| byte == 7));
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1, "no other file is left");
}

#[test]
fn unsuitable_file_is_refused_with_the_reason() {
    let here = tempfile::tempdir().unwrap();
    let refused = |path: &Path, expected: &str| {
        let error = Target::file(&Roots::default(), path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&here.path().join("none"), "No such file");
    refused(here.path(), "is not a regular file");
    refused(Path::new("/dev/null"), "is not a regular file");
    refused(&file(here.path(), MIB), "has 1 MiB, which fits into a cache; give a file of at least 64 MiB");
    let empty = here.path().join("empty");
    let out = File::create(&empty).unwrap();
    out.set_len(100 * MIB).unwrap();
    let all = format!("{} of the {} bytes of this file are holes", 100 * MIB, 100 * MIB);
    refused(&empty, &all);
}

#[test]
fn preallocated_space_counts_as_holes() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("reserved");
    let mut out = File::create(&path).unwrap();
    if rustix::fs::fallocate(&out, rustix::fs::FallocateFlags::empty(), 0, 100 * MIB).is_err() {
        println!("skipped: space cannot be preallocated in {}", here.path().display());
        return;
    }
    out.write_all(&vec![7; 10 * MIB as usize]).unwrap();
    match Target::file(&Roots::default(), &path) {
        Err(FileError::Holes { hole_bytes, .. }) => assert_eq!(hole_bytes, 90 * MIB),
        // File systems in memory do not report space that is allocated but not written.
        other => println!("skipped: unwritten space is not reported in {}: {other:?}", here.path().display()),
    }
}
