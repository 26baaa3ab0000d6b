//! Files of cgroups by the names of cgroups, as users write them in a
//! setting: `io.max=backup:wbps=50000000/wiops=100`. Several cgroups are
//! joined with `+`: `io.latency=db:target=5000+backup:target=75000`. Files of
//! the device have no name: `io.cost.qos=enable=1`.

use super::about::{FileOf, cgroup_files};
use super::controller::Controllers;
use super::of_linux::ControlledDevice;
use super::site::Site;
use super::write_error::{CgroupFileError, WriteError};
use crate::context::{CgroupId, WeightRange};
use crate::kernel::KernelVersion;
use crate::rates::{MCLOCK_FILE, Rates, RatesWrite};
use crate::time::Time;

/// File that only bfq has.
pub(crate) const BFQ_WEIGHT: &str = "io.bfq.weight";

/// Returns the files that a setting may name.
pub fn files() -> impl Iterator<Item = &'static str> {
    cgroup_files().map(|file| file.name)
}

/// Returns whether a setting may name this file. Such a file is not an attribute of the queue.
#[must_use]
pub fn is_file(name: &str) -> bool {
    files().any(|file| file == name)
}

/// Returns whether a file belongs to the root cgroup and applies to a whole device.
fn is_of_device(file: &str) -> bool {
    cgroup_files().any(|known| known.name == file && known.of == FileOf::Root)
}

/// Name of the root.
const ROOT: &str = "/";

/// Text for a file of a named cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedWrite {
    /// Name of the cgroup.
    pub cgroup: String,
    /// Name of the file, one of the [files](files).
    pub file: String,
    /// Text to write.
    pub text: String,
}

impl NamedWrite {
    /// Returns whether the file applies to a whole device instead of a cgroup.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        is_of_device(&self.file)
    }

    /// Parses a value for `file` and checks every word. The form is `CGROUP:WORD/WORD+CGROUP:WORD`,
    /// or `WORD/WORD` for a file of the device.
    ///
    /// # Errors
    /// Fails if the value has another form, or if the file refuses the words.
    pub fn parse(file: &str, given: &str) -> Result<Vec<Self>, CgroupFileError> {
        let of_device = is_of_device(file);
        let entry = |part: &str| {
            let form = || CgroupFileError::new(file, part, WriteError::NoCgroup);
            let named = part.split_once(':').filter(|(cgroup, _)| !cgroup.is_empty());
            let (cgroup, words) = if of_device { (ROOT, part) } else { named.ok_or_else(form)? };
            let text = words.replace('/', " ");
            check(file, &text).map_err(|error| CgroupFileError::new(file, &text, error))?;
            Ok(Self { cgroup: cgroup.to_owned(), file: file.to_owned(), text })
        };
        if of_device { Ok(vec![entry(given)?]) } else { given.split('+').map(entry).collect() }
    }
}

/// Checks whether a file accepts a text.
fn check(file: &str, text: &str) -> Result<(), WriteError> {
    if file == BFQ_WEIGHT {
        let weight: u32 = text.parse().map_err(|_| WriteError::Invalid)?;
        let WeightRange { min, max, .. } = WeightRange::BFQ;
        return (min..=max).contains(&weight).then_some(()).ok_or(WriteError::Range);
    }
    if file == MCLOCK_FILE {
        let write = RatesWrite::parse(text).ok_or(WriteError::Invalid)?;
        let WeightRange { min, max, .. } = WeightRange::BFQ;
        if write.weight.is_some_and(|weight| !(min..=max).contains(&weight)) {
            return Err(WriteError::Range);
        }
        return write.applied_to(Rates::default()).is_consistent().then_some(()).ok_or(WriteError::AboveLimit);
    }
    let mut site = Site::new(Time::BEGINNING, 1000);
    let group = site.groups.create(CgroupId::ROOT);
    let group = if is_of_device(file) { CgroupId::ROOT } else { group };
    let device = ControlledDevice {
        rotational: false,
        write_cache: false,
        depth: 32,
        nr_requests: 128,
        throttles_writeback: false,
        kernel: KernelVersion::default(),
    };
    Controllers::of_linux(site, device).write(file, group, text).unwrap_or(Err(WriteError::NoSuchFile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_values_are_parsed_and_errors_say_what_to_write() {
        let all = NamedWrite::parse("io.max", "backup:wbps=50000000/wiops=100+db:max=2").unwrap_err().to_string();
        assert!(all.starts_with("io.max: \"max=2\": the file does not accept this text; write any of rbps=N"), "{all}");
        let all = NamedWrite::parse("io.max", "backup:wbps=50000000/wiops=100+db:riops=max").unwrap();
        let texts: Vec<_> = all.iter().map(|write| (write.cgroup.as_str(), write.text.as_str())).collect();
        assert_eq!(texts, [("backup", "wbps=50000000 wiops=100"), ("db", "riops=max")]);
        let qos = NamedWrite::parse("io.cost.qos", "enable=1/rpct=95/rlat=5000").unwrap();
        assert_eq!((qos[0].cgroup.as_str(), qos[0].text.as_str()), ("/", "enable=1 rpct=95 rlat=5000"));
        assert!(NamedWrite::parse("io.weight", "db:0").is_err());
        assert_eq!(NamedWrite::parse("io.bfq.weight", "db:1000").unwrap()[0].text, "1000");
        let error = NamedWrite::parse("io.bfq.weight", "db:1001").unwrap_err().to_string();
        assert!(error.ends_with("a value is out of range; write N, from 1 to 1000"), "{error}");
        let error = NamedWrite::parse("io.mclock", "db:reservation=5/limit=4").unwrap_err().to_string();
        assert!(error.contains("the reservation is above the limit; write any of reservation=RATE"), "{error}");
        let both = NamedWrite::parse("io.mclock", "db:reservation=50MB/weight=2+web:limit=max").unwrap();
        assert_eq!((both[0].text.as_str(), both[1].cgroup.as_str()), ("reservation=50MB weight=2", "web"));
        assert!(NamedWrite::parse("io.mclock", "db:weight=0").is_err());
        let error = NamedWrite::parse("io.latency", "target=5000").unwrap_err().to_string();
        assert!(error.contains("the name of the cgroup is missing; write CGROUP:VALUES"), "{error}");
    }
}
