//! Command lines as users paste them. This module extracts the words of the program. It removes the
//! syntax of the shell, and prefix commands that only start the program.
//!
//! `ionice` and `nice` set the I/O priority of the program's processes. Without `ionice`, Linux
//! derives the priority from the niceness: ioprio(7). `timeout` limits the run of every setting.
//! Every simulation starts with a cold cache, so a `sync` or a write to `drop_caches` before the
//! program has no effect.

mod shell;

use std::path::Path;

use iosched::{IoClass, IoPriority};
use iosched_trace::TraceError;

use crate::app::{Spec, command_line, programs_as_fio};
use crate::error::{WorkloadError, shortened};
use shell::{
    is_variable, plain_dashes, plain_punctuation, prompt, put_values, split, variable, without_windows_prompt,
};

/// Options of `sudo` and `numactl` whose value is the next word.
const SUDO_VALUES: [&str; 4] = ["-u", "-g", "-h", "-p"];
const NUMACTL_VALUES: [&str; 5] = ["-N", "-C", "-m", "-i", "-p"];

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pasted {
    /// The program and its arguments, without quotes.
    pub(crate) words: Vec<String>,
    /// The I/O priority from ionice or nice: the class (1 real time, 2 best effort, 3 idle) and the
    /// level.
    pub(crate) priority: Option<(u8, u8)>,
    /// Time at which `timeout` ends the program, ns.
    pub(crate) limit_ns: Option<u64>,
    /// Whether a `sync` follows the program.
    pub(crate) syncs: bool,
}

/// Returns a program's name without its folder.
pub(crate) fn base(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Returns whether iosched simulates a program.
fn is_simulated(program: &str) -> bool {
    let program = base(program);
    program == "fio" || Spec::is_command(program) || programs_as_fio().iter().any(|known| known.name == program)
}

/// Commands before or after the program whose I/O does not matter: small commands, and monitoring
/// tools.
const IGNORED_PROGRAMS: [&str; 44] = [
    "cd",
    "echo",
    "mkdir",
    "rm",
    "sleep",
    "export",
    "unset",
    "set",
    "source",
    "ulimit",
    "umask",
    "clear",
    "true",
    "printf",
    "pwd",
    "date",
    "ls",
    "df",
    "du",
    "free",
    "uname",
    "lsblk",
    "touch",
    "chmod",
    "chown",
    "mount",
    "umount",
    "modprobe",
    "sysctl",
    "systemctl",
    "apt",
    "apt-get",
    "yum",
    "dnf",
    "iostat",
    "vmstat",
    "iotop",
    "sar",
    "dstat",
    "top",
    "htop",
    "blktrace",
    "btrace",
    "truncate",
];
/// Words that begin a loop or a condition of the shell, or that repeat a command.
const CONTROL: [&str; 8] = ["for", "while", "until", "if", "repeat", "watch", "parallel", "xargs"];
/// Programs that run a command elsewhere: on another machine or in a container.
const ELSEWHERE: [&str; 10] =
    ["kubectl", "oc", "crictl", "docker", "podman", "nerdctl", "ssh", "nsenter", "chroot", "lxc"];
/// Programs that run a command in a cgroup.
const IN_CGROUP: [&str; 2] = ["systemd-run", "cgexec"];
/// Programs that a prefix command can run.
const PROGRAMS: [&str; 9] = ["fio", "dd", "sysbench", "iozone", "bonnie++", "ioping", "hdparm", "fs_mark", "bash"];
/// Options of `strace` and `perf` whose value is the next word.
const STRACE_VALUES: [&str; 12] = ["-e", "-o", "-s", "-E", "-P", "-a", "-b", "-I", "-O", "-S", "-u", "-X"];
const PERF_VALUES: [&str; 5] = ["-e", "-r", "-o", "-x", "-I"];

/// The remedy for servers, whose I/O depends on their clients.
const SERVER: &str = "record the disk of the server: iosched record DISK --for 60; or simulate a database with the \
                      workload tpcc";
/// The remedy for programs that copy files.
const COPY: &str = "dd does the same I/O: dd if=FILE of=COPY bs=128k count=8192; to read only, write of=/dev/null";
/// The remedy for other programs.
const RECORD: &str = "record the disk while the program runs: iosched record DISK --for 60; or describe the I/O of \
                      the program as a fio job";

/// Frequently requested programs that iosched does not simulate, each with a remedy.
const NOT_MODELLED: &[(&str, &str)] = &[
    (
        "pgbench",
        "while pgbench runs, record the disk of its database: iosched record DISK --for 60 -o pgbench.blktrace.0; \
         then run iosched compare --workload pgbench.blktrace.0. For the log of the database alone, use fio \
         --name=wal --rw=write --bs=8k --size=64m --overwrite=1 --fdatasync=1",
    ),
    ("pg_test_fsync", "for the same I/O, use fio --name=wal --rw=write --bs=8k --size=16m --overwrite=1 --fdatasync=1"),
    ("mysqld", SERVER),
    ("mysqlslap", SERVER),
    ("postgres", SERVER),
    ("mongod", SERVER),
    ("redis-server", SERVER),
    ("redis-benchmark", SERVER),
    ("etcd", "for the log of etcd alone, use fio --name=wal --rw=write --bs=2300 --size=22m --fdatasync=1"),
    ("cat", COPY),
    ("cp", COPY),
    ("pv", COPY),
    ("rsync", RECORD),
    ("tar", RECORD),
    ("postmark", RECORD),
    ("filebench", RECORD),
    ("vdbench", RECORD),
    ("diskspd", RECORD),
    ("db_bench", RECORD),
    ("stress-ng", RECORD),
    ("fsync-tester", RECORD),
    ("gnome-disks", RECORD),
];

/// Returns the error for a path that is not a file. If the text looks like a command line, the
/// error says that iosched does not simulate the program.
pub(crate) fn no_program(path: &Path, error: WorkloadError) -> WorkloadError {
    let text = path.to_str().unwrap_or_default().trim();
    if !matches!(error, WorkloadError::Trace(TraceError::NotFound { .. })) {
        return error;
    }
    let pasted = Pasted::read(text).unwrap_or_default();
    let program = base(pasted.words.first().map_or("", String::as_str));
    let known = NOT_MODELLED.iter().find(|(name, _)| *name == program);
    if program.is_empty() || known.is_none() && !text.contains(' ') {
        return error;
    }
    let remedy = known.map_or_else(String::new, |(_, nearest)| format!("; {nearest}"));
    WorkloadError::NoSuchProgram { program: program.to_owned(), line: shortened(text), remedy }
}

impl Pasted {
    /// Parses a command line.
    ///
    /// # Errors
    /// A quote is not closed, or a prefix command needs something that iosched does not support.
    pub(crate) fn read(text: &str) -> Result<Self, WorkloadError> {
        let wrong = |option: &str, problem: &str, remedy: &str| WorkloadError::Command {
            command: shortened(text),
            option: option.to_owned(),
            problem: problem.to_owned(),
            remedy: remedy.to_owned(),
        };
        let plain = plain_punctuation(without_windows_prompt(text));
        let mut words = split(&plain).ok_or_else(|| wrong("quotes", "a quote is not closed", "close it"))?;
        words.drain(..prompt(&words));
        words.iter_mut().for_each(plain_dashes);
        put_values(&mut words);
        without_parentheses(&mut words);
        let mut pasted = Self::default();
        let (mut prepared, mut after) = (None, None);
        let mut end = 0;
        for command in words.split(|word| word == ";" || word == "&&" || word == "&") {
            let is_beside = end > 0 && words[end - 1] == "&";
            end += command.len() + 1;
            if command.split(|word| word == "|").skip(1).any(|behind| {
                behind.iter().find(|word| !word.contains('=')).is_some_and(|word| PROGRAMS.contains(&base(word)))
            }) {
                let remedy = "give one program that reads and writes, such as dd with if= and of=";
                return Err(wrong("|", "the output of the program goes to a second program", remedy));
            }
            let (command, is_piped) = until_pipe(command);
            let mut line_options = Self::default();
            if is_cache_dropped(&command) {
                continue;
            }
            let (words, redirected) = without_redirections(command, is_piped);
            line_options.words = words;
            line_options.take_prefixes(&wrong)?;
            if line_options.words.first().is_some_and(|program| base(program) == "dd") {
                redirected.into_operands(&mut line_options.words);
            }
            if let [shell, option, line, ..] = line_options.words.as_slice()
                && ["sh", "bash"].contains(&base(shell))
                && option == "-c"
            {
                let inner = Self::read(line)?;
                line_options.words = inner.words;
                line_options.priority = inner.priority.or(line_options.priority);
                line_options.limit_ns = [inner.limit_ns, line_options.limit_ns].into_iter().flatten().min();
                pasted.syncs |= inner.syncs;
            }
            match line_options.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                [] => {}
                [program, ..] if IGNORED_PROGRAMS.contains(&base(program)) => {
                    after.get_or_insert(line_options.words);
                }
                [control, ..] if CONTROL.contains(control) => {
                    let remedy = "give only the command line inside the loop; for repetitions, use --runs";
                    return Err(wrong(control, "iosched does not run loops and conditions of the shell", remedy));
                }
                // Every simulation starts with existing files, so the preparation of sysbench
                // changes nothing.
                [sysbench, .., "prepare" | "cleanup"] if base(sysbench) == "sysbench" => {
                    prepared.get_or_insert(line_options.words);
                }
                ["wait", ..] => {}
                [program, ..] if ELSEWHERE.contains(&base(program)) => {
                    let inner = line_options.words.iter().skip(1).skip_while(|word| !PROGRAMS.contains(&base(word)));
                    let inner: Vec<&str> = inner.map(String::as_str).collect();
                    let inner = if inner.is_empty() { String::new() } else { format!(": {}", inner.join(" ")) };
                    let problem = "the program runs a command on another machine or in a container";
                    return Err(wrong(base(program), problem, &format!("give only this command{}", shortened(&inner))));
                }
                [program, ..] if IN_CGROUP.contains(&base(program)) => {
                    let remedy = "give only the command, or a fio job file with cgroup= and cgroup_weight=";
                    return Err(wrong(base(program), "iosched does not create the cgroup of this program", remedy));
                }
                [program, ..] if is_beside && !pasted.words.is_empty() => {
                    let remedy = "describe both programs in one fio job file, with a section for each program";
                    return Err(wrong(program, "the program runs at the same time as the previous program", remedy));
                }
                [sync] if *sync == "sync" => pasted.syncs |= !pasted.words.is_empty(),
                // Several copies of dd can follow each other.
                [dd, ..]
                    if *dd == "dd"
                        && pasted.words.first().is_some_and(|first| first == dd)
                        && (pasted.priority, pasted.limit_ns) == (line_options.priority, line_options.limit_ns) =>
                {
                    pasted.words.push(";".to_owned());
                    pasted.words.append(&mut line_options.words);
                }
                [program, ..] if !pasted.words.is_empty() => {
                    let first = &pasted.words[0];
                    if is_simulated(first) {
                        return Err(wrong(program, "a second program", "compare one command line at a time"));
                    }
                    // The error names this program.
                    if is_simulated(program) {
                        let remedy = format!("give only the command line of {program}");
                        return Err(wrong(first, "iosched does not simulate this program", &remedy));
                    }
                }
                _ => pasted = Self { syncs: pasted.syncs, ..line_options },
            }
        }
        if let Some(words) = prepared.or(after).filter(|_| pasted.words.is_empty()) {
            pasted.words = words;
        }
        if let Some(name) = pasted.words.iter().find_map(|word| variable(word)) {
            let remedy = format!(
                "write the value instead of the variable, or put `{name}=VALUE;` in front of the \
                 command line"
            );
            return Err(wrong(&format!("${name}"), "iosched does not know the value of this shell variable", &remedy));
        }
        if pasted.syncs && pasted.words.first().is_some_and(|program| program == "dd") {
            return Err(wrong(
                "sync",
                "dd ends before the command sync starts, so the time of dd does not include the sync",
                "add conv=fsync, so that dd waits for its data",
            ));
        }
        Ok(pasted)
    }

    /// Returns the I/O priority of the program's processes.
    pub(crate) fn ioprio(&self) -> IoPriority {
        let class = |class| match class {
            1 => IoClass::RealTime,
            3 => IoClass::Idle,
            _ => IoClass::BestEffort,
        };
        self.priority.map_or_else(IoPriority::default, |(number, level)| IoPriority::new(class(number), level))
    }

    /// Returns the command line of the program alone. Returns `text` itself if nothing was removed.
    pub(crate) fn line(&self, text: &str) -> String {
        let plain = text.replace("&&", ";").replace(';', " ; ");
        if plain.split_whitespace().eq(self.words.iter().map(String::as_str)) {
            return text.to_owned();
        }
        let mut words = self.words.clone();
        words.iter_mut().take(1).for_each(|program| *program = base(program).to_owned());
        words.join(" ")
    }

    /// Removes prefix commands that only start another command.
    fn take_prefixes(&mut self, wrong: &impl Fn(&str, &str, &str) -> WorkloadError) -> Result<(), WorkloadError> {
        let mut nice: i32 = 0;
        // I/O class that Linux derives from real-time and idle CPU scheduling if there is no
        // ionice.
        let mut class_of_cpu = None;
        while let Some(first) = self.words.first().cloned() {
            let rest = &self.words[1..];
            let taken = match base(&first) {
                "sudo" => options(rest, &SUDO_VALUES),
                "doas" => options(rest, &["-u", "-C"]),
                "time" | "nohup" | "exec" | "setsid" => options(rest, &[]),
                "strace" => options(rest, &STRACE_VALUES),
                "perf" => 1 + options(rest.get(1..).unwrap_or(&[]), &PERF_VALUES),
                "chrt" => {
                    let options = options(rest, &[]);
                    let has = |letter: char, long: &str| {
                        rest[..options].iter().any(|word| {
                            word == long || !word.starts_with("--") && word.starts_with('-') && word.contains(letter)
                        })
                    };
                    class_of_cpu = match () {
                        () if has('i', "--idle") => Some(3),
                        () if has('o', "--other") || has('b', "--batch") => None,
                        () => Some(1),
                    };
                    options + 1
                }
                "stdbuf" => options(rest, &["-i", "-o", "-e"]),
                "numactl" => options(rest, &NUMACTL_VALUES),
                "env" => options(rest, &["-u"]),
                "taskset" => {
                    let options = options(rest, &["-c", "--cpu-list"]);
                    let has_list = rest[..options].iter().any(|word| word.contains('c'));
                    options + usize::from(!has_list)
                }
                "nice" => {
                    let taken = options(rest, &["-n", "--adjustment"]);
                    let adjustment = value(&rest[..taken], 'n', "adjustment")
                        .map_or(Some(10), |value| value.parse::<i32>().ok())
                        .ok_or_else(|| {
                            wrong("nice", "the adjustment (-n) of nice is not a whole number", "write nice -n 10")
                        })?;
                    nice = nice.saturating_add(adjustment);
                    taken
                }
                "ionice" => {
                    let taken = options(rest, &["-c", "-n", "--class", "--classdata"]);
                    self.priority = priority(&rest[..taken]).ok_or_else(|| {
                        wrong(
                            "ionice",
                            "ionice has no such class or level",
                            "give -c 1, 2, 3 or idle, and -n from 0 to 7",
                        )
                    })?;
                    taken
                }
                "timeout" => {
                    let options = options(rest, &["-s", "-k", "--signal", "--kill-after"]);
                    let time = rest.get(options).map_or("", String::as_str);
                    let limit_ns = command_line::time_ns(time).ok_or_else(|| {
                        let problem = format!("`{time}` is not a time from 0 to 30 days");
                        wrong("timeout", &problem, "write timeout SECONDS, or a number that ends in s, m, h or d")
                    })?;
                    // 0 means no limit.
                    self.limit_ns = Some(limit_ns).filter(|&limit_ns| limit_ns > 0);
                    options + 1
                }
                _ if is_variable(&first) => 0,
                _ => break,
            };
            self.words.drain(..=taken.min(self.words.len() - 1));
        }
        if (nice != 0 || class_of_cpu.is_some()) && self.priority.is_none() {
            let nice: i32 = nice;
            self.priority = Some((class_of_cpu.unwrap_or(2), ((nice.clamp(-20, 19) + 20) / 5) as u8));
        }
        Ok(())
    }
}

/// Removes parentheses and braces around commands: `time (dd ... && sync)`.
fn without_parentheses(words: &mut Vec<String>) {
    let is_open = |word: &String| word.starts_with('(') || word == "{";
    let is_end = |word: &String| word.ends_with(')') && !word.contains('(') || word == "}";
    let Some(open) = words.iter().position(is_open) else { return };
    let Some(end) = words.iter().rposition(is_end).filter(|end| *end >= open) else { return };
    words[end].pop();
    words[open].remove(0);
    words.retain(|word| !word.is_empty());
}

/// Returns the number of words at the front that are options or values of options. The options in
/// `with_value` have their value in the next word.
fn options(words: &[String], with_value: &[&str]) -> usize {
    let mut taken = 0;
    while let Some(word) = words.get(taken).filter(|word| word.starts_with('-')) {
        taken += 1 + usize::from(with_value.contains(&word.as_str()));
    }
    taken.min(words.len())
}

/// Returns the last value of an option: `-n 5`, `-n5`, `--adjustment=5`, `--adjustment 5`.
fn value<'w>(words: &'w [String], letter: char, long: &str) -> Option<&'w str> {
    let mut found = None;
    for (at, word) in words.iter().enumerate() {
        let behind = match word.strip_prefix("--") {
            Some(name) => name.strip_prefix(long).filter(|behind| behind.is_empty() || behind.starts_with('=')),
            None => word.strip_prefix('-').and_then(|short| short.strip_prefix(letter)),
        };
        found = match behind.map(|behind| behind.trim_start_matches('=')) {
            Some("") => words.get(at + 1).map(String::as_str),
            Some(behind) => Some(behind),
            None => found,
        };
    }
    found
}

/// Parses the options of ionice. The inner `None` means no class; the outer `None` means that the
/// options are not valid.
#[expect(clippy::option_option, reason = "ionice has no such class")]
fn priority(words: &[String]) -> Option<Option<(u8, u8)>> {
    let class = match value(words, 'c', "class").unwrap_or("2") {
        "0" | "none" => 0,
        "1" | "realtime" => 1,
        "2" | "best-effort" => 2,
        "3" | "idle" => 3,
        _ => return None,
    };
    let level = value(words, 'n', "classdata").unwrap_or("4").parse().ok().filter(|level| *level <= 7)?;
    Some((class > 0).then_some((class, level)))
}

/// Returns whether a command drops caches, for example `echo 3 > /proc/sys/vm/drop_caches`. The
/// command can also use tee or sysctl.
fn is_cache_dropped(words: &[String]) -> bool {
    words.iter().any(|word| word.ends_with("/proc/sys/vm/drop_caches") || word.starts_with("vm.drop_caches="))
}

/// Returns a command up to its first pipe, and whether it has a pipe. Returns the whole command if
/// it drops caches.
fn until_pipe(words: &[String]) -> (Vec<String>, bool) {
    if is_cache_dropped(words) {
        return (words.to_vec(), false);
    }
    let command: Vec<String> = words.iter().take_while(|word| *word != "|").cloned().collect();
    let is_piped = command.len() < words.len();
    (command, is_piped)
}

/// The files of standard input and standard output.
#[derive(Debug, Default)]
struct Redirected {
    input: Option<String>,
    output: Option<String>,
}

impl Redirected {
    /// Adds the files as operands of dd, unless dd has these operands already. Without operands, dd
    /// reads standard input and writes standard output.
    fn into_operands(self, words: &mut Vec<String>) {
        for (name, file) in [("if=", self.input), ("of=", self.output)] {
            if let Some(file) = file.filter(|_| !words.iter().any(|word| word.starts_with(name))) {
                words.push(format!("{name}{file}"));
            }
        }
    }
}

/// Removes redirections such as `> file` and `2>&1`. Also returns the files of standard input and
/// output. Piped output is not written to a disk.
fn without_redirections(words: Vec<String>, is_piped: bool) -> (Vec<String>, Redirected) {
    let mut all = Vec::with_capacity(words.len());
    let mut redirected = Redirected { output: is_piped.then(|| "/dev/null".to_owned()), ..Redirected::default() };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let behind = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        let stream = word[..word.len() - behind.len()].to_owned();
        let Some(target) = behind.strip_prefix('>').or_else(|| behind.strip_prefix('<')) else {
            all.push(word);
            continue;
        };
        let is_input = behind.starts_with('<');
        let target = target.trim_start_matches('>').to_owned();
        let file = if target.is_empty() { words.next() } else { Some(target) };
        let file = file.filter(|file| !file.starts_with('&'));
        match (is_input, stream.as_str()) {
            (true, "" | "0") => redirected.input = file,
            (false, "" | "1") => redirected.output = file,
            _ => {}
        }
    }
    (all, redirected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, words: &str, priority: Option<(u8, u8)>) {
        let pasted = Pasted::read(text).unwrap();
        assert_eq!((pasted.words.join(" ").as_str(), pasted.priority), (words, priority), "{text}");
    }

    #[test]
    fn error_of_an_unknown_program_begins_with_its_name() {
        let long = format!("mysqld --bench {}", "x".repeat(300));
        let missing = |text: &str| {
            let error = TraceError::NotFound { file: text.to_owned() };
            no_program(Path::new(text), error.into()).to_string()
        };
        let message = missing(&long);
        assert!(
            message.starts_with("mysqld: iosched does not simulate this program, and no file has this name"),
            "{message}"
        );
        assert!(message.len() < 260 && message.matches("--bench").count() == 1, "{message}");
        let pgbench = missing("pgbench -c 10 -T 60 bench");
        assert!(pgbench.starts_with("pgbench: iosched does not simulate this program"), "{pgbench}");
        assert!(pgbench.contains("iosched record DISK --for 60 -o pgbench.blktrace.0"), "{pgbench}");
        assert!(missing("pg_test_fsync").contains("--fdatasync=1"), "a known program without arguments");
        assert!(missing("cp a b").contains("dd if=FILE of=COPY bs=128k"));
        assert!(missing("filebench -f x.f").contains("iosched record DISK --for 60"));
        assert!(missing("mysqld").starts_with("mysqld: iosched does not simulate this program"));
        assert!(missing("none").starts_with("none: there is no such file"));
    }

    #[test]
    fn prefix_commands_are_removed() {
        for prefix in [
            "",
            "$ ",
            "# ",
            "sudo ",
            "sudo -u root ",
            "time ",
            "time -p sudo -E ",
            "/usr/bin/time -v ",
            "A=b ",
            "env A=b C=d ",
            "taskset -c 0-3 ",
            "taskset 0x3 ",
            "root@db1:~# ",
            "[root@db1 ~]# ",
            "me@host:/srv$ sudo ",
            "doas -u me ",
            "strace -c -o log ",
            "perf stat -e cycles ",
            "setsid ",
            "numactl -N 0 -m 0 ",
            "numactl --cpunodebind=0 ",
            "nohup ",
            "sync; echo 3 > /proc/sys/vm/drop_caches; ",
            "sync && echo 3 | sudo tee /proc/sys/vm/drop_caches && ",
        ] {
            is(&format!("{prefix}fio --name=t --size=1M"), "fio --name=t --size=1M", None);
        }
    }

    #[test]
    fn timeout_sets_the_time_limit() {
        let limit = |text: &str| {
            let pasted = Pasted::read(text).unwrap();
            assert_eq!(pasted.words.join(" "), "fio --name=t", "{text}");
            pasted.limit_ns
        };
        assert_eq!(limit("sudo timeout 60 fio --name=t"), Some(60_000_000_000));
        assert_eq!(limit("timeout -s INT 2m fio --name=t"), Some(120_000_000_000));
        assert_eq!(limit("timeout --kill-after=5 1.5h fio --name=t"), Some(5_400_000_000_000));
        assert_eq!((limit("timeout 0 fio --name=t"), limit("fio --name=t")), (None, None));
    }

    #[test]
    fn shells_and_other_commands_are_removed() {
        let dd = "dd if=/dev/zero of=x bs=1M count=9";
        for text in ["cd /mnt && DD", "DD; rm -f x", "DD && rm x", "sudo bash -c 'DD'", "mkdir -p /mnt/t; DD; sleep 5"]
        {
            is(&text.replace("DD", dd), dd, None);
        }
        is(&format!("ionice -c3 sh -c \"{dd}\""), dd, Some((3, 4)));
        let looped = Pasted::read(&format!("for i in 1 2 3; do {dd}; done")).unwrap_err().to_string();
        assert!(looped.contains("for: iosched does not run loops and conditions of the shell"), "{looped}");
    }

    #[test]
    fn errors_name_commands_that_iosched_does_not_run() {
        let wrong = |text: &str| Pasted::read(text).unwrap_err().to_string();
        for (text, part) in [
            (
                "kubectl exec -it p -- fio --name=t --size=1M",
                "kubectl: the program runs a command on another machine or in a container; give only this command: \
                 fio --name=t --size=1M",
            ),
            (
                "sudo docker run --rm -v /d:/d x/fio --name=t",
                "docker: the program runs a command on another machine or in a container; give only this command: \
                 x/fio --name=t",
            ),
            (
                "ssh -p 22 host 'dd if=a of=b'",
                "ssh: the program runs a command on another machine or in a container; give only this command",
            ),
            ("systemd-run --scope -p IOWeight=10 dd if=a of=b", "cgroup= and cgroup_weight="),
            ("dd if=a of=b & dd if=c of=d & wait", "dd: the program runs at the same time as the previous program"),
            ("dd if=a bs=1M | dd of=b bs=1M", "|: the output of the program goes to a second program"),
            ("watch -n1 dd if=a of=b", "watch: iosched does not run loops"),
        ] {
            assert!(wrong(text).contains(part), "{text}: {}", wrong(text));
        }
        is("(dd if=a of=b)", "dd if=a of=b", None);
        is("time { dd if=a of=b; }", "dd if=a of=b", None);
        is("dd if=a of=b & wait", "dd if=a of=b", None);
    }

    #[test]
    fn sysbench_prepare_and_cleanup_around_run_are_removed() {
        let run = "sysbench fileio --file-test-mode=rndrw run";
        let prepare = "sysbench fileio --file-total-size=1G prepare";
        is(&format!("{prepare} && {run}; sysbench fileio cleanup"), run, None);
        is(prepare, prepare, None);
    }

    #[test]
    fn ionice_and_nice_set_the_priority() {
        for (prefix, priority) in [
            ("ionice -c3", Some((3, 4))),
            ("sudo ionice -c 2 -n 7", Some((2, 7))),
            ("ionice -c idle", Some((3, 4))),
            ("ionice --class=realtime --classdata 0", Some((1, 0))),
            ("ionice -n5", Some((2, 5))),
            ("ionice -c 0", None),
            ("nice", Some((2, 6))),
            ("nice -n 19 ionice -c2 -n0", Some((2, 0))),
            ("nice -n 19", Some((2, 7))),
            ("chrt -f 50", Some((1, 4))),
            ("chrt --idle 0", Some((3, 4))),
            ("chrt -b 0", None),
            ("chrt -f 50 ionice -c3", Some((3, 4))),
        ] {
            is(&format!("{prefix} dd if=a of=b"), "dd if=a of=b", priority);
        }
        assert!(Pasted::read("ionice -c 9 fio").unwrap_err().to_string().contains("no such class"));
    }

    #[test]
    fn shell_syntax_is_removed_or_becomes_options() {
        for behind in [" 2>&1", " > out.txt", " >out.txt 2>&1", " &> x", " | tee log", "; sync", " && sync", " &"] {
            is(&format!("fio --name='a b'{behind}"), "fio --name=a b", None);
        }
        is("dd if=a of=b; dd if=b of=c", "dd if=a of=b ; dd if=b of=c", None);
        is("dd if=a bs=1M | pv > /dev/null", "dd if=a bs=1M of=/dev/null", None);
        is("dd if=/dev/zero bs=1M count=9 > b 2>/dev/null", "dd if=/dev/zero bs=1M count=9 of=b", None);
        is("dd of=b bs=1M <a", "dd of=b bs=1M if=a", None);
        is("dd if=a of=b 2>&1 | tail -1", "dd if=a of=b", None);
        let error = |text: &str| Pasted::read(text).unwrap_err().to_string();
        assert!(error("dd if=a of=b && sync").contains("add conv=fsync"));
        assert!(error("timeout x fio --name=x").contains("timeout: `x` is not a time from 0 to 30 days"));
        assert!(error("fio --name='x").contains("a quote is not closed"));
        assert!(error("fio --name=x; iozone -a").contains("iozone: a second program"));
        let formatted = "mkfs.ext4 /dev/sdb && fio --name=x";
        assert!(error(formatted).contains("mkfs.ext4: iosched does not simulate this program; give only"));
        is("pgbench -i b && pgbench -c 10 b", "pgbench -i b", None);
        is("iostat -dx 1 & fio --name=x", "fio --name=x", None);
        is("mount /dev/sdb /mnt; fio --name=x & vmstat 1", "fio --name=x", None);
        is("iostat -dx 1", "iostat -dx 1", None);
    }

    #[test]
    fn shell_variables_are_replaced() {
        for text in [
            "BS=4k; S=1M fio --bs=$BS --size=${S} --name=$BS.x",
            "export BS=4k S=1M && fio --bs=\"$BS\" --size=$S --name=${BS}.x",
        ] {
            is(text, "fio --bs=4k --size=1M --name=4k.x", None);
        }
        is("A=1; AB=2; fio --name=$AB$A", "fio --name=21", None);
        is("fio --filename_format=$jobname.$jobnum", "fio --filename_format=$jobname.$jobnum", None);
        let missing = Pasted::read("fio --bs=$BS").unwrap_err().to_string();
        assert!(
            missing.contains("$BS: iosched does not know the value of this shell variable; write the value instead"),
            "{missing}"
        );
    }

    #[test]
    fn lines_from_word_processors_and_windows_are_read() {
        for text in [
            "fio \u{2013}-name=a \u{2014}rw=read \u{2013}size=1m",
            "fio --name=\u{201c}a\u{201d} --rw=\u{2018}read\u{2019} --size=1m",
            "C:\\Users\\me> fio.exe --name=a --rw=read --size=1m",
            "PS C:\\> fio --name=a --rw=read --size=1m",
        ] {
            let words = Pasted::read(text).unwrap().words;
            assert_eq!((base(&words[0]), words[1..].join(" ").as_str()), ("fio", "--name=a --rw=read --size=1m"));
        }
        is("hdparm \u{2013}t /dev/sda", "hdparm -t /dev/sda", None);
    }
}
