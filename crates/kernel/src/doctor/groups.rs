//! Reads the settings of cgroups for disks from the files of the I/O controllers of both versions.
//! Formats: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst of Linux
//! 6.12.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use super::read::Reader;
use crate::block::DeviceNumber;

/// Largest depth of cgroups that the doctor reads.
const DEPTH_MAX: usize = 32;
/// Largest number of cgroups that the doctor reads.
const GROUPS_MAX: usize = 20_000;
/// Largest number of groups that a sentence names.
const NAMED_MAX: usize = 3;
/// Weight of a group whose files set no weight.
const WEIGHT_USUAL: u32 = 100;

/// Settings of the cgroups of a machine that concern I/O.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Cgroups {
    /// Mounted tree of cgroups of version 2.
    pub unified: Option<Unified>,
    /// Directory of the controller blkio of version 1, if it is mounted.
    pub blkio: Option<String>,
    /// Groups with a setting, in natural order.
    pub groups: Vec<Group>,
}

/// Tree of version 2.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Unified {
    /// Directory of the tree.
    pub root: String,
    /// Whether the tree has the io controller.
    pub has_io: bool,
    /// Whether the root enables the io controller for its children.
    pub passes_io_on: bool,
    /// Whether the visible root is a group of a larger tree, as in a container.
    pub is_part: bool,
    /// State of io.cost for each disk. `None` if the file does not exist.
    pub cost: Option<Vec<Cost>>,
}

/// State of io.cost on a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Number of the disk.
    pub number: DeviceNumber,
    /// Whether io.cost is on.
    pub is_enabled: bool,
    /// Whether the model is the kernel's default for disks of this kind.
    pub has_default_model: bool,
    /// Whether io.cost uses latencies of reads or writes.
    pub looks_at_latency: bool,
}

/// Cgroup that has a setting for I/O.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Group {
    /// Directory of the group, as a user sees it.
    pub directory: String,
    /// systemd unit of the group, or its path in the tree.
    pub name: String,
    /// Limits of each disk, such as `rbps=1000 wbps=max`.
    pub max: Vec<(DeviceNumber, String)>,
    /// Latency targets, us.
    pub latency: Vec<(DeviceNumber, u64)>,
    /// Weights in io.weight.
    pub weight: Option<Weights>,
    /// Weights in io.bfq.weight.
    pub bfq_weight: Option<Weights>,
    /// Class in io.prio.class, if it changes anything.
    pub prio_class: Option<String>,
    /// Limits of version 1 for each disk, in the format of version 2.
    pub throttle: Vec<(DeviceNumber, String)>,
}

/// Weights of a cgroup: the default weight, and the weights on individual disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weights {
    /// Weight on disks without a line in the file.
    pub usual: u32,
    /// Weights on disks with a line in the file.
    pub on_disks: Vec<(DeviceNumber, u32)>,
}

impl Weights {
    /// Returns the weight on a disk. Returns `None` if it is the default weight.
    #[must_use]
    pub fn on(&self, number: DeviceNumber) -> Option<u32> {
        let weight = self.on_disks.iter().find(|(named, _)| *named == number).map(|(_, weight)| *weight);
        Some(weight.unwrap_or(self.usual)).filter(|weight| *weight != WEIGHT_USUAL)
    }

    /// Parses `default 100` and lines such as `8:16 200`. In older kernels, the file of bfq holds
    /// only the number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut weights = Self { usual: WEIGHT_USUAL, on_disks: Vec::new() };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["default", weight] | [weight] => weights.usual = weight.parse().ok()?,
                [number, weight] => {
                    if let (Ok(number), Ok(weight)) = (number.parse(), weight.parse()) {
                        weights.on_disks.push((number, weight));
                    }
                }
                _ => {}
            }
        }
        (weights.usual != WEIGHT_USUAL || !weights.on_disks.is_empty()).then_some(weights)
    }
}

impl Group {
    /// Returns the class in io.prio.class, if it changes anything.
    pub(super) fn prio_class(&self) -> Option<&str> {
        self.prio_class.as_deref()
    }

    fn is_empty(&self) -> bool {
        let Self { max, latency, weight, bfq_weight, prio_class, throttle, .. } = self;
        let nothing = weight.is_none() && bfq_weight.is_none() && prio_class.is_none();
        nothing && max.is_empty() && latency.is_empty() && throttle.is_empty()
    }
}

/// Reads the trees at their usual mount points.
pub(super) fn read(reader: &mut Reader<'_>) -> Cgroups {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let root = roots.into_iter().find(|root| reader.exists(&format!("{root}/cgroup.controllers")));
    let unified = root.map(|root| unified(reader, root));
    let blkio = "/sys/fs/cgroup/blkio";
    let blkio = reader.exists(&format!("{blkio}/blkio.throttle.read_bps_device")).then(|| blkio.to_owned());
    let mut groups = Vec::new();
    if let Some(unified) = unified.as_ref().filter(|unified| unified.has_io) {
        walk(reader, &unified.root, &group_of_version_2, &mut groups);
    }
    if let Some(blkio) = &blkio {
        walk(reader, blkio, &group_of_version_1, &mut groups);
    }
    Cgroups { unified, blkio, groups }
}

fn unified(reader: &mut Reader<'_>, root: &str) -> Unified {
    let has = |text: Option<String>| text.is_some_and(|text| text.split_whitespace().any(|name| name == "io"));
    let qos = reader.text(&format!("{root}/io.cost.qos"));
    let model = reader.text(&format!("{root}/io.cost.model")).unwrap_or_default();
    Unified {
        root: root.to_owned(),
        has_io: has(reader.text(&format!("{root}/cgroup.controllers"))),
        passes_io_on: has(reader.text(&format!("{root}/cgroup.subtree_control"))),
        // The root of the whole tree has no file `cgroup.type`.
        is_part: reader.exists(&format!("{root}/cgroup.type")),
        cost: qos.map(|qos| costs(&qos, &model)),
    }
}

/// Splits a line into the number of the disk and the words after it.
fn of_disk(line: &str) -> Option<(DeviceNumber, &str)> {
    let (number, rest) = line.trim().split_once(' ')?;
    Some((number.parse().ok()?, rest.trim()))
}

/// Returns the value of `name=value` among words.
fn word<'t>(words: &'t str, name: &str) -> Option<&'t str> {
    words
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .find(|(value, _)| *value == name)
        .map(|(_, value)| value)
}

pub(super) fn costs(qos: &str, model: &str) -> Vec<Cost> {
    let models: Vec<_> = model.lines().filter_map(of_disk).collect();
    let device_model = |(number, words): (DeviceNumber, &str)| {
        let model = models.iter().find(|(named, _)| *named == number);
        let percent = |name: &str| word(words, name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
        Cost {
            number,
            is_enabled: word(words, "enable").is_some_and(|value| value != "0"),
            has_default_model: model.is_some_and(|(_, words)| word(words, "ctrl") == Some("auto")),
            looks_at_latency: percent("rpct") > 0.0 || percent("wpct") > 0.0,
        }
    };
    qos.lines().filter_map(of_disk).map(device_model).collect()
}

/// Reads `root` and every group below, without following links.
fn walk(reader: &mut Reader<'_>, root: &str, read: &dyn Fn(&mut Reader<'_>, &str) -> Group, groups: &mut Vec<Group>) {
    let mut left = vec![(root.to_owned(), 0)];
    let mut seen = 0;
    while let Some((directory, depth)) = left.pop() {
        seen += 1;
        if seen > GROUPS_MAX {
            break;
        }
        let group = read(reader, &directory);
        if !group.is_empty() {
            let path = directory.strip_prefix(root).unwrap_or_default().trim_matches('/');
            groups.push(Group { name: unit(path), directory: directory.clone(), ..group });
        }
        if depth < DEPTH_MAX {
            let below = reader.names(&directory).into_iter().rev();
            let is_group = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
            let below = below.map(|name| format!("{directory}/{name}"));
            left.extend(below.filter(|path| is_group(&reader.place(path))).map(|path| (path, depth + 1)));
        }
    }
}

/// Suffixes of systemd's unit names.
const UNITS: [&str; 6] = [".service", ".scope", ".slice", ".mount", ".socket", ".swap"];

/// Returns the unit to which a path belongs: the last part of the path with the suffix of a unit.
pub(super) fn unit(path: &str) -> String {
    let parts = path.rsplit('/');
    // systemd puts a `_` before names that could be mistaken for files.
    let mut names = parts.map(|part| part.strip_prefix('_').unwrap_or(part));
    let found = names.find(|name| UNITS.iter().any(|kind| name.ends_with(kind)));
    match found {
        Some(unit) => unit.to_owned(),
        None if path.is_empty() => "the root cgroup".to_owned(),
        None => path.to_owned(),
    }
}

fn group_of_version_2(reader: &mut Reader<'_>, directory: &str) -> Group {
    let mut text = |file: &str| reader.text(&format!("{directory}/{file}")).unwrap_or_default();
    let is_limit = |words: &str| words.split_whitespace().any(|word| !word.ends_with("=max"));
    let max = text("io.max");
    let max = max.lines().filter_map(of_disk).filter(|(_, words)| is_limit(words));
    let max = max.map(|(number, words)| (number, words.to_owned())).collect();
    let latency = text("io.latency");
    let latency = latency.lines().filter_map(of_disk);
    let latency = latency.filter_map(|(number, words)| Some((number, word(words, "target")?.parse().ok()?)));
    let latency = latency.filter(|(_, target_us)| *target_us > 0).collect();
    let prio_class = Some(text("io.prio.class")).filter(|class| !class.is_empty() && class != "no-change");
    Group {
        max,
        latency,
        weight: Weights::parse(&text("io.weight")),
        bfq_weight: Weights::parse(&text("io.bfq.weight")),
        prio_class,
        ..Group::default()
    }
}

/// Files with limits of version 1, and the names of these limits in version 2.
const THROTTLE: [(&str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "rbps"),
    ("blkio.throttle.write_bps_device", "wbps"),
    ("blkio.throttle.read_iops_device", "riops"),
    ("blkio.throttle.write_iops_device", "wiops"),
];

fn group_of_version_1(reader: &mut Reader<'_>, directory: &str) -> Group {
    let mut throttle: Vec<(DeviceNumber, String)> = Vec::new();
    for (file, word) in THROTTLE {
        let text = reader.text(&format!("{directory}/{file}")).unwrap_or_default();
        for (number, limit) in text.lines().filter_map(of_disk) {
            let pair = format!("{word}={limit}");
            match throttle.iter_mut().find(|(named, _)| *named == number) {
                Some((_, words)) => *words = format!("{words} {pair}"),
                None => throttle.push((number, pair)),
            }
        }
    }
    Group { throttle, ..Group::default() }
}

/// Formats groups as part of a sentence. Each group is followed by its value.
pub(super) fn named<T: Display>(groups: &[(&Group, T)]) -> String {
    let names = groups.iter().take(NAMED_MAX).map(|(group, what)| format!("{} {what}", group.name));
    let listed: Vec<String> = names.collect();
    match groups.len().checked_sub(NAMED_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", listed.join(", ")),
        _ => listed.join(", "),
    }
}
