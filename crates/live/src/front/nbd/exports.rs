//! Declared exports: the names under which a server offers a disk, and the properties of the
//! clients.
//!
//! A file declares each export as a table. A command-line option declares an export as a list:
//!
//! ```toml
//! [export.db]
//! class = "be"            # rt, be or idle; be if left out
//! level = 0               # 0 (most urgent) to 7; 4 if left out
//! weight = 800            # 10 to 1000: the share of all clients of this export together
//! reservation = 500       # minimum for the clients: I/Os per second, or "20MB" per second
//! limit = "50MB"          # maximum for the clients: I/Os or bytes per second
//! sync = "all"            # writes that are sync: fua (those with FUA; if left out) or all
//! description = "the database's disk"
//! [export.backup]
//! class = "idle"
//! read_only = true
//! ```
//!
//! Similar exports as options: `--export db,class=be,level=0,weight=800,sync=all,description=the
//! database's disk`, `--export backup,class=idle,read-only`. The text of `description=` extends to
//! the end of the option and can contain commas.
//!
//! Class and level become the ioprio of the clients. Schedulers compare ioprios only within a
//! group. There are therefore two modes. Either each export has its own group, and the groups share
//! the disk by weight. Or all exports have one group, in which class and level decide. See
//! [`Exports::group`].

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use iosched::{IoClass, IoPriority, LEVEL_DEFAULT, LEVEL_MAX, Rate, Rates, WeightRange};
use iosched_nbd::Offer;
use iosched_nbd::wire::STRING_BYTES_MAX;
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::disk::SyncWrites;
use crate::sys::is_printable;
use crate::{Portion, Shares};

/// Maximum number of exports of one disk.
pub const EXPORTS_MAX: usize = 1024;
/// Allowed weights of a group. Every scheduler that divides by weight accepts these weights.
const WEIGHTS: WeightRange = WeightRange::CFQ;

/// A name under which a server offers a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Name that clients request. It is also the name of the clients' group. It has at most
    /// [`STRING_BYTES_MAX`] bytes and may be empty.
    pub name: String,
    /// Description for users who list the exports; at most [`STRING_BYTES_MAX`] bytes.
    pub description: String,
    /// I/O priority of the clients.
    pub ioprio: IoPriority,
    /// Declared weight of the clients' group, 10 to 1000.
    pub weight: Option<u32>,
    /// Declared reservation and limit of the clients' group.
    pub rates: Rates,
    /// Whether clients cannot write.
    pub read_only: bool,
    /// Selects which of the clients' writes are sync.
    pub sync: SyncWrites,
}

impl Export {
    /// Creates a writable export with the class best effort and the default level.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            ioprio: IoPriority::new(IoClass::BestEffort, LEVEL_DEFAULT),
            weight: None,
            rates: Rates::default(),
            read_only: false,
            sync: SyncWrites::Fua,
        }
    }

    /// Returns the offer for clients: `disk` with the properties of this export.
    #[must_use]
    pub fn offer(&self, disk: &Offer) -> Offer {
        let mut offer = disk.clone();
        offer.name.clone_from(&self.name);
        offer.description.clone_from(&self.description);
        offer.read_only |= self.read_only;
        offer
    }

    /// Parses the value of an option: `NAME[,FIELD=VALUE]...`.
    ///
    /// # Errors
    /// A field is wrong. The error names the field and the allowed values.
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
            // Options use a hyphen.
            let field = if field == "read-only" { "read_only" } else { field };
            declared.set(field, given).map_err(wrong)?;
            rest = after;
        }
        declared.export(name).map_err(wrong)
    }
}

/// Error in a declaration of exports.
#[derive(Debug, thiserror::Error)]
pub enum ExportsError {
    /// The file cannot be read.
    #[error("{file}: cannot read this file: {source}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is not TOML, or does not have tables `[export.NAME]`.
    #[error("{file}: {}; an export is a table [export.NAME]", .source.to_string().trim_end())]
    Syntax {
        /// Path of the file.
        file: String,
        /// Line and column, the text there, and the expected text.
        source: Box<toml::de::Error>,
    },
    /// A field is unknown, or its value is not allowed.
    #[error("{place}: export {export:?}: {source}")]
    Field {
        /// File and line, or the option's name.
        place: String,
        /// Name of the export.
        export: String,
        /// Error in the field, with allowed values.
        source: FieldError,
    },
    /// Two exports have the same name.
    #[error("export {name:?} is declared twice")]
    Twice {
        /// The common name.
        name: String,
    },
    /// There are more than [`EXPORTS_MAX`] exports.
    #[error("{count} exports are declared, but a disk has at most {EXPORTS_MAX}")]
    TooMany {
        /// Number of exports.
        count: usize,
    },
}

/// Error in a field of an export.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// The field does not exist.
    #[error(
        "{field}: an export has no such field; its fields are class, level, weight, reservation, limit, sync, \
         description and read_only"
    )]
    Unknown {
        /// Name of the field.
        field: String,
    },
    /// The field is given twice.
    #[error("{field}: the export gives this field twice; remove one of the two")]
    Twice {
        /// Name of the field.
        field: &'static str,
    },
    /// The value is not allowed.
    #[error("{field}: {given} is not a valid value: write {right}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// The given value.
        given: String,
        /// Description of allowed values.
        right: String,
    },
    /// The reservation is above the limit.
    #[error("reservation: {reservation} is above the limit {limit}; lower the reservation or raise the limit")]
    AboveLimit {
        /// The declared reservation.
        reservation: Rate,
        /// The declared limit.
        limit: Rate,
    },
    /// A level is given for a class without levels.
    #[error("level: the class idle has no levels; leave the level out")]
    IdleLevel,
    /// The name has unprintable characters.
    #[error("the name has unprintable characters; remove them")]
    Unprintable,
    /// A text is too long for the protocol.
    #[error("{what}: the text has {bytes} bytes, but the protocol allows only {STRING_BYTES_MAX}")]
    TooLong {
        /// The text that is too long: the name or the description.
        what: &'static str,
        /// Length of the text, bytes.
        bytes: usize,
    },
}

/// The exports of one disk, ordered by unique names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exports {
    exports: Vec<Export>,
}

/// Content of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    export: BTreeMap<String, BTreeMap<String, Spanned<Value>>>,
}

impl Exports {
    /// Reads the exports of a file.
    ///
    /// # Errors
    /// The file cannot be read, or [`Self::from_toml`] fails.
    pub fn load(file: &Path) -> Result<Self, ExportsError> {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => Self::from_toml(&name, &text),
            Err(source) => Err(ExportsError::Unreadable { file: name, source }),
        }
    }

    /// Parses the text of `file`.
    ///
    /// # Errors
    /// A declaration is wrong. The error names the file, the line, the export, the field and the
    /// allowed values.
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

    /// Adds an export to the file's exports.
    ///
    /// # Errors
    /// Another export has the same name, or there are already [`EXPORTS_MAX`] exports.
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

    /// Returns the exports. If there are none, returns one export with the disk's name. Clients can
    /// also reach this export by the empty name.
    #[must_use]
    pub fn or_default(mut self, disk: &str) -> Self {
        if self.exports.is_empty() {
            self.exports.push(Export::new(disk));
        }
        self
    }

    /// Returns all exports, ordered by name.
    #[must_use]
    pub fn as_slice(&self) -> &[Export] {
        &self.exports
    }

    /// Returns the property that divides the disk between clients: the first property in this list
    /// that an export declares. The list is: reservations and limits; weights; classes and levels.
    #[must_use]
    pub fn shares(&self) -> Option<Shares> {
        if self.exports.iter().any(|export| export.rates != Rates::default()) {
            return Some(Shares::Rates);
        }
        let declares_priority = |export: &Export| export.ioprio != Export::new("").ioprio;
        if self.exports.iter().any(|export| export.weight.is_some()) {
            return Some(Shares::Weights);
        }
        self.exports.iter().any(declares_priority).then_some(Shares::Priorities)
    }

    /// Returns whether clients can send async writes to an export. CFQ and bfq divide async writes
    /// only roughly: they idle (wait for a client's next request) only after sync requests.
    #[must_use]
    pub fn has_async_writes(&self) -> bool {
        self.exports.iter().any(|export| !export.read_only && export.sync != SyncWrites::All)
    }

    /// Returns the group of the clients of `export`, and the weight, reservation and limit of the
    /// group.
    ///
    /// Each export has its own group, with one exception. If exports declare classes or levels, and
    /// no weights, reservations or limits, all clients are in one group. In this group, class and
    /// level decide. An idle export without a weight gets the smallest weight. An export with an
    /// empty name has no group.
    #[must_use]
    pub fn group<'a>(&self, export: &'a Export) -> Option<(&'a str, Portion)> {
        if export.name.is_empty() || self.shares() == Some(Shares::Priorities) {
            return None;
        }
        let least = Some(WEIGHTS.min).filter(|_| export.ioprio.class() == IoClass::Idle);
        Some((&export.name, Portion { weight: export.weight.or(least), rates: export.rates }))
    }

    /// Returns the offers of `disk` to clients, one for each export, in the same order.
    #[must_use]
    pub fn offers(&self, disk: &Offer) -> std::sync::Arc<[Offer]> {
        self.exports.iter().map(|export| export.offer(disk)).collect()
    }
}

/// Returns the number of the line that contains the byte `at` of `text`, counted from 1.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

/// A value as it was written.
#[derive(Clone, Copy)]
enum Given<'a> {
    Toml(&'a Value),
    /// A text after `=` in an option.
    Text(&'a str),
    /// A name without `=` in an option.
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

    /// Parses the value as a rate: a number of I/Os per second, or a text.
    fn rate(&self, field: &'static str) -> Result<Rate, FieldError> {
        let rate = match self {
            Self::Toml(Value::Integer(number)) => number.to_string().parse().ok(),
            given => given.text().and_then(|text| text.parse().ok()),
        };
        let right = "I/Os per second, such as 500, or bytes per second with a unit, such as 50MB";
        rate.ok_or_else(|| self.wrong(field, right))
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

/// Fields of an export, from a file or an option.
#[derive(Default)]
struct Declared {
    class: Option<IoClass>,
    level: Option<u8>,
    weight: Option<u32>,
    rates: Rates,
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
            "reservation" => ("reservation", self.rates.reservation.replace(given.rate("reservation")?).is_some()),
            "limit" => ("limit", self.rates.limit.replace(given.rate("limit")?).is_some()),
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
                let sync = sync.ok_or_else(|| {
                    given.wrong("sync", "fua (only writes with FUA are sync) or all (all writes are sync)")
                })?;
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
        if let Rates { reservation: Some(reservation), limit: Some(limit) } = self.rates
            && !self.rates.is_consistent()
        {
            return Err(FieldError::AboveLimit { reservation, limit });
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
            rates: self.rates,
            read_only: self.read_only.unwrap_or_default(),
            sync: self.sync.unwrap_or_default(),
        })
    }
}
