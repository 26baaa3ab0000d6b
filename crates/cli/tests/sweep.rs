//! Tests of `iosched sweep`: its output, its files and its end.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, run};

const PLAN: &str = r#"
workloads = ["a.csv", "b.csv"]
devices = ["sata-7200"]
schedulers = ["none", "mq-deadline"]
runs = 2
"#;

fn plan(here: &Path, text: &str) -> String {
    for (name, first) in [("a.csv", 0), ("b.csv", 7)] {
        let lines = (0..40).map(|line| format!("{},read,{},4096\n", line * 700, (line * 37 + first) % 90 * 8192));
        fs::write(here.join(name), format!("time_us,op,offset_bytes,length_bytes\n{}", lines.collect::<String>()))
            .unwrap();
    }
    let file = here.join("plan.toml");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[cfg(not(feature = "sweep"))]
#[test]
fn sweep_without_its_feature_names_the_build_option() {
    let here = directory("sweep");
    let (code, out, err) = run(&["sweep", &plan(&here, PLAN), "-o", &here.join("out").display().to_string()]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("build it with --features full"), "{err}");
}

#[cfg(feature = "sweep")]
mod with_sweeps {
    use super::*;

    #[test]
    fn sweep_has_dry_run_report_and_reuses_finished_comparisons() {
        let here = directory("sweep");
        let (plan, out) = (plan(&here, PLAN), here.join("out").display().to_string());
        let (code, output, err) = run(&["sweep", &plan, "--dry-run"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(output.contains("comparisons   2\n") && output.contains("runs          8,"), "{output}");
        assert!(!Path::new(&out).exists());
        let page = here.join("fleet.html");
        let (code, output, err) = run(&["sweep", &plan, "-o", &out, "--report", page.to_str().unwrap()]);
        assert_eq!((code, err.as_str()), (0, ""), "{output}");
        // The recommendation comes first.
        assert!(output.starts_with("Set ") || output.starts_with("Keep `none` on "), "{output}");
        assert!(output.contains("\n2 comparisons ran in "), "{output}");
        assert!(
            output.replace('\n', " ").contains("Each pair of a workload and a device is called a volume."),
            "{output}"
        );
        // The output names the baseline, and says whether another setting is better.
        assert!(output.lines().any(|line| line.starts_with("none ") && line.contains("the baseline; ")), "{output}");
        assert!(fs::read_to_string(page).unwrap().contains("Gain of the fleet"));
        let (code, output, _) = run(&["sweep", &plan, "-o", &out, "--json", "--metric", "sync_p99"]);
        assert_eq!(code, 0);
        let document: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!((&document["made"], &document["before"]), (&0.into(), &2.into()));
        assert_eq!(document["summary"]["metric"], "sync_p99");
        assert_eq!(document["summary"]["volumes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn sweep_runs_the_rest_and_lists_unreadable_workloads() {
        let here = directory("sweep-bad");
        let file = plan(&here, &PLAN.replace("\"b.csv\"", "\"bad.csv\", \"absent.csv\""));
        fs::write(here.join("bad.csv"), "time_us,op,offset_bytes,length_bytes\nnow,read,0,4096\n").unwrap();
        let (code, output, err) = run(&["sweep", &file, "-o", here.join("out").to_str().unwrap()]);
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("1 comparisons ran in") && output.contains("2 failed"), "{output}");
        assert!(err.contains("bad.csv") && err.contains("line 2"), "{err}");
        assert!(err.contains("absent.csv: no such file"), "{err}");
    }

    #[test]
    fn sweep_refuses_wrong_plans() {
        let here = directory("sweep-wrong");
        let file = plan(&here, PLAN);
        let out = here.join("out").display().to_string();
        for (args, expected) in [
            (vec!["sweep", &file], "--output"),
            (vec!["sweep", "absent.toml", "-o", &out], "absent.toml"),
            (vec!["sweep", &file, "-o", &out, "--metric", "sync_men"], "available: "),
            (vec!["sweep", &file, "-o", &file], "plan.toml: this is a file, but a dataset is a directory"),
            (vec!["sweep", here.to_str().unwrap(), "-o", &out], "this is a directory; give the file of the plan"),
            (
                vec!["sweep", &file, "-o", &out, "--report", here.to_str().unwrap()],
                "this is a directory; name a file in it",
            ),
        ] {
            let (code, _, err) = run(&args);
            assert!(code == 2 || code == 1, "{args:?}: {code}: {err}");
            assert!(err.contains(expected), "{args:?}: {err}");
        }
        let remote = super::plan(&here, &PLAN.replace("a.csv", "s3://b/a.csv"));
        let (_, _, err) = run(&["sweep", &remote, "-o", &out]);
        assert!(err.contains("s3://b/a.csv: only python -m iosched.sweep reads URLs"), "{err}");
    }
}
