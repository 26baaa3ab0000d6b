//! Places of the jobs' files on the device.
//!
//! A name in `/dev/` is a whole device. The first such name is the first disk of the run, the
//! second name is the second disk, and so on. All other files lie one after another from the start
//! of the first disk, in the order in which jobs first name them. Each file is in one piece and
//! starts at a multiple of [`FILE_ALIGN_BYTES`], as on a new file system with large extents. Files
//! with the same name are one file. This file has the largest size that a job needs.
//!
//! Runs of fio 3.33 showed the combined meaning of `size`, `filesize`, `offset` and `io_size`.
//! `size` is divided evenly among files without a given size, and the region begins at `offset`.
//! With `filesize`, `size` is a limit.

use std::collections::BTreeMap;

use super::job::{Job, JobFile};
use super::value::{Files, Placement, ReplayLog, Size};
use crate::error::WorkloadError;
use iosched_numbers::SplitMix64;

/// Alignment of the files' places, bytes: a file system's block.
pub const FILE_ALIGN_BYTES: u64 = 4096;
/// Largest number of files of all jobs together.
const FILES_MAX: usize = 1 << 22;
/// Largest I/O, bytes.
const IO_BYTES_MAX: u64 = 1 << 40;
/// Random stream of the file sizes.
const FILE_SIZE_STREAM: u64 = 0xF11E;

/// The part of a file that a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Number of the file in [`Layout::files`]; `None`: the device.
    pub file: Option<u32>,
    /// Number of the file's disk.
    pub disk: u32,
    /// Start of the file on the device, bytes.
    pub file_start: u64,
    /// Start of the region in the file, bytes.
    pub offset: u64,
    /// Length of the region, bytes; at least one block of the job.
    pub length: u64,
}

impl Region {
    /// Returns the start of the region on the device, bytes.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.file_start + self.offset
    }
}

/// Places of one job's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobLayout {
    /// Regions of the job's files, at least one.
    pub regions: Vec<Region>,
    /// `size`: bytes that one pass over the regions moves.
    pub size_bytes: u64,
    /// `io_size` in bytes, if given.
    pub io_size_bytes: Option<u64>,
}

/// Places of the files of all jobs on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Layouts of the jobs, in the order of the file.
    pub jobs: Vec<JobLayout>,
    /// Length of each file, bytes.
    pub files: Vec<u64>,
}

/// Identity of a file. Jobs that use the same name share the file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name<'a> {
    Shared(&'a str),
    Own(&'a str, u32, u32),
}

/// A region whose file has no place yet.
struct Wanted {
    /// Number of the file; `None`: the device.
    file: Option<usize>,
    disk: usize,
    offset: u64,
    length: u64,
}

impl Layout {
    /// Lays out the files of all jobs on `disks` disks of `capacity_bytes` each.
    ///
    /// # Errors
    /// A file does not fit, jobs name more than `disks` disks, or a necessary size is missing. The
    /// error gives the job and its line.
    pub fn new(file: &JobFile, capacity_bytes: u64, disks: usize) -> Result<Self, WorkloadError> {
        let mut builder = Builder {
            file,
            capacity_bytes,
            disks,
            devices: Vec::new(),
            names: BTreeMap::new(),
            lengths: Vec::new(),
            given: Vec::new(),
            regions: 0,
        };
        let mut jobs = Vec::with_capacity(file.jobs.len());
        for (number, job) in file.jobs.iter().enumerate() {
            jobs.push((job, builder.job(number, job)?));
        }
        let mut starts = Vec::with_capacity(builder.lengths.len());
        let mut end = 0u64;
        for &length in &builder.lengths {
            starts.push(end);
            end = end.saturating_add(length).saturating_add(FILE_ALIGN_BYTES - 1) & !(FILE_ALIGN_BYTES - 1);
        }
        if let Some((job, _)) = jobs.iter().find(|(_, (wanted, ..))| wanted.iter().any(|w| w.file.is_some()))
            && end > capacity_bytes
        {
            let problem = format!(
                "the files of all jobs need {end} bytes, but the device has only {capacity_bytes} \
                bytes"
            );
            return Err(builder.error(job, problem, "give a smaller size or filesize, or a larger device"));
        }
        let place = |(_, (wanted, size_bytes, io_size_bytes)): (&Job, (Vec<Wanted>, u64, Option<u64>))| JobLayout {
            regions: wanted
                .into_iter()
                .map(|Wanted { file, disk, offset, length }| Region {
                    file: file.map(|number| number as u32),
                    disk: disk as u32,
                    file_start: file.map_or(0, |number| starts[number]),
                    offset,
                    length,
                })
                .collect(),
            size_bytes,
            io_size_bytes,
        };
        Ok(Self { jobs: jobs.into_iter().map(place).collect(), files: builder.lengths })
    }
}

struct Builder<'a> {
    file: &'a JobFile,
    capacity_bytes: u64,
    /// Number of disks.
    disks: usize,
    /// Names of the disks in use, in the order of their first use.
    devices: Vec<&'a str>,
    names: BTreeMap<Name<'a>, usize>,
    /// Bytes that the jobs need of each file.
    lengths: Vec<u64>,
    /// Size of each file from `filesize`, if given.
    given: Vec<Option<u64>>,
    regions: usize,
}

impl<'a> Builder<'a> {
    fn error(&self, job: &Job, problem: String, remedy: &'static str) -> WorkloadError {
        WorkloadError::Job { file: self.file.name.clone(), line: job.line, job: job.name.clone(), problem, remedy }
    }

    /// Returns the regions, `size` and `io_size` of a job.
    fn job(&mut self, number: usize, job: &'a Job) -> Result<(Vec<Wanted>, u64, Option<u64>), WorkloadError> {
        if job.time_based && job.runtime_ns.is_none() {
            let problem = "time_based needs runtime; without runtime, the job never ends".to_owned();
            return Err(self.error(job, problem, "set runtime"));
        }
        if let Some(log) = &job.replay {
            return self.replay(job, log);
        }
        let longest = job.mode.directions().iter().map(|&d| job.block_size.of(d).max_bytes()).max().unwrap_or(0);
        if longest > IO_BYTES_MAX {
            let problem = format!("an I/O has {longest} bytes; the maximum is {IO_BYTES_MAX} bytes");
            return Err(self.error(job, problem, "give a smaller bs"));
        }
        let names: Vec<Name<'a>> = match &job.files {
            Files::Named(names) => names.iter().map(|name| Name::Shared(name)).collect(),
            Files::Own(count) => (0..*count).map(|i| Name::Own(&job.name, job.copy, i)).collect(),
        };
        self.regions += names.len();
        if names.is_empty() || self.regions > FILES_MAX {
            let problem = format!(
                "the jobs have {} files; all jobs together must have from 1 to {FILES_MAX} files",
                self.regions
            );
            return Err(self.error(job, problem, "give a smaller nrfiles or numjobs"));
        }
        let count = names.len() as u64;
        let mut sizes = SplitMix64::entity(FILE_SIZE_STREAM, number as u64);
        let mut wanted = Vec::with_capacity(names.len());
        for name in names {
            wanted.push(match name {
                Name::Shared(name) if is_device(name) => self.device_region(job, name, count)?,
                _ => self.file_region(job, name, count, &mut sizes)?,
            });
        }
        let total: u64 = wanted.iter().fold(0, |sum: u64, w| sum.saturating_add(w.length));
        let size_bytes = match job.size {
            Some(Size::Bytes(bytes)) if !job.fill_device => bytes.min(total),
            _ => total,
        };
        let io_size_bytes = job.io_size.map(|size| match size {
            Size::Bytes(bytes) => bytes,
            Size::Percent(percent) => per_cent(total, percent),
        });
        let least = smallest_block(job);
        if let Some(short) = wanted.iter().find(|w| w.length < least) {
            let problem = format!("the file has {} bytes, less than one block of {least}", short.length);
            return Err(self.error(job, problem, "give a larger size, a smaller offset or a smaller bs"));
        }
        Ok((wanted, size_bytes, io_size_bytes))
    }

    /// Returns the regions, `size` and `io_size` of a job that replays a log. Its region is the
    /// whole device.
    fn replay(&self, job: &Job, log: &ReplayLog) -> Result<(Vec<Wanted>, u64, Option<u64>), WorkloadError> {
        let replayed = || log.ios.iter().filter(|io| log.replays(io));
        let end = replayed().map(|io| log.start_of(io).saturating_add(io.bytes)).max().unwrap_or(0);
        if end > self.capacity_bytes {
            let problem = format!(
                "the log of this job reaches byte {end}, but the device has only {} bytes",
                self.capacity_bytes
            );
            return Err(self.error(job, problem, "set replay_scale, or give a larger device"));
        }
        let bytes = replayed().fold(0u64, |sum, io| sum.saturating_add(io.bytes));
        Ok((vec![Wanted { file: None, disk: 0, offset: 0, length: self.capacity_bytes }], bytes, None))
    }

    fn device_region(&mut self, job: &Job, name: &'a str, count: u64) -> Result<Wanted, WorkloadError> {
        let known = self.devices.iter().position(|&known| known == name);
        let disk = known.unwrap_or(self.devices.len());
        if disk >= self.disks {
            let problem = match self.disks {
                1 => format!("filename {name}: the jobs also use {}, but a run has only one device", self.devices[0]),
                disks => format!("filename {name}: the jobs use more devices than the run has ({disks})"),
            };
            return Err(self.error(job, problem, "run the jobs of each device separately"));
        }
        if known.is_none() {
            self.devices.push(name);
        }
        let capacity = self.capacity_bytes;
        let offset = offset_in(job, capacity);
        if offset >= capacity {
            let problem = format!("offset {offset} is beyond the end of the device, which has {capacity} bytes");
            return Err(self.error(job, problem, "give a smaller offset or offset_increment"));
        }
        let room = capacity - offset;
        let length = match job.size {
            _ if job.fill_device => room,
            None => room,
            Some(Size::Percent(percent)) => per_cent(capacity, percent).min(room),
            Some(Size::Bytes(bytes)) if bytes / count <= room => bytes / count,
            Some(Size::Bytes(bytes)) => {
                let problem = format!("size {bytes} at offset {offset} exceeds the device, which has {capacity} bytes");
                return Err(self.error(job, problem, "give a smaller size or offset, or a larger device"));
            }
        };
        Ok(Wanted { file: None, disk, offset, length })
    }

    fn file_region(
        &mut self,
        job: &Job,
        name: Name<'a>,
        count: u64,
        sizes: &mut SplitMix64,
    ) -> Result<Wanted, WorkloadError> {
        let next = self.lengths.len();
        let number = *self.names.entry(name).or_insert(next);
        if number == next {
            self.lengths.push(0);
            self.given.push(job.file_size.map(|[min, max]| draw_size(sizes, min, max, smallest_block(job))));
        }
        let given = self.given[number].or_else(|| job.file_size.map(|[_, max]| max));
        let needs_size = |option: &str| {
            let problem = format!("{option} is a percentage, but the size of the file is unknown");
            self.error(job, problem, "set filesize, or give bytes")
        };
        if given.is_none() && [job.offset, job.offset_increment].iter().any(|s| matches!(s, Size::Percent(1..))) {
            return Err(needs_size("offset"));
        }
        let offset = offset_in(job, given.unwrap_or(0));
        let length = match (job.size, given) {
            (None, None) => {
                let problem = "the size of the files of this job is unknown".to_owned();
                return Err(self.error(
                    job,
                    problem,
                    "set size or filesize, or filename=/dev/... for the whole device",
                ));
            }
            (Some(Size::Percent(_)), None) => return Err(needs_size("size")),
            (None, Some(given)) => given.saturating_sub(offset),
            (Some(Size::Percent(percent)), Some(given)) => per_cent(given, percent).min(given.saturating_sub(offset)),
            (Some(Size::Bytes(bytes)), Some(given)) => bytes.min(given.saturating_sub(offset)),
            (Some(Size::Bytes(bytes)), None) => bytes / count,
        };
        let end = offset.saturating_add(length).max(given.unwrap_or(0));
        self.lengths[number] = self.lengths[number].max(end);
        Ok(Wanted { file: Some(number), disk: 0, offset, length })
    }
}

/// Returns whether a name is the path of a device.
pub(super) fn is_device(name: &str) -> bool {
    name.starts_with("/dev/")
}

fn per_cent(total: u64, percent: u32) -> u64 {
    (u128::from(total) * u128::from(percent) / 100) as u64
}

/// Returns the start of a job's region in a file of `length` bytes.
fn offset_in(job: &Job, length: u64) -> u64 {
    let align = if job.offset_align > 0 { job.offset_align } else { smallest_block(job) };
    let bytes = |size: Size| match size {
        Size::Bytes(bytes) => bytes,
        Size::Percent(percent) => {
            let exact = per_cent(length, percent);
            exact.div_ceil(align).saturating_mul(align)
        }
    };
    bytes(job.offset).saturating_add(bytes(job.offset_increment).saturating_mul(job.copy.into()))
}

/// Returns the smallest block of a job's I/Os, bytes.
pub(crate) fn smallest_block(job: &Job) -> u64 {
    let used = job.mode.directions();
    let mut sizes: Vec<u64> = used.iter().map(|&d| job.block_size.of(d).min_bytes()).collect();
    if job.bs_is_seq_rand {
        let mixed = job.random_percent.read < 100 || job.random_percent.write < 100;
        let random = matches!(job.placement, Placement::Random { .. });
        sizes = [(job.block_size.read.min_bytes(), !random || mixed), (job.block_size.write.min_bytes(), random)]
            .into_iter()
            .filter_map(|(bytes, used)| used.then_some(bytes))
            .collect();
    }
    sizes.into_iter().min().unwrap_or(1).max(1)
}

/// Draws the size of a file. The size is a multiple of `block`, or `min`.
fn draw_size(rng: &mut SplitMix64, min: u64, max: u64, block: u64) -> u64 {
    let (min, max) = (min.min(max), max.max(min));
    let drawn = min + rng.below((max - min).saturating_add(1));
    if min == max { drawn } else { (drawn - drawn % block).max(min) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::BlockSize;
    use crate::fio::PerDirection;

    const MIB: u64 = 1 << 20;

    fn file(jobs: Vec<Job>) -> JobFile {
        JobFile { name: "t.fio".to_owned(), jobs, ignored: Vec::new() }
    }

    fn named(name: &str) -> Job {
        Job { files: Files::Named(vec![name.to_owned()]), ..Job::new("j") }
    }

    #[test]
    fn device_jobs_overlap_and_files_are_laid_out_in_sequence() {
        let job = |name| Job { size: Some(Size::Bytes(MIB + 1)), ..Job::new(name) };
        let layout = Layout::new(&file(vec![named("/dev/sda"), job("a"), job("b")]), 8 * MIB, 1).unwrap();
        let starts: Vec<_> = layout.jobs.iter().map(|job| (job.regions[0].start(), job.regions[0].length)).collect();
        assert_eq!(starts, [(0, 8 * MIB), (0, MIB + 1), (MIB + 4096, MIB + 1)]);
    }

    #[test]
    fn devices_become_disks_in_the_order_of_first_use() {
        let both = Job { files: Files::Named(vec!["/dev/b".into(), "/dev/a".into()]), ..Job::new("j") };
        let layout = Layout::new(&file(vec![named("/dev/a"), both.clone(), named("data")]), 8 * MIB, 2);
        let sized = Job { size: Some(Size::Bytes(MIB)), ..named("data") };
        assert!(layout.is_err(), "a file needs a size");
        let layout = Layout::new(&file(vec![named("/dev/a"), both, sized]), 8 * MIB, 2).unwrap();
        let disks = |job: usize| layout.jobs[job].regions.iter().map(|r| (r.disk, r.length)).collect::<Vec<_>>();
        assert_eq!(disks(0), [(0, 8 * MIB)]);
        assert_eq!(disks(1), [(1, 8 * MIB), (0, 8 * MIB)]);
        assert_eq!(disks(2), [(0, MIB)]);
    }

    #[test]
    fn size_is_divided_among_files_that_start_at_the_offset() {
        let job = Job {
            files: Files::Own(4),
            size: Some(Size::Bytes(4 * MIB)),
            offset: Size::Bytes(64 << 10),
            ..Job::new("a")
        };
        let layout = Layout::new(&file(vec![job]), 64 * MIB, 1).unwrap();
        assert_eq!(layout.jobs[0].size_bytes, 4 * MIB);
        let regions: Vec<_> = layout.jobs[0].regions.iter().map(|r| (r.file_start, r.offset, r.length)).collect();
        let step = MIB + (64 << 10);
        assert_eq!(regions, [0, 1, 2, 3].map(|i| (i * step, 64 << 10, MIB)));
    }

    #[test]
    fn percentages_refer_to_the_device_or_the_filesize() {
        let job = Job { size: Some(Size::Percent(50)), offset: Size::Percent(25), ..named("/dev/sda") };
        let layout = Layout::new(&file(vec![job]), 16 * MIB, 1).unwrap();
        assert_eq!((layout.jobs[0].regions[0].start(), layout.jobs[0].size_bytes), (4 * MIB, 8 * MIB));
        let job = Job { size: Some(Size::Percent(50)), file_size: Some([4 * MIB; 2]), ..Job::new("a") };
        let layout = Layout::new(&file(vec![job.clone()]), 16 * MIB, 1).unwrap();
        assert_eq!(layout.jobs[0].size_bytes, 2 * MIB);
        let error = Layout::new(&file(vec![Job { file_size: None, ..job }]), 16 * MIB, 1).unwrap_err();
        assert!(error.to_string().contains("set filesize"), "{error}");
    }

    #[test]
    fn offset_increment_shifts_each_copy() {
        let copy =
            |copy| Job { copy, offset_increment: Size::Bytes(MIB), size: Some(Size::Bytes(MIB)), ..named("/dev/x") };
        let layout = Layout::new(&file(vec![copy(0), copy(1), copy(2)]), 16 * MIB, 1).unwrap();
        let starts: Vec<_> = layout.jobs.iter().map(|job| job.regions[0].start()).collect();
        assert_eq!(starts, [0, MIB, 2 * MIB]);
    }

    #[test]
    fn shared_file_has_the_size_of_its_largest_job() {
        let shared = |size| Job { size: Some(Size::Bytes(size)), ..named("data") };
        let next = Job { size: Some(Size::Bytes(MIB)), ..Job::new("b") };
        let layout = Layout::new(&file(vec![shared(MIB), shared(3 * MIB), next]), 16 * MIB, 1).unwrap();
        assert_eq!(layout.jobs[2].regions[0].start(), 3 * MIB);
    }

    #[test]
    fn layout_errors_name_the_job_and_the_line() {
        let error = |job: Job| Layout::new(&file(vec![Job { line: 7, ..job }]), 16 * MIB, 1).unwrap_err().to_string();
        let cases = [
            (Job { size: Some(Size::Bytes(17 * MIB)), ..Job::new("a") }, "need 17825792 bytes"),
            (Job { size: Some(Size::Bytes(17 * MIB)), ..named("/dev/sda") }, "the device, which has 16777216"),
            (Job { offset: Size::Bytes(16 * MIB), ..named("/dev/sda") }, "beyond the end"),
            (Job::new("a"), "size of the files of this job is unknown"),
            (Job { size: Some(Size::Bytes(512)), ..Job::new("a") }, "less than one block"),
            (Job { files: Files::Named(vec!["/dev/a".into(), "/dev/b".into()]), ..Job::new("a") }, "one device"),
        ];
        for (job, expected) in cases {
            let error = error(job);
            assert!(error.starts_with("t.fio: line 7: job ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn random_file_sizes_are_in_range_and_whole_blocks() {
        let job = Job {
            files: Files::Own(100),
            file_size: Some([64 << 10, MIB]),
            block_size: PerDirection::all(BlockSize::Fixed(4096)),
            ..Job::new("a")
        };
        let layout = Layout::new(&file(vec![job]), 200 * MIB, 1).unwrap();
        let lengths: Vec<u64> = layout.jobs[0].regions.iter().map(|region| region.length).collect();
        assert!(lengths.iter().all(|l| (64 << 10..=MIB).contains(l) && l % 4096 == 0));
        assert!(lengths.iter().collect::<std::collections::BTreeSet<_>>().len() > 50);
    }
}
