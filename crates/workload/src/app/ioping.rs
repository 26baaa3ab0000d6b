//! ioping, as a fio job.
//!
//! ioping makes one request per second. By default, a request accesses 4 KiB at a random place on a
//! device or in a file of 1 MiB. Without `-C`, ioping first drops the cached pages, so each read
//! misses the page cache. The job uses direct reads instead. `fdatasync` follows each write, unless
//! `-C` is given.

use crate::WorkloadError;
use crate::app::command_line::{Given, Line};
use crate::app::option::{About, fio_words, flag, option};

/// Name and options of ioping.
pub(in crate::app) const ABOUT: About = About {
    name: "ioping",
    about: "makes one request a second and measures its latency",
    options: &[
        option("-c", "COUNT", "end after this number of requests; without -c and -w, the default is 60"),
        option("-i", "TIME", "time from one request to the next; default 1 s"),
        option("-w", "TIME", "end after this time"),
        option("-s", "SIZE", "size of a request; default 4k, or 256k with -L"),
        option("-S", "SIZE", "size of the area of the requests; default 1m, or the whole device"),
        option("-o", "OFFSET", "start of the area of the requests; default 0"),
        flag("-D", "bypass the page cache"),
        flag("-C", "use the page cache; only for a device"),
        flag("-W", "write instead of read"),
        flag("-L", "sequential requests of 256 KiB"),
        flag("-R", "the same as -i 0 -w 3 -S 64m"),
        flag("-Y", "with O_SYNC"),
        flag("-y", "with O_DSYNC"),
        flag("-A", "no effect in iosched, because ioping also waits for each asynchronous I/O"),
        flag("-q", "no effect in iosched, because the option affects only the output"),
        flag("-B", "no effect in iosched, because the option affects only the output"),
        flag("-J", "no effect in iosched, because the option affects only the output"),
        flag("-k", "no effect in iosched, because iosched always keeps the file"),
        option("-p", "PERIOD", "no effect in iosched, because the option affects only the output"),
        option("-P", "PERIOD", "no effect in iosched, because the option affects only the output"),
    ],
};

/// Number of requests if the user gives neither a count nor a time. In this case, ioping itself
/// runs until the user interrupts it.
const COUNT_DEFAULT: u64 = 60;
const MIB: u64 = 1 << 20;

/// Returns the words of fio's command line.
pub(in crate::app) fn words(line: &Line<'_>) -> Result<Vec<String>, WorkloadError> {
    let (given, targets) = line.options(ABOUT.options)?;
    let has = |name: &str| given.iter().any(|given| given.name == name);
    let last = |name: &str| given.iter().rev().find(|given| given.name == name).copied();
    let size = |name: &str, default: Option<u64>| match last(name) {
        Some(Given { value: "0", .. }) | None => Ok(default),
        Some(given) => line.size(given, 1).map(Some),
    };
    let time = |name: &str, default: Option<u64>| last(name).map_or(Ok(default), |given| line.time(given).map(Some));
    let target = match targets[..] {
        [target] => target,
        [] => return Err(line.error("TARGET", "is missing", "write ioping -c 10 DIRECTORY or DEVICE")),
        [_, second, ..] => return Err(line.error(second, "a second target", "write one directory or device")),
    };
    let is_device = target.starts_with("/dev/");
    let (seeks, cached, writes) = (has("-R"), has("-C"), has("-W"));
    if cached && !is_device {
        let problem = "the file is in the page cache, so no request reaches the disk";
        return Err(line.error("-C", problem, "leave -C out, or name a device"));
    }
    let block_bytes = size("-s", Some(if has("-L") { 256 << 10 } else { 4 << 10 }))?.unwrap_or(MIB);
    let part_default = if seeks { Some(64 * MIB) } else { Some(MIB).filter(|_| !is_device) };
    let part_bytes = size("-S", part_default)?;
    if part_bytes.is_some_and(|part_bytes| part_bytes < block_bytes) {
        let problem = format!("the size is less than one request, which has {block_bytes} bytes");
        return Err(line.error("-S", problem, "give a larger size, or a smaller -s"));
    }
    let interval_ns = time("-i", Some(if seeks { 0 } else { 1_000_000_000 }))?.unwrap_or(0);
    let deadline_ns = time("-w", seeks.then_some(3_000_000_000))?;
    let count = last("-c").map(|given| line.number(given, 1, u64::from(u32::MAX))).transpose()?;
    let count = count.or_else(|| deadline_ns.is_none().then_some(COUNT_DEFAULT));
    let rw = match (has("-L"), writes) {
        (false, false) => "randread",
        (false, true) => "randwrite",
        (true, false) => "read",
        (true, true) => "write",
    };
    let mut options = vec![
        ("name", ABOUT.name.to_owned()),
        ("rw", rw.to_owned()),
        ("bs", block_bytes.to_string()),
        // A read of a dropped page is equivalent to a direct read.
        ("direct", u8::from(has("-D") || !writes && !cached).to_string()),
        ("norandommap", "1".to_owned()),
        ("time_based", "1".to_owned()),
        ("runtime", deadline_ns.map_or_else(|| "30d".to_owned(), |ns| format!("{}us", ns.div_ceil(1_000)))),
    ];
    if is_device {
        options.push(("filename", target.to_owned()));
    }
    if cached && !has("-L") {
        options.push(("fadvise_hint", "random".to_owned()));
    }
    options.extend(part_bytes.map(|bytes| ("size", bytes.to_string())));
    options.extend(size("-o", None)?.map(|bytes| ("offset", bytes.to_string())));
    options.extend(count.map(|count| ("number_ios", count.to_string())));
    options.extend((writes && !cached).then(|| ("fdatasync", "1".to_owned())));
    let sync = [("-Y", "sync"), ("-y", "dsync")].into_iter().find(|(name, _)| has(name));
    options.extend(sync.map(|(_, how)| ("sync", how.to_owned())));
    if interval_ns > 0 {
        // ioping makes one request per interval, independent of the latency. For fio, this is a
        // rate in bytes per second, or a think time if the rate is not an integer.
        let rate = u128::from(block_bytes) * 1_000_000_000;
        options.push(match rate.is_multiple_of(u128::from(interval_ns)) {
            true => ("rate", (rate / u128::from(interval_ns)).to_string()),
            false => ("thinktime", format!("{}us", interval_ns.div_ceil(1_000))),
        });
    }
    Ok(fio_words(&options))
}

#[cfg(test)]
mod tests {
    use crate::app::as_fio;

    fn words(text: &str) -> String {
        as_fio(text).map_or_else(|error| error.to_string(), |words| words.unwrap().join(" "))
    }

    #[track_caller]
    fn has(text: &str, options: &[&str]) {
        let words = words(text);
        for option in options {
            assert!(words.split(' ').any(|word| word == *option), "{text} gives {words}, not {option}");
        }
    }

    #[test]
    fn reads_4_kib_once_a_second() {
        let defaults = ["--rw=randread", "--bs=4096", "--direct=1", "--size=1048576", "--rate=4096", "--number_ios=60"];
        has("ioping .", &defaults);
        has("ioping -c 10 /tmp", &["--number_ios=10", "--runtime=30d"]);
        has("ioping -i 200ms -w 5 .", &["--rate=20480", "--runtime=5000000us"]);
        has("ioping -i 0.3 .", &["--thinktime=300000us"]);
        assert!(!words("ioping -i 0 -c 5 .").contains("rate"));
        assert!(!words("ioping -c 5 /dev/sda").contains("--size"));
    }

    #[test]
    fn options_mean_the_same_as_in_ioping() {
        has("ioping -R /dev/sda", &["--size=67108864", "--runtime=3000000us", "--filename=/dev/sda", "--direct=1"]);
        has("ioping -RL /dev/sda", &["--rw=read", "--bs=262144"]);
        has("ioping -WWW -c 3 -s 16k -S 4m .", &["--rw=randwrite", "--bs=16384", "--size=4194304", "--fdatasync=1"]);
        has("ioping -D -W .", &["--direct=1", "--fdatasync=1"]);
        has("ioping -C /dev/sda", &["--direct=0", "--fadvise_hint=random"]);
        has("ioping -W -y .", &["--direct=0", "--sync=dsync"]);
    }

    #[test]
    fn errors_name_the_option() {
        assert!(words("ioping -C .").contains("-C: the file is in the page cache"));
        assert!(words("ioping -K .").contains("-K: unknown option"));
        assert!(words("ioping -s 2m .").contains("-S: the size is less than one request, which has 2097152 bytes"));
        assert!(words("ioping -i x .").contains("-i: `x` is not a time"));
        assert!(words("ioping").contains("TARGET: is missing"));
    }
}
