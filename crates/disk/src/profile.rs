//! Profiles: the parameters of a device model, each with its source, and the measured values that
//! the model must reproduce.
//!
//! A profile is a TOML file. `kind` selects the model, and the table with the name of the model has
//! its parameters. `[[anchors]]` lists metrics of the real device, with which tests compare the
//! model.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::array::{Array, ArrayConfig};
use crate::config::{ConfigError, is_default, within};
use crate::disk::{Disk, DiskConfig};
use crate::empirical::{Empirical, EmpiricalConfig};
use crate::fixed::{Fixed, FixedConfig};
use crate::hdd::{Hdd, HddConfig};
use crate::host::Host;
use crate::io_cost::{self, Family, IoCostModel, Latencies, Member, Spread};
use crate::measure::{self, Figure, Unit};
use crate::profile_file::read;
use crate::recorded::Recorded;
use crate::server::{Server, ServerConfig};
use crate::ssd::{Ssd, SsdConfig, SsdStartConfig};
use crate::{AnyDevice, Card, Device};

/// Name and text of the built-in profiles.
const EMBEDDED: &[(&str, &str)] = &[
    ("atlas10k", include_str!("../profiles/atlas10k.toml")),
    ("atlas_III", include_str!("../profiles/atlas_III.toml")),
    ("barracuda", include_str!("../profiles/barracuda.toml")),
    ("cheetah4LP", include_str!("../profiles/cheetah4LP.toml")),
    ("cheetah9LP", include_str!("../profiles/cheetah9LP.toml")),
    ("ibm18es", include_str!("../profiles/ibm18es.toml")),
    ("nvme", include_str!("../profiles/nvme.toml")),
    ("nvme-980pro", include_str!("../profiles/nvme-980pro.toml")),
    ("raid-2005", include_str!("../profiles/raid-2005.toml")),
    ("san-lun", include_str!("../profiles/san-lun.toml")),
    ("san-lun-2g", include_str!("../profiles/san-lun-2g.toml")),
    ("sata-2005", include_str!("../profiles/sata-2005.toml")),
    ("sata-7200", include_str!("../profiles/sata-7200.toml")),
    ("sata-7200-slow", include_str!("../profiles/sata-7200-slow.toml")),
    ("sata-desktop", include_str!("../profiles/sata-desktop.toml")),
    ("sata-ssd", include_str!("../profiles/sata-ssd.toml")),
    ("sata-ssd-plp", include_str!("../profiles/sata-ssd-plp.toml")),
    ("scsi-10k", include_str!("../profiles/scsi-10k.toml")),
    ("scsi-15k", include_str!("../profiles/scsi-15k.toml")),
    ("st3500641as", include_str!("../profiles/st3500641as.toml")),
];

/// Returns the name and the text of a built-in profile. Case does not matter.
fn embedded(name: &str) -> Option<(&'static str, &'static str)> {
    EMBEDDED.iter().copied().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// An error of a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is no built-in profile with this name.
    #[error(
        "there is no device profile {name:?}; available: {known}, and the profiles that iosched device list --family \
         ssd shows. To name a file, write a path with a /, or a name that ends in .toml"
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// Names of the built-in profiles.
        known: String,
    },
    /// The name of a profile is followed by an invalid variant.
    #[error(
        "{name}:{variant}: the profile has no variant {variant}; write {name}:depth=N or, for an SSD, {name}:fresh or \
         {name}:steady"
    )]
    Variant {
        /// Name of the profile.
        name: String,
        /// Text after the colon.
        variant: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a text file.
    #[error("{file}: this is {what}, not a profile; give a TOML file, or a name that iosched device list shows")]
    NotText {
        /// Name of the file.
        file: String,
        /// Kind of the file.
        what: &'static str,
    },
    /// The text is not TOML, or a field is unknown, missing or of another type.
    #[error("{file}: {source}")]
    Syntax {
        /// Name of the file or profile.
        file: String,
        /// Line, column, the value found and the value expected.
        source: Box<toml::de::Error>,
    },
    /// The profile of an array's member is not valid.
    #[error("{file}: array.members[{index}].profile: {source}")]
    Member {
        /// Name of the array's file or profile.
        file: String,
        /// Index of the member, from 0.
        index: usize,
        /// The error of the member's profile.
        source: Box<ProfileError>,
    },
    /// A value is not valid for this device.
    #[error("{file}: {source}")]
    Invalid {
        /// Name of the file or profile.
        file: String,
        /// Field, problem and remedy.
        source: ConfigError,
    },
}

/// Model of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Fixed,
    Disk,
    Hdd,
    Ssd,
    Array,
    Server,
    Empirical,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Disk => "disk",
            Self::Hdd => "hdd",
            Self::Ssd => "ssd",
            Self::Array => "array",
            Self::Server => "server",
            Self::Empirical => "empirical",
        }
    }
}

/// A model and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Fixed latency.
    Fixed(FixedConfig),
    /// Seek times by distance, and a fixed rotational delay.
    Disk(DiskConfig),
    /// A rotating disk.
    Hdd(Box<HddConfig>),
    /// Flash behind one link.
    Ssd(Box<SsdConfig>),
    /// Disks behind a controller.
    Array(Box<ArrayConfig>),
    /// Servers behind one queue, with a measured spread.
    Server(Box<ServerConfig>),
    /// Random latencies from measured distributions.
    Empirical(Box<EmpiricalConfig>),
}

/// Contents of a device before a run. Only flash devices depend on the contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartState {
    /// Empty: new, or completely discarded.
    Fresh,
    /// Completely written, and then overwritten at random until the performance is stable.
    Steady,
}

impl StartState {
    const ALL: [Self; 2] = [Self::Fresh, Self::Steady];

    /// Returns the name of the state: the text after the colon in `sata-ssd:fresh`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Steady => "steady",
        }
    }
}

/// A measured metric of the real device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// Name of the metric.
    pub figure: Figure,
    /// Value, more than 0.
    pub value: f64,
    /// Unit of the value. It must be valid for the metric.
    pub unit: Unit,
    /// Source of the value: data sheet, paper or measurement.
    pub source: String,
}

/// Accuracy of a fitted model, from its calibration. For four of five measured metrics, the model
/// differs from the device by at most these errors. A smaller difference between two simulated
/// settings can be an error of the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Whether the model fits, according to the calibration.
    pub fits: bool,
    /// Error of rates and mean latencies, per cent.
    pub rate_error_percent: f64,
    /// Error of 99th percentiles, per cent.
    pub tail_error_percent: f64,
    /// Whether only rates at saturation were measured. The latencies are then unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rates_only: bool,
    /// Result of a validation on the device itself; `None` without a validation. With a validation,
    /// the two errors above come from the validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated: Option<Validated>,
    /// Errors of the model compared with a record of published measurements. `None` if the record
    /// does not have the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
}

/// Result of a validation: workloads that were not used in the fit ran on the device itself with
/// each of its schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validated {
    /// Share of the metrics that the model met, per cent: rates within 10 %, and 99th percentiles
    /// within 25 %.
    pub trust_percent: f64,
    /// Number of pairs of schedulers for which model and device disagree on the better scheduler.
    pub wrong_orders: u32,
    /// Error of the difference in rate between two schedulers, per cent of the first scheduler's
    /// rate. For nine of ten pairs, the error of the model is at most this value.
    pub rate_difference_error_percent: f64,
    /// The same error for the difference in 99th percentiles, per cent.
    pub tail_difference_error_percent: f64,
}

/// Format of a profile's file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: Kind,
    #[serde(default)]
    about: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fitted: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fit: Option<Fit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<Host>,
    fixed: Option<FixedConfig>,
    disk: Option<DiskConfig>,
    hdd: Option<Box<HddConfig>>,
    ssd: Option<Box<SsdConfig>>,
    array: Option<Box<ArrayConfig>>,
    server: Option<Box<ServerConfig>>,
    empirical: Option<Box<EmpiricalConfig>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    anchors: Vec<Anchor>,
}

/// A description from which devices are built.
#[derive(Clone, Debug)]
pub struct Profile {
    name: String,
    about: String,
    model: Model,
    anchors: Vec<Anchor>,
    fit: Option<Fit>,
    /// See [`Profile::fitted_to`].
    fitted_to: Vec<String>,
    /// See [`Profile::assumed`].
    assumed: Vec<String>,
    /// See [`Profile::host`].
    host: Option<Host>,
    /// A new device. Its existence proves that the parameters are valid.
    prototype: AnyDevice,
    /// See [`Profile::tags`].
    tags: u32,
}

/// Returns whether a name is the path of a file: it contains a `/` or ends in `.toml`. Other names
/// are those of built-in profiles.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

impl Profile {
    /// Parses the text of a profile. `name` appears in errors and output. Members of an array are
    /// loaded with [`named`](Self::named).
    ///
    /// # Errors
    /// The text is not a profile, or the parameters are not valid.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        Self::parse_with(name, text, &Self::named)
    }

    /// Parses a profile. `member` loads the profile of an array's member by its name.
    fn parse_with(
        name: &str,
        text: &str,
        member: &dyn Fn(&str) -> Result<Self, ProfileError>,
    ) -> Result<Self, ProfileError> {
        let file: File = toml::from_str(text)
            .map_err(|source| ProfileError::Syntax { file: name.to_owned(), source: Box::new(source) })?;
        let invalid = |source| ProfileError::Invalid { file: name.to_owned(), source };
        let anchors = file.anchors.clone();
        let about = file.about.clone();
        let fit = file.fit;
        let (fitted_to, assumed) = (file.fitted.clone(), file.assumed.clone());
        let host = file.host.clone();
        let model = file.model().map_err(invalid)?;
        let members = match &model {
            Model::Array(config) => {
                config.validate().map_err(invalid)?;
                let found = config.members.iter().enumerate().map(|(index, kind)| {
                    let wrong =
                        |source| ProfileError::Member { file: name.to_owned(), index, source: Box::new(source) };
                    member(&kind.profile).map(|profile| profile.prototype).map_err(wrong)
                });
                found.collect::<Result<Vec<_>, _>>()?
            }
            _ => Vec::new(),
        };
        let prototype = model.build(&members).map_err(invalid)?;
        validate_anchors(&anchors, &model, prototype.card()).map_err(invalid)?;
        fit.map_or(Ok(()), Fit::validate).map_err(invalid)?;
        host.as_ref().map_or(Ok(()), |host| host.validate("host")).map_err(invalid)?;
        let about = about.unwrap_or_else(|| model.about());
        let tags = prototype.card().depth;
        Ok(Self { name: name.to_owned(), about, model, anchors, fit, fitted_to, assumed, host, prototype, tags })
    }

    /// Creates a profile of any model except an array.
    ///
    /// # Errors
    /// The parameters are not valid, an anchor cannot be measured, or the model is an array. (The
    /// members of an array have separate profiles.)
    pub fn of(name: &str, about: &str, model: Model, anchors: Vec<Anchor>) -> Result<Self, ProfileError> {
        let invalid = |source| ProfileError::Invalid { file: name.to_owned(), source };
        let prototype = model.build(&[]).map_err(invalid)?;
        validate_anchors(&anchors, &model, prototype.card()).map_err(invalid)?;
        let tags = prototype.card().depth;
        let (name, about) = (name.to_owned(), about.to_owned());
        let (fitted_to, assumed) = (Vec::new(), Vec::new());
        Ok(Self { name, about, model, anchors, fit: None, fitted_to, assumed, host: None, prototype, tags })
    }

    /// Returns the text of the profile. [`parse`](Self::parse) of this text gives the same profile.
    ///
    /// # Errors
    /// A number of the model is above 2^63, which TOML does not support.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut file = File { about: Some(self.about.clone()), ..File::empty(self.model.kind_of()) };
        match self.model.clone() {
            Model::Fixed(config) => file.fixed = Some(config),
            Model::Disk(config) => file.disk = Some(config),
            Model::Hdd(config) => file.hdd = Some(config),
            Model::Ssd(config) => file.ssd = Some(config),
            Model::Array(config) => file.array = Some(config),
            Model::Server(config) => file.server = Some(config),
            Model::Empirical(config) => file.empirical = Some(config),
        }
        file.anchors.clone_from(&self.anchors);
        file.fit = self.fit;
        file.host.clone_from(&self.host);
        file.fitted.clone_from(&self.fitted_to);
        file.assumed.clone_from(&self.assumed);
        toml::to_string(&file)
    }

    /// Returns the built-in profile with this name, or the profile of a [member of a
    /// family](Family::member). Case does not matter. `NAME:fresh` and `NAME:steady` apply
    /// [`starting`](Self::starting), and `NAME:depth=N` applies [`queueing`](Self::queueing).
    ///
    /// # Errors
    /// There is no profile with this name, or the variant does not apply to it.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        if let Some((name, variant)) = split_variant(name) {
            return Self::named(name)?.varied(variant);
        }
        match embedded(name) {
            Some((name, text)) => Self::parse(name, text),
            None => match Family::member(name) {
                Some((family, member)) => Self::of_member(family, &member),
                None => Err(ProfileError::Unknown {
                    name: name.to_owned(),
                    known: Self::names().collect::<Vec<_>>().join(", "),
                }),
            },
        }
    }

    /// Returns the text of a built-in profile, with comments about the sources of its values.
    /// `None` if there is no such profile. Case does not matter.
    #[must_use]
    pub fn built_in_text(name: &str) -> Option<&'static str> {
        embedded(name).map(|(_, text)| text)
    }

    /// Creates the profile of a member of a family.
    ///
    /// # Errors
    /// The rates are not valid.
    pub fn of_member(family: &Family, member: &Member) -> Result<Self, ProfileError> {
        Self::of_member_with(family, member, member.latencies())
    }

    /// Creates the profile of a member of a family, with latencies that replace the published ones.
    ///
    /// # Errors
    /// The rates are not valid.
    pub fn of_member_with(
        family: &Family,
        member: &Member,
        latencies: Option<Latencies>,
    ) -> Result<Self, ProfileError> {
        let (about, source) = (member.about(), member.source());
        let size = (member.size_bytes / 512, member.depth);
        Self::of_rates((&member.name, &about, &source), &member.mean(), size, family.spread(member), latencies)
    }

    /// Creates a profile of a device from the rates of an io.cost `model` and, if they are known,
    /// the latencies of reads. The simulated device reaches these rates. `size` is the number of
    /// sectors and the queue depth. `source` says where the rates come from.
    ///
    /// # Errors
    /// The rates are not valid.
    pub fn of_rates(
        (name, about, source): (&str, &str, &str),
        model: &IoCostModel,
        size: (u64, u32),
        spread: Spread,
        latencies: Option<Latencies>,
    ) -> Result<Self, ProfileError> {
        /// Assumed error if no latencies were measured: the real value can be twice or half as
        /// large.
        const TAIL_ERROR_PERCENT: f64 = 100.0;
        let config = io_cost::server(model, size, latencies.as_ref());
        let anchor = |figure, value, unit| Anchor { figure, value, unit, source: source.to_owned() };
        // With the measured latency, the device may need more than 32 reads in flight for the
        // largest rate.
        let is_reached = config.random_read.as_ref().is_none_or(|times| times.transit_ns == 0);
        let reads = is_reached.then(|| anchor(Figure::RandomRead4kDepth32, model.rrandiops as f64, Unit::Iops));
        let writes = anchor(Figure::RandomWrite4kDepth32, model.wrandiops as f64, Unit::Iops);
        let anchors = reads.into_iter().chain([writes]).collect();
        let fit = Fit {
            fits: true,
            rate_error_percent: (spread.percent * 10.0).ceil() / 10.0,
            tail_error_percent: latencies.map_or(TAIL_ERROR_PERCENT, |latencies| latencies.tail_error_percent),
            rates_only: latencies.is_none(),
            validated: None,
            recorded: None,
        };
        let mut fitted_to = vec!["servers and times: computed from the six rates of the io.cost model".to_owned()];
        let mut assumed = vec!["flush_ns, max_hw_sectors_kb".to_owned()];
        match latencies {
            Some(Latencies { rows, .. }) => fitted_to.extend([
                format!(
                    "transit_ns of reads: each of the {rows} rows has a 25th percentile of read latencies; iosched \
                     uses the smallest"
                ),
                "settling.bytes_per_second: the largest write rate among the rows that reach 50 % of the model's rate"
                    .to_owned(),
                "settling.longest_ns: least-squares fit to the logarithms of the p99 latencies of reads".to_owned(),
                "settling.share: 14 % of reads, from 36 disks of the project iocost-benchmarks".to_owned(),
            ]),
            None => assumed.push("latency of a single read without other load: 80 us".to_owned()),
        }
        if latencies.is_some() {
            assumed.push("settling.behind_ns".to_owned());
        }
        let is_nvme = config.hw_queues > 1;
        if is_nvme {
            assumed.push("hw_queues, command_slots, host: as in the profile nvme".to_owned());
        }
        let profile = Self::of(name, about, Model::Server(Box::new(config)), anchors)?.fitted(fit);
        let host = if is_nvme { Self::named("nvme")?.host } else { None };
        Ok(Self { host, ..profile.listing(fitted_to, assumed) })
    }

    /// Returns the sorted names of the built-in profiles, without the profiles of families.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|&(name, _)| name)
    }

    /// Loads a profile by its name, or from a file if `name_or_path` contains a `/` or ends in
    /// `.toml`. Both can be followed by `:fresh`, `:steady` or `:depth=N`, as in
    /// [`named`](Self::named).
    ///
    /// # Errors
    /// There is no such name or file, the file is not a profile, or the variant does not apply to
    /// it.
    pub fn load(name_or_path: &str) -> Result<Self, ProfileError> {
        if let Some((name_or_path, variant)) = split_variant(name_or_path) {
            return Self::load(name_or_path)?.varied(variant);
        }
        let of_variant = |error| match name_or_path.rsplit_once(':') {
            Some((name, variant)) if Path::new(name).is_file() || Self::named(name).is_ok() => {
                ProfileError::Variant { name: name.to_owned(), variant: variant.to_owned() }
            }
            _ => error,
        };
        if !is_path(name_or_path) {
            return Self::named(name_or_path).map_err(of_variant);
        }
        let text = read(name_or_path).map_err(of_variant)?;
        Self::parse_with(name_or_path, &text, &|member| Self::load_member(name_or_path, member))
    }

    /// Loads a member of the array in the file `array`. A relative path starts at the folder of
    /// this file. Arrays cannot be members, so there is no recursion.
    fn load_member(array: &str, member: &str) -> Result<Self, ProfileError> {
        if !is_path(member) {
            return Self::named(member);
        }
        let path = Path::new(array).with_file_name("").join(member).to_string_lossy().into_owned();
        Self::parse(&path, &read(&path)?)
    }

    /// Returns the profile with its flash in `state` at the start. The name contains the state.
    /// Anchors of writes were measured on fresh devices, so the steady state does not have these
    /// anchors.
    ///
    /// # Errors
    /// The device is not an `ssd`.
    pub fn starting(&self, state: StartState) -> Result<Self, ProfileError> {
        let name = format!("{}:{}", self.name, state.name());
        let invalid = |source| ProfileError::Invalid { file: name.clone(), source };
        let Model::Ssd(config) = &self.model else {
            let problem = format!("a device of kind {} has only one initial state", self.model.kind());
            let remedy = format!("leave out {}; only a device of kind ssd has this state", state.name());
            return Err(invalid(ConfigError::new("ssd.start", problem, remedy)));
        };
        let start = match state {
            StartState::Fresh => SsdStartConfig::FRESH,
            StartState::Steady => SsdStartConfig::STEADY,
        };
        let model = Model::Ssd(Box::new(SsdConfig { start, ..(**config).clone() }));
        let prototype = model.build(&[]).map_err(invalid)?;
        let about = format!("{}, {}", self.about, state.name());
        let mut anchors = self.anchors.clone();
        if state == StartState::Steady {
            anchors.retain(|anchor| !anchor.figure.is_of_fresh_flash());
        }
        Ok(Self { name, about, model, anchors, prototype, ..self.clone() })
    }

    /// Returns the profile with at most `depth` commands at the same time, like `queue_depth` in
    /// Linux. 1 disables queueing. The name contains the depth. Anchors of deeper queues are
    /// removed.
    ///
    /// # Errors
    /// `depth` is 0 or more than the device takes, or the device is an array.
    pub fn queueing(&self, depth: u32) -> Result<Self, ProfileError> {
        let invalid = |source| ProfileError::Invalid { file: self.name.clone(), source };
        let deepest = self.card().depth;
        if !(1..=deepest).contains(&depth) {
            let remedy = format!("give a depth from 1 to {deepest} for this device");
            return Err(invalid(ConfigError::new("depth", "the queue depth is out of range".to_owned(), remedy)));
        }
        let mut model = self.model.clone();
        match &mut model {
            Model::Fixed(config) => config.depth = depth,
            Model::Disk(config) => config.depth = depth,
            Model::Hdd(config) => config.depth = depth,
            Model::Ssd(config) => config.depth = depth,
            Model::Server(config) => config.depth = depth,
            Model::Empirical(config) => config.depth = depth,
            Model::Array(_) => {
                let problem =
                    "an array has no variant :depth, because the controller of the array sets the depth".to_owned();
                return Err(invalid(ConfigError::new("depth", problem, "write a profile file and set array.depth")));
            }
        }
        let prototype = model.build(&[]).map_err(invalid)?;
        let (name, about) = (format!("{}:depth={depth}", self.name), format!("{}, queue depth {depth}", self.about));
        let mut anchors = self.anchors.clone();
        anchors.retain(|anchor| anchor.figure.depth() <= depth);
        Ok(Self { name, about, model, anchors, prototype, ..self.clone() })
    }

    /// Returns disk `number` of several disks of this model. Disk 0 is the profile itself. The
    /// other disks differ from disk 0 if the profile defines a difference between disks.
    #[must_use]
    pub fn specimen(&self, number: u32) -> Self {
        let (Model::Ssd(config), AnyDevice::Ssd(ssd)) = (&self.model, &self.prototype) else { return self.clone() };
        let config = config.specimen(number);
        // Scaled times stay within their limits, so a valid profile has valid specimens.
        let Ok(prototype) = ssd.another(&config) else { return self.clone() };
        let (model, prototype) = (Model::Ssd(Box::new(config)), AnyDevice::Ssd(Box::new(prototype)));
        Self { model, prototype, ..self.clone() }
    }

    fn varied(&self, variant: Variant) -> Result<Self, ProfileError> {
        match variant {
            Variant::Starting(state) => self.starting(state),
            Variant::Queueing(depth) => self.queueing(depth),
        }
    }

    /// Returns the name or path from which the profile was loaded.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a description in one line: "1 TB, 7200 rpm, NCQ 31, write cache on".
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Returns the model and its parameters.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the properties of the devices built from this profile.
    #[must_use]
    pub fn card(&self) -> &Card {
        self.prototype.card()
    }

    /// Returns the number of tags of the host adapter for each hardware queue. This is the largest
    /// depth of the device, even if a smaller depth is set.
    #[must_use]
    pub fn tags(&self) -> u32 {
        self.tags
    }

    /// Returns the accuracy of the fit; `None` if the model was not fitted.
    #[must_use]
    pub const fn fit(&self) -> Option<Fit> {
        self.fit
    }

    /// Returns the fitted parameters, each with the measurements that determine it.
    #[must_use]
    pub fn fitted_to(&self) -> &[String] {
        &self.fitted_to
    }

    /// Returns the parameters that were not measured.
    #[must_use]
    pub fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// Returns the costs of I/O on the host, if the parameters of the model do not include these
    /// costs. `None` if the costs are not known, or if the parameters include them.
    #[must_use]
    pub const fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Returns the profile without the costs of its host.
    #[must_use]
    pub fn without_host(self) -> Self {
        Self { host: None, ..self }
    }

    /// Returns the profile without its known error, to compare schedulers on the model itself. The
    /// verdicts then say nothing about a real device.
    #[must_use]
    pub fn without_error(self) -> Self {
        Self { fit: None, ..self }
    }

    /// Sets the accuracy of the fit.
    #[must_use]
    pub fn fitted(self, fit: Fit) -> Self {
        Self { fit: Some(fit), ..self }
    }

    /// Sets the lists of [fitted](Self::fitted_to) and [assumed](Self::assumed) parameters.
    #[must_use]
    pub fn listing(self, fitted_to: Vec<String>, assumed: Vec<String>) -> Self {
        Self { fitted_to, assumed, ..self }
    }

    /// Returns the measured metrics of the real device.
    #[must_use]
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// Returns the anchor of this metric, if there is one.
    #[must_use]
    pub fn anchor(&self, figure: Figure) -> Option<&Anchor> {
        self.anchors.iter().find(|anchor| anchor.figure == figure)
    }

    /// Creates a new device. `seed` determines the angle of the platters at time 0. This angle
    /// differs between two disks of one type, and between two runs of one disk.
    #[must_use]
    pub fn device(&self, seed: u64) -> AnyDevice {
        let mut device = self.prototype.clone();
        device.reseed(seed);
        device
    }

    /// Creates a [`device`](Self::device) as a trait object, for hosts that do not depend on its
    /// type.
    #[must_use]
    pub fn build(&self, seed: u64) -> Box<dyn Device + Send> {
        Box::new(self.device(seed))
    }
}

/// The variant after a profile's name or path.
#[derive(Clone, Copy)]
enum Variant {
    Starting(StartState),
    Queueing(u32),
}

/// Splits a text into a profile's name or path, and the variant after it.
fn split_variant(name: &str) -> Option<(&str, Variant)> {
    let (name, variant) = name.rsplit_once(':')?;
    if let Some(depth) = variant.strip_prefix("depth=") {
        // An invalid number counts as out of range.
        return Some((name, Variant::Queueing(depth.parse().unwrap_or(0))));
    }
    StartState::ALL.into_iter().find(|known| known.name() == variant).map(|state| (name, Variant::Starting(state)))
}

/// Returns an error if an anchor cannot be measured.
fn validate_anchors(anchors: &[Anchor], model: &Model, card: &Card) -> Result<(), ConfigError> {
    for (i, Anchor { figure, value, unit, .. }) in anchors.iter().enumerate() {
        let field = |name| format!("anchors[{i}].{name}");
        if !measure::applies(model, card, *figure) {
            let remedy = "use a metric of this kind of device; see docs/devices.md";
            return Err(ConfigError::new(
                &field("figure"),
                format!("a device of this kind has no metric {figure}"),
                remedy,
            ));
        }
        if anchors[..i].iter().any(|other| other.figure == *figure) {
            let remedy = "keep only the best known value";
            return Err(ConfigError::new(&field("figure"), format!("{figure} is given twice"), remedy));
        }
        if unit.quantity() != figure.quantity() {
            let units: Vec<_> = Unit::ALL.iter().filter(|unit| unit.quantity() == figure.quantity()).collect();
            let units = units.iter().map(|unit| unit.name()).collect::<Vec<_>>().join(" or ");
            let problem = format!("{figure} cannot have the unit {unit}");
            return Err(ConfigError::new(&field("unit"), problem, format!("the unit must be {units}")));
        }
        within(&field("value"), *value, f64::MIN_POSITIVE..=1e12)?;
    }
    Ok(())
}

impl Fit {
    fn validate(self) -> Result<(), ConfigError> {
        within("fit.rate_error_percent", self.rate_error_percent, 0.0..=1e9)?;
        within("fit.tail_error_percent", self.tail_error_percent, 0.0..=1e9)?;
        self.recorded.map_or(Ok(()), |recorded| recorded.validate())?;
        let Some(validated) = self.validated else { return Ok(()) };
        within("fit.validated.trust_percent", validated.trust_percent, 0.0..=100.0)?;
        within("fit.validated.rate_difference_error_percent", validated.rate_difference_error_percent, 0.0..=1e9)?;
        within("fit.validated.tail_difference_error_percent", validated.tail_difference_error_percent, 0.0..=1e9)
    }
}

impl File {
    const fn empty(kind: Kind) -> Self {
        Self {
            kind,
            about: None,
            fitted: Vec::new(),
            assumed: Vec::new(),
            fit: None,
            host: None,
            fixed: None,
            disk: None,
            hdd: None,
            ssd: None,
            array: None,
            server: None,
            empirical: None,
            anchors: Vec::new(),
        }
    }

    /// Returns the model. The profile must have the table of its kind and no other model's table.
    fn model(self) -> Result<Model, ConfigError> {
        let wanted = self.kind.name();
        let tables = [
            ("fixed", self.fixed.is_some()),
            ("disk", self.disk.is_some()),
            ("hdd", self.hdd.is_some()),
            ("ssd", self.ssd.is_some()),
            ("array", self.array.is_some()),
            ("server", self.server.is_some()),
            ("empirical", self.empirical.is_some()),
        ];
        if let Some((table, _)) = tables.iter().find(|&&(table, present)| present && table != wanted) {
            return Err(ConfigError::new(
                table,
                format!("the table is only for kind = {wanted:?}"),
                format!("put the parameters of a {wanted} device into [{wanted}]"),
            ));
        }
        let model = match self.kind {
            Kind::Fixed => self.fixed.map(Model::Fixed),
            Kind::Disk => self.disk.map(Model::Disk),
            Kind::Hdd => self.hdd.map(Model::Hdd),
            Kind::Ssd => self.ssd.map(Model::Ssd),
            Kind::Array => self.array.map(Model::Array),
            Kind::Server => self.server.map(Model::Server),
            Kind::Empirical => self.empirical.map(Model::Empirical),
        };
        model.ok_or_else(|| {
            ConfigError::new(
                wanted,
                "the table is missing",
                format!("kind = {wanted:?} needs a table [{wanted}] with its parameters"),
            )
        })
    }
}

impl Model {
    /// Creates a device. `members` are the devices of an array, one for each entry.
    fn build(&self, members: &[AnyDevice]) -> Result<AnyDevice, ConfigError> {
        Ok(match self {
            Self::Fixed(config) => AnyDevice::Fixed(Fixed::new(config)?),
            Self::Disk(config) => AnyDevice::Disk(Disk::new(config)?),
            Self::Hdd(config) => AnyDevice::Hdd(Box::new(Hdd::new(config)?)),
            Self::Ssd(config) => AnyDevice::Ssd(Box::new(Ssd::new(config)?)),
            Self::Array(config) => AnyDevice::Array(Box::new(Array::new(config, members)?)),
            Self::Server(config) => AnyDevice::Server(Box::new(Server::new(config)?)),
            Self::Empirical(config) => AnyDevice::Empirical(Box::new(Empirical::new(config)?)),
        })
    }

    /// Returns the name of the model, as in the `kind` of a profile.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.kind_of().name()
    }

    const fn kind_of(&self) -> Kind {
        match self {
            Self::Fixed(_) => Kind::Fixed,
            Self::Disk(_) => Kind::Disk,
            Self::Hdd(_) => Kind::Hdd,
            Self::Ssd(_) => Kind::Ssd,
            Self::Array(_) => Kind::Array,
            Self::Server(_) => Kind::Server,
            Self::Empirical(_) => Kind::Empirical,
        }
    }

    /// Returns the description for a profile without a description.
    fn about(&self) -> String {
        match self {
            Self::Fixed(config) => {
                let latency_us = config.lat_ns as f64 / 1e3;
                format!("fixed latency {latency_us} us, {} in parallel, depth {}", config.parallel, config.depth)
            }
            Self::Disk(config) => {
                let rot_us = config.rot_ns as f64 / 1e3;
                format!("seek time by distance, rotational delay {rot_us} us, depth {}", config.depth)
            }
            Self::Hdd(config) => {
                let cache = if config.write_cache.enabled { "on" } else { "off" };
                let size = size(config.capacity_sectors);
                format!("{size}, {} rpm, NCQ {}, write cache {cache}", config.rpm, config.depth)
            }
            Self::Ssd(config) => {
                let (size, buffer_kb) = (size(config.capacity_sectors), config.buffer.sectors / 2);
                format!("{size}, SSD, {} dies, depth {}, write buffer {buffer_kb} KiB", config.flash.dies, config.depth)
            }
            Self::Array(config) => {
                let members: u32 = config.members.iter().map(|member| member.count).sum();
                let cache_mb = config.write_cache.sectors / 2048;
                format!("array of {members}, depth {}, write cache {cache_mb} MiB", config.depth)
            }
            Self::Server(config) => {
                let servers = if config.servers == 1 { "one server" } else { &format!("{} servers", config.servers) };
                format!("{}, {servers}, depth {}", size(config.capacity_sectors), config.depth)
            }
            Self::Empirical(config) => {
                format!(
                    "{}, random latencies from a set of measured latencies, depth {}",
                    size(config.capacity_sectors),
                    config.depth
                )
            }
        }
    }
}

/// Formats a capacity as in data sheets.
fn size(sectors: u64) -> String {
    let gigabytes = sectors as f64 * 512.0 / 1e9;
    if gigabytes < 1000.0 {
        return format!("{gigabytes:.0} GB");
    }
    format!("{} TB", (gigabytes / 100.0).round() / 10.0)
}
