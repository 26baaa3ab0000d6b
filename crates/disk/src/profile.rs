//! Profiles: what is known of a device, each value with its source, and what the model made of it must show.
//!
//! A profile is a TOML file: `kind` says which model, the table of that name holds the model's parameters, and
//! `[[anchors]]` lists figures of the real device that the model is tested against.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::array::{Array, ArrayConfig};
use crate::config::{ConfigError, is_default, within};
use crate::disk::{Disk, DiskConfig};
use crate::empirical::{Empirical, EmpiricalConfig};
use crate::fixed::{Fixed, FixedConfig};
use crate::hdd::{Hdd, HddConfig};
use crate::io_cost::{self, Family, IoCostModel, Member, Spread};
use crate::measure::{self, Figure, Unit};
use crate::profile_file::read;
use crate::server::{Server, ServerConfig};
use crate::ssd::{Ssd, SsdConfig, SsdStartConfig};
use crate::{AnyDevice, Card, Device};

/// The profiles that come with this crate: name and text.
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

/// What is wrong with a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No profile of that name comes with this crate.
    #[error(
        "there is no device profile {name:?}; available: {known} and those of iosched device list --family ssd; the \
         name of a file must contain a / or end in .toml"
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A profile, with something behind it that it cannot be.
    #[error(
        "{name}:{variant}: the forms of a profile are {name}:depth=N and, for flash, {name}:fresh and {name}:steady"
    )]
    Variant {
        /// The profile.
        name: String,
        /// What is behind it.
        variant: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Something else than a file of text.
    #[error("{file}: is {what}; a profile is a name that iosched device list shows, or a TOML file")]
    NotText {
        /// The file.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// The text is not TOML, or a field is unknown, missing or of another type.
    #[error("{file}: {source}")]
    Syntax {
        /// The file or profile.
        file: String,
        /// Line, column, what was found and what was expected.
        source: Box<toml::de::Error>,
    },
    /// The profile of an array's member is not one.
    #[error("{file}: array.members[{index}].profile: {source}")]
    Member {
        /// The array's file or profile.
        file: String,
        /// Which member, counted from 0.
        index: usize,
        /// What is wrong with it.
        source: Box<ProfileError>,
    },
    /// A value no such device can have.
    #[error("{file}: {source}")]
    Invalid {
        /// The file or profile.
        file: String,
        /// Field, problem and remedy.
        source: ConfigError,
    },
}

/// Which model a profile is for.
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
    /// Seek by distance, fixed rotational delay.
    Disk(DiskConfig),
    /// A rotating disk.
    Hdd(Box<HddConfig>),
    /// Flash behind one link.
    Ssd(Box<SsdConfig>),
    /// Disks behind a controller.
    Array(Box<ArrayConfig>),
    /// Servers behind one queue, with a spread.
    Server(Box<ServerConfig>),
    /// What was measured, drawn again.
    Empirical(Box<EmpiricalConfig>),
}

/// What was written to a device before a run. Only flash differs by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartState {
    /// Nothing: as new, or wholly discarded.
    Fresh,
    /// All of it, and overwritten at random until that changes nothing any more.
    Steady,
}

impl StartState {
    const ALL: [Self; 2] = [Self::Fresh, Self::Steady];

    /// As it is written behind a profile's name, after a colon.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Steady => "steady",
        }
    }
}

/// A figure of the real device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// What was measured.
    pub figure: Figure,
    /// Its value, more than 0.
    pub value: f64,
    /// The value's unit: one of what the figure is a measure of.
    pub unit: Unit,
    /// Who says so: data sheet, paper or measurement.
    pub source: String,
}

/// How near a model comes to the device that it was fitted to, as the calibration found: of four measured figures in
/// five it is not further off. A difference between two simulated settings that is smaller may be the model's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Whether the calibration says that the model fits.
    pub fits: bool,
    /// How far off rates and mean latencies are, per cent.
    pub rate_error_percent: f64,
    /// How far off the latencies are that one I/O in a hundred exceeds, per cent.
    pub tail_error_percent: f64,
    /// Whether nothing but rates at saturation was measured: of latencies nothing is known then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rates_only: bool,
    /// What a validation on the device itself found; `None` if there was none. The figures above are then its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated: Option<Validated>,
}

/// What came of running workloads that no fit saw on the device itself, under each of its schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validated {
    /// Share of all figures that were met: rates within 10 %, 99th percentiles within 25 %; per cent.
    pub trust_percent: f64,
    /// Orders of schedulers that were named otherwise than the device has them.
    pub wrong_orders: u32,
    /// How far off a difference between two schedulers is in nine cases of ten, per cent of the first: of rates.
    pub rate_difference_error_percent: f64,
    /// Likewise of 99th percentiles.
    pub tail_difference_error_percent: f64,
}

/// The file as written.
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

/// A device that can be built, as often as wanted.
#[derive(Clone, Debug)]
pub struct Profile {
    name: String,
    about: String,
    model: Model,
    anchors: Vec<Anchor>,
    fit: Option<Fit>,
    /// Parameters that were fitted, and to which rows.
    fitted_to: Vec<String>,
    /// Parameters that nobody measured.
    assumed: Vec<String>,
    /// The device as new. That it exists proves the parameters valid.
    prototype: AnyDevice,
    /// See [`Profile::tags`].
    tags: u32,
}

/// Whether a name is a file's, and not that of something that comes with iosched: it holds a `/`, or ends in `.toml`.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

impl Profile {
    /// Reads a profile's text; `name` is for display and for errors. Members of an array are [`named`](Self::named).
    ///
    /// # Errors
    /// The text is not a profile, or no device can have such parameters.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        Self::parse_with(name, text, &Self::named)
    }

    /// The same with members of an array as `member` finds them.
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
        let about = about.unwrap_or_else(|| model.about());
        let tags = prototype.card().depth;
        Ok(Self { name: name.to_owned(), about, model, anchors, fit, fitted_to, assumed, prototype, tags })
    }

    /// A profile of a model that needs no other profiles.
    ///
    /// # Errors
    /// No device can have such parameters, nobody could measure such an anchor, or it is an array: its members are in files.
    pub fn of(name: &str, about: &str, model: Model, anchors: Vec<Anchor>) -> Result<Self, ProfileError> {
        let invalid = |source| ProfileError::Invalid { file: name.to_owned(), source };
        let prototype = model.build(&[]).map_err(invalid)?;
        validate_anchors(&anchors, &model, prototype.card()).map_err(invalid)?;
        let tags = prototype.card().depth;
        let (name, about) = (name.to_owned(), about.to_owned());
        let (fitted_to, assumed) = (Vec::new(), Vec::new());
        Ok(Self { name, about, model, anchors, fit: None, fitted_to, assumed, prototype, tags })
    }

    /// The profile's text: [`parse`](Self::parse) of it gives the same again.
    ///
    /// # Errors
    /// A number of the model that TOML cannot hold, above 2^63.
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
        file.fitted.clone_from(&self.fitted_to);
        file.assumed.clone_from(&self.assumed);
        toml::to_string(&file)
    }

    /// The profile of that name that comes with this crate, also that of a [member of a family](Family::member), capitals
    /// and small letters being alike; `NAME:fresh` and
    /// `NAME:steady` are as [`starting`](Self::starting), `NAME:depth=N` is as [`queueing`](Self::queueing).
    ///
    /// # Errors
    /// There is none of that name, or it cannot be so.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        if let Some((name, variant)) = split_variant(name) {
            return Self::named(name)?.varied(variant);
        }
        match EMBEDDED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
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

    /// A member of a family.
    ///
    /// # Errors
    /// No device can have such rates.
    pub fn of_member(family: &Family, member: &Member) -> Result<Self, ProfileError> {
        let (about, source) = (member.about(), member.source());
        let size = (member.size_bytes / 512, member.depth);
        Self::of_rates((&member.name, &about, &source), &member.mean(), size, family.spread(member))
    }

    /// A device of which nothing is known but the rates of `model`, which it reaches. `size`: its sectors, and how many
    /// commands it takes at once; `source` says who measured the rates.
    ///
    /// # Errors
    /// No device can have such rates.
    pub fn of_rates(
        (name, about, source): (&str, &str, &str),
        model: &IoCostModel,
        size: (u64, u32),
        spread: Spread,
    ) -> Result<Self, ProfileError> {
        /// As much again or half: nobody measured any.
        const TAIL_ERROR_PERCENT: f64 = 100.0;
        let anchor = |figure, value, unit| Anchor { figure, value, unit, source: source.to_owned() };
        let anchors = vec![
            anchor(Figure::RandomRead4kDepth32, model.rrandiops as f64, Unit::Iops),
            anchor(Figure::RandomWrite4kDepth32, model.wrandiops as f64, Unit::Iops),
        ];
        let fit = Fit {
            fits: true,
            rate_error_percent: (spread.percent * 10.0).ceil() / 10.0,
            tail_error_percent: TAIL_ERROR_PERCENT,
            rates_only: true,
            validated: None,
        };
        let config = io_cost::server(model, size);
        Ok(Self::of(name, about, Model::Server(Box::new(config)), anchors)?.fitted(fit))
    }

    /// The names of the profiles that come with this crate, sorted; without those of families.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|&(name, _)| name)
    }

    /// The profile of a name, or of a file if `name_or_path` holds a `/` or ends in `.toml`; either with `:fresh`,
    /// `:steady` or `:depth=N` behind it, as [`named`](Self::named).
    ///
    /// # Errors
    /// No such name or file, or the file is not a profile, or it cannot be so.
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

    /// A member of the array in the file `array`. A path is seen from there; that it leads back to the array is no
    /// danger, since arrays are no members.
    fn load_member(array: &str, member: &str) -> Result<Self, ProfileError> {
        if !is_path(member) {
            return Self::named(member);
        }
        let path = Path::new(array).with_file_name("").join(member).to_string_lossy().into_owned();
        Self::parse(&path, &read(&path)?)
    }

    /// The same device, but with flash in that state at the start. Its name tells. Anchors of writes, which are of
    /// fresh devices, do not come along to the steady state.
    ///
    /// # Errors
    /// It is not an `ssd`.
    pub fn starting(&self, state: StartState) -> Result<Self, ProfileError> {
        let name = format!("{}:{}", self.name, state.name());
        let invalid = |source| ProfileError::Invalid { file: name.clone(), source };
        let Model::Ssd(config) = &self.model else {
            let problem = format!("a device of kind {} has only one initial state", self.model.kind());
            let remedy = format!("only a device of kind ssd can start as {}", state.name());
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
        let (fitted_to, assumed) = (self.fitted_to.clone(), self.assumed.clone());
        Ok(Self { name, about, model, anchors, fit: self.fit, fitted_to, assumed, prototype, tags: self.tags })
    }

    /// The same device, but told to take at most `depth` commands at once (`queue_depth` of a disk; 1: it queues none).
    /// Its name tells. Anchors of deeper queues do not come along.
    ///
    /// # Errors
    /// `depth` is 0 or more than the device takes, or the device is an array.
    pub fn queueing(&self, depth: u32) -> Result<Self, ProfileError> {
        let invalid = |source| ProfileError::Invalid { file: self.name.clone(), source };
        let deepest = self.card().depth;
        if !(1..=deepest).contains(&depth) {
            let remedy = format!("it must be from 1 to {deepest} commands for this device");
            return Err(invalid(ConfigError::new("depth", "this queue depth is out of range".to_owned(), remedy)));
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
                let problem = "the controller of the array sets the depth".to_owned();
                return Err(invalid(ConfigError::new("depth", problem, "set array.depth in your own profile file")));
            }
        }
        let prototype = model.build(&[]).map_err(invalid)?;
        let (name, about) = (format!("{}:depth={depth}", self.name), format!("{}, queue depth {depth}", self.about));
        let mut anchors = self.anchors.clone();
        anchors.retain(|anchor| anchor.figure.depth() <= depth);
        let (fitted_to, assumed) = (self.fitted_to.clone(), self.assumed.clone());
        Ok(Self { name, about, model, anchors, fit: self.fit, fitted_to, assumed, prototype, tags: self.tags })
    }

    fn varied(&self, variant: Variant) -> Result<Self, ProfileError> {
        match variant {
            Variant::Starting(state) => self.starting(state),
            Variant::Queueing(depth) => self.queueing(depth),
        }
    }

    /// The name or path it was loaded by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in a line: "1 TB, 7200 rpm, NCQ 31, write cache on".
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The model and its parameters.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What the devices built from it say of themselves.
    #[must_use]
    pub fn card(&self) -> &Card {
        self.prototype.card()
    }

    /// Tags that its host adapter has for it, in each hardware queue: what it could take, however little it is told to.
    #[must_use]
    pub fn tags(&self) -> u32 {
        self.tags
    }

    /// How near it comes to the device that it was fitted to; `None` if it was not fitted.
    #[must_use]
    pub const fn fit(&self) -> Option<Fit> {
        self.fit
    }

    /// Its parameters that were fitted, each with the rows that it was fitted to.
    #[must_use]
    pub fn fitted_to(&self) -> &[String] {
        &self.fitted_to
    }

    /// Its parameters that nobody measured.
    #[must_use]
    pub fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// The same, told how near it comes.
    #[must_use]
    pub fn fitted(self, fit: Fit) -> Self {
        Self { fit: Some(fit), ..self }
    }

    /// Figures of the real device.
    #[must_use]
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// What is known of the real device's `figure`.
    #[must_use]
    pub fn anchor(&self, figure: Figure) -> Option<&Anchor> {
        self.anchors.iter().find(|anchor| anchor.figure == figure)
    }

    /// A device as new. `seed` decides what differs between two disks of one type, or two runs of one disk:
    /// where under the head the platters are at the origin of time.
    #[must_use]
    pub fn device(&self, seed: u64) -> AnyDevice {
        let mut device = self.prototype.clone();
        device.reseed(seed);
        device
    }

    /// [`device`](Self::device), for a host that does not want to know what it is.
    #[must_use]
    pub fn build(&self, seed: u64) -> Box<dyn Device + Send> {
        Box::new(self.device(seed))
    }
}

/// What stands behind a profile's name or path.
#[derive(Clone, Copy)]
enum Variant {
    Starting(StartState),
    Queueing(u32),
}

/// A profile's name or path, and the variant behind it.
fn split_variant(name: &str) -> Option<(&str, Variant)> {
    let (name, variant) = name.rsplit_once(':')?;
    if let Some(depth) = variant.strip_prefix("depth=") {
        // What is no number is out of range too.
        return Some((name, Variant::Queueing(depth.parse().unwrap_or(0))));
    }
    StartState::ALL.into_iter().find(|known| known.name() == variant).map(|state| (name, Variant::Starting(state)))
}

/// Refuses anchors that nobody could measure.
fn validate_anchors(anchors: &[Anchor], model: &Model, card: &Card) -> Result<(), ConfigError> {
    for (i, Anchor { figure, value, unit, .. }) in anchors.iter().enumerate() {
        let field = |name| format!("anchors[{i}].{name}");
        if !measure::applies(model, card, *figure) {
            let remedy = "use the metrics of its kind, see docs/devices.md";
            return Err(ConfigError::new(
                &field("figure"),
                format!("a device of this kind has no metric {figure}"),
                remedy,
            ));
        }
        if anchors[..i].iter().any(|other| other.figure == *figure) {
            let remedy = "give only the best known value";
            return Err(ConfigError::new(&field("figure"), format!("{figure} is given twice"), remedy));
        }
        if unit.quantity() != figure.quantity() {
            let units: Vec<_> = Unit::ALL.iter().filter(|unit| unit.quantity() == figure.quantity()).collect();
            let units = units.iter().map(|unit| unit.name()).collect::<Vec<_>>().join(" or ");
            let problem = format!("{figure} cannot have the unit {unit}");
            return Err(ConfigError::new(&field("unit"), problem, format!("its unit must be {units}")));
        }
        within(&field("value"), *value, f64::MIN_POSITIVE..=1e12)?;
    }
    Ok(())
}

impl Fit {
    fn validate(self) -> Result<(), ConfigError> {
        within("fit.rate_error_percent", self.rate_error_percent, 0.0..=1e9)?;
        within("fit.tail_error_percent", self.tail_error_percent, 0.0..=1e9)?;
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

    /// The model of the one table the profile must have.
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
                format!("this table is only for kind = {wanted:?}"),
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
                "this table is missing",
                format!("kind = {wanted:?} needs a table [{wanted}] with its parameters"),
            )
        })
    }
}

impl Model {
    /// A device; `members` are the devices an array is made of, one for each entry.
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

    /// As a profile's `kind` names it.
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

    /// The line shown for a profile that brings none.
    fn about(&self) -> String {
        match self {
            Self::Fixed(config) => {
                let latency_us = config.lat_ns as f64 / 1e3;
                format!("fixed latency {latency_us} us, {} at once, depth {}", config.parallel, config.depth)
            }
            Self::Disk(config) => {
                let rot_us = config.rot_ns as f64 / 1e3;
                format!("seek by distance, rotational delay {rot_us} us, depth {}", config.depth)
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
                format!("{}, measured latencies drawn again, depth {}", size(config.capacity_sectors), config.depth)
            }
        }
    }
}

/// A capacity as data sheets give it.
fn size(sectors: u64) -> String {
    let gigabytes = sectors as f64 * 512.0 / 1e9;
    if gigabytes < 1000.0 {
        return format!("{gigabytes:.0} GB");
    }
    format!("{} TB", (gigabytes / 100.0).round() / 10.0)
}
