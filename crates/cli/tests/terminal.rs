//! Tests of the command on a terminal: shell completion, and the disks of this machine after the
//! comparison.

mod common;

use std::process::{Command, Stdio};

use common::{IOSCHED, available, directory, has_program, run};

/// Returns the candidates that a shell gets for the last of `words`.
fn candidates(words: &[&str]) -> Vec<String> {
    let mut command = Command::new(IOSCHED);
    command.arg("--").arg("iosched").args(words).env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
    let output = command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn schedulers_tunables_profiles_and_disks_are_completed() {
    assert_eq!(candidates(&["compare", "--scheduler", "mq"]), ["mq-deadline"]);
    let tunables = candidates(&["compare", "--scheduler", "cfq:quantum=4,slice_id"]);
    assert_eq!(tunables, ["cfq:quantum=4,slice_idle=", "cfq:quantum=4,slice_idle_us="]);
    assert_eq!(candidates(&["serve", "disk.img", "--scheduler", "anti"]), ["anticipatory"]);
    assert_eq!(candidates(&["tune", "--device", "sata-ssd-"]), ["sata-ssd-plp"]);
    let disks: Vec<_> = std::fs::read_dir("/sys/block").unwrap().map(|disk| disk.unwrap().file_name()).collect();
    let found = candidates(&["record", ""]);
    assert!(disks.iter().all(|disk| found.iter().any(|candidate| candidate.as_str() == disk)), "{found:?}");
    assert!(candidates(&["rec"]).contains(&"record".to_owned()));
}

#[test]
fn completions_print_a_script_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, out, err) = run(&["completions", shell]);
        assert!(code == 0 && out.contains("COMPLETE") && out.contains("iosched"), "{shell}: {out}{err}");
    }
    if has_program("bash") {
        let script = "source <(\"$0\" completions bash) && complete -p iosched";
        let output = Command::new("bash").args(["-c", script, IOSCHED]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("_clap_complete_iosched iosched"), "{output:?}");
    }
}

#[test]
fn iosched_on_a_terminal_prints_the_disks_of_this_machine() {
    if !available(Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok(), "script") {
        return;
    }
    let here = directory("terminal");
    let state = here.join("state");
    let mut command = Command::new("script");
    command.args(["-qec", IOSCHED, "/dev/null"]).current_dir(&here).env("XDG_STATE_HOME", &state);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let at_terminal = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success() && at_terminal.contains("Keep `mq-deadline`"), "{at_terminal}");
    let output = Command::new(IOSCHED).current_dir(&here).env("XDG_STATE_HOME", &state).output().unwrap();
    let piped = String::from_utf8_lossy(&output.stdout);
    assert!(piped.contains("Keep `mq-deadline`") && !piped.contains("here: "), "{piped}");
    // A machine may have only disks in memory.
    if let Some(found) = at_terminal.split("\nhere: ").nth(1) {
        assert!(
            found.contains("on them:   iosched doctor ")
                && found.contains("  iosched record ")
                && found.contains("iosched top"),
            "{found}"
        );
        assert!(found.lines().all(|line| line.chars().count() <= 100), "{found}");
    }
}

#[test]
fn terminal_without_man_gets_plain_text() {
    if !available(Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok(), "script") {
        return;
    }
    let here = directory("man");
    std::os::unix::fs::symlink("/bin/sh", here.join("sh")).unwrap();
    let script = Command::new("which").arg("script").output().unwrap();
    let mut command = Command::new(String::from_utf8(script.stdout).unwrap().trim());
    // The directory in PATH contains no program man.
    command
        .args(["-qec", &format!("{IOSCHED} man trace slice"), "/dev/null"])
        .env("PATH", &here)
        .env("SHELL", "/bin/sh");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success() && text.contains("Usage: iosched trace slice"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with('.')), "the output is troff: {text}");
}

#[test]
fn workloads_are_read_from_standard_input() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let of_file = |name: &str, args: &[&str]| {
        let file = std::fs::File::open(examples.join(name)).unwrap();
        let output = Command::new(IOSCHED).args(args).stdin(file).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let compare = ["compare", "--workload", "-", "--scheduler", "noop", "--runs", "1", "--records", "/dev/null"];
    for name in ["random-read.fio", "ioprio-be-idle.toml"] {
        let (code, out, err) = of_file(name, &[&compare[..], &["--run-for", "1"]].concat());
        assert!(code == Some(0) && out.contains("throughput"), "{name}: {out}{err}");
    }
    let (code, out, err) = of_file("random-read.fio", &["job", "check", "-"]);
    assert!(code == Some(0) && out.contains("standard input"), "{out}{err}");
    let (code, _, err) = of_file("random-read.fio", &[&compare[..], &["--input-format", "csv"]].concat());
    assert!(
        code == Some(1) && err.contains("standard input: line 1"),
        "with --input-format, the input is a trace: {err}"
    );
}

#[test]
fn pages_fit_a_terminal_of_80_columns() {
    if !available(Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok(), "script") {
        return;
    }
    for args in
        ["device list", "device show nvme", "scheduler list", "scheduler show cfq", "controller list", "job options"]
    {
        let mut command = Command::new("script");
        let line = format!("stty rows 24 cols 80; {IOSCHED} {args}");
        let output = command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
        let page = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        let widest = page.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(output.status.success() && page.lines().count() > 5, "{args}: {page}");
        assert!(widest.chars().count() <= 80, "{args}: {widest}");
        let (_, piped, _) = run(&args.split(' ').collect::<Vec<_>>());
        assert!(piped.lines().any(|line| line.chars().count() > 80), "{args}: output to a pipe is not wrapped");
    }
}
