//! Messages between threads.

/// Message from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A job starts at this time, ns.
    Start { at_ns: u64 },
    /// A job issues no more I/O.
    Stop,
    /// A job ends without having started.
    Skip,
    /// A task submits this number of I/Os at this time, ns.
    Called { at_ns: u64, ios: u64 },
    /// A waiting task of an application continues.
    GoOn,
}

/// Inbox of a thread.
pub(super) type Inbox = iosched_system::Inbox<Message>;

/// Sends a message to a thread.
pub(super) fn post(inbox: &Inbox, message: Message) {
    // An inbox stays open for the whole run, so sending cannot fail.
    let _ = inbox.send(message);
}
