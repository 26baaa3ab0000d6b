//! The counterpart of a unit on the machine.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The counterpart of a unit on the machine. Its text is the value of `match` in an intents file.
///
/// | text | target |
/// |---|---|
/// | `system.slice/postgresql.service`, `backup.slice`, `postgresql.service`, `/tenants/a` | a cgroup, which may be a systemd unit |
/// | `container:web` | a container of Docker or Podman |
/// | `libvirt:guest1` | a domain of libvirt |
/// | `qemu:guest1` | a virtual machine that a command line of QEMU starts |
/// | `proxmox:101` | a virtual machine or container of Proxmox VE |
/// | `kubernetes:guaranteed`, `kubernetes:burstable`, `kubernetes:besteffort` | all pods of a QoS class |
/// | `export:tenant-a` | an export of a served disk |
/// | `process:fio` | all processes with this name |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// A cgroup, by its path below `/sys/fs/cgroup`, without a leading slash.
    Cgroup(String),
    /// A container of Docker or Podman, with its name.
    Container(String),
    /// A domain of libvirt, with its name.
    Libvirt(String),
    /// A virtual machine that a command line of QEMU starts, with its name.
    Qemu(String),
    /// A virtual machine or container of Proxmox VE, with its number.
    Proxmox(u32),
    /// All pods of a QoS class of Kubernetes.
    Kubernetes(QosClass),
    /// An export of a served disk, with its name.
    Export(String),
    /// All processes with this name.
    Process(String),
}

/// QoS class of Kubernetes' pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QosClass {
    /// Pods whose limits are equal to their requests of resources.
    Guaranteed,
    /// Pods with a resource request or a limit.
    Burstable,
    /// Pods without resource requests and limits.
    BestEffort,
}

impl QosClass {
    /// Returns the name of the class in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Guaranteed => "guaranteed",
            Self::Burstable => "burstable",
            Self::BestEffort => "besteffort",
        }
    }
}

/// Error in the text of a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("match = {text:?}: {problem}")]
pub struct TargetError {
    text: String,
    problem: String,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let error = |problem: &str| TargetError { text: text.to_owned(), problem: problem.to_owned() };
        let Some((kind, name)) = text.split_once(':') else {
            let path = text.trim_start_matches("/sys/fs/cgroup").trim_matches('/');
            if path.is_empty() || path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
                return Err(error("expected the path of a cgroup, such as system.slice/postgresql.service"));
            }
            return Ok(Self::Cgroup(path.to_owned()));
        };
        if name.is_empty() {
            return Err(error("a name is missing after the colon"));
        }
        let name_owned = name.to_owned();
        Ok(match kind {
            "container" => Self::Container(name_owned),
            "libvirt" => Self::Libvirt(name_owned),
            "qemu" => Self::Qemu(name_owned),
            "proxmox" => Self::Proxmox(name.parse().map_err(|_| error("expected the number of a virtual machine"))?),
            "kubernetes" => Self::Kubernetes(match name {
                "guaranteed" => QosClass::Guaranteed,
                "burstable" => QosClass::Burstable,
                "besteffort" => QosClass::BestEffort,
                _ => return Err(error("the QoS classes are guaranteed, burstable and besteffort")),
            }),
            "export" => Self::Export(name_owned),
            "process" => Self::Process(name_owned),
            _ => {
                return Err(error(
                    "expected the path of a cgroup, or a name after one of the prefixes container:, libvirt:, \
                     qemu:, proxmox:, kubernetes:, export: and process:",
                ));
            }
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup(path) => f.write_str(path),
            Self::Container(name) => write!(f, "container:{name}"),
            Self::Libvirt(name) => write!(f, "libvirt:{name}"),
            Self::Qemu(name) => write!(f, "qemu:{name}"),
            Self::Proxmox(number) => write!(f, "proxmox:{number}"),
            Self::Kubernetes(class) => write!(f, "kubernetes:{}", class.name()),
            Self::Export(name) => write!(f, "export:{name}"),
            Self::Process(name) => write!(f, "process:{name}"),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_target_equals_the_parsed_text() {
        let texts = [
            "system.slice/postgresql.service",
            "container:web",
            "libvirt:guest1",
            "qemu:guest1",
            "proxmox:101",
            "kubernetes:besteffort",
            "export:tenant-a",
            "process:fio",
        ];
        for text in texts {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        assert_eq!("/sys/fs/cgroup/a/b/".parse(), Ok(Target::Cgroup("a/b".into())));
    }

    #[test]
    fn errors_of_targets_state_the_problem() {
        for (text, expected) in [
            ("", "path of a cgroup"),
            ("a//b", "path of a cgroup"),
            ("a/../b", "path of a cgroup"),
            ("proxmox:web", "number of a virtual machine"),
            ("kubernetes:gold", "guaranteed, burstable and besteffort"),
            ("pod:web", "container:, libvirt:"),
            ("export:", "a name is missing"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
