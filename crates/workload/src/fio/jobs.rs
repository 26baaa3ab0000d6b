//! A job file as a workload: all its jobs, or a single one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::job::{Job, JobFile};
use super::layout::{Layout, is_device};
use super::value::Files;
use crate::error::WorkloadError;
use crate::fio::generator::Generator;
use crate::fio::generator::MAP_BLOCKS_MAX;
use iosched_numbers::SplitMix64;

/// Default base of the jobs' seeds. It applies if random numbers are the same in every run and
/// `randseed` is not given.
const SEED_DEFAULT: u64 = 0x0F10_5EED;

/// Jobs of a job file, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    file: Arc<JobFile>,
    alone: Option<usize>,
    limit_ns: Option<u64>,
}

impl Jobs {
    /// Creates a workload from all jobs of a file.
    #[must_use]
    pub fn new(file: JobFile) -> Self {
        Self { file: Arc::new(file), alone: None, limit_ns: None }
    }

    /// Sets a time limit for all jobs, ns since the start.
    #[must_use]
    pub(crate) fn limited(self, limit_ns: Option<u64>) -> Self {
        Self { limit_ns, ..self }
    }

    /// Returns the time limit that a command line sets for all jobs, ns since the start.
    #[must_use]
    pub const fn limit_ns(&self) -> Option<u64> {
        self.limit_ns
    }

    /// Returns the job file that has these jobs.
    #[must_use]
    pub fn file(&self) -> &JobFile {
        &self.file
    }

    /// Returns the workload of a single job. The places of its files and its I/Os are the same as
    /// if all jobs ran, but the job waits for no other job. Returns `None` if there is no job with
    /// this number.
    #[must_use]
    pub fn only(&self, number: usize) -> Option<Self> {
        let number = self.iter().nth(number)?.0;
        Some(Self { alone: Some(number), ..self.clone() })
    }

    /// Returns whether this workload is a single job.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Returns the jobs to run, with their numbers in the file.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Job)> {
        let all = self.file.jobs.iter().enumerate();
        all.filter(|(number, _)| self.alone.is_none_or(|alone| alone == *number))
    }

    /// Returns the number of jobs to run.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Returns whether any job makes buffered I/O. All jobs then need a machine with a page cache.
    #[must_use]
    pub fn are_buffered(&self) -> bool {
        self.iter().any(|(_, job)| !job.direct && job.replay.is_none())
    }

    /// Returns whether any job uses the device itself, by its name or by replaying a log.
    #[must_use]
    pub fn use_device(&self) -> bool {
        self.iter().any(|(_, job)| match &job.files {
            _ if job.replay.is_some() => true,
            Files::Named(names) => names.iter().any(|name| is_device(name)),
            Files::Own(_) => false,
        })
    }

    /// Returns the names of all jobs of the file for display. Copies of a job have different names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.file.jobs.iter().for_each(|job| *counts.entry(&job.name).or_default() += 1);
        let name = |job: &Job| match counts.get(job.name.as_str()) {
            Some(2..) => format!("{}.{}", job.name, job.copy),
            _ => job.name.clone(),
        };
        self.file.jobs.iter().map(name).collect()
    }

    /// Returns the number of devices in `filename` options, at least 1.
    #[must_use]
    pub fn disks(&self) -> usize {
        let named = |job: &'_ Job| match &job.files {
            Files::Named(names) if job.replay.is_none() => names.clone(),
            _ => Vec::new(),
        };
        let names: BTreeSet<String> = self.file.jobs.iter().flat_map(named).filter(|name| is_device(name)).collect();
        names.len().max(1)
    }

    /// Lays out the files of all jobs on one device of `capacity_bytes`.
    ///
    /// # Errors
    /// As [`Jobs::layout_on`]. It is also an error if the jobs name several devices.
    pub fn layout(&self, capacity_bytes: u64) -> Result<Layout, WorkloadError> {
        self.layout_on(1, capacity_bytes)
    }

    /// Lays out the files of all jobs on `disks` disks of `capacity_bytes` each.
    ///
    /// # Errors
    /// As [`Layout::new`]. It is also an error if random maps would take too much memory.
    pub fn layout_on(&self, disks: usize, capacity_bytes: u64) -> Result<Layout, WorkloadError> {
        let layout = Layout::new(&self.file, capacity_bytes, disks)?;
        let mut blocks = 0u64;
        for (number, job) in self.iter() {
            let blocks_of_job = Generator::map_blocks(job, &layout.jobs[number]);
            blocks = blocks.saturating_add(blocks_of_job);
            if blocks_of_job > 0 && blocks > MAP_BLOCKS_MAX {
                return Err(WorkloadError::Job {
                    file: self.file.name.clone(),
                    line: job.line,
                    job: job.name.clone(),
                    problem: "the maps of random blocks would need more than 1 GiB of memory".to_owned(),
                    remedy: "set norandommap or softrandommap, or give a larger bs or a smaller size",
                });
            }
        }
        Ok(layout)
    }

    /// Returns the seed of a job's random numbers. With `randrepeat=1`, `allrandrepeat` or
    /// `randseed`, the seed is the same in every run. Otherwise it follows from the run's seed.
    /// (fio makes one run, and repeats its random numbers by default. iosched makes several runs
    /// and measures how much they differ.)
    #[must_use]
    pub fn seed(&self, number: usize, run_seed: u64) -> u64 {
        let job = &self.file.jobs[number];
        let repeats = job.all_rand_repeat || job.rand_repeat.unwrap_or(job.rand_seed.is_some());
        let given = job.rand_seed.unwrap_or(SEED_DEFAULT);
        let base = if repeats { given } else { SplitMix64::entity(run_seed, given).next_u64() };
        SplitMix64::entity(base, number as u64).next_u64()
    }
}
