//! Tests of applications as workloads of comparisons, and of the published experiments.

mod common;

use std::path::Path;

use common::{directory, run_in as run};

const IOZONE: &str = "iozone -s 64 -e -i 0";

#[track_caller]
fn refused(directory: &Path, args: &[&str], expected: &[&str]) {
    let (code, out, err) = run(directory, args);
    assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
    for part in expected {
        assert!(err.contains(part), "{args:?} should say {part:?}: {err}");
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "{args:?} left a file");
}

#[test]
fn application_is_compared_by_its_reported_metrics() {
    let here = directory("application");
    let common = ["compare", "-w", IOZONE, "-d", "san-lun", "-s", "deadline", "-s", "cfq-2.6.34", "-n", "2"];
    let (code, out, err) = run(&here, &common);
    assert_eq!((code, err.as_str()), (0, ""));
    for part in [IOZONE, "server-2010", "rewrite", "KB/s", "(baseline)"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let csv = run(&here, &[&common[..], &["--csv"]].concat()).1;
    let rows: Vec<&str> = csv.lines().filter(|line| line.starts_with("write,KB/s,")).collect();
    assert_eq!(rows.len(), 2, "{csv}");
    let json: serde_json::Value = serde_json::from_str(&run(&here, &[&common[..], &["--json"]].concat()).1).unwrap();
    assert_eq!(json["metrics"][0]["metric"], "write");
    assert_eq!(json["metrics"][0]["better"], "higher");
    assert_eq!(json["plan"]["machine"]["name"], "server-2010");
    // The records contain the results of the run.
    let (code, _, err) = run(&here, &["report", "last.jsonl"]);
    assert_eq!((code, err.as_str()), (0, "last.html: the report of last.jsonl\n"));
    let page = std::fs::read_to_string(here.join("last.html")).unwrap();
    assert!(page.contains("rewrite") && page.contains("server-2010"));
}

/// Compares one setting, and returns the JSON output.
fn compared(here: &Path, line: &str, more: &[&str]) -> serde_json::Value {
    let common = ["compare", "-w", line, "-d", "sata-ssd", "-s", "none", "-n", "1", "-j", "1", "--json"];
    let (code, out, err) = run(here, &[&common[..], more].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{line}");
    serde_json::from_str(&out).unwrap()
}

/// Returns the mean of a metric of the first setting.
#[track_caller]
fn mean(json: &serde_json::Value, figure: &str) -> f64 {
    let figures = json["metrics"].as_array().unwrap();
    let metric = figures.iter().find(|metric| metric["metric"] == figure);
    let names: Vec<_> = figures.iter().map(|metric| &metric["metric"]).collect();
    metric.unwrap_or_else(|| panic!("no {figure} in {names:?}"))["settings"][0]["mean"].as_f64().unwrap()
}

#[test]
fn pasted_command_lines_run_as_the_programs_do() {
    let here = directory("command-lines");
    // hdparm reads for three seconds at the rate of the device.
    let hdparm = compared(&here, "sudo hdparm -tT /dev/sda", &[]);
    assert!((2.9..3.1).contains(&mean(&hdparm, "finish")), "{hdparm}");
    assert!((450.0..600.0).contains(&mean(&hdparm, "throughput")), "{hdparm}");
    // ioping makes one request per second.
    let ioping = compared(&here, "ioping -c 10 /tmp", &[]);
    assert!((9.0..9.1).contains(&mean(&ioping, "finish")), "{ioping}");
    assert!((0.05..0.3).contains(&mean(&ioping, "sync_mean")), "{ioping}");
    // sysbench makes three reads for every two writes.
    let line = "sysbench --test=fileio --file-total-size=64M --file-num=8 --file-test-mode=rndrw --max-time=2 \
                --max-requests=0 --num-threads=4 --file-extra-flags=direct run";
    let sysbench = compared(&here, line, &[]);
    let ratio = mean(&sysbench, "reads") / mean(&sysbench, "writes");
    assert!((1.49..1.51).contains(&ratio), "{ratio}");
    assert!(mean(&sysbench, "fsyncs") > 0.0 && (1.9..2.5).contains(&mean(&sysbench, "finish")), "{sysbench}");
    let bonnie = compared(&here, "bonnie++ -d /mnt -s 64 -n 0 -f -D", &[]);
    assert!(mean(&bonnie, "block_write") > 10_000.0 && mean(&bonnie, "seeks") > 1_000.0, "{bonnie}");
    let iozone = compared(&here, "iozone -e -I -a -s 4M -r 4k -r 1024k -i 0 -i 1 -i 2", &[]);
    assert!(mean(&iozone, "read_1m") > mean(&iozone, "random_read_4k"), "{iozone}");
    // dd reads a device to its end, or until timeout stops it.
    let dd = compared(&here, "timeout 2 dd if=/dev/sda of=/dev/null bs=1M iflag=direct", &[]);
    assert!((1.9..2.1).contains(&mean(&dd, "finish")), "{dd}");
    let fio = "timeout 1 fio --name=t --rw=randread --bs=4k --direct=1 --size=1g --time_based --runtime=60";
    assert!((0.9..1.1).contains(&mean(&compared(&here, fio, &[]), "finish")));
    // The shorter of two time limits applies.
    assert!((0.4..0.6).contains(&mean(&compared(&here, fio, &["--run-for", "0.5"]), "finish")));
}

#[test]
fn command_lines_of_the_page_about_workloads_run() {
    let here = directory("command-lines-of-the-page");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/workloads.md");
    let page = std::fs::read_to_string(page).unwrap();
    let programs = page.split("Commands in front of the program").nth(1).unwrap();
    let lines: Vec<&str> = programs.lines().filter(|line| line.starts_with("iosched compare --workload \"")).collect();
    assert!(lines.len() >= 9, "{lines:?}");
    for line in lines {
        let workload = line.split('"').nth(1).unwrap();
        let json = compared(&here, workload, &[]);
        assert!(mean(&json, "throughput") > 0.0, "{line}");
    }
}

#[test]
fn sync_calls_are_metrics_of_programs_and_single_jobs() {
    let here = directory("sync-calls");
    let marks = compared(&here, "fs_mark -n 200 -s 4096", &[]);
    assert!(mean(&marks, "fsync_p99") > mean(&marks, "sync_mean"), "{marks}");
    let line = "sysbench fileio --file-total-size=16M --file-num=4 --file-test-mode=rndwr --events=200 --time=0 \
                --file-fsync-mode=fdatasync --file-fsync-all=on run";
    let goal = compared(&here, line, &["--goal", "p99(fdatasync)"]);
    let named: Vec<_> = goal["metrics"].as_array().unwrap().iter().map(|metric| &metric["metric"]).collect();
    assert!(named.iter().any(|name| *name == "p99(fdatasync)") && !named.iter().any(|name| *name == "fdatasync_p99"));
    // The rates and latencies of a job do not include the job's syncs.
    let ping = compared(&here, "ioping -D -W -c 20 /tmp", &[]);
    assert!((1.0..1.1).contains(&mean(&ping, "ioping_iops")), "{ping}");
    assert!(mean(&ping, "ioping_p99") < mean(&ping, "ioping_fdatasync_p99"), "{ping}");
    // A single job gets separate rows, even with direct I/O.
    let job = compared(&here, "fio --name=t --rw=randread --bs=4k --direct=1 --size=16m", &[]);
    assert!(mean(&job, "t_iops") > 0.0 && mean(&job, "t_p99") > 0.0);
}

#[test]
fn program_that_stays_in_the_page_cache_gets_a_remedy() {
    let here = directory("cached");
    let line = "dd if=/dev/zero of=f bs=1M count=100";
    let common = ["compare", "-w", line, "-d", "sata-7200", "-s", "none", "-s", "mq-deadline", "-n", "2", "-j", "1"];
    let (code, out, err) = run(&here, &common);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("Keep `none`. Nothing reached the disk: all data stayed in the page cache"), "{out}");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("nothing reached the disk") && words.contains("add conv=fsync or oflag=direct"), "{out}");
    // The output contains both the rate that the program reports and the rate of the device.
    let row = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {out}"));
    let rate: f64 = row("write               MB/s").split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(rate > 500.0, "{out}");
    assert_eq!(row("device throughput").split_whitespace().nth(3), Some("0"), "{out}");
    let synced = compared(&here, &format!("{line} conv=fsync"), &[]);
    assert!(mean(&synced, "throughput") > 10.0 && !synced.to_string().contains("nothing_reached"), "{synced}");
}

#[test]
fn job_that_stays_in_the_page_cache_gets_a_remedy() {
    let here = directory("cached-job");
    let json = compared(&here, "fio --name=w --rw=write --bs=4k --size=16m", &[]);
    let text = json.to_string();
    assert!(text.contains("nothing_reached") && text.contains("add end_fsync=1 or direct=1 to the job"), "{text}");
}

#[test]
fn ionice_sets_the_class_of_a_programs_tasks() {
    let here = directory("ionice-program");
    let class = |line: &str| {
        compared(&here, line, &[]);
        let records = std::fs::read_to_string(here.join("last.jsonl")).unwrap();
        records.contains("\"name\":\"dd write\",\"ioprio\":\"idle\"")
    };
    assert!(class("ionice -c3 dd if=/dev/zero of=x bs=1M count=4 conv=fsync"));
    assert!(!class("dd if=/dev/zero of=x bs=1M count=4 conv=fsync"));
}

#[test]
fn dd_reads_a_file_at_the_rate_of_the_disk() {
    let here = directory("dd-reads");
    // The rates of the profiles, MB/s. An earlier version predicted 56 and 117 MB/s for reads of 1
    // MiB.
    for (device, named) in [("sata-desktop", 100.0), ("scsi-15k", 204.0)] {
        let dd =
            ["compare", "-w", "dd if=f of=/dev/null bs=1M count=1024", "-n", "1", "-d", device, "-s", "mq-deadline"];
        let (code, out, err) = run(&here, &[&dd[..], &["--csv"]].concat());
        assert_eq!((code, err.as_str()), (0, ""));
        let row = out.lines().find_map(|line| line.strip_prefix("throughput,MB/s,mq-deadline,")).unwrap();
        let rate: f64 = row.split(',').next().unwrap().parse().unwrap();
        assert!((0.95 * named..=named).contains(&rate), "{device}: {rate} of {named} MB/s");
    }
}

#[test]
fn impossible_applications_are_refused() {
    let here = directory("application-refused");
    refused(&here, &["compare", "-w", "iozone --frob"], &["frob", "-s"]);
    refused(&here, &["compare", "-w", IOZONE, "--machine", "toaster"], &["\"toaster\"", "phenom-ii-2009"]);
    refused(&here, &["compare", "-w", "hdparm -T /dev/sda"], &["hdparm -T reads only from memory and causes no I/O"]);
    refused(&here, &["compare", "-w", "ioping -K ."], &["-K: unknown option"]);
    refused(&here, &["compare", "-w", "sysbench cpu run"], &["the test `cpu` makes no I/O"]);
    refused(&here, &["compare", "-w", "bonnie++ -d /tmp"], &["-s: the option is missing"]);
    refused(
        &here,
        &["compare", "-w", "pgbench -c 10 -T 60 bench"],
        &["pgbench: iosched does not simulate", "iosched record DISK --for 60"],
    );
    refused(&here, &["compare", "-w", "mysqld"], &["mysqld: iosched does not simulate this program"]);
    refused(&here, &["compare", "--machine", "server-2010"], &["--machine is only for applications"]);
}

#[test]
fn buffered_jobs_get_the_default_machine() {
    let here = directory("buffered");
    let job = |name: &str, more: &str| {
        let text = format!("[{name}]\nrw=write\nbs=64k\nsize=16m\nfsync=16\n{more}");
        std::fs::write(here.join(format!("{name}.fio")), text).unwrap();
    };
    job("buffered", "");
    job("direct", "direct=1\n");
    let compare = |file: &str, more: &[&str]| {
        run(&here, &[&["compare", "-w", file, "-s", "mq-deadline", "-n", "1", "--json"], more].concat())
    };
    let json = |file: &str, more: &[&str]| {
        let (code, out, err) = compare(file, more);
        assert_eq!((code, err.as_str()), (0, ""));
        serde_json::from_str::<serde_json::Value>(&out).unwrap()
    };
    assert_eq!(json("buffered.fio", &[])["plan"]["machine"]["name"], "linux-6.12");
    assert_eq!(json("buffered.fio", &["--machine", "desktop-2013"])["plan"]["machine"]["name"], "desktop-2013");
    assert!(json("direct.fio", &[])["plan"]["machine"].is_null());
    let (code, _, err) = compare("direct.fio", &["--machine", "linux-6.12"]);
    assert!(code == 2 && err.contains("fio jobs with buffered I/O"), "{err}");
    // The results of each job have the usual format.
    let (_, out, _) =
        run(&here, &["compare", "-w", "buffered.fio", "-s", "none", "-n", "1", "--output-format", "fio-json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let job = &document["jobs"][0];
    assert_eq!((&job["write"]["total_ios"], &job["sync"]["total_ios"]), (&256.into(), &16.into()));
}

#[test]
fn reproduce_gives_the_same_output_for_the_same_seed() {
    let here = directory("reproduce");
    let args = ["reproduce", "fsync-yield", "--case", "iozone 4k san", "-n", "2", "--json"];
    let (code, out, err) =
        run(&here, &[&args[..], &["--records", "r.jsonl", "--report", "r.html", "-j", "1"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(run(&here, &args).1, out);
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Write and rewrite with three settings.
    assert_eq!(lines.len(), 6, "{out}");
    for line in &lines {
        assert_eq!(line["experiment"], "fsync-yield");
        assert!(line["simulated_mean"].as_f64().unwrap() > 0.0, "{line}");
        assert!(line["published_mean"].is_null() && line["verdict_published"].is_null());
    }
    assert_eq!(lines[0]["verdict_simulated"], "baseline");
    let records = std::fs::read_to_string(here.join("r.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 1 + 2 * 3);
    assert!(records.starts_with("{\"record\":\"reproduction\""));
    let page = std::fs::read_to_string(here.join("r.html")).unwrap();
    assert!(page.contains("cfq+yield") && page.ends_with("</html>"));
}

#[test]
fn reproduce_prints_measured_beside_simulated_metrics() {
    let here = directory("reproduce-measured");
    let data = directory("reproduce-measured-data");
    let data = data.to_str().unwrap();
    let header = "experiment,figure,scheduler,job,bs,iodepth,numjobs,rw,disks,metric,value";
    let table = |metric: &str| {
        format!(
            "{header}\n\
             e,1a,none,reader,4k,1,1,randread,1,{metric},13900\n\
             e,1a,none,reader,4k,1,1,randread,1,clat_p99,100\n\
             e,11a,none,writer,4k,8,1,randwrite,2,iops,10000\n"
        )
    };
    let write = |text: &str| std::fs::write(format!("{data}/icpe24.csv"), text).unwrap();
    write(&table("iops"));
    let args = ["reproduce", "measured", "--data", data];
    let (code, out, err) = run(&here, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("\nicpe24: rates ") && out.contains(" of 2, p99 "), "{out}");
    assert!(out.contains("randwrite 4k x 8 x 1, 2 disks") && !out.contains("not simulated"), "{out}");
    let (_, out, _) = run(&here, &[&args[..], &["--json"]].concat());
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6, "{out}");
    assert!(lines[4..].iter().all(|line| line["goal"].is_string() && line["met"].is_boolean()), "{out}");
    assert_eq!((&lines[0]["measured"], &lines[0]["metric"]), (&13900.0.into(), &"IOPS".into()));
    assert!(lines[0]["simulated"].as_f64().unwrap() > 0.0 && lines[3]["rates"] == 2, "{out}");
    // A slower model gives other results.
    let (_, slower, _) = run(&here, &[&args[..], &["--json", "--device", "sata-7200"]].concat());
    assert_ne!(out, slower);

    write(&table("iops").replace("randread,1,iops", "randread,one,iops"));
    refused(&here, &args, &["icpe24.csv: line 2: disks: \"one\""]);
    refused(
        &here,
        &["reproduce", "measured", "--data", "none"],
        &["none: the directory has no measurements", "kyber-grid.csv"],
    );
    refused(&here, &["reproduce", "dd", "--data", data], &["--data", "reproduce measured"]);
    refused(&here, &["reproduce", "measured", "dd"], &["cannot run together with other experiments"]);
    refused(&here, &["reproduce", "measured", "--case", "nine"], &["\"nine\"", "icpe24"]);
}

#[test]
fn reproduce_lists_experiments_and_refuses_others() {
    let here = directory("reproduce-refused");
    let (code, out, _) = run(&here, &["reproduce", "--list"]);
    assert_eq!(code, 0);
    for part in ["quantum: ", "fdtree large_deep", "cfq-2.6.16:slice_idle=0,max_depth=64", "(baseline)", "32 writers"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    refused(&here, &["reproduce", "quantums"], &["\"quantums\"", "quantum, fsync-yield, dd, low-latency, tpcc"]);
    refused(&here, &["reproduce", "dd", "--case", "iozone"], &["\"iozone\"", "write, copy"]);
    refused(&here, &["reproduce", "dd", "--runs", "0"], &["--runs"]);
}
