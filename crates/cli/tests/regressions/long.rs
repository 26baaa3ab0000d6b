//! Cases with input that is longer than a person would write by hand.

use crate::list::{Case, Sandbox, case};

/// Longest message about one error, in characters, with its quotes, hints and lists of known names.
const MESSAGE_CHARS_MAX: usize = 4_500;

/// Asserts that the command refuses each of these texts, names the file, and quotes little of the
/// text.
#[track_caller]
fn refuses_with_short_errors(place: &Sandbox, name: &str, texts: &[&str], args: &[&str]) {
    for text in texts {
        place.file(name, text);
        refuses_with_short_error(place, name, args);
    }
}

#[track_caller]
fn refuses_with_short_error(place: &Sandbox, name: &str, args: &[&str]) {
    let answer = place.iosched(args);
    let length = answer.err.chars().count();
    let beginning: String = answer.err.chars().take(300).collect();
    assert!(answer.code == 2 || answer.code == 1, "{name}: {}: {beginning}", answer.code);
    assert!(answer.err.contains("error: ") && answer.err.contains(name), "{name}: {beginning}");
    assert!(length < MESSAGE_CHARS_MAX, "{name}: {length} characters: {beginning}");
    // A quote is shortened to 200 characters plus quotation marks. A quote that is longer by at
    // most 40 characters is not shortened.
    let longest = answer.err.split(char::is_whitespace).map(|word| word.chars().count()).max();
    assert!(longest <= Some(240), "{name}: {longest:?}: {beginning}");
    assert!(!answer.err.contains("characters) ("), "{name}: cut twice: {beginning}");
    assert!(!answer.err.contains(&"x y ".repeat(56)), "{name}: {args:?}: {beginning}");
}

pub(crate) const CASES: &[Case] = &[
    case("a TOML file with one long line gets a short error", |place| {
        let [brackets, words] = ["[".repeat(300_000), format!("a = [{}", "\"b\" ".repeat(75_000))];
        let texts = [brackets.as_str(), words.as_str()];
        refuses_with_short_errors(place, "x.toml", &texts, &["compare", "--device", "./x.toml"]);
        refuses_with_short_errors(place, "x.toml", &texts, &["compare", "--workload", "x.toml"]);
        refuses_with_short_errors(
            place,
            "x.toml",
            &texts,
            &["compare", "-w", "dd if=/dev/zero of=f count=1", "-m", "./x.toml"],
        );
        refuses_with_short_errors(place, "x.toml", &texts, &["sweep", "x.toml", "--dry-run"]);
        refuses_with_short_errors(place, "x.toml", &texts, &["serve", "memory:1M", "--exports", "x.toml"]);
    }),
    case("a trace or job file with one long line gets a short error", |place| {
        let [word, words] = ["x".repeat(300_000), "x y ".repeat(75_000)];
        let texts = [word.as_str(), words.as_str()];
        refuses_with_short_errors(place, "x.csv", &texts, &["trace", "info", "x.csv"]);
        let csv = texts.map(|text| format!("arrival_ns,pid,op,sync,sector,nr_sectors\n{text}\n"));
        refuses_with_short_errors(place, "x.csv", &csv.each_ref().map(String::as_str), &["trace", "info", "x.csv"]);
        refuses_with_short_errors(place, "x.fio", &texts, &["compare", "--workload", "x.fio"]);
        for job in [
            |text: &str| format!("[job]\nrw=read\nsize=1M\nbs={text}\n"),
            |text: &str| format!("[job]\nrw=read\nsize=1M\n{text}=1\n"),
            |text: &str| format!("[{text}]\nrw=read\n"),
            |text: &str| format!("[job]\nrw=read\nsize=1M\ninclude {text}\n"),
        ] {
            let jobs = texts.map(job);
            refuses_with_short_errors(place, "x.fio", &jobs.each_ref().map(String::as_str), &["job", "check", "x.fio"]);
        }
        let tasks = texts.map(|text| format!("\"{text}\" = 1\n"));
        refuses_with_short_errors(
            place,
            "x.toml",
            &tasks.each_ref().map(String::as_str),
            &["compare", "--workload", "x.toml"],
        );
        refuses_with_short_errors(place, "x.jsonl", &texts, &["report", "x.jsonl"]);
        refuses_with_short_errors(place, "x.txt", &texts, &["import", "io-cost", "x.txt"]);
        refuses_with_short_errors(place, "x.rec", &texts, &["validate", "recording", "x.rec"]);
        refuses_with_short_errors(place, "x.txt", &texts, &["validate", "disk", "-d", "nvme", "-t", "x.txt"]);
        for name in ["m", "d"] {
            place.file(name, "");
        }
        refuses_with_short_errors(place, "s", &texts, &["import", "disksim", "s", "m", "d"]);
    }),
    case("a long argument gets a short error", |place| {
        let [word, words] = ["x".repeat(100_000), "x y ".repeat(25_000)];
        for text in [word.as_str(), words.as_str()] {
            for args in [
                &["compare", "--scheduler", text][..],
                &["compare", "--workload", text],
                &["compare", "--device", text],
                &["compare", "--run-for", text],
                &["tune", "-d", "nvme", "-s", "cfq", "--goal", text],
                &["trace", "info", "no", "--columns", text],
                &["serve", text],
                &["get", text],
                &["device", "show", text],
                &[text],
            ] {
                refuses_with_short_error(place, "x", args);
            }
        }
    }),
    case("a job name of 66,000 characters is shown", |place| {
        let name = "j".repeat(66_000);
        place.file("x.fio", format!("[{name}]\nrw=read\nsize=64k\nbs=4k\ndirect=1\n[other]\nrw=read\nsize=64k\n"));
        let answer =
            place.iosched(&["compare", "--workload", "x.fio", "-s", "noop", "-s", "cfq", "-n", "2", "--details"]);
        answer.code(0).says(&[&name]);
    }),
];
