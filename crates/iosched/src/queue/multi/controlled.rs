//! Who waits because of the controllers beside the elevator, and what they hold.

use std::collections::VecDeque;

use crate::context::{CgroupId, ContextId};
use crate::controllers::{BioId, ControllerWaits, Controllers};
use crate::issued::Part;
use crate::request::RequestId;

/// Where a bio waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// At the controller of this number.
    Controller(usize),
    /// There, and its wait has ended.
    Passed(usize),
    /// For a tag.
    Tag,
}

/// The bios of a request.
#[derive(Debug, Default)]
pub(super) struct Bios {
    /// The one that it began with.
    pub(super) founder: BioId,
    /// All, in order of sectors. None: controllers do not know the request.
    pub(super) all: Vec<BioId>,
}

/// A write to a file that waits until nothing is under way.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) file: String,
    pub(super) cgroup: CgroupId,
    pub(super) text: String,
}

/// The controllers of a queue, and who waits because of them.
pub(in crate::queue) struct Controlled {
    pub(super) controllers: Controllers,
    /// By context: the bio that it waits with, and where.
    pub(super) waiting: Vec<Option<(BioId, Place)>>,
    /// Contexts whose wait has ended.
    pub(super) woken: VecDeque<ContextId>,
    /// By context: what is held of it.
    pub(super) held: Vec<HeldOf>,
    /// Bios that nobody submits any more, and at which controller each still stands in line.
    pub(super) left: Vec<(BioId, usize)>,
    /// By request. What is done leaves its memory to the next.
    pub(super) bios: Vec<Bios>,
    /// Sends on what was held.
    pub(super) worker: Worker,
    /// Bios that entered and are not done.
    pub(super) inside: usize,
    /// Writes for which the queue is emptied: nothing enters meanwhile.
    pub(super) writes: VecDeque<Write>,
    /// Who found the entry shut.
    pub(super) shut_out: Vec<ContextId>,
}

/// Where a bio is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// At the controller of this number.
    At(usize),
    /// Behind another part of its I/O.
    Behind,
}

/// What is held of a context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldOf {
    pub(super) bios: u32,
    /// The last part so far of the latest I/O, if it is held: the rest comes behind it.
    last: Option<BioId>,
    /// It has exited, and the elevator will be told behind the last of them.
    pub(super) exits: bool,
}

/// Who sends on what controllers held.
#[derive(Debug)]
pub(super) struct Worker {
    /// As whom it waits for tags.
    pub(super) context: ContextId,
    /// What it was given.
    pub(super) queue: VecDeque<BioId>,
    /// The bio that it waits with.
    pub(super) waits: Option<(BioId, Place)>,
}

impl Controlled {
    /// `controllers`, that nobody waits for yet; what they hold is sent on as `context`.
    pub(super) fn new(controllers: Controllers, context: ContextId) -> Self {
        Self {
            controllers,
            waiting: Vec::new(),
            woken: VecDeque::new(),
            held: Vec::new(),
            left: Vec::new(),
            bios: Vec::new(),
            worker: Worker { context, queue: VecDeque::new(), waits: None },
            inside: 0,
            writes: VecDeque::new(),
            shut_out: Vec::new(),
        }
    }

    /// What a controller's file reads as.
    pub(in crate::queue) fn read(&self, file: &str, cgroup: CgroupId) -> Option<String> {
        self.controllers.read(file, cgroup)
    }

    /// Who waited at which controller.
    pub(in crate::queue) fn waits(&self) -> &[ControllerWaits] {
        self.controllers.waits()
    }

    /// How long a process rests before it does anything else, ns.
    pub(in crate::queue) fn rest_ns(&mut self, context: ContextId, cgroup: CgroupId) -> u64 {
        self.controllers.rest_ns(context, cgroup)
    }

    /// Whether no bio is on its way.
    pub(in crate::queue) fn is_idle(&self) -> bool {
        self.controllers.site.bios.is_empty()
    }

    /// Checks that whoever is inside is somewhere.
    pub(in crate::queue) fn check(&self) {
        let in_requests: usize = self.bios.iter().map(|bios| bios.all.len()).sum();
        let waiting = self.waiting.iter().flatten().count() + usize::from(self.worker.waits.is_some());
        assert_eq!(self.inside, in_requests + waiting + self.left.len(), "who is inside is somewhere");
        let held: u32 = self.held.iter().map(|held| held.bios).sum();
        let bios = self.controllers.site.bios.len();
        assert_eq!(bios, self.inside + held as usize - usize::from(self.worker.waits.is_some()), "none is lost");
        assert!(self.is_shut() || self.shut_out.is_empty(), "who was shut out goes on");
    }

    pub(super) fn is_shut(&self) -> bool {
        !self.writes.is_empty()
    }

    pub(super) fn waiting(&mut self, context: ContextId) -> &mut Option<(BioId, Place)> {
        if self.waiting.len() <= context.index() {
            self.waiting.resize(context.index() + 1, None);
        }
        &mut self.waiting[context.index()]
    }

    pub(super) fn held(&mut self, context: ContextId) -> &mut HeldOf {
        if self.held.len() <= context.index() {
            self.held.resize(context.index() + 1, HeldOf::default());
        }
        &mut self.held[context.index()]
    }

    /// A bio comes; if it is held, `Some` is where.
    #[inline]
    pub(super) fn hold(&mut self, bio_id: BioId, part: Part) -> Option<Held> {
        let context = self.controllers.site.bios[bio_id].context;
        let last = self.held.get_mut(context.index()).and_then(|held| held.last.take());
        let held = match last.filter(|_| part == Part::Rest) {
            Some(last) => {
                self.controllers.site.bios[last].rest = Some(bio_id);
                Held::Behind
            }
            None => Held::At(self.controllers.enter(bio_id)?),
        };
        let of = self.held(context);
        of.bios += 1;
        of.last = Some(bio_id);
        Some(held)
    }

    /// A bio that was held goes on: the next part of its I/O enters, and goes on right behind it, unless it is held
    /// itself: then `Some` is what, and where.
    pub(super) fn follow(&mut self, bio_id: BioId, context: ContextId) -> Option<(BioId, usize)> {
        let of = self.held(context);
        if of.last == Some(bio_id) {
            of.last = None;
        }
        let rest = self.controllers.site.bios[bio_id].rest.take()?;
        match self.controllers.enter(rest) {
            Some(at) => Some((rest, at)),
            None => {
                self.worker.queue.push_front(rest);
                None
            }
        }
    }

    pub(super) fn bios(&mut self, id: RequestId) -> &mut Bios {
        if self.bios.len() <= id.index() {
            self.bios.resize_with(id.index() + 1, Bios::default);
        }
        &mut self.bios[id.index()]
    }

    /// Those whose wait at a controller has ended go on. `true`: the worker is among them.
    pub(super) fn collect_woken(&mut self) -> bool {
        let mut worker = false;
        // One that goes away leaves its place to the next.
        while self.controllers.site.anyone_goes_on() {
            let ended: Vec<BioId> = self.controllers.site.take_going_on().collect();
            for bio_id in ended {
                worker |= self.goes_on(bio_id);
            }
        }
        worker
    }

    /// One whose wait at a controller has ended goes on. `true`: it is the worker.
    fn goes_on(&mut self, bio_id: BioId) -> bool {
        if let Some(at) = self.left.iter().position(|&(left, _)| left == bio_id) {
            let (_, place) = self.left.swap_remove(at);
            self.go_away(bio_id, place);
            return false;
        }
        if let Some((waits, place @ &mut Place::Controller(at))) =
            self.worker.waits.as_mut().map(|(waits, place)| (*waits, place))
            && waits == bio_id
        {
            *place = Place::Passed(at);
            return true;
        }
        let context = self.controllers.site.bios[bio_id].context;
        if let Some((_, place @ &mut Place::Controller(at))) =
            self.waiting(context).as_mut().map(|(bio_id, place)| (bio_id, place))
        {
            *place = Place::Passed(at);
            self.woken.push_back(context);
        }
        false
    }

    /// A bio that nobody submits any more has passed the controller `at`.
    pub(super) fn go_away(&mut self, bio_id: BioId, at: usize) {
        match self.controllers.resumed(bio_id, at) {
            Some(next) => self.left.push((bio_id, next)),
            None => self.abandon(bio_id),
        }
    }

    /// Carries out writes that waited, if nothing is under way any more: whether it did.
    pub(super) fn write_if_empty(&mut self) -> bool {
        if self.inside > 0 || !self.is_shut() {
            return false;
        }
        while let Some(Write { file, cgroup, text }) = self.writes.pop_front() {
            // Refused: as a write to the file would be.
            let _ = self.controllers.write(&file, cgroup, &text);
        }
        // The last come first.
        let shut_out = std::mem::take(&mut self.shut_out);
        self.woken.extend(shut_out.into_iter().rev());
        true
    }

    /// A bio is as if it had been served: what it took is for others.
    pub(super) fn abandon(&mut self, bio_id: BioId) {
        self.controllers.issued(bio_id);
        self.controllers.started(bio_id);
        self.controllers.completed(bio_id, &[bio_id], 0);
        self.inside -= 1;
    }
}
