//! Declared exports: the names under which a disk is served, and what each name means for its clients.
//!
//! A file declares them as tables, an option as a list:
//!
//! ```toml
//! [export.db]
//! class = "be"            # rt, be or idle; be if left out
//! level = 0               # 0 (most urgent) to 7; 4 if left out
//! weight = 800            # 10 to 1000: the share of all clients of this export together
//! sync = "all"            # which writes somebody waits for: fua (those with FUA; if left out) or all
//! description = "the database's disk"
//! [export.backup]
//! class = "idle"
//! read_only = true
//! ```
//!
//! `--export db,class=be,level=0,weight=800,sync=all,description=the database's disk`,
//! `--export backup,class=idle,read-only`.
//! `description=` takes the rest of the option, commas included.
//!
//! Class and level become the clients' ioprio. Elevators look at them within a group only, so that exports are groups,
//! which share by weight, or are told apart by class and level, but not both: see [`Exports::group`].

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use iosched::{IoClass, IoPriority, LEVEL_DEFAULT, LEVEL_MAX, WeightRange};
use iosched_nbd::Offer;
use iosched_nbd::wire::STRING_BYTES_MAX;
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::Shares;
use crate::disk::SyncWrites;
use crate::sys::is_printable;

/// Most exports of one disk.
pub const EXPORTS_MAX: usize = 1024;
/// The weights a group may have: every elevator that shares by weight takes these.
const WEIGHTS: WeightRange = WeightRange::CFQ;

/// A name under which a disk is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// What clients ask for; also the name of their group. At most [`STRING_BYTES_MAX`] bytes, may be empty.
    pub name: String,
    /// For people who list the exports; at most [`STRING_BYTES_MAX`] bytes.
    pub description: String,
    /// The ioprio of clients.
    pub ioprio: IoPriority,
    /// The weight declared for the group that the clients are, 10 to 1000.
    pub weight: Option<u32>,
    /// Clients cannot write.
    pub read_only: bool,
    /// Which of the clients' writes are sync.
    pub sync: SyncWrites,
}

impl Export {
    /// An export with nothing declared of it: best effort at the default level, writable.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            ioprio: IoPriority::new(IoClass::BestEffort, LEVEL_DEFAULT),
            weight: None,
            read_only: false,
            sync: SyncWrites::Fua,
        }
    }

    /// What clients are offered: `disk`, as this export shows it.
    #[must_use]
    pub fn offer(&self, disk: &Offer) -> Offer {
        let mut offer = disk.clone();
        offer.name.clone_from(&self.name);
        offer.description.clone_from(&self.description);
        offer.read_only |= self.read_only;
        offer
    }

    /// The export that an option's value declares: `NAME[,FIELD=VALUE]...`.
    ///
    /// # Errors
    /// Which field is wrong, and what would be right.
    pub fn from_option(text: &str) -> Result<Self, ExportsError> {
        let (name, mut rest) = text.split_once(',').unwrap_or((text, ""));
        let wrong = |source| ExportsError::Field { place: "--export".into(), export: name.into(), source };
        let mut declared = Declared::default();
        while !rest.is_empty() {
            let (this, after) = match rest.strip_prefix("description=") {
                Some(_) => (rest, ""),
                None => rest.split_once(',').unwrap_or((rest, "")),
            };
            let (field, given) = match this.split_once('=') {
                Some((field, text)) => (field, Given::Text(text)),
                None => (this, Given::Bare),
            };
            // As options are written.
            let field = if field == "read-only" { "read_only" } else { field };
            declared.set(field, given).map_err(wrong)?;
            rest = after;
        }
        declared.export(name).map_err(wrong)
    }
}

/// What is wrong with a declaration of exports.
#[derive(Debug, thiserror::Error)]
pub enum ExportsError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Not TOML, or not tables `[export.NAME]`.
    #[error("{file}: {}; an export is a table [export.NAME]", .source.to_string().trim_end())]
    Syntax {
        /// The file.
        file: String,
        /// Line, column, what was found and what was expected.
        source: Box<toml::de::Error>,
    },
    /// A field no export has, or a value the field cannot have.
    #[error("{place}: export {export:?}: {source}")]
    Field {
        /// The file and line, or the option.
        place: String,
        /// The export's name.
        export: String,
        /// What is wrong, and what would be right.
        source: FieldError,
    },
    /// Two declarations of one name.
    #[error("export {name:?} is declared twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// More than [`EXPORTS_MAX`].
    #[error("{count} exports are declared, but a disk has at most {EXPORTS_MAX}")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// What is wrong with a field of an export.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// No such field.
    #[error(
        "{field}: is not a field of an export; the fields are class, level, weight, sync, description and \
         read_only"
    )]
    Unknown {
        /// What was written.
        field: String,
    },
    /// Written twice.
    #[error("{field}: is given twice")]
    Twice {
        /// The field.
        field: &'static str,
    },
    /// A value that it cannot have.
    #[error("{field}: {given} is wrong: write {right}")]
    Value {
        /// The field.
        field: &'static str,
        /// What was written.
        given: String,
        /// What would be right.
        right: String,
    },
    /// A level in a class without any.
    #[error("level: the class idle has no levels: omit the level")]
    IdleLevel,
    /// Its name cannot be shown on a line.
    #[error("the name has unprintable characters: remove them")]
    Unprintable,
    /// Too long for the protocol.
    #[error("{what}: has {bytes} bytes, but the protocol allows only {STRING_BYTES_MAX}")]
    TooLong {
        /// The name or the description.
        what: &'static str,
        /// Its length, bytes.
        bytes: usize,
    },
}

/// The exports of one disk, by name, each name once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exports {
    exports: Vec<Export>,
}

/// A file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    export: BTreeMap<String, BTreeMap<String, Spanned<Value>>>,
}

impl Exports {
    /// The exports that a file declares.
    ///
    /// # Errors
    /// If it cannot be read, or as [`Self::from_toml`].
    pub fn load(file: &Path) -> Result<Self, ExportsError> {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => Self::from_toml(&name, &text),
            Err(source) => Err(ExportsError::Unreadable { file: name, source }),
        }
    }

    /// The exports that the text of `file` declares.
    ///
    /// # Errors
    /// What is wrong, with file, line, export and field, and what would be right.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, ExportsError> {
        let parsed: File = toml::from_str(text)
            .map_err(|source| ExportsError::Syntax { file: file.to_owned(), source: Box::new(source) })?;
        let mut exports = Self::default();
        for (name, fields) in &parsed.export {
            let wrong = |place: String| move |source| ExportsError::Field { place, export: name.clone(), source };
            let mut declared = Declared::default();
            let mut place = file.to_owned();
            for (field, value) in fields {
                let here = format!("{file}:{}", line(text, value.span().start));
                if field == "level" {
                    place.clone_from(&here);
                }
                declared.set(field, Given::Toml(value.get_ref())).map_err(wrong(here))?;
            }
            exports.add(declared.export(name).map_err(wrong(place))?)?;
        }
        Ok(exports)
    }

    /// Adds one.
    ///
    /// # Errors
    /// If its name is taken, or there are [`EXPORTS_MAX`].
    pub fn add(&mut self, export: Export) -> Result<(), ExportsError> {
        match self.exports.binary_search_by(|other| other.name.cmp(&export.name)) {
            Ok(_) => Err(ExportsError::Twice { name: export.name }),
            Err(_) if self.exports.len() >= EXPORTS_MAX => Err(ExportsError::TooMany { count: self.exports.len() + 1 }),
            Err(at) => {
                self.exports.insert(at, export);
                Ok(())
            }
        }
    }

    /// These, or if none is declared one of the disk's name, which clients also reach by the empty name.
    #[must_use]
    pub fn or_default(mut self, disk: &str) -> Self {
        if self.exports.is_empty() {
            self.exports.push(Export::new(disk));
        }
        self
    }

    /// All of them, by name.
    #[must_use]
    pub fn as_slice(&self) -> &[Export] {
        &self.exports
    }

    /// What decides among clients: weights if any is declared, else classes and levels if any is.
    #[must_use]
    pub fn shares(&self) -> Option<Shares> {
        let declares_priority = |export: &Export| export.ioprio != Export::new("").ioprio;
        if self.exports.iter().any(|export| export.weight.is_some()) {
            return Some(Shares::Weights);
        }
        self.exports.iter().any(declares_priority).then_some(Shares::Priorities)
    }

    /// The group that the clients of `export` are, and its weight (`None`: the elevator's default).
    ///
    /// Exports are groups, unless classes or levels are declared and no weight is: then all clients are in one group,
    /// where class and level decide. An idle export among groups has the least weight if none is declared. Without a
    /// name there is no group.
    #[must_use]
    pub fn group<'a>(&self, export: &'a Export) -> Option<(&'a str, Option<u32>)> {
        if export.name.is_empty() || self.shares() == Some(Shares::Priorities) {
            return None;
        }
        let least = Some(WEIGHTS.min).filter(|_| export.ioprio.class() == IoClass::Idle);
        Some((&export.name, export.weight.or(least)))
    }

    /// What clients are offered of `disk`, one for each export, in the same order.
    #[must_use]
    pub fn offers(&self, disk: &Offer) -> std::sync::Arc<[Offer]> {
        self.exports.iter().map(|export| export.offer(disk)).collect()
    }
}

/// The line, counted from 1, of a byte of `text`.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

/// A value as it was written.
#[derive(Clone, Copy)]
enum Given<'a> {
    Toml(&'a Value),
    /// In an option, after `=`.
    Text(&'a str),
    /// In an option, without `=`.
    Bare,
}

impl Given<'_> {
    fn wrong(&self, field: &'static str, right: impl Into<String>) -> FieldError {
        let given = match self {
            Self::Toml(value) => value.to_string(),
            Self::Text("") => "nothing".to_owned(),
            Self::Text(text) => (*text).to_owned(),
            Self::Bare => "nothing".to_owned(),
        };
        FieldError::Value { field, given, right: right.into() }
    }

    fn number(&self, field: &'static str, min: u32, max: u32, note: &str) -> Result<u32, FieldError> {
        let number = match self {
            Self::Toml(Value::Integer(number)) => u32::try_from(*number).ok(),
            Self::Text(text) => text.parse().ok(),
            Self::Toml(_) | Self::Bare => None,
        };
        let within = number.filter(|number| (min..=max).contains(number));
        within.ok_or_else(|| self.wrong(field, format!("a number from {min}{note} to {max}")))
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Toml(Value::String(text)) => Some(text),
            Self::Text(text) => Some(text),
            Self::Toml(_) | Self::Bare => None,
        }
    }

    fn flag(&self) -> Option<bool> {
        match self {
            Self::Toml(Value::Boolean(flag)) => Some(*flag),
            Self::Text(text) => text.parse().ok(),
            Self::Bare => Some(true),
            Self::Toml(_) => None,
        }
    }
}

/// An export field by field, from either form.
#[derive(Default)]
struct Declared {
    class: Option<IoClass>,
    level: Option<u8>,
    weight: Option<u32>,
    description: Option<String>,
    read_only: Option<bool>,
    sync: Option<SyncWrites>,
}

impl Declared {
    fn set(&mut self, field: &str, given: Given<'_>) -> Result<(), FieldError> {
        let taken = match field {
            "class" => {
                let class = match given.text() {
                    Some("rt") => IoClass::RealTime,
                    Some("be") => IoClass::BestEffort,
                    Some("idle") => IoClass::Idle,
                    _ => return Err(given.wrong("class", "rt (real time), be (best effort) or idle")),
                };
                ("class", self.class.replace(class).is_some())
            }
            "level" => {
                let level = given.number("level", 0, LEVEL_MAX.into(), " (most urgent)")?;
                ("level", self.level.replace(level as u8).is_some())
            }
            "weight" => {
                let weight = given.number("weight", WEIGHTS.min, WEIGHTS.max, "")?;
                ("weight", self.weight.replace(weight).is_some())
            }
            "description" => {
                let text = given.text().ok_or_else(|| given.wrong("description", "a text"))?;
                ("description", self.description.replace(text.to_owned()).is_some())
            }
            "read_only" => {
                let flag = given.flag().ok_or_else(|| given.wrong("read_only", "true or false"))?;
                ("read_only", self.read_only.replace(flag).is_some())
            }
            "sync" => {
                let sync = given.text().and_then(|text| text.parse().ok());
                let sync = sync.ok_or_else(|| given.wrong("sync", "fua (writes with FUA are sync) or all"))?;
                ("sync", self.sync.replace(sync).is_some())
            }
            _ => return Err(FieldError::Unknown { field: field.to_owned() }),
        };
        match taken {
            (field, true) => Err(FieldError::Twice { field }),
            (_, false) => Ok(()),
        }
    }

    fn export(self, name: &str) -> Result<Export, FieldError> {
        let class = self.class.unwrap_or(IoClass::BestEffort);
        if class == IoClass::Idle && self.level.is_some() {
            return Err(FieldError::IdleLevel);
        }
        if !name.chars().all(is_printable) {
            return Err(FieldError::Unprintable);
        }
        let description = self.description.unwrap_or_default();
        for (what, bytes) in [("name", name.len()), ("description", description.len())] {
            if bytes > STRING_BYTES_MAX {
                return Err(FieldError::TooLong { what, bytes });
            }
        }
        Ok(Export {
            name: name.to_owned(),
            description,
            ioprio: IoPriority::new(class, self.level.unwrap_or(LEVEL_DEFAULT)),
            weight: self.weight,
            read_only: self.read_only.unwrap_or_default(),
            sync: self.sync.unwrap_or_default(),
        })
    }
}
