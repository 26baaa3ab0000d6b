//! fio's command line: options of jobs, options for fio's output, and job files.
//!
//! The syntax follows fio's HOWTO. `--name` begins a job. Options before the first job apply to all
//! jobs. A word without dashes is a job file. An option and its value can be one word or two. The
//! job options are the same as in job files.

use super::environment::Environment;
use super::error::{JobProblem, ProblemKind};
use super::options;
use super::place::{COMMAND_LINE, JobLine};
use super::source::{self, Named, Section};

/// Options with a value that affect only output or the process. They do not change the I/O.
const NO_MATTER: &[&str] = &[
    "output",
    "output-format",
    "eta",
    "eta-newline",
    "eta-interval",
    "status-interval",
    "max-jobs",
    "alloc-size",
    "terse-version",
    "debug",
    "aux-path",
    "inflate-log",
];
/// Options without a value that affect only output or the process.
const NO_MATTER_FLAGS: &[&str] =
    &["minimal", "append-terse", "bandwidth-log", "latency-log", "warnings-fatal", "readonly", "merge-blktrace-only"];
/// Options with which fio does not run the given jobs itself.
const NOT_A_RUN: &[&str] = &[
    "showcmd",
    "parse-only",
    "cmdhelp",
    "enghelp",
    "crctest",
    "cpuclock-test",
    "server",
    "client",
    "daemonize",
    "help",
    "version",
    "idle-prof",
    "trigger",
    "trigger-file",
    "trigger-timeout",
    "trigger-remote",
    "remote-config",
];

/// Parses the words into sections, as in a job file. Adds problems to `problems`.
pub(super) fn sections(
    words: &[String],
    priority: Option<(u8, u8)>,
    environment: &dyn Environment,
    problems: &mut Vec<JobProblem>,
) -> Vec<Section> {
    let (mut globals, mut files, mut jobs, mut wanted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    globals.push((1, Named::Section("global")));
    if let Some((class, level)) = priority {
        globals.push((1, Named::Option(format!("prioclass={class}"))));
        if class != 3 {
            globals.push((1, Named::Option(format!("prio={level}"))));
        }
    }
    let mut rest = words.iter().map(String::as_str).zip(1..).peekable();
    while let Some((word, number)) = rest.next() {
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            files.push((number, word));
            continue;
        };
        let (name, mut value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if NO_MATTER_FLAGS.contains(&name) {
            continue;
        }
        if NOT_A_RUN.contains(&name) {
            let place = JobLine { file: COMMAND_LINE.into(), line: number, included_at: None };
            problems.push(JobProblem::new(place, ProblemKind::NotARun { option: name.to_owned() }));
            continue;
        }
        let alone = options::alone(name);
        if value.is_none() {
            let is_value = |(next, _): &(&str, u32)| match alone {
                None => !next.starts_with("--"),
                Some(_) => *next == "0" || *next == "1",
            };
            value = rest.next_if(is_value).map(|(next, _)| next).or(alone.flatten());
        }
        let part = match (name, value) {
            (_, Some(_)) if NO_MATTER.contains(&name) => continue,
            ("section", Some(section)) => {
                wanted.push(section);
                continue;
            }
            ("name", Some(job)) => {
                jobs.push((number, Named::Section(job)));
                continue;
            }
            (_, Some(value)) => Named::Option(format!("{name}={value}")),
            (_, None) => Named::Option(name.to_owned()),
        };
        if jobs.is_empty() { &mut globals } else { &mut jobs }.push((number, part));
    }
    let files = files.into_iter().map(|(number, path)| (number, Named::File(path, &wanted)));
    let parts = globals.into_iter().chain(files).chain(jobs).collect();
    source::of_command(parts, environment, problems)
}
