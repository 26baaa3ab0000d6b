//! Tests of the parameters of io.cost: printing, import and listing.

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
    assert!(err.contains("A_disk: 1000 GB, depth 32, rates of io.cost.model, no latencies"), "{err}");
    let model = |device: &str| {
        let (_, out, _) = run(&["device", "io-cost", device, "--json"]);
        serde_json::from_str::<serde_json::Value>(&out).unwrap()["model"].clone()
    };
    let (given, made) = (model("sata-ssd"), model(profile));
    for name in ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"] {
        let off = made[name].as_f64().unwrap() / given[name].as_f64().unwrap() - 1.0;
        assert!(off.abs() < 0.05, "{name}: {made} for {given}");
    }
    let (_, out, _) = run(&["device", "show", profile]);
    assert!(out.contains("only maximum rates were measured"), "{out}");
}

#[test]
fn own_io_cost_output_is_read_and_recognised() {
    let here = directory("io-cost-own");
    let path = |name: &str| here.join(name).to_str().unwrap().to_owned();
    let (printed, json, profile) = (path("printed"), path("printed.json"), path("made.toml"));
    let (_, out, _) = run(&["device", "io-cost", "sata-ssd"]);
    fs::write(&printed, out).unwrap();
    fs::write(&json, run(&["device", "io-cost", "sata-ssd", "--json"]).1).unwrap();
    for from in [&printed, &json, &printed] {
        // The command replaces its own earlier output.
        let (code, _, err) = run(&["import", "io-cost", from, "-o", &profile]);
        assert!(code == 0 && err.contains("rates of io.cost.model"), "{from}: {err}");
    }
    let (code, _, err) = run(&["import", "io-cost", &profile]);
    assert_eq!(
        (code, err),
        (2, format!("error: {profile}: is already a profile; show it with iosched device show {profile}\n"))
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
        println!("skipped: systemd-hwdb is not here: {error}");
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
fn which_of_several_is_said_and_what_is_wrong_is_told() {
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
    assert!(code == 2 && err.contains("has no device \"8:32\"; it has 8:0, 8:16"), "{err}");
    fs::write(&file, "rbps=1").unwrap();
    let (code, _, err) = import(&[]);
    assert!(code == 2 && err.contains("line 1: rseqiops is missing"), "{err}");
}

#[test]
fn a_result_in_json_makes_a_profile_of_the_device_that_it_names() {
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
    assert!(code == 2 && err.contains("result.json.gz: at the top: wrandiops is missing: a model needs rbps"), "{err}");
}

#[test]
fn verdicts_on_family_members_name_the_family() {
    let (code, out, _) = run(&["device", "list", "--family", "ssd"]);
    assert_eq!(code, 0);
    assert_eq!(out.lines().filter(|line| line.starts_with("samsung_ssd_970_evo_500gb ")).count(), 1, "{out}");
    let (code, _, err) = run(&["device", "list", "--family", "hdd"]);
    assert!(code == 2 && err.contains("available: ssd"), "{err}");
    let settings = ["--scheduler", "none", "--scheduler", "bfq", "--runs", "3", "--details"];
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/db-beside-backup.fio");
    let compare = ["compare", "--workload", workload, "--device", "Samsung_SSD_970_EVO_500GB"];
    let (code, out, err) = run(&[&compare[..], &settings].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("made only from maximum rates"), "{out}");
}
