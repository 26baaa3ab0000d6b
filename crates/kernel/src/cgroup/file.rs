//! Files of cgroups that control disks. Formats: Documentation/admin-guide/cgroup-v2.rst of Linux
//! 6.12.

use iosched::controllers::{NamedWrite, what_it_takes};

use crate::block::DeviceNumber;

/// Weight of a cgroup whose file sets no weight.
const WEIGHT_USUAL: &str = "100";
/// Word that stands for all disks without a line in the file.
const DEFAULT: &str = "default";

/// Declaration of a file of a cgroup that controls I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CgroupFile {
    /// Name of the file.
    pub name: &'static str,
    /// Whether only the root cgroup has the file. Otherwise every cgroup except the root has it.
    pub is_of_root: bool,
    /// Description in one line.
    pub doc: &'static str,
    form: Form,
}

/// Format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A line of `name=value` pairs for each disk. The string is the value of a disk without a
    /// line.
    Words(&'static str),
    /// A line for each disk with its own weight, and a line for all other disks. The number is the
    /// largest weight.
    Weight(u32),
    /// One of several words, for all disks together.
    Choice(&'static [&'static str]),
}

/// Error of a value that a file does not accept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {value:?} is not a valid value; {takes}")]
pub struct CgroupValueError {
    file: &'static str,
    value: String,
    takes: String,
}

const CLASSES: &[&str] = &["no-change", "promote-to-rt", "restrict-to-be", "idle", "none-to-rt"];

static FILES: [CgroupFile; 7] = [
    CgroupFile {
        name: "io.max",
        is_of_root: false,
        doc: "limits of the cgroup in bytes and I/Os per second",
        form: Form::Words("rbps=max wbps=max riops=max wiops=max"),
    },
    CgroupFile {
        name: "io.latency",
        is_of_root: false,
        doc: "latency target: if I/Os of the cgroup take longer, the kernel slows down the siblings of the cgroup",
        form: Form::Words("target=0"),
    },
    CgroupFile {
        name: "io.weight",
        is_of_root: false,
        doc: "weight of the cgroup under io.cost",
        form: Form::Weight(10_000),
    },
    CgroupFile {
        name: "io.bfq.weight",
        is_of_root: false,
        doc: "weight of the cgroup under bfq",
        form: Form::Weight(1000),
    },
    CgroupFile {
        name: "io.prio.class",
        is_of_root: false,
        doc: "ioprio class of the cgroup's requests, on every disk",
        form: Form::Choice(CLASSES),
    },
    CgroupFile {
        name: "io.cost.qos",
        is_of_root: true,
        doc: "whether io.cost is on, and its latency targets",
        form: Form::Words("enable=0 ctrl=auto"),
    },
    CgroupFile {
        name: "io.cost.model",
        is_of_root: true,
        doc: "cost model of io.cost: the cost of I/Os on the disk",
        form: Form::Words("ctrl=auto"),
    },
];

/// Returns the declarations of all files.
#[must_use]
pub fn files() -> &'static [CgroupFile] {
    &FILES
}

/// Returns the words of a value. A slash stands for a space, as in settings.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split([' ', '\t', '/']).filter(|word| !word.is_empty())
}

/// Returns the text after the number of a disk in the disk's line.
fn own_line(text: &str, number: DeviceNumber) -> Option<&str> {
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    let of_device = |device: &str| device.parse::<DeviceNumber>().is_ok_and(|device| device == number);
    lines.filter(|(device, _)| of_device(device)).map(|(_, rest)| rest.trim()).next()
}

/// Returns the value of `name=value` among words.
fn word<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    words(text).filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn number(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|number| number as f64),
        None => text.parse().ok(),
    }
}

impl CgroupFile {
    /// Returns the accepted values as a clause of a message.
    #[must_use]
    pub fn takes(&self) -> String {
        match self.form {
            Form::Weight(max) => {
                format!(
                    "write a weight from 1 to {max}, or {DEFAULT} for the weight that the cgroup has on other disks"
                )
            }
            Form::Words(_) | Form::Choice(_) => what_it_takes(self.name),
        }
    }

    /// Checks a value before it is written.
    ///
    /// # Errors
    /// The file does not accept the value. The message states the accepted values.
    pub fn check(&self, value: &str) -> Result<(), CgroupValueError> {
        let taken = match self.form {
            Form::Words(_) => {
                let words = words(value).collect::<Vec<_>>().join("/");
                let named = if self.is_of_root { words.clone() } else { format!("any:{words}") };
                !words.is_empty() && NamedWrite::parse(self.name, &named).is_ok_and(|all| all.len() == 1)
            }
            Form::Weight(max) => {
                let value = value.trim();
                value == DEFAULT || value.parse::<u32>().is_ok_and(|weight| (1..=max).contains(&weight))
            }
            Form::Choice(all) => all.contains(&value.trim()),
        };
        let wrong = || CgroupValueError { file: self.name, value: value.to_owned(), takes: self.takes() };
        taken.then_some(()).ok_or_else(wrong)
    }

    /// Returns the value that a file with the contents `text` has for a disk.
    pub(crate) fn value(&self, text: &str, device: DeviceNumber) -> String {
        match self.form {
            Form::Words(without) => own_line(text, device).unwrap_or(without).to_owned(),
            Form::Weight(_) => {
                own_line(text, device).map_or_else(|| format!("{DEFAULT} {}", usual(text)), str::to_owned)
            }
            Form::Choice(_) => text.trim().to_owned(),
        }
    }

    /// Returns whether a file with the contents `text` sets a value for the disk. A default value
    /// does not count. In a file of the root cgroup, every line of the disk counts.
    pub(super) fn sets(&self, text: &str, device: DeviceNumber) -> bool {
        let line = own_line(text, device);
        match self.form {
            Form::Words(without) => line.is_some_and(|line| self.is_of_root || line != without),
            Form::Weight(_) => line.is_some() || usual(text) != WEIGHT_USUAL,
            Form::Choice(all) => !text.trim().is_empty() && text.trim() != all[0],
        }
    }

    /// Returns whether a file with the contents `text` sets a value for any disk.
    pub(super) fn sets_anything(&self, text: &str) -> bool {
        let text = text.trim();
        match self.form {
            Form::Words(_) => !text.is_empty(),
            Form::Weight(_) => text.lines().count() > 1 || usual(text) != WEIGHT_USUAL,
            Form::Choice(all) => !text.is_empty() && text != all[0],
        }
    }

    /// Returns the line to write to set a value for a disk.
    pub(crate) fn line(&self, device: DeviceNumber, value: &str) -> String {
        let value = words(value).collect::<Vec<_>>().join(" ");
        match self.form {
            Form::Words(_) | Form::Weight(_) => format!("{device} {value}"),
            Form::Choice(_) => value,
        }
    }

    /// Returns the value to write to restore the present `value` of a disk.
    pub(crate) fn settable(&self, value: &str) -> String {
        match self.form {
            Form::Weight(_) if value.starts_with(DEFAULT) => DEFAULT.to_owned(),
            // If the kernel chose the numbers (`ctrl=auto`), writing them back would make them a
            // user's setting.
            Form::Words(without) if self.is_of_root && word(value, "ctrl") == Some("auto") => {
                let remaining =
                    words(value).filter(|pair| word(without, pair.split('=').next().unwrap_or(pair)).is_some());
                remaining.collect::<Vec<_>>().join(" ")
            }
            _ => value.to_owned(),
        }
    }

    /// Returns whether `read` and `written` are the same value.
    pub(crate) fn is_same(&self, read: &str, written: &str) -> bool {
        let is_none = |value: &str| value == "max" || number(value) == Some(0.0);
        let same = |read: &str, written: &str| {
            let numbers = number(read).zip(number(written)).is_some_and(|(read, written)| read == written);
            read == written || numbers || (self.name == "io.latency" && is_none(read) && is_none(written))
        };
        match self.form {
            Form::Words(_) => words(written).all(|pair| {
                let Some((name, value)) = pair.split_once('=') else { return false };
                word(read, name).is_some_and(|read| same(read, value))
            }),
            Form::Weight(_) if written.trim().starts_with(DEFAULT) => read.starts_with(DEFAULT),
            Form::Weight(_) | Form::Choice(_) => same(read.trim(), written.trim()),
        }
    }
}

/// Returns the weight of disks without their own weight. In older kernels, the file of bfq holds
/// only the number.
fn usual(text: &str) -> &str {
    let lines = text.lines().map(str::trim);
    let named = lines.clone().find_map(|line| line.strip_prefix(DEFAULT)).map(str::trim);
    let alone = || lines.clone().find(|line| !line.is_empty() && line.chars().all(|c| c.is_ascii_digit()));
    named.or_else(alone).unwrap_or(WEIGHT_USUAL)
}
