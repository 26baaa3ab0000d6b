//! The kernel's block tracer. iosched switches the tracer on for one device, and restores its
//! settings afterwards (Documentation/trace/ftrace.rst).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RecordError;
use crate::attribute::chosen;
use crate::block::BlockDevice;
use crate::roots::{Roots, value};
use crate::state::{Entry, Locked, StateDirectory, parse};

/// Kind and name of the journal of recordings. There is only one tracer, and therefore only one
/// journal.
const JOURNALS: &str = "recordings";
const JOURNAL: &str = "tracer";
/// Possible directories of the tracer, below `/sys`.
const PLACES: [&str; 2] = ["kernel/tracing", "kernel/debug/tracing"];
const TRACER: &str = "blk";
const NO_TRACER: &str = "nop";
/// Size of the buffer for events on each CPU, KiB. A device with 100,000 I/Os per second fills the
/// buffer in about 0.2 s. iosched reads the pipe every few ms.
const BUFFER_KIB: u64 = 8 * 1024;
/// Number of process names that the kernel stores.
const NAMES_MAX: u64 = 4096;

/// Returns the settings of a recording in the order of writing. They select binary records without
/// a prefix, a clock that all CPUs share, and names of processes.
fn settings() -> [(&'static str, String); 8] {
    [
        ("tracing_on", "1".to_owned()),
        ("buffer_size_kb", BUFFER_KIB.to_string()),
        ("saved_cmdlines_size", NAMES_MAX.to_string()),
        ("trace_clock", "mono".to_owned()),
        ("options/bin", "1".to_owned()),
        ("options/context-info", "0".to_owned()),
        ("options/record-cmd", "1".to_owned()),
        ("current_tracer", TRACER.to_owned()),
    ]
}

/// State of the tracer before a recording.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    pid: u32,
    boot_id: String,
    directory: PathBuf,
    /// File that switches the tracing of the device on and off.
    switch: PathBuf,
    before: Vec<(String, String)>,
}

/// The tracer, recording one device. Dropping the value restores all settings.
#[derive(Debug)]
pub(super) struct Tracer {
    journal: Journal,
    /// Entry of the journal. `None` after all settings are restored.
    entry: Option<Entry>,
}

impl Tracer {
    /// Switches the tracer on for a device.
    pub(super) fn begin(device: &BlockDevice, state: &StateDirectory) -> Result<Self, RecordError> {
        let directory = directory(device.roots())?;
        let has_tracer = value(&directory.join("available_tracers"))
            .is_some_and(|tracers| tracers.split_whitespace().any(|name| name == TRACER));
        let switch = device.directory().join("trace/enable");
        if !has_tracer || !switch.exists() {
            return Err(RecordError::NoTracer);
        }
        let mut entry = match state.lock(JOURNALS, JOURNAL)? {
            Locked::ByUs(entry) => entry,
            Locked::ByAnother(text) => {
                return Err(RecordError::Recording { pid: parse::<Journal>(&text).map_or(0, |journal| journal.pid) });
            }
        };
        // Restore the settings that a killed recording has left.
        if let Some(left) = parse::<Journal>(&entry.text()?) {
            put_back(&left, device.roots())?;
        }
        nobody_traces(&directory)?;
        let before = settings().into_iter().filter_map(|(name, _)| Some((name.to_owned(), read(&directory, name)?)));
        let journal = Journal {
            pid: std::process::id(),
            boot_id: device.roots().boot_id(),
            switch,
            before: before.collect(),
            directory,
        };
        entry.write(&journal)?;
        let tracer = Self { journal, entry: Some(entry) };
        for (name, wanted) in settings() {
            match read(&tracer.journal.directory, name) {
                // An old kernel may lack some of the settings. If the buffer is already larger than
                // needed, iosched does not change its size.
                None => {}
                Some(now) if is_enough(name, &now, &wanted) => {}
                Some(_) => write(&tracer.journal.directory.join(name), &wanted)?,
            }
        }
        write(&tracer.journal.switch, "1").map_err(|error| match error {
            RecordError::Io { error, .. } if error.kind() == io::ErrorKind::ResourceBusy => RecordError::Traced,
            error => error,
        })?;
        Ok(tracer)
    }

    /// Returns the path of the pipe of events.
    pub(super) fn pipe(&self) -> PathBuf {
        self.journal.directory.join("trace_pipe")
    }

    /// Stops the tracing of the device.
    pub(super) fn stop(&self) -> Result<(), RecordError> {
        write(&self.journal.switch, "0")
    }

    /// Returns the names of processes that the kernel has stored.
    pub(super) fn names(&self) -> Vec<(u32, Vec<u8>)> {
        let text = fs::read(self.journal.directory.join("saved_cmdlines")).unwrap_or_default();
        let named = text.split(|&byte| byte == b'\n').filter_map(|line| {
            let at = line.iter().position(|&byte| byte == b' ')?;
            Some((std::str::from_utf8(&line[..at]).ok()?.parse().ok()?, line[at + 1..].to_vec()))
        });
        named.collect()
    }

    /// Restores all settings.
    pub(super) fn end(mut self) -> Result<(), RecordError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), RecordError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        put_back_all(&self.journal)?;
        Ok(entry.remove()?)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // A failure leaves the journal, and `iosched restore` reports it.
        let _ = self.put_back();
    }
}

/// State that a killed recording has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftTracer {
    /// Nothing is left.
    Nothing,
    /// A recording is running.
    InUse {
        /// Process id of the recording, 0 if not known.
        pid: u32,
    },
    /// The tracer was left on and is restored. In a dry run, it would be restored.
    PutBack,
}

/// Restores the settings that a killed recording has left. With `dry_run`, the function changes
/// nothing.
///
/// # Errors
/// The journal cannot be read, or the settings cannot be restored.
pub fn restore_tracer(roots: &Roots, state: &StateDirectory, dry_run: bool) -> Result<LeftTracer, RecordError> {
    if state.entries(JOURNALS).is_empty() {
        return Ok(LeftTracer::Nothing);
    }
    let mut entry = match state.lock(JOURNALS, JOURNAL)? {
        Locked::ByUs(entry) => entry,
        Locked::ByAnother(text) => {
            return Ok(LeftTracer::InUse { pid: parse::<Journal>(&text).map_or(0, |journal| journal.pid) });
        }
    };
    let left = parse::<Journal>(&entry.text()?);
    // A reboot resets the tracer.
    let found = left.as_ref().filter(|left| left.boot_id == roots.boot_id()).map(|_| LeftTracer::PutBack);
    if !dry_run {
        if let Some(left) = &left {
            put_back(left, roots)?;
        }
        entry.remove()?;
    }
    Ok(found.unwrap_or(LeftTracer::Nothing))
}

fn put_back(left: &Journal, roots: &Roots) -> Result<(), RecordError> {
    if left.boot_id == roots.boot_id() { put_back_all(left) } else { Ok(()) }
}

fn put_back_all(journal: &Journal) -> Result<(), RecordError> {
    // A device that no longer exists is no longer traced.
    if journal.switch.exists() && value(&journal.switch).as_deref() != Some("0") {
        write(&journal.switch, "0")?;
    }
    for (name, before) in journal.before.iter().rev() {
        if read(&journal.directory, name).is_some_and(|now| now != *before) {
            write(&journal.directory.join(name), before)?;
        }
    }
    Ok(())
}

/// Returns the directory of the tracer.
fn directory(roots: &Roots) -> Result<PathBuf, RecordError> {
    let places = PLACES.map(|place| roots.sys(place));
    for place in &places {
        match fs::metadata(place.join("current_tracer")) {
            Ok(_) => return Ok(place.clone()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(refused(place));
            }
            Err(_) => {}
        }
    }
    let [place, _] = places;
    Err(if place.exists() { RecordError::NotMounted { path: place } } else { RecordError::NoTracer })
}

/// Checks that no other program traces. All programs share one trace, so their events would be
/// mixed with the events of iosched.
fn nobody_traces(directory: &Path) -> Result<(), RecordError> {
    let tracer = value(&directory.join("current_tracer")).unwrap_or_default();
    if tracer != NO_TRACER {
        return Err(RecordError::InUse { what: format!("the present tracer is {tracer}, not {NO_TRACER}") });
    }
    let events = value(&directory.join("set_event")).unwrap_or_default();
    match events.lines().next() {
        Some(first) => Err(RecordError::InUse { what: format!("the present trace records {first}") }),
        None => Ok(()),
    }
}

/// Returns the present value of a setting, in the form that can be written.
fn read(directory: &Path, name: &str) -> Option<String> {
    let text = value(&directory.join(name))?;
    Some(match name {
        "trace_clock" => chosen(&text).to_owned(),
        // Before the first trace, the kernel shows `7 (expanded: 1408)`. The second number is the
        // size after tracing starts.
        "buffer_size_kb" => match text.split_once("expanded: ") {
            Some((_, expanded)) => expanded.trim_end_matches(')').to_owned(),
            None => text,
        },
        _ => text,
    })
}

fn is_enough(name: &str, now: &str, wanted: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    match name {
        "buffer_size_kb" | "saved_cmdlines_size" => number(now) >= number(wanted),
        _ => now == wanted,
    }
}

fn write(path: &Path, text: &str) -> Result<(), RecordError> {
    fs::write(path, text).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => refused(path),
        _ => RecordError::Io { path: path.to_owned(), error },
    })
}

/// Returns the error for a file of the tracer that this process may not use. If the process is
/// root, the kernel is locked down.
pub(super) fn refused(path: &Path) -> RecordError {
    if rustix::process::geteuid().is_root() {
        refused_to_root(path)
    } else {
        RecordError::Permission { path: path.to_owned() }
    }
}

fn refused_to_root(path: &Path) -> RecordError {
    let sys = path.ancestors().find(|parent| parent.ends_with("sys"));
    let lockdown = sys.and_then(|sys| value(&sys.join("kernel/security/lockdown")));
    let locked = lockdown.is_some_and(|text| chosen(&text) != "none");
    RecordError::Refused { path: path.to_owned(), locked }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a machine with a tracer and a disk.
    fn machine() -> (tempfile::TempDir, Roots, StateDirectory) {
        let here = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = here.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, text) in [
            ("available_tracers", "blk function nop\n"),
            ("current_tracer", "nop\n"),
            ("set_event", ""),
            ("tracing_on", "1\n"),
            ("buffer_size_kb", "7 (expanded: 1408)\n"),
            ("trace_clock", "[local] global mono\n"),
            ("options/bin", "0\n"),
            ("options/context-info", "1\n"),
            ("options/record-cmd", "1\n"),
            ("saved_cmdlines", "12 kworker/0:1\n4711 two words\n"),
        ] {
            file(&format!("sys/kernel/tracing/{name}"), text);
        }
        file("sys/class/block/sda/dev", "8:0\n");
        file("sys/class/block/sda/trace/enable", "0\n");
        file("sys/block/sda/dev", "8:0\n");
        file("proc/sys/kernel/random/boot_id", "this one\n");
        let (roots, state) = (Roots::at(here.path()), StateDirectory::at(&here.path().join("state")));
        (here, roots, state)
    }

    fn knob(roots: &Roots, name: &str) -> String {
        value(&roots.sys("kernel/tracing").join(name)).unwrap()
    }

    #[test]
    fn tracer_is_enabled_for_the_device_and_restored_at_end() {
        let (_here, roots, state) = machine();
        let device = BlockDevice::named(&roots, "sda").unwrap();
        let tracer = Tracer::begin(&device, &state).unwrap();
        assert_eq!(knob(&roots, "current_tracer"), "blk");
        assert_eq!((knob(&roots, "options/bin"), knob(&roots, "options/context-info")), ("1".into(), "0".into()));
        assert_eq!(value(&device.directory().join("trace/enable")).as_deref(), Some("1"));
        assert_eq!(tracer.names(), [(12, b"kworker/0:1".to_vec()), (4711, b"two words".to_vec())]);
        assert!(matches!(Tracer::begin(&device, &state), Err(RecordError::Recording { .. })));
        tracer.end().unwrap();
        assert_eq!((knob(&roots, "current_tracer"), knob(&roots, "trace_clock")), ("nop".into(), "local".into()));
        assert_eq!((knob(&roots, "options/bin"), knob(&roots, "buffer_size_kb")), ("0".into(), "1408".into()));
        assert_eq!(value(&device.directory().join("trace/enable")).as_deref(), Some("0"));
        assert_eq!(restore_tracer(&roots, &state, false).unwrap(), LeftTracer::Nothing);
    }

    #[test]
    fn error_for_root_says_whether_the_kernel_is_locked_down() {
        let (here, roots, _) = machine();
        let file = roots.sys("kernel/tracing/current_tracer");
        assert!(refused_to_root(&file).to_string().contains("even for root"));
        let lockdown = here.path().join("sys/kernel/security/lockdown");
        fs::create_dir_all(lockdown.parent().unwrap()).unwrap();
        for (text, expected) in [("none [integrity] confidentiality", true), ("[none] integrity", false)] {
            fs::write(&lockdown, text).unwrap();
            assert_eq!(refused_to_root(&file).to_string().contains("the kernel is locked down"), expected, "{text}");
        }
    }

    #[test]
    fn next_recording_and_restore_reset_a_killed_tracer() {
        let (_here, roots, state) = machine();
        let device = BlockDevice::named(&roots, "sda").unwrap();
        let kill = |mut tracer: Tracer| drop(tracer.entry.take());
        kill(Tracer::begin(&device, &state).unwrap());
        assert_eq!(knob(&roots, "current_tracer"), "blk");
        kill(Tracer::begin(&device, &state).unwrap());
        assert_eq!(restore_tracer(&roots, &state, true).unwrap(), LeftTracer::PutBack);
        assert_eq!(knob(&roots, "current_tracer"), "blk");
        assert_eq!(restore_tracer(&roots, &state, false).unwrap(), LeftTracer::PutBack);
        assert_eq!((knob(&roots, "current_tracer"), knob(&roots, "options/bin")), ("nop".into(), "0".into()));
        assert_eq!(restore_tracer(&roots, &state, false).unwrap(), LeftTracer::Nothing);
    }

    #[test]
    fn tracer_of_another_program_is_left_alone() {
        let (here, roots, state) = machine();
        let device = BlockDevice::named(&roots, "sda").unwrap();
        let tracing = here.path().join("sys/kernel/tracing");
        for (name, text, expected) in [
            ("current_tracer", "function\n", "is function"),
            ("set_event", "sched:sched_switch\n", "sched:sched_switch"),
        ] {
            let before = fs::read_to_string(tracing.join(name)).unwrap();
            fs::write(tracing.join(name), text).unwrap();
            let refused = Tracer::begin(&device, &state).unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
            assert_eq!(knob(&roots, "options/bin"), "0");
            fs::write(tracing.join(name), before).unwrap();
        }
        fs::remove_dir_all(&tracing).unwrap();
        assert!(matches!(Tracer::begin(&device, &state), Err(RecordError::NoTracer)));
        fs::create_dir(&tracing).unwrap();
        assert!(matches!(Tracer::begin(&device, &state), Err(RecordError::NotMounted { .. })));
    }
}
