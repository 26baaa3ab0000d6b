//! Bios and contexts that wait because of controllers, and bios that controllers hold.

use std::collections::VecDeque;

use crate::context::{CgroupId, ContextId};
use crate::controllers::{BioId, ControllerWaits, Controllers};
use crate::issued::Part;
use crate::request::{MergeSide, RequestId};

/// Place where a bio waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// At the controller with this index.
    Controller(usize),
    /// At the controller with this index, and the wait has ended.
    Passed(usize),
    /// In line for a free tag.
    Tag,
}

/// Bios of a request. Most requests have one bio, which needs no list.
#[derive(Debug, Default)]
pub(super) struct Bios {
    /// First bio of the request. `None`: the controllers do not know the request.
    pub(super) founder: Option<BioId>,
    /// All bios in sector order, if there are several. Otherwise empty.
    several: Vec<BioId>,
}

impl Bios {
    /// Returns all bios, in sector order.
    #[inline]
    pub(super) fn all(&self) -> &[BioId] {
        if self.several.is_empty() { self.founder.as_slice() } else { &self.several }
    }

    /// Adds a bio to a request that the controllers know.
    pub(super) fn add(&mut self, bio_id: BioId, side: MergeSide) {
        self.list();
        match side {
            MergeSide::Back => self.several.push(bio_id),
            MergeSide::Front => self.several.insert(0, bio_id),
        }
    }

    /// Adds all bios of another request at the end.
    pub(super) fn absorb(&mut self, other: Self) {
        if self.founder.is_none() {
            *self = other;
        } else {
            self.list();
            self.several.extend(other.all());
        }
    }

    /// Removes all bios. The list keeps its memory for the next request of the same id.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.founder = None;
        self.several.clear();
    }

    /// Begins the list with the first bio, before other bios are added.
    fn list(&mut self) {
        if self.several.is_empty() {
            self.several.extend(self.founder);
        }
    }
}

/// Pending write to a file. The write waits until no bio is in flight.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) file: String,
    pub(super) cgroup: CgroupId,
    pub(super) text: String,
}

/// Controllers of a queue, with the contexts that wait because of them.
pub(in crate::queue) struct Controlled {
    pub(super) controllers: Controllers,
    /// Waiting bio and held bios of each context.
    pub(super) contexts: Vec<OfContext>,
    /// Contexts whose wait has ended.
    pub(super) woken: VecDeque<ContextId>,
    /// Abandoned bios that still wait at a controller, each with the index of the controller.
    pub(super) left: Vec<(BioId, usize)>,
    /// Bios of each request.
    pub(super) bios: Vec<Bios>,
    /// Worker that submits released bios.
    pub(super) worker: Worker,
    /// Number of bios that have entered and are not complete.
    pub(super) inside: usize,
    /// Writes that wait for an empty queue. No bio enters in the meantime.
    pub(super) writes: VecDeque<Write>,
    /// Contexts whose bios could not enter because a write was pending.
    pub(super) shut_out: Vec<ContextId>,
}

/// Place where a bio is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeldAt {
    /// At the controller with this index.
    At(usize),
    /// Behind another held part of its I/O.
    Behind,
}

/// Bios of a context that are not in requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfContext {
    /// Waiting bio, and its place.
    pub(super) waiting: Option<(BioId, Place)>,
    pub(super) held: HeldBios,
}

/// Held bios of a context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldBios {
    pub(super) bios: u32,
    /// Latest part of the latest I/O, if this part is held. Further parts are then held behind it.
    last: Option<BioId>,
    /// Whether the context has exited. The elevator gets the exit after the last held bio.
    pub(super) exits: bool,
}

/// Worker that submits the bios that controllers have released.
#[derive(Debug)]
pub(super) struct Worker {
    /// Context that the worker uses to wait for tags.
    pub(super) context: ContextId,
    /// Released bios to submit.
    pub(super) queue: VecDeque<BioId>,
    /// Bio that the worker must submit next but that must wait, and the place of its wait.
    pub(super) waits: Option<(BioId, Place)>,
}

impl Controlled {
    /// Creates the state for `controllers`, with no waiting context.
    /// The worker submits held bios as `context`.
    pub(super) fn new(controllers: Controllers, context: ContextId) -> Self {
        Self {
            controllers,
            contexts: Vec::new(),
            woken: VecDeque::new(),
            left: Vec::new(),
            bios: Vec::new(),
            worker: Worker { context, queue: VecDeque::new(), waits: None },
            inside: 0,
            writes: VecDeque::new(),
            shut_out: Vec::new(),
        }
    }

    /// Reads a controller's file.
    pub(in crate::queue) fn read(&self, file: &str, cgroup: CgroupId) -> Option<String> {
        self.controllers.read(file, cgroup)
    }

    /// Returns the waits at each controller.
    pub(in crate::queue) fn waits(&self) -> &[ControllerWaits] {
        self.controllers.waits()
    }

    /// Returns how long a process must pause before it continues, ns.
    pub(in crate::queue) fn rest_ns(&mut self, context: ContextId, cgroup: CgroupId) -> u64 {
        self.controllers.rest_ns(context, cgroup)
    }

    /// Reports that a process of a cgroup sleeps because it has dirtied much memory.
    pub(in crate::queue) fn dirtier_sleeps(&mut self, cgroup: CgroupId) {
        self.controllers.dirtier_sleeps(cgroup);
    }

    /// Returns whether no bio is in flight.
    pub(in crate::queue) fn is_idle(&self) -> bool {
        self.controllers.site.bios.is_empty()
    }

    /// Checks that every bio inside is at exactly one place.
    pub(in crate::queue) fn check(&self) {
        let in_requests: usize = self.bios.iter().map(|bios| bios.all().len()).sum();
        let waiting = self.contexts.iter().filter(|of| of.waiting.is_some()).count();
        let waiting = waiting + usize::from(self.worker.waits.is_some());
        assert_eq!(self.inside, in_requests + waiting + self.left.len(), "each bio in the controllers is on a list");
        let held: u32 = self.contexts.iter().map(|of| of.held.bios).sum();
        let bios = self.controllers.site.bios.len();
        assert_eq!(bios, self.inside + held as usize - usize::from(self.worker.waits.is_some()), "none is lost");
        assert!(
            self.is_shut() || self.shut_out.is_empty(),
            "no process waits after the last write to a controller file"
        );
    }

    pub(super) fn is_shut(&self) -> bool {
        !self.writes.is_empty()
    }

    #[inline]
    pub(super) fn of(&mut self, context: ContextId) -> &mut OfContext {
        if self.contexts.len() <= context.index() {
            self.grow(context);
        }
        &mut self.contexts[context.index()]
    }

    #[cold]
    fn grow(&mut self, context: ContextId) {
        self.contexts.resize(context.index() + 1, OfContext::default());
    }

    #[inline]
    pub(super) fn waiting(&mut self, context: ContextId) -> &mut Option<(BioId, Place)> {
        &mut self.of(context).waiting
    }

    pub(super) fn held(&mut self, context: ContextId) -> &mut HeldBios {
        &mut self.of(context).held
    }

    /// Submits a bio of `context` to the controllers. Returns the place where the bio is held, if
    /// any.
    #[inline(always)]
    pub(super) fn hold(&mut self, bio_id: BioId, context: ContextId, part: Part) -> Option<HeldAt> {
        let last = self.held(context).last.take();
        let held = match last.filter(|_| part == Part::Rest) {
            Some(last) => {
                self.controllers.site.bios[last].rest = Some(bio_id);
                HeldAt::Behind
            }
            None => HeldAt::At(self.controllers.enter(bio_id)?),
        };
        let bios_of_context = self.held(context);
        bios_of_context.bios += 1;
        bios_of_context.last = Some(bio_id);
        Some(held)
    }

    /// Continues a bio that was held. Then the next part of its I/O enters the controllers. If no
    /// controller holds that part, the worker submits it next. Otherwise returns the part and the
    /// index of the controller that holds it.
    pub(super) fn follow(&mut self, bio_id: BioId, context: ContextId) -> Option<(BioId, usize)> {
        let bios_of_context = self.held(context);
        if bios_of_context.last == Some(bio_id) {
            bios_of_context.last = None;
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

    #[inline]
    pub(super) fn bios(&mut self, id: RequestId) -> &mut Bios {
        if self.bios.len() <= id.index() {
            self.grow_bios(id);
        }
        &mut self.bios[id.index()]
    }

    #[cold]
    fn grow_bios(&mut self, id: RequestId) {
        self.bios.resize_with(id.index() + 1, Bios::default);
    }

    /// Returns the first bio of a request, if the controllers know the request.
    #[inline]
    pub(super) fn founder(&self, id: RequestId) -> Option<BioId> {
        self.bios.get(id.index())?.founder
    }

    /// Continues all bios whose wait at a controller has ended. Returns whether the worker's bio is
    /// among them.
    pub(super) fn collect_woken(&mut self) -> bool {
        let mut worker = false;
        // A bio that leaves may let the next bio continue.
        while self.controllers.site.anyone_goes_on() {
            let ended: Vec<BioId> = self.controllers.site.take_going_on().collect();
            for bio_id in ended {
                worker |= self.goes_on(bio_id);
            }
        }
        worker
    }

    /// Continues a bio whose wait at a controller has ended. Returns whether it is the worker's
    /// bio.
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

    /// Lets an abandoned bio pass the controller `at`.
    pub(super) fn go_away(&mut self, bio_id: BioId, at: usize) {
        match self.controllers.resumed(bio_id, at) {
            Some(next) => self.left.push((bio_id, next)),
            None => self.abandon(bio_id),
        }
    }

    /// Executes pending writes if no bio is in flight. Returns whether there were any.
    pub(super) fn write_if_empty(&mut self) -> bool {
        if self.inside > 0 || !self.is_shut() {
            return false;
        }
        while let Some(Write { file, cgroup, text }) = self.writes.pop_front() {
            // A refused text has no effect, as in a write that need not wait.
            let _ = self.controllers.write(&file, cgroup, &text);
        }
        self.let_in();
        true
    }

    /// Wakes the contexts whose bios could not enter because of a pending write, the last one
    /// first.
    pub(super) fn let_in(&mut self) {
        self.woken.extend(self.shut_out.drain(..).rev());
    }

    /// Abandons a bio: the controllers treat the bio as served, so that other bios can use its
    /// share.
    #[cold]
    pub(super) fn abandon(&mut self, bio_id: BioId) {
        self.controllers.issued(bio_id);
        self.controllers.started(bio_id);
        self.controllers.completed(bio_id, &[bio_id], 0);
        self.inside -= 1;
    }
}
