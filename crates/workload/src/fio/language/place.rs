//! Places in job files: a line of a job file or of an included file.

use std::fmt;
use std::sync::Arc;

/// Name of the file for jobs from a command line. Line numbers are then the numbers of words.
pub(super) const COMMAND_LINE: &str = "fio command line";

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLine {
    /// Name of the file, as given.
    pub file: Arc<str>,
    /// Number of the line, from 1.
    pub line: u32,
    /// The `include` line of the file; `None` for the job file itself.
    pub included_at: Option<Arc<JobLine>>,
}

impl JobLine {
    /// Returns the line of the job file itself. For a line of an included file, this is the line of
    /// the outermost `include`.
    #[must_use]
    pub fn outermost(&self) -> &Self {
        let mut place = self;
        while let Some(outer) = &place.included_at {
            place = outer;
        }
        place
    }
}

impl fmt::Display for JobLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.file == COMMAND_LINE {
            return f.write_str(COMMAND_LINE);
        }
        write!(f, "{}:{}", self.file, self.line)?;
        let mut place = self;
        while let Some(outer) = &place.included_at {
            write!(f, " (included at {}:{})", outer.file, outer.line)?;
            place = outer;
        }
        Ok(())
    }
}
