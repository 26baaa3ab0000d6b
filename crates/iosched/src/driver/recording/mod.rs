//! What a driver was told, in order: enough to make another driver decide the same.
//!
//! A host that has its driver [recorded](super::Driver::record) from the beginning takes the [`Record`]s as they come.
//! They are everything that decides what the queue does: the queue as it was made, what arrived, what the device was
//! done with, when timers and reruns were heard, every change, and where each turn began. What a turn gave is not among
//! them, for that is decided. A line of text each is their other form ([`Record`]'s `Display` and [`Record::parse`]),
//! which a file keeps.

mod text;

pub use text::RecordError;

use std::fmt;

use super::Rerun;
use crate::context::{Cgroup, CgroupId, ContextId, IoPriority};
use crate::decision::Decision;
use crate::issued::Issued;
use crate::queue::{IoError, QueueConfig};
use crate::request::Bio;
use crate::time::Time;

/// One thing that a driver was told, or decided; `D` is a decision: [`Decision`], or the [text](DecisionText) of one
/// that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Record<D = Decision> {
    /// When. What does not depend on time has the time of what came before.
    pub at: Time,
    /// What.
    pub what: What<D>,
}

/// What a driver was told, or decided.
#[derive(Clone, PartialEq, Debug)]
pub enum What<D = Decision> {
    /// The queue as it was made, with its elevator's defaults: always first.
    Queue {
        /// What the queue was made with.
        config: QueueConfig,
        /// The elevator it began with.
        elevator: String,
        /// When it is run again.
        rerun: Rerun,
    },
    /// The device takes so many requests at once from now on.
    Depth(u32),
    /// The device is done with a request, by its [index](crate::RequestId::index).
    Complete {
        /// The request.
        request: u32,
        /// What the device said.
        result: Result<(), IoError>,
    },
    /// The device gives a request back undone.
    Requeue(u32),
    /// The elevator's timer is heard.
    Timer,
    /// The queue is run once more.
    Rerun,
    /// A bio arrives, issued so.
    Submit(Bio, Issued),
    /// What a process submits collects from now on.
    Plug(ContextId),
    /// What it collected goes on its way.
    Unplug(ContextId),
    /// A process that was woken has nothing to submit.
    Decline(ContextId),
    /// A process begins. It gets the id that the queue gives next.
    Context {
        /// Its number.
        pid: u32,
        /// Its priority.
        ioprio: IoPriority,
        /// Its cgroup.
        cgroup: CgroupId,
    },
    /// A process has another priority.
    IoPriority(ContextId, IoPriority),
    /// A process exits.
    Exit(ContextId),
    /// A process leaves its turn to another.
    Yield {
        /// Who waits.
        from: ContextId,
        /// For whom.
        to: ContextId,
    },
    /// A cgroup is made. It gets the id that the queue gives next, unless its weights are refused.
    Cgroup(Cgroup),
    /// A cgroup has other weights, if they are not refused.
    Weights {
        /// The cgroup.
        cgroup: CgroupId,
        /// Among its siblings.
        weight: Option<u32>,
        /// Of its own processes.
        leaf_weight: Option<u32>,
    },
    /// A process moves to another cgroup.
    Move(ContextId, CgroupId),
    /// A cgroup is removed.
    Remove(CgroupId),
    /// A file of a cgroup is written that a controller has; it may be refused.
    CgroupAttribute {
        /// Whose.
        cgroup: CgroupId,
        /// Its name.
        name: String,
        /// What is written.
        value: String,
    },
    /// An attribute of the queue is written; it may be refused.
    Attribute {
        /// Its name.
        name: String,
        /// The value.
        value: String,
    },
    /// A tunable of the elevator is written; it may be refused.
    Tunable {
        /// Its name.
        name: String,
        /// The value.
        value: String,
    },
    /// Another elevator takes over.
    Switch(String),
    /// A turn begins, or goes on after who was woken has submitted.
    Turn,
    /// What was decided, [rebased](Decision::rebased) to [`Time::BEGINNING`]; of no effect on a driver.
    Decision(D),
}

/// A decision in words, as a recording keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct DecisionText(pub Box<str>);

impl fmt::Debug for DecisionText {
    /// As the decision's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DecisionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Decision> for DecisionText {
    fn from(decision: Decision) -> Self {
        Self(format!("{decision:?}").into())
    }
}

impl PartialEq<Decision> for DecisionText {
    fn eq(&self, decision: &Decision) -> bool {
        *self.0 == *format!("{decision:?}")
    }
}

/// What was told since a host last took it.
#[derive(Default)]
pub(super) struct Recording {
    records: Vec<Record>,
    at: Time,
}

impl Recording {
    pub(super) fn note(&mut self, at: Option<Time>, what: What) {
        self.at = at.unwrap_or(self.at);
        self.records.push(Record { at: self.at, what });
    }

    pub(super) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }
}
