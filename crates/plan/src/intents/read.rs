//! Reads intents files. Every error names the line, and how to correct it.

use std::path::{Path, PathBuf};

use iosched_lab::did_you_mean;
use iosched_workload::fio::Environment;
use iosched_workload::{Workload, WorkloadError, fio};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Intents, IntentsError, Unit};
use crate::check::unknown;
use crate::goal::{Bound, Goal, WantedGoal};
use crate::load::{endless, scaled};

/// Fields of the file and of a unit.
const FIELDS: [&str; 4] = ["device", "profile", "kernel", "unit"];
const UNIT_FIELDS: [&str; 4] = ["match", "workload", "goal", "scale"];
/// The word that makes the goals of a unit soft.
const BEST_EFFORT: &str = "best effort";
/// The workload of a unit that is recorded before the plan.
const OBSERVED: &str = "observed";
/// Remedy for a workload that is a program, because a plan needs a recording of the program.
const INSTEAD: &str = "; record a trace of the program with `iosched record`, or describe its I/O as a fio job file";
/// Smallest and largest factor of a unit's load.
const SCALE_MIN: f64 = 0.1;
const SCALE_MAX: f64 = 10.0;
/// Largest number of units. Names of units and cgroups stay readable, and a plan takes seconds.
const UNITS_MAX: usize = 32;
/// Largest number of devices.
const DEVICES_MAX: usize = 64;

impl Intents {
    /// Reads an intents file and the workloads that it names. Their paths are relative to the file.
    ///
    /// # Errors
    /// The file or a workload cannot be read, a field is missing, unknown or wrong, or the file has
    /// several devices.
    pub fn open(path: &Path, environment: &dyn Environment) -> Result<Self, IntentsError> {
        only(&path.display().to_string(), Self::open_fleet(path, environment)?)
    }

    /// Reads an intents file like [`Intents::open`], but accepts several devices. Returns the
    /// intents of each device in the order of the file.
    ///
    /// # Errors
    /// The errors of [`Intents::open`], except the error about several devices.
    pub fn open_fleet(path: &Path, environment: &dyn Environment) -> Result<Vec<Self>, IntentsError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| IntentsError {
            file: name.clone(),
            line: 1,
            problem: format!("cannot be read: {error}"),
        })?;
        Self::parse_with(&name, &text, path.parent().unwrap_or(Path::new("")), environment)
    }

    /// Parses the text of an intents file. `name` is the name of the file in errors. Paths of
    /// workloads are relative to `folder`.
    ///
    /// # Errors
    /// The errors of [`Intents::open`].
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, IntentsError> {
        only(name, Self::parse_with(name, text, folder, &fio::NoVariables)?)
    }

    fn parse_with(
        name: &str,
        text: &str,
        folder: &Path,
        environment: &dyn Environment,
    ) -> Result<Vec<Self>, IntentsError> {
        let reader = Reader { name, text, folder, environment };
        let table = DeTable::parse(text).map_err(|error| {
            reader.error(error.span().map_or(0, |span| span.start), format!("not TOML: {}", error.message()))
        })?;
        reader.file(table.get_ref())
    }
}

/// Returns the intents of the only device.
fn only(name: &str, mut fleet: Vec<Intents>) -> Result<Intents, IntentsError> {
    let count = fleet.len();
    let one = fleet.pop().filter(|_| count == 1);
    one.ok_or_else(|| {
        let problem = format!("device: the file has {count} devices, but only one device is possible here");
        IntentsError { file: name.to_owned(), line: 1, problem }
    })
}

struct Reader<'t> {
    name: &'t str,
    text: &'t str,
    folder: &'t Path,
    environment: &'t dyn Environment,
}

type Entry<'t> = (&'t str, usize, &'t Spanned<DeValue<'t>>);

impl Reader<'_> {
    /// Returns an error at a position of the text.
    fn error(&self, at: usize, problem: impl Into<String>) -> IntentsError {
        let line = 1 + self.text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        IntentsError { file: self.name.to_owned(), line, problem: problem.into() }
    }

    /// Checks the names of the entries of a table. Returns the entries in the order of the file.
    fn entries<'t>(&self, table: &'t DeTable<'t>, place: &str, known: &[&str]) -> Result<Vec<Entry<'t>>, IntentsError> {
        let mut entries: Vec<Entry<'t>> =
            table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span().start, value)).collect();
        entries.sort_by_key(|&(_, at, _)| at);
        let unknown = entries.iter().find(|(key, ..)| !known.is_empty() && !known.contains(key));
        if let Some(&(key, at, _)) = unknown {
            let meant = did_you_mean(key, known.iter().copied());
            return Err(self
                .error(at, format!("{place}{key}: unknown field; the known fields are {}{meant}", known.join(", "))));
        }
        Ok(entries)
    }

    fn string<'t>(&self, field: &str, value: &'t Spanned<DeValue<'t>>) -> Result<&'t str, IntentsError> {
        let wrong = |found: &str| format!("{field}: expected a text in quotes, found a value of type {found}");
        value.get_ref().as_str().ok_or_else(|| self.error(value.span().start, wrong(value.get_ref().type_str())))
    }

    /// Returns a text, or the texts of a list, with their positions.
    fn strings<'t>(&self, field: &str, value: &'t Spanned<DeValue<'t>>) -> Result<Vec<(&'t str, usize)>, IntentsError> {
        match value.get_ref() {
            DeValue::Array(array) => {
                array.iter().map(|text| Ok((self.string(field, text)?, text.span().start))).collect()
            }
            _ => Ok(vec![(self.string(field, value)?, value.span().start)]),
        }
    }

    fn file(&self, table: &DeTable<'_>) -> Result<Vec<Intents>, IntentsError> {
        let (mut devices, mut profiles) = (None, None);
        let mut kernel = None;
        let mut units: Vec<(Unit, usize)> = Vec::new();
        for (key, at, value) in self.entries(table, "", &FIELDS)? {
            match key {
                "device" => devices = Some((self.strings(key, value)?, at)),
                "profile" => profiles = Some((self.strings(key, value)?, at)),
                "kernel" => {
                    let text = self.string(key, value)?;
                    kernel = Some(text.parse().map_err(|error| self.error(at, format!("kernel: {error}")))?);
                }
                _ => {
                    let Some(table) = value.get_ref().as_table() else {
                        return Err(self.error(at, "unit: expected a table such as [unit.database]"));
                    };
                    for (name, at, value) in self.entries(table, "unit.", &[])? {
                        units.push((self.unit(name, at, value)?, at));
                    }
                }
            }
        }
        let Some((devices, devices_at)) = devices else {
            return Err(
                self.error(0, "device: the field is missing; write device = \"/dev/sdb\" or the name of a profile")
            );
        };
        let places = self.places(&devices, devices_at, profiles)?;
        if units.is_empty() {
            return Err(self.error(0, "unit: the file has no unit; add a unit with [unit.NAME]"));
        }
        if units.len() > UNITS_MAX {
            return Err(self.error(units[UNITS_MAX].1, format!("a plan can have {UNITS_MAX} units at most")));
        }
        self.check_units(&units)?;
        if let Some((unit, at)) = units.iter().find(|(unit, _)| unit.needs_recording)
            && let Some((_, profile)) = places.iter().find(|(device, _)| device.is_none())
        {
            let problem = format!(
                "unit.{}: workload = \"{OBSERVED}\" records a device, but {profile:?} is a profile and not a device. \
                 Write device = \"/dev/sdb\" and profile = {profile:?}, or set workload to a trace or a fio job file",
                unit.name
            );
            return Err(self.error(*at, problem));
        }
        let name = Path::new(self.name).file_name();
        let name = name.map_or(self.name.into(), |name| name.to_string_lossy().into_owned());
        let units: Vec<Unit> = units.into_iter().map(|(unit, _)| unit).collect();
        let intents = |(device, profile)| Intents {
            name: name.clone(),
            device,
            profile,
            kernel,
            units: units.clone(),
            notes: Vec::new(),
        };
        Ok(places.into_iter().map(intents).collect())
    }

    /// Returns the device file, if there is one, and the profile of each device.
    fn places(
        &self,
        devices: &[(&str, usize)],
        devices_at: usize,
        profiles: Option<(Vec<(&str, usize)>, usize)>,
    ) -> Result<Vec<(Option<String>, String)>, IntentsError> {
        if devices.is_empty() {
            return Err(self.error(devices_at, "device: the list is empty; name at least one device or profile"));
        }
        if let Some((_, at)) = devices.get(DEVICES_MAX) {
            return Err(self.error(*at, format!("device: a list can have {DEVICES_MAX} devices at most")));
        }
        for (number, (device, at)) in devices.iter().enumerate() {
            if devices[..number].iter().any(|(other, _)| other == device) {
                return Err(self.error(*at, format!("device: {device:?} is in the list twice")));
            }
        }
        let is_file = |device: &str| device.starts_with("/dev/");
        let files = devices.iter().filter(|(device, _)| is_file(device)).count();
        match &profiles {
            Some(_) if files == 0 => {
                let problem =
                    format!("device = {:?} already names a profile, so remove the field \"profile\"", devices[0].0);
                return Err(self.error(devices_at, problem));
            }
            Some((profiles, at)) if profiles.len() != 1 && profiles.len() != files => {
                let problem = format!(
                    "profile: there are {} profiles for {files} device files; write one profile for all, or one for \
                     each device file in the same order",
                    profiles.len()
                );
                return Err(self.error(*at, problem));
            }
            _ => {}
        }
        let mut of_files = profiles.iter().flat_map(|(profiles, _)| profiles.iter().cycle());
        let place = |&(device, _): &(&str, usize)| {
            if !is_file(device) {
                return Ok((None, self.relative(device)));
            }
            let profile = of_files.next().map(|(profile, _)| self.relative(profile));
            let profile = profile.ok_or_else(|| {
                let problem = format!(
                    "device = {device:?}: a plan needs a model of the device; add profile = \"FILE.toml\", which \
                     `iosched calibrate {device} --output FILE.toml` writes"
                );
                self.error(devices_at, problem)
            })?;
            Ok((Some(device.to_owned()), profile))
        };
        devices.iter().map(place).collect()
    }

    /// Makes the path of a profile relative to the folder of the file. Does not change the name of
    /// a built-in profile.
    fn relative(&self, profile: &str) -> String {
        if iosched_disk::is_path(profile) && !Path::new(profile).is_absolute() {
            self.folder.join(profile).display().to_string()
        } else {
            profile.to_owned()
        }
    }

    /// Checks conditions that concern several units.
    fn check_units(&self, units: &[(Unit, usize)]) -> Result<(), IntentsError> {
        for (number, (unit, at)) in units.iter().enumerate() {
            for wanted in &unit.goals {
                let Goal::Before(other) = &wanted.goal else { continue };
                if *other == unit.name {
                    return Err(self.error(
                        *at,
                        format!(
                            "unit.{}: goal = \"before {other}\" names the unit itself; name another unit",
                            unit.name
                        ),
                    ));
                }
                if !units.iter().any(|(unit, _)| unit.name == *other) {
                    let meant = did_you_mean(other, units.iter().map(|(unit, _)| unit.name.as_str()));
                    return Err(self.error(*at, format!("unit.{}: goal: there is no unit {other:?}{meant}", unit.name)));
                }
            }
            let path = unit.cgroup_path();
            let twin = units[..number].iter().find(|(other, _)| !path.is_empty() && other.cgroup_path() == path);
            if let Some((twin, _)) = twin {
                let problem = format!(
                    "unit.{}: match selects the same cgroup as in unit.{}; each unit needs its own cgroup",
                    unit.name, twin.name
                );
                return Err(self.error(*at, problem));
            }
        }
        let sharing: Vec<&(Unit, usize)> = units
            .iter()
            .filter(|(unit, _)| unit.goals.iter().any(|wanted| matches!(wanted.goal, Goal::Share(_))))
            .collect();
        match sharing.as_slice() {
            [(unit, at)] => {
                let problem =
                    format!("unit.{}: goal: no other unit has a share; give at least one more unit a share", unit.name);
                Err(self.error(*at, problem))
            }
            _ => Ok(()),
        }
    }

    fn unit(&self, name: &str, at: usize, value: &Spanned<DeValue<'_>>) -> Result<Unit, IntentsError> {
        let place = format!("unit.{name}");
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(
                self.error(at, format!("{place}: the name of a unit can contain only letters, digits and - _ . @"))
            );
        }
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.error(at, format!("{place}: expected a table with match, workload and goal")));
        };
        let (mut target, mut workload, mut goals, mut scale) = (None, None, Vec::new(), 1.0);
        for (key, at, value) in self.entries(table, &format!("{place}."), &UNIT_FIELDS)? {
            let field = format!("{place}.{key}");
            match key {
                "match" => {
                    let text = self.string(&field, value)?;
                    target = Some(text.parse().map_err(|error| self.error(at, format!("{place}: {error}")))?);
                }
                "workload" => workload = Some((self.string(&field, value)?, at)),
                "goal" => goals = self.goals(&place, value)?,
                _ => scale = self.scale(&field, value)?,
            }
        }
        let missing = |field: &str, example: &str| {
            self.error(at, format!("{place}: the field {field} is missing; write {field} = {example:?}"))
        };
        let (written, workload_at) = workload.ok_or_else(|| missing("workload", "backup.fio"))?;
        let target = target.ok_or_else(|| missing("match", "system.slice/backup.service"))?;
        let name = name.to_owned();
        if written == OBSERVED {
            if let Some(reason) = unknown(&target) {
                return Err(self.error(workload_at, format!("{place}.workload = \"{OBSERVED}\": {reason}")));
            }
            let (path, workload) = (PathBuf::new(), Workload::Tasks(Box::default()));
            return Ok(Unit { name, target, path, workload, needs_recording: true, scale, goals });
        }
        let path = self.folder.join(written);
        let workload = scaled(&endless(&self.workload(&place, written, &path, workload_at)?), scale);
        Ok(Unit { name, target, path, workload, needs_recording: false, scale, goals })
    }

    fn workload(&self, place: &str, written: &str, path: &Path, at: usize) -> Result<Workload, IntentsError> {
        // The first word of a command line is not a path relative to the folder.
        let is_command = !path.exists() && (written.contains(' ') || !written.contains(['.', '/']));
        let opened = Workload::open_with(if is_command { Path::new(written) } else { path }, self.environment);
        let workload = opened.map_err(|error| {
            let lacks_remedy = matches!(&error, WorkloadError::NoSuchProgram { remedy, .. } if remedy.is_empty());
            let remedy = if lacks_remedy { INSTEAD } else { "" };
            self.error(at, format!("{place}.workload: {error}{remedy}"))
        })?;
        if matches!(workload, Workload::Application(_)) {
            let problem = format!(
                "{place}.workload: {written:?}: iosched cannot simulate this program together with other units{INSTEAD}"
            );
            return Err(self.error(at, problem));
        }
        Ok(workload)
    }

    fn scale(&self, field: &str, value: &Spanned<DeValue<'_>>) -> Result<f64, IntentsError> {
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) => integer.as_str().parse::<f64>().ok(),
            _ => None,
        };
        number.filter(|scale| (SCALE_MIN..=SCALE_MAX).contains(scale)).ok_or_else(|| {
            self.error(value.span().start, format!("{field}: expected a number from {SCALE_MIN} to {SCALE_MAX}"))
        })
    }

    fn goals(&self, place: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<WantedGoal>, IntentsError> {
        let field = format!("{place}.goal");
        let texts = self.strings(&field, value)?;
        let hard = !texts.iter().any(|(text, _)| text.trim() == BEST_EFFORT);
        let goals = texts.iter().filter(|(text, _)| text.trim() != BEST_EFFORT);
        let parse = |&(text, at): &(&str, usize)| {
            let goal = text.parse::<Goal>().map_err(|error| self.error(at, format!("{place}: {error}")))?;
            Ok(WantedGoal { goal, hard })
        };
        let found: Vec<WantedGoal> = goals.clone().map(parse).collect::<Result<_, _>>()?;
        for (number, (text, at)) in goals.enumerate() {
            let excluded = |other: &usize| exclude_each_other(&found[*other].goal, &found[number].goal);
            if let Some(other) = (0..number).find(excluded) {
                let other = &found[other].goal;
                let problem = format!("{place}: goal: \"{other}\" and {text:?} exclude each other; change one of them");
                return Err(self.error(*at, problem));
            }
        }
        Ok(found)
    }
}

/// Returns whether no run can meet both goals: one asks for a higher rate than the other allows.
fn exclude_each_other(a: &Goal, b: &Goal) -> bool {
    let least = |goal: &Goal| match *goal {
        Goal::Bound(metric, Bound::AtLeast(value)) | Goal::Reservation(metric, value) => Some((metric, value)),
        _ => None,
    };
    let most = |goal: &Goal| match *goal {
        Goal::Bound(metric, Bound::AtMost(value)) | Goal::Limit(metric, value) => Some((metric, value)),
        _ => None,
    };
    let exclude = |low: &Goal, high: &Goal| {
        least(low).zip(most(high)).is_some_and(|((of_low, low), (of_high, high))| of_low == of_high && low > high)
    };
    exclude(a, b) || exclude(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/intents")
    }

    fn parse(text: &str) -> Result<Intents, IntentsError> {
        Intents::parse("i.toml", text, &folder())
    }

    const DB: &str = "[unit.db]\nmatch = \"system.slice/db.service\"\nworkload = \"db.fio\"\n";

    #[test]
    fn units_keep_the_order_of_the_file_and_their_goals() {
        let text = format!(
            "device = \"sata-ssd\"\nkernel = \"6.6\"\n{DB}goal = \"p99(read) < 5 ms\"\n\
             [unit.backup]\nmatch = \"backup.slice\"\nworkload = \"backup.fio\"\nscale = 2\n\
             goal = [\"throughput >= 50 MB/s\", \"best effort\"]\n"
        );
        let intents = parse(&text).unwrap();
        let names: Vec<&str> = intents.units.iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(names, ["db", "backup"]);
        assert!(intents.units[0].goals[0].hard && !intents.units[1].goals[0].hard);
        assert_eq!((intents.units[1].scale, intents.device, intents.profile.as_str()), (2.0, None, "sata-ssd"));
        let paths: Vec<String> = intents.units.iter().map(Unit::cgroup_path).collect();
        assert_eq!(paths, ["system.slice/db.service", "backup.slice"]);
    }

    #[test]
    fn goals_that_exclude_each_other_are_refused() {
        let error = |goal: &str| parse(&format!("device = \"sata-ssd\"\n{DB}goal = {goal}\n")).map(|_| ());
        let refused = error("[\"throughput >= 40 MB/s\", \"limit 20 MB/s\"]").unwrap_err().to_string();
        let expected = "i.toml:5: unit.db: goal: \"throughput >= 40 MB/s\" and \"limit 20 MB/s\" exclude each other; \
                        change one of them";
        assert_eq!(refused, expected);
        assert!(error("[\"limit 20 MB/s\", \"throughput >= 20 MB/s\", \"iops >= 100\"]").is_ok());
    }

    #[test]
    fn each_device_of_a_list_has_its_profile() {
        let text = |profile: &str| {
            format!("device = [\"/dev/sdb\", \"nvme\", \"/dev/sdc\"]\nprofile = {profile}\n{DB}goal = \"iops >= 5\"\n")
        };
        let places = |profile: &str| -> Vec<(Option<String>, String)> {
            let fleet = Intents::parse_with("i.toml", &text(profile), &folder(), &fio::NoVariables).unwrap();
            fleet.into_iter().map(|intents| (intents.device, intents.profile)).collect()
        };
        let expected = |b: &str, c: &str| {
            let file = |name: &str, profile: &str| (Some(name.to_owned()), profile.to_owned());
            [file("/dev/sdb", b), (None, "nvme".to_owned()), file("/dev/sdc", c)]
        };
        assert_eq!(places("\"sata-ssd\""), expected("sata-ssd", "sata-ssd"));
        assert_eq!(places("[\"sata-ssd\", \"sata-7200\"]"), expected("sata-ssd", "sata-7200"));
    }

    #[test]
    fn errors_name_the_line_and_the_problem() {
        for (text, line, expected) in [
            (DB.to_owned(), 1, "device: the field is missing"),
            ("device = \"sata-ssd\"\n".to_owned(), 1, "add a unit with [unit.NAME]"),
            (format!("device = \"/dev/sdb\"\n{DB}"), 1, "iosched calibrate /dev/sdb"),
            (format!("device = \"sata-ssd\"\nprofil = \"x\"\n{DB}"), 2, "did you mean profile?"),
            (format!("device = \"sata-ssd\"\n{DB}gaol = \"share 2\"\n"), 5, "did you mean goal?"),
            (format!("device = \"sata-ssd\"\n{DB}goal = \"p99(raed) < 5 ms\"\n"), 5, "there is no metric p99(raed)"),
            (format!("device = \"sata-ssd\"\n{DB}goal = [\n\"iops >= 5\",\n\"share\"]\n"), 7, "above 0 after `share`"),
            (format!("device = \"sata-ssd\"\n{DB}goal = 5\n"), 5, "expected a text in quotes"),
            (format!("device = \"sata-ssd\"\n{DB}goal = \"before backups\"\n"), 2, "there is no unit \"backups\""),
            (format!("device = \"sata-ssd\"\n{DB}goal = \"share 2\"\n"), 2, "no other unit has a share"),
            (format!("device = \"sata-ssd\"\n{DB}scale = 0\n"), 5, "from 0.1 to 10"),
            ("device = \"sata-ssd\"\n[unit.db]\nmatch = \"a\"\n".to_owned(), 2, "write workload = \"backup.fio\""),
            ("device = \"sata-ssd\"\n[unit.db]\nmatch = \"a\"\nworkload = \"none.fio\"\n".to_owned(), 4, "none.fio"),
            (
                "device = \"sata-ssd\"\n[unit.db]\nmatch = \"a\"\nworkload = \"observed\"\n".to_owned(),
                2,
                "is a profile and not a device",
            ),
            (
                "device = \"/dev/sdb\"\n[unit.db]\nmatch = \"container:a\"\nworkload = \"observed\"\n".to_owned(),
                4,
                "write the path of the cgroup",
            ),
            (format!("device = []\n{DB}"), 1, "the list is empty"),
            (format!("device = [\"nvme\",\n\"nvme\"]\n{DB}"), 2, "\"nvme\" is in the list twice"),
            (format!("device = [\"nvme\", \"sata-ssd\"]\n{DB}"), 1, "the file has 2 devices"),
            (
                format!("device = [\"/dev/a\", \"/dev/b\"]\nprofile = [\"x\", \"y\", \"z\"]\n{DB}"),
                2,
                "3 profiles for 2 device files",
            ),
            ("device = \n".to_owned(), 1, "not TOML"),
            (
                format!("device = \"sata-ssd\"\n{DB}[unit.b]\nmatch = \"db.service\"\nworkload = \"db.fio\"\n"),
                5,
                "same cgroup as in unit.db",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.problem.contains(expected), "{text}: {error}");
            assert_eq!(error.line, line, "{text}: {error}");
        }
    }
}
