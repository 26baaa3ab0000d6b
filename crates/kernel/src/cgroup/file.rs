//! The files of cgroups that are about disks. Formats: Documentation/admin-guide/cgroup-v2.rst of Linux 6.12.

use iosched::controllers::{NamedWrite, what_it_takes};

use crate::block::DeviceNumber;

/// The weight that everybody has who sets none.
const WEIGHT_USUAL: &str = "100";
/// Stands for what applies to disks that have no line of their own.
const DEFAULT: &str = "default";

/// A file that a cgroup has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CgroupFile {
    /// Its name.
    pub name: &'static str,
    /// Whether the root has it, and only the root; else every cgroup but the root.
    pub is_of_root: bool,
    /// What it does, in one line.
    pub doc: &'static str,
    form: Form,
}

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// For each disk a line of `name=value`; without a line it is as if there were this.
    Words(&'static str),
    /// A line for each disk with a weight of its own, and one for all others; up to this.
    Weight(u32),
    /// One of some words, for every disk.
    Choice(&'static [&'static str]),
}

/// What is wrong with a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {value:?} is not accepted; {takes}")]
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
        doc: "latency target: if I/Os of the cgroup take longer, its siblings are slowed down",
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
        doc: "switch and latency targets of io.cost",
        form: Form::Words("enable=0 ctrl=auto"),
    },
    CgroupFile {
        name: "io.cost.model",
        is_of_root: true,
        doc: "cost model of io.cost: the cost of I/Os on the disk",
        form: Form::Words("ctrl=auto"),
    },
];

/// All of them.
#[must_use]
pub fn files() -> &'static [CgroupFile] {
    &FILES
}

/// The words of a value; a slash stands for a space, as in settings.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split([' ', '\t', '/']).filter(|word| !word.is_empty())
}

/// What is behind the number of a disk in its line.
fn own_line(text: &str, number: DeviceNumber) -> Option<&str> {
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    let of_device = |of: &str| of.parse::<DeviceNumber>().is_ok_and(|of| of == number);
    lines.filter(|(of, _)| of_device(of)).map(|(_, rest)| rest.trim()).next()
}

/// The value of `name=value` among words.
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
    /// What would be right.
    #[must_use]
    pub fn takes(&self) -> String {
        match self.form {
            Form::Weight(max) => {
                format!("write a weight from 1 to {max}, or {DEFAULT} for the weight of disks without their own")
            }
            Form::Words(_) | Form::Choice(_) => what_it_takes(self.name),
        }
    }

    /// Whether it takes a value.
    ///
    /// # Errors
    /// It does not; what would be right.
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

    /// What a file that holds `text` says of a disk.
    pub(crate) fn value(&self, text: &str, of: DeviceNumber) -> String {
        match self.form {
            Form::Words(without) => own_line(text, of).unwrap_or(without).to_owned(),
            Form::Weight(_) => own_line(text, of).map_or_else(|| format!("{DEFAULT} {}", usual(text)), str::to_owned),
            Form::Choice(_) => text.trim().to_owned(),
        }
    }

    /// Whether that is anything but what is without.
    pub(super) fn sets(&self, text: &str, of: DeviceNumber) -> bool {
        let line = own_line(text, of);
        match self.form {
            Form::Words(without) => line.is_some_and(|line| self.is_of_root || line != without),
            Form::Weight(_) => line.is_some() || usual(text) != WEIGHT_USUAL,
            Form::Choice(all) => !text.trim().is_empty() && text.trim() != all[0],
        }
    }

    /// Whether a file that holds `text` sets anything on any disk.
    pub(super) fn sets_anything(&self, text: &str) -> bool {
        let text = text.trim();
        match self.form {
            Form::Words(_) => !text.is_empty(),
            Form::Weight(_) => text.lines().count() > 1 || usual(text) != WEIGHT_USUAL,
            Form::Choice(all) => !text.is_empty() && text != all[0],
        }
    }

    /// What is written to give a disk a value.
    pub(crate) fn line(&self, of: DeviceNumber, value: &str) -> String {
        let value = words(value).collect::<Vec<_>>().join(" ");
        match self.form {
            Form::Words(_) | Form::Weight(_) => format!("{of} {value}"),
            Form::Choice(_) => value,
        }
    }

    /// What has to be written to have the value again that a disk has now.
    pub(crate) fn kept(&self, value: &str) -> String {
        match self.form {
            Form::Weight(_) if value.starts_with(DEFAULT) => DEFAULT.to_owned(),
            // Writing any of the kernel's own numbers would make them the user's.
            Form::Words(without) if self.is_of_root && word(value, "ctrl") == Some("auto") => {
                let kept = words(value).filter(|pair| word(without, pair.split('=').next().unwrap_or(pair)).is_some());
                kept.collect::<Vec<_>>().join(" ")
            }
            _ => value.to_owned(),
        }
    }

    /// Whether what is read is what was written.
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

/// The weight of disks that have none of their own; bfq of older kernels has the number alone.
fn usual(text: &str) -> &str {
    let lines = text.lines().map(str::trim);
    let named = lines.clone().find_map(|line| line.strip_prefix(DEFAULT)).map(str::trim);
    let alone = || lines.clone().find(|line| !line.is_empty() && line.chars().all(|c| c.is_ascii_digit()));
    named.or_else(alone).unwrap_or(WEIGHT_USUAL)
}
