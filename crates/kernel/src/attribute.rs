//! Lists, reads and writes attributes in `/sys/block/<dev>/queue`.
//!
//! [`iosched`] declares the attributes that its request queue shares with the kernel. This module
//! declares the attributes that only the kernel's queues have. For an attribute without a
//! declaration, iosched shows the value as the kernel shows it, and writes values without checks.
//!
//! A value that a cgroup's file has for a disk is also an attribute of the disk.
//! [`cgroup`](mod@crate::cgroup) describes the names of these attributes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use iosched::{RequestQueue, Spec, TextSpec, TunableError, Unit};
use rustix::fs::OFlags;

use crate::block::BlockDevice;
use crate::cgroup::{self, CgroupError, CgroupFile, CgroupValueError};
use crate::roots::{names, read};
use iosched_system::open_directory::OpenDirectory;

/// Directory of the present scheduler's tunables, below `queue`.
const ELEVATOR: &str = "iosched/";

/// Usual values of a kernel's `HZ`: the number of jiffies per second.
const HZ: [u32; 4] = [100, 250, 300, 1000];

/// Declaration of an attribute whose values are words, not numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// File name in sysfs.
    pub name: &'static str,
    /// Accepted values.
    pub values: &'static [&'static str],
    /// Description in one line.
    pub doc: &'static str,
}

/// Declaration of an attribute. It determines the form and the accepted values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declaration {
    /// A number.
    Number(&'static Spec),
    /// One of several words.
    Choice(&'static Choice),
    /// A value that a file of a cgroup has for the disk.
    Cgroup(&'static CgroupFile),
    /// Several numbers of a scheduler. The file shows them with words around them.
    Text(&'static TextSpec),
}

/// Reason why a declaration does not accept a value. The message contains the attribute, the value
/// and the accepted values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ValueError {
    /// Not a number in range, or not a text that the scheduler accepts.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// Not one of the words.
    #[error("{}: {value:?} is not a valid value; the value must be one of {}", choice.name, choice.values.join(", "))]
    Choice {
        /// Declaration of the attribute.
        choice: &'static Choice,
        /// Rejected value.
        value: String,
    },
    /// Not a value of the cgroup file.
    #[error(transparent)]
    Cgroup(#[from] CgroupValueError),
}

impl Declaration {
    /// Checks a value before it is written. Every command that sets an attribute calls this
    /// function.
    ///
    /// If a number is read-only in the queue of [`iosched`], accepts every value, because the
    /// kernel may allow changes.
    ///
    /// # Errors
    /// The declaration does not accept the value.
    pub fn check(self, value: &str) -> Result<(), ValueError> {
        self.check_within(value, |spec| *spec)
    }

    /// Checks a value as [`check`](Self::check) does, but within the range that `narrowed` returns.
    /// A disk may accept a narrower range of numbers than the declaration.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_within(self, value: &str, narrowed: impl FnOnce(&Spec) -> Spec) -> Result<(), ValueError> {
        let value = value.trim();
        match self {
            Self::Number(spec) if spec.read_only => {}
            Self::Number(spec) => {
                narrowed(spec).parse_exactly(value)?;
            }
            Self::Choice(choice) if choice.values.contains(&value) => {}
            Self::Choice(choice) => return Err(ValueError::Choice { choice, value: value.to_owned() }),
            Self::Cgroup(file) => file.check(value)?,
            Self::Text(spec) => spec.check(value)?,
        }
        Ok(())
    }

    /// Returns the accepted values as a clause of a message.
    #[must_use]
    pub fn takes(self) -> String {
        match self {
            Self::Choice(choice) => format!("the value must be one of {}", choice.values.join(", ")),
            Self::Cgroup(file) => file.takes(),
            Self::Text(spec) => format!("this attribute takes {}", spec.takes),
            Self::Number(spec) => {
                let unit = spec.unit.to_string();
                let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
                format!("the value must be a whole number{unit}, in the range that the kernel accepts for this device")
            }
        }
    }
}

/// Attribute of a queue, or tunable of its scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Name below `queue`: `nr_requests`, `iosched/slice_idle`.
    pub name: String,
    /// Value as read. For `scheduler`, only the name of the present scheduler.
    pub value: String,
    /// Whether some user may write the attribute.
    pub is_writable: bool,
    /// Declaration of the attribute, if it has one.
    pub declaration: Option<Declaration>,
}

impl Attribute {
    /// Returns the unit, if the attribute is a number with a known unit.
    #[must_use]
    pub fn unit(&self) -> Option<String> {
        match self.declaration? {
            Declaration::Number(spec) => Some(spec.unit.to_string()).filter(|unit| !unit.is_empty()),
            Declaration::Choice(_) | Declaration::Cgroup(_) | Declaration::Text(_) => None,
        }
    }

    /// Returns whether the attribute is a tunable of the present scheduler.
    #[must_use]
    pub fn is_tunable(&self) -> bool {
        self.name.starts_with(ELEVATOR)
    }
}

/// Reason why an attribute cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum AttributeError {
    /// There is no attribute of this name.
    #[error("{device}: there is no attribute {name}; available: {known}")]
    Unknown {
        /// Name of the device.
        device: String,
        /// Requested name.
        name: String,
        /// Names of the existing attributes.
        known: String,
    },
    /// The declaration does not accept the value.
    #[error("{device}: {source}")]
    Value {
        /// Name of the device.
        device: String,
        /// Reason why the value is not accepted.
        source: ValueError,
    },
    /// There is no such file of a cgroup.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The kernel does not accept the value.
    #[error("{device}: the kernel rejects {value:?} for {name} ({error}){takes}")]
    Refused {
        /// Name of the device.
        device: String,
        /// Name of the attribute.
        name: String,
        /// Rejected value.
        value: String,
        /// Error from the kernel.
        error: io::Error,
        /// Accepted values, after a semicolon. Empty if they are not known.
        takes: String,
    },
    /// The value was written, but the attribute reads as another value.
    #[error("{device}: the kernel stored {read} in {name} instead of {written}")]
    TookAnother {
        /// Name of the device.
        device: String,
        /// Name of the attribute.
        name: String,
        /// Written value.
        written: String,
        /// Value that was read back.
        read: String,
    },
    /// The attribute can only be written.
    #[error("{device}: {name} is write-only")]
    WriteOnly {
        /// Name of the device.
        device: String,
        /// Name of the attribute.
        name: String,
    },
    /// The attribute can only be read.
    #[error("{device}: {name} is read-only")]
    ReadOnly {
        /// Name of the device.
        device: String,
        /// Name of the attribute.
        name: String,
    },
    /// Only root may write the attribute.
    #[error("{path}: only root may write to this file")]
    Permission {
        /// Path of the attribute's file.
        path: PathBuf,
    },
    /// The attribute cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Path of the attribute's file or directory.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
}

/// Returns the declaration of a number that only the kernel's queues have.
const fn spec(name: &'static str, unit: Unit, default: u64, (min, max): (u64, u64), doc: &'static str) -> Spec {
    Spec {
        name,
        unit,
        default,
        min,
        max,
        doc,
        since: "",
        until: None,
        read_only: false,
        clamps: false,
        in_jiffies: false,
        signed: false,
        reads: iosched::Reads::Any,
        wraps: None,
        alias_of: None,
        tuning: None,
    }
}

const SWITCH: (u64, u64) = (0, 1);

/// Declarations of numbers that the kernel's queues have and the queue of [`iosched`] does not
/// have. Sources: Documentation/ABI/stable/sysfs-block and Documentation/block of Linux 6.12.
static NUMBERS: [Spec; 5] = [
    Spec {
        since: "2.6.35",
        ..spec(
            "add_random",
            Unit::Switch,
            0,
            SWITCH,
            "whether the kernel uses the times of completions as a source of random numbers",
        )
    },
    Spec {
        since: "2.6.30",
        ..spec(
            "rq_affinity",
            Unit::Count,
            1,
            (0, 2),
            "CPU that completes a request. 0: the CPU that gets the interrupt; 1: a CPU near the submitting CPU; \
             2: the submitting CPU",
        )
    },
    Spec {
        since: "4.4",
        ..spec(
            "io_poll",
            Unit::Switch,
            0,
            SWITCH,
            "whether the kernel polls for the completion of I/Os that were submitted with polling",
        )
    },
    Spec {
        since: "5.10",
        ..spec(
            "stable_writes",
            Unit::Switch,
            0,
            SWITCH,
            "whether a page must stay unchanged while the kernel writes the page to the disk",
        )
    },
    Spec {
        since: "6.0",
        ..spec("iostats_passthrough", Unit::Switch, 0, SWITCH, "whether statistics count passthrough commands")
    },
];

/// Declarations of attributes with words as values that only the kernel's queues have. Sources as
/// for [`NUMBERS`].
static CHOICES: [Choice; 1] = [Choice {
    name: "write_cache",
    values: &["write back", "write through"],
    doc: "whether the kernel treats the write cache as volatile, and sends flushes",
}];

/// Returns the declarations of numbers that only the kernel's queues have.
pub fn kernel_numbers() -> impl Iterator<Item = &'static Spec> {
    NUMBERS.iter()
}

/// Returns the declarations of word attributes that only the kernel's queues have.
pub fn kernel_choices() -> impl Iterator<Item = &'static Choice> {
    CHOICES.iter()
}

/// Returns the declaration of the attribute `name`, if `scheduler` is the present scheduler.
/// Examples of names: `nr_requests`, `iosched/slice_idle`, `cgroup/db/io.max`.
#[must_use]
pub fn declaration(name: &str, scheduler: &str) -> Option<Declaration> {
    if cgroup::parts(name).is_some() {
        return cgroup::declaration(name);
    }
    if let Some(tunable) = name.strip_prefix(ELEVATOR) {
        let elevator = iosched::Registry::linux().get(scheduler).ok()?;
        let number = (elevator.tunables)().into_iter().find(|spec| spec.name == tunable).map(Declaration::Number);
        let text = || elevator.texts.iter().find(|spec| spec.name == tunable).map(Declaration::Text);
        return number.or_else(text);
    }
    let number = RequestQueue::attribute_specs().chain(&NUMBERS).find(|spec| spec.name == name);
    let choice = || CHOICES.iter().find(|choice| choice.name == name).map(Declaration::Choice);
    number.map(Declaration::Number).or_else(choice)
}

/// Returns the present choice, which the kernel writes in brackets. If the text has no brackets,
/// returns the whole text.
#[must_use]
pub fn chosen(text: &str) -> &str {
    let text = text.trim();
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(chosen, _)| chosen)
}

/// Returns whether `read` is exactly the value `written`: the same text, the same number, or the
/// choice in brackets.
#[must_use]
pub fn is_exactly(declaration: Option<Declaration>, read: &str, written: &str) -> bool {
    let (read, written) = (read.trim(), written.trim());
    if read == written || chosen(read) == written {
        return true;
    }
    if let Some(Declaration::Cgroup(file)) = declaration {
        return file.is_same(read, written);
    }
    if let Some(Declaration::Text(_)) = declaration {
        return numbers(read).eq(numbers(written));
    }
    let Ok(read) = read.parse::<i128>() else { return false };
    match declaration {
        Some(Declaration::Number(spec)) if !spec.read_only => {
            spec.parse_exactly(written).is_ok_and(|value| spec.number(value) == read)
        }
        _ => written.parse() == Ok(read),
    }
}

/// Returns the numbers in a text, without the words around them.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty())
}

/// Returns whether `read` is the value `written`, exactly or rounded to whole jiffies. Rounding is
/// accepted only for numbers that the kernel stores in jiffies.
#[must_use]
pub fn is_same(declaration: Option<Declaration>, read: &str, written: &str) -> bool {
    if is_exactly(declaration, read, written) {
        return true;
    }
    let (Some(Declaration::Number(spec)), Ok(read)) = (declaration, read.trim().parse::<i128>()) else { return false };
    let is_in_jiffies = |value| HZ.iter().any(|&hz| spec.number(spec.reads_as(value, hz)) == read);
    spec.in_jiffies && spec.parse_exactly(written).is_ok_and(is_in_jiffies)
}

impl BlockDevice {
    /// Returns the directory of the queue's attributes. A partition has the directory of its disk.
    #[must_use]
    pub fn queue(&self) -> PathBuf {
        self.roots().sys("block").join(self.disk_name()).join("queue")
    }

    /// Returns the path of an attribute, whether or not the attribute exists.
    pub(crate) fn attribute_path(&self, name: &str) -> PathBuf {
        match cgroup::parts(name) {
            Some(_) => self.cgroup_path(name).unwrap_or_else(|_| PathBuf::from(name)),
            None => self.queue().join(name),
        }
    }

    /// Returns the present scheduler. Returns `None` if the device has no scheduler, as is usual
    /// for devices that are built from other devices.
    #[must_use]
    pub fn scheduler(&self) -> Option<String> {
        let text = read(&self.attribute_path("scheduler")).ok()?;
        Some(chosen(&text).to_owned())
    }

    /// Returns the available schedulers. Modules that are not loaded are not listed.
    #[must_use]
    pub fn schedulers(&self) -> Vec<String> {
        let text = read(&self.attribute_path("scheduler")).unwrap_or_default();
        text.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect()
    }

    /// Returns every readable attribute of the queue, then every tunable of its scheduler.
    ///
    /// # Errors
    /// There is no queue, or its directory cannot be read.
    pub fn attributes(&self) -> Result<Vec<Attribute>, AttributeError> {
        let queue = self.queue();
        fs::read_dir(&queue).map_err(|error| AttributeError::Io { path: queue.clone(), error })?;
        let scheduler = self.scheduler().unwrap_or_default();
        let tunables = names(&queue.join(ELEVATOR)).into_iter().map(|name| format!("{ELEVATOR}{name}"));
        let names = names(&queue).into_iter().chain(tunables);
        Ok(names.filter_map(|name| self.attribute_under(&name, &scheduler)).collect())
    }

    /// Returns whether a file of the queue can only be written. Its value cannot be read, recorded
    /// or restored.
    pub(crate) fn is_write_only(&self, name: &str) -> bool {
        let metadata = fs::metadata(self.attribute_path(name)).ok().filter(fs::Metadata::is_file);
        metadata.is_some_and(|metadata| is_write_only(&metadata))
    }

    /// Returns an attribute of the queue. Returns `None` if the name is a directory, or if the file
    /// cannot be read.
    fn attribute_under(&self, name: &str, scheduler: &str) -> Option<Attribute> {
        let path = self.attribute_path(name);
        let metadata = fs::metadata(&path).ok().filter(|file| file.is_file() && !is_write_only(file))?;
        let text = read(&path).ok()?;
        let declaration = declaration(name, scheduler);
        let value = match declaration {
            _ if name == "scheduler" => chosen(&text).to_owned(),
            // Keep only the numbers, because a restore can write only numbers to the file.
            Some(Declaration::Text(spec)) if !spec.takes.is_empty() => numbers(&text).collect::<Vec<_>>().join(" "),
            _ => text.trim().to_owned(),
        };
        let is_writable = metadata.permissions().mode() & 0o222 != 0;
        Some(Attribute { name: name.to_owned(), value, is_writable, declaration })
    }

    /// Returns the full name of an attribute. A tunable of the present scheduler may be given
    /// without its directory.
    ///
    /// # Errors
    /// There is no attribute of this name.
    pub fn resolve(&self, name: &str) -> Result<String, AttributeError> {
        if cgroup::parts(name).is_some() {
            return Ok(self.cgroup_path(name).map(|_| name.to_owned())?);
        }
        let candidates = [name.to_owned(), format!("{ELEVATOR}{name}")];
        let found = candidates.into_iter().find(|name| self.attribute_path(name).is_file());
        found.ok_or_else(|| {
            let known = self.attributes().unwrap_or_default();
            let known: Vec<_> = known.into_iter().map(|attribute| attribute.name).collect();
            AttributeError::Unknown { device: self.name().to_owned(), name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// Reads one attribute. [`resolve`](Self::resolve) describes its names.
    ///
    /// # Errors
    /// There is no attribute of this name, or it cannot be read.
    pub fn attribute(&self, name: &str) -> Result<Attribute, AttributeError> {
        let name = self.resolve(name)?;
        if cgroup::parts(&name).is_some() {
            return self.cgroup_attribute(&name);
        }
        if self.is_write_only(&name) {
            return Err(AttributeError::WriteOnly { device: self.name().to_owned(), name });
        }
        let path = self.attribute_path(&name);
        let scheduler = self.scheduler().unwrap_or_default();
        let cannot = || AttributeError::Io { path, error: io::ErrorKind::InvalidData.into() };
        self.attribute_under(&name, &scheduler).ok_or_else(cannot)
    }

    /// Writes an attribute and returns the value that was read back. The value is empty for an
    /// attribute that can only be written.
    ///
    /// # Errors
    /// - There is no attribute of this name.
    /// - The declaration or the kernel does not accept the value.
    /// - The attribute is read-only, or only root may write it.
    /// - The kernel stored another value.
    pub fn set_attribute(&self, name: &str, value: &str) -> Result<String, AttributeError> {
        let name = self.resolve(name)?;
        let is_write_only = self.is_write_only(&name);
        let (is_writable, declaration) = if is_write_only {
            (true, declaration(&name, &self.scheduler().unwrap_or_default()))
        } else {
            let attribute = self.attribute(&name)?;
            (attribute.is_writable, attribute.declaration)
        };
        let device = || self.name().to_owned();
        if !is_writable {
            return Err(AttributeError::ReadOnly { device: device(), name });
        }
        if let Some(declaration) = declaration {
            declaration.check(value).map_err(|source| AttributeError::Value { device: device(), source })?;
        }
        self.write_raw(&name, value.trim())?;
        if is_write_only {
            return Ok(String::new());
        }
        let read = self.attribute(&name)?.value;
        if !is_same(declaration, &read, value) {
            return Err(AttributeError::TookAnother { device: device(), name, written: value.to_owned(), read });
        }
        Ok(read)
    }

    /// Writes a value without checks.
    pub(crate) fn write_raw(&self, name: &str, value: &str) -> Result<(), AttributeError> {
        if cgroup::parts(name).is_some() {
            return self.write_cgroup(name, value);
        }
        let path = self.attribute_path(name);
        write_once(&path, value).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => AttributeError::Permission { path },
            _ => {
                let takes = if name == "scheduler" {
                    format!("; the value must be one of {}", self.schedulers().join(", "))
                } else {
                    String::new()
                };
                let (device, name, value) = (self.name().to_owned(), name.to_owned(), value.to_owned());
                AttributeError::Refused { device, name, value, error, takes }
            }
        })
    }
}

/// Returns whether a file is write-only: some user may write it, and no user may read it.
fn is_write_only(metadata: &fs::Metadata) -> bool {
    let mode = metadata.permissions().mode();
    mode & 0o444 == 0 && mode & 0o222 != 0
}

/// Writes a value to an existing file in one write call, as the kernel requires.
///
/// # Errors
/// Errors of the system.
pub fn write_once(path: &Path, value: &str) -> io::Result<()> {
    write_to(fs::OpenOptions::new().write(true).truncate(true).open(path)?, value)
}

/// Writes a value in one write call to the file `name` below the directory `root`. Refuses symbolic
/// links below `root`.
///
/// # Errors
/// Errors of the system.
pub fn write_once_below(root: &Path, name: &Path, value: &str) -> io::Result<()> {
    write_to(OpenDirectory::open(root)?.open_file(name, OFlags::WRONLY | OFlags::TRUNC)?, value)
}

fn write_to(mut file: fs::File, value: &str) -> io::Result<()> {
    let text = format!("{value}\n");
    match io::Write::write(&mut file, text.as_bytes())? {
        count if count == text.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    #[test]
    fn attributes_and_tunables_are_listed_with_their_properties() {
        let machine = Recorded::new();
        let attributes = machine.device("sda").attributes().unwrap();
        let of = |name: &str| attributes.iter().find(|attribute| attribute.name == name).unwrap();
        assert_eq!(of("scheduler").value, "mq-deadline");
        assert!(
            matches!(of("nr_requests").declaration, Some(Declaration::Number(spec)) if spec.unit == Unit::Requests)
        );
        assert!(matches!(of("iosched/fifo_batch").declaration, Some(Declaration::Number(spec)) if spec.default == 16));
        assert!(matches!(of("write_cache").declaration, Some(Declaration::Choice(_))));
        assert_eq!((of("brand_new").value.as_str(), of("brand_new").declaration), ("17", None));
        assert!(
            machine.device("sda1").attributes().unwrap().len() == attributes.len(),
            "a partition has the attributes of its disk"
        );
    }

    #[test]
    fn value_below_a_directory_follows_no_symlink() {
        let here = tempfile::tempdir().unwrap();
        let root = here.path().join("disk");
        fs::create_dir_all(root.join("queue")).unwrap();
        for path in [here.path().join("victim"), root.join("queue/depth")] {
            fs::write(path, "old").unwrap();
        }
        std::os::unix::fs::symlink(here.path().join("victim"), root.join("queue/link")).unwrap();
        std::os::unix::fs::symlink("queue", root.join("other")).unwrap();
        for (name, is_written) in [("queue/link", false), ("other/depth", false), ("queue/depth", true)] {
            assert_eq!(write_once_below(&root, Path::new(name), "1").is_ok(), is_written, "{name}");
        }
        assert_eq!(fs::read_to_string(here.path().join("victim")).unwrap(), "old");
        assert_eq!(fs::read_to_string(root.join("queue/depth")).unwrap(), "1\n");
    }

    #[test]
    fn written_attribute_is_read_back() {
        let machine = Recorded::new();
        let sda = machine.device("sda");
        assert_eq!(sda.set_attribute("nr_requests", "64").unwrap(), "64");
        assert_eq!(sda.set_attribute("fifo_batch", "8").unwrap(), "8");
        assert_eq!(machine.read("sys/devices/sda/queue/iosched/fifo_batch"), "8");
        assert_eq!(sda.set_attribute("write_cache", "write through").unwrap(), "write through");
        // Attributes without a declaration are not checked.
        assert_eq!(sda.set_attribute("brand_new", "anything").unwrap(), "anything");
    }

    #[test]
    fn write_only_files_are_written() {
        let machine = Recorded::new();
        machine.write("sys/devices/sda/queue/scheduler", "none [adios]\n");
        for name in ["reset_lat_model", "unknown_action"] {
            machine.write(&format!("sys/devices/sda/queue/iosched/{name}"), "");
            let path = machine.path().join("sys/devices/sda/queue/iosched").join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o200)).unwrap();
        }
        let sda = machine.device("sda");
        assert_eq!(sda.set_attribute("reset_lat_model", "1").unwrap(), "");
        assert_eq!(sda.set_attribute("unknown_action", "anything").unwrap(), "", "the kernel checks the value");
        let error = sda.set_attribute("reset_lat_model", "2").unwrap_err().to_string();
        assert!(error.contains("takes 1, or six numbers"), "{error}");
        assert_eq!(
            sda.attribute("reset_lat_model").unwrap_err().to_string(),
            "sda: iosched/reset_lat_model is write-only"
        );
        assert!(sda.attributes().unwrap().iter().all(|attribute| attribute.name != "iosched/reset_lat_model"));
    }

    #[test]
    fn error_for_a_refused_value_names_valid_values() {
        let machine = Recorded::new();
        let sda = machine.device("sda");
        let refused = |name: &str, value: &str| sda.set_attribute(name, value).unwrap_err().to_string();
        assert_eq!(
            refused("nr_requests", "0"),
            "sda: nr_requests: 0 is out of range; it must be from 1 to 4294967295 requests"
        );
        assert!(refused("fifo_batch", "-5").contains("fifo_batch: -5 is out of range; it must be from 0 to "));
        assert_eq!(machine.read("sys/devices/sda/queue/iosched/fifo_batch"), "16");
        assert!(refused("wbt_lat_usec", "x").starts_with("sda: wbt_lat_usec: \"x\" is not a whole number"));
        assert!(refused("write_cache", "off").ends_with("the value must be one of write back, write through"));
        let error = refused("slice_idle", "0");
        assert!(error.contains("there is no attribute slice_idle") && error.contains("iosched/fifo_batch"), "{error}");
        assert_eq!(machine.read("sys/devices/sda/queue/nr_requests"), "256");
        let path = machine.path().join("sys/devices/sda/queue/brand_new");
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(refused("brand_new", "1"), "sda: brand_new is read-only");
    }

    #[test]
    fn value_comparison_allows_for_notation_and_jiffies() {
        let expire = declaration("iosched/read_expire", "mq-deadline");
        for (declaration, read, written, same) in [
            (None, "64", "64", true),
            (None, "64", " 064\n", true),
            (None, "63", "64", false),
            (None, "noop [cfq] deadline", "cfq", true),
            (None, "noop [cfq] deadline", "noop", false),
            (None, "be/4", "be/4", true),
            // 125 ms are 32 jiffies of 4 ms.
            (expire, "128", "125", true),
            (expire, "124", "125", false),
            (expire, "0", "-5", false),
            (None, "128", "125", false),
        ] {
            assert_eq!(is_same(declaration, read, written), same, "{read:?} {written:?}");
        }
        assert!(!is_exactly(expire, "128", "125") && is_exactly(expire, "128", " 0x80"));
    }

    #[test]
    fn no_attribute_is_declared_twice() {
        let ours: Vec<_> = RequestQueue::attribute_specs().map(|spec| spec.name).collect();
        let mut all: Vec<_> = NUMBERS.iter().map(|spec| spec.name).chain(CHOICES.iter().map(|c| c.name)).collect();
        assert!(all.iter().all(|name| !ours.contains(name)));
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
