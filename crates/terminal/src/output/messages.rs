//! Messages during long work. They never delay the work, even if their reader is slow.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use iosched_live::Messages;

/// Longest time for which the command waits for the reader of messages before it exits.
const LAST_WORDS: Duration = Duration::from_secs(2);

static MESSAGES: OnceLock<Messages> = OnceLock::new();
static ANNOUNCEMENTS: OnceLock<Messages> = OnceLock::new();

/// Returns the messages on standard error, which do not wait for their reader.
pub fn messages() -> &'static Messages {
    MESSAGES.get_or_init(|| Messages::to(duplicate(&io::stderr())))
}

/// Writes the complete lines of `text` to standard output, without waiting for the reader.
pub fn announce(text: &str) {
    ANNOUNCEMENTS.get_or_init(|| Messages::to(duplicate(&io::stdout()))).say(text.trim_end_matches('\n'));
}

/// Duplicates the stream, so that a blocked writer does not hold the lock of the stream.
fn duplicate(stream: &impl AsFd) -> Box<dyn Write + Send> {
    match stream.as_fd().try_clone_to_owned() {
        Ok(stream) => Box::new(File::from(stream)),
        Err(_) => Box::new(io::stderr()),
    }
}

/// Waits a short time until the messages are written.
pub fn finish() {
    for messages in [&ANNOUNCEMENTS, &MESSAGES].into_iter().filter_map(OnceLock::get) {
        // Messages that are not read in time are dropped.
        messages.finish(LAST_WORDS);
    }
}

/// Ends the command immediately with an exit code.
pub fn exit(code: i32) -> ! {
    finish();
    std::process::exit(code)
}

/// Writes a message to standard error. If no process reads standard error, the command neither
/// waits nor ends.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::say_line(format_args!($($text)*))
    };
}
pub use crate::say;

/// Prints a line for the macro [`say!`].
pub fn say_line(text: Arguments<'_>) {
    messages().say(&text.to_string());
}
