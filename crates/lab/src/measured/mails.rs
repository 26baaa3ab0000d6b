//! Tables from mails to kernel mailing lists. A few words in a mail describe the set-up of each
//! row.
//!
//! [`Text`] reads the words. A mail does not describe everything. For the rest, the simulation
//! makes these assumptions:
//!
//! - A rotating disk is `sata-7200`.
//! - Files are on ext4, on a current machine.
//! - A scheduler without a name is mq-deadline.
//! - A program that starts reads 12 MB in random order, while ten processes write sequentially. The
//!   writers use the page cache, because writers with direct I/O would not cause the delays in the
//!   rows.
//!
//! A case with two rows gives a relation of two values: see [`Tally`](super::Tally).

use iosched::Setting;

use super::case::{Figure, MeasuredCase, MeasuredDisk, Metric, Source};
use super::table::Line;
use crate::error::LabError;

/// Length of the warm-up of a run and of the time that counts, s. They are long enough for a
/// rotating disk, which needs more time than an SSD.
const TIMES_S: (u32, u32) = (4, 20);
/// Schedulers for a row about "any other" scheduler.
const ANY_OTHER: [&str; 3] = ["none", "mq-deadline", "kyber"];
/// Scheduler of a row that names no scheduler: the default of Linux for a disk with one queue.
const DEFAULT_SCHEDULER: &str = "mq-deadline";
/// Name of the job that starts a program.
const START_UP: &str = "start-up";
/// A program that starts while other processes write. It has the same reads as in the experiment
/// `start-up`.
const STARTING: &str = "[global]\nioengine=psync\n\
    [writers]\ndirect=0\nrw=write\nbs=128k\nnumjobs=10\nsize=20g\ntime_based\nruntime=20\n\
    [start-up]\ndirect=1\nrw=randread\nbs=32k\nsize=1g\nio_size=12m\nstartdelay=5\nthinktime=200\n";
/// Reason why rows about `null_blk` are not simulated.
const HOST_BOUND: &str = "the processor limits the rate, and the mail does not name the processor";
/// Reason why a row is not simulated.
const NOT_CLEAR: &str = "the table does not describe the workload in words that iosched knows";
/// Reason why a row is not simulated if iosched does not have its scheduler.
const NO_SCHEDULER: &str = "iosched does not have the scheduler";
/// Reason why a row is not simulated if iosched has no model of its disk.
const NO_MODEL: &str = "iosched has no model of the disk";

/// The words of a mail about a workload.
struct Text<'a> {
    words: Vec<&'a str>,
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        let is_between = |character: char| character.is_whitespace() || ":,;()".contains(character);
        Self { words: text.split(is_between).filter(|word| !word.is_empty()).collect() }
    }

    fn has(&self, any: &[&str]) -> bool {
        self.words.iter().any(|word| any.contains(word))
    }

    /// Returns the number after one of the names, such as 32 in "depth 32" or "QD=32".
    fn after(&self, names: &[&str]) -> Option<u64> {
        let next = self.words.iter().skip(1).copied().chain(["-"]);
        self.words.iter().zip(next).find_map(|(word, next)| {
            let (name, value) = word.split_once('=').unwrap_or((word, next));
            names.contains(&name).then(|| value.parse().ok()).flatten()
        })
    }

    /// Returns the number before one of the names, such as 8 in "8 readers".
    fn before(&self, names: &[&str]) -> Option<u64> {
        let pairs = self.words.windows(2).filter(|pair| names.contains(&pair[1]));
        pairs.into_iter().find_map(|pair| pair[0].parse().ok())
    }

    /// Returns the block size in bytes: "4k", "512 B" or "128 KiB".
    fn block_bytes(&self) -> Option<u64> {
        let short = |word: &&str| word.strip_suffix('k')?.parse::<u64>().ok();
        let units: [(&[&str], u64); 3] = [(&["B"], 1), (&["KiB", "kB"], 1 << 10), (&["MiB"], 1 << 20)];
        let long = |(names, unit): (&[&str], u64)| Some(self.before(names)? * unit);
        self.words.iter().find_map(short).map(|kib| kib << 10).or_else(|| units.into_iter().find_map(long))
    }

    /// Returns fio's name of the pattern.
    fn pattern(&self) -> Option<&'static str> {
        let is_random = self.has(&["random"]);
        let (reads, writes) = (self.has(&["read", "reads", "readers"]), self.has(&["write", "writes", "writers"]));
        Some(match (self.has(&["mixed"]), reads, writes) {
            (true, ..) => {
                if is_random {
                    "randrw"
                } else {
                    "rw"
                }
            }
            (false, true, false) => {
                if is_random {
                    "randread"
                } else {
                    "read"
                }
            }
            (false, false, true) => {
                if is_random {
                    "randwrite"
                } else {
                    "write"
                }
            }
            _ => return None,
        })
    }

    /// Returns the number of the I/O class in fio.
    fn class(&self) -> Option<u32> {
        let names = ["real-time", "best-effort", "idle"];
        let class = names.into_iter().position(|name| self.has(&[name]))?;
        Some(class as u32 + 1)
    }

    /// Returns a section of a job file. Returns `None` if the mail lacks the words for it.
    fn section(&self, name: &str) -> Option<String> {
        let (rw, bs) = (self.pattern()?, self.block_bytes()?);
        let engine = if self.has(&["libaio"]) { "libaio" } else { "psync" };
        let jobs = self.before(&["jobs", "readers", "writers"]).or_else(|| self.after(&["jobs"])).unwrap_or(1);
        let mut text = format!("[{name}]\nioengine={engine}\nrw={rw}\nbs={bs}\nnumjobs={jobs}\n");
        text.push_str(if self.has(&["buffered"]) { "direct=0\nsize=8g\n" } else { "direct=1\nfilename=/dev/sda\n" });
        let of_number = [
            ("iodepth", self.after(&["depth", "QD"])),
            ("iodepth_batch_complete_min", self.after(&["batch_complete"])),
            ("prioclass", self.class().map(u64::from)),
        ];
        for (option, value) in of_number {
            text.extend(value.map(|value| format!("{option}={value}\n")));
        }
        text.extend(self.before(&["GB"]).map(|gigabytes| format!("size={gigabytes}g\n")));
        Some(text)
    }
}

/// Returns the disk of a row, or the reason why it cannot be simulated.
fn disk(device: &str) -> Result<MeasuredDisk, &'static str> {
    let words = Text::of(device);
    match words.words.first().copied().unwrap_or_default() {
        "null_blk" => Err(HOST_BOUND),
        "scsi_debug" => {
            let (delay_ns, commands) = (words.after(&["ndelay"]), words.after(&["max_queue"]));
            let (Some(delay_ns), Some(commands)) = (delay_ns, commands) else { return Err(NOT_CLEAR) };
            Ok(MeasuredDisk::Text { name: device.to_owned(), text: scsi_debug(delay_ns, commands) })
        }
        "Samsung" if words.has(&["970"]) && words.has(&["PRO"]) => {
            Ok(MeasuredDisk::Named("samsung_ssd_970_pro_512gb".to_owned()))
        }
        "MG04ACA400N" => Ok(MeasuredDisk::Named("sata-7200".to_owned())),
        _ if words.has(&["HDD"]) => Ok(MeasuredDisk::Named("sata-7200".to_owned())),
        _ => Err(NO_MODEL),
    }
}

/// Returns the profile of `scsi_debug`: memory of 8 MiB behind a timer for each command.
fn scsi_debug(delay_ns: u64, commands: u64) -> String {
    format!(
        "kind = \"server\"\nabout = \"scsi_debug, {delay_ns} ns\"\n[server]\ncapacity_sectors = 16384\n\
         depth = {commands}\nservers = {commands}\n[server.read]\ntransit_ns = 0\nservice_ns = {delay_ns}\n"
    )
}

/// Returns the settings of a row. There are several settings if the row is about "any other"
/// scheduler, and none if iosched does not have the scheduler.
fn settings(line: &Line<'_>) -> Result<Vec<Setting>, LabError> {
    let text = line.text("setting")?;
    let words = Text::of(text);
    let tunable = if let Some(expire_ms) = words.after(&["aging_expire"]) {
        format!(":prio_aging_expire={expire_ms}")
    } else if let Some(kib) = words.before(&["KiB"]).filter(|_| words.has(&["read_ahead"])) {
        format!(":read_ahead_kb={kib}")
    } else {
        String::new()
    };
    let schedulers = match line.text("scheduler")? {
        "any other" => ANY_OTHER.to_vec(),
        "not named" => vec![DEFAULT_SCHEDULER],
        name => vec![name],
    };
    Ok(schedulers.into_iter().filter_map(|name| format!("{name}{tunable}").parse().ok()).collect())
}

/// Returns the metric of a row and whether the row is about writes.
fn metric(line: &Line<'_>, is_of_writes: bool) -> Result<Option<Metric>, LabError> {
    Ok(match line.text("metric")? {
        "iops" if is_of_writes => Some(Metric::WriteIops),
        "iops" => Some(Metric::Iops),
        "throughput" => Some(Metric::Throughput),
        "start-up time" => Some(Metric::StartUp),
        _ => None,
    })
}

/// Returns the cases of the rows, in order. Several rows about one run become one case.
pub(super) fn cases(lines: &[Line<'_>]) -> Result<Vec<MeasuredCase>, LabError> {
    let mut cases: Vec<MeasuredCase> = Vec::new();
    for line in lines {
        let (name, job) = (line.text("case")?, line.text("job")?);
        let (run, part) = job.split_once(": ").unwrap_or((job, ""));
        let Some(metric) = metric(line, part == "writes")? else { continue };
        let measured = line.number::<f64>("value")?;
        let words = Text::of(job);
        if words.has(&["same"]) {
            // This job runs together with the job of the previous row, and differs only in its
            // class.
            if let Some(case) = cases.last_mut().filter(|case| case.part() == name) {
                let job = format!("{run}, beside");
                let class = words.class().map_or_else(String::new, |class| format!("prioclass={class}\n"));
                let section: String = case.jobs[0].lines().skip(1).map(|line| format!("{line}\n")).collect();
                case.jobs.push(format!("[{job}]\n{section}{class}"));
                case.figures.push(Figure { job, metric, measured });
            }
            continue;
        }
        let is_start_up = metric == Metric::StartUp;
        let job = if is_start_up { START_UP } else { run }.to_owned();
        let figure = Figure { job: job.clone(), metric, measured };
        let disk = disk(line.text("device")?);
        let section = if is_start_up { Some(STARTING.to_owned()) } else { words.section(&job) };
        let obstacle = disk.as_ref().err().copied().or(section.is_none().then_some(NOT_CLEAR));
        let mut group = format!("{name}: {run}");
        let (mut settings, mut obstacle) = (settings(line)?, obstacle);
        if settings.is_empty() {
            group = format!("{group}, {}", line.text("scheduler")?);
            (settings, obstacle) = (vec![Setting::defaults("none")], Some(NO_SCHEDULER));
        }
        for setting in settings {
            let group = group.clone();
            let known = cases.iter_mut().find(|known| known.group == group && known.setting == setting);
            if let Some(known) = known.filter(|_| !part.is_empty()) {
                known.figures.push(figure.clone());
                continue;
            }
            cases.push(MeasuredCase {
                source: Source::ListTables,
                group,
                setting,
                jobs: section.clone().into_iter().collect(),
                disks: 1,
                disk: disk.clone().ok(),
                obstacle,
                figures: vec![figure.clone()],
            });
        }
    }
    Ok(cases)
}

/// Returns the job file of a case.
pub(super) fn job_file(case: &MeasuredCase) -> String {
    let jobs = case.jobs.concat();
    if jobs.starts_with("[global]") {
        return jobs;
    }
    let (warm_up, counted) = TIMES_S;
    format!("[global]\ngroup_reporting\ntime_based\nramp_time={warm_up}s\nruntime={counted}s\n{jobs}")
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn read(rows: &str) -> Vec<MeasuredCase> {
        let text = format!("case,device,scheduler,setting,job,metric,value\n{rows}");
        table::read(Source::ListTables, "t.csv", &text).unwrap()
    }

    #[test]
    fn every_built_in_row_is_a_figure_of_a_case() {
        let cases = Source::cases(None).unwrap();
        let cases: Vec<_> = cases.iter().filter(|case| case.source == Source::ListTables).collect();
        let rows = Source::ListTables.shipped().lines().filter(|line| !line.starts_with('#')).count() - 1;
        let figures: usize = cases.iter().map(|case| case.figures.len()).sum();
        assert_eq!(figures, rows + ANY_OTHER.len() - 1);
        let not_simulated: Vec<_> = cases.iter().filter(|case| case.obstacle.is_some()).collect();
        assert_eq!(not_simulated.iter().map(|case| case.part()).collect::<Vec<_>>(), ["mq-deadline cost"]);
    }

    #[test]
    fn same_job_in_a_second_row_differs_in_its_class() {
        let cases = read(
            "aging,scsi_debug ndelay=1000 max_queue=16,mq-deadline,aging_expire=5 ms,real-time class: 4k \
             sequential reads libaio depth 32 batch_complete 16,iops,9\n\
             aging,scsi_debug ndelay=1000 max_queue=16,mq-deadline,aging_expire=5 ms,best-effort class: the \
             same job beside it,iops,4\n",
        );
        let [case] = &cases[..] else { panic!("{cases:?}") };
        assert_eq!((case.figures.len(), case.jobs.len()), (2, 2));
        assert_eq!(case.setting.to_string(), "mq-deadline:prio_aging_expire=5");
        assert!(case.jobs[0].contains("rw=read\nbs=4096\nnumjobs=1\n"), "{}", case.jobs[0]);
        assert!(case.jobs[0].contains("iodepth=32\niodepth_batch_complete_min=16\nprioclass=1\n"), "{}", case.jobs[0]);
        assert!(case.jobs[1].contains("iodepth=32\n") && case.jobs[1].ends_with("prioclass=2\n"), "{}", case.jobs[1]);
        let Some(MeasuredDisk::Text { text, .. }) = &case.disk else { panic!("{:?}", case.disk) };
        assert!(text.contains("depth = 16\n") && text.contains("service_ns = 1000\n"), "{text}");
    }

    #[test]
    fn reads_and_writes_of_a_mixed_job_are_one_case() {
        let cases = read(
            "32 jobs,MG04ACA400N,mq-deadline,defaults,32 jobs psync 512 B mixed: reads,iops,574\n\
             32 jobs,MG04ACA400N,mq-deadline,defaults,32 jobs psync 512 B mixed: writes,iops,570\n\
             32 jobs,MG04ACA400N,mq-deadline,defaults,32 jobs psync 512 B write of 110 GB each,iops,9\n",
        );
        assert_eq!(cases.iter().map(|case| case.figures.len()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(cases[0].figures[1].metric, Metric::WriteIops);
        assert!(cases[0].jobs[0].contains("rw=rw\nbs=512\nnumjobs=32\n"), "{}", cases[0].jobs[0]);
        assert!(cases[1].jobs[0].contains("rw=write\n") && cases[1].jobs[0].contains("size=110g\n"));
    }

    #[test]
    fn row_of_any_other_scheduler_gives_a_case_for_each() {
        let cases =
            read("bfq,Samsung SSD 970 PRO,any other,default,terminal starts under write load,start-up time,35\n");
        assert_eq!(cases.iter().map(|case| case.setting.to_string()).collect::<Vec<_>>(), ANY_OTHER);
    }

    #[test]
    fn a_row_that_cannot_be_simulated_says_why() {
        let obstacle = |device: &str, job: &str| {
            read(&format!("c,{device},mq-deadline,default,{job},iops,1\n"))[0].obstacle.unwrap_or_default()
        };
        assert_eq!(obstacle("null_blk (nullb)", "QD=1 jobs=1 4k reads"), HOST_BOUND);
        assert_eq!(obstacle("a tape", "4k reads"), NO_MODEL);
        assert_eq!(obstacle("SATA HDD", "as before"), NOT_CLEAR);
        let [case] = &read("c,SATA HDD,mq-deadline patched,default,4k reads,iops,1\n")[..] else { panic!() };
        assert_eq!((&*case.group, case.obstacle), ("c: 4k reads, mq-deadline patched", Some(NO_SCHEDULER)));
        assert_eq!(obstacle("SATA HDD", "4k reads"), "");
    }
}
