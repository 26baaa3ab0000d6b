//! The control tree of one disk. It contains the scheduling files of `/sys/block/<dev>`, and the
//! clients of the disk.
//!
//! ```text
//! size  stat  inflight                 as in sysfs
//! device/queue_depth                   maximum number of commands in the back end at the same time
//! device/rescan                        reads 1 if the back end can grow; write 1 to measure it
//! queue/scheduler  queue/<attribute>   attributes of the request queue
//! queue/iosched/<tunable>              tunables of the current scheduler
//! groups/<name>/weight  io.max         io.max as in a cgroup, but without the device number
//! groups/<name>/reservation  limit     rates under mclock
//! groups/<name>/remove                 write 1 to remove a group without clients and export
//! clients/<id>/name  pid  ioprio  group  weight  sync  inflight  stat
//! ```
//!
//! Paths have no slash at either end. The path of the root is empty. The content of a file ends
//! with a newline. A written value may end with a newline. A value that the file does not accept
//! changes nothing.

use std::fmt::Write as _;

use iosched::controllers::WriteError;
use iosched::{IoPriority, Rates, RequestQueue, SECTOR_BYTES, Spec, TextSpec, Time, TunableError, WeightRange};

use super::ControlError;
use crate::LiveDisk;
use crate::disk::{Client, ClientId, Had, MCLOCK, UnknownSyncWrites};
use crate::sys::{is_printable, printable};

/// Maximum number of groups.
const GROUPS_MAX: usize = 1024;
/// Maximum length of a group's name in bytes, as for a file name.
const GROUP_NAME_BYTES_MAX: usize = 255;
/// Message for a write of the weight of a client that is in no group.
pub const IN_NO_GROUP: &str = "the client is in no group, and only groups have weights; first write the name of a group to the file \
        `group` of the client";
/// File that limits a group.
const IO_MAX: &str = "io.max";
/// Files with a group's reservation and limit.
const RESERVATION: &str = "reservation";
const LIMIT: &str = "limit";
/// File that removes a group.
const REMOVE: &str = "remove";
/// Maximum number of names that an error message lists.
const NAMES_SHOWN: usize = 40;

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the entry.
    pub name: String,
    /// Kind of the entry.
    pub kind: Kind,
}

/// Kind of a node in the tree of attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A directory, which can be listed.
    Directory,
    /// A file, which can be read.
    File {
        /// Whether the file can be written.
        is_writable: bool,
    },
}

impl Kind {
    /// Returns the permissions of the node in a file system.
    #[must_use]
    pub const fn mode(self) -> u16 {
        match self {
            Self::Directory => 0o555,
            Self::File { is_writable: true } => 0o644,
            Self::File { is_writable: false } => 0o444,
        }
    }
}

/// Function that writes the value of a file. Its error describes the problem.
type Write<Target> = fn(&mut LiveDisk, Time, Target, &str) -> Result<(), String>;

/// A file, with the functions that read and write it.
struct Leaf<Target> {
    name: &'static str,
    read: fn(&mut LiveDisk, Time, Target) -> String,
    write: Option<Write<Target>>,
}

static DISK: &[Leaf<()>] = &[
    Leaf { name: "inflight", read: |disk, _, ()| inflight(disk.inflight()), write: None },
    Leaf { name: "size", read: |disk, _, ()| (disk.capacity_bytes() / SECTOR_BYTES).to_string(), write: None },
    Leaf { name: "stat", read: |disk, now, ()| disk.stat(now).to_string(), write: None },
];

static DEVICE: &[Leaf<()>] = &[
    Leaf { name: "queue_depth", read: |disk, _, ()| disk.depth().to_string(), write: Some(write_depth) },
    Leaf { name: "rescan", read: |disk, _, ()| u8::from(disk.may_grow()).to_string(), write: Some(rescan) },
];

/// Files of `queue` other than the declared attributes.
static QUEUE: &[Leaf<()>] = &[
    Leaf { name: "logical_block_size", read: |_, _, ()| SECTOR_BYTES.to_string(), write: None },
    Leaf { name: "physical_block_size", read: |disk, _, ()| disk.block_bytes().to_string(), write: None },
    Leaf {
        name: "scheduler",
        read: |disk, _, ()| disk.attribute("scheduler").unwrap_or_default(),
        write: Some(|disk, now, (), value| disk.switch(now, value).map_err(|error| error.to_string())),
    },
];

static CLIENT: &[Leaf<ClientId>] = &[
    Leaf { name: "group", read: |disk, _, id| of(disk, id, group_of), write: Some(write_client_group) },
    Leaf { name: "inflight", read: |disk, _, id| of(disk, id, |client| client.operations.to_string()), write: None },
    Leaf {
        name: "ioprio",
        read: |disk, _, id| of(disk, id, |client| client.identity.ioprio.to_string()),
        write: Some(|disk, _, id, value| {
            let ioprio: IoPriority = value.parse().map_err(|error: iosched::IoPriorityError| error.to_string())?;
            disk.set_client_ioprio(id, ioprio);
            Ok(())
        }),
    },
    Leaf { name: "name", read: |disk, _, id| of(disk, id, |client| printable(&client.identity.name)), write: None },
    Leaf { name: "pid", read: |disk, _, id| of(disk, id, |client| client.identity.pid.to_string()), write: None },
    Leaf { name: "stat", read: |disk, _, id| of(disk, id, client_stat), write: None },
    Leaf {
        name: "sync",
        read: |disk, _, id| of(disk, id, |client| client.identity.sync.to_string()),
        write: Some(|disk, _, id, value| {
            disk.set_client_sync(id, value.parse().map_err(|error: UnknownSyncWrites| error.to_string())?);
            Ok(())
        }),
    },
    Leaf { name: "weight", read: read_client_weight, write: Some(write_client_weight) },
];

/// Node of a path.
#[derive(Clone)]
enum Node {
    Root,
    Device,
    Queue,
    Iosched,
    Groups,
    Group(String),
    Clients,
    Client(ClientId),
    OfDisk(&'static Leaf<()>),
    Attribute(&'static Spec),
    Tunable(&'static Spec),
    Text(&'static TextSpec),
    Weight(String),
    IoMax(String),
    Reservation(String),
    Limit(String),
    Remove(String),
    OfClient(&'static Leaf<ClientId>, ClientId),
}

fn leaves<Target>(
    leaves: &'static [Leaf<Target>],
    node: impl Fn(&'static Leaf<Target>) -> Node,
) -> Vec<(String, Node)> {
    leaves.iter().map(|leaf| (leaf.name.to_owned(), node(leaf))).collect()
}

impl Node {
    /// Returns the entries of a directory, in order. Returns none for a file.
    fn children(&self, disk: &LiveDisk) -> Vec<(String, Node)> {
        let named = |name: &str, node| (name.to_owned(), node);
        let mut children = match self {
            Self::Root => {
                let mut children = leaves(DISK, Self::OfDisk);
                children.push(named("clients", Self::Clients));
                children.push(named("device", Self::Device));
                children.push(named("groups", Self::Groups));
                children.push(named("queue", Self::Queue));
                children
            }
            Self::Device => leaves(DEVICE, Self::OfDisk),
            Self::Queue => {
                let mut children = leaves(QUEUE, Self::OfDisk);
                children.extend(RequestQueue::attribute_specs().map(|spec| named(spec.name, Self::Attribute(spec))));
                children.push(named("iosched", Self::Iosched));
                children
            }
            Self::Iosched => {
                let Ok(present) = disk.registry().get(disk.queue().scheduler()) else { return Vec::new() };
                let tunables = (present.tunables)().into_iter().map(|spec| named(spec.name, Self::Tunable(spec)));
                tunables.chain(present.texts.iter().map(|spec| named(spec.name, Self::Text(spec)))).collect()
            }
            Self::Groups => disk.groups().map(|(name, _)| (file_name(name), Self::Group(name.to_owned()))).collect(),
            Self::Group(name) => {
                let files = [
                    ("weight", Self::Weight as fn(String) -> Self),
                    (IO_MAX, Self::IoMax),
                    (RESERVATION, Self::Reservation),
                    (LIMIT, Self::Limit),
                    (REMOVE, Self::Remove),
                ];
                files.map(|(file, node)| named(file, node(name.clone()))).into()
            }
            Self::Clients => {
                let mut clients: Vec<_> = disk.clients().map(|client| client.id).collect();
                clients.sort_by_key(|id| (id.to_string().len(), id.to_string()));
                return clients.into_iter().map(|id| (id.to_string(), Self::Client(id))).collect();
            }
            &Self::Client(id) => leaves(CLIENT, |leaf| Self::OfClient(leaf, id)),
            _ => Vec::new(),
        };
        children.sort_by(|(a, _), (b, _)| a.cmp(b));
        children
    }

    fn kind(&self) -> Kind {
        let is_writable = match self {
            Self::OfDisk(leaf) => leaf.write.is_some(),
            Self::OfClient(leaf, _) => leaf.write.is_some(),
            Self::Attribute(spec) | Self::Tunable(spec) => !spec.read_only,
            Self::Text(spec) => !spec.takes.is_empty(),
            Self::Weight(_) | Self::IoMax(_) | Self::Reservation(_) | Self::Limit(_) | Self::Remove(_) => true,
            _ => return Kind::Directory,
        };
        Kind::File { is_writable }
    }
}

/// Returns the node at a path.
fn find(disk: &LiveDisk, path: &str) -> Result<Node, ControlError> {
    let mut node = Node::Root;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if node.kind() != Kind::Directory {
            return Err(ControlError::NotADirectory { path: path.to_owned() });
        }
        let children = node.children(disk);
        match children.iter().find(|(child, _)| child == name) {
            Some((_, child)) => node = child.clone(),
            None => return Err(ControlError::NotFound { path: path.to_owned(), known: known(&children) }),
        }
    }
    Ok(node)
}

fn known(children: &[(String, Node)]) -> String {
    let names: Vec<_> = children.iter().take(NAMES_SHOWN).map(|(name, _)| name.as_str()).collect();
    match names.as_slice() {
        [] => "its directory is empty".to_owned(),
        names => format!("available: {}{}", names.join(", "), if children.len() > NAMES_SHOWN { ", ..." } else { "" }),
    }
}

/// Returns the kind of the node `path`.
///
/// # Errors
/// The path does not exist.
pub fn kind(disk: &LiveDisk, path: &str) -> Result<Kind, ControlError> {
    Ok(find(disk, path)?.kind())
}

/// Returns the entries of the directory `path`.
///
/// # Errors
/// The directory does not exist.
pub fn list(disk: &LiveDisk, path: &str) -> Result<Vec<Entry>, ControlError> {
    let node = find(disk, path)?;
    if node.kind() != Kind::Directory {
        return Err(ControlError::NotADirectory { path: path.to_owned() });
    }
    Ok(node.children(disk).into_iter().map(|(name, node)| Entry { name, kind: node.kind() }).collect())
}

/// Returns the content of the file `path`, with a newline at the end.
///
/// # Errors
/// The file does not exist.
pub fn read(disk: &mut LiveDisk, now: Time, path: &str) -> Result<String, ControlError> {
    let mut text = match find(disk, path)? {
        Node::OfDisk(leaf) => (leaf.read)(disk, now, ()),
        Node::OfClient(leaf, id) => (leaf.read)(disk, now, id),
        Node::Attribute(spec) => disk.attribute(spec.name).unwrap_or_default(),
        Node::Tunable(spec) => {
            let value = disk.queue().tunable(spec.name).unwrap_or_default();
            spec.number(value).to_string()
        }
        // A file that can only be written reads as empty.
        Node::Text(spec) => disk.queue().tunable_text(spec.name).unwrap_or_default(),
        Node::Weight(group) => weight_of(disk, &group),
        Node::IoMax(group) => disk.group_file(&group, IO_MAX).unwrap_or_default(),
        Node::Reservation(group) => rates_of(disk, &group).reservation_text(),
        Node::Limit(group) => rates_of(disk, &group).limit_text(),
        Node::Remove(_) => "0".to_owned(),
        _ => return Err(ControlError::IsDirectory { path: path.to_owned() }),
    };
    text.push('\n');
    Ok(text)
}

/// Writes `text` to the file `path`. Removes white space at both ends of `text` first.
///
/// # Errors
/// The file does not exist, cannot be written, or does not accept the value. An error changes
/// nothing.
pub fn write(disk: &mut LiveDisk, now: Time, path: &str, text: &str) -> Result<(), ControlError> {
    let node = find(disk, path)?;
    match node.kind() {
        Kind::Directory => return Err(ControlError::IsDirectory { path: path.to_owned() }),
        Kind::File { is_writable: false } => return Err(ControlError::ReadOnly { path: path.to_owned() }),
        Kind::File { is_writable: true } => {}
    }
    let value = text.trim();
    let invalid = |problem: String| ControlError::Invalid { path: path.to_owned(), problem };
    // The message of a tunable's error begins with the tunable's name.
    let tunable = |error: TunableError| match error {
        TunableError::ReadOnly { .. } => ControlError::ReadOnly { path: path.to_owned() },
        error => {
            let message = error.to_string();
            invalid(message.split_once(": ").map_or(message.clone(), |(_, problem)| problem.to_owned()))
        }
    };
    match node {
        Node::OfDisk(Leaf { write: Some(write), .. }) => write(disk, now, (), value).map_err(invalid),
        Node::OfClient(Leaf { write: Some(write), .. }, id) => write(disk, now, id, value).map_err(invalid),
        Node::Attribute(spec) => disk.set_attribute(now, spec.name, value).map_err(tunable),
        Node::Tunable(spec) => disk.set_tunable(now, spec.name, value).map_err(tunable),
        Node::Text(spec) => disk.set_tunable(now, spec.name, value).map_err(tunable),
        Node::Weight(group) => write_weight(disk, &group, value).map_err(invalid),
        Node::Reservation(group) => write_rate(disk, now, &group, RESERVATION, value).map_err(invalid),
        Node::Limit(group) => write_rate(disk, now, &group, LIMIT, value).map_err(invalid),
        Node::Remove(_) if value != "1" => Err(invalid("write 1 to remove the group".to_owned())),
        Node::Remove(group) => remove_group(disk, now, path, &group),
        Node::IoMax(group) => disk.set_group_file(now, &group, IO_MAX, value).map_err(|error| {
            let message = error.to_string();
            let problem = message.split_once(": ").map_or(message.clone(), |(_, problem)| problem.to_owned());
            match error.error() {
                WriteError::Range => ControlError::OutOfRange { path: path.to_owned(), problem },
                _ => invalid(problem),
            }
        }),
        _ => Err(ControlError::ReadOnly { path: path.to_owned() }),
    }
}

/// Creates the directory `path`: a new group with the default weight.
///
/// # Errors
/// The path is not directly in `groups`, exists already or has no valid name, or there are too many
/// groups.
pub fn make_directory(disk: &mut LiveDisk, path: &str) -> Result<(), ControlError> {
    let refused = |problem: String| ControlError::Refused { path: path.to_owned(), problem };
    let name = match path.split_once('/') {
        Some(("groups", name)) if !name.is_empty() && !name.contains('/') => name,
        _ => return Err(refused("only groups can be created, as groups/NAME".to_owned())),
    };
    check_group_name(name).map_err(|problem| ControlError::Invalid { path: path.to_owned(), problem })?;
    if find(disk, path).is_ok() {
        return Err(ControlError::Exists { path: path.to_owned() });
    }
    may_make(disk, name).map_err(refused)?;
    disk.set_group_weight(name, None).map_err(|error| refused(error.to_string()))
}

/// Removes the directory `path` of a group that has no clients and that no export declares.
///
/// # Errors
/// The directory does not exist, is not a group, or the group is in use.
pub fn remove_directory(disk: &mut LiveDisk, now: Time, path: &str) -> Result<(), ControlError> {
    let refused = |problem: String| ControlError::Refused { path: path.to_owned(), problem };
    let node = find(disk, path)?;
    let Node::Group(name) = node else {
        return Err(match node.kind() {
            Kind::Directory => refused("only groups can be removed, as groups/NAME".to_owned()),
            Kind::File { .. } => ControlError::NotADirectory { path: path.to_owned() },
        });
    };
    remove_group(disk, now, path, &name)
}

fn remove_group(disk: &mut LiveDisk, now: Time, path: &str, name: &str) -> Result<(), ControlError> {
    disk.remove_group(now, name)
        .map_err(|error| ControlError::InUse { path: path.to_owned(), problem: error.to_string() })
}

/// Checks the name of a group.
///
/// # Errors
/// The name is not valid. The error describes the problem and a valid name.
pub fn check_group_name(name: &str) -> Result<(), String> {
    let is_name =
        (1..=GROUP_NAME_BYTES_MAX).contains(&name.len()) && !name.contains('/') && name != "." && name != "..";
    if !is_name || !name.chars().all(is_printable) {
        return Err(format!(
            "{name:?} is not the name of a group: a name has at most {GROUP_NAME_BYTES_MAX} bytes, no slash, and only \
             printable characters"
        ));
    }
    Ok(())
}

/// Checks whether a new group of this name may be created.
fn may_make(disk: &LiveDisk, name: &str) -> Result<(), String> {
    check_group_name(name)?;
    if disk.groups().count() >= GROUPS_MAX {
        return Err(format!("there are already {GROUPS_MAX} groups, the maximum"));
    }
    Ok(())
}

// ---- contents of files

fn inflight([reads, writes]: [u32; 2]) -> String {
    format!("{reads:8} {writes:8}")
}

/// Returns the name of a group's directory. A slash becomes `!`, as in sysfs.
fn file_name(group: &str) -> String {
    printable(group).replace('/', "!")
}

fn of(disk: &LiveDisk, id: ClientId, what: impl Fn(&Client) -> String) -> String {
    disk.client(id).map(what).unwrap_or_default()
}

/// Returns the name of the directory of the client's group in `groups`. Returns `/` without a
/// group.
fn group_of(client: &Client) -> String {
    client.identity.group.as_deref().map_or_else(|| "/".to_owned(), file_name)
}

/// Returns one line for each kind of operation: the number of operations, their bytes, the number
/// of failures, and the mean and quantiles of the latency.
fn client_stat(client: &Client) -> String {
    let stat = &client.stat;
    let kinds = [("read", &stat.reads), ("write", &stat.writes), ("trim", &stat.trims), ("flush", &stat.flushes)];
    let mut text = String::new();
    for (kind, Had { ios, bytes, errors, latencies }) in kinds {
        let separator = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{separator}{kind} ios={ios} bytes={bytes} errors={errors}");
        let mean_us = latencies.sum_ns().checked_div(latencies.count()).unwrap_or(0) / iosched::MICROSECOND_NS;
        let _ = write!(text, " mean_us={mean_us}");
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
            let _ = write!(text, " {name}_us={}", latencies.quantile_ns(quantile) / iosched::MICROSECOND_NS);
        }
    }
    text
}

fn weight_of(disk: &LiveDisk, group: &str) -> String {
    disk.groups().find(|(name, _)| *name == group).map(|(_, weight)| weight.to_string()).unwrap_or_default()
}

fn rates_of(disk: &LiveDisk, group: &str) -> Rates {
    disk.group_rates().find(|(name, _)| *name == group).map(|(_, rates)| rates).unwrap_or_default()
}

// ---- writes

/// Writes the reservation or the limit of a group.
fn write_rate(disk: &mut LiveDisk, now: Time, group: &str, file: &str, value: &str) -> Result<(), String> {
    rate(file, value)?;
    let Rates { reservation, limit } = rates_of(disk, group);
    disk.set_group_file(now, group, MCLOCK, &format!("{file}={value}")).map_err(|_| {
        let other = if file == LIMIT { ("reservation", reservation) } else { ("limit", limit) };
        let other = format!("{} {}", other.0, other.1.map_or_else(|| "none".to_owned(), |rate| rate.to_string()));
        format!("{value:?} does not fit the {other} of the group; a reservation must be at most the limit")
    })
}

/// Checks the text of a group's file `reservation` or `limit`.
///
/// # Errors
/// The text is neither a rate nor the word for "no rate". The error describes valid texts.
pub fn rate(file: &str, value: &str) -> Result<(), String> {
    let (parsed, none) = match file {
        LIMIT => (Rates::parse_limit(value), "max"),
        _ => (Rates::parse_reservation(value), "0"),
    };
    parsed.map(drop).map_err(|error| format!("{error}; {none} means no {file}"))
}

fn rescan(disk: &mut LiveDisk, _: Time, (): (), value: &str) -> Result<(), String> {
    if value != "1" {
        return Err("write 1 to query the size of the back end".to_owned());
    }
    disk.rescan().map(drop).map_err(|error| error.to_string())
}

fn write_depth(disk: &mut LiveDisk, _: Time, (): (), value: &str) -> Result<(), String> {
    let max = disk.depth_max();
    match value.parse() {
        Ok(depth) if (1..=max).contains(&depth) => {
            disk.set_depth(depth);
            Ok(())
        }
        _ => Err(format!("{value:?} is not a valid queue depth: write a number of commands from 1 to {max}")),
    }
}

/// Parses the weight of a group for the scheduler `elevator`, which accepts weights in `range`.
/// `None` is the default.
///
/// # Errors
/// The text is not a weight. The error describes the problem and valid weights.
pub fn weight(value: &str, elevator: &str, range: WeightRange) -> Result<Option<u32>, String> {
    let WeightRange { min, max, .. } = range;
    let wrong = || format!("{value:?} is not a weight: for {elevator}, write a weight from {min} to {max}, or default");
    match value {
        "default" => Ok(None),
        number => {
            let weight = number.parse().ok().filter(|weight| (min..=max).contains(weight));
            weight.map(Some).ok_or_else(wrong)
        }
    }
}

fn write_weight(disk: &mut LiveDisk, group: &str, value: &str) -> Result<(), String> {
    let weight = weight(value, disk.queue().scheduler(), disk.weight_range())?;
    disk.set_group_weight(group, weight).map_err(|error| error.to_string())
}

fn write_client_group(disk: &mut LiveDisk, now: Time, id: ClientId, value: &str) -> Result<(), String> {
    let present = disk.groups().map(|(name, _)| name).find(|name| file_name(name) == value).map(str::to_owned);
    let group = match present {
        Some(present) => Some(present),
        None if value == "/" => None,
        None => {
            may_make(disk, value)?;
            Some(value.to_owned())
        }
    };
    disk.set_client_group(now, id, group);
    Ok(())
}

fn read_client_weight(disk: &mut LiveDisk, _: Time, id: ClientId) -> String {
    match disk.client(id).and_then(|client| client.identity.group.clone()) {
        Some(group) => weight_of(disk, &group),
        None => "none".to_owned(),
    }
}

fn write_client_weight(disk: &mut LiveDisk, _: Time, id: ClientId, value: &str) -> Result<(), String> {
    match disk.client(id).and_then(|client| client.identity.group.clone()) {
        Some(group) => write_weight(disk, &group, value),
        None => Err(IN_NO_GROUP.to_owned()),
    }
}
