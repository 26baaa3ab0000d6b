//! Entry point for fuzzing. Any bytes are a valid input: the parser must not panic, its memory is
//! bounded, and its errors have lines.
//!
//! `fuzz/` has the target. `cargo test` replays its corpus through the same entry point.

use std::io;
use std::path::Path;

use super::{BlockSize, CheckedJobs, Direction, Environment, Files, JobError, ProblemKind};

/// Largest number of jobs of a file.
const JOBS_MAX: usize = 4096;

/// An environment in which every included file is the job file itself, and some variables are set.
struct Mirror<'a>(&'a [u8]);

impl Environment for Mirror<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "SIZE" => Some("64k".to_owned()),
            "LONG" => Some("x".repeat(70_000)),
            _ => None,
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.ends_with("missing") { Err(io::Error::from(io::ErrorKind::NotFound)) } else { Ok(self.0.to_vec()) }
    }
}

/// Parses bytes as a job file and checks properties that hold for every result.
pub fn job_file(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n').count();
    match CheckedJobs::parse("fuzz.fio", data, &Mirror(data)) {
        Ok(checked) => {
            assert!((1..=JOBS_MAX).contains(&checked.jobs.len()));
            for job in &checked.jobs {
                for direction in Direction::ALL {
                    match job.block_size.of(direction) {
                        BlockSize::Fixed(bytes) => assert!(*bytes > 0),
                        BlockSize::Range { min, max } => assert!(0 < *min && min <= max),
                        BlockSize::Split(sizes) => {
                            assert_eq!(sizes.iter().map(|size| size.percent).sum::<u32>(), 100);
                        }
                    }
                }
                assert!(job.batch_complete_min <= job.batch_complete_max && job.batch_complete_max <= job.io_depth);
                assert!(0 < job.batch_submit && job.batch_submit <= job.io_depth);
                assert!(0 < job.io_depth_low && job.io_depth_low <= job.io_depth);
                assert!(!matches!(&job.files, Files::Named(names) if names.is_empty()));
            }
            let refused = !checked.refusals.is_empty();
            assert_eq!(checked.into_jobs().is_err(), refused);
        }
        Err(error) => {
            let text = error.to_string();
            if let JobError::Invalid { problems, .. } = error {
                assert!(!problems.is_empty());
                for problem in problems {
                    assert!(1 <= problem.place.line && problem.place.line as usize <= lines);
                    let far = matches!(problem.kind, ProblemKind::TooMany { .. } | ProblemKind::NoJobs);
                    assert!(far || text.contains("fuzz.fio") || text.contains("and "));
                }
            }
        }
    }
}
