//! Messages to the user from threads that must not wait for a reader.
//!
//! A thread puts its message into a queue and continues. A separate thread writes the messages. If
//! the reader is too slow, messages that do not fit into the queue are dropped and counted. Clients
//! can cause any number of messages. Therefore the rate of each kind of message is limited.
//! Messages above this rate are only counted, and their number is reported.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::quote::shortened;

/// Maximum number of queued bytes.
const QUEUED_BYTES_MAX: usize = 256 << 10;
/// Maximum number of messages of a kind in a period of [`WHILE`].
const OF_A_KIND_MAX: u64 = 10;
/// Period of the rate limit.
const WHILE: Duration = Duration::from_secs(10);
/// Pause after the writer could not take data.
const PAUSE: Duration = Duration::from_millis(10);

/// Counts of messages that were not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsaid {
    /// Number of messages that were dropped because the reader was too slow, or because the writer
    /// failed.
    pub dropped: u64,
    /// Number of messages that were not written one by one, but reported as a number, because of
    /// the rate limit.
    pub suppressed: u64,
}

/// Queue for messages to the user. Only [`Messages::finish`] waits. A clone is another handle of
/// the same queue.
#[derive(Clone)]
pub struct Messages(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// State of a kind of message in the current period.
struct Kind {
    since: Instant,
    written: u64,
    suppressed: u64,
}

#[derive(Default)]
struct State {
    lines: VecDeque<String>,
    queued_bytes: usize,
    /// Whether the thread is writing.
    writing: bool,
    kinds: BTreeMap<&'static str, Kind>,
    unsaid: Unsaid,
    /// Number of dropped messages that were not reported to the user yet.
    untold: u64,
}

impl State {
    fn say(&mut self, text: &str) {
        let text = shortened(text);
        if self.queued_bytes + text.len() > QUEUED_BYTES_MAX {
            self.drop_some(1);
            return;
        }
        self.queued_bytes += text.len() + 1;
        self.lines.push_back(format!("{text}\n"));
    }

    fn drop_some(&mut self, count: u64) {
        self.unsaid.dropped += count;
        self.untold += count;
    }

    fn note(&mut self, now: Instant, kind: &'static str, text: &str) {
        self.tell_suppressed(Some(now));
        let of_kind = self.kinds.entry(kind).or_insert(Kind { since: now, written: 0, suppressed: 0 });
        if of_kind.written == OF_A_KIND_MAX {
            of_kind.suppressed += 1;
            self.unsaid.suppressed += 1;
            return;
        }
        of_kind.written += 1;
        self.say(text);
    }

    /// Reports the number of suppressed messages of each kind whose period has ended at `now`. If
    /// `now` is `None`, reports all kinds.
    fn tell_suppressed(&mut self, now: Option<Instant>) {
        let is_over = |kind: &Kind| now.is_none_or(|now| now.saturating_duration_since(kind.since) >= WHILE);
        let (over, rest): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.kinds).into_iter().partition(|(_, kind)| is_over(kind));
        self.kinds = rest;
        for (name, Kind { suppressed, .. }) in over {
            if suppressed > 0 {
                self.say(&format!("and {suppressed} more: {name}"));
            }
        }
    }

    /// Returns the time of the next call of [`State::tell_suppressed`].
    fn next_time(&self) -> Option<Instant> {
        self.kinds.values().map(|kind| kind.since + WHILE).min()
    }

    /// Takes all queued text. Returns the text and the number of messages in it.
    fn take(&mut self) -> (String, u64) {
        let mut count = self.lines.len() as u64;
        let mut text: String = self.lines.drain(..).collect();
        self.queued_bytes = 0;
        if self.untold > 0 {
            text += &format!(
                "warning: {} messages were lost, because the program that reads them was too slow\n",
                self.untold
            );
            self.untold = 0;
            count += 1;
        }
        (text, count)
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Messages").field(&self.unsaid()).finish()
    }
}

impl Messages {
    /// Creates a queue that writes to `out`, one line per message.
    #[must_use]
    pub fn to(out: impl Write + Send + 'static) -> Self {
        let messages = Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }));
        let writer = messages.clone();
        // If the thread cannot be created, messages are dropped and counted when the queue is full.
        let _ = std::thread::Builder::new().name("messages".to_owned()).spawn(move || writer.write_all(out));
        messages
    }

    /// Creates a queue that drops all messages.
    #[must_use]
    pub fn to_nobody() -> Self {
        Self::to(io::sink())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message without a rate limit. Do not use this for a message that a client can cause
    /// repeatedly.
    pub fn say(&self, text: &str) {
        self.state().say(text);
        self.0.changed.notify_all();
    }

    /// Sends a message that clients can cause. Each `kind` has a rate limit. The user sees the name
    /// of the kind: `and 870 more: KIND`.
    pub fn note(&self, kind: &'static str, text: &str) {
        let mut state = self.state();
        state.note(Instant::now(), kind, text);
        // A suppressed message does not wake the writing thread.
        if !state.lines.is_empty() {
            self.0.changed.notify_all();
        }
    }

    /// Returns the counts of messages that were not written.
    #[must_use]
    pub fn unsaid(&self) -> Unsaid {
        self.state().unsaid
    }

    /// Waits until everything is written, for at most `patience`. Returns whether everything is
    /// written.
    pub fn finish(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.state();
        state.tell_suppressed(None);
        self.0.changed.notify_all();
        while !state.lines.is_empty() || state.writing {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn write_all(&self, mut out: impl Write) {
        loop {
            let (text, count) = self.next();
            let written = write_patiently(&mut out, text.as_bytes());
            let mut state = self.state();
            state.writing = false;
            if written.is_err() {
                state.drop_some(count);
            }
            drop(state);
            self.0.changed.notify_all();
        }
    }

    /// Waits for the next text to write.
    fn next(&self) -> (String, u64) {
        let mut state = self.state();
        loop {
            state.tell_suppressed(Some(Instant::now()));
            if !state.lines.is_empty() {
                state.writing = true;
                return state.take();
            }
            state = match state.next_time() {
                Some(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// Writes all bytes. Also works with a non-blocking file.
fn write_patiently(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Sends written text through a channel.
    struct Sent(mpsc::Sender<String>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.send(text).map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Writer that blocks until the other end of the channel is dropped.
    struct Stalled(mpsc::Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_are_written_in_order() {
        let (sender, sent) = mpsc::channel();
        let messages = Messages::to(Sent(sender));
        messages.say("first");
        messages.note("of a kind", "second");
        assert!(messages.finish(PATIENCE));
        assert_eq!(sent.try_iter().collect::<String>(), "first\nsecond\n");
        assert_eq!(messages.unsaid(), Unsaid::default());
    }

    #[test]
    fn frequent_messages_of_a_kind_are_counted_not_written() {
        let (sender, sent) = mpsc::channel();
        let messages = Messages::to(Sent(sender));
        for number in 0..OF_A_KIND_MAX + 870 {
            messages.note("bad handshakes", &format!("bad {number}"));
        }
        messages.note("read errors", "a read failed");
        assert!(messages.finish(PATIENCE));
        let written = sent.try_iter().collect::<String>();
        assert_eq!(written.matches("bad ").count() as u64, OF_A_KIND_MAX + 1, "{written}");
        assert!(written.contains("and 870 more: bad handshakes\n") && written.contains("a read failed\n"), "{written}");
        assert_eq!(messages.unsaid(), Unsaid { dropped: 0, suppressed: 870 });
    }

    #[test]
    fn suppressed_kind_is_written_again_after_a_while() {
        let mut state = State::default();
        let now = Instant::now();
        for _ in 0..OF_A_KIND_MAX + 3 {
            state.note(now, "kind", "text");
        }
        assert_eq!(state.next_time(), Some(now + WHILE));
        state.note(now + WHILE, "kind", "text");
        let (written, count) = state.take();
        assert_eq!(count, OF_A_KIND_MAX + 2);
        assert!(written.ends_with("text\nand 3 more: kind\ntext\n"), "{written}");
    }

    #[test]
    fn a_slow_reader_delays_no_sender_and_memory_is_bounded() {
        let (listener, stalled) = mpsc::channel();
        let messages = Messages::to(Stalled(stalled));
        let line = "word ".repeat(200);
        for _ in 0..2000 {
            messages.say(&line);
        }
        assert!(!messages.finish(Duration::from_millis(1)));
        assert!(messages.state().queued_bytes <= QUEUED_BYTES_MAX);
        let dropped = messages.unsaid().dropped;
        assert!(dropped > 1000, "{dropped}");
        drop(listener);
        messages.say("at last");
        assert!(messages.finish(PATIENCE));
    }

    #[test]
    fn a_message_longer_than_the_queue_is_shortened_and_written() {
        let (sender, sent) = mpsc::channel();
        let messages = Messages::to(Sent(sender));
        messages.say(&format!("\"{}\" is no number", "9 ".repeat(QUEUED_BYTES_MAX)));
        assert!(messages.finish(PATIENCE));
        let written = sent.try_iter().collect::<String>();
        assert!(written.ends_with("characters)\" is no number\n") && written.len() < 300, "{written}");
    }

    #[test]
    fn messages_that_the_writer_refuses_are_counted() {
        let (sender, sent) = mpsc::channel();
        drop(sent);
        let messages = Messages::to(Sent(sender));
        messages.say("nobody");
        assert!(messages.finish(PATIENCE));
        assert_eq!(messages.unsaid().dropped, 1);
    }
}
