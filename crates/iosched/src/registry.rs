//! The set of available elevators: those of Linux, and those that a program adds.

use std::borrow::Cow;

use crate::elevator::Registered;
use crate::{adios, anticipatory, bfq, cfq, deadline, kyber, mclock, mq_deadline, none, noop};

/// Elevators of Linux, in the order of `queue/scheduler`, followed by those that are not in Linux.
static LINUX: &[Registered] = &[
    noop::REGISTERED,
    anticipatory::REGISTERED,
    deadline::REGISTERED,
    cfq::linux_4_19::REGISTERED,
    cfq::linux_2_6_34::REGISTERED,
    cfq::linux_2_6_30::REGISTERED,
    cfq::linux_2_6_16::REGISTERED,
    mq_deadline::REGISTERED,
    kyber::REGISTERED,
    none::REGISTERED,
    bfq::REGISTERED,
    adios::REGISTERED,
    mclock::REGISTERED,
];

/// Set of elevators with different names.
///
/// ```
/// use iosched::{Elevator, Env, Registered, Registry, RequestId};
///
/// #[derive(Default)]
/// struct Newest(Vec<RequestId>);
///
/// impl Elevator for Newest {
///     fn insert(&mut self, _: &mut Env, id: RequestId) {
///         self.0.push(id);
///     }
///     fn dispatch(&mut self, _: &mut Env) -> Option<RequestId> {
///         self.0.pop()
///     }
///     fn absorb(&mut self, _: &mut Env, _: RequestId, absorbed: RequestId) {
///         self.0.retain(|&id| id != absorbed);
///     }
/// }
///
/// let mut registry = Registry::linux();
/// registry.add(Registered::new("newest", &|_| Box::new(Newest::default())))?;
/// assert!(registry.get("newest").is_ok() && registry.get("cfq").is_ok());
/// assert!(registry.add(Registered::new("cfq", &|_| Box::new(Newest::default()))).is_err(), "that name is taken");
/// # Ok::<(), iosched::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    elevators: Cow<'static, [Registered]>,
}

/// Reason why an elevator cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is already in use.
    #[error("a scheduler named {0:?} already exists; choose another name")]
    Taken(&'static str),
    /// The name is not valid in `queue/scheduler` or before the colon of a setting.
    #[error("{0:?} is not a valid scheduler name; use only letters, digits, '-', '_' and '.'")]
    Name(&'static str),
}

/// Error for an elevator that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheduler {name:?}; available: {}", known.join(", "))]
pub struct UnknownElevator {
    /// The given name.
    pub name: String,
    /// The names in the registry.
    pub known: Vec<&'static str>,
}

impl Default for Registry {
    /// Returns the elevators of Linux.
    fn default() -> Self {
        Self::linux()
    }
}

impl Registry {
    /// Returns the elevators of Linux. The call costs nothing.
    #[must_use]
    pub const fn linux() -> Self {
        Self { elevators: Cow::Borrowed(LINUX) }
    }

    /// Adds an elevator at the end.
    ///
    /// # Errors
    /// Fails if the name is in use or not valid; the registry then stays the same.
    pub fn add(&mut self, elevator: Registered) -> Result<(), RegistryError> {
        let name = elevator.name;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err(RegistryError::Name(name));
        }
        if self.get(name).is_ok() {
            return Err(RegistryError::Taken(name));
        }
        self.elevators.to_mut().push(elevator);
        Ok(())
    }

    /// Returns the elevator `name`.
    ///
    /// # Errors
    /// Fails if there is no elevator of that name.
    pub fn get(&self, name: &str) -> Result<Registered, UnknownElevator> {
        let found = self.elevators.iter().find(|elevator| elevator.name == name).copied();
        found.ok_or_else(|| UnknownElevator { name: name.to_owned(), known: self.names() })
    }

    /// Returns all elevators, in the order of `queue/scheduler`.
    #[must_use]
    pub fn elevators(&self) -> &[Registered] {
        &self.elevators
    }

    /// Returns the names in the format of `queue/scheduler`: the present elevator is in brackets. A
    /// present elevator that is not in the registry comes last.
    #[must_use]
    pub fn listed(&self, present: &str) -> String {
        let mut names = self.names();
        let at = names.iter().position(|&name| name == present);
        let present = format!("[{present}]");
        match at {
            Some(at) => names[at] = &present,
            None => names.push(&present),
        }
        names.join(" ")
    }

    /// Returns the names of all elevators.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.elevators.iter().map(|elevator| elevator.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_linux_has_four_schedulers() {
        let mut registry = Registry::linux();
        registry.add(Registered { name: "foreign", ..noop::REGISTERED }).unwrap();
        registry.add(Registered::new("own", noop::REGISTERED.build)).unwrap();
        let mut today: Vec<&str> = registry
            .elevators()
            .iter()
            .filter(|elevator| elevator.is_in_linux())
            .map(|elevator| elevator.name)
            .collect();
        today.sort_unstable();
        assert_eq!(today, ["bfq", "kyber", "mq-deadline", "none"]);
    }
}
