//! Readers of the output of other benchmarks: fio, `IOzone`, `fs_mark`, fdtree, dd and pgbench.
//!
//! The name of a program identifies it. If its output is not recognised, there are no metrics, and
//! only its run time counts.

mod fio;
mod tables;

use std::path::Path;

use iosched_workload::app::{Better, Figure, Report};

/// A benchmark with recognised output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// fio with JSON output.
    Fio,
    /// The program `iozone`.
    Iozone,
    /// The program `fs_mark`.
    FsMark,
    /// The script `fdtree.bash`.
    Fdtree,
    /// The program dd of coreutils, uutils or busybox.
    Dd,
    /// The program pgbench.
    Pgbench,
}

impl Benchmark {
    /// Names of all benchmarks for display.
    pub const NAMES: &str = "fio, iozone, fs_mark, fdtree, dd and pgbench";

    /// Returns the benchmark that a command line runs; `None` if it runs none. Programs that only
    /// start another program, such as `env` and `sudo`, are skipped with their options.
    #[must_use]
    pub fn of(command: &[String]) -> Option<Self> {
        const RUNNERS: [&str; 9] = ["env", "sudo", "nice", "ionice", "taskset", "timeout", "stdbuf", "bash", "sh"];
        let mut runner = false;
        for word in command {
            let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word);
            match name.strip_suffix(".bash").or(name.strip_suffix(".sh")).unwrap_or(name) {
                "fio" => return Some(Self::Fio),
                "iozone" | "iozone3" => return Some(Self::Iozone),
                "fs_mark" => return Some(Self::FsMark),
                "fdtree" => return Some(Self::Fdtree),
                "dd" => return Some(Self::Dd),
                "pgbench" => return Some(Self::Pgbench),
                name if RUNNERS.contains(&name) => runner = true,
                // This word is an option, a variable or a number of the program that starts the
                // benchmark.
                _ if runner => {}
                _ => return None,
            }
        }
        None
    }

    /// Returns the option that makes the command print readable output. Only fio needs an option,
    /// for JSON.
    #[must_use]
    pub fn asks_for(self, command: &[String]) -> Option<&'static str> {
        let is_set = command.iter().any(|word| word.starts_with("--output-format") || word.starts_with("--output="));
        (self == Self::Fio && !is_set).then_some("--output-format=json")
    }

    /// Returns the metrics in the program's standard output and standard error; empty if the output
    /// has no metrics.
    #[must_use]
    pub fn figures(self, output: &str, errors: &str) -> Report {
        let figures = match self {
            Self::Fio => fio::figures(output),
            Self::Iozone => tables::iozone(output),
            Self::FsMark => tables::fs_mark(output),
            Self::Fdtree => tables::fdtree(output),
            Self::Dd => tables::dd(errors),
            Self::Pgbench => tables::pgbench(output),
        };
        Report { figures, series: Vec::new() }
    }
}

fn figure(name: &str, unit: &'static str, value: f64, better: Better) -> Figure {
    let name: String = name.trim().to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    Figure { name, unit: unit.into(), value, better }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_recognised_by_program_name() {
        let of = |line: &str| Benchmark::of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("fio job.fio"), Some(Benchmark::Fio));
        assert_eq!(of("/usr/bin/pgbench -T 60 db"), Some(Benchmark::Pgbench));
        assert_eq!(of("sudo -u postgres pgbench -T 60"), Some(Benchmark::Pgbench));
        assert_eq!(of("ionice -c 3 dd if=/dev/zero of=x"), Some(Benchmark::Dd));
        assert_eq!(of("bash ./fdtree.bash -l 3"), Some(Benchmark::Fdtree));
        assert_eq!(of("cp fio elsewhere"), None);
        assert_eq!(of("make"), None);
    }

    #[test]
    fn fio_gets_the_json_option_unless_a_format_is_set() {
        let asks = |line: &str| Benchmark::Fio.asks_for(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(asks("fio job.fio"), Some("--output-format=json"));
        assert_eq!(asks("fio --output-format=json+ job.fio"), None);
    }

    #[test]
    fn unknown_output_gives_no_metrics() {
        for benchmark in [Benchmark::Fio, Benchmark::Iozone, Benchmark::FsMark, Benchmark::Dd, Benchmark::Pgbench] {
            for text in ["", "no figures here\n", "{\"jobs\": 3}", "tps = many", "x bytes copied, y s", "Files/sec\n x"]
            {
                assert_eq!(benchmark.figures(text, text).figures, [], "{benchmark:?} {text}");
            }
        }
    }
}
