//! Where output goes: standard output, and files that are there whole or not at all.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use iosched_live::Messages;

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

/// What is said at the end has so long to be taken by somebody.
const LAST_WORDS: Duration = Duration::from_secs(2);

static MESSAGES: OnceLock<Messages> = OnceLock::new();
static ANNOUNCEMENTS: OnceLock<Messages> = OnceLock::new();

/// What is said on standard error without waiting for whoever reads it.
pub(crate) fn messages() -> &'static Messages {
    MESSAGES.get_or_init(|| Messages::to(own(&io::stderr())))
}

/// Writes `text`, whole lines, to standard output, without waiting for whoever reads it.
pub(crate) fn announce(text: &str) {
    ANNOUNCEMENTS.get_or_init(|| Messages::to(own(&io::stdout()))).say(text.trim_end_matches('\n'));
}

/// The same stream as a file of its own: whoever waits for it keeps nobody else from it.
fn own(stream: &impl AsFd) -> Box<dyn Write + Send> {
    match stream.as_fd().try_clone_to_owned() {
        Ok(stream) => Box::new(File::from(stream)),
        Err(_) => Box::new(io::stderr()),
    }
}

/// What was said is written, if somebody takes it soon.
pub(crate) fn finish() {
    for said in [&ANNOUNCEMENTS, &MESSAGES].into_iter().filter_map(OnceLock::get) {
        // Whoever does not take it has been waited for.
        said.finish(LAST_WORDS);
    }
}

/// Ends at once, whatever is under way.
pub(crate) fn exit(code: i32) -> ! {
    finish();
    std::process::exit(code)
}

/// Says something on standard error to whoever looks after what goes on. That nobody listens is no reason to wait or to end.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::say_line(format_args!($($text)*))
    };
}
pub(crate) use say;

/// See [`say!`].
pub(crate) fn say_line(text: Arguments<'_>) {
    messages().say(&text.to_string());
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
