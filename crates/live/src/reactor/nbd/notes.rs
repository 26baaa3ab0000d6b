//! What a person should know of connections, no more lines in a second than one can read: hostile clients shall not fill a journal.

use iosched::Time;

/// Lines in a second.
const LINES_MAX: u32 = 20;

/// Lines to be told, and who is told.
pub(super) struct Notes {
    pub(super) lines: Vec<String>,
    note: Box<dyn FnMut(&str) + Send>,
    /// When the present second began.
    since: Time,
    told: u32,
    left_out: u64,
}

impl Notes {
    pub(super) fn new(note: Box<dyn FnMut(&str) + Send>) -> Self {
        Self { lines: Vec::new(), note, since: Time::ZERO, told: 0, left_out: 0 }
    }

    /// Tells what there is, or counts it. When the next may be told, if something has just been left out for the first time.
    pub(super) fn tell(&mut self, now: Time) -> Option<Time> {
        if self.lines.is_empty() && self.left_out == 0 {
            return None;
        }
        if now.since(self.since) >= iosched::SECOND_NS {
            (self.since, self.told) = (now, 0);
            let left_out = std::mem::take(&mut self.left_out);
            if left_out > 0 {
                self.told = 1;
                (self.note)(&format!("{left_out} more lines of this kind were left out"));
            }
        }
        let before = self.left_out;
        for line in self.lines.drain(..) {
            if self.told < LINES_MAX {
                self.told += 1;
                (self.note)(&line);
            } else {
                self.left_out += 1;
            }
        }
        (before == 0 && self.left_out > 0).then(|| self.since + iosched::SECOND_NS)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_and_a_few_are_told() {
        let (sender, told) = mpsc::channel();
        let mut notes = Notes::new(Box::new(move |line| sender.send(line.to_owned()).unwrap()));
        let mut due = None;
        for ms in 0..1000 {
            notes.lines.push(format!("line {ms}"));
            due = due.or(notes.tell(Time::from_ns((1000 + ms) * iosched::MILLISECOND_NS)));
        }
        let lines: Vec<String> = told.try_iter().collect();
        assert_eq!(lines.len() as u32, LINES_MAX);
        assert_eq!(lines[0], "line 0");
        assert_eq!(due, Some(Time::from_ns(2 * iosched::SECOND_NS)));
        assert_eq!(notes.tell(due.unwrap()), None);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), ["980 more lines of this kind were left out"]);
        assert_eq!(notes.tell(due.unwrap()), None);
        assert!(told.try_iter().next().is_none());
    }
}
