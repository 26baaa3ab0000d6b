//! hdparm's timing of reads, as a fio job.
//!
//! With `-t`, hdparm first drops the cached pages of the device. Then it reads the device from its
//! start through the page cache, in blocks of 2 MiB, for three seconds. With `--direct`, hdparm
//! bypasses the page cache. With `-T`, it reads the same cached block repeatedly, which causes no
//! I/O.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::option::{About, fio_words, flag, option};

/// Name and options of hdparm.
pub(in crate::app) const ABOUT: About = About {
    name: "hdparm",
    about: "reads a device from its start for three seconds",
    options: &[
        flag("-t", "measure reads of the device"),
        flag("-T", "no effect together with -t, because reads from the cache cause no I/O"),
        flag("--direct", "bypass the page cache"),
        option("--offset", "GIB", "position at which the reads begin, in GiB; default 0"),
    ],
};

/// Bytes of each read.
const BLOCK_BYTES: u64 = 2 << 20;
/// Duration of the reads, seconds.
const SECONDS: u64 = 3;

/// Returns the words of fio's command line.
pub(in crate::app) fn words(line: &Line<'_>) -> Result<Vec<String>, WorkloadError> {
    let (given, devices) = line.options(ABOUT.options)?;
    let has = |name: &str| given.iter().any(|given| given.name == name);
    if !has("-t") {
        let (problem, remedy) = if has("-T") {
            ("hdparm -T reads only from memory and causes no I/O", "write hdparm -t DEVICE")
        } else {
            ("iosched simulates only timed reads (-t)", "write hdparm -t DEVICE")
        };
        return Err(line.error(if has("-T") { "-T" } else { "-t" }, problem, remedy));
    }
    let device = match devices[..] {
        [device] if device.starts_with("/dev/") => device,
        [] => return Err(line.error("DEVICE", "is missing", "write hdparm -t /dev/sda")),
        [other] => return Err(line.error(other, "is not a device", "write hdparm -t /dev/sda")),
        [_, second, ..] => {
            return Err(line.error(second, "a second device", "compare one device at a time, with --device"));
        }
    };
    let mut words = fio_words(&[
        ("name", ABOUT.name.to_owned()),
        ("filename", device.to_owned()),
        ("rw", "read".to_owned()),
        ("bs", BLOCK_BYTES.to_string()),
        ("direct", u8::from(has("--direct")).to_string()),
        ("time_based", "1".to_owned()),
        ("runtime", SECONDS.to_string()),
    ]);
    if let Some(offset) = given.iter().find(|given| given.name == "--offset") {
        let gib = line.number(*offset, 0, 1 << 20)?;
        words.extend(fio_words(&[("offset", format!("{gib}g"))]));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use crate::app::as_fio;

    fn words(text: &str) -> String {
        as_fio(text).map_or_else(|error| error.to_string(), |words| words.unwrap().join(" "))
    }

    #[test]
    fn reads_two_mib_at_a_time_for_three_seconds() {
        let read = "--name=hdparm --filename=/dev/sda --rw=read --bs=2097152";
        for text in ["hdparm -t /dev/sda", "hdparm -tT /dev/sda", "hdparm -Tt /dev/sda", "hdparm -t -T /dev/sda"] {
            assert_eq!(words(text), format!("{read} --direct=0 --time_based=1 --runtime=3"), "{text}");
        }
        let direct = words("hdparm -t --direct --offset 100 /dev/sda");
        assert_eq!(direct, format!("{read} --direct=1 --time_based=1 --runtime=3 --offset=100g"));
    }

    #[test]
    fn errors_name_the_option() {
        assert!(words("hdparm -T /dev/sda").contains("-T: hdparm -T reads only from memory and causes no I/O"));
        assert!(words("hdparm -I /dev/sda").contains("-I: unknown option"));
        assert!(words("hdparm /dev/sda").contains("only timed reads"));
        assert!(words("hdparm -t").contains("DEVICE: is missing"));
        assert!(words("hdparm -t /dev/sda /dev/sdb").contains("/dev/sdb: a second device"));
    }
}
