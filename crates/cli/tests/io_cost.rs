//! Tests of the parameters of io.cost: how they are printed, imported and listed.

mod common;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use common::{directory, run};

#[test]
fn printed_io_cost_model_imports_to_an_equal_profile() {
    let here = directory("io-cost");
    let (file, profile) = (here.join("sata.hwdb"), here.join("sata.toml"));
    let (file, profile) = (file.to_str().unwrap(), profile.to_str().unwrap());
    let (code, out, err) = run(&["device", "io-cost", "sata-ssd", "--model-name", "A disk"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("  block:*:name:A_disk:fwrev:*:\n    IOCOST_SOLUTIONS=measured\n"), "{out}");
    let entry = out.lines().skip_while(|line| !line.contains("block:")).take(4).collect::<Vec<_>>().join("\n");
    fs::write(file, entry).unwrap();
    let (code, _, err) = run(&["import", "io-cost", file, "--depth", "32", "-o", profile]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("A_disk: 1000 GB, depth 32, rates of io.cost.model, without latencies"), "{err}");
    let model = |device: &str| {
        let (_, out, _) = run(&["device", "io-cost", device, "--json"]);
        serde_json::from_str::<serde_json::Value>(&out).unwrap()["model"].clone()
    };
    let (given, imported) = (model("sata-ssd"), model(profile));
    for name in ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"] {
        let off = imported[name].as_f64().unwrap() / given[name].as_f64().unwrap() - 1.0;
        assert!(off.abs() < 0.05, "{name}: {imported} for {given}");
    }
    let (_, out, _) = run(&["device", "show", profile]);
    assert!(out.contains("only maximum rates were measured"), "{out}");
}

#[test]
fn import_reads_printed_models_and_refuses_profiles() {
    let here = directory("io-cost-own");
    let path = |name: &str| here.join(name).to_str().unwrap().to_owned();
    let (printed, json, profile) = (path("printed"), path("printed.json"), path("made.toml"));
    let (_, out, _) = run(&["device", "io-cost", "sata-ssd"]);
    fs::write(&printed, out).unwrap();
    fs::write(&json, run(&["device", "io-cost", "sata-ssd", "--json"]).1).unwrap();
    for from in [&printed, &json, &printed] {
        // The command may replace its own earlier output.
        let (code, _, err) = run(&["import", "io-cost", from, "-o", &profile]);
        assert!(code == 0 && err.contains("rates of io.cost.model"), "{from}: {err}");
    }
    let (code, _, err) = run(&["import", "io-cost", &profile]);
    assert_eq!(
        (code, err),
        (
            2,
            format!(
                "error: {profile}: this file is already a profile; show this profile with iosched device show \
                 {profile}\n"
            )
        )
    );
}

#[test]
fn hwdb_finds_the_printed_entry() {
    let here = directory("io-cost-hwdb");
    let root = here.to_str().unwrap();
    let (_, out, _) = run(&["device", "io-cost", "sata-ssd", "--model-name", "A disk"]);
    let lines = out.lines().skip_while(|line| !line.contains("block:")).take(4);
    let entry: String = lines.map(|line| [&line[2..], "\n"].concat()).collect();
    let place = here.join("etc/udev/hwdb.d");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("90-own.hwdb"), entry).unwrap();
    let hwdb = |args: &[&str]| Command::new("systemd-hwdb").args(["--root", root, "--strict"]).args(args).output();
    if let Err(error) = hwdb(&["update"]) {
        assert!(std::env::var_os("CI").is_none(), "systemd-hwdb: {error}");
        println!("skipped: systemd-hwdb is not installed: {error}");
        return;
    }
    let update = hwdb(&["update"]).unwrap();
    assert!(update.status.success() && update.stderr.is_empty(), "{update:?}");
    let found = hwdb(&["query", "block:devpath:name:A_disk:fwrev:1:"]).unwrap();
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    for name in ["IOCOST_SOLUTIONS=measured", "IOCOST_MODEL_MEASURED=rbps=", "IOCOST_QOS_MEASURED="] {
        assert!(found.contains(name), "{name} is not in {found}");
    }
}

#[test]
fn import_lists_devices_and_names_missing_parameters() {
    let here = directory("io-cost-several");
    let file = here.join("lines");
    let model = "rbps=3000000 rseqiops=2000 rrandiops=1000 wbps=3000000 wseqiops=2000 wrandiops=1000";
    fs::write(&file, format!("8:0 {model}\n8:16 {model}\n")).unwrap();
    let import = |more: &[&str]| run(&[&["import", "io-cost", file.to_str().unwrap()], more].concat());
    let (code, _, err) = import(&[]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("describes 2 devices; choose one with --of: 8:0, 8:16"), "{err}");
    let (code, out, _) = import(&["--of", "8:16"]);
    assert!(code == 0 && out.contains("rates_only = true"), "{out}");
    let (code, _, err) = import(&["--of", "8:32"]);
    assert!(code == 2 && err.contains("has no device \"8:32\"; its devices are 8:0, 8:16"), "{err}");
    fs::write(&file, "rbps=1").unwrap();
    let (code, _, err) = import(&[]);
    assert!(code == 2 && err.contains("line 1: the parameter rseqiops is missing"), "{err}");
}

#[test]
fn json_result_becomes_a_profile_with_the_device_name() {
    let here = directory("io-cost-json");
    let file = here.join("result.json.gz");
    let model =
        r#"{"rbps": 3e6, "rseqiops": 2000, "rrandiops": 1000, "wbps": 3e6, "wseqiops": 2000, "wrandiops": 1000}"#;
    let qos = r#"{"rpct": 95, "rlat": 400, "wpct": 95, "wlat": 900, "min": 50, "max": 150}"#;
    let write = |text: &str| {
        let mut gzip =
            Command::new("gzip").stdin(Stdio::piped()).stdout(fs::File::create(&file).unwrap()).spawn().unwrap();
        gzip.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(gzip.wait().unwrap().success());
    };
    let import = || run(&["import", "io-cost", file.to_str().unwrap()]);
    write(&format!(r#"[{{"sysinfo": {{"dev_model": "ACME 1"}}, "result": {{"model": {model}, "qos": {qos}}}}}]"#));
    let (code, out, err) = import();
    assert_eq!(code, 0, "{err}");
    assert!(
        out.starts_with("# A model of ACME 1, made from its io.cost.model by iosched ")
            && out.contains("rates_only = true"),
        "{out}"
    );
    assert!(
        out.contains("# enable=1 ctrl=user rpct=95.00 rlat=400 wpct=95.00 wlat=900 min=50.00 max=150.00\n"),
        "{out}"
    );
    write(&model.replace("wrandiops", "wrandomiops"));
    let (code, _, err) = import();
    assert!(
        code == 2 && err.contains("result.json.gz: at the top: the parameter wrandiops is missing; a model needs rbps"),
        "{err}"
    );
}

#[test]
fn families_are_listed_and_rates_only_profiles_are_noted() {
    let (code, out, _) = run(&["device", "list", "--family", "ssd"]);
    assert_eq!(code, 0);
    assert_eq!(out.lines().filter(|line| line.starts_with("samsung_ssd_970_evo_500gb ")).count(), 1, "{out}");
    let (code, _, err) = run(&["device", "list", "--family", "hdd"]);
    assert!(code == 2 && err.contains("available: ssd"), "{err}");
    let settings = ["--scheduler", "none", "--scheduler", "bfq", "--runs", "3", "--details"];
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/db-beside-backup.fio");
    // For one SSD, only rates are published. For the other SSD, latencies are also published.
    for (device, rates_only) in [("WD_BLACK_SN770_1TB", true), ("Samsung_SSD_970_EVO_500GB", false)] {
        let compare = ["compare", "--workload", workload, "--device", device];
        let (code, out, err) = run(&[&compare[..], &settings].concat());
        assert_eq!(code, 0, "{err}");
        assert_eq!(out.contains("made only from maximum rates"), rates_only, "{device}: {out}");
    }
}

/// Returns a result of resctl-bench for one disk: the coefficients, a model in force that differs,
/// latencies at three rates, and two scaled solutions.
fn result_of_resctl_bench() -> serde_json::Value {
    use serde_json::{Value, json};
    let model = |rbps: u64| {
        json!({"rbps": rbps, "rseqiops": 84_000, "rrandiops": 80_000, "wbps": 413_000_000, "wseqiops": 9_800,
               "wrandiops": 9_700})
    };
    let qos = json!({"rpct": 95.0, "rlat": 45_416, "wpct": 95.0, "wlat": 707_789, "min": 1.0, "max": 10_000.0});
    let sysinfo = json!({"bench_version": "2.2.5", "iocost": {"vrate": 100.0, "model": model(1_234_567_890), "qos": qos},
        "sysreqs_report": {"kernel_version": "5.18.0-rc6", "scr_dev_model": "ACME SSD\n1", "scr_dev_fwrev": "80003E00",
            "scr_dev_size": 256_060_514_304_u64, "scr_dev_iosched": "none", "scr_devnr": [259, 3]}});
    let run = |reads: f64, p99_ms: f64| {
        let mean = |value: f64| json!({"mean": value, "50": value});
        let latency = json!({"25": mean(150e-6), "50": mean(300e-6), "99": mean(p99_ms / 1e3)});
        let statistic = json!({"rios": mean(reads), "rbytes": mean(reads * 16_384.0), "wios": mean(900.0),
                               "wbytes": mean(9e6)});
        json!({"stor": {"iolat": [latency, latency], "all_rstat": {"io_stat": statistic}}, "vrate": mean(100.0)})
    };
    let set = |percent: f64| json!({"ovr": {"off": false, "min": percent, "max": percent}, "qos": qos});
    let solution = |rbps: u64| json!({"model": model(rbps), "qos": qos, "scale_factor": 0.5});
    let job = |kind: &str, record: Value, result: Value| json!({"spec": {"kind": kind, "id": null}, "period": [1, 2], "sysinfo": sysinfo, "record": record, "result": result});
    json!([
        job("iocost-params", json!({"devnr": "259:3", "model": model(1_899_000_000), "qos": qos}), json!(true)),
        job(
            "iocost-qos",
            json!({"base_model": model(1_900_000_000), "base_qos": qos,
                   "runs": [{"ovr": {"off": true}, "qos": null}, set(100.0), set(75.0)]}),
            json!({"runs": [run(8_000.0, 9.4), run(7_500.0, 9.0), run(7_000.0, 9.2)]})
        ),
        job(
            "iocost-tune",
            json!({"qos_props": [], "dfl_qos": true}),
            json!({"base_model": model(1_900_000_000), "base_qos": qos,
                   "solutions": {"bandwidth": solution(1_000_000_000), "naive": solution(1_900_000_000)}})
        ),
    ])
}

#[test]
fn resctl_bench_result_becomes_a_profile_with_latencies() {
    let here = directory("resctl-bench");
    let path = |name: &str| here.join(name).to_str().unwrap().to_owned();
    let (plain, packed, profile) = (path("result.json"), path("result.json.gz"), path("made.toml"));
    fs::write(&plain, result_of_resctl_bench().to_string()).unwrap();
    let gzip = Command::new("gzip").args(["--keep", "--force", &plain]).status().unwrap();
    assert!(gzip.success());
    let mut texts = Vec::new();
    for from in [&plain, &packed] {
        let (code, _, err) = run(&["import", "resctl-bench", from, "-o", &profile]);
        assert_eq!(code, 0, "{err}");
        assert!(
            err.contains("256 GB, depth 1023, rates of io.cost.model, latencies of reads during writes (3 rates"),
            "{err}"
        );
        texts.push(fs::read_to_string(&profile).unwrap().replace(".json.gz", ".json"));
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].starts_with("# A model of ACME SSD 1, made from"), "{}", texts[0]);
    assert!(texts[0].contains("# firmware 80003E00\n# kernel 5.18.0-rc6\n# scheduler none\n"), "{}", texts[0]);
    let (_, out, _) = run(&["device", "io-cost", &profile, "--json"]);
    let model: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rbps = model["model"]["rbps"].as_f64().unwrap();
    assert!((rbps / 1.9e9 - 1.0).abs() < 0.05, "the base model: {rbps}");
    let (_, out, _) = run(&["device", "show", &profile, "--assumptions"]);
    assert!(
        out.contains("settling.longest_ns: least-squares fit to the logarithms of the p99 latencies of reads"),
        "{out}"
    );
    // `import io-cost` accepts the same model, without latencies.
    let (code, _, err) = run(&["import", "io-cost", &packed, "-o", &profile]);
    assert!(code == 0 && err.contains("without latencies"), "{err}");
    // The error for a file of another kind names the command that reads it.
    fs::write(&plain, "{\"rbps\": 1}").unwrap();
    let (code, _, err) = run(&["import", "resctl-bench", &plain]);
    assert!(code == 2 && err.contains("run iosched import io-cost"), "{err}");
}
