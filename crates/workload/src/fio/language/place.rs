//! Where something stands: a line of a job file, or of a file that it includes.

use std::fmt;
use std::sync::Arc;

/// Stands for a file where jobs come from a command line. Its lines are words.
pub(super) const COMMAND_LINE: &str = "fio command line";

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLine {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The `include` line that led to the file; `None` for the job file itself.
    pub included_at: Option<Arc<JobLine>>,
}

impl JobLine {
    /// The line of the job file itself: of the outermost `include`, if there is one.
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
