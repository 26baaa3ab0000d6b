//! Host of the measured disks: the costs of requests on this host, and the number of processors
//! that the processes could use.

use iosched_disk::{Host, Profile};

use super::case::{MeasuredCase, Source};
use crate::error::LabError;

/// Profile with the costs of the host. It also states which figures they were fitted to.
const PROFILE: &str = "nvme-980pro";

/// Frequency of a processor's clock interrupts, Hz, as distributions configure it since 2024.
const CLOCK_HZ: u32 = 1000;

impl MeasuredCase {
    /// Returns the host of this case.
    ///
    /// # Errors
    /// The built-in profile is not valid, or has no costs of a host.
    pub(super) fn host(&self) -> Result<Host, LabError> {
        let wrong = |problem: String| LabError::Data { file: format!("{PROFILE}.toml"), problem };
        let profile = Profile::named(PROFILE).map_err(|error| wrong(error.to_string()))?;
        let host = profile.host().ok_or_else(|| wrong("the table [host] is missing".to_owned()))?.clone();
        // Only the timers of io.cost depend on the clock interrupts.
        let clock_hz = (self.source == Source::IsolIocost).then_some(CLOCK_HZ);
        Ok(Host { cores: self.cores().unwrap_or(host.cores), clock_hz, ..host })
    }

    /// Returns the number of processors that the processes could use. `None` if they could use all
    /// processors of the machine.
    fn cores(&self) -> Option<u32> {
        match (self.source, self.part()) {
            // Each process had its own processor.
            (Source::Icpe24, "1a" | "1b") => Some(16),
            // All processes shared one processor.
            (Source::Icpe24, part) if ["2,", "3,"].iter().any(|figure| part.starts_with(figure)) => Some(1),
            // The reader and the writer had one processor each.
            (Source::KyberGrid, _) => Some(2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(source: Source, group: &str) -> Host {
        let setting = "none".parse().unwrap();
        let (group, jobs, figures) = (group.to_owned(), vec![], vec![]);
        MeasuredCase { source, group, setting, jobs, disks: 1, disk: None, obstacle: None, figures }.host().unwrap()
    }

    #[test]
    fn hosts_have_the_processors_of_their_experiment() {
        assert_eq!(host(Source::Icpe24, "2,4a,6a: randread 4k x 1 x 1, 1 disk").cores, 1);
        assert_eq!(host(Source::Icpe24, "5,6c: randread 4k x 1 x 8, 1 disk").cores, 10);
        assert_eq!(host(Source::KyberGrid, "micro-bench-r1-w256").cores, 2);
    }

    #[test]
    fn only_hosts_of_io_cost_have_a_clock_rate() {
        assert_eq!(host(Source::IsolIocost, "model x 1: point 48").clock_hz, Some(1000));
        assert_eq!(host(Source::Icpe24, "5,6c: randread 4k x 1 x 8, 1 disk").clock_hz, None);
    }
}
