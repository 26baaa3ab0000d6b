//! The names of a plan's device in output files.

use std::path::Path;

use iosched_kernel::settings::RuleMatch;
use iosched_kernel::{BlockDevice, FindError, Roots};

use crate::plan::Plan;

/// The names of a plan's device in output files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Device file. If udev has a link below `/dev/disk/by-id`, this field has the link. The kernel
    /// may give the name of a disk to another disk at the next start.
    pub node: String,
    /// Kernel name of the whole disk, such as `sdb`.
    pub disk: String,
    /// Device number such as `8:16`, if the device is present.
    pub number: Option<String>,
    /// Condition of the udev rule.
    pub matched: RuleMatch,
    /// Model name, which the hwdb entry matches.
    pub model_name: Option<String>,
}

/// Reason why a plan has no device.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The plan is for a profile.
    #[error(
        "the plan is for the profile {profile}, not for a device of this machine; write device = \"/dev/...\" in the \
         intents file and make the plan again"
    )]
    Profile {
        /// Name of the profile.
        profile: String,
    },
    /// The device is not on this machine.
    #[error(transparent)]
    Find(#[from] FindError),
}

impl Place {
    /// Returns the place of a device file such as `/dev/sdb`, which may be on another machine.
    #[must_use]
    pub fn named(node: &str) -> Self {
        let disk = node.rsplit('/').next().unwrap_or(node).to_owned();
        Self { node: node.to_owned(), matched: RuleMatch::named(&disk), disk, number: None, model_name: None }
    }

    /// Returns the place of a device of this machine.
    #[must_use]
    pub fn of(device: &BlockDevice) -> Self {
        let disk = device.disk();
        let number = disk.number();
        let database = disk.roots().run(format!("udev/data/b{}:{}", number.major, number.minor));
        let database = std::fs::read_to_string(database).unwrap_or_default();
        let is_plain = |link: &&str| link.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.:".contains(c));
        let links = database.lines().filter_map(|line| line.strip_prefix("S:"));
        let link = links.filter(|link| link.starts_with("disk/by-id/")).filter(is_plain).min();
        let link = link.filter(|link| disk.roots().dev(link).exists());
        Self {
            node: link.map_or_else(|| format!("/dev/{}", disk.disk_name()), |link| format!("/dev/{link}")),
            disk: disk.disk_name().to_owned(),
            number: Some(number.to_string()),
            matched: RuleMatch::of(&disk),
            model_name: disk.model_name(),
        }
    }

    /// Returns the names of the plan's device. If the device is not on this machine, its names come
    /// from the plan.
    ///
    /// # Errors
    /// The plan is for a profile.
    pub fn of_plan(plan: &Plan, roots: &Roots) -> Result<Self, PlaceError> {
        let node = plan.device.as_deref().ok_or_else(|| PlaceError::Profile { profile: plan.profile.clone() })?;
        Ok(BlockDevice::itself(roots, Path::new(node)).map_or_else(|_| Self::named(node), |device| Self::of(&device)))
    }
}
