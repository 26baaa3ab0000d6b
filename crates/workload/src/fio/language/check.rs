//! Checks of a whole job file: its jobs with their copies, its ignored and rejected options, and
//! contradictions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::command_line;
use super::engines::EngineBehaviour;
use super::environment::Environment;
use super::error::{JobError, JobProblem, ProblemKind, Short};
use super::files;
use super::options::Treatment;
use super::place::{COMMAND_LINE, JobLine};
use super::remark::{Refusal, Remark};
use super::resolve::{self, resolve};
use super::settings::{Setting, Settings, SettingsReader};
use super::source::{self, Section};
use super::value::{self, Numbers, SizeValue, Value};
use crate::fio::job::{IgnoredOption, Job, JobFile};
use crate::fio::value::{Client, Direction, Files, Mode};

/// Largest number of jobs including copies: fio's limit.
const JOBS_MAX: usize = 4096;
/// Largest size of the options and names of all jobs together, bytes.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// A valid job file: the jobs, and their unsupported parts.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedJobs {
    /// Name for display: the file's name without its folder.
    pub name: String,
    /// All jobs with their copies, including jobs that cannot run.
    pub jobs: Vec<Job>,
    /// Options without effect, in the order of the file.
    pub remarks: Vec<Remark>,
    /// Unsupported options, in the order of the file. Empty if the jobs can run.
    pub refusals: Vec<Refusal>,
}

impl CheckedJobs {
    /// Reads a job file of fio from a path.
    ///
    /// # Errors
    /// The file cannot be read or is not a valid job file.
    pub fn open(path: impl AsRef<Path>, environment: &dyn Environment) -> Result<Self, JobError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        match environment.read(path) {
            Ok(text) => Self::parse(&file, &text, environment),
            Err(source) => Err(JobError::Io { file, source }),
        }
    }

    /// Parses the text of a job file. `file` is its name, for messages and for its includes.
    ///
    /// # Errors
    /// The text is not a valid job file.
    pub fn parse(file: &str, text: &[u8], environment: &dyn Environment) -> Result<Self, JobError> {
        let mut problems = Vec::new();
        let sections = source::read(file, text, environment, &mut problems);
        let name = Path::new(file).file_name().map_or_else(|| file.into(), |name| name.to_string_lossy());
        Self::of_sections(file, &name, &sections, problems)
    }

    /// Parses a command line of fio: see [`JobFile::of_command`].
    pub(super) fn of_command(
        name: &str,
        words: &[String],
        priority: Option<(u8, u8)>,
        environment: &dyn Environment,
    ) -> Result<Self, JobError> {
        let mut problems = Vec::new();
        let sections = command_line::sections(words, priority, environment, &mut problems);
        Self::of_sections(COMMAND_LINE, name, &sections, problems)
    }

    fn of_sections(file: &str, name: &str, sections: &[Section], problems: Vec<JobProblem>) -> Result<Self, JobError> {
        let mut checker = Checker { problems, ..Checker::default() };
        let described = checker.settings(sections);
        if described.is_empty() && checker.problems.is_empty() {
            let place = JobLine { file: file.into(), line: 1, included_at: None };
            checker.problems.push(JobProblem::new(place, ProblemKind::NoJobs));
        }
        for (section, settings) in &described {
            checker.section(section, settings);
        }
        if checker.problems.is_empty() {
            checker.expand(&described);
        }
        if !checker.problems.is_empty() {
            checker.problems.sort_by_key(|problem| (problem.place.outermost().line, problem.place.line));
            let refusals = checker.refusals.into_values().collect();
            return Err(JobError::Invalid { problems: checker.problems, refusals });
        }
        Ok(Self {
            name: name.to_owned(),
            jobs: checker.jobs,
            remarks: checker.remarks.into_values().collect(),
            refusals: checker.refusals.into_values().collect(),
        })
    }

    /// Returns the jobs to run.
    ///
    /// # Errors
    /// [`JobError::Unsupported`] if an option is not supported.
    pub fn into_jobs(self) -> Result<JobFile, JobError> {
        if !self.refusals.is_empty() {
            return Err(JobError::Unsupported(self.refusals));
        }
        let ignored = self.remarks.into_iter().map(|remark| IgnoredOption {
            line: remark.place.outermost().line,
            option: remark.option,
            why: remark.why,
        });
        Ok(JobFile { name: self.name, jobs: self.jobs, ignored: ignored.collect() })
    }
}

/// Findings about a file.
#[derive(Default)]
struct Checker {
    problems: Vec<JobProblem>,
    jobs: Vec<Job>,
    /// Remarks by place, so that a remark about many jobs appears once. The key has the line in the
    /// job file, the line in the file of the remark (which can be an included file), and 0.
    remarks: BTreeMap<(u32, u32, usize), Remark>,
    refusals: BTreeMap<(u32, u32, usize), Refusal>,
    /// Names of the jobs so far, for `wait_for`.
    names: BTreeSet<String>,
}

/// Pairs of options that contradict each other.
const EXCLUSIVE: [(&str, &str); 3] =
    [("rate", "rate_iops"), ("rate_min", "rate_iops_min"), ("cmdprio_percentage", "cmdprio_bssplit")];

/// Names in /dev that are not disks.
const NO_DISKS: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin"];

impl Checker {
    /// Returns the settings of each section.
    fn settings<'a>(&mut self, sections: &'a [Section]) -> Vec<(&'a Section, Settings)> {
        let mut reader = SettingsReader { problems: &mut self.problems, order: 0 };
        let mut globals = Settings::default();
        let mut described = Vec::new();
        for section in sections {
            if section.is_global {
                reader.add(&mut globals, section);
                continue;
            }
            if described.len() == JOBS_MAX {
                let kind = ProblemKind::TooMany { what: "too many jobs".to_owned(), limit: JOBS_MAX };
                self.problems.push(JobProblem::new(section.place.clone(), kind));
                break;
            }
            let mut settings = globals.clone();
            reader.add(&mut settings, section);
            settings.keep_own_engine();
            described.push((section, settings));
        }
        described
    }

    fn contradiction(&mut self, place: &JobLine, option: &str, problem: &str, remedy: &str) {
        let kind = ProblemKind::Contradiction {
            option: option.to_owned(),
            problem: problem.to_owned(),
            remedy: remedy.to_owned(),
        };
        self.problems.push(JobProblem::new(place.clone(), kind));
    }

    fn remark(&mut self, place: &JobLine, option: &str, value: &str, why: &str) {
        let key = (place.outermost().line, place.line, 0);
        self.remarks.entry(key).or_insert_with(|| Remark {
            place: place.clone(),
            option: option.to_owned(),
            value: value.to_owned(),
            why: why.to_owned(),
        });
    }

    fn refuse(&mut self, setting: &Setting, why: &str, instead: &str) {
        let key = (setting.place.outermost().line, setting.place.line, 0);
        self.refusals.entry(key).or_insert_with(|| Refusal {
            place: setting.place.clone(),
            option: setting.called.clone(),
            value: setting.text.clone(),
            why: why.to_owned(),
            instead: instead.to_owned(),
        });
    }

    /// Checks one section, except its copies.
    fn section(&mut self, section: &Section, settings: &Settings) {
        let job = resolve(settings, &section.name);
        for setting in settings.in_order() {
            self.treat(setting, settings, &job);
        }
        self.contradictions(section, settings, &job);
        if settings.engine().is_supported() {
            self.size(section, settings, &job);
            if !job.direct && job.replay.is_none() && job.client == Client::Async && job.io_depth > 1 {
                let given = settings.later_of("direct", "buffered");
                let place = given.map_or(&section.place, |setting| &setting.place);
                let (option, value) = given.map_or(("buffered", ""), |setting| (&setting.called, &setting.text));
                self.remark(
                    place,
                    option,
                    value,
                    "this engine executes buffered I/Os one after another, even if iodepth is above 1; libaio does \
                     the same",
                );
            }
        }
        self.names.insert(job.name);
    }

    /// Decides whether iosched honours, ignores or rejects one option.
    fn treat(&mut self, setting: &Setting, settings: &Settings, job: &Job) {
        if let Value::NotModelled { why, instead } = setting.value {
            return self.refuse(setting, why, instead);
        }
        if !setting.option.engines.is_empty() && !settings.engine().is_supported() {
            return;
        }
        match setting.option.treatment {
            Treatment::Honoured => self.treat_honoured(setting, settings, job),
            Treatment::OfEngine => {}
            Treatment::NoEffect { why } => self.remark(&setting.place, &setting.called, &setting.text, why),
            Treatment::With(other) => {
                if settings.get(other).is_none_or(is_harmless) {
                    let why = format!("takes effect only with {other}");
                    self.remark(&setting.place, &setting.called, &setting.text, &why);
                }
            }
            Treatment::Unsupported { why, instead, .. } => {
                if !is_harmless(setting) {
                    self.refuse(setting, why, instead);
                }
            }
        }
    }

    /// Checks the values of honoured options for unsupported values.
    fn treat_honoured(&mut self, setting: &Setting, settings: &Settings, job: &Job) {
        let remark = |checker: &mut Self, why: &str| {
            checker.remark(&setting.place, &setting.called, &setting.text, why);
        };
        match setting.option.name {
            "ioengine" => match settings.engine().behaviour {
                EngineBehaviour::Refused { why, instead } => self.refuse(setting, why, instead),
                EngineBehaviour::Runs { note: "", .. } => {}
                EngineBehaviour::Runs { note, .. } => remark(self, note),
            },
            "verify" if !is_off(&setting.text) => {
                let reads_back = settings.is_on("do_verify").unwrap_or(true);
                if reads_back && job.mode != Mode::Read && job.mode != Mode::Trim {
                    let why = "iosched does not model the comparison of read data with the written data";
                    self.refuse(
                        setting,
                        why,
                        "add do_verify=0 to skip the comparison; to read the data, add a job with rw=read and wait_for",
                    );
                } else {
                    remark(self, "modelled devices keep no data, so iosched compares nothing");
                }
            }
            "filename" => {
                if let Files::Named(names) = &job.files
                    && let Some(name) = names.iter().find(|name| NO_DISKS.contains(&name.as_str()) || *name == "-")
                {
                    self.refuse(setting, &format!("{name} is not a disk"), "name a block device or a file");
                }
            }
            "iodepth" if job.client == Client::Sync && job.io_depth > 1 && settings.engine().is_supported() => {
                remark(self, &format!("ioengine={} does one I/O at a time", job.io_engine));
            }
            "io_submit_mode" if setting.text == "offload" => {
                remark(
                    self,
                    "up to iodepth I/Os are in flight, as with an asynchronous engine. In fio, several threads \
                     submit these I/Os; in iosched, the job submits them",
                );
            }
            "time_based" if settings.is_on("time_based") == Some(true) && !job.time_based => {
                remark(self, "takes effect only with runtime");
            }
            "latency_target" if settings.get("latency_window").is_none() => {
                let window_s = resolve::LATENCY_WINDOW_NS / 1_000_000_000;
                remark(self, &format!("latency_window is missing; iosched uses {window_s} s"));
            }
            _ => {}
        }
        if let Value::Size(SizeValue::Zones(_)) = setting.value
            && settings.get("zonemode").is_none_or(is_harmless)
        {
            let problem = "the value is a number of zones, but the job does not have zonemode=zbd";
            self.contradiction(&setting.place, &setting.called, problem, "give a number of bytes, or a percentage");
        }
    }

    fn contradictions(&mut self, section: &Section, settings: &Settings, job: &Job) {
        for (one, other) in EXCLUSIVE {
            let both = match (settings.value(one), settings.value(other)) {
                (Some(Value::Numbers(one)), Some(Value::Numbers(other))) => {
                    let is_set = |value: &Option<u64>| value.is_some_and(|value| value > 0);
                    Direction::ALL.iter().any(|&direction| is_set(one.of(direction)) && is_set(other.of(direction)))
                }
                (Some(_), Some(_)) => true,
                _ => false,
            };
            if let (true, Some(later)) = (both, settings.later_of(one, other)) {
                let first = if later.option.name == one { other } else { one };
                self.contradiction(
                    &later.place,
                    &later.called,
                    &format!("the option conflicts with {first}"),
                    "leave out one \
                    of the two options",
                );
            }
        }
        for (max, min, max_name, min_name) in [
            (&job.rate_bytes_per_s, &job.rate_min_bytes_per_s, "rate", "rate_min"),
            (&job.rate_iops, &job.rate_iops_min, "rate_iops", "rate_iops_min"),
        ] {
            let exceeds = |direction: &Direction| match (max.of(*direction), min.of(*direction)) {
                (Some(max), Some(min)) => min > max,
                _ => false,
            };
            if let (true, Some(setting)) = (Direction::ALL.iter().any(exceeds), settings.get(min_name)) {
                let problem = format!("more than {max_name}");
                self.contradiction(&setting.place, &setting.called, &problem, "give a smaller value");
            }
        }
        if let (true, Some(setting)) = (files::are_too_many(settings), settings.get("nrfiles")) {
            let what = format!("{}={}: too many jobs share files with the same name", setting.called, setting.text);
            let kind = ProblemKind::TooMany { what, limit: files::NAMES_MAX as usize };
            self.problems.push(JobProblem::new(setting.place.clone(), kind));
        }
        if let Some(setting) = settings.get("wait_for")
            && !self.names.contains(&setting.text)
        {
            let problem = format!("no job before [{}] has the name {}", Short(&section.name), Short(&setting.text));
            self.contradiction(&setting.place, "wait_for", &problem, "name a job further up in the file");
        }
    }

    /// Checks that the size of a job is known and at least one block.
    fn size(&mut self, section: &Section, settings: &Settings, job: &Job) {
        let is_device = matches!(&job.files, Files::Named(names) if names.iter().all(|name| name.starts_with("/dev/")));
        let is_known = job.size.is_some() || job.file_size.is_some() || job.fill_device || job.replay.is_some();
        // Zones replace the size, and have a separate error.
        if !is_device && !is_known && settings.get("size").is_none_or(|size| size.text == "0") {
            let problem = format!(
                "the option is missing for job [{}], and neither a device nor a log gives the size",
                Short(&section.name)
            );
            self.contradiction(&section.place, "size", &problem, "add size=, or filename=/dev/...");
        }
        let smallest = job.mode.directions().iter().map(|&direction| job.block_size.of(direction).min_bytes()).min();
        if let (Some(crate::fio::value::Size::Bytes(size)), Some(smallest), Some(setting)) =
            (job.size, smallest, settings.get("size"))
            && size < smallest
        {
            let problem = format!("{size} bytes are less than one block of {smallest} bytes");
            self.contradiction(&setting.place, &setting.called, &problem, "give a larger size or a smaller bs");
        }
    }

    /// Creates the jobs with their copies.
    fn expand(&mut self, described: &[(&Section, Settings)]) {
        let mut text_bytes = 0;
        let mut group = 0;
        for (section, settings) in described {
            let mut first = resolve(settings, &section.name);
            let begins_group = first.stonewall || settings.is_on("new_group") == Some(true);
            if begins_group && !self.jobs.is_empty() {
                group += 1;
            }
            first.group = group;
            first.line = section.place.outermost().line;
            let all = settings.in_order();
            let written = |is_global| {
                let those = all.iter().filter(move |setting| setting.is_global == is_global);
                those.map(|setting| (setting.option.name.to_owned(), setting.text.clone())).collect()
            };
            first.options = written(false);
            first.global_options = written(true);
            for copy in 0..settings.small("numjobs").unwrap_or(1) {
                let mut job = first.clone();
                job.copy = copy;
                job.files = files::files(settings, &job.name, copy);
                job.stonewall &= copy == 0;
                text_bytes += text_bytes_of(&job);
                let too_many = if self.jobs.len() == JOBS_MAX {
                    Some(("there are too many jobs, including their copies", JOBS_MAX))
                } else if text_bytes > TEXT_BYTES_MAX {
                    Some(("the options of all jobs, including their copies, have too many bytes", TEXT_BYTES_MAX))
                } else {
                    None
                };
                if let Some((what, limit)) = too_many {
                    let kind = ProblemKind::TooMany { what: what.to_owned(), limit };
                    return self.problems.push(JobProblem::new(section.place.clone(), kind));
                }
                self.jobs.push(job);
            }
        }
    }
}

fn text_bytes_of(job: &Job) -> usize {
    let options = job.options.iter().chain(&job.global_options);
    let options: usize = options.map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>()).sum();
    let files = match &job.files {
        Files::Named(names) => names.iter().map(|name| name.len() + size_of::<String>()).sum(),
        Files::Own(_) => 0,
    };
    options + files + size_of::<Job>()
}

/// Returns whether the value of an option disables it.
fn is_harmless(setting: &Setting) -> bool {
    let unless = match setting.option.treatment {
        Treatment::Unsupported { unless, .. } => unless,
        _ => return is_off(&setting.text) || !matches!(setting.value, Value::NotModelled { .. } | Value::Text(_)),
    };
    let numbers = Numbers { kb_base: 1024, bare: false };
    let same = |value: &&str| value::read(setting.option, value, numbers).is_ok_and(|value| value == setting.value);
    unless.iter().any(same)
}

/// Returns whether an option such as `verify` is switched off.
fn is_off(text: &str) -> bool {
    matches!(text, "0" | "none")
}
