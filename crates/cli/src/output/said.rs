//! What is said while something goes on: whoever does not read it holds nobody up.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use iosched_live::Messages;

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

/// Says something on standard error to whoever looks after what goes on. That nobody listens is no reason to wait or
/// to end.
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
