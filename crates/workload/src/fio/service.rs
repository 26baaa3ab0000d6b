//! Choice of the file for the next I/O: `file_service_type`, `openfiles`.

use super::distribution::Zipf;
use super::job::Job;
use super::value::FileServiceOrder;
use iosched_numbers::SplitMix64;

/// State of the choice between a job's files.
#[derive(Clone, Debug)]
pub(super) struct Service {
    order: FileServiceOrder,
    ios_per_file: u32,
    /// Largest number of open files.
    open_max: usize,
    count: u32,
    /// Open files, in the order in which they were opened.
    open: Vec<u32>,
    /// Next file to open.
    unopened: u32,
    /// Position in `open` of the current file, and number of its remaining I/Os.
    at: usize,
    left: u32,
    zipf: Option<Zipf>,
}

impl Service {
    pub(super) fn new(job: &Job, files: usize) -> Self {
        let zipf = match job.file_service.order {
            FileServiceOrder::Zipf { theta } => Some(Zipf::new(files as u64, theta)),
            _ => None,
        };
        let mut service = Self {
            order: job.file_service.order,
            ios_per_file: job.file_service.ios_per_file.max(1),
            open_max: job.open_files.map_or(files, |most| (most as usize).clamp(1, files)),
            count: files as u32,
            open: Vec::new(),
            unopened: 0,
            at: 0,
            left: 0,
            zipf,
        };
        service.begin();
        service
    }

    /// Begins a pass, in which no file is done yet.
    pub(super) fn begin(&mut self) {
        self.open = (0..self.open_max as u32).collect();
        self.unopened = self.open_max as u32;
        self.at = usize::MAX;
        self.left = 0;
    }

    /// Returns whether all files are done.
    pub(super) const fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Chooses the file for the next I/O. The caller must not call this if all files are done.
    pub(super) fn choose(&mut self, rng: &mut SplitMix64) -> u32 {
        let open = self.open.len();
        if open == 1 {
            self.at = 0;
        } else if self.left == 0 || self.at >= open {
            self.left = self.ios_per_file;
            self.at = match self.order {
                FileServiceOrder::RoundRobin => self.at.wrapping_add(1) % open,
                FileServiceOrder::Sequential => 0,
                FileServiceOrder::Random => rng.below(open as u64) as usize,
                FileServiceOrder::Zipf { .. } => {
                    self.zipf.as_ref().map_or(0, |zipf| zipf.rank(rng.unit()) as usize) % open
                }
                FileServiceOrder::Pareto { h } => {
                    ((open - 1) as f64 * rng.unit().powf(h.ln() / (1.0 - h).ln())) as usize
                }
                FileServiceOrder::Gauss { deviation_percent } => {
                    // The sum of twelve uniform numbers is close enough to a normal distribution.
                    let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                    let place = open as f64 * (0.5 + normal * deviation_percent / 100.0);
                    (place.max(0.0) as usize).min(open - 1)
                }
            };
        }
        self.open[self.at]
    }

    /// Counts an I/O of the chosen file.
    pub(super) fn served(&mut self) {
        if self.order != FileServiceOrder::Sequential {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Marks `file` as done. The next unopened file replaces it.
    pub(super) fn done(&mut self, file: u32) {
        let Some(place) = self.open.iter().position(|&open| open == file) else {
            return;
        };
        self.left = 0;
        if self.unopened < self.count {
            self.open[place] = self.unopened;
            self.unopened += 1;
        } else {
            self.open.remove(place);
            // The file after the removed file is next.
            self.at = place.wrapping_sub(1);
        }
    }
}
