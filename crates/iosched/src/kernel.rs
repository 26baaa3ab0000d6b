//! Versions of Linux, and the changes that each version has.
//!
//! A request queue is created for one version
//! ([`QueueConfig::kernel`](crate::QueueConfig::kernel)). The queue, its elevator and its
//! controllers each convert the version to a struct of rules when they are created.
//! `docs/kernels.md` lists the rules.

use std::fmt;
use std::str::FromStr;

/// Patch level for a series that is named without a patch level: the last one.
const LAST: u16 = u16::MAX;

/// Known series of Linux: the major version, and its first and last minor version.
const SERIES: [(u16, u16, u16); 4] = [(4, 18, 20), (5, 0, 19), (6, 0, 19), (7, 0, 0)];

/// Distributions, with the version of Linux that each began with.
const DISTRIBUTIONS: [(&str, &str); 13] = [
    ("rhel8", "4.18.0"),
    ("rhel9", "5.14.0"),
    ("rhel10", "6.12.0"),
    ("debian-11", "5.10"),
    ("debian-12", "6.1"),
    ("debian-13", "6.12"),
    ("ubuntu-20.04", "5.4"),
    ("ubuntu-22.04", "5.15"),
    ("ubuntu-24.04", "6.8"),
    ("proxmox-7", "5.15"),
    ("proxmox-8", "6.8"),
    ("proxmox-9", "6.14"),
    ("sles-15-sp5", "5.14"),
];

/// Version of Linux whose block layer can be simulated.
///
/// A version without a patch level stands for the last patch level of its series: `6.1` has every
/// change that was backported to 6.1.y. The default is `6.12`.
///
/// ```
/// use iosched::KernelVersion;
///
/// let version: KernelVersion = "debian-12".parse()?;
/// assert_eq!(version.to_string(), "6.1");
/// assert!(version > "6.1.21".parse()? && version < "6.2".parse()?);
/// assert!("6.99".parse::<KernelVersion>().is_err());
/// # Ok::<(), iosched::UnknownKernel>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KernelVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

/// Error for a text that is not a known version of Linux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a known kernel; write a version from {first} to {last}, optionally with a patch level (6.1 or \
     6.1.21), or one of {}", DISTRIBUTIONS.map(|(name, _)| name).join(", ")
)]
pub struct UnknownKernel {
    given: String,
    first: KernelVersion,
    last: KernelVersion,
}

impl Default for KernelVersion {
    /// Returns Linux 6.12 with its last patch level.
    fn default() -> Self {
        Self::series(6, 12)
    }
}

impl KernelVersion {
    /// Oldest version of Linux whose rules are known.
    pub const FIRST: Self = Self { patch: 0, ..Self::series(SERIES[0].0, SERIES[0].1) };
    /// Newest version of Linux whose rules are known.
    pub const LAST: Self = Self::series(SERIES[SERIES.len() - 1].0, SERIES[SERIES.len() - 1].2);

    const fn series(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: LAST }
    }

    /// Returns the names of distributions, each with its version of Linux.
    pub fn distributions() -> impl Iterator<Item = (&'static str, Self)> {
        DISTRIBUTIONS.iter().filter_map(|&(name, version)| Some((name, Self::number(version)?)))
    }

    /// Returns the version of a running kernel from its release (`6.12.5-amd64`). A kernel that is
    /// newer or older than all known versions becomes the newest or the oldest known one. Returns
    /// `None` if the text does not begin with a version.
    #[must_use]
    pub fn of_release(release: &str) -> Option<Self> {
        let end = release.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(release.len());
        let mut numbers = release[..end].split('.').map(str::parse::<u16>);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let patch = numbers.next().and_then(Result::ok).unwrap_or(0);
        Some(Self { major, minor, patch: patch.min(LAST - 1) }.clamp(Self::FIRST, Self::LAST))
    }

    /// Returns whether the version has a change. `first` is the first major and minor version with
    /// the change; `stable` lists the patch levels of stable series that have it.
    #[must_use]
    pub(crate) fn has(self, first: (u16, u16), stable: &[(u16, u16, u16)]) -> bool {
        let series = (self.major, self.minor);
        series >= first || stable.iter().any(|&(major, minor, patch)| (major, minor) == series && self.patch >= patch)
    }

    /// Returns whether the version is `major.minor` or later.
    #[must_use]
    pub fn is_since(self, major: u16, minor: u16) -> bool {
        self.has((major, minor), &[])
    }

    /// Parses `6.1` or `6.1.21` of a known series.
    fn number(text: &str) -> Option<Self> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let parts: Vec<&str> = text.split('.').collect();
        if !(2..=3).contains(&parts.len()) || !parts.iter().all(|part| is_number(part)) {
            return None;
        }
        let numbers: Vec<u16> = parts.iter().map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let (major, minor) = (numbers[0], numbers[1]);
        let patch = numbers.get(2).copied().unwrap_or(LAST);
        let is_known = SERIES.iter().any(|&(series, first, last)| series == major && (first..=last).contains(&minor));
        (is_known && (numbers.len() == 2 || patch < LAST)).then_some(Self { major, minor, patch })
    }
}

impl FromStr for KernelVersion {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let named = Self::distributions().find(|&(name, _)| name == text).map(|(_, version)| version);
        let unknown = || UnknownKernel { given: text.to_owned(), first: Self::series(4, 18), last: Self::LAST };
        named.or_else(|| Self::number(text)).ok_or_else(unknown)
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch } = self;
        write!(f, "{major}.{minor}")?;
        if *patch == LAST { Ok(()) } else { write!(f, ".{patch}") }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for KernelVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for KernelVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> KernelVersion {
        text.parse().unwrap()
    }

    #[test]
    fn kernel_versions_and_distribution_names_are_parsed() {
        for text in ["4.18", "5.4", "5.15", "6.1.21", "6.12", "6.12.0", "6.19", "7.0"] {
            assert_eq!(version(text).to_string(), text);
        }
        for (name, expected) in [("rhel8", "4.18.0"), ("rhel9", "5.14.0"), ("rhel10", "6.12.0"), ("debian-13", "6.12")]
        {
            assert_eq!(version(name), version(expected));
        }
        assert_eq!(KernelVersion::distributions().count(), DISTRIBUTIONS.len(), "each name has a known version");
        assert_eq!(KernelVersion::default(), version("6.12"));
    }

    #[test]
    fn errors_for_unknown_kernels_list_known_ones() {
        for text in ["", "6", "6.", "6.20", "5.20", "4.17", "3.10", "6.1.x", "6.1.2.3", "-6.1", "+6.1", "rhel7", "v6.1"]
        {
            let error = text.parse::<KernelVersion>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is not a known kernel; write a version from 4.18 to 7.0")));
            assert!(error.contains("rhel9") && error.contains("debian-13"), "{error}");
        }
        assert!("6.1.65535".parse::<KernelVersion>().is_err() && "6.1.99999".parse::<KernelVersion>().is_err());
    }

    #[test]
    fn running_kernels_map_to_the_nearest_known_version() {
        for (release, expected) in [
            ("6.12.5-amd64", "6.12.5"),
            ("6.18.0-rc1", "6.18.0"),
            ("6.18-rc1", "6.18.0"),
            ("5.14.0-427.el9.x86_64", "5.14.0"),
            ("3.10.0-1160.el7", "4.18.0"),
            ("7.3.1", "7.0"),
        ] {
            assert_eq!(KernelVersion::of_release(release), Some(version(expected)), "{release}");
        }
        assert_eq!(KernelVersion::of_release("odd"), None);
    }

    #[test]
    fn changes_apply_from_their_version_and_stable_backports() {
        let fixed = |text: &str| version(text).has((6, 3), &[(6, 1, 21)]);
        assert_eq!(
            ["6.1.20", "6.1.21", "6.1", "6.2", "6.3.0", "7.0"].map(fixed),
            [false, true, true, false, true, true]
        );
    }
}
