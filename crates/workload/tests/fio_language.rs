//! fio's job language, one property per test.
#![allow(clippy::disallowed_methods, reason = "the test reads files that include each other")]

use std::path::PathBuf;

use crate::common::{Variables, check, error, job, jobs};
use iosched::{IoClass, IoPriority};
use iosched_workload::fio::{
    BlockSize, CheckedJobs, Client, Delay, Direction, Distribution, Files, JobError, JobFile, Mode, NoVariables,
    OpenSync, Placement, Size, SplitSize,
};

#[test]
fn global_options_apply_to_later_jobs() {
    let jobs = jobs("[global]\nsize=1m\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=4k\n");
    let sizes: Vec<_> = jobs.iter().map(|job| job.block_size.read.min_bytes()).collect();
    assert_eq!(sizes, [8192, 16384, 4096]);
}

#[test]
fn comments_may_start_anywhere_and_blanks_are_ignored() {
    let jobs = jobs("; first\n# second\n  [a b]  ; third\n\r\n size = 4m\t# fourth\r\n\tbs=8k;fifth\n");
    assert_eq!((jobs[0].name.as_str(), jobs[0].size, jobs[0].line), ("a b", Some(Size::Bytes(4 << 20)), 3));
    assert_eq!(jobs[0].block_size.write, BlockSize::Fixed(8192));
}

#[test]
fn variables_and_keywords_are_replaced() {
    let read =
        |text: &str| CheckedJobs::parse("j", text.as_bytes(), &Variables(&[("N", "4"), ("U", "k")])).unwrap().jobs;
    assert_eq!(read("[j]\nsize=${N}${N}${U}\n")[0].size, Some(Size::Bytes(44 << 10)));
    assert_eq!(read("[j]\nsize=8*$pagesize\n")[0].size, Some(Size::Bytes(32768)));
    assert_eq!(read("[j]\nsize=1g\niodepth=$ncpus*2\nioengine=libaio\n")[0].io_depth, 8);
}

#[test]
fn unset_variable_is_empty_and_errors_name_it() {
    assert_eq!(job("bs=${NOT}8k").block_size.read, BlockSize::Fixed(8192));
    let text = error("[j]\nsize=1m\nbs=${NOT}\nfilename=${EMPTY}\n");
    assert!(text.contains("job.fio:3: bs=${NOT}: NOT is not set in the environment"), "{text}");
    assert!(text.contains("job.fio:4: filename=${EMPTY}: EMPTY is not set"), "{text}");
}

#[test]
fn numbers_may_be_expressions() {
    assert_eq!(job("size=(1024*4+2)*2").size, Some(Size::Bytes(8196)));
    assert_eq!(job("bs=((1+3)*1k)").block_size.read, BlockSize::Fixed(4096));
    assert_eq!(job("runtime=(2s*30)").runtime_ns, Some(60_000_000_000));
    assert_eq!(job("kb_base=1000\nsize=(4k+4ki)").size, Some(Size::Bytes(8096)));
}

#[test]
fn kb_base_applies_to_its_section_and_later_jobs() {
    let jobs = jobs("[global]\nbs=4k\nkb_base=1000\n[a]\nsize=1mi\n[b]\nkb_base=1024\nsize=1mi\n");
    assert_eq!(jobs[0].block_size.read, BlockSize::Fixed(4000));
    assert_eq!([jobs[0].size, jobs[1].size], [Some(Size::Bytes(1 << 20)), Some(Size::Bytes(1_000_000))]);
}

#[test]
fn rw_value_sets_mode_and_placement() {
    let of = |text: &str| {
        let job = job(&format!("rw={text}"));
        (job.mode, job.placement)
    };
    let sequential = |skip_bytes| Placement::Sequential { skip_bytes };
    let random = |ios_per_offset| Placement::Random { ios_per_offset };
    for (text, expected) in [
        ("read", (Mode::Read, sequential(0))),
        ("write:112k", (Mode::Write, sequential(112 << 10))),
        ("read:-8k", (Mode::Read, sequential(-8192))),
        ("trim", (Mode::Trim, sequential(0))),
        ("readwrite", (Mode::ReadWrite, sequential(0))),
        ("randrw", (Mode::ReadWrite, random(1))),
        ("randread:8", (Mode::Read, random(8))),
        ("randwrite:0", (Mode::Write, random(1))),
        ("randtrim", (Mode::Trim, random(1))),
        ("trimwrite", (Mode::TrimWrite, sequential(0))),
        ("randtrimwrite", (Mode::TrimWrite, random(1))),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn trailing_comma_leaves_the_default_for_later_directions() {
    let of = |text: &str| {
        let sizes = job(&format!("bs={text}")).block_size;
        Direction::ALL.map(|direction| sizes.of(direction).min_bytes() >> 10)
    };
    assert_eq!(of("256k"), [256, 256, 256]);
    assert_eq!(of("8k,32k"), [8, 32, 32]);
    assert_eq!(of("8k,32k,"), [8, 32, 4]);
    assert_eq!(of(",8k"), [4, 8, 8]);
    assert_eq!(of(",8k,"), [4, 8, 4]);
    assert_eq!(of("1k,2k,3k"), [1, 2, 3]);
    let rates = job("rate=,500k").rate_bytes_per_s;
    assert_eq!((rates.read, rates.write), (None, Some(500 << 10)));
}

#[test]
fn last_of_bs_bsrange_and_bssplit_applies() {
    assert_eq!(job("bssplit=4k/50:8k/50\nbs=16k").block_size.read, BlockSize::Fixed(16384));
    assert_eq!(job("bs=16k\nbsrange=8k-4k,2k:2k").block_size.read, BlockSize::Range { min: 4096, max: 8192 });
    assert_eq!(job("bs=16k\nbsrange=8k-4k/2k:2k").block_size.write, BlockSize::Fixed(2048));
}

#[test]
fn bssplit_sizes_without_percentage_share_the_rest() {
    let of = |text: &str| -> Vec<(u64, u32)> {
        match job(&format!("bssplit={text}")).block_size.read {
            BlockSize::Split(sizes) => {
                sizes.iter().map(|SplitSize { bytes, percent }| (bytes >> 10, *percent)).collect()
            }
            other => panic!("{other:?}"),
        }
    };
    let expect = |text: &str, expected: &[(u64, u32)]| assert_eq!(of(text), expected, "{text}");
    expect("4k/10:64k/50:32k/40", &[(4, 10), (64, 50), (32, 40)]);
    expect("4k/50:1k/:32k/", &[(4, 50), (1, 25), (32, 25)]);
    expect("4k:8k:16k", &[(4, 33), (8, 33), (16, 34)]);
    // As measured with fio 3.33: the size with the largest percentage gets the rest.
    expect("8k/20:4k/50", &[(8, 20), (4, 80)]);
    assert!(error("[j]\nsize=1m\nbssplit=4k/60:8k/60\n").contains("the shares add up to 120 %"));
}

#[test]
fn later_option_overrides_mix_shares_and_direct() {
    assert_eq!(job("rw=randrw\nrwmixread=70\nrwmixwrite=20").rwmix_read_percent, 80);
    assert_eq!(job("rw=randrw\nrwmixwrite=20\nrwmixread=70").rwmix_read_percent, 70);
    assert!(job("direct=0\nbuffered=0").direct);
    assert!(!job("direct=1\nbuffered=1").direct);
    assert!(job("buffered=1\ndirect=1").direct);
}

#[test]
fn copies_are_numbered_and_only_the_first_has_stonewall() {
    let jobs =
        jobs("[a]\nsize=1m\n[b]\nsize=1m\nstonewall\nnumjobs=3\noffset_increment=1g\ndirectory=x:y\nfilename=f\n");
    let copies: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.copy, job.stonewall, job.group)).collect();
    assert_eq!(copies, [("a", 0, false, 0), ("b", 0, true, 1), ("b", 1, false, 1), ("b", 2, false, 1)]);
    let files: Vec<_> = jobs[1..].iter().map(|job| job.files.clone()).collect();
    let named = |name: &str| Files::Named(vec![name.to_owned()]);
    assert_eq!(files, [named("x/f"), named("y/f"), named("x/f")]);
}

#[test]
fn filename_options_set_named_or_default_files() {
    assert_eq!(job("").files, Files::Own(1));
    assert_eq!(job("nr_files=7").files, Files::Own(7));
    assert_eq!(job("filename=/dev/sda:/dev/sdb").files, Files::Named(vec!["/dev/sda".into(), "/dev/sdb".into()]));
    assert_eq!(job(r"filename=a\:b").files, Files::Named(vec!["a:b".into()]));
    assert_eq!(job("filename_format=f.$filenum\nnrfiles=2").files, Files::Named(vec!["f.0".into(), "f.1".into()]));
}

#[test]
fn times_have_the_unit_of_their_option() {
    let job = job(
        "runtime=2m\nramp_time=500ms\nstartdelay=1-5\nthinktime=20\nmax_latency=1s\nlatency_target=5ms\nlatency_window=2s",
    );
    assert_eq!((job.runtime_ns, job.ramp_time_ns), (Some(120_000_000_000), 500_000_000));
    assert_eq!(job.start_delay, Delay { min_ns: 1_000_000_000, max_ns: 5_000_000_000 });
    assert_eq!((job.think_time.pause_ns, job.max_latency_ns.read), (20_000, Some(1_000_000_000)));
    let target = job.latency_target.unwrap();
    assert_eq!((target.target_ns, target.window_ns, target.percentile), (5_000_000, 2_000_000_000, 100.0));
}

#[test]
fn depths_are_bounded_by_iodepth() {
    let job = job("ioengine=libaio\niodepth=16\niodepth_batch=0\niodepth_batch_complete=32\niodepth_low=99");
    assert_eq!((job.client, job.io_depth, job.batch_submit), (Client::Async, 16, 16));
    assert_eq!((job.batch_complete_min, job.batch_complete_max, job.io_depth_low), (16, 16, 16));
}

#[test]
fn prio_options_set_the_io_priority() {
    assert_eq!(job("prio=2").ioprio, IoPriority::new(IoClass::BestEffort, 2));
    assert_eq!(job("prioclass=1\nprio=5").ioprio, IoPriority::new(IoClass::RealTime, 5));
    assert_eq!(job("prioclass=3").ioprio.class(), IoClass::Idle);
    let single = job("ioengine=libaio\nrw=randrw\ncmdprio_percentage=20,5\ncmdprio=3").cmd_priority.unwrap();
    assert_eq!((single.percentage.read, single.percentage.write, single.percentage.trim), (20, 5, 0));
    assert_eq!(single.priority.read, IoPriority::new(IoClass::RealTime, 3));
    let split =
        job("ioengine=io_uring\ncmdprio_class=2\ncmdprio_bssplit=64k/25/1/1:64k/75:1024k/0,1024k/0").cmd_priority;
    let read = split.unwrap().split.read;
    let entries: Vec<_> = read.iter().map(|one| (one.bytes >> 10, one.percent, one.priority.to_string())).collect();
    assert_eq!(entries, [(64, 25, "rt/1".into()), (64, 75, "be/0".into()), (1024, 0, "be/0".into())]);
}

#[test]
fn distributions_have_parameters_within_range() {
    let of = |text: &str| job(&format!("rw=randread\nrandom_distribution={text}")).distribution;
    assert_eq!(of("zipf:1.2"), Distribution::Zipf { theta: 1.2, centre: None });
    assert_eq!(of("zipf:1.2:0.25"), Distribution::Zipf { theta: 1.2, centre: Some(0.25) });
    assert_eq!(of("pareto:0.9"), Distribution::Pareto { h: 0.9, centre: None });
    assert_eq!(of("normal:30"), Distribution::Normal { deviation_percent: 30.0, centre: None });
    let Distribution::Zoned(zones) = of("zoned:60/10:30/20:8/30:2/40") else { panic!() };
    assert_eq!((zones.read.len(), zones.write.len()), (4, 4));
    for wrong in ["zipf:1", "zipf:0", "pareto:1.2", "normal:101", "zoned:60/10:30/20", "zoned:50/50", "zipf:x", "flat"]
    {
        let text = error(&format!("[j]\nsize=1m\nrandom_distribution={wrong}\n"));
        assert!(text.contains("job.fio:3: random_distribution="), "{text}");
    }
    assert!(!job("rw=randread\nrandom_distribution=zipf:1.2").random_map);
    assert!(job("rw=randread").random_map);
}

#[test]
fn sync_options_are_read() {
    let job = job("rw=write\nsync=dsync\nfsync=32\nend_fsync=1\nsync_file_range=wait_before,write:8\nwrite_barrier=5");
    assert_eq!((job.open_sync, job.fsync_ios, job.end_fsync), (OpenSync::Dsync, 32, true));
    assert_eq!((job.sync_file_range_ios, job.barrier_ios), (8, 5));
}

#[test]
fn errors_name_file_line_and_problem() {
    for (line, expected) in [
        ("blocksizee=4k", "job.fio:3: blocksizee: no such option; did you mean blocksize?"),
        ("quux=4k", "job.fio:3: quux: no such option; `iosched job options` lists all"),
        (
            "bs=4x",
            "bs=4x: `x` is not a unit; write k, m, g, t or p; expected: bytes, 1..; up to three values: reads,writes,trims",
        ),
        ("size=1.5m", "not a whole number; fio reads it as 1"),
        ("rw=foo", "`foo` is not a pattern; expected: read, write,"),
        ("rw", "rw=: the value is missing"),
        ("iodepth=0", "0 is too small; it must be at least 1"),
        ("prio=8", "8 is too large; it must be at most 7"),
        ("direct=true", "`true` is not 1"),
        ("bs=\"4k\"", "without quotes"),
        ("bs=4k-8k", "`4k-8k` is more than one number"),
        ("ioengine=nope", "fio has no engine `nope`"),
        (
            "cmdprio_percentage=4",
            "this option is only for ioengine=libaio or io_uring or io_uring_cmd, but the job has ioengine=psync",
        ),
        (
            "rate=1m\nrate_iops=3",
            "job.fio:4: rate_iops: the option conflicts with rate; leave out one of the two options",
        ),
        ("rate=1m\nrate_min=2m", "rate_min: more than rate"),
        ("wait_for=z", "no job before [j] has the name z"),
        ("size=1k", "1024 bytes are less than one block of 4096"),
        ("offset=4z", "the value is a number of zones, but the job does not have zonemode=zbd"),
        ("numjobs=5000", "there are too many jobs, including their copies; at most 4096"),
        ("size=9999999999g", "too large"),
        ("runtime=99999999d", "too large"),
        ("[k", "[k: the line does not begin a section; write [name]"),
        ("[]", "[]: the line does not begin a section"),
        ("include nothing.fio", "include nothing.fio: "),
    ] {
        let text = error(&format!("[j]\nsize=1m\n{line}\n"));
        assert!(text.contains(expected), "{line}: {text}");
        assert!(text.starts_with("job.fio:"), "{text}");
    }
    assert!(error("rw=read\n[j]\nsize=1m\n").contains("job.fio:1: rw: this option is before the first section"));
    assert!(error("[global]\nbs=4k\n").contains("the file has no job"));
    assert!(error("[j]\nrw=read\n").contains("size: the option is missing for job [j]"));
}

#[test]
fn all_errors_are_reported_together_in_order() {
    let text = error("[global]\nbs=4x\n[a]\nnope1=1\nsize=1m\n[b]\nsize=1m\niodepth=0\n");
    let lines: Vec<_> = text.lines().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "4", "8"]);
}

#[test]
fn unmodelled_options_are_refused_with_their_line() {
    for (options, expected) in [
        ("ioengine=rbd\nrbdname=x", "job.fio:3: ioengine=rbd: not supported: the engine needs a Ceph cluster"),
        ("rw=write\nverify=crc32c", "job.fio:4: verify=crc32c: not supported"),
        ("zonemode=zbd\nzonesize=256m", "job.fio:3: zonemode=zbd: not supported"),
        ("steadystate=iops:10%", "set runtime"),
        ("filename=/dev/null", "/dev/null is not a disk"),
        ("serialize_overlap=1", "job.fio:3: serialize_overlap=1"),
        ("random_distribution=sequence:2,0,1", "read_iolog"),
    ] {
        let text = format!("[j]\nsize=1m\n{options}\n");
        let error = JobFile::parse("job.fio", text.as_bytes(), &NoVariables).unwrap_err();
        assert!(matches!(error, JobError::Unsupported(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{options}: {error}");
    }
}

#[test]
fn unmodelled_options_are_accepted_when_off() {
    for options in
        ["verify=0\nrw=write", "rw=write\nverify=md5\ndo_verify=0", "verify=md5", "zonemode=none", "atomic=0", "flow=0"]
    {
        let checked = check(&format!("[j]\nsize=1m\n{options}\n")).unwrap();
        assert!(checked.refusals.is_empty(), "{options}: {:?}", checked.refusals);
    }
    // Every job overrides the value from `[global]`, so this value has no effect.
    let checked = check("[global]\nzonemode=zbd\nsize=1m\n[j]\nzonemode=none\n").unwrap();
    assert!(checked.refusals.is_empty());
}

#[test]
fn ineffective_options_are_reported_once_with_their_line() {
    let checked = check("[global]\nsize=1m\ndirect=1\ninvalidate=1\n[a]\n[b]\niodepth=4\n").unwrap();
    let places: Vec<_> = checked.remarks.iter().map(|remark| (remark.place.line, remark.option.as_str())).collect();
    assert_eq!(places, [(4, "invalidate"), (7, "iodepth")]);
    let file = checked.into_jobs().unwrap();
    assert_eq!((file.ignored.len(), file.ignored[0].line), (2, 4));
}

#[test]
fn global_engine_options_skip_jobs_with_another_engine() {
    let jobs = jobs("[global]\nsize=1m\nioengine=libaio\ncmdprio_percentage=20\n[a]\n[b]\nioengine=psync\n");
    assert!(jobs[0].cmd_priority.is_some() && jobs[1].cmd_priority.is_none());
}

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("iosched-fio-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn included_files_are_relative_to_the_file_that_includes_them() {
    let files = [
        ("a.fio", "[j]\nsize=1m\ninclude sub/b.fio\n"),
        ("sub/b.fio", "bs=8k\ninclude c.fio\n"),
        ("sub/c.fio", "iodepth=4\nbss=3\n"),
    ];
    let folder = Folder::new("include", &files);
    let error = CheckedJobs::open(folder.0.join("a.fio"), &NoVariables).unwrap_err().to_string();
    assert!(error.contains("sub/c.fio:2 (included at "), "{error}");
    assert!(error.contains("a.fio:3): bss: no such option"), "{error}");
    std::fs::write(folder.0.join("sub/c.fio"), "iodepth=4\n").unwrap();
    let jobs = CheckedJobs::open(folder.0.join("a.fio"), &NoVariables).unwrap().jobs;
    assert_eq!((jobs[0].io_depth, jobs[0].block_size.read.clone()), (4, BlockSize::Fixed(8192)));
}

#[test]
fn recursive_includes_and_included_sections_are_refused() {
    let folder = Folder::new("loop", &[("a.fio", "[j]\nsize=1m\ninclude b.fio\n"), ("b.fio", "include b.fio\n")]);
    let error = CheckedJobs::open(folder.0.join("a.fio"), &NoVariables).unwrap_err().to_string();
    assert!(error.contains("too many nested files; at most 16"), "{error}");
    std::fs::write(folder.0.join("b.fio"), "[k]\n").unwrap();
    let error = CheckedJobs::open(folder.0.join("a.fio"), &NoVariables).unwrap_err().to_string();
    assert!(error.contains("[k]: an included file can only contain options"), "{error}");
    let missing = CheckedJobs::open(folder.0.join("none.fio"), &NoVariables).unwrap_err();
    assert!(matches!(missing, JobError::Io { .. }), "{missing}");
}
