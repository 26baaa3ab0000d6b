//! Where output goes: standard output, and files that are there whole or not at all.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes `text` to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes one JSON document to standard output.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Says something to whoever looks after a disk that is served. That nobody listens any more is no reason to end.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::say_line(format_args!($($text)*))
    };
}
pub(crate) use say;

/// See [`say!`].
pub(crate) fn say_line(text: Arguments<'_>) {
    // A line at once: several threads speak.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Makes the file `path` of what `write` writes. Until that is done, the file of that name stays as it was.
pub(crate) fn whole_file<T>(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    let temporary = Temporary(beside(path));
    let cannot = || format!("{}: cannot be written", path.display());
    let file = File::create(&temporary.0).map_err(|error| anyhow::anyhow!("{}: {error}", cannot()))?;
    let mut out = BufWriter::new(file);
    let value = write(&mut out)?;
    out.flush().with_context(cannot)?;
    std::fs::rename(&temporary.0, path).with_context(cannot)?;
    Ok(value)
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Removed when no longer needed; after it was renamed there is nothing to remove.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
