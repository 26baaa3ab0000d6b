//! A buffer of trace events for iosched itself: an instance of tracefs
//! (Documentation/trace/ftrace.rst). It does not disturb other users of the tracer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::ObserveError;
use super::event::{Event, Layouts};
use super::ring::{Page, events};
use crate::roots::{Roots, names, value};

/// Possible directories of tracefs, below `/sys`.
const PLACES: [&str; 2] = ["kernel/tracing", "kernel/debug/tracing"];
/// Start of an instance's name. The process id follows.
const NAME: &str = "iosched-";
/// Size of the buffers of all CPUs together, KiB. The other constant is the range of the size for
/// each CPU.
const TOTAL_KIB: u64 = 64 * 1024;
const PER_CPU_KIB: std::ops::RangeInclusive<u64> = 512..=8 * 1024;
/// Size of a sub-buffer, KiB. One read returns one sub-buffer. Before Linux 6.9, a sub-buffer is a
/// page.
const SUB_BUFFER_KIB: usize = 64;
/// Largest length of a filter, bytes. Every kernel accepts this length.
const FILTER_BYTES_MAX: usize = 3_500;
/// Clock of the events. The kernel shares this clock with user space.
const CLOCK: &str = "mono";

/// An instance that observes disks. Dropping the value removes the instance.
#[derive(Debug)]
pub(super) struct Instance {
    directory: PathBuf,
    layouts: Layouts,
    page: Page,
    /// Readers of the CPUs. They must be closed before the instance is removed.
    pipes: Vec<File>,
    buffer: Vec<u8>,
}

/// Returns the directory of the tracer.
fn tracing(roots: &Roots) -> Result<PathBuf, ObserveError> {
    let places = PLACES.map(|place| roots.sys(place));
    for place in &places {
        match fs::metadata(place.join("instances")) {
            Ok(_) => return Ok(place.clone()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(ObserveError::Permission { path: place.clone() });
            }
            Err(_) => {}
        }
    }
    let [place, _] = places;
    Err(if place.exists() { ObserveError::NotMounted { path: place } } else { ObserveError::NoTracer })
}

/// Returns the layout of sub-buffers. The kernel returns the text only once, so a single read must
/// get the whole text.
fn header_of(path: &Path) -> io::Result<String> {
    let mut buffer = vec![0; 4096];
    let bytes = File::open(path)?.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..bytes]).into_owned())
}

fn write(path: &Path, text: &str) -> Result<(), ObserveError> {
    fs::write(path, text).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: io::Error) -> ObserveError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ObserveError::Permission { path: path.to_owned() },
        _ => ObserveError::Io { path: path.to_owned(), error },
    }
}

impl Instance {
    /// Creates an instance that records events of the devices with these numbers. Events of all
    /// devices are recorded if the list is empty.
    pub(super) fn begin(roots: &Roots, devices: &[u32]) -> Result<Self, ObserveError> {
        let tracing = tracing(roots)?;
        let header = tracing.join("events/header_page");
        let page =
            Page::parse(&header_of(&header).map_err(|error| failed(&header, error))?).ok_or(ObserveError::NoTracer)?;
        let layouts = Layouts::read(&tracing.join("events")).ok_or(ObserveError::NoTracer)?;
        remove_left(roots);
        let instances = tracing.join("instances");
        let pid = std::process::id();
        let free = (0..).map(|number| instances.join(format!("{NAME}{pid}-{number}"))).find(|path| !path.exists());
        let directory = free.unwrap_or(instances);
        fs::create_dir(&directory).map_err(|error| failed(&directory, error))?;
        // From here on, dropping the value removes the instance.
        let mut instance = Self { directory, layouts, page, pipes: Vec::new(), buffer: vec![0; 4096] };
        instance.set_up(devices)?;
        Ok(instance)
    }

    fn set_up(&mut self, devices: &[u32]) -> Result<(), ObserveError> {
        let at = |name: &str| self.directory.join(name);
        write(&at("tracing_on"), "0")?;
        write(&at("trace_clock"), CLOCK)?;
        // A kernel without this file has sub-buffers of a page.
        if write(&at("buffer_subbuf_size_kb"), &SUB_BUFFER_KIB.to_string()).is_ok() {
            self.buffer = vec![0; SUB_BUFFER_KIB * 1024];
        } else {
            self.buffer = vec![0; 64 * 1024];
        }
        let cpus = names(&at("per_cpu"));
        let per_cpu = TOTAL_KIB / (cpus.len().max(1) as u64);
        write(&at("buffer_size_kb"), &per_cpu.clamp(*PER_CPU_KIB.start(), *PER_CPU_KIB.end()).to_string())?;
        for cpu in &cpus {
            let path = at("per_cpu").join(cpu).join("trace_pipe_raw");
            let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
            let opened = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path);
            self.pipes.push(opened.map_err(|error| failed(&path, error))?);
        }
        let filter = devices.iter().map(|number| format!("dev == {number}")).collect::<Vec<_>>().join(" || ");
        // The kernel accepts a filter of at most a page. If the filter is too long, iosched sets no
        // filter and drops the events of other devices itself.
        let filter = if filter.len() < FILTER_BYTES_MAX { filter } else { String::new() };
        for name in &self.layouts.names {
            let event = at("events").join(name);
            // The device in the events of files is a partition or a logical volume, so this filter
            // does not match it.
            if !filter.is_empty() && name.starts_with("block/") {
                write(&event.join("filter"), &filter)?;
            }
            write(&event.join("enable"), "1")?;
        }
        Ok(())
    }

    pub(super) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Starts or stops the recording of events.
    pub(super) fn switch(&self, is_on: bool) -> Result<(), ObserveError> {
        write(&self.directory.join("tracing_on"), if is_on { "1" } else { "0" })
    }

    /// Adds the events since the last call to `out`. Returns the number of lost events.
    pub(super) fn read(&mut self, out: &mut Vec<Event>) -> Result<u64, ObserveError> {
        let Self { directory, layouts, page, pipes, buffer } = self;
        let mut lost = 0;
        for pipe in pipes {
            loop {
                match pipe.read(buffer) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        lost += events(*page, &buffer[..bytes], |time_ns, event| {
                            out.extend(layouts.decode(time_ns, event));
                        });
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The CPU is offline.
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => break,
                    Err(error) => return Err(failed(directory, error)),
                }
            }
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        // If the instance cannot be removed, the next one or `iosched restore` removes it.
        let _ = self.switch(false);
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Removes the instances that processes of iosched have left behind, for example because they were
/// killed.
/// Returns the names of the instances.
pub fn remove_left(roots: &Roots) -> Vec<String> {
    let left = left(roots);
    left.into_iter().filter(|path| fs::remove_dir(path).is_ok()).map(|path| path.display().to_string()).collect()
}

/// Returns the instances that [`remove_left`] would remove.
#[must_use]
pub fn left(roots: &Roots) -> Vec<PathBuf> {
    let Ok(tracing) = tracing(roots) else { return Vec::new() };
    let instances = tracing.join("instances");
    let is_left = |name: &String| {
        let pid = name.strip_prefix(NAME).and_then(|rest| rest.split('-').next()).filter(|pid| !pid.is_empty());
        pid.is_some_and(|pid| {
            pid.bytes().all(|byte| byte.is_ascii_digit()) && value(&roots.proc(pid).join("stat")).is_none()
        })
    };
    names(&instances).into_iter().filter(is_left).map(|name| instances.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_ended_processes_are_removed() {
        let here = tempfile::tempdir().unwrap();
        let roots = Roots::at(here.path());
        let instances = here.path().join("sys/kernel/tracing/instances");
        for name in ["iosched-12-0", "iosched-13-0", "iosched-mine", "other"] {
            fs::create_dir_all(instances.join(name)).unwrap();
        }
        fs::create_dir_all(here.path().join("proc/13")).unwrap();
        fs::write(here.path().join("proc/13/stat"), "13 (iosched) S\n").unwrap();
        assert_eq!(left(&roots), [instances.join("iosched-12-0")]);
        assert_eq!(remove_left(&roots).len(), 1);
        assert!(left(&roots).is_empty() && instances.join("iosched-13-0").exists());
    }

    #[test]
    fn errors_distinguish_no_tracer_from_unmounted_tracefs() {
        let here = tempfile::tempdir().unwrap();
        let roots = Roots::at(here.path());
        assert!(matches!(Instance::begin(&roots, &[]), Err(ObserveError::NoTracer)));
        fs::create_dir_all(here.path().join("sys/kernel/tracing")).unwrap();
        assert!(matches!(Instance::begin(&roots, &[]), Err(ObserveError::NotMounted { .. })));
    }
}
