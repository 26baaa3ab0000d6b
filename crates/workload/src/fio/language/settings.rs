//! Settings of one job: defaults of `[global]`, and the options of its section. Each option is
//! parsed once. If an option is given several times, the last one counts.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::engines;
use super::error::{JobProblem, PROBLEMS_SHOWN, ProblemKind};
use super::options::{self, Found, JobOption, ValueKind};
use super::place::JobLine;
use super::source::{Assignment, PROBLEMS_MAX, Section};
use super::value::{self, Numbers, Pattern, SizeValue, Value};
use crate::fio::value::PerDirection;

/// fio's default of `kb_base`.
const KB_BASE: u32 = 1024;

/// An option with its value.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) option: &'static JobOption,
    /// The name or alias that the file uses.
    pub(super) called: String,
    /// The value as written, with variables expanded.
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) place: JobLine,
    /// Position in the file. Of two options that contradict each other, the later one counts.
    pub(super) order: usize,
    /// Whether the option is in `[global]`.
    pub(super) is_global: bool,
}

/// All settings of a job, by the name of the option.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(BTreeMap<&'static str, Rc<Setting>>);

impl Settings {
    pub(super) fn get(&self, option: &str) -> Option<&Setting> {
        self.0.get(option).map(|setting| &**setting)
    }

    /// Returns all settings in their order in the file.
    pub(super) fn in_order(&self) -> Vec<&Rc<Setting>> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|setting| setting.order);
        all
    }

    /// Returns whether `one` was given after `other`.
    pub(super) fn is_later(&self, one: &str, other: &str) -> bool {
        let order = |option| self.get(option).map(|setting| setting.order);
        order(one) > order(other)
    }

    /// Returns the option that was given later.
    pub(super) fn later_of(&self, one: &str, other: &str) -> Option<&Setting> {
        self.get(if self.is_later(other, one) { other } else { one })
    }

    /// Removes options of engines that this job does not use.
    pub(super) fn keep_own_engine(&mut self) {
        let engine = self.engine().name;
        self.0.retain(|_, setting| setting.option.engines.is_empty() || setting.option.engines.contains(&engine));
    }

    pub(super) fn text(&self, option: &str) -> Option<&str> {
        match &self.get(option)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_on(&self, option: &str) -> Option<bool> {
        match self.get(option)?.value {
            Value::Switch(on) => Some(on),
            _ => None,
        }
    }

    pub(super) fn word(&self, option: &str) -> Option<&'static str> {
        match self.get(option)?.value {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn number(&self, option: &str) -> Option<u64> {
        match self.get(option)?.value {
            Value::Number(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    pub(super) fn small(&self, option: &str) -> Option<u32> {
        self.number(option).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Returns a time, ns.
    pub(super) fn time_ns(&self, option: &str) -> Option<u64> {
        self.number(option).map(|us| us.saturating_mul(1000))
    }

    pub(super) fn numbers(&self, option: &str) -> Option<PerDirection<Option<u64>>> {
        match self.get(option)?.value {
            Value::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    pub(super) fn range(&self, option: &str) -> Option<[u64; 2]> {
        match self.get(option)?.value {
            Value::Range(range) => Some(range),
            _ => None,
        }
    }

    pub(super) fn size(&self, option: &str) -> Option<SizeValue> {
        match self.get(option)?.value {
            Value::Size(size) => Some(size),
            _ => None,
        }
    }

    pub(super) fn pattern(&self) -> Option<Pattern> {
        match self.get("rw")?.value {
            Value::Pattern(pattern) => Some(pattern),
            _ => None,
        }
    }

    pub(super) fn value(&self, option: &str) -> Option<&Value> {
        self.get(option).map(|setting| &setting.value)
    }

    /// Returns the engine that the job sets, or fio's default.
    pub(super) fn engine(&self) -> &'static engines::IoEngine {
        match self.value("ioengine") {
            Some(Value::Engine(engine)) => engine.0,
            _ => engines::default(),
        }
    }
}

/// Parser of sections' options. It numbers the options and collects errors.
pub(super) struct SettingsReader<'a> {
    pub(super) problems: &'a mut Vec<JobProblem>,
    /// Number of options parsed so far.
    pub(super) order: usize,
}

impl SettingsReader<'_> {
    fn problem(&mut self, place: &JobLine, kind: ProblemKind) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(JobProblem::new(place.clone(), kind));
        }
    }

    /// Adds a section's options to the existing settings.
    ///
    /// As in fio, `kb_base` and `ioengine` apply to the whole section, wherever they are in it.
    pub(super) fn add(&mut self, settings: &mut Settings, section: &Section) {
        let mut numbers = Numbers { kb_base: kb_base(settings), bare: false };
        for first in ["kb_base", "ioengine"] {
            for assignment in section.assignments.iter().filter(|assignment| assignment.option == first) {
                self.one(settings, section, assignment, numbers);
            }
            numbers.kb_base = kb_base(settings);
        }
        for assignment in &section.assignments {
            if !matches!(assignment.option.as_str(), "kb_base" | "ioengine") {
                self.one(settings, section, assignment, numbers);
            }
        }
    }

    fn one(&mut self, settings: &mut Settings, section: &Section, assignment: &Assignment, numbers: Numbers) {
        let engine = settings.engine();
        let name = assignment.option.as_str();
        let option = match options::find(name, engine.name) {
            Found::Option(option) => option,
            Found::OtherEngine(engines) => {
                let kind =
                    ProblemKind::OtherEngine { option: name.to_owned(), engines, engine: engine.name.to_owned() };
                return self.problem(&assignment.place, kind);
            }
            Found::No => {
                // The search for similar names is slow, so it is done only for errors that the
                // message lists.
                let near = if self.problems.len() < PROBLEMS_SHOWN { options::near(name) } else { Vec::new() };
                let kind = ProblemKind::NoSuchOption { option: name.to_owned(), near };
                return self.problem(&assignment.place, kind);
            }
        };
        // If the engine is not supported, the job is rejected anyway, so options of the engine need
        // no check.
        let is_moot = !option.engines.is_empty() && !engine.is_supported();
        let numbers = Numbers { bare: assignment.has_keyword, ..numbers };
        let value = match (&assignment.value, option.kind) {
            _ if is_moot => Ok(Value::Text(String::new())),
            (None, ValueKind::Flag) => Ok(Value::Switch(true)),
            (None, ValueKind::OptionalText) => Ok(Value::Text(String::new())),
            (None, _) => Err(("the value is missing".to_owned(), format!("expected: {}", option.kind))),
            (Some(value), _) if value.is_empty() => Err(empty(assignment, option)),
            (Some(value), _) => value::read(option, value, numbers).map_err(|wrong| (wrong.problem, wrong.expected)),
        };
        self.order += 1;
        match value {
            Ok(value) => {
                let setting = Setting {
                    option,
                    called: name.to_owned(),
                    text: assignment.value.clone().unwrap_or_default(),
                    value,
                    place: assignment.place.clone(),
                    order: self.order,
                    is_global: section.is_global,
                };
                settings.0.insert(option.name, Rc::new(setting));
            }
            Err((problem, expected)) => {
                let (option, value) = (name.to_owned(), assignment.written.clone());
                self.problem(&assignment.place, ProblemKind::Value { option, value, problem, expected });
            }
        }
    }
}

fn kb_base(settings: &Settings) -> u32 {
    match settings.word("kb_base") {
        Some("1000") => 1000,
        _ => KB_BASE,
    }
}

/// Returns the reason why a value is empty, and the remedy.
fn empty(assignment: &Assignment, option: &JobOption) -> (String, String) {
    match &assignment.unset[..] {
        [] => ("the value is empty".to_owned(), format!("expected: {}", option.kind)),
        unset => {
            let are = if unset.len() == 1 { "is" } else { "are" };
            let problem = format!("{} {are} not set in the environment", unset.join(", "));
            (
                problem,
                format!(
                    "set {}; {} expects: {}",
                    if unset.len() == 1 { "this variable" } else { "these variables" },
                    option.name,
                    option.kind
                ),
            )
        }
    }
}
