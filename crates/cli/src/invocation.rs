//! The arguments that the user gave, and command lines that repeat them.
//!
//! Records and reports contain the command line that reproduces them. iosched builds this line from
//! the declarations of clap and the parsed arguments, so the line includes new options without
//! further code.

use std::fmt;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use iosched_lab::request::quoted;

/// Options that change how results are shown, where they are written or how long they take. These
/// options do not change the runs, so command lines that reproduce runs leave them out. The strings
/// are the ids of clap, not the names of the options.
const LEFT_OUT: [&str; 17] = [
    "apply",
    "assumptions",
    "blktrace",
    "csv",
    "decisions",
    "details",
    "jobs",
    "json",
    "list",
    "markdown",
    "output",
    "output_format",
    "overwrite",
    "progress",
    "records",
    "report",
    "verbose",
];

/// A command with the arguments that the user gave.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// Name of the command, such as `validate disk`.
    name: String,
    /// All arguments that the command declares, in the order of the declarations.
    arguments: Vec<Argument>,
    /// The declarations of all commands.
    root: Command,
}

/// An argument of a command.
#[derive(Clone, Debug)]
struct Argument {
    id: String,
    form: Form,
    /// The given values. `None` if the argument was not given. A flag has no values.
    given: Option<Vec<String>>,
}

/// The form of an argument on the command line.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// An option with its dashes. The delimiter joins several values. Some options take values only
    /// after an equals sign.
    Option {
        name: String,
        delimiter: Option<char>,
        needs_equals: bool,
    },
    Positional,
    /// Words after `--`.
    Last,
}

impl Invocation {
    /// Returns the command that the user gave. With subcommands, it is the innermost one.
    pub(crate) fn of(command: &Command, matches: &ArgMatches) -> Self {
        let root = command;
        let (mut command, mut matches, mut names) = (command, matches, Vec::new());
        while let Some((name, below)) = matches.subcommand() {
            let Some(found) = command.find_subcommand(name) else { break };
            (command, matches) = (found, below);
            names.push(name.to_owned());
        }
        Self { root: root.clone(), ..Self::of_command(names.join(" "), command, matches) }
    }

    fn of_command(name: String, command: &Command, matches: &ArgMatches) -> Self {
        let arguments = command.get_arguments().filter(|argument| !is_of_clap(argument));
        let arguments = arguments.map(|argument| Argument::of(argument, matches)).collect();
        Self { name, arguments, root: command.clone() }
    }

    /// Returns the command line that repeats this one.
    pub(crate) fn rerun(&self) -> Rerun {
        let mut again = self.clone();
        again.arguments.retain(|argument| !argument.is_left_out());
        Rerun(again)
    }

    /// Returns the line of the command `name`, with the options that both commands have.
    pub(crate) fn rerun_as(&self, name: &str) -> Rerun {
        let declared = self.root.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
        let mut arguments: Vec<_> = declared.filter(|argument| !is_of_clap(argument)).map(Argument::declared).collect();
        arguments.retain(|argument| !argument.is_left_out());
        for argument in &mut arguments {
            let same = self
                .arguments
                .iter()
                .find(|given| matches!(given.form, Form::Option { .. }) && given.form == argument.form);
            argument.given = same.and_then(|same| same.given.clone());
        }
        Rerun(Self { name: name.to_owned(), arguments, root: self.root.clone() })
    }
}

/// Returns whether clap itself handles the argument, such as `--help`.
fn is_of_clap(argument: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(argument.get_action(), Help | HelpLong | HelpShort | Version)
}

impl Argument {
    fn declared(argument: &Arg) -> Self {
        let form = if argument.is_last_set() {
            Form::Last
        } else if argument.is_positional() {
            Form::Positional
        } else {
            let short = || argument.get_short().map_or_else(String::new, |short| format!("-{short}"));
            let name = argument.get_long().map_or_else(short, |long| format!("--{long}"));
            let (delimiter, needs_equals) = (argument.get_value_delimiter(), argument.is_require_equals_set());
            Form::Option { name, delimiter, needs_equals }
        };
        Self { id: argument.get_id().to_string(), form, given: None }
    }

    fn of(argument: &Arg, matches: &ArgMatches) -> Self {
        let mut declared = Self::declared(argument);
        if matches.value_source(&declared.id) == Some(ValueSource::CommandLine) {
            let values = matches.get_raw(&declared.id).filter(|_| argument.get_action().takes_values());
            let values = values.into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
            declared.given = Some(values.collect());
        }
        declared
    }

    fn is_left_out(&self) -> bool {
        matches!(self.form, Form::Option { .. }) && LEFT_OUT.contains(&self.id.as_str())
    }
}

/// A command line that repeats a command. Its methods name an argument by the field that declares
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Rerun(Invocation);

impl Rerun {
    /// Replaces the values of an argument, for example by the values that the command derived from
    /// them. Without values, removes the argument.
    pub(crate) fn set<V: fmt::Display>(mut self, id: &str, values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        let argument = self.0.arguments.iter_mut().find(|argument| argument.id == id);
        debug_assert!(argument.is_some(), "no argument {id}");
        if let Some(argument) = argument {
            argument.given = Some(values).filter(|values| !values.is_empty());
        }
        self
    }

    /// Adds an argument with values that the command has chosen, unless the user gave the argument.
    pub(crate) fn chosen<V: fmt::Display>(self, id: &str, values: impl IntoIterator<Item = V>) -> Self {
        let is_given = self.0.arguments.iter().any(|argument| argument.id == id && argument.given.is_some());
        if is_given { self } else { self.set(id, values) }
    }
}

impl fmt::Display for Rerun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invocation { name, arguments, .. } = &self.0;
        let words_of = |form: Form| {
            let is_given = move |argument: &&Argument| argument.form == form;
            arguments.iter().filter(is_given).filter_map(|argument| argument.given.as_ref()).flatten()
        };
        let (positional, last): (Vec<_>, Vec<_>) =
            (words_of(Form::Positional).collect(), words_of(Form::Last).collect());
        // After `--`, words that look like options are values.
        let (first, last) = if positional.iter().any(|word| is_like_option(word)) {
            (Vec::new(), [positional, last].concat())
        } else {
            (positional, last)
        };
        write!(f, "iosched {name}")?;
        first.into_iter().try_for_each(|word| write!(f, " {}", quoted(word)))?;
        for argument in arguments {
            if let (Form::Option { name, delimiter, needs_equals }, Some(values)) = (&argument.form, &argument.given) {
                for value in joined(values, *delimiter) {
                    match value {
                        None => write!(f, " {name}")?,
                        Some(value) if *needs_equals || is_like_option(&value) => {
                            write!(f, " {}", quoted(&format!("{name}={value}")))?;
                        }
                        Some(value) => write!(f, " {name} {}", quoted(&value))?,
                    }
                }
            }
        }
        if !last.is_empty() {
            write!(f, " --")?;
        }
        last.into_iter().try_for_each(|word| write!(f, " {}", quoted(word)))
    }
}

/// Returns the value for each occurrence of an option. If a delimiter joins the values, the option
/// occurs once with all values. A flag occurs once, without a value.
fn joined(values: &[String], delimiter: Option<char>) -> Vec<Option<String>> {
    match delimiter {
        _ if values.is_empty() => vec![None],
        Some(delimiter) => vec![Some(values.join(delimiter.encode_utf8(&mut [0; 4])))],
        None => values.iter().cloned().map(Some).collect(),
    }
}

/// Returns whether clap would take the word as an option. A single dash is a value: standard input
/// or output.
fn is_like_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::error::ErrorKind;
    use iosched_check::Random;

    use super::*;
    use crate::command::{command, parse};

    /// Values of all kinds. Each argument accepts some of them.
    const VALUES: &[&str] = &[
        "1",
        "2",
        "7",
        "0.5",
        "30",
        "1000",
        "-",
        "-1",
        "",
        "a b",
        "it's",
        "--odd",
        "$HOME",
        "/tmp/x",
        "./p.toml",
        "*",
        "db=postgres",
        "'db*'=idle",
        "backup=best-effort:2",
        "p99(sync)",
        "throughput",
        "P99(db) <= 5 ms",
        "throughput >= 95%",
        "cfq:slice_idle=0",
        "none",
        "bfq",
        "6.1",
        "debian-12",
        "quantum=4",
        "slice_idle=0",
        "wbt",
        "io.max",
        "csv",
        "time_s,op,offset_bytes,length_bytes",
        "us",
        "closed",
        "open",
        "today",
        "sda",
        "nvme",
        "hdd",
        "10GB",
        "0..100",
        "60s",
        "5ms",
        "R",
        "read",
        "write",
        "true",
        "bash",
        "json",
        "text",
        "127.0.0.1:10809",
        "memory:64M",
        "idle",
        "best-effort:4",
        "1G",
        "0755",
        "db",
        "k",
        "100..200",
        "12",
    ];

    /// Splits a line as a POSIX shell does, for words that [`quoted`] writes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut chars) = (Vec::new(), None::<String>, line.chars());
        while let Some(c) = chars.next() {
            match c {
                ' ' => words.extend(word.take()),
                '\'' => {
                    let word = word.get_or_insert_default();
                    word.extend(chars.by_ref().take_while(|&c| c != '\''));
                }
                '\\' => word.get_or_insert_default().extend(chars.next()),
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// Collects the innermost commands with their names.
    fn innermost(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
        if command.get_arguments().any(|argument| !is_of_clap(argument)) && !name.is_empty() {
            all.push((name.to_owned(), command.clone()));
        }
        for below in command.get_subcommands() {
            innermost(below, format!("{name} {}", below.get_name()).trim_start(), all);
        }
    }

    fn error_of(command: &Command, words: &[String]) -> Option<ErrorKind> {
        let words = std::iter::once("iosched").chain(words.iter().map(String::as_str));
        command.clone().try_get_matches_from(words).err().map(|error| error.kind())
    }

    /// Returns the words of an argument, for each of [`VALUES`] that it accepts.
    fn accepted(command: &Command, argument: &Arg) -> Vec<Vec<String>> {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let option = long.or_else(|| argument.get_short().map(|short| format!("-{short}")));
        if !argument.get_action().takes_values() {
            return option.map(|option| vec![vec![option]]).unwrap_or_default();
        }
        let mut all = Vec::new();
        for &value in VALUES {
            let words = match &option {
                Some(option) => vec![format!("{option}={value}")],
                None => vec!["--".to_owned(), value.to_owned()],
            };
            use ErrorKind::{InvalidSubcommand, InvalidValue, UnknownArgument, ValueValidation};
            let error = error_of(command, &words);
            if !matches!(error, Some(InvalidValue | ValueValidation | UnknownArgument | InvalidSubcommand)) {
                all.push(words);
            }
        }
        all
    }

    /// Returns the given arguments that the command line repeats.
    fn repeated(invocation: &Invocation) -> BTreeMap<&str, &Vec<String>> {
        let repeated = invocation.arguments.iter().filter(|argument| !argument.is_left_out());
        repeated.filter_map(|argument| Some((argument.id.as_str(), argument.given.as_ref()?))).collect()
    }

    #[test]
    fn rerun_command_parses_to_the_same_arguments() {
        let (mut all, mut random, mut options) = (Vec::new(), Random::new(46), 0);
        innermost(&command(), "", &mut all);
        for (name, leaf) in &all {
            // Only this command is parsed, because building the tree of all commands takes long.
            let leaf = leaf.clone().args_conflicts_with_subcommands(false);
            let arguments: Vec<_> = leaf.get_arguments().filter(|argument| !is_of_clap(argument)).cloned().collect();
            let values: Vec<_> = arguments.iter().map(|argument| accepted(&leaf, argument)).collect();
            let (mut taken, mut tries) = (0, 0);
            while taken < 12 && tries < 400 {
                tries += 1;
                let (mut line, mut behind) = (Vec::new(), Vec::new());
                for (argument, values) in arguments.iter().zip(&values).filter(|(_, values)| !values.is_empty()) {
                    let several = matches!(argument.get_action(), ArgAction::Append);
                    let often = if argument.is_required_set() { 10 } else { 4 };
                    for _ in 0..if several { random.below(4) } else { 1 } {
                        if random.below(10) < often {
                            match &values[random.index(values.len())][..] {
                                [dashes, value] if dashes == "--" => behind.push(value.clone()),
                                words => line.extend_from_slice(words),
                            }
                        }
                    }
                }
                if !behind.is_empty() {
                    line.push("--".to_owned());
                    line.extend(behind);
                }
                let line: Vec<_> = std::iter::once("iosched".to_owned()).chain(line).collect();
                let Ok(matches) = leaf.clone().try_get_matches_from(&line) else { continue };
                let given = Invocation::of_command(name.clone(), &leaf, &matches);
                let text = given.rerun().to_string();
                let again = words(text.strip_prefix(&format!("iosched {name}")).unwrap());
                let again = std::iter::once("iosched".to_owned()).chain(again);
                let matches = leaf.clone().try_get_matches_from(again);
                let matches = matches.unwrap_or_else(|error| panic!("{line:?} gives {text}: {error}"));
                let again = Invocation::of_command(name.clone(), &leaf, &matches);
                assert_eq!(repeated(&again), repeated(&given), "{line:?} gives {text}");
                options += repeated(&given).len();
                taken += 1;
            }
            assert!(taken > 0, "{name}: no line was accepted");
        }
        assert!(all.len() > 30 && options > 1000, "{} commands, {options} arguments", all.len());
    }

    #[test]
    fn options_omitted_from_rerun_commands_exist() {
        let mut all = vec![(String::new(), command())];
        innermost(&command(), "", &mut all);
        for id in LEFT_OUT {
            assert!(
                all.iter().any(|(_, command)| command.get_arguments().any(|argument| argument.get_id() == id)),
                "{id}"
            );
        }
    }

    #[test]
    fn rerun_command_has_changed_and_given_values() {
        let (_, given) =
            parse(["iosched", "tune", "-s", "cfq", "-g", "p99(sync)", "--kernel", "6.1", "--jobs", "2"]).unwrap();
        let line =
            given.rerun().set("schedulers", ["none", "bfq:slice_idle=0"]).chosen("seed", [7]).chosen("kernel", ["6.6"]);
        assert_eq!(
            line.to_string(),
            "iosched tune --scheduler none --scheduler bfq:slice_idle=0 --goal 'p99(sync)' --kernel 6.1 --seed 7"
        );
        let other = given.rerun_as("compare").set("seed", [8]);
        assert_eq!(other.to_string(), "iosched compare --scheduler cfq --kernel 6.1 --goal 'p99(sync)' --seed 8");
    }
}
