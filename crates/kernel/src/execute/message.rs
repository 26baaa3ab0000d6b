//! What threads tell each other.

/// What one thread tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A job is to start at this moment, ns.
    Start { at_ns: u64 },
    /// A job is to issue no more.
    Stop,
    /// A job ends without having started.
    Skip,
    /// A task is to submit so many I/Os at this moment, ns.
    Called { at_ns: u64, ios: u64 },
    /// A task of an application that waits is to go on.
    GoOn,
}

/// What a thread is told.
pub(super) type Inbox = iosched_system::Inbox<Message>;

/// Tells a thread something.
pub(super) fn post(inbox: &Inbox, message: Message) {
    // An inbox is open as long as its run.
    let _ = inbox.send(message);
}
