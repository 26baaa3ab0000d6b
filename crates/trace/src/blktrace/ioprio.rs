//! Priorities of processes in block traces. Records have no field for a priority, so a message
//! contains the priority: `iosched ioprio: process 4711 has idle`. blkparse prints such a message.
//! The priority is valid until the next message about the same process.

use iosched::{IoClass, IoPriority};

use super::{Action, BlkEvent, Payload};

const BEGINNING: &str = "iosched ioprio: process ";
const MIDDLE: &str = " has ";

impl BlkEvent {
    /// Adds the message that the event's process has this ioprio from now on. Use it with an event
    /// of [`Action::NoteMessage`].
    #[must_use]
    pub fn with_ioprio(self, ioprio: IoPriority) -> Self {
        let pid = self.pid;
        let text = match ioprio.class() {
            // The level follows from the nice value.
            IoClass::None => format!("none/{}", ioprio.level()),
            _ => ioprio.to_string(),
        };
        self.with_message(&format!("{BEGINNING}{pid}{MIDDLE}{text}"))
    }

    /// Returns the process and ioprio of a message about an ioprio, or `None` for other events.
    /// blkparse prints messages without their process, so the text contains the process.
    #[must_use]
    pub fn ioprio(&self) -> Option<(u32, IoPriority)> {
        let (Action::NoteMessage, Payload::Message(text)) = (self.action, &self.payload) else { return None };
        let (pid, ioprio) = text.strip_prefix(BEGINNING)?.split_once(MIDDLE)?;
        Some((pid.parse().ok()?, ioprio.trim_end().parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use iosched::Time;

    use super::*;

    #[test]
    fn ioprio_round_trips_through_a_message() {
        for text in ["none", "none/7", "idle", "rt/0", "be/4", "be/7"] {
            let ioprio = text.parse().unwrap();
            let event = BlkEvent::new(Action::NoteMessage, Time::ZERO, 0, 4711).with_ioprio(ioprio);
            assert_eq!(event.ioprio(), Some((4711, ioprio)), "{text}");
        }
    }

    #[test]
    fn other_messages_have_no_ioprio() {
        for text in ["cfq idle=0", "iosched ioprio: process 1 has", "iosched ioprio: process x has idle", ""] {
            let event = BlkEvent::new(Action::NoteMessage, Time::ZERO, 0, 1).with_message(text);
            assert_eq!(event.ioprio(), None, "{text}");
        }
    }
}
