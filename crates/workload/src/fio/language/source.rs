//! The text of job files: sections with options and values as written, includes, and variables.
//!
//! This module knows neither the options nor the meaning of their values. As in fio, `;` and `#`
//! begin a comment anywhere in a line. `[global...]` is a section of defaults. An unset variable is
//! the empty string.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment::Environment;
use super::error::{JobProblem, ProblemKind};
use super::place::{COMMAND_LINE, JobLine};

/// Largest nesting of included files.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Largest number of included files. A file counts each time it is included.
const INCLUDES_MAX: usize = 256;
/// Largest number of lines of all files together. Included files count each time they are included.
pub(super) const LINES_MAX: usize = 100_000;
/// Largest size of a value after the expansion of variables, bytes.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Largest number of errors to collect.
pub(super) const PROBLEMS_MAX: usize = 1000;

/// A section as written.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Name of the section.
    pub(super) name: String,
    /// Line of the section's header.
    pub(super) place: JobLine,
    /// Whether the section has defaults for the following jobs.
    pub(super) is_global: bool,
    /// Options of the section, in order.
    pub(super) assignments: Vec<Assignment>,
}

/// An option as written.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    /// Text before the `=`.
    pub(super) option: String,
    /// Text after the `=`, with variables expanded; `None` without a `=`.
    pub(super) value: Option<String>,
    /// Text after the `=`, as written.
    pub(super) written: String,
    /// Names of unset variables in the value.
    pub(super) unset: Vec<String>,
    /// Whether a keyword of fio in the value was replaced. The value can then be an expression.
    pub(super) has_keyword: bool,
    /// Place of the option.
    pub(super) place: JobLine,
}

/// Parses the text of a job file into sections. Adds errors to `problems`.
pub(super) fn read(
    name: &str,
    text: &[u8],
    environment: &dyn Environment,
    problems: &mut Vec<JobProblem>,
) -> Vec<Section> {
    let file = File { name: Arc::from(name), folder: folder_of(Path::new(name)), included_at: None };
    let mut reader = Reader { environment, problems, sections: Vec::new(), lines: 0, includes: 0, depth: 0 };
    reader.file(&file, text);
    reader.sections
}

/// A part of a command line.
pub(super) enum Named<'a> {
    /// The start of a section.
    Section(&'a str),
    /// `name=value` or `name`.
    Option(String),
    /// A job file, and the names of its sections to run. An empty list means all sections.
    File(&'a str, &'a [&'a str]),
}

/// Creates sections from the parts of a command line. Each part comes with the number of its word.
pub(super) fn of_command(
    parts: Vec<(u32, Named<'_>)>,
    environment: &dyn Environment,
    problems: &mut Vec<JobProblem>,
) -> Vec<Section> {
    let command = File { name: Arc::from(COMMAND_LINE), folder: PathBuf::new(), included_at: None };
    let mut reader = Reader { environment, problems, sections: Vec::new(), lines: 0, includes: 0, depth: 0 };
    for (line, part) in parts {
        let place = JobLine { file: command.name.clone(), line, included_at: None };
        match part {
            Named::Section(name) => reader.header(&command, place, name, &format!("{name}]")),
            Named::Option(text) => reader.assignment(place, &text),
            Named::File(path, wanted) => {
                let file = File { name: Arc::from(path), folder: folder_of(Path::new(path)), included_at: None };
                let first = reader.sections.len();
                match environment.read(Path::new(path)) {
                    Ok(text) => reader.file(&file, &text),
                    Err(error) => {
                        let kind = ProblemKind::JobFile { path: path.to_owned(), problem: error.to_string() };
                        reader.problem(&place, kind);
                    }
                }
                let read = reader.sections.split_off(first);
                let names: Vec<String> =
                    read.iter().filter(|section| !section.is_global).map(|section| section.name.clone()).collect();
                let missing =
                    wanted.iter().filter(|name| !names.is_empty() && !names.iter().any(|known| known == *name));
                for section in missing {
                    let (section, path) = ((*section).to_owned(), path.to_owned());
                    let kind = ProblemKind::NoSuchSection { section, path, sections: names.clone() };
                    reader.problem(&place, kind);
                }
                let runs = |section: &Section| {
                    section.is_global || wanted.is_empty() || wanted.contains(&section.name.as_str())
                };
                reader.sections.extend(read.into_iter().filter(runs));
            }
        }
    }
    reader.sections
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// A file that is being parsed.
struct File {
    name: Arc<str>,
    folder: PathBuf,
    included_at: Option<Arc<JobLine>>,
}

struct Reader<'a> {
    environment: &'a dyn Environment,
    problems: &'a mut Vec<JobProblem>,
    sections: Vec<Section>,
    lines: usize,
    includes: usize,
    depth: usize,
}

impl Reader<'_> {
    fn problem(&mut self, place: &JobLine, kind: ProblemKind) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(JobProblem::new(place.clone(), kind));
        }
    }

    fn file(&mut self, file: &File, text: &[u8]) {
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let place = JobLine { file: file.name.clone(), line: number, included_at: file.included_at.clone() };
            if self.lines == LINES_MAX {
                let kind = ProblemKind::TooMany { what: "too many lines".to_owned(), limit: LINES_MAX };
                self.problem(&place, kind);
            }
            self.lines += 1;
            if self.lines > LINES_MAX {
                return;
            }
            let code = line.split(|byte| matches!(byte, b';' | b'#')).next().unwrap_or(line);
            match std::str::from_utf8(code) {
                Ok(code) => self.line(file, place, code.trim()),
                Err(_) => self.problem(&place, ProblemKind::NotUtf8),
            }
        }
    }

    fn line(&mut self, file: &File, place: JobLine, line: &str) {
        if line.is_empty() {
            return;
        }
        if let Some(header) = line.strip_prefix('[') {
            self.header(file, place, line, header);
        } else if let Some(path) = include_path(line) {
            self.include(file, &place, path);
        } else {
            self.assignment(place, line);
        }
    }

    fn header(&mut self, file: &File, place: JobLine, line: &str, header: &str) {
        let name = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
        match name {
            None => self.problem(&place, ProblemKind::Section { header: line.to_owned() }),
            Some(name) if file.included_at.is_some() => {
                self.problem(&place, ProblemKind::SectionInInclude { section: name.to_owned() });
            }
            Some(name) => self.sections.push(Section {
                name: name.to_owned(),
                is_global: name.starts_with("global"),
                place,
                assignments: Vec::new(),
            }),
        }
    }

    fn include(&mut self, file: &File, place: &JobLine, path: &str) {
        if self.sections.is_empty() {
            return self.problem(place, ProblemKind::OutsideSection { option: format!("include {path}") });
        }
        if self.depth == INCLUDE_DEPTH_MAX {
            let what = format!("include {path}: too many nested files");
            return self.problem(place, ProblemKind::TooMany { what, limit: INCLUDE_DEPTH_MAX });
        }
        self.includes += 1;
        if self.includes > INCLUDES_MAX {
            let what = format!("include {path}: too many files");
            return self.problem(place, ProblemKind::TooMany { what, limit: INCLUDES_MAX });
        }
        let full = file.folder.join(path);
        match self.environment.read(&full) {
            Ok(text) => {
                let name = full.display().to_string();
                let inner = File {
                    name: Arc::from(name.as_str()),
                    folder: folder_of(&full),
                    included_at: Some(Arc::new(place.clone())),
                };
                self.depth += 1;
                self.file(&inner, &text);
                self.depth -= 1;
            }
            Err(error) => {
                self.problem(place, ProblemKind::Include { path: path.to_owned(), problem: error.to_string() });
            }
        }
    }

    fn assignment(&mut self, place: JobLine, line: &str) {
        let (option, value) = match line.split_once('=') {
            Some((option, value)) => (option.trim(), Some(value.trim())),
            None => (line, None),
        };
        if self.sections.is_empty() {
            return self.problem(&place, ProblemKind::OutsideSection { option: option.to_owned() });
        }
        let mut unset = Vec::new();
        let mut has_keyword = false;
        let expanded = value.map(|value| {
            let value = expand_variables(value, self.environment, &mut unset);
            let expanded = expand_keywords(&value, self.environment);
            has_keyword = expanded != value;
            expanded
        });
        if expanded.as_ref().is_some_and(|value| value.len() > VALUE_BYTES_MAX) {
            let what = format!("{option}: the value is too long");
            return self.problem(&place, ProblemKind::TooMany { what, limit: VALUE_BYTES_MAX });
        }
        let assignment = Assignment {
            option: option.to_owned(),
            value: expanded,
            written: value.unwrap_or("").to_owned(),
            unset,
            has_keyword,
            place,
        };
        if let Some(section) = self.sections.last_mut() {
            section.assignments.push(assignment);
        }
    }
}

/// Returns the path of an `include path` line.
fn include_path(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

/// Replaces each `${NAME}`.
fn expand_variables(value: &str, environment: &dyn Environment, unset: &mut Vec<String>) -> String {
    let mut expanded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        expanded.push_str(before);
        match environment.variable(name).filter(|text| !text.is_empty()) {
            // The length of the value is checked later. After the limit is exceeded, no variable is
            // added. The system limits the length of a single variable.
            Some(text) if expanded.len() <= VALUE_BYTES_MAX => expanded.push_str(&text),
            Some(_) => {}
            None => unset.push(name.to_owned()),
        }
        rest = behind;
    }
    expanded.push_str(rest);
    expanded
}

/// Replaces fio's keywords with properties of the machine.
fn expand_keywords(value: &str, environment: &dyn Environment) -> String {
    if !value.contains('$') {
        return value.to_owned();
    }
    let machine = environment.machine();
    [("$pagesize", machine.page_size_bytes), ("$mb_memory", machine.memory_mib), ("$ncpus", machine.cpus)]
        .iter()
        .fold(value.to_owned(), |value, (keyword, number)| value.replace(keyword, &number.to_string()))
}
