//! Conclusions from metrics, and cases without a conclusion.

use serde_json::Value;

use crate::common::quick_disk;
use crate::list::{Answer, Case, Sandbox, case, of_repository};

const SAMPLE: &str = "crates/trace/samples/pgbench.blktrace.0.zst";

/// Two tasks that schedulers serve differently. A run takes about one second.
const TASKS: &str = "[[tasks]]
pid = 1
name = \"scan\"
pattern = \"seq\"
total = 300

[[tasks]]
pid = 2
name = \"lookup\"
pattern = \"random\"
think_ns = [0, 3000000]
total = 120
";

/// Returns a profile of a calibration for which no model fits, with this error.
fn profile(place: &Sandbox, error_percent: u32) -> String {
    let answer = place.iosched(&["device", "show", "sata-7200", "--toml"]);
    let text = if answer.code == 0 { answer.out } else { std::fs::read_to_string(of_repository(PROFILE)).unwrap() };
    let fit = format!(
        "\n[fit]\nfits = false\nrate_error_percent = {error_percent}.0\ntail_error_percent = {error_percent}.0\n"
    );
    place.file("fitted.toml", text + &fit);
    "./fitted.toml".to_owned()
}

const PROFILE: &str = "crates/disk/profiles/sata-7200.toml";

/// Compares schedulers with [`TASKS`].
fn compare(place: &Sandbox, more: &[&str]) -> Answer {
    place.file("tasks.toml", TASKS);
    let mut args = vec!["compare", "--workload", "tasks.toml", "--records", "records.jsonl"];
    args.extend(more);
    let answer = place.iosched(&args);
    answer.code(0);
    answer
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.out).unwrap()
}

/// Returns every verdict of a document.
fn verdicts(document: &Value) -> Vec<String> {
    let figures = document["metrics"].as_array().unwrap();
    let settings = figures.iter().flat_map(|figure| figure["settings"].as_array().unwrap());
    settings.filter_map(|setting| setting["comparison"]["verdict"].as_str().map(str::to_owned)).collect()
}

pub(crate) const CASES: &[Case] = &[
    case("3 devices with 4 schedulers print less than 45 lines", |place| {
        place.file("tasks.toml", TASKS);
        let devices = ["-d", "sata-7200", "-d", "sata-ssd", "-d", "nvme"];
        let schedulers = ["-s", "none", "-s", "mq-deadline", "-s", "bfq", "-s", "kyber"];
        let common = ["compare", "-w", "tasks.toml", "-n", "3", "--records", "records.jsonl"];
        let answer = place.iosched(&[&common[..], &devices, &schedulers].concat());
        answer.code(0).says(&["best setting on each device", "doubts, the most important first:", "--details"]);
        assert!(answer.out.lines().count() < 45, "{}", answer.out);
    }),
    case("the decision comes first, and every section appears once", |place| {
        let answer = compare(place, &["-n", "3"]);
        let heads = ["- ", "tasks ", "finish ", "difference from ", "doubts, ", "records:", "next:"];
        let mut found: Vec<&str> =
            answer.out.lines().filter_map(|line| heads.into_iter().find(|head| line.starts_with(head))).collect();
        found.dedup();
        found.retain(|head| *head != "finish ");
        assert_eq!(found.len(), heads.len() - 1, "{}", answer.out);
        let is_decision =
            ["Keep ", "Set ", "Linux has none of these settings, "].iter().any(|head| answer.out.starts_with(head));
        assert!(is_decision, "{}", answer.out);
        assert_eq!(answer.out.lines().filter(|line| line.starts_with("  - ")).count(), 3, "{}", answer.out);
        answer.says(&["3 simulated runs of each setting, with 95 % confidence"]);
    }),
    case("the suggested --goal works as printed", |place| {
        let answer = compare(place, &["-n", "3"]);
        let goal =
            answer.out.replace('\n', " ").split("To let another metric decide, add --goal ").nth(1).unwrap().to_owned();
        let goal = goal.trim_start_matches('"').split('"').next().unwrap().to_owned();
        let answer = compare(place, &["-n", "3", "--goal", &goal]);
        answer.says(&[&format!("The goal decides: {goal}.")]).never(&["To let another metric decide"]);
    }),
    case("tables in text and Markdown have no significance stars", |place| {
        for format in ["text", "markdown"] {
            compare(place, &["-n", "5", "--output-format", format]).never(&[" *\n", " \\*", "outside the standard"]);
        }
    }),
    case("the answer, the records and the page name the given goal", |place| {
        let answer = compare(place, &["-s", "deadline", "-s", "cfq", "-n", "3", "--goal", "p99(lookup)"]);
        answer.says(&["p99(lookup)"]);
        let judged = answer.out.lines().find(|line| line.starts_with("The goal ")).unwrap();
        assert!(judged.starts_with("The goal decides: p99(lookup). "), "{judged}");
        let header = place.read("records.jsonl");
        assert!(header.contains(r#""goals":["p99(lookup)"]"#), "{header}");
        assert!(header.contains("--goal 'p99(lookup)'"), "{header}");
        let again = place.iosched(&["report", "records.jsonl", "-o", "page.html"]);
        again.code(0);
        assert!(place.read("page.html").contains("p99(lookup)"));
    }),
    case("an unknown goal or a goal with a limit is refused", |place| {
        place.file("tasks.toml", TASKS);
        let common = ["compare", "-w", "tasks.toml", "-n", "2", "--records", "records.jsonl", "--goal"];
        place.iosched(&[&common[..], &["p99(nobody)"]].concat()).refused(2, &["p99(nobody)", "lookup, scan"]);
        place
            .iosched(&[&common[..], &["p99(scan) <= 5 ms"]].concat())
            .refused(2, &["does not check limits", "p99(scan)"]);
        place.iosched(&[&common[..], &["speed(scan)"]].concat()).refused(2, &["speed"]);
    }),
    case("the table shows two tasks, and only the busiest of nine", |place| {
        compare(place, &["-n", "2"]).says(&["scan p99", "lookup p99", "scan IOPS"]).never(&["more tasks"]);
        let task = |pid: u32| {
            let total = 40 + pid;
            format!("[[tasks]]\npid = {pid}\nname = \"t{pid}\"\npattern = \"random\"\ntotal = {total}\n")
        };
        place.file("many.toml", (1..=9).map(task).collect::<String>());
        let common = ["compare", "-w", "many.toml", "-n", "2", "-s", "noop", "-s", "cfq", "--records", "m.jsonl"];
        let answer = place.iosched(&common);
        answer.code(0).says(&["t9 p99", "t7 p99", "and 6 more tasks: --details shows 6 tasks, --goal"]);
        answer.never(&["t6 p99"]);
        let answer = place.iosched(&[&common[..], &["--details"]].concat());
        answer.code(0).says(&["t4 p99", "and 3 more tasks: --goal"]).never(&["t3 p99"]);
    }),
    case("--details prints all doubts, otherwise three and a count", |place| {
        let all = compare(place, &["-n", "2", "--details"]);
        let doubts = all.out.lines().filter(|line| line.starts_with("  - ")).count();
        assert!(doubts > 3, "{}", all.out);
        compare(place, &["-n", "2"]).says(&[&format!("  and {} more: --details", doubts - 3)]);
    }),
    case("a setting that changes nothing is equal, not better", |place| {
        let answer = compare(place, &["-s", "noop", "-s", "noop:nr_requests=256", "-n", "3", "--json"]);
        let document = json(&answer);
        assert!(verdicts(&document).iter().all(|verdict| verdict == "equal"), "{}", answer.out);
        assert_eq!(document["answer"]["best"].as_array().unwrap().len(), 0);
    }),
    case("cannot_tell verdicts include the number of runs needed", |place| {
        // Results depend much on the initial angle of the platters, so three runs say little about
        // some metrics.
        let common = ["compare", "-s", "deadline", "-s", "cfq", "-n", "3", "--records", "records.jsonl"];
        let answer = place.iosched(&[&common[..], &["--equal-within", "0.5", "--json"]].concat());
        let document = json(&answer);
        let open = |figure: &&Value| figure["settings"][1]["comparison"]["verdict"] == "cannot_tell";
        let open: Vec<&Value> = document["metrics"].as_array().unwrap().iter().filter(open).collect();
        assert!(!open.is_empty(), "{}", answer.out);
        let needed = open.iter().filter_map(|figure| figure["settings"][1]["comparison"]["runs_needed"].as_u64());
        assert!(needed.clone().count() > 0 && needed.clone().all(|runs| runs > 3), "{}", answer.out);
        let answer = place.iosched(&[&common[..], &["--equal-within", "0.5"]].concat());
        answer.code(0).says(&["too few runs (3), ", "needs "]).never(&["cannot tell ("]);
    }),
    case("one run decides nothing", |place| {
        let answer = compare(place, &["-n", "1"]);
        answer.says(&[": one run of each setting is too few to decide.", "--runs 10"]);
        answer.never(&["better by", "worse by", "Set "]);
    }),
    case("with --equal-within 100, most verdicts are equal", |place| {
        let answer = compare(place, &["-n", "4", "--equal-within", "100", "--json"]);
        let document = json(&answer);
        assert_eq!(document["plan"]["equal_within_percent"], 100.0);
        assert!(document["plan"]["command"].as_str().unwrap().contains("--equal-within 100"), "{}", answer.out);
        let of = |verdict: &str| verdicts(&document).iter().filter(|found| *found == verdict).count();
        assert!(of("equal") > of("better") + of("worse"), "{}", answer.out);
    }),
    case("an invalid --equal-within is refused", |place| {
        for bound in ["0", "-3", "lots", "nan", "1000"] {
            place
                .iosched(&["compare", &format!("--equal-within={bound}")])
                .refused(2, &["percentage from 0.01 to 100"]);
        }
    }),
    case("no setting is best if the device was idle", |place| {
        place.file(
            "sparse.toml",
            "[[tasks]]\npid = 1\npattern = \"random\"\nthink_ns = [400000000, 500000000]\ntotal = 60\n",
        );
        let common = ["compare", "-w", "sparse.toml", "-d", "sata-ssd", "-n", "3", "--records", "records.jsonl"];
        let answer = place.iosched(&[&common[..], &["-s", "none", "-s", "bfq"]].concat());
        answer.code(0).says(&["The device was idle at least 99", "Keep `none`:"]).never(&["Set "]);
        let document = json(&place.iosched(&[&common[..], &["-s", "none", "-s", "bfq", "--json"]].concat()));
        assert!(document["answer"]["idle_percent"].as_f64().unwrap() > 99.0);
        assert_eq!(document["answer"]["best"].as_array().unwrap().len(), 0);
    }),
    case("all verdicts are cannot_tell if the model does not fit", |place| {
        let device = profile(place, 1500);
        let answer = compare(place, &["-d", &device, "-s", "noop", "-s", "cfq", "-n", "3"]);
        answer.says(&["the model may be wrong by ", "  - the model of ./fitted.toml does not fit the device", "--on"]);
        answer.never(&["Set ", "better by", "worse by"]);
        let document = json(&compare(place, &["-d", &device, "-s", "noop", "-s", "cfq", "-n", "3", "--json"]));
        assert!(verdicts(&document).iter().all(|verdict| verdict == "cannot_tell"), "{document:#}");
    }),
    case("a report from records mentions a model that does not fit", |place| {
        let device = profile(place, 400);
        compare(place, &["-d", &device, "-s", "noop", "-s", "cfq", "-n", "3"]);
        place.iosched(&["report", "records.jsonl", "-o", "page.html"]).code(0);
        let page = place.read("page.html");
        assert!(page.contains("does not fit the device") && page.contains("cannot tell"), "{page}");
    }),
    case("tune recommends no change if the model does not fit", |place| {
        place.file("tasks.toml", TASKS);
        let device = profile(place, 400);
        let args =
            ["tune", "-w", "tasks.toml", "-d", &device, "-s", "cfq,deadline", "-g", "mean(lookup)", "--budget", "40"];
        let answer = place.iosched(&args);
        answer.code(0).says(&["eep `cfq` for now: ", "does not fit the device"]).never(&["Set "]);
    }),
    case("advise reports a model that does not fit", |place| {
        let Some((_, disk)) = quick_disk("advised-disk", 64 << 20) else { return };
        place.file(
            "reads.toml",
            "end_ns = 3600000000000\n[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 100000]\niodepth = 4\n",
        );
        let device = profile(place, 400);
        let on = disk.device.to_str().unwrap();
        let common = ["advise", on, "-w", "reads.toml", "--profile", &device, "--goal", "mean(all)"];
        let few = ["--run-for", "0.2", "-n", "2", "--budget", "30", "--confirm", "1", "--details"];
        place
            .iosched(&[&common[..], &few].concat())
            .code(0)
            .says(&["does not fit the device", "no model fits the device"])
            .says(&["The runs on the device do not depend on the model"])
            .never(&["compare on the device itself"]);
    }),
    case("a profile with a negative fit error is refused", |place| {
        place.file("tasks.toml", TASKS);
        let text = std::fs::read_to_string(of_repository(PROFILE)).unwrap();
        place.file("bad.toml", text + "\n[fit]\nfits = true\nrate_error_percent = -1.0\ntail_error_percent = 0.0\n");
        place
            .iosched(&["compare", "-w", "tasks.toml", "-d", "bad.toml"])
            .refused(2, &["bad.toml", "fit.rate_error_percent"]);
    }),
    case("records without equal_within_percent and fit are read", |place| {
        compare(place, &["-n", "3"]);
        // Older versions of iosched store neither the bound nor the fit.
        let text = place.read("records.jsonl");
        assert!(!text.contains("equal_within_percent") && !text.contains("\"fit\""), "{text}");
        place.iosched(&["report", "records.jsonl", "-o", "page.html"]).code(0);
    }),
    case("the output of tune starts with the decision", |place| {
        place.file("tasks.toml", TASKS);
        let args = ["tune", "-w", "tasks.toml", "-s", "cfq", "-g", "mean(lookup)", "--budget", "40"];
        let answer = place.iosched(&args);
        answer.code(0).says(&["The goal decides: mean(lookup)."]);
        assert!(
            ["Linux has none of these settings, ", "Set `cfq", "Keep `cfq"]
                .iter()
                .any(|head| answer.out.starts_with(head)),
            "{}",
            answer.out
        );
    }),
    case("CSV and JSON have the same verdicts and intervals", |place| {
        let common = ["-s", "deadline", "-s", "cfq", "-n", "3", "--equal-within", "0.5"];
        let csv = compare(place, &[&common[..], &["--csv"]].concat());
        let document = json(&compare(place, &[&common[..], &["--json"]].concat()));
        // The intervals in CSV and JSON are also equal, and each verdict follows from its interval.
        for figure in document["metrics"].as_array().unwrap() {
            let (comparison, id) = (&figure["settings"][1]["comparison"], figure["metric"].as_str().unwrap());
            let line = csv.out.lines().find(|line| line.starts_with(&format!("{id},")) && line.contains(",cfq,"));
            let fields: Vec<&str> = line.unwrap().split(',').collect();
            let [low, high] = [0, 1].map(|end| comparison["interval"][end].as_f64().unwrap());
            assert_eq!([fields[7], fields[8]].map(|end| end.parse::<f64>().unwrap()), [low, high], "{id}");
            assert_eq!(fields[9], comparison["verdict"], "{id}");
            let holds_none = low <= 0.0 && high >= 0.0;
            assert_eq!(holds_none && fields[9] != "equal", fields[9] == "cannot_tell", "{comparison}");
        }
        let known = ["better", "worse", "more", "less", "equal", "cannot_tell"];
        for verdict in verdicts(&document) {
            assert!(known.contains(&verdict.as_str()), "{verdict}");
            assert!(csv.out.contains(&format!(",{verdict},")), "{verdict}: {}", csv.out);
        }
        compare(place, &[&common[..], &["--markdown"]].concat()).never(&["no difference", "undecided"]);
    }),
    case("the doubt about few runs precedes the doubt about p99.9", |place| {
        let sample = of_repository(SAMPLE);
        let args = [
            "compare",
            "-w",
            sample.to_str().unwrap(),
            "-s",
            "noop",
            "-s",
            "deadline",
            "-n",
            "2",
            "--details",
            "--records",
            "r.jsonl",
        ];
        let answer = place.iosched(&args);
        let doubts: Vec<&str> = answer.out.lines().filter(|line| line.starts_with("  - ")).collect();
        let place_of = |part: &str| doubts.iter().position(|line| line.contains(part));
        if let (Some(tail), Some(few)) = (place_of("sync p99.9"), place_of("there are 2 runs of each setting")) {
            assert!(few < tail, "{}", answer.out);
        }
    }),
];
